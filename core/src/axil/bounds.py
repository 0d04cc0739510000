"""What bounds cycles: barriers hold back a round's nodes while one on a lower level could still leave; turns are counted."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence

from axil.errors import LimitReached
from axil.plan import Plan
from axil.tokens import Frame, Ordinal, Token, path_of

Due = tuple[int, Ordinal, tuple[Token, ...]]
"""A firing that is due: the node's position in the plan, which firing of the node it is, and its tokens."""


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
        """Another round, of which nothing is held yet."""
        self._could_leave = self._full.copy()
        self._at = 0

    def holds(self, level: int) -> bool:
        """Whether what is due on ``level`` has to wait."""
        return self._at < len(self._levels) and level > self._levels[self._at][0]

    def hold(self, level: int, due: Due) -> None:
        """Let it wait."""
        heapq.heappush(self.held, (level, *due))

    def lift(self, level: int, has_left: bool) -> list[Due]:
        """A node on ``level`` that could have left is decided; gives what need not wait any more. ``has_left``: the round is left."""
        self._could_leave[bisect_left(self._levels, (level,))] -= 1
        free: list[Due] = []
        while self._at < len(self._levels) and not has_left and not self._could_leave[self._at]:
            self._at += 1
            while self.held and not self.holds(self.held[0][0]):
                _, node, ordinal, tokens = heapq.heappop(self.held)
                free.append((node, ordinal, tokens))
        return free


class Turns:
    """How often the nodes of flat cycles have fired in one frame."""

    __slots__ = ("_counts", "_frame", "_plan")

    def __init__(self, plan: Plan, frame: Frame) -> None:
        self._plan, self._frame = plan, frame
        self._counts: dict[int, int] = {}

    def may_fire(self, node: int) -> bool:
        """Count a firing of ``node``, if it is in a flat cycle; False: the limit is reached, and is an exit.

        Raises: LimitReached (AX411): the limit ends the run.
        """
        limit = self._plan.turning.get(node)
        if limit is None:
            return True
        turns = self._counts[node] = self._counts.get(node, 0) + 1
        if limit.rounds is None or turns <= limit.rounds:
            return True
        if limit.at_limit != "limited":
            return False
        name = self._plan.nodes[node].name
        raise LimitReached(
            f'"{name}", in a cycle of nodes that fire for each token, fired {limit.rounds} times, which is its limit.',
            id="AX411",
            where=f'node "{path_of(self._frame, name)}"',
            hint="Raise the cycle's limit, or declare the limit an exit.",
        )
