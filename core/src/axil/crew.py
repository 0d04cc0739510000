"""Bodies at work: how many at once, in which lanes, where, and how they are sent home.

A firing that cannot start yet waits in its lane, in order. ``Executor`` is the seam for running bodies elsewhere: it gets
one body, its task and its context, and gives what the body gives.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, cast

from axil.context import Context
from axil.live import Live
from axil.plan import Body, Node
from axil.spec import Limits
from axil.tokens import Task


class LocalExecutor:
    """Async bodies on the event loop, the others in threads of their own pool."""

    __slots__ = ("_name", "_pool", "_threads")

    def __init__(self, threads: int, name: str) -> None:
        """``threads``: how many bodies may block at the same time."""
        self._threads, self._name = threads, name
        self._pool: ThreadPoolExecutor | None = None

    async def execute(self, body: Body, task: Task, ctx: Context) -> Any:
        """See ``Executor``. A thread that is cancelled is left to finish; what it gives is thrown away."""
        if body.mode != "thread":
            out = body(task, ctx)
            return await out if inspect.isawaitable(out) else out
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=self._name)
        context = contextvars.copy_context()

        def call() -> Any:
            try:
                return context.run(body, task, ctx)
            except StopIteration as error:  # a future refuses it, and whoever awaits it would wait for ever
                raise RuntimeError("the body raised StopIteration") from error

        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    async def close(self) -> None:
        """Let the threads go; those that still run finish unseen."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


class Work(NamedTuple):
    """One body at work, or waiting to be."""

    live: Live
    task: Task
    node: Node


class Crew:
    """The bodies of one run: those that wait for room, those at work, and those that have just finished."""

    __slots__ = ("_at", "_inside", "_lanes", "_next", "_returning", "_waiting", "_wake", "_working", "finished", "limits")

    def __init__(self, limits: Limits, wake: Callable[[], None]) -> None:
        self.limits = limits
        self.finished: list[asyncio.Future[Any]] = []  # not empty as long as any is still to be taken
        self._next = 0
        self._wake = wake
        self._waiting: dict[str | None, deque[Work]] = {}
        self._working: dict[asyncio.Future[Any], Work] = {}
        self._at: dict[Task, Live] = {}
        self._inside: dict[Task, int] = {}  # bodies that wait for sub-runs of their own, which need the room they take
        self._returning: dict[Task, asyncio.Future[None]] = {}  # bodies whose sub-run has ended, waiting for room
        self._lanes: dict[str | None, int] = {}

    def __bool__(self) -> bool:
        """Whether any body is at work."""
        return bool(self._working)

    @property
    def at_work(self) -> int:
        """How many bodies are at work or wait for room; not those that wait for sub-runs of their own."""
        return len(self._working) - len(self._inside) + sum(map(len, self._waiting.values()))

    def park(self, work: Work) -> None:
        """Let a firing wait for room."""
        lane = work.node.vertex.lane
        if lane not in self._waiting:
            self._waiting[lane] = deque()
        self._waiting[lane].append(work)

    def _has_room(self, lane: str | None) -> bool:
        most = self.limits.concurrency
        if most is not None and len(self._working) - len(self._inside) >= most:
            return False
        return lane is None or self._lanes.get(lane, 0) < self.limits.lanes.get(lane, 1)

    def has_place(self, lane: str | None) -> bool:
        """Whether a firing may begin at once: there is room, and nobody waits for it."""
        return lane is None and self.limits.concurrency is None

    def admitted(self) -> Iterator[Work]:
        """Firings for which there is room now, lane by lane, in order; each has to be set to work before the next is asked for.

        Bodies that come back from a sub-run of their own go first.
        """
        for task, coming_back in list(self._returning.items()):
            if self._has_room(self._lane_of(task)):
                self._come_back(task)
                del self._returning[task]
                coming_back.set_result(None)
        most = self.limits.concurrency
        for lane, queue in self._waiting.items():
            room = None if lane is None else self.limits.lanes.get(lane, 1)
            while queue and (room is None or self._lanes.get(lane, 0) < room):
                if most is not None and len(self._working) - len(self._inside) >= most:
                    return
                yield queue.popleft()

    def work(self, work: Work, doing: Awaitable[Any]) -> None:
        """Set a body to work."""
        job = asyncio.get_running_loop().create_task(cast("Any", doing)) if asyncio.iscoroutine(doing) else asyncio.ensure_future(doing)
        self._working[job] = work
        self._at[work.task] = work.live
        if (lane := work.node.vertex.lane) is not None:
            self._lanes[lane] = self._lanes.get(lane, 0) + 1
        job.add_done_callback(self._done)

    def _done(self, job: asyncio.Future[Any]) -> None:
        if not self.finished:
            self._wake()
        self.finished.append(job)

    def take(self) -> tuple[Work, asyncio.Future[Any]]:
        """The next body that has finished, off the books."""
        job = self.finished[self._next]
        self._next += 1
        if self._next == len(self.finished):
            self.finished.clear()
            self._next = 0
        work = self._working.pop(job)
        del self._at[work.task]
        if (lane := work.node.vertex.lane) is not None:
            self._lanes[lane] -= 1
        return work, job

    def frame_of(self, task: Task) -> Live:
        """The frame whose body is at work on ``task``."""
        return self._at[task]

    def _lane_of(self, task: Task) -> str | None:
        return task.owner.plan.nodes[task.node].vertex.lane

    def step_inside(self, task: Task) -> None:
        """The body of ``task`` waits for a sub-run of its own: it leaves its room, in its lane too, to others."""
        self._inside[task] = self._inside.get(task, 0) + 1
        if self._inside[task] == 1:
            lane = self._lane_of(task)
            self._lanes[lane] = self._lanes.get(lane, 0) - 1
        self._wake()

    async def step_out(self, task: Task) -> None:
        """The sub-run has ended: wait for room to go on, ahead of those who have not begun."""
        self._inside[task] -= 1
        if self._inside[task]:
            return
        self._inside[task] = 1  # still without room
        if self._has_room(self._lane_of(task)):
            self._come_back(task)
            return
        back = self._returning[task] = asyncio.get_running_loop().create_future()
        try:
            await back
        except asyncio.CancelledError:
            if self._returning.pop(task, None) is not None:
                self._come_back(task)
            raise

    def _come_back(self, task: Task) -> None:
        del self._inside[task]
        lane = self._lane_of(task)
        self._lanes[lane] = self._lanes.get(lane, 0) + 1

    def cancel_dropped(self) -> None:
        """Cancel bodies in frames that nobody waits for any more."""
        for job, work in self._working.items():
            if work.live.is_dropped:
                job.cancel()

    async def cancel_innermost(self) -> None:
        """Cancel the bodies of the deepest frames, and wait until they are gone."""
        deepest = max(work.live.depth for work in self._working.values())
        jobs = [job for job, work in self._working.items() if work.live.depth == deepest]
        for job in jobs:
            job.cancel()
        await asyncio.wait(jobs)
        await asyncio.sleep(0)
