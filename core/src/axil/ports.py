"""Where tokens wait for one another: slots, counts, and what is due when a count comes to zero.

The counting half of a ``Machine``, which has the other: what firings come to. A port counts its undecided edges and decides at
zero: its node is due, or it is not. A unit counts the reasons why it might still fire; at zero it is closed, and its edges with
it, which may decide further ports. Nothing is ever scanned, nothing recurses, and no state is looked into.
"""

from __future__ import annotations

from operator import itemgetter

from axil.bounds import Barrier, Due
from axil.plan import Arc, Plan
from axil.state import State
from axil.tokens import Ordinal, Token, next_ordinal

_BY_EDGE = itemgetter(Token._fields.index("edge"), Token._fields.index("ordinal"))


class Ports:
    """The slots and counts of one scope, running once."""

    __slots__ = (
        "_alive", "_barrier", "_behind", "_ended", "_is_shared", "_left", "_opens", "_slots", "_todo", "_waits",
        "fired", "plan", "ready", "skips",
    )  # fmt: skip

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.ready: list[Due] = []
        """What is due, the next one last; not empty as long as anything is."""
        self._behind: list[Due] = []  # what came after all that is in `ready`, the next one first
        self.skips: list[int] = []
        """Nodes that will not fire, since this was last emptied."""
        self.fired = bytearray(len(plan.nodes))
        """Per node: whether it has fired."""
        self._is_shared = plan.graph.spec.flow == "shared"
        self._waits = list(plan.waits)
        self._opens = list(plan.opens)
        self._slots: dict[int, list[Token]] = {}
        self._alive = 0  # tokens with a state that wait in slots, tasks due and tasks running: the paths that are alive
        self._ended: list[tuple[int, Ordinal, int, State]] = []  # (node, ordinal, edge, state) of ended paths
        self._todo: list[int] = []  # units found closed, whose out-edges are still to be killed
        self._left = False
        self._barrier = Barrier(plan.barriers) if plan.barriers else None

    def _pop(self) -> Due:
        due = self.ready.pop()
        if not self.ready and self._behind:
            self._behind.reverse()
            self.ready, self._behind = self._behind, self.ready
        return due

    def _deliver(self, arc: Arc, token: Token) -> None:
        index = arc.port
        if token.state is not None:
            self._alive += 1
        port = self.plan.ports[index]
        if port.join == "each" and arc.trigger and not self._waits[index]:
            self._fire_each(index, token)
        elif index in self._slots:
            self._slots[index].append(token)
        else:
            self._slots[index] = [token]

    def _fire_each(self, index: int, token: Token) -> None:
        port = self.plan.ports[index]
        edges = self.plan.graph.edges
        data = tuple(t for t in self._slots.get(index, ()) if not edges[t.edge].trigger)
        self._opens[self.plan.nodes[port.node].unit] += 1
        self._due(port.node, next_ordinal(self.plan.positions[token.edge], token.ordinal), tuple(sorted((*data, token), key=self._place)))

    def _place(self, token: Token) -> tuple[bool, int, Ordinal]:
        """The place of a token at a join. What waited since an earlier round (and so has no state) was there first."""
        return token.state is not None, self.plan.rank(token.edge), token.ordinal

    def _close(self, arc: Arc) -> None:
        """No more tokens will come on ``arc``."""
        index = arc.port
        port = self.plan.ports[index]
        if port.join == "each" and arc.trigger:
            self._drop(self.plan.nodes[port.node].unit)
            return
        self._waits[index] -= 1
        if not self._waits[index]:
            self._decide(index)

    def _drop(self, unit: int) -> None:
        self._opens[unit] -= 1
        if not self._opens[unit]:
            self._todo.append(unit)

    def _decide(self, index: int) -> None:
        """All edges of a port are decided: its node is due, or it is not."""
        port = self.plan.ports[index]
        tokens = self._slots.get(index)
        if port.join == "each":  # it was waiting for data only
            edges = self.plan.graph.edges
            for token in [t for t in tokens or () if edges[t.edge].trigger]:
                self._fire_each(index, token)
            self._slots[index] = [t for t in tokens or () if not edges[t.edge].trigger]
            self._drop(self.plan.nodes[port.node].unit)
            return
        if tokens:
            if len(tokens) == 1 and port.needs == 1 and port.trigger_only:
                del self._slots[index]
                self._due(port.node, port.ordinal, (tokens[0],))
                return
            if port.trigger_only and port.join == "gate" and not self._is_shared:
                del self._slots[index]
                tokens.sort(key=_BY_EDGE if self.plan.ranks is None else self._place)
                self._alive += 1 - len(tokens)
                self._due(port.node, port.ordinal, tuple(tokens))
                return
            edges = self.plan.graph.edges
            live = len({t.edge for t in tokens if edges[t.edge].trigger})
            if live and (port.join == "gate" or live == port.needs):
                del self._slots[index]
                tokens.sort(key=self._place)
                self._alive += 1 - sum(1 for t in tokens if t.state is not None)
                self._due(port.node, port.ordinal, tuple(tokens))
                return
            for token in tokens:  # their paths end here; data among them may wait for another round
                self._end_path(token)
            self._slots[index] = [Token(t.edge, t.payload, None, t.ordinal) for t in tokens if not edges[t.edge].trigger]
        self._drop(self.plan.nodes[port.node].unit)

    def _end_path(self, token: Token) -> None:
        if token.state is not None:
            self._alive -= 1
            self._ended.append((self.plan.owners.get(token.edge, -1), token.ordinal, token.edge, token.state))

    def _due(self, node: int, ordinal: Ordinal, tokens: tuple[Token, ...]) -> None:
        if self._barrier is not None and self._barrier.holds(level := self.plan.nodes[node].level):
            self._barrier.hold(level, (node, ordinal, tokens))
        else:
            (self._behind if self.ready else self.ready).append((node, ordinal, tokens))

    def _put(self, due: Due) -> None:
        (self._behind if self.ready else self.ready).append(due)

    def _close_sources(self) -> None:
        """Begin to close what nothing leads to and nothing has opened."""
        opens = self._opens
        for unit in self.plan.sources:
            if not opens[unit]:
                self._todo.append(unit)
        if self._todo:
            self._settle()

    def _settle(self) -> None:
        """Kill the out-edges of closed units, and those of what that closes, without recursion."""
        todo = self._todo
        nodes = self.plan.nodes
        while todo:
            unit = todo.pop()
            for index in self.plan.units[unit]:
                for arc in nodes[index].out:
                    if arc.port >= 0 and not arc.late and not arc.inner:
                        self._close(arc)
            self._closed(unit)

    def _closed(self, unit: int) -> None:
        """A unit will never fire again: note what it skipped, and lift the barrier it may have held up."""
        self._opens[unit] = -1
        for index in self.plan.units[unit]:
            if not self.fired[index]:
                self.skips.append(index)
            node = self.plan.nodes[index]
            if node.leaves and self._barrier is not None:
                for due in self._barrier.lift(node.level, self._left):
                    self._put(due)

    def _die(self) -> None:
        """No path is alive: nothing fires any more, so what has not fired is skipped, and no edge need be asked."""
        opens, fired = self._opens, self.fired
        if 0 in fired:
            for node, unit in enumerate(self.plan.unit_of):
                if not fired[node] and opens[unit] >= 0:
                    self.skips.append(node)
        self._opens = [-1] * len(opens)
