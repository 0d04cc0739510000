"""When runs that rest go on by themselves, by the clock on the wall."""

from __future__ import annotations

import asyncio
import heapq
from typing import Any

from axil.context import Clock
from axil.due import wall

_LONGEST = 3600.0  # seconds between looks at the wall's clock, which may be set


class Timetable:
    """One time for each run, in seconds since 1970; what is said last holds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, str]] = []
        self._holds: dict[str, float] = {}
        self._sooner = asyncio.Event()

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._holds

    def put(self, run_id: str, due: float) -> None:
        """``run_id`` goes on then. Cost: O(log(runs))."""
        self._holds[run_id] = due
        heapq.heappush(self._heap, (due, run_id))
        self._sooner.set()

    def drop(self, run_id: str) -> None:
        """``run_id`` does not go on by itself."""
        self._holds.pop(run_id, None)

    async def due(self) -> list[str]:
        """Wait until the time of some has come; gives these, and drops them."""
        while not (come := self._come()):
            self._sooner.clear()
            waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._sooner.wait())]
            if self._heap:
                left = self._heap[0][0] - wall(self._clock)
                waits.append(asyncio.ensure_future(self._clock.sleep(min(left, _LONGEST))))
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for waiting in waits:
                    waiting.cancel()
        return come

    def _come(self) -> list[str]:
        now, come = wall(self._clock), list[str]()
        while self._heap and self._heap[0][0] <= now:
            due, run_id = heapq.heappop(self._heap)
            if self._holds.get(run_id) == due:
                del self._holds[run_id]
                come.append(run_id)
        return come


__all__ = ["Timetable"]
