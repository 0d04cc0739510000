"""The gate of a run: which firings may start, in which order, by the plugins that decide."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from axil.contract.context import Clock
from axil.contract.decisions import Deciders, Fail, Firing, Outcome, Retry
from axil.errors import HookFailed

if TYPE_CHECKING:
    from axil.runtime.pool import Work


class Gate:
    """The answers of deciding hooks about the firings of one run, and the times of those held
    back.
    """

    def __init__(
        self, run_id: str, deciders: Deciders, clock: Clock, look_again: Callable[[], None]
    ) -> None:
        """``look_again``: called when a firing that was held back may be asked about again."""
        self._run_id, self._deciders, self._clock = run_id, deciders, clock
        self._look_again = look_again
        self._until: dict[Work, float] = {}
        self._tries: dict[Work, int] = {}
        self._timers: dict[asyncio.Task[None], Work] = {}

    def take(self, queue: deque[Work], is_idle: bool) -> tuple[Work, Outcome | None] | None:
        """Take from a queue what is to start next; None: all is held back.

        Args:
            is_idle: no other firing of the run is at work: what is held back until one ends starts.
        Returns: the firing, and its outcome if it is not to start at all.
        """
        now = self._clock.now()
        free: list[Work] = []
        held: list[Work] = []
        for work in queue:
            if self._until.get(work, now) > now:
                continue
            try:
                answer = self._deciders.admit(self.firing(work))
            except HookFailed as error:
                answer = Fail(error)
            if answer is True:
                free.append(work)
            elif answer is False:
                held.append(work)
            elif not isinstance(answer, (bool, int, float)):
                queue.remove(work)
                self._forget(work)
                return work, answer
            else:
                self._hold(work, answer)
        if not free and is_idle and not self._timers:
            free = held[:1]
        if not free:
            return None
        try:
            chosen = free[self._deciders.choose([self.firing(work) for work in free])]
        except HookFailed as error:
            queue.remove(free[0])
            self._forget(free[0])
            return free[0], Fail(error)
        queue.remove(chosen)
        self._until.pop(chosen, None)
        return chosen, None

    def after_failure(self, work: Work, error: Exception) -> Outcome | None:
        """Return the outcome of a body that raised; None: it is to be started again."""
        try:
            answer = self._deciders.failure(self.firing(work), error)
        except HookFailed as failed:
            answer = Fail(failed)
        if not isinstance(answer, Retry):
            self._forget(work)
            return answer
        self._tries[work] = self._tries.get(work, 0) + 1
        if answer.after > 0:
            self._hold(work, answer.after)
        return None

    def firing(self, work: Work) -> Firing:
        """Return a firing as hooks see it."""
        task, vertex = work.task, work.task.node.vertex
        return Firing(
            run_id=self._run_id,
            activation=task.activation,
            type=vertex.type,
            lane=vertex.lane,
            effects=vertex.effects,
            tries=self._tries.get(work, 0),
            now=self._clock.now(),
        )

    def done(self, work: Work) -> None:
        """Forget a firing that has ended, or whose result is no longer awaited."""
        self._forget(work)
        for timer in [timer for timer, held in self._timers.items() if held is work]:
            timer.cancel()
            del self._timers[timer]

    def close(self) -> None:
        """Stop waiting."""
        for timer in self._timers:
            timer.cancel()

    def _hold(self, work: Work, seconds: float) -> None:
        self._until[work] = self._clock.now() + seconds
        timer = asyncio.get_running_loop().create_task(self._wait(seconds))
        self._timers[timer] = work

    async def _wait(self, seconds: float) -> None:
        try:
            await self._clock.sleep(seconds)
        finally:
            timer = asyncio.current_task()
            if timer is not None:
                self._timers.pop(timer, None)
        self._look_again()

    def _forget(self, work: Work) -> None:
        self._until.pop(work, None)
        self._tries.pop(work, None)
