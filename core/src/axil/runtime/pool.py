"""Worker pool for the bodies of one run: concurrency limits, lanes, cancellation.

A firing that cannot start yet waits in its lane, in order. One that may start is *due*, and a
*worker* runs it: an asyncio task that runs one body after another as long as none of them has to
wait. Where a body waits, its worker waits with it, and another worker, started before the body was,
runs what else is due. So a body that waits costs a task and one that does not costs none, and each
has a task of its own while it is at work. A worker ends with a body that leaves a changed context
variable or a cancellation behind.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, cast

from axil.contract.context import Context, Executor
from axil.kernel.plan import Body
from axil.kernel.tokens import Task
from axil.runtime.recorder import Recorder
from axil.spec.graph import Limits

if TYPE_CHECKING:
    from axil.kernel.scheduler import Scheduler
    from axil.runtime.decisions import FiringDecisions
    from axil.runtime.run import RunLoop

log = logging.getLogger("axil")

SLICE = 0.005
"""Seconds of work before the event loop gets a turn."""

_TURN = threading.local()  # its ``ends``: of the slice that a worker of this thread last began
GRACE = 10.0
"""Seconds that a cancelled body has to end before the run ends without it."""


def as_failure(error: BaseException) -> BaseException:
    """Return the error of a body as one that fails its node and ends nothing else.

    >>> as_failure(SystemExit(3))
    RuntimeError('the body raised SystemExit: 3')
    """
    if not isinstance(error, (SystemExit, GeneratorExit)):
        return error
    message = f"the body raised {type(error).__name__}" + (f": {error}" if str(error) else "")
    failure = RuntimeError(message)
    failure.__cause__ = error
    return failure


class LocalExecutor:
    """Async bodies on the event loop, the others in threads."""

    __slots__ = ("_name", "_pool", "_threads")

    def __init__(self, threads: int, name: str) -> None:
        """Args: threads: how many bodies may block at the same time."""
        self._threads, self._name = threads, name
        self._pool: ThreadPoolExecutor | None = None

    async def execute(self, body: Body, task: Task, ctx: Context) -> object:
        """See ``Executor``. A cancelled thread is left to finish; its result is dropped."""
        if body.mode != "thread":
            out = body(task, ctx)
            return await out if inspect.isawaitable(out) else out
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=f"axil-{self._name}")
        context = copy_context()

        def call() -> object:
            try:
                return context.run(body, task, ctx)
            except StopIteration as error:
                # a future refuses it, and its waiters would wait for ever
                raise RuntimeError("the body raised StopIteration") from error

        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    async def close(self) -> None:
        """Let the threads go; those that still run finish unseen."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def _ignored(*_: object) -> Any:
    """Do nothing."""


class _Ended:
    """The owner of bodies whose run has ended; a thread may still call."""

    begin = take_outcome = wake = staticmethod(_ignored)


def _is_at_work(task: asyncio.Task[None]) -> bool:
    """Return whether the loop runs this task, rather than being closed with it."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False


class WorkerPool:
    """The bodies of one run: those that wait for room, those due, those at work."""

    __slots__ = (
        "_context", "_due", "_idle", "_inside", "_is_roomy", "_is_securing", "_lanes", "_many",
        "_next", "_owner", "_recorder", "_scheduler", "announce", "broken", "decisions", "executor",
        "is_closed_to_new", "limits", "returning", "waiting", "working",
    )  # fmt: skip

    def __init__(
        self,
        limits: Limits,
        executor: Executor,
        recorder: Recorder | None,
        scheduler: Scheduler,
        owner: RunLoop,
    ) -> None:
        """Args:
        executor: closed with the pool.
        recorder: what it records before a body is due is safe before the body begins.
        owner: begins bodies, and takes in how they ended.
        """
        self.limits, self.executor = limits, executor
        self.announce: Callable[[Task], None] | None = None
        """The receiver of bodies for which there is room."""
        self.is_closed_to_new = False
        """Nothing more is begun."""
        self.broken: BaseException | None = None
        """The error of a worker that is no outcome of a body."""
        # itself, not its methods: the collector would look at three objects more of each run
        self._owner: RunLoop | type[_Ended] = owner
        self._scheduler, self._recorder = scheduler, recorder
        self.decisions: FiringDecisions | None = None
        """The decisions of plugins: which bodies start, and when; None: only limits do."""
        self._due: deque[Task] = deque()
        # due as soon as what was recorded before is safe
        self._next: deque[Task] = self._due if recorder is None else deque()
        self._is_roomy = limits.concurrency is None
        self._is_securing = False
        self._idle = 0  # workers that were started and have not run yet
        # to call at once: twice as many whenever one finds something to do, for then bodies wait
        self._many = 1
        self._context: contextvars.Context | None = None  # what each worker begins with
        self.waiting: dict[str | None, deque[Task]] = {}
        """Bodies that wait for room, by lane."""
        self.working: dict[Task, asyncio.Task[None] | None] = {}
        """The workers of bodies that are due or at work; None: none yet."""
        # bodies that wait for sub-runs of their own, which need the room they take
        self._inside: dict[Task, int] = {}
        self.returning: dict[Task, asyncio.Future[None]] = {}
        """Bodies whose sub-run has ended, waiting for room."""
        self._lanes: dict[str | None, int] = {}

    @property
    def is_busy(self) -> bool:
        """True if any body is due, at work, or held back by decisions."""
        if self.working or self.decisions is None:
            return bool(self.working)
        return bool(self.decisions.refused or any(self.waiting.values()))

    @property
    def at_work(self) -> int:
        """The number of bodies at work or waiting for room, less those waiting for sub-runs."""
        return len(self.working) - len(self._inside) + sum(map(len, self.waiting.values()))

    # -- room

    def put(self, task: Task) -> None:
        """Queue a body: it is due if there is room and none waits for it."""
        lane = task.node.vertex.lane
        if lane is None and self._is_roomy and self.decisions is None:
            self._admit(task)
            return
        if lane not in self.waiting:
            self.waiting[lane] = deque()
        self.waiting[lane].append(task)
        if self.decisions is None:
            self.admit()
        else:  # asked when all that is due is known
            self._owner.wake()

    def admit(self) -> None:
        """Make due what there is room for: bodies back from sub-runs, then each lane, in order."""
        if self.is_closed_to_new:
            return
        for task, coming_back in list(self.returning.items()):
            if not coming_back.done() and self._has_room(task.node.vertex.lane):
                self._come_back(task)
        decisions = self.decisions
        for lane, queue in self.waiting.items():
            while queue and self._has_room(lane):
                due = queue.popleft() if decisions is None else self._admitted(decisions, queue)
                if due is None:
                    break
                self._lanes[lane] = self._lanes.get(lane, 0) + 1
                self._admit(due)

    def _admitted(self, decisions: FiringDecisions, queue: deque[Task]) -> Task | None:
        """Take what decisions let start next; None: the rest is held back."""
        # a body that waits for a sub-run of its own waits for what is held back here
        is_idle = len(self.working) == len(self._inside)
        while (taken := decisions.take(queue, is_idle)) is not None:
            task, outcome = taken
            if outcome is None:
                return task
            decisions.refused.append((task, outcome))
            self._owner.wake()
        return None

    def _admit(self, task: Task) -> None:
        self.working[task] = None
        self._next.append(task)
        if self.announce is not None:
            self.announce(task)

    def _has_room(self, lane: str | None) -> bool:
        most = self.limits.concurrency
        if most is not None and len(self.working) - len(self._inside) >= most:
            return False
        return lane is None or self._lanes.get(lane, 0) < self.limits.lanes.get(lane, 1)

    # -- workers

    def call(self) -> None:
        """Start workers for what is due, unless some have not run yet."""
        if (
            self._idle
            or self.is_closed_to_new
            or not (self._due or (self._next and not self._is_securing))
        ):
            return
        if self._context is None:
            self._context = copy_context()
        self._idle = max(1, min(self._many, len(self._due)))
        for _ in range(self._idle):
            # Not made by the loop's factory, which may begin tasks at once: workers would begin in
            # one another.
            asyncio.Task(self._worker(), context=self._context.copy())

    async def _secure(self, recorder: Recorder) -> None:
        """Wait until all that is recorded is safe; make due what was next before."""
        self._is_securing = True
        try:
            many = len(self._next)
            if (waiting := recorder.kept()) is not None:
                await waiting
            for _ in range(many):
                self._due.append(self._next.popleft())
        finally:
            self._is_securing = False

    async def _worker(self) -> None:
        me = cast("asyncio.Task[None]", asyncio.current_task())
        due, working, owner = self._due, self.working, self._owner
        self._idle -= 1
        self._many = min(2 * self._many, 64) if due else 1
        _TURN.ends = turn_ends = time.monotonic() + SLICE
        try:
            while not self.is_closed_to_new:
                if not due:
                    if self._recorder is None or self._is_securing or not self._next:
                        break
                    await self._secure(self._recorder)
                    continue
                task = due.popleft()
                if due and not self._idle:
                    self.call()  # while this one waits, should it have to
                if task not in working:  # it was dropped
                    continue
                working[task] = me
                out: object = None
                error: BaseException | None = None
                try:
                    out = await owner.begin(task)
                except KeyboardInterrupt:
                    raise
                except BaseException as raised:  # a body may raise anything
                    if isinstance(raised, GeneratorExit) and not _is_at_work(me):
                        raise  # the loop is gone
                    error = as_failure(raised)
                finally:
                    is_awaited = task in working  # else the run has ended without it
                    if is_awaited:
                        self._leave(task)
                if not is_awaited:
                    return
                owner.take_outcome(task, out, error)
                if self.waiting or self.returning:
                    self.admit()
                if not working:
                    owner.wake()
                # left behind by the body: the next one is not to find it
                if me.cancelling() or copy_context() != self._context:
                    break
                if time.monotonic() > turn_ends:
                    if _TURN.ends == turn_ends:  # else others had a turn, while its body waited
                        await asyncio.sleep(0)
                    _TURN.ends = turn_ends = time.monotonic() + SLICE
        except asyncio.CancelledError:
            pass  # by somebody who took it for the task of a body that has ended
        except GeneratorExit:  # the loop is gone
            raise
        except BaseException as broken:  # noqa: BLE001
            # the recorder failed, or we did, or the process is to end: the run raises it
            self.broken, self.is_closed_to_new = broken, True
            owner.wake()
        self.call()

    def _leave(self, task: Task) -> None:
        del self.working[task]
        if task in self._inside:  # it has not awaited its sub-runs
            self._come_back(task)
        if (lane := task.node.vertex.lane) is not None:
            self._lanes[lane] -= 1

    # -- sub-runs of bodies

    def leave_room(self, task: Task) -> None:
        """Leave the room of ``task`` while its body waits for a sub-run of its own."""
        if task in self.returning:  # from another one: it needs no room now
            self._come_back(task)
        self._inside[task] = self._inside.get(task, 0) + 1
        if self._inside[task] == 1:
            lane = task.node.vertex.lane
            self._lanes[lane] = self._lanes.get(lane, 0) - 1
        self._owner.wake()

    async def take_room_again(self, task: Task) -> None:
        """Wait for room after a sub-run, ahead of bodies that have not begun."""
        if self._inside.get(task) != 1:  # it waits for another one, or has ended
            if task in self._inside:
                self._inside[task] -= 1
            return
        if self.is_closed_to_new or self._has_room(task.node.vertex.lane):  # no more room is given
            self._come_back(task)
            return
        back = self.returning[task] = asyncio.get_running_loop().create_future()
        try:
            await back
        finally:
            if self.returning.get(task) is back:  # the wait was cancelled
                self._come_back(task)

    def _come_back(self, task: Task) -> None:
        del self._inside[task]
        lane = task.node.vertex.lane
        self._lanes[lane] = self._lanes.get(lane, 0) + 1
        if (back := self.returning.pop(task, None)) is not None and not back.done():
            back.set_result(None)

    # -- cancellation

    def drop(self) -> None:
        """Give up bodies in frames that are no longer awaited."""
        is_dropped = self._scheduler.is_dropped
        for task, worker in [each for each in self.working.items() if is_dropped(each[0])]:
            if worker is not None:
                worker.cancel()
            else:
                self._leave(task)
        for lane, queue in self.waiting.items():
            self.waiting[lane] = deque(task for task in queue if not is_dropped(task))
            if self.decisions is not None:
                for task in queue:
                    if is_dropped(task):
                        self.decisions.done(task)

    async def cancel_deepest(self) -> None:
        """Begin nothing more, cancel the bodies of the deepest frames, and wait until they are
        gone, or ``GRACE`` has passed.
        """
        self.is_closed_to_new = True
        for task in [task for task, worker in self.working.items() if worker is None]:
            self._leave(task)
        if not self.working:
            return
        depth = self._scheduler.depth
        deepest = max(depth(task) for task in self.working)
        workers = [
            worker
            for task, worker in self.working.items()
            if worker is not None and depth(task) == deepest
        ]
        for worker in workers:
            worker.cancel()
        _, left = await asyncio.wait(workers, timeout=GRACE)
        for task, worker in [each for each in self.working.items() if each[1] in left]:
            self._leave_behind(task, worker)

    def _leave_behind(self, task: Task, worker: Any) -> None:
        """Continue without a body that catches its cancellation."""
        self._leave(task)
        # Else whatever ends the loop would wait for it: ``asyncio.run`` waits for all tasks.
        asyncio._unregister_task(worker)  # type: ignore[attr-defined]
        worker._log_destroy_pending = False
        log.warning(
            'node "%s" has not ended %g seconds after it was cancelled; the run ends without it.',
            task.node.name,
            GRACE,
        )

    async def close(self) -> None:
        """Drop all references of a finished run, so that it is freed without a collection."""
        try:
            await self.executor.close()
        finally:
            self._owner = _Ended
            self.announce = None
            if self.decisions is not None:
                self.decisions.close()
                self.decisions = None
