"""One run, from its beginning, afresh or where it broke off, to its result; and functions that
drive one from code that is not async.

``RunLoop`` turns commands of the scheduler into deeds, and deeds into its events. An inline body
costs a call; an async body costs a task if it waits (see ``pool``); a thread body a thread.
Whatever learns how a body ended works on until nothing is due; ``drive`` does what is left over,
and the end.

Outcomes are recorded in the order in which they take effect, and bodies whose effects could be
noticed outside start only when all before them is safe (see ``recorder``). A run that failed, was
cancelled or met a limit starts no more bodies, cancels those at work, innermost first, and has a
result that says so.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import threading
import time
from collections.abc import Awaitable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar, cast

from axil.bounds import BOUNDS, RunBounds
from axil.contract.context import Clock, Context, Executor, SubRunResult
from axil.contract.meters import Meter
from axil.contract.observers import NO_OBSERVERS, Observers, edge_payloads
from axil.errors import AxilError, HookFailed, JournalError, KernelBug, LimitReached, RunCancelled
from axil.kernel.events import (
    Command,
    DecideLimit,
    DropBodies,
    End,
    RecordFiring,
    RecordRound,
    Return,
    SubRun,
)
from axil.kernel.machine import FrameResult, Machine, output_of
from axil.kernel.plan import Plan
from axil.kernel.scheduler import RunningFrame, Scheduler
from axil.kernel.scopes import machine_type
from axil.kernel.state import State
from axil.kernel.tokens import Changes, Out, Task, new_tuple
from axil.kernel.values import isolate, unshared
from axil.runtime.meters import meter_of
from axil.runtime.pool import SLICE, LocalExecutor, WorkerPool, as_failure
from axil.runtime.recorder import Progress, Recorder
from axil.runtime.result import Options, Result, made
from axil.runtime.services import REAL_CLOCK, Pause, RunServices, paused_by
from axil.settings.grants import granted
from axil.spec.graph import Limits

if TYPE_CHECKING:
    from axil.contract.decisions import Outcome
    from axil.settings.grants import Grants

T = TypeVar("T")


class Run:
    """One run of a plan: ``await`` it, or ``cancel`` it."""

    __slots__ = (
        "__weakref__", "_grants", "_inputs", "_loop", "_result", "has_begun", "id", "options",
        "plan", "recorder", "services",
    )  # fmt: skip

    def __init__(
        self,
        plan: Plan,
        inputs: object = None,
        options: Options | None = None,
        values: Mapping[str, object] | None = None,
    ) -> None:
        """Args: values: over the graph's own first values of the state.

        Raises: StateError: ``values`` do not fit the schema.
        """
        self.plan, self.options = plan, options or Options()
        self.id = self.options.run_id or os.urandom(8).hex()
        checked = plan.graph.schema.check(values, whole=True) if values else {}
        self.recorder = recorder = _recorder(self.id, plan, inputs, checked, self.options)
        """The recorder of the run; None: it has no journal. For engines."""
        self._inputs, state = (
            (inputs, checked) if recorder is None else (recorder.inputs, recorder.state)
        )
        first = {**plan.graph.start, **state}
        root = plan.graph.schema.start(first and unshared(first))
        self._grants = _grants(plan, self.options)
        self._loop = RunLoop(
            self.id, self.options, recorder, machine_type(plan, (), root), self._grants
        )
        self.services: RunServices = self._loop.services
        """The services for its bodies. For engines."""
        self._result: Result | None = None
        self.has_begun = False
        """True if ``result`` was called."""

    def __await__(self) -> Any:
        return self.result().__await__()

    @property
    def meter(self) -> Meter:
        """The meter of the run."""
        return self._loop.meter

    @property
    def at_work(self) -> int:
        """The number of bodies that run or wait for room, less those that wait for sub-runs."""
        return self._loop.pool.at_work

    def cancel(self, reason: str = "cancelled") -> None:
        """End the run: bodies at work are cancelled, innermost first; what was recorded stays."""
        self._loop.halt(RunCancelled(reason))

    async def result(self) -> Result:
        """Run to the end and return the result, whatever its status.

        Raises: CancelledError: the awaiting task was cancelled.
        """
        if self._result is not None or self.has_begun:
            if self._result is None:
                raise KernelBug("a run was awaited twice at once.")
            return self._result
        self.has_begun = True
        if self._grants is None:
            return await self._to_its_end()
        with granted(self._grants):
            return await self._to_its_end()

    async def _to_its_end(self) -> Result:
        loop, services, observers = self._loop, self.services, self._loop.observers
        services.progress.started = services.clock.now()
        services.loop, services.loop_thread = asyncio.get_running_loop(), threading.get_ident()
        around, watch = BOUNDS.get(), self._bound(loop.limits.seconds)
        try:
            if observers.run_started is not None:
                observers.run_started(self.id, self.plan, isolate(self._inputs))
            given, recorder = self.options.answers, services.recorder
            services.answers.update(given if recorder is None else recorder.begin(given))
            loop.scheduler.begin(self._inputs)
            await loop.drive()
            if loop.pool.working:
                await loop.stop()
            self._result, state = loop.conclude()
            if recorder is not None:
                recorder.end(self._result, state)
                stored = recorder.kept()
                recorder.close()  # one transaction stores the end and releases the run
                if stored is not None:
                    await stored
        except asyncio.CancelledError:
            loop.halt(RunCancelled("the task that ran it was cancelled"))
            raise
        except BaseException as error:
            # the recorder failed, or the run itself: no node's outcome, so it goes to the caller as
            # it is
            loop.halt(RunCancelled(f"the run broke: {type(error).__name__}: {error}"))
            raise
        finally:
            if watch is not None:
                watch.cancel()
            if BOUNDS.get() is not around:
                BOUNDS.set(around)
            try:
                if loop.pool.working:
                    await loop.stop()
            finally:  # it may be cancelled again meanwhile
                if self._result is None:
                    self._result, _ = loop.conclude()
                try:
                    await loop.close()
                finally:
                    if observers.run_finished is not None:
                        observers.run_finished(self.id, self._result)
        return self._result

    def _bound(self, seconds: float | None) -> asyncio.Task[None] | None:
        """Put the bounds of the run in force. What waits is ended by a task, which is returned;
        what computes, by its looks at the time. A run of Python code without limits has none.
        """
        loop, clock = self._loop, self.services.clock
        if seconds is None and self._grants is None:
            return None
        message = f"the run took more than {seconds} seconds, which is its limit."
        limit = LimitReached(message, id="AX415")

        def reached() -> LimitReached:
            loop.halt(limit)
            return limit

        async def wait(left: float) -> None:
            await clock.sleep(max(0.0, left))
            reached()

        left = None if seconds is None else seconds - self.services.progress.before
        ends = None if left is None else clock.now() + left
        BOUNDS.set(RunBounds(ends, clock.now, reached, loop.scheduler.count_made))
        return None if left is None else asyncio.create_task(wait(left))


def _grants(plan: Plan, options: Options) -> Grants | None:
    """Return what confines a run: the grants of the file that its graph was read from, and what the
    run allows; None: Python code made the graph.
    """
    given: Grants | None = plan.graph.spec.extras.get("grants")
    return given and replace(given, words=given.words | options.allow)


def _recorder(
    run_id: str, plan: Plan, inputs: object, values: Mapping[str, object], options: Options
) -> Recorder | None:
    """Return the recorder of a run; None: it has no journal.

    Raises: JournalError: AX507 a thread without a journal; and others.
    """
    if options.journal is not None:
        return options.journal.recorder(run_id, plan, inputs, values, options)
    if options.thread:
        raise JournalError(
            "a thread is named, but there is no journal.",
            id="AX507",
            hint="Pass a journal: it stores the runs of the thread.",
        )
    return None


def run_sync(doing: Awaitable[T]) -> T:
    """Drive an awaitable to its end on an event loop of its own and return its result.

    Raises: RuntimeError: called from a running event loop; await there instead.
    """
    if _is_running():
        if inspect.iscoroutine(doing):
            doing.close()
        raise RuntimeError(
            "a blocking method was called on a running event loop; "
            "await the async form (run, stream) instead."
        )
    driven = _Driven(doing)
    asyncio.run(driven.result())
    return driven.value


def run_blocking(doing: Coroutine[Any, Any, T]) -> T:
    """Drive a coroutine to its end and return its result, also where an event loop is running: then
    another thread drives it, in a copy of the context, and this one waits. Interrupting this one
    cancels it.
    """
    if not _is_running():
        return run_sync(doing)
    driven = _Driven(doing)
    thread = Thread(target=copy_context().run, args=(driven.drive,), name="axil-invoke")
    thread.start()
    try:
        thread.join()
    except BaseException:
        driven.cancel()
        thread.join()
        raise
    if driven.error is not None:
        raise driven.error
    return driven.value


def _is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _Threads(ThreadPoolExecutor):
    """The threads of ``asyncio.to_thread``; those that still run when the loop ends are not
    awaited.
    """

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=True)


class _Driven:
    """An awaitable on an event loop of its own, and its result."""

    def __init__(self, doing: Awaitable[object]) -> None:
        self._doing = doing
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self.value: Any = None
        self.error: BaseException | None = None

    async def result(self) -> None:
        """Await it; its value would be turned into a text by ``asyncio.run``."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._loop.set_default_executor(_Threads(thread_name_prefix="asyncio"))
        self.value = await self._doing

    def drive(self) -> None:
        """Run its loop in this thread."""
        try:
            asyncio.run(self.result())
        except BaseException as error:  # noqa: BLE001  # the waiting thread raises it
            self.error = error

    def cancel(self) -> None:
        """Cancel it, from another thread."""
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # it is over, and its loop closed
                self._loop.call_soon_threadsafe(self._task.cancel)


class RunLoop:
    """The driver of one run, and the owner of its worker pool."""

    __slots__ = (
        "_begun", "_deciders", "_is_bare", "_is_local", "_most", "_plan",
        "_received", "_recorder", "_started", "_waiter", "_waiters", "limits", "meter",
        "observers", "pool", "scheduler", "services",
    )  # fmt: skip

    def __init__(
        self,
        run_id: str,
        options: Options,
        recorder: Recorder | None,
        root: Machine,
        grants: Grants | None = None,
    ) -> None:
        """
        Args:
            root: what it runs, not started yet.
            grants: those of the file that confine the run; None: it is Python code's.
        """
        hooks = options.hooks
        self.observers = observers = (
            NO_OBSERVERS
            if hooks is None and not options.observers
            else Observers.freeze(hooks, options.observers, run_id)
        )
        deciders = None
        if hooks is not None:  # else none of it is imported
            from axil.contract.decisions import Deciders

            deciders = Deciders(hooks)
        if grants is not None:
            from axil.runtime.unconfined import unconfine_observers, unconfined, unconfined_options

            options, recorder = unconfined_options(options, grants), unconfined(recorder)
            deciders = unconfined(deciders)
            if observers is not NO_OBSERVERS:
                unconfine_observers(observers)
        self._recorder, self._plan, self._deciders = recorder, root.plan, deciders
        kept = None if recorder is None else recorder.limits
        self.limits: Limits = options.limits or kept or root.plan.graph.spec.limits
        self._most = sys.maxsize if (most := self.limits.firings) is None else most
        self.meter = meter_of(self.limits, self.halt)
        known = None if recorder is None else recorder.known
        self.scheduler = Scheduler(
            root,
            known=known,
            records=recorder is not None,
            reports=observers.reports,
            asks_limits=deciders is not None and deciders.has_limits,
        )
        if recorder is not None and known is not None:
            self.meter.usage.firings = recorder.used.get("firings", 0)
            self.meter.restore(recorder.used)
            self.scheduler.cycles.update(recorder.cycles)
        self._started, self._received = observers.firing_started, observers.firing_received
        executor: Executor = options.executor or LocalExecutor(options.threads, run_id)
        self.pool = WorkerPool(self.limits, executor, recorder, self.scheduler, self)
        is_watched = self._started is not None or self._received is not None
        self.pool.announce = self._announce if is_watched else None
        clock: Clock = options.clock or REAL_CLOCK
        progress = Progress(clock, self.meter, self.scheduler.cycles)
        if recorder is not None:
            progress.before = recorder.elapsed
            recorder.follow(progress)
        self.services = RunServices(
            run_id,
            options,
            observers,
            clock,
            self.meter,
            executor,
            self,
            progress,
            recorder,
        )
        if deciders is not None and deciders.has_firings:
            from axil.runtime.decisions import FiringDecisions

            self.pool.decisions = FiringDecisions(run_id, deciders, clock, self.wake)
        self._is_local = type(executor) is LocalExecutor
        self._is_bare = self._is_local and recorder is None
        # awaitables that inline bodies gave, until they are awaited
        self._begun: dict[Task, Awaitable[object]] = {}
        # of bodies that wait for sub-runs
        self._waiters: dict[RunningFrame, asyncio.Future[FrameResult]] = {}
        self._waiter: asyncio.Future[None] | None = None

    # -- the loop

    async def drive(self) -> None:
        """Do what no worker does: the beginning, what a slice was too short for, the end."""
        pool, scheduler = self.pool, self.scheduler
        while pool.broken is None:
            if pool.waiting or pool.returning:
                pool.admit()
            while pool.decisions is not None and pool.decisions.refused:
                self._conclude(*pool.decisions.refused.pop(0))
            if self._work():
                return
            if pool.decisions is not None:
                pool.admit()  # what is held back is asked for when all that is due is known
            if not (scheduler.is_due or pool.is_busy):
                return
            pool.call()
            if scheduler.is_due or (pool.decisions is not None and pool.decisions.refused):
                await asyncio.sleep(0)
                # what is worked out waits for what is written down, now and then
                await self.services.kept()
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
        raise pool.broken

    def _work(self, command: Command | None = None) -> bool:
        """Do ``command``, what follows from it, and all else that is due, for a slice of time;
        return whether the run has ended, or was stopped. ``drive`` does the rest.
        """
        scheduler, pool, usage = self.scheduler, self.pool, self.meter.usage
        started, received = self._started, self._received
        turn_ends, done, has_ended = time.monotonic() + SLICE, 0, False
        while True:
            if command is None:
                command = scheduler.next()
            if scheduler.reports:
                self._report()
            if command is None:
                break
            if type(command) is not Task:
                if type(command) is End:
                    has_ended = True
                    break
                command = self._carry_out(command)
                continue
            task, command = command, None
            if done and time.monotonic() > turn_ends:
                scheduler.put_back(task)
                self.wake()
                break
            done += 1
            if usage.firings >= self._most and not self._is_extended():
                scheduler.put_back(task)
                continue
            usage.firings += 1
            node = task.node
            if not node.quick or pool.decisions is not None:
                pool.put(task)
                continue
            if started is not None:
                started(task.activation, "node")
            if received is not None:
                self._report_inputs(task)
            try:
                out = node.call(task, self._context(task) if node.wants_ctx else None)
            except Pause as pause:
                usage.firings -= 1  # it counts when it goes on
                scheduler.wait(task, pause.questions)
                continue
            except (Exception, SystemExit, GeneratorExit) as error:  # noqa: BLE001
                scheduler.fail(task, as_failure(error))  # a body may raise anything
                continue
            if type(out) is not Out and inspect.isawaitable(out):
                self._begun[task] = out
                pool.put(task)
                continue
            command = scheduler.finish(task, out)
        if has_ended:
            pool.is_closed_to_new = True
            self.wake()
        return has_ended

    def _is_extended(self) -> bool:
        """Ask plugins for further firings; halt without any."""
        message = f"the run fired {self._most} times, which is its limit."
        hint = "Raise limits.firings, or let the run end sooner."
        limit = LimitReached(message, id="AX412", hint=hint)
        more = 0
        try:
            if self._deciders is not None:
                more = cast("int", self._deciders.limit(limit, "firings"))
        except HookFailed as error:
            self.halt(error)
            return False
        if not more:
            self.halt(limit)
        self._most += more
        return self.meter.usage.firings < self._most

    def _decide(self, limit: LimitReached) -> Command | None:
        assert self._deciders is not None  # the scheduler asks where a hook decides about limits
        try:
            return self.scheduler.decide(self._deciders.limit(limit, "cycle") == "exit")
        except HookFailed as error:
            self.halt(error)
            return None

    def _carry_out(self, command: Command) -> Command | None:
        scheduler, recorder = self.scheduler, self._recorder
        if recorder is not None and isinstance(command, (RecordFiring, RecordRound)):
            try:
                recorder.record(command)
            except AxilError as error:  # a value cannot be kept
                scheduler.refuse(error)
                return None
            return scheduler.recorded()
        if isinstance(command, DecideLimit):
            return self._decide(command.limit)
        if type(command) is Return:
            self._return(command)
        elif type(command) is DropBodies:
            self.pool.drop()
        return None

    def _report(self) -> None:
        reports, receivers = self.scheduler.reports, self.observers.receivers
        for kind, activation, node, data in reports:
            if kind == "finished":
                # what an observer does to the payload is not seen elsewhere
                receivers[kind](activation, node, isolate(data))
            elif kind == "sent":
                receivers[kind](activation, edge_payloads(*data))
            elif kind == "failed":
                receivers[kind](activation, node, data)
            else:
                receivers[kind](activation, node)
            if kind == "started":
                self._report_inputs(data)
        reports.clear()

    def _report_inputs(self, task: Task) -> None:
        if self._received is not None:
            self._received(task.activation, edge_payloads(task.owner.plan.graph, task.tokens))

    # -- bodies

    def _context(self, task: Task) -> Context:
        return Context(self.services, task, task.activation)

    def begin(self, task: Task) -> Awaitable[object]:
        """Begin one body."""
        node = task.node
        if task in self._begun:
            return self._begun.pop(task)
        if self._is_bare and node.is_coroutine and not node.wants_ctx:
            return node.call(task, None)
        is_external = self._recorder is not None and node.vertex.effects == "external"
        # awaited as it is, with nothing around it
        is_here = self._is_local and node.is_coroutine and not is_external
        ctx = self._context(task) if node.wants_ctx or not is_here else None
        if ctx is None or is_here:
            return node.call(task, ctx)
        return (
            self.services.execute_once(node.body, task, ctx)
            if is_external
            else self.services.execute(node.body, task, ctx)
        )

    def _announce(self, task: Task) -> None:
        decisions = self.pool.decisions
        if task in self._begun or not (decisions is None or decisions.begins(task)):
            return
        if self._started is not None:
            self._started(task.activation, "node")
        if self._received is not None:
            self._report_inputs(task)

    def take_outcome(self, task: Task, out: object, error: BaseException | None) -> None:
        """Take in the outcome or the error of a body, and do what follows from it."""
        scheduler, command = self.scheduler, None
        if self.services.calls_of_threads:
            self.services.make_calls_of_threads()
        if error is not None:
            self._take_error(task, error)
        else:
            if self.pool.decisions is not None:
                self.pool.decisions.done(task)
            command = scheduler.finish(task, out)
        if command is not None or scheduler.is_due or scheduler.reports:
            self._work(command)

    def _take_error(self, task: Task, error: BaseException) -> None:
        scheduler = self.scheduler
        if isinstance(error, asyncio.CancelledError):
            if scheduler.is_stopped or scheduler.is_dropped(task):
                return
            error = RunCancelled("the body was cancelled from outside")
        if (pause := paused_by(error)) is not None:
            activation = task.activation
            if not scheduler.is_dropped(task):
                self.meter.usage.firings -= 1  # it counts when it goes on
            scheduler.wait(task, self.services.all_asked(activation, pause).questions)
        elif self.pool.decisions is None or not isinstance(error, Exception):
            scheduler.fail(task, error)
        elif not scheduler.is_dropped(task):
            outcome = self.pool.decisions.after_failure(task, error)
            if outcome is not None:
                self._conclude(task, outcome)
                return
            scheduler.try_again(task)
            self.pool.put(task)

    def _conclude(self, task: Task, outcome: Outcome) -> None:
        from axil.contract.decisions import Fail, Replace

        scheduler = self.scheduler
        self._announce(task)
        if self.pool.decisions is not None:
            self.pool.decisions.done(task)
        if isinstance(outcome, Fail):
            scheduler.fail(task, outcome.error)
            return
        out = Out(None, {}, frozenset())
        if isinstance(outcome, Replace):
            out = Out(outcome.output, outcome.writes)
        self._work(scheduler.finish(task, out))

    # -- sub-runs of bodies

    async def enter(self, task: Task, sub: SubRun) -> SubRunResult:
        """Run a plan inside the firing of ``task``, and wait for its result.

        Raises: NodeFailed, Pause: as it ends.
        """
        running = self.scheduler.enter(task, sub)
        waiter = self._waiters[running] = asyncio.get_running_loop().create_future()
        self.pool.leave_room(task)
        try:
            ended = await waiter
        except asyncio.CancelledError:  # nothing waits for it any more
            self.scheduler.drop([running])
            self._work()
            raise
        finally:
            self._waiters.pop(running, None)
            await self.pool.take_room_again(task)
        output = output_of(sub.plan.graph, ended)
        return new_tuple(SubRunResult, (output, Changes(ended.changes), ended.fired))

    def _return(self, command: Return) -> None:
        """Give a sub-run's result to the body that waits for it, if it still does."""
        run, ended, error, questions = command
        waiter = self._waiters.get(run)  # type: ignore[call-overload]  # what ``enter`` gave
        if waiter is None or waiter.done():
            return
        if ended is not None:
            waiter.set_result(ended)
        else:
            waiter.set_exception(Pause(*questions) if error is None else error)

    # -- ends

    def halt(self, why: AxilError) -> None:
        """Start nothing more; from any thread."""
        self.scheduler.stop(why)
        self.pool.is_closed_to_new = True
        self.services.call_in_loop(self.wake)

    def wake(self) -> None:
        """Let ``drive`` look: a worker broke, no body is at work, or there may be room for one."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def stop(self) -> None:
        """Cancel bodies at work, innermost frames first, and wait until they are gone."""
        while self.pool.working:
            await self.pool.cancel_deepest()

    def conclude(self) -> tuple[Result, State]:
        """Return the result of the run and its final state."""
        scheduler = self.scheduler
        ending, ended = scheduler.ending(), scheduler.ended()
        self.meter.usage.seconds = self.services.progress.elapsed
        result = made(
            self.services.run_id,
            self._plan.graph,
            ended,
            ending,
            self.meter.usage,
            scheduler.cycles,
        )
        return result, ended.state

    async def close(self) -> None:
        """Release the threads, the recorder, and all that would outlive the run's users."""
        try:
            await self.pool.close()
        finally:
            if self._recorder is not None:
                self._recorder.close()
            self.services.is_closed = True
            self.services.subs = _EndedRun()
            self.scheduler.close()
            self.meter.close()


class _EndedRun:
    """The host of bodies that could not be stopped when their run ended."""

    async def enter(self, task: Task, sub: SubRun) -> SubRunResult:
        raise RunCancelled("the run has ended")
