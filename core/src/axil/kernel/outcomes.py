"""The results of firings and frames as plain data: what a machine receives and returns.

Tuples, because several are made for every firing and every round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from axil.errors import RouteError
from axil.kernel.plan import Filter, Plan, PlanEdge, PlanNode, ResolvedGraph
from axil.kernel.state import Delta, State
from axil.kernel.tokens import Carried, Ordinal, Out, Token, new_tuple
from axil.kernel.values import MAX_WAITING, check_size


class Send(NamedTuple):
    """The token that one edge carries from one firing; ``values`` replace the state, None keeps
    it.
    """

    arc: PlanEdge
    payload: Any
    values: Mapping[str, Any] | None


class Transition(NamedTuple):
    """An outcome, worked out and not yet in effect."""

    delta: Delta
    state: State
    sends: Sequence[Send]


class Exit(NamedTuple):
    """A token that left the scope, or came back to its start."""

    edge: int
    payload: Any
    values: Mapping[str, Any] | None
    ordinal: Ordinal
    trigger: bool


class FrameResult(NamedTuple):
    """The result of a scope once nothing is due any more."""

    state: State
    """All ended paths, joined in plan order; history folded."""
    changes: Delta
    """The same as one change per written field (empty for a frame without a parent)."""
    exits: tuple[Exit, ...]
    returns: tuple[Exit, ...]
    data: tuple[Token, ...]
    """Data tokens that no firing took: late, or put before a node that did not fire."""
    fired: bool
    """True if anything ran."""


def sends_of(
    plan: Plan,
    arcs: Sequence[PlanEdge],
    output: Any,
    state: State,
    filters: Mapping[int, Filter] = MappingProxyType({}),
) -> list[Send]:
    """Return the tokens that edges carry of an output, in order; a dead one carries none.

    Args:
        state: after the firing.
        filters: those that routers put on edges, by edge id.
    Raises: whatever an edge's function or a filter raises; StateError; InvalidValue (AX639): they
    make too much of it together.
    """
    sends: list[Send] = []
    used, seen = 0, set[int]()
    for arc in arcs:
        try:
            answer = output if arc.carry is None else arc.carry(output, state)
            if answer is not output and answer is not None and len(arcs) > 1:
                used += check_size(answer, MAX_WAITING, used, seen)
            send = sent(arc, answer, state, filters.get(arc.id))
        except Exception as error:
            blame(plan, arc, error)
            raise
        if send is not None:
            sends.append(send)
    return sends


def sent(arc: PlanEdge, answer: Any, state: State, keep: Filter | None = None) -> Send | None:
    """Return the token of an edge that has answered; None: it is dead."""
    values = None
    if answer is None:
        return None
    if type(answer) is Carried:
        answer, values = answer.payload, answer.values
    if keep is not None:
        values = keep(state)
    if values is not None:
        values = state.schema.check(values, whole=True)
    return new_tuple(Send, (arc, answer, values))


def blame(plan: Plan, arc: PlanEdge, error: Exception) -> None:
    """Say on which edge it happened."""
    name = plan.graph.edges[arc.id].name
    if name not in str(error):
        error.add_note(f"on the edge {name}")


def routed(plan: Plan, node: PlanNode, out: Out, state: State) -> list[Send]:
    """Return the tokens of the edges that a node's routers, or the outcome itself, choose.

    Raises: as ``sends_of``; whatever a router raises; RouteError.
    """
    output, _, to = out
    if to is not None and (strange := sorted(to - {arc.target_name for arc in node.out})):
        raise RouteError(f"sends to {strange}, to which it has no edge.")
    taken = [router(output, state) for router in node.routers if to != frozenset()]
    arcs: list[PlanEdge] = []
    filters: dict[int, Filter] = {}
    for arc in node.out:
        if to is not None and arc.target_name not in to:
            continue
        if arc.router >= 0:
            if arc.target_name not in taken[arc.router]:
                continue
            if (keep := taken[arc.router][arc.target_name]) is not None:
                filters[arc.id] = keep
        arcs.append(arc)
    return sends_of(plan, arcs, output, state, filters)


def output_of(graph: ResolvedGraph, ended: FrameResult) -> Any:
    """Return what a graph gives, as its payload kind says; None: nothing left it."""
    left: list[tuple[str, Any]] = []
    for exit in ended.exits:
        source = graph.edges[exit.edge].source
        left.append((graph.vertices[source].name if source >= 0 else "", exit.payload))
    return graph.payloads.output(left, graph.end, ended.fired)
