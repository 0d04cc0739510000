"""The driver of one run on an event loop: commands of the scheduler become deeds, and deeds become
its events.

An inline body costs a call; an async body costs a task if it waits (see ``pool``); a thread body a
thread. Whatever learns how a body ended works on until nothing is due; ``drive`` does what is left
over, and the end.

Outcomes are recorded in the order in which they take effect, and bodies whose effects could be
noticed outside start only when all before them is safe (see ``recorder``).
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, cast

from axil.contract.context import Clock, Context, Executor, SubRunResult
from axil.contract.observers import NO_OBSERVERS, Observers, edge_payloads
from axil.errors import AxilError, HookFailed, LimitReached, RunCancelled
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
from axil.kernel.machine import Machine
from axil.kernel.outcomes import FrameResult, output_of
from axil.kernel.plan import Plan
from axil.kernel.scheduler import RunningFrame, Scheduler
from axil.kernel.state import State
from axil.kernel.tokens import Changes, Out, Task
from axil.kernel.values import isolate
from axil.runtime.pool import SLICE, LocalExecutor, WorkerPool, as_failure
from axil.runtime.recorder import Progress, Recorder
from axil.runtime.result import Options, Result, made
from axil.runtime.services import REAL_CLOCK, Pause, RunServices, paused_by
from axil.spec.graph import Limits

if TYPE_CHECKING:
    from axil.contract.decisions import Deciders, Outcome


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
    ) -> None:
        """``recorder``: what records the run, and knows what is not done again; ``root``: what it
        runs, not started yet.
        """
        self._recorder, self._plan = recorder, root.plan
        self.limits: Limits = options.limits or root.plan.graph.spec.limits
        most = self.limits.firings
        self._most = sys.maxsize if most is None else most
        self.meter = options.begin_meter(self.limits, self.halt)
        hooks = options.hooks
        self.observers = observers = (
            NO_OBSERVERS
            if hooks is None and not options.observers
            else Observers.freeze(hooks, options.observers, run_id)
        )
        known = None if recorder is None else recorder.known
        self._deciders = deciders = None if hooks is None else _deciders(hooks)
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
            from axil.runtime.gate import Gate

            self.pool.gate = Gate(run_id, deciders, clock, self.wake)
        self._is_local = type(executor) is LocalExecutor
        self._is_bare = self._is_local and recorder is None
        # awaitables that inline bodies gave, until they are awaited
        self._begun: dict[Task, Awaitable[Any]] = {}
        # of bodies that wait for sub-runs
        self._waiters: dict[RunningFrame, asyncio.Future[FrameResult]] = {}
        self._waiter: asyncio.Future[None] | None = None

    # ------------------------------------------------------------------ the loop

    async def drive(self) -> None:
        """See to what no worker does: the beginning, what a slice of time did not suffice for, and
        the end.
        """
        pool, scheduler = self.pool, self.scheduler
        while pool.broken is None:
            if pool.waiting or pool.returning:
                pool.admit()
            while pool.refused:
                self._conclude(*pool.refused.pop(0))
            if self._work():
                return
            if pool.gate is not None:
                pool.admit()  # what the gate holds back is asked for when all that is due is known
            if not (scheduler.is_due or pool.is_busy):
                return
            pool.call()
            if scheduler.is_due or pool.refused:
                await asyncio.sleep(0)
                # what is worked out waits for what is written down, now and then
                await self.services.kept()
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
        raise pool.broken

    def _work(self, command: Command | None = None) -> bool:
        """Do ``command``, what follows from it, and all else that is due, for a slice of time at
        most; return whether the run has ended, or was stopped. What is left is for ``drive``.
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
            if not node.quick or pool.gate is not None:
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
        """Ask plugins for further firings; return whether there are some. Without any, halt."""
        message = f"the run fired {self._most} times, which is its limit."
        limit = LimitReached(message, id="AX412")
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
        """Ask plugins what becomes of a cycle's limit."""
        assert self._deciders is not None  # the scheduler asks where a hook decides about limits
        try:
            return self.scheduler.decide(self._deciders.limit(limit, "cycle") == "exit")
        except HookFailed as error:
            self.halt(error)
            return None

    def _carry_out(self, command: Command) -> Command | None:
        """Do a command that starts no body; return what follows."""
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
        """Tell observers what has happened."""
        reports, heard = self.scheduler.reports, self.observers.heard
        for kind, activation, node, data in reports:
            if kind == "finished":
                # what an observer does to the payload is not seen elsewhere
                heard[kind](activation, node, isolate(data))
            elif kind == "sent":
                heard[kind](activation, edge_payloads(*data))
            elif kind == "failed":
                heard[kind](activation, node, data)
            else:
                heard[kind](activation, node)
            if kind == "started":
                self._report_inputs(data)
        reports.clear()

    def _report_inputs(self, task: Task) -> None:
        """Tell observers what a firing begins with."""
        if self._received is not None:
            plan: Plan = task.owner.plan
            self._received(task.activation, edge_payloads(plan.graph, task.tokens))

    # ------------------------------------------------------------------ bodies

    def _context(self, task: Task) -> Context:
        return Context(self.services, task, task.activation)

    def begin(self, task: Task) -> Awaitable[Any]:
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
        gate = self.pool.gate
        if task in self._begun or not (gate is None or gate.begins(task)):
            return
        if self._started is not None:
            self._started(task.activation, "node")
        if self._received is not None:
            self._report_inputs(task)

    def hear(self, task: Task, out: Any, error: BaseException | None) -> None:
        """Take in the outcome or the error of a body, and do what follows from it."""
        scheduler, command = self.scheduler, None
        if self.services.from_afar:
            self.services.catch_up()
        if error is not None:
            self._hear_error(task, error)
        else:
            if self.pool.gate is not None:
                self.pool.gate.done(task)
            command = scheduler.finish(task, out)
        if command is not None or scheduler.is_due or scheduler.reports:
            self._work(command)

    def _hear_error(self, task: Task, error: BaseException) -> None:
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
        elif self.pool.gate is None or not isinstance(error, Exception):
            scheduler.fail(task, error)
        elif not scheduler.is_dropped(task):
            outcome = self.pool.gate.after_failure(task, error)
            if outcome is not None:
                self._conclude(task, outcome)
                return
            scheduler.try_again(task)
            self.pool.put(task)

    def _conclude(self, task: Task, outcome: Outcome) -> None:
        """Take in the outcome that a plugin decided on for a firing."""
        from axil.contract.decisions import Fail, Replace

        scheduler = self.scheduler
        self._announce(task)
        if self.pool.gate is not None:
            self.pool.gate.done(task)
        if isinstance(outcome, Fail):
            scheduler.fail(task, outcome.error)
            return
        out = Out(None, {}, frozenset())
        if isinstance(outcome, Replace):
            out = Out(outcome.output, outcome.writes)
        self._work(scheduler.finish(task, out))

    # ------------------------------------------------------------------ sub-runs of bodies

    async def enter(self, task: Task, sub: SubRun) -> SubRunResult:
        """Run a plan inside the firing of ``task``, and wait for what it comes to.

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
        return SubRunResult(output_of(sub.plan.graph, ended), Changes(ended.changes), ended.fired)

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

    # ------------------------------------------------------------------ ends

    def halt(self, why: AxilError) -> None:
        """Start nothing more; from any thread."""
        self.scheduler.stop(why)
        self.pool.is_closed_to_new = True
        self.services.at_home(self.wake)

    def wake(self) -> None:
        """See to what no worker does: one has broken, no body is at work any more, or there may be
        room for those that wait for it.
        """
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def stop(self) -> None:
        """Cancel bodies at work, innermost frames first, and wait until they are gone."""
        while self.pool.working:
            await self.pool.cancel_deepest()

    def conclude(self) -> tuple[Result, State]:
        """Return the result of the run and the state that it leaves."""
        scheduler = self.scheduler
        ending, ended = scheduler.ending(), scheduler.ended()
        self.meter.usage.seconds = self.services.elapsed
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
        """Release the threads, the recorder, and all else that would hold the finished run longer
        than its users do.
        """
        try:
            await self.pool.close()
        finally:
            if self._recorder is not None:
                self._recorder.close()
            self.services.is_closed = True
            self.services.subs = _Over()
            self.scheduler.close()
            self.meter.close()


def _deciders(hooks: Any) -> Deciders:
    """Return what hooks decide. Without hooks none of it is imported."""
    from axil.contract.decisions import Deciders

    return Deciders(hooks)


class _Over:
    """The host that a finished run offers to bodies that could not be stopped."""

    async def enter(self, task: Task, sub: SubRun) -> SubRunResult:
        raise RunCancelled("the run has ended")
