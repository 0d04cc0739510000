"""A queue of the times at which paused runs go on by themselves."""

from __future__ import annotations

import asyncio
import heapq
from typing import Any

from axil.driver import Clock, wall_time

_LONGEST_SECONDS = 3600.0  # the wall clock may be set: it is read again after so long


class TimerQueue:
    """At most one time for each run, in seconds since 1970; the last one that was put counts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, str]] = []
        self._times: dict[str, float] = {}
        self._changed = asyncio.Event()

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._times

    def put(self, run_id: str, due: float) -> None:
        """Set the time of a run. Cost: O(log(runs))."""
        self._times[run_id] = due
        heapq.heappush(self._heap, (due, run_id))
        self._changed.set()

    def drop(self, run_id: str) -> None:
        """Remove the time of a run, if it has one."""
        self._times.pop(run_id, None)

    async def due(self) -> list[str]:
        """Wait until at least one time has come; remove these times and return their runs."""
        while not (runs := self._take_due()):
            self._changed.clear()
            waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._changed.wait())]
            if self._heap:
                left = min(self._heap[0][0] - wall_time(self._clock), _LONGEST_SECONDS)
                waits.append(asyncio.ensure_future(self._clock.sleep(left)))
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for waiting in waits:
                    waiting.cancel()
        return runs

    def _take_due(self) -> list[str]:
        now, runs = wall_time(self._clock), list[str]()
        while self._heap and self._heap[0][0] <= now:
            due, run_id = heapq.heappop(self._heap)
            if self._times.get(run_id) == due:  # else it was dropped, or put again
                del self._times[run_id]
                runs.append(run_id)
        return runs


__all__ = ["TimerQueue"]
