"""What a firing begins with where paths meet, and what goes on where an edge replaces the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from axil.errors import BodyError
from axil.plan import Merge, Plan
from axil.state import History, State, join, merged
from axil.tokens import Token
from axil.views import plain, values_of


def state_at(plan: Plan, node: int, tokens: Sequence[Token], root: State, history: History) -> State:
    """The state in which the node at ``node`` fires with ``tokens``: their states, joined; ``root`` where they have none.

    Raises: ConcurrentReset, SchemaMismatch, or what the node's own merge raises.
    """
    vertex = plan.nodes[node].vertex
    if not vertex.merge and tokens and (state := tokens[0].state) is not None:  # never asked for its truth: that would count its fields
        for token in tokens:
            if token.state is not state:
                break
        else:  # the common case: nobody wrote since the paths parted
            return state
    states = [token.state for token in tokens if token.state is not None]
    if not states:
        return root
    merge = vertex.merge.get(plan.graph.edges[tokens[-1].edge].group) if vertex.merge else None
    if merge is not None:
        return merged(states, root.schema.check(_merged_values(merge, states), whole=True), history)
    return states[0] if len(states) == 1 else join(states, history)


def replaced(state: State, values: Mapping[str, Any], history: History, alone: bool) -> State:
    """``state`` with exactly ``values`` (checked); ``alone``: its path is the only one alive, so nobody will ask for its history."""
    if not alone:
        return state.replace(values, history)
    new = state.replace(values)
    history.note_replace(state, new)
    return new


def _merged_values(merge: Merge, states: Sequence[State]) -> Mapping[str, Any]:
    """What a custom merge makes of the states, each seen as its schema's kind. Raises: BodyError: it gives no values."""
    seen: list[Any] = [state.schema.view(state) if state.schema.view else state for state in states]
    given = merge(seen)
    values = values_of(given)
    if values is None:
        raise BodyError(f"a merge gave {type(given).__name__}; expected the values of the merged state.")
    return plain(values)
