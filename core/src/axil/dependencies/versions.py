"""The pins of a run: the distributions that its components come from, the kernel among them.

They are found as ``needs`` finds them; of what was made in Python it is the package of its class.
What they in turn require is a lock's business.
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
"""Lines of a RECORD that the installer writes."""


def pins(spec: GraphSpec, setting: CompileOptions) -> dict[str, dict[str, str]]:
    """Return name → ``version``, and ``record``: a digest of the files that it lists, unless it is
    installed in place.
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
    """Yield the distributions of what was made in Python, if called as their packages."""
    given = [node.body for node in spec.nodes] + [
        use.made for node in spec.nodes for use in node.wrappers
    ]
    given += [part for edge in spec.edges for part in (edge.condition, edge.process)]
    given += [declared.validate for declared in spec.schema.fields.values()] if spec.schema else []
    for each in given:
        kind: object = (
            each if isinstance(each, type) or hasattr(each, "__qualname__") else type(each)
        )
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
    """Return a short digest of the files that a distribution lists; empty: unknown."""
    try:
        data: Any = json.loads(there.read_text("direct_url.json") or "{}")
    except ValueError:
        data = {}
    listed = recorded_files(there)
    if not listed or data.get("dir_info", {}).get("editable"):
        return ""
    return hashlib.sha256(listed.encode()).hexdigest()[:16]


def recorded_files(there: Any) -> str:
    """Return the paths and hashes of a distribution's RECORD, sorted, without the installer's
    own.
    """
    lines = [line.strip() for line in (there.read_text("RECORD") or "").splitlines()]
    return "\n".join(
        sorted(
            line.rpartition(",")[0]
            for line in lines
            if line and not _OWN.search(line.partition(",")[0])
        )
    )
