"""Limiters of firings, by concurrency and by rate, first come first served; shared by name in a
process.

Theory of operation
-------------------
Each firing that wants to pass takes a place in one queue; only the first in it is served: it waits
for room, then for its turn in time. A cancelled one leaves the queue or gives its room back. Time
is the clock of each run: runs by the real clock share their turns, every virtual clock has turns of
its own. A queue serves several event loops: each waiter is woken on its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from dataclasses import dataclass
from weakref import WeakKeyDictionary, WeakValueDictionary

from axil.driver import Clock, RealClock
from axil_wrappers.errors import LimiterConflict


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The rate of firings that may pass."""

    concurrency: int | None = None
    calls: int | None = None
    """In ``period_seconds``; None: as many as come."""
    period_seconds: float = 1.0
    burst: int | None = None
    """The number of calls that may start at once after a pause; None: ``calls``."""


class _Bucket:
    """Turns in time: ``calls`` in ``period_seconds``, saved up to ``burst``."""

    def __init__(self, pace: Pace) -> None:
        assert pace.calls is not None
        self._rate = pace.calls / pace.period_seconds
        self._most = float(pace.burst if pace.burst is not None else pace.calls)
        self._saved = self._most
        self._at: float | None = None

    def wait(self, now: float) -> float:
        """Return the seconds until there is a turn; 0: it is taken."""
        if self._at is not None:
            self._saved = min(self._most, self._saved + max(0.0, now - self._at) * self._rate)
        self._at = now
        if self._saved >= 1 - 1e-9:
            self._saved -= 1
            return 0.0
        return (1 - self._saved) / self._rate


class _Waiter:
    """A firing in the queue."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.woken: asyncio.Future[None] = self.loop.create_future()

    def wake(self) -> None:
        """Let it try again; from any thread."""

        def now() -> None:
            if not self.woken.done():
                self.woken.set_result(None)

        with contextlib.suppress(RuntimeError):  # its loop is closed, and has no waiters
            self.loop.call_soon_threadsafe(now)


class Limiter:
    """One queue, and what may pass it."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self._lock = threading.Lock()
        self._queue: deque[_Waiter] = deque()
        self._inside = 0
        self._real = _Bucket(pace) if pace.calls is not None else None
        self._buckets: WeakKeyDictionary[Clock, _Bucket] = WeakKeyDictionary()

    @property
    def inside(self) -> int:
        """The number of firings that have passed and not left."""
        return self._inside

    @property
    def waiting(self) -> int:
        """The number of firings in the queue."""
        return len(self._queue)

    async def enter(self, clock: Clock) -> bool:
        """Wait for one's turn, and pass; return whether it waited. Afterwards ``leave``."""
        me = _Waiter()
        waited = False
        with self._lock:
            self._queue.append(me)
        try:
            while not self._is_served(me):
                waited = True
                await me.woken
                me.woken = me.loop.create_future()
            while (seconds := self._turn(clock)) > 0:
                waited = True
                await clock.sleep(seconds)
            with self._lock:
                self._inside += 1
        finally:
            with self._lock:
                self._queue.remove(me)
            self._wake()
        return waited

    def leave(self) -> None:
        """Make room."""
        with self._lock:
            self._inside -= 1
        self._wake()

    def _is_served(self, me: _Waiter) -> bool:
        with self._lock:
            most = self.pace.concurrency
            return self._queue[0] is me and (most is None or self._inside < most)

    def _turn(self, clock: Clock) -> float:
        """Return the seconds until there is a turn; 0: it is taken."""
        if self._real is None:
            return 0.0
        with self._lock:
            bucket = (
                self._real
                if isinstance(clock, RealClock)
                else self._buckets.setdefault(clock, _Bucket(self.pace))
            )
            return bucket.wait(clock.now())

    def _wake(self) -> None:
        with self._lock:
            first = self._queue[0] if self._queue else None
        if first is not None:
            first.wake()


_named: WeakValueDictionary[str, Limiter] = WeakValueDictionary()
_naming = threading.Lock()


def limiter(name: str, pace: Pace) -> Limiter:
    """Return this process's limiter of that name, made if there is none; without a name a new one.

    Raises: LimiterConflict (AX834): there is one of that name with another pace.
    """
    if not name:
        return Limiter(pace)
    with _naming:
        known = _named.get(name)
        if known is None:
            known = _named[name] = Limiter(pace)
        if known.pace != pace:
            message = f'the limiter "{name}" has the limits {known.pace} elsewhere and {pace} here.'
            raise LimiterConflict(
                "AX834", message, "Set the same limits in both places, or use two names."
            )
        return known
