"""``Turns``: the node of a conversation that keeps its transcript and gives turns.

Theory of operation
-------------------
An edge leads from ``turns`` to each member and one back from it. In a round ``turns`` fires first:
it writes down what came back, asks the order who speaks next, and sends each of them what it hears.
The edges to the others are dead in that round. At the end its edge to the exit carries the answer.

The transcript is in that node's own part of the state. A member hands over by writing ``next``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from axil import CycleLimit, EdgeSpec, GraphSpec, NodeSpec, Out, State
from axil.plugin import ENTRY, EXIT, CompileOptions, Message, SubgraphSpec, as_messages, isolate
from axil_teams.members import nodes_of
from axil_teams.orders import End, Meeting, Order
from axil_teams.transcript import Gives, Hears, entry, heard, named, speaker

NEXT = "next"
"""The field of a team's state that names who is to speak next."""
TURNS = "turns"
_HEARD: dict[Hears, str] = {"all": "all", "new": "what is new", "last": "the last turn"}


class _ToMember:
    """An edge to a member: what it has for this target."""

    def __init__(self, target: str, what: str) -> None:
        self.target, self.__name__ = target, what

    def __call__(self, payload: Mapping[str, Any]) -> Any:
        return payload[self.target]


class _FromMember:
    """An edge from a member: what a member said, under its name."""

    def __init__(self, member: str) -> None:
        self.member, self.__name__ = member, "its words"

    def __call__(self, payload: Any) -> Any:
        said = [entry(self.member, m["content"]) for m in as_messages(payload)]
        return said[0] if isinstance(payload, dict) and len(said) == 1 else said


class Turns:
    """The node that gives turns."""

    inline = True

    def __init__(self, order: Order, members: Sequence[str], *, hears: Hears, gives: Gives) -> None:
        self.order, self.members = order, tuple(members)
        self.hears: Hears = hears
        self.gives: Gives = gives
        self.__name__ = f"turns: {order}"

    def run(self, payloads: list[Any], state: Any, local: dict[str, Any]) -> Out:
        """Write down what was said, and give the next turn, or the answer."""
        came = [m for payload in payloads for m in as_messages(payload)]
        if "entries" not in local:
            local["entries"] = [entry("", m["content"]) for m in came]
            local["turns"] = 0
            last: list[Message] = []
            notes: dict[str, Any] = {}
        else:
            last = [entry(speaker(m), m["content"]) for m in came]
            local["turns"] = int(local["turns"]) + 1
            notes = cast("dict[str, Any]", isolate(local["notes"]))
            if not local["silent"]:
                local["entries"] = [*local["entries"], *last]
        meeting = Meeting(
            entries=local["entries"],
            last=last,
            turns=local["turns"],
            handoff=str(_field(state, NEXT) or ""),
            notes=notes,
        )
        turn = self.order.next(meeting)
        local["notes"] = notes
        delta = {NEXT: ""} if meeting.handoff else {}
        if isinstance(turn, End):
            return Out({EXIT: self._answer(turn, meeting)}, delta, frozenset({EXIT}))
        local["silent"] = turn.silent
        sent = {
            name: heard(meeting.entries, last, name, self.hears) if given is None else list(given)
            for name, given in turn.speakers.items()
        }
        return Out(sent, delta, frozenset(sent))

    def _answer(self, end: End, meeting: Meeting) -> list[Message]:
        if self.gives == "transcript":
            return [{**named(each), "ended": end.by} for each in meeting.entries]
        said = end.said or meeting.entries[-1:]
        return [{**each, "role": "assistant", "ended": end.by} for each in said]


def _field(state: Any, name: str) -> Any:
    return cast("State", state).get(name) if isinstance(state, Mapping) else None


def conversation(
    node: str,
    setting: CompileOptions,
    members: Mapping[str, object],
    order: Order,
    *,
    hears: Hears = "all",
    gives: Gives = "answer",
    handoffs: Mapping[str, Sequence[str]] | None = None,
) -> SubgraphSpec:
    """Return a conversation as a node's graph.

    Args:
        handoffs: for each member those that it may hand over to.
    """
    turns = NodeSpec(id=TURNS, body=Turns(order, list(members), hears=hears, gives=gives))
    edges = [EdgeSpec(source=ENTRY, target=TURNS)]
    for name in members:
        edges.append(EdgeSpec(source=TURNS, target=name, process=_ToMember(name, _HEARD[hears])))
        edges.append(EdgeSpec(source=name, target=TURNS, process=_FromMember(name)))
    edges.append(EdgeSpec(source=TURNS, target=EXIT, process=_ToMember(EXIT, gives)))
    spec = GraphSpec(
        id=node,
        nodes=(turns, *nodes_of(members, node, setting, handoffs or {})),
        edges=tuple(edges),
        payload="messages",
        attributes={NEXT: ""},
        end=(TURNS,),
        # the round after the last turn is the one in which `turns` ends it
        cycle_limits={TURNS: CycleLimit(rounds=order.most + 1)},
    )
    return SubgraphSpec(spec=spec, hidden=frozenset({NEXT}))
