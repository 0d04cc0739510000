"""The pins of a run beside its graph: the distributions that its components come from.

Those are found as ``needs`` finds them, by the names in the graph, in the graphs inside it and
in settings; of what was made in Python it is the package of its class. The kernel is one of them.
What they in turn require is not looked into: that is a lock's business.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import TYPE_CHECKING, Any, Final

from axil.kernel.state import APPEND, OVERWRITE
from axil.spec.graph import ComponentRef, GraphSpec
from axil.spec.kinds import KERNEL, canonical_name

if TYPE_CHECKING:
    from axil.compiler.planner import CompileOptions

_OWN: Final = re.compile(
    r"(^|/)(RECORD|INSTALLER|REQUESTED|direct_url\.json|uv_cache\.json)$|\.pyc$|__pycache__|^\.\./"
)
"""Lines of a RECORD that the installer writes, not the distribution."""


def pins(spec: GraphSpec, setting: CompileOptions) -> dict[str, dict[str, str]]:
    """Return name → ``version``, and ``record``: a digest of what it says it installed, unless it
    is installed in place.

    Cost: the manifests of the distributions that the graph names, read once in a process.
    """
    found = {
        KERNEL: "",
        **dict.fromkeys((name for graph in graphs_of(spec) for name in _packages(graph)), ""),
    }
    if any(_names_something(graph) for graph in graphs_of(spec)):
        from axil.dependencies.needs import of_graph

        for graph in graphs_of(spec):
            for need in of_graph(graph, registry=setting.components()).found:
                if need.component is not None and need.component.status != "registered":
                    found[need.component.distribution] = need.component.version
    pinned = {name: _pin(name, version) for name, version in sorted(found.items())}
    return {name: dict(pin) for name, pin in pinned.items() if pin}


def graphs_of(spec: GraphSpec) -> Iterator[GraphSpec]:
    """Yield the graph, and those in it that were made in Python."""
    stack = [spec]
    while stack:
        outer = stack.pop()
        yield outer
        stack.extend(node.body.to_spec() for node in outer.nodes if hasattr(node.body, "to_spec"))


def _names_something(spec: GraphSpec) -> bool:
    if spec.schema is not None and any(
        declared.reducer not in (OVERWRITE, APPEND) for declared in spec.schema.fields.values()
    ):
        return True
    parts = [part for edge in spec.edges for part in (edge.condition, edge.process)]
    parts += [use for node in spec.nodes for use in (node.use, *node.wrappers)]
    return any(isinstance(part, ComponentRef) and part.made is None for part in parts)


def _packages(spec: GraphSpec) -> Iterator[str]:
    """Yield the distributions, if they are called as their packages, of what was made in Python."""
    given = [node.body for node in spec.nodes] + [
        use.made for node in spec.nodes for use in node.wrappers
    ]
    given += [part for edge in spec.edges for part in (edge.condition, edge.process)]
    given += [declared.validate for declared in spec.schema.fields.values()] if spec.schema else []
    for each in given:
        kind: Any = each if isinstance(each, type) or hasattr(each, "__qualname__") else type(each)
        package = str(getattr(kind, "__module__", "")).partition(".")[0]
        yield KERNEL if package == "axil" else canonical_name(package)


@functools.cache
def _pin(name: str, version: str) -> tuple[tuple[str, str], ...]:
    try:
        there = distribution(name)
        found, record = version or there.version, _record(there)
    except (PackageNotFoundError, ValueError):
        found, record = version, ""
    return (*((("version", found),) if found else ()), *((("record", record),) if record else ()))


def _record(there: Distribution) -> str:
    """Return a short digest of what a distribution says it installed; empty: it is not known."""
    try:
        data: Any = json.loads(there.read_text("direct_url.json") or "{}")
    except ValueError:
        data = {}
    listed = recorded_files(there)
    if not listed or data.get("dir_info", {}).get("editable"):
        return ""
    return hashlib.sha256(listed.encode()).hexdigest()[:16]


def recorded_files(there: Any) -> str:
    """Return the paths and hashes that a distribution lists in its RECORD, sorted, without what the
    installer added.
    """
    lines = [line.strip() for line in (there.read_text("RECORD") or "").splitlines()]
    return "\n".join(
        sorted(
            line.rpartition(",")[0]
            for line in lines
            if line and not _OWN.search(line.partition(",")[0])
        )
    )
