"""A document of AML as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Keys = Mapping[str, str] | None


class AmlError(ValueError):
    """A document that is no graph."""


@dataclass(frozen=True)
class AmlEdge:
    """An edge. ``condition_kind`` is ``if`` or ``match``."""

    source: str
    target: str
    condition: str | None = None
    condition_kind: str | None = None
    keys: dict[str, str] | None = None


@dataclass(frozen=True)
class AmlNode:
    """A node. ``kind`` is agent, custom_node, logic_switch, agent_switch, loop or graph."""

    id: str
    kind: str
    label: str
    agent_ref: str | None = None
    instructions: str | None = None
    prompt_template: str | None = None
    forward: str | None = None
    ref: str | None = None
    implementation: str | None = None
    max_iterations: int | None = None
    terminate_condition_prompt: str | None = None
    terminate_condition_expr: str | None = None
    pull_keys: dict[str, str] | None = None
    push_keys: dict[str, str] | None = None
    attributes: dict[str, Any] | None = None
    sub_graph: AmlGraph | None = None
    role_name: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    """The arguments of an ``implementation``; of an agent of a design, its settings."""


@dataclass(frozen=True)
class AmlGraph:
    """Nodes and edges. The ends are ``ENTRY`` and ``EXIT``, of loops ``CONTROLLER`` and
    ``TERMINATE``.
    """

    id: str
    kind: str | None
    nodes: tuple[AmlNode, ...]
    edges: tuple[AmlEdge, ...]
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class AmlDocument:
    """A document, and the definitions of its agents."""

    id: str
    version: str
    root_graph: AmlGraph
    agent_definitions: dict[str, dict[str, str]]


def validate_aml_document(document: AmlDocument) -> None:
    """Check a document. Raises: AmlError: all that is wrong with it."""
    problems = list[str]()
    _check(document.root_graph, "the root graph", problems, is_loop=False)
    if problems:
        raise AmlError("\n".join(f"AML: {problem}" for problem in problems))


def _check(graph: AmlGraph, where: str, problems: list[str], *, is_loop: bool) -> None:
    known = {node.id: node for node in graph.nodes}
    first, last = ("CONTROLLER", "CONTROLLER") if is_loop else ("ENTRY", "EXIT")
    ends = {first, last, *(["TERMINATE"] if is_loop else [])}
    for node in graph.nodes:
        if node.sub_graph is not None and (node.sub_graph.nodes or node.kind == "loop"):
            inner = f"{where}, {node.kind} {node.id}"
            _check(node.sub_graph, inner, problems, is_loop=node.kind == "loop")
    if len(known) < len(graph.nodes):
        problems.append(f"{where}: two nodes have one id. Give each its own.")
    if not known:
        problems.append(f"{where}: found no nodes, expected one or more.")
        return
    for edge in graph.edges:
        for name in (edge.source, edge.target):
            if name not in known and name not in ends:
                problems.append(
                    f'{where}: an edge leads from "{edge.source}" to "{edge.target}", and there is '
                    f'no "{name}"; there are {", ".join([*known, *sorted(ends)])}.'
                )
        at = known.get(edge.source)
        if at is not None and at.kind.endswith("_switch") and not (edge.condition or "").strip():
            problems.append(
                f'{where}: the edge from the switch "{edge.source}" to "{edge.target}" has no '
                "condition. Write if= or match=."
            )
    if not any(edge.source == first for edge in graph.edges):
        problems.append(f"{where}: no edge begins at {first.lower()}. Add one.")
    if not any(edge.target == last for edge in graph.edges):
        problems.append(f"{where}: no edge leads to {last.lower()}. Add one.")
