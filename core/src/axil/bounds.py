"""Bounds of the run at work: the time that its ``limits.seconds`` leave, and what its edges make.

What computes on the event loop cannot be interrupted, and holds up the task that ends the run. So
work of which a file can ask for any amount is cut in steps, and looks at the time before each:
edges, searches with patterns, steps of expressions and of schemas, guards.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from axil.errors import LimitReached


class RunBounds:
    """The bounds of one run."""

    __slots__ = ("_ends", "_now", "_reached", "made")

    def __init__(
        self,
        ends: float | None,
        now: Callable[[], float],
        reached: Callable[[], LimitReached],
        made: Callable[[int], None],
    ) -> None:
        """Args:
        ends: the time at which its seconds are over, as ``now`` gives it; None: they are not
            limited.
        reached: stops the run, and returns why.
        made: counts the size of what an edge made.
        """
        self._ends, self._now, self._reached, self.made = ends, now, reached, made

    def left(self, most: float) -> float:
        """Return the seconds that a step may take. Raises: LimitReached (AX415): none are left."""
        if self._ends is None:
            return most
        if (left := self._ends - self._now()) <= 0:
            raise self._reached()
        return min(most, left)


BOUNDS: Final[ContextVar[RunBounds | None]] = ContextVar("bounds", default=None)
"""The bounds of the run at work; None: it is Python code's, and its time is not limited."""


def check_time() -> None:
    """Raise where the time of the run at work is over: to be called between two steps of work
    that does not wait.

    Raises: LimitReached (AX415).
    """
    if (bounds := BOUNDS.get()) is not None:
        bounds.left(0.0)


def seconds_left(most: float) -> float:
    """Return how long a step of work may take: ``most``, or what the run at work has left.

    >>> seconds_left(1.5)
    1.5

    Raises: LimitReached (AX415): nothing is left.
    """
    return most if (bounds := BOUNDS.get()) is None else bounds.left(most)
