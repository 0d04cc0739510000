"""Findings about runs that would do nothing useful, before they begin and when they are over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from axil import ConfigError, EdgeSpec, GraphSpec, NodeSpec, Problem, Workflow
from axil.plugin import ENTRY, EXIT, Plan, PluginContract, Registry, UnknownComponent

if TYPE_CHECKING:
    from axil_journals import PlanScope

_MOST: Final = 5
"""The number of edges that are named."""


def check_input(workflow: Workflow, registry: Registry) -> None:
    """Check that no model is asked for a reply to nothing, where a workflow is given no input.

    Fields are checked when the run begins. Raises: ConfigError (AX120): a node that asks a model is
    given the input of the run.
    """
    spec = workflow.plan.graph.spec
    if spec.payload != "messages":
        return
    nodes = {node.id: node for node in spec.nodes}
    begin = [edge.target for edge in spec.edges if edge.source == ENTRY and edge.carry_data]
    for name in begin:
        node = nodes.get(name)
        if node is not None and _asks_a_model(node, registry):
            message = (
                f'the workflow begins with "{name}", which asks a model, and there is no input.'
            )
            hint = "Write --input TEXT; --input '' for an empty input."
            raise ConfigError(Problem("AX120", "--input", message, hint))


def _asks_a_model(node: NodeSpec, registry: Registry) -> bool:
    """Return whether the manifest of a node's type says that its settings name a model."""
    if node.use is None or ":" in node.use.type:
        return False
    try:
        component = registry.find("nodes", node.use.type)
    except (UnknownComponent, PluginContract):
        return False
    manifest = registry.manifest(component.distribution)
    described = manifest.find("nodes", component.name) if manifest is not None else None
    if described is None:
        return False
    from axil.plugin import references_of

    return any(each.kind == "models" for each in references_of(described))


def not_taken(plan: Plan, activations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the edges at which a run ended before its exit, with their conditions.

    Args:
        activations: the firings of the run, as data.
    """
    from axil_journals import walk_plan

    done = {each["path"] for each in activations if each["status"] == "done"}
    top = next(step.scope for step in walk_plan(plan))
    spec = plan.graph.spec
    found = [edge for edge in spec.edges if _is_end(edge, done, spec)]
    for edge in found[:_MOST]:
        yield _described(edge, top)
    if len(found) > _MOST:
        yield f"{len(found) - _MOST} more"


def _is_end(edge: EdgeSpec, done: set[Any], spec: GraphSpec) -> bool:
    if edge.source != ENTRY and edge.source not in done:
        return False
    if edge.target == EXIT:
        others = [each for each in spec.edges if each.source == edge.source]
        return edge.trigger or len(others) == 1
    return edge.trigger and edge.target not in done


def _described(edge: EdgeSpec, scope: PlanScope) -> str:
    from axil_journals import edge_label

    words = edge_label(scope, edge)
    place = f"  ({edge.place})" if edge.place is not None else ""
    return f"{edge.source} -> {edge.target}" + (f" [{words}]" if words else "") + place


__all__ = ["check_input", "not_taken"]
