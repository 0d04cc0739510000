"""Slots where tokens wait for one another, counts, and the work that is due when a count reaches
zero.

The counting half of a ``Machine``, which has the other: what firings come to. A port counts its
undecided edges and decides at zero: its node is due, or it is not. A unit counts the reasons why it
might still fire; at zero it is closed, and its edges with it, which may decide further ports.
Nothing is ever scanned, nothing recurses, and no state is looked into.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Generic, TypeVar

from axil.errors import LimitReached
from axil.kernel.joins import GATE
from axil.kernel.plan import Plan, PlanEdge, Port
from axil.kernel.state import State
from axil.kernel.tokens import Activation, Frame, Ordinal, Token, next_ordinal, path_of

T = TypeVar("T")
Due = tuple[int, Ordinal, tuple[Token, ...]]
"""A firing that is due: the node's position, which of its firings it is, and its tokens."""


class Queue(Generic[T]):
    """First come, first served: two lists, which are small where few wait."""

    __slots__ = ("behind", "front")

    def __init__(self) -> None:
        self.front: list[T] = []
        """The next one last; not empty as long as there are any."""
        self.behind: list[T] = []
        """What came later, the next one first."""

    def __len__(self) -> int:
        return len(self.front) + len(self.behind)

    def put(self, item: T) -> None:
        """Put ``item`` behind all others."""
        (self.behind if self.front else self.front).append(item)

    def take(self) -> T:
        """Return the next one, which waits no more."""
        item = self.front.pop()
        if not self.front and self.behind:
            self.behind.reverse()
            self.front, self.behind = self.behind, self.front
        return item

    def items(self) -> list[T]:
        """Return all that wait, in order."""
        return [*reversed(self.front), *self.behind]


class Barrier:
    """The levels of one round that are open, and what waits above them."""

    __slots__ = ("_at", "_could_leave", "_full", "_levels", "held")

    def __init__(self, levels: Sequence[tuple[int, int]]) -> None:
        """``levels``: ``Plan.barriers``."""
        self._levels = levels
        self._full = [nodes for _, nodes in levels]
        self._could_leave = self._full.copy()
        self._at = 0
        self.held: list[tuple[int, *Due]] = []
        """By level, node and ordinal: a heap."""

    def restart(self) -> None:
        """Begin another round, with empty slots."""
        self._could_leave = self._full.copy()
        self._at = 0

    def holds(self, level: int) -> bool:
        """Return whether what is due on ``level`` has to wait."""
        return self._at < len(self._levels) and level > self._levels[self._at][0]

    def hold(self, level: int, due: Due) -> None:
        """Let it wait."""
        heapq.heappush(self.held, (level, *due))

    def lift(self, level: int, has_left: bool) -> list[Due]:
        """Decide a node on ``level`` that could leave; return what need not wait any more."""
        self._could_leave[bisect_left(self._levels, (level,))] -= 1
        free: list[Due] = []
        while self._at < len(self._levels) and not has_left and not self._could_leave[self._at]:
            self._at += 1
            while self.held and not self.holds(self.held[0][0]):
                _, node, ordinal, tokens = heapq.heappop(self.held)
                free.append((node, ordinal, tokens))
        return free


class Turns:
    """Firings of the nodes of flat cycles in one frame: how many, and those held for their wave.

    A node whose limit is an exit fires in waves: its firings are held until nothing else of its
    cycle is at work or can still come from outside. Then they happen in the order of ordinals, and
    the tokens of those beyond the limit end there. So which firings are cut off does not depend on
    what was fast.
    """

    __slots__ = ("_counts", "_frame", "_held", "_plan")

    def __init__(self, plan: Plan, frame: Frame) -> None:
        self._plan, self._frame = plan, frame
        self._counts: dict[int, int] = {}
        self._held: dict[int, list[Due]] = {}

    def hold(self, due: Due) -> bool:
        """Hold a firing, if its node fires in waves; return whether it is held."""
        limit = self._plan.turning.get(due[0])
        if limit is None or limit.rounds is None or limit.at_limit == "limited":
            return False
        self._held.setdefault(self._plan.unit_of[due[0]], []).append(due)
        return True

    def is_quiet(self, unit: int, opens: int) -> bool:
        """Return whether all reasons why a unit might still fire are held firings."""
        return len(self._held.get(unit, ())) == opens

    def wave(self, unit: int) -> tuple[list[Due], list[Due]]:
        """Take the held firings of a unit: those within their limits, and those beyond."""
        within: list[Due] = []
        beyond: list[Due] = []
        for due in sorted(self._held.pop(unit), key=lambda due: due[:2]):
            (within if self._count(due[0]) else beyond).append(due)
        return within, beyond

    def check(self, node: int) -> None:
        """Count a firing of a flat cycle whose limit ends the run. Raises: LimitReached (AX411)."""
        limit = self._plan.turning.get(node)
        if limit is None or limit.at_limit != "limited" or self._count(node):
            return
        name = self._plan.nodes[node].name
        raise LimitReached(
            f'"{name}", in a cycle of nodes that fire for each token, fired {limit.rounds} '
            "times, which is its limit.",
            id="AX411",
            where=f'node "{path_of(self._frame, name)}"',
            hint="Raise the cycle's limit, or declare the limit an exit.",
        )

    def _count(self, node: int) -> bool:
        """Count a firing; return whether it is within the limit of its node."""
        count = self._counts[node] = self._counts.get(node, 0) + 1
        rounds = self._plan.turning[node].rounds
        return rounds is None or count <= rounds

    @property
    def held(self) -> list[Due]:
        """The firings that are held, in no order."""
        return [due for several in self._held.values() for due in several]


class Arrivals:
    """The trigger edges of an early join's port: which have a token, and how many are undecided."""

    __slots__ = ("edges", "undecided")

    def __init__(self, undecided: int) -> None:
        self.edges: set[int] = set()
        self.undecided = undecided

    def arrive(self, arc: PlanEdge) -> None:
        """Note a token."""
        if arc.id not in self.edges:
            self.edges.add(arc.id)
            if not arc.late:
                self.undecided -= 1

    def close(self, arc: PlanEdge) -> bool:
        """Note that no more tokens come on an edge; return whether it is dead."""
        if arc.id in self.edges:
            return False
        self.undecided -= 1
        return True


Took = Callable[[Activation], "frozenset[str] | None"]
_BY_EDGE = itemgetter(Token._fields.index("edge"), Token._fields.index("ordinal"))


class Ports:
    """The slots and counts of one scope, running once."""

    __slots__ = (
        "_alive", "_arrivals", "_barrier", "_ended", "_left", "_opens", "_slots", "_todo",
        "_turns", "_waits", "broken", "due", "fired", "frame", "plan", "skips", "took", "unneeded",
    )  # fmt: skip

    def __init__(self, plan: Plan, frame: Frame, took: Took | None) -> None:
        self.plan, self.frame = plan, frame
        self.due: Queue[Due] = Queue()
        """What is due."""
        self.skips: list[int] = []
        """Nodes that will not fire, since this was last emptied."""
        self.fired = bytearray(len(plan.nodes))
        """Per node: whether it has fired."""
        self._waits = list(plan.waits)
        self._opens = list(plan.opens)
        self._slots: dict[int, list[Token]] = {}
        # tokens with a state that wait in slots, tasks due and tasks running: the paths that are
        # alive
        self._alive: int = 0
        # (node, ordinal, edge, state) of ended paths
        self._ended: list[tuple[int, Ordinal, int, State]] = []
        self._arrivals: dict[int, Arrivals] = {}  # at the ports of early joins
        self.took = took
        """Which edges a recorded firing of a node with an early join took; None: none is known."""
        self.broken: dict[int, Exception] = {}
        """What joins raised, by node."""
        self.unneeded: set[int] = set()
        """Nodes that an early join fired without, whose firings are cancelled."""
        self._todo: list[int] = []  # units found closed, whose out-edges are still to be killed
        self._left = False
        self._barrier = Barrier(plan.barriers) if plan.barriers else None
        self._turns = Turns(plan, frame) if plan.turning else None

    def _deliver(self, arc: PlanEdge, token: Token) -> None:
        index = arc.port
        if token.state is not None:
            self._alive += 1
        port = self.plan.ports[index]
        if port.is_usual:
            if index in self._slots:
                self._slots[index].append(token)
            else:
                self._slots[index] = [token]
        elif port.join.per_token and arc.trigger and not self._waits[index]:
            self._fire_each(index, token)
        elif port.join.early and self._waits[index] < 0:  # its node fired without this token
            self._end_path(token)
        else:
            self._slots.setdefault(index, []).append(token)
            if port.join.early and arc.trigger:
                self._early(index).arrive(arc)
                self._ask(index)

    def _fire_each(self, index: int, token: Token) -> None:
        port = self.plan.ports[index]
        edges = self.plan.graph.edges
        data = tuple(t for t in self._slots.get(index, ()) if not edges[t.edge].trigger)
        self._opens[self.plan.nodes[port.node].unit] += 1
        ordinal = next_ordinal(self.plan.positions[token.edge], token.ordinal)
        due = port.node, ordinal, tuple(sorted((*data, token), key=self._place))
        if self._turns is None or not self._turns.hold(due):
            self._due(*due)

    def _place(self, token: Token) -> tuple[bool, int, Ordinal]:
        """Return the place of a token at a join; one that waited since an earlier round is
        first.
        """
        return token.state is not None, self.plan.rank(token.edge), token.ordinal

    def _close(self, arc: PlanEdge) -> None:
        """No more tokens will come on ``arc``."""
        index = arc.port
        port = self.plan.ports[index]
        if not port.is_usual and arc.trigger:
            if port.join.per_token:
                self._drop(self.plan.nodes[port.node].unit)
                return
            if port.join.early:
                if self._waits[index] >= 0 and self._early(index).close(arc):
                    self._ask(index)
                return
        self._waits[index] -= 1
        if not self._waits[index]:
            self._decide(index)

    def _drop(self, unit: int) -> None:
        self._opens[unit] -= 1
        if not self._opens[unit]:
            self._todo.append(unit)
        elif self._turns is not None and self._turns.is_quiet(unit, self._opens[unit]):
            self._begin_wave(unit)

    def _begin_wave(self, unit: int) -> None:
        """Let the held firings of a flat cycle happen; end the tokens of those beyond the limit."""
        assert self._turns is not None
        within, beyond = self._turns.wave(unit)
        for due in within:
            self._due(*due)
        for _, _, tokens in beyond:
            for token in tokens:
                self._end_path(token)
            self._drop(unit)

    def _decide(self, index: int) -> None:
        """Decide whether a node is due, once all edges of its port are decided."""
        port = self.plan.ports[index]
        tokens = self._slots.get(index)
        if port.join.early:
            self._ask(index)
            return
        if port.join.per_token:  # it was waiting for data only
            edges = self.plan.graph.edges
            for token in [t for t in tokens or () if edges[t.edge].trigger]:
                self._fire_each(index, token)
            self._slots[index] = [t for t in tokens or () if not edges[t.edge].trigger]
            self._drop(self.plan.nodes[port.node].unit)
            return
        if tokens:
            if len(tokens) == 1 and port.needs == 1 and port.trigger_only and port.is_usual:
                del self._slots[index]
                self._due(port.node, port.ordinal, (tokens[0],))
                return
            if port.trigger_only and port.join is GATE:
                del self._slots[index]
                tokens.sort(key=self._place if self.plan.graph.payloads.by_level else _BY_EDGE)
                self._alive += 1 - len(tokens)
                self._due(port.node, port.ordinal, tuple(tokens))
                return
            edges = self.plan.graph.edges
            live = len({t.edge for t in tokens if edges[t.edge].trigger})
            if live and self._fires(port, live, port.needs - live):
                del self._slots[index]
                self._fire(port, tokens)
                return
            for token in tokens:  # their paths end here; data among them may wait for another round
                self._end_path(token)
            self._slots[index] = [
                Token(t.edge, t.payload, None, t.ordinal)
                for t in tokens
                if not edges[t.edge].trigger
            ]
        self._drop(self.plan.nodes[port.node].unit)

    def _fires(self, port: Port, live: int, dead: int) -> bool | None:
        """Ask a join. If it raises, its node is due, and fails when it is taken."""
        try:
            return port.join.fires(live, dead, port.needs)
        except Exception as error:  # noqa: BLE001
            self.broken[port.node] = error
            return True

    def _fire(self, port: Port, tokens: list[Token]) -> None:
        """Let the node of a port fire with ``tokens``, whose paths meet."""
        tokens.sort(key=self._place)
        self._alive += 1 - sum(1 for t in tokens if t.state is not None)
        self._due(port.node, port.ordinal, tuple(tokens))

    def _early(self, index: int) -> Arrivals:
        """Return what has arrived at the port of an early join."""
        found = self._arrivals.get(index)
        if found is None:
            found = self._arrivals[index] = Arrivals(self.plan.ports[index].undecided)
        return found

    def _ask(self, index: int) -> None:
        """Ask an early join whether its node fires, and let it fire, or never.

        A node that fired in this activation before fires with the same edges.
        """
        port = self.plan.ports[index]
        if self._waits[index]:  # data edges are not decided
            return
        tokens = self._slots.get(index, [])
        edges, arrived = self.plan.graph.edges, self._early(index)
        live = len(arrived.edges)
        node = self.plan.nodes[port.node]
        took = self.took and self.took(Activation(self.frame, node.name, port.ordinal))
        if took and took <= {edges[t.edge].name for t in tokens}:
            answer: bool | None = True
        elif took and arrived.undecided:
            return
        else:
            took = None
            answer = (
                self._fires(port, live, port.needs - live - arrived.undecided) if live else None
            )
        if answer is None and arrived.undecided:
            return
        self._waits[index] = -1
        mine = [t for t in tokens if answer and (took is None or edges[t.edge].name in took)]
        for token in tokens:
            if token not in mine:
                self._end_path(token)
        if not mine:
            data = [t for t in tokens if not edges[t.edge].trigger]
            self._slots[index] = [Token(t.edge, t.payload, None, t.ordinal) for t in data]
            self._drop(node.unit)
            return
        self._slots.pop(index, None)
        self._fire(port, mine)
        self.unneeded.update(port.feeders)

    def _end_path(self, token: Token) -> None:
        if token.state is not None:
            self._alive -= 1
            self._ended.append(
                (self.plan.owner(token.edge), token.ordinal, token.edge, token.state)
            )

    def _due(self, node: int, ordinal: Ordinal, tokens: tuple[Token, ...]) -> None:
        if self._barrier is not None and self._barrier.holds(level := self.plan.nodes[node].level):
            self._barrier.hold(level, (node, ordinal, tokens))
        else:
            due = self.due
            (due.behind if due.front else due.front).append((node, ordinal, tokens))

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
        """Note what a closed unit skipped, and lift the barrier it may have held up."""
        self._opens[unit] = -1
        for index in self.plan.units[unit]:
            if not self.fired[index]:
                self.skips.append(index)
            node = self.plan.nodes[index]
            if node.leaves and self._barrier is not None:
                for due in self._barrier.lift(node.level, self._left):
                    self.due.put(due)

    def _die(self) -> None:
        """End a machine with no path alive: what has not fired is skipped, and no edge is asked."""
        opens, fired = self._opens, self.fired
        if 0 in fired:
            for node, unit in enumerate(self.plan.unit_of):
                if not fired[node] and opens[unit] >= 0:
                    self.skips.append(node)
        self._opens = [-1] * len(opens)
