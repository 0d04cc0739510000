"""The decisions about the firings of a run: which may start, in which order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from axil.contract.context import Clock
from axil.contract.decisions import Deciders, Fail, Firing, Outcome, Retry
from axil.errors import HookFailed
from axil.kernel.tokens import Task


class FiringDecisions:
    """The answers of deciding hooks about a run's firings, and the times of those held back."""

    def __init__(
        self, run_id: str, deciders: Deciders, clock: Clock, look_again: Callable[[], None]
    ) -> None:
        """Args: look_again: called when a held firing may be asked about again."""
        self._run_id, self._deciders, self._clock = run_id, deciders, clock
        self._look_again = look_again
        self.refused: list[tuple[Task, Outcome]] = []
        """Bodies that may not start, with the outcomes of their firings."""
        self._until: dict[Task, float] = {}
        self._tries: dict[Task, int] = {}
        self._begun: set[Task] = set()
        self._timers: dict[asyncio.Task[None], Task] = {}

    def take(self, queue: deque[Task], is_idle: bool) -> tuple[Task, Outcome | None] | None:
        """Take from a queue what starts next; None: all is held back.

        Args:
            is_idle: no other firing of the run is at work, so one that waits for others starts.

        Returns: the firing, and its outcome if it does not start.
        """
        now = self._clock.now()
        free: list[Task] = []
        held: list[Task] = []
        for task in queue:
            if self._until.get(task, now) > now:
                continue
            try:
                answer = self._deciders.admit(self.firing(task))
            except HookFailed as error:
                answer = Fail(error)
            if answer is True:
                free.append(task)
            elif answer is False:
                held.append(task)
            elif not isinstance(answer, (bool, int, float)):
                queue.remove(task)
                self._forget(task)
                return task, answer
            else:
                self._hold(task, answer)
        if not free and is_idle and not self._timers:
            free = held[:1]
        if not free:
            return None
        try:
            chosen = free[self._deciders.choose([self.firing(task) for task in free])]
        except HookFailed as error:
            queue.remove(free[0])
            self._forget(free[0])
            return free[0], Fail(error)
        queue.remove(chosen)
        self._until.pop(chosen, None)
        return chosen, None

    def after_failure(self, task: Task, error: Exception) -> Outcome | None:
        """Return the outcome of a body that raised; None: it starts again."""
        try:
            answer = self._deciders.failure(self.firing(task), error)
        except HookFailed as failed:
            answer = Fail(failed)
        if not isinstance(answer, Retry):
            self._forget(task)
            return answer
        self._tries[task] = self._tries.get(task, 0) + 1
        if answer.after > 0:
            self._hold(task, answer.after)
        return None

    def begins(self, task: Task) -> bool:
        """Note that a firing begins, or ends without a beginning; return whether it is new."""
        is_first = task not in self._begun
        self._begun.add(task)
        return is_first

    def firing(self, task: Task) -> Firing:
        vertex = task.node.vertex
        return Firing(
            run_id=self._run_id,
            activation=task.activation,
            type=vertex.type,
            lane=vertex.lane,
            effects=vertex.effects,
            tries=self._tries.get(task, 0),
            now=self._clock.now(),
        )

    def done(self, task: Task) -> None:
        """Forget a firing that has ended, or whose result is no longer awaited."""
        self._forget(task)
        self._begun.discard(task)
        for timer in [timer for timer, held in self._timers.items() if held is task]:
            timer.cancel()
            del self._timers[timer]

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def _hold(self, task: Task, seconds: float) -> None:
        self._until[task] = self._clock.now() + seconds
        timer = asyncio.get_running_loop().create_task(self._wait(seconds))
        self._timers[timer] = task

    async def _wait(self, seconds: float) -> None:
        try:
            await self._clock.sleep(seconds)
        finally:
            if (timer := asyncio.current_task()) is not None:
                self._timers.pop(timer, None)
        self._look_again()

    def _forget(self, task: Task) -> None:
        self._until.pop(task, None)
        self._tries.pop(task, None)
