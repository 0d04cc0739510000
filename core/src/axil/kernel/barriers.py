"""Barriers, which hold back the firings of a machine: the levels of a round, the waves of a flat
cycle, the edges of an early join.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence

from axil.errors import LimitReached
from axil.kernel.plan import Plan, PlanEdge
from axil.kernel.tokens import Frame, Ordinal, Token, path_of

Due = tuple[int, Ordinal, tuple[Token, ...]]
"""A firing that is due: its node's position, its ordinal, its tokens."""


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
        """Begin another round."""
        self._could_leave = self._full.copy()
        self._at = 0

    def holds(self, level: int) -> bool:
        """Return whether what is due on ``level`` has to wait."""
        return self._at < len(self._levels) and level > self._levels[self._at][0]

    def hold(self, level: int, due: Due) -> None:
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


class FlatFirings:
    """Firings of the nodes of flat cycles in one frame, counted and held for their wave.

    A node whose limit is an exit fires in waves: its firings are held until nothing else of its
    cycle is at work or can still come. Then they happen in the order of ordinals, and the tokens
    beyond the limit end there. So which firings are cut off does not depend on what was fast.
    """

    __slots__ = ("_counts", "_frame", "_held", "_plan")

    def __init__(self, plan: Plan, frame: Frame) -> None:
        self._plan, self._frame = plan, frame
        self._counts: dict[int, int] = {}
        self._held: dict[int, list[Due]] = {}

    def hold(self, due: Due) -> bool:
        """Hold a firing, if its node fires in waves; return whether it is held."""
        limit = self._plan.flat_limits.get(due[0])
        if limit is None or limit.rounds is None or limit.at_limit == "limited":
            return False
        self._held.setdefault(self._plan.nodes[due[0]].unit, []).append(due)
        return True

    def is_quiet(self, unit: int, opens: int) -> bool:
        """Return whether a unit might still fire only for held firings."""
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
        limit = self._plan.flat_limits.get(node)
        if limit is None or limit.at_limit != "limited" or self._count(node):
            return
        name = self._plan.nodes[node].name
        raise LimitReached(
            f'"{name}", in a cycle of nodes that fire for each token, fired {limit.rounds} '
            "times, which is its limit.",
            id="AX411",
            where=f'node "{path_of(self._frame, name)}"',
            hint="Raise the cycle's limit, or say at_limit: exit in cycle_limits.",
        )

    def _count(self, node: int) -> bool:
        count = self._counts[node] = self._counts.get(node, 0) + 1
        rounds = self._plan.flat_limits[node].rounds
        return rounds is None or count <= rounds

    @property
    def held(self) -> list[Due]:
        """The firings that are held, in no order."""
        return [due for several in self._held.values() for due in several]


class Arrivals:
    """The trigger edges at an early join's port: which have a token, how many are undecided."""

    __slots__ = ("edges", "undecided")

    def __init__(self, undecided: int) -> None:
        self.edges: set[int] = set()
        self.undecided = undecided

    def arrive(self, arc: PlanEdge) -> None:
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
