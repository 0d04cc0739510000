"""Circles of imports inside packages: none but those that are listed here, each with its reason.

Imports inside functions and those for type checkers alone count, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.house.checkout import all_members, nodes_of

REASONS: Mapping[frozenset[str], str] = {
    frozenset({"axil.kernel.plan", "axil.kernel.tokens"}): "a token names the node that it is for, "
    "and a plan says what its nodes do with tokens; types alone",
    frozenset(
        {"axil.spec.digests", "axil.spec.graph"}
    ): "a graph gives its digest, which is worked out from graphs; imported when it is asked for",
    frozenset(
        {"axil.runtime.recorder", "axil.runtime.result"}
    ): "a run's options name its journal, and a journal is made a recorder from them; types alone",
    frozenset(
        {"axil.settings.confinement", "axil.settings.grants"}
    ): "putting grants in force begins to enforce them; imported when a file is read",
    frozenset({"axil.runtime.pool", "axil.runtime.run"}): "a body that ends works on in its run's "
    "loop; types alone",
    frozenset(
        {"axil.builder.graph", "axil.builder.options", "axil.builder.workflow"}
    ): "a graph is a workflow, and options are typed by both; types alone",
    frozenset(
        {"axil_agent.agent", "axil_agent.delegate", "axil_agent.nodes"}
    ): "an agent's settings may name agents as tools",
    frozenset(
        {
            "axil_cli.command",
            "axil_cli.launch",
            "axil_cli.plain",
            "axil_cli.record",
            "axil_cli.signals",
            "axil_cli.source",
        }
    ): "the session is the face of the others for commands of plugins; imported when they are used",
    frozenset({"axil_postgres.journal", "axil_postgres.writer"}): "types alone",
    frozenset({"axil_sqlite.journal", "axil_sqlite.writer"}): "types alone",
    frozenset(
        {"masfactory.core.edge", "masfactory.core.node"}
    ): "an edge has two nodes, and a node its edges; types alone",
}


def modules_of(source: Path) -> dict[str, Path]:
    """Return the modules below a source folder by name."""
    names = {
        ".".join(file.relative_to(source).with_suffix("").parts): file
        for file in sorted(source.rglob("*.py"))
        if file.name != "keywords.py"  # types alone, written from what imports them
    }
    return {name.removesuffix(".__init__"): file for name, file in names.items()}


def imports_of(file: Path, modules: Mapping[str, Path]) -> set[str]:
    """Return the modules among ``modules`` that a file imports anywhere."""
    found: set[str] = set()
    for node in nodes_of(file):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inside = {f"{node.module}.{alias.name}" for alias in node.names} & modules.keys()
            found |= inside or {node.module}
    return found & modules.keys()


def circles(edges: Mapping[str, set[str]]) -> Iterator[frozenset[str]]:
    """Yield the sets of modules that reach each other."""
    reached: dict[str, set[str]] = {}
    for start in edges:
        seen: set[str] = set()
        waiting = [*edges[start]]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting.extend(edges[name])
        reached[start] = seen
    done: set[str] = set()
    for name, seen in reached.items():
        if name in seen and name not in done:
            circle = frozenset(each for each in seen if name in reached[each])
            done |= circle
            if len(circle) > 1:
                yield circle


def test_no_modules_import_each_other_without_a_reason():
    found: set[frozenset[str]] = set()
    for member in all_members():
        modules = modules_of(member.folder / "src") if member.has_code else {}
        edges = {name: imports_of(file, modules) - {name} for name, file in modules.items()}
        found |= set(circles(edges))
    assert found == set(REASONS)
