"""Clocks for tests, on which no real time passes."""

from __future__ import annotations

import asyncio
import heapq
from typing import Any
from weakref import WeakKeyDictionary

_TURNS = 100
_LOOKS: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
"""The scheduled ``_look`` calls of each event loop: a loop that has nothing else ready is idle."""


class JumpingClock:
    """A clock on which who sleeps wakes at the next turn of the loop; it keeps the waits.

    It needs no idle loop, as ``VirtualClock`` does, and does not wake sleepers in the order of
    their times.
    """

    def __init__(self) -> None:
        self.time = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        """Return the time in seconds."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Let the time pass at once."""
        self.waits.append(seconds)
        self.time += max(0.0, seconds)
        await asyncio.sleep(0)


class VirtualClock:
    """Time for a run (``Options.clock``): it stands still while the event loop has anything ready,
    then jumps to the next sleeper.

    It is for runs without threads: while a body blocks in a thread the loop is idle, and time would
    jump past it. Mark such bodies ``inline=True``, or use the real clock. A journal in a database
    commits in a thread, too: use ``axil_journals.MemoryJournal`` where the order of sleepers
    matters.

    Sleepers wake one at a time, by deadline, then in the order in which they went to sleep: what
    each of them starts is done before the next one wakes. One clock may serve several runs on one
    loop, and, one after another, several loops; one loop may have several clocks.

    >>> import asyncio
    >>> clock = VirtualClock(start=100.0)
    >>> asyncio.run(clock.sleep(3600)), clock.now()
    (None, 3700.0)
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0
        self._watching: asyncio.AbstractEventLoop | None = None
        self._turns = 0

    def __repr__(self) -> str:
        return f"VirtualClock({self._now}, {self.sleeping} sleeping)"

    def now(self) -> float:
        """Return the time in seconds."""
        return self._now

    def wall(self) -> float:
        """Return the same, as seconds since 1970, by which questions are due."""
        return self._now

    @property
    def sleeping(self) -> int:
        """The number of sleepers that wait for a later time."""
        return sum(1 for *_, woken in self._sleepers if not woken.done())

    def advance(self, seconds: float) -> None:
        """Advance time by hand; due sleepers wake at the next turn of the loop.

        Raises: ValueError: backwards.
        """
        if seconds < 0:
            raise ValueError(f"time does not go back ({seconds} seconds).")
        until = self._now + seconds
        while self._sleepers and self._sleepers[0][0] <= until:
            self._wake()
        self._now = until

    async def sleep(self, seconds: float) -> None:
        """Wait ``seconds``; 0 or less lets the others run first, as ``asyncio.sleep`` does."""
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._now + max(0.0, seconds), self._count, woken))
        if self._watching is not loop:
            self._watching = loop
            self._turns = 0
            self._look_soon(loop)
        await woken

    def _look_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        _LOOKS[loop] = _LOOKS.get(loop, 0) + 1
        loop.call_soon(self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake the next sleeper if nothing else is ready; called once a turn of the loop."""
        _LOOKS[loop] -= 1
        if self._watching is not loop:
            return
        if not self._is_idle(loop):
            self._look_soon(loop)
            return
        if self._wake():
            self._look_soon(loop)
        else:
            self._watching = None

    def _is_idle(self, loop: Any) -> bool:
        ready = getattr(loop, "_ready", None)
        if ready is not None:  # asyncio's own loops: what is ready at this very moment
            return len(ready) <= _LOOKS[loop]
        self._turns += 1  # any other loop: wait so many turns
        if self._turns < _TURNS:
            return False
        self._turns = 0
        return True

    def _wake(self) -> bool:
        """Wake the next sleeper who is still there."""
        while self._sleepers:
            deadline, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                self._now = max(self._now, deadline)
                woken.set_result(None)
                return True
        return False
