"""A clock that ends a run as paused while all its bodies sleep for long."""

from __future__ import annotations

from axil import Question
from axil.driver import Clock, Pause, wall_time
from axil_journals.engine.managed import ManagedRun


class SuspendingClock:
    """The clock of one managed run; ``ManagedRun`` describes its method ``rest``."""

    def __init__(self, clock: Clock, patience_seconds: float) -> None:
        """``patience_seconds``: how long all bodies have to sleep before the run is paused."""
        self.clock, self.patience_seconds = clock, patience_seconds
        self.run: ManagedRun | None = None
        """The run; it is set after the run was made with this clock."""
        self._sleeping: dict[str, float] = {}  # end of each sleep, by the id of its timer
        self._is_pausing = False

    def now(self) -> float:
        return self.clock.now()

    def wall(self) -> float:
        return wall_time(self.clock)

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    async def rest(self, seconds: float, timer: Question) -> None:
        """Sleep in a body. Raises: Pause: the run is paused until the sleep ends."""
        ends = self.now() + seconds
        self._sleeping[timer.id] = ends
        try:
            while (left := ends - self.now()) > 0:
                await self.clock.sleep(min(left, self.patience_seconds))
                if self._is_pausing or self._is_idle():
                    self._is_pausing = True  # the other bodies of the run pause, too
                    raise Pause(timer)
        finally:
            del self._sleeping[timer.id]

    def _is_idle(self) -> bool:
        """Return whether every body of the run sleeps, and none wakes soon."""
        first = min(self._sleeping.values())
        bodies = {id.rpartition("~")[0] for id in self._sleeping}  # a body may sleep several times
        is_waiting = self.run is not None and self.run.at_work == len(bodies)
        return is_waiting and first - self.now() > self.patience_seconds
