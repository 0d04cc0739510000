"""What firings and frames come to: what a machine gives and takes, as plain data.

Tuples, because several are made for every firing and every round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from axil.errors import RouteError
from axil.kernel.plan import Plan, PlanEdge
from axil.kernel.state import Delta, State
from axil.kernel.tokens import Carried, Ordinal, Out, Token, new_tuple


class Send(NamedTuple):
    """What one edge carries from one firing; ``values`` replace the state, None keeps it."""

    arc: PlanEdge
    payload: Any
    values: Mapping[str, Any] | None


class Transition(NamedTuple):
    """An outcome, worked out and not yet in effect: what a journal records between ``prepare`` and
    ``commit``.
    """

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
    """What a scope leaves behind when nothing is due any more."""

    state: State
    """All ended paths, joined in plan order; history folded."""
    changes: Delta
    """The same as one change per written field (empty for a frame without a parent)."""
    exits: tuple[Exit, ...]
    returns: tuple[Exit, ...]
    data: tuple[Token, ...]
    """Data tokens that nobody took: late, or put before a node that did not fire."""
    fired: bool
    """Whether anything ran."""


def sends_of(plan: Plan, index: int, out: Out, state: State) -> list[Send]:
    """What the edges of a node carry of an outcome, in order; ``state``: after it.

    Raises: whatever an edge's function or a router raises; RouteError; StateError.
    """
    node = plan.nodes[index]
    output, _, to = out
    if to is not None and not to <= {arc.target_name for arc in node.out}:
        strange = sorted(to - {arc.target_name for arc in node.out})
        raise RouteError(f"sends to {strange}, where none of its edges leads.")
    sends: list[Send] = []
    if to is None and not node.routers:
        for arc in node.out:
            payload, values = output, None
            if arc.carry is not None:
                try:
                    payload = arc.carry(output, state)
                    if payload is None:
                        continue
                    if type(payload) is Carried:
                        payload, values = (
                            payload.payload,
                            state.schema.check(payload.values, whole=True),
                        )
                except Exception as error:
                    blame(plan, arc, error)
                    raise
            sends.append(new_tuple(Send, (arc, payload, values)))
        return sends
    taken = (
        [router(output, state) for router in node.routers]
        if node.routers and to != frozenset()
        else ()
    )
    for arc in node.out:
        if to is not None and arc.target_name not in to:
            continue
        if arc.router >= 0 and arc.target_name not in taken[arc.router]:
            continue
        payload, values = output, None
        try:
            if arc.carry is not None:
                payload = arc.carry(output, state)
                if payload is None:
                    continue
                if type(payload) is Carried:
                    payload, values = payload.payload, payload.values
            if arc.router >= 0 and (keep := taken[arc.router][arc.target_name]) is not None:
                values = keep(state)
            if values is not None:
                values = state.schema.check(values, whole=True)
        except Exception as error:
            blame(plan, arc, error)
            raise
        sends.append(new_tuple(Send, (arc, payload, values)))
    return sends


def blame(plan: Plan, arc: PlanEdge, error: Exception) -> None:
    """Say on which edge it happened."""
    name = plan.graph.edges[arc.id].name
    if name not in str(error):
        error.add_note(f"on the edge {name}")
