"""Run engine: starts queued runs, unloads waiting ones, reloads them on an answer or timer,
recovers them after a crash.

Theory of operation
-------------------
The journal holds a run; a ``ManagedRun`` only executes it. An engine accepts a run by storing its
header. From then on the run is in one of three states:

* *queued*: its id is in a queue, until the number of loaded runs is below the limit;
* *loaded*: a ``ManagedRun`` executes it in a task of its own;
* *unloaded*: the engine keeps nothing of it, but for the time at which it goes on, if there is one.

A run that asks a person ends as paused and is unloaded. A run all of whose bodies sleep is paused
at these sleeps (``SuspendingClock``) and is unloaded, too: the journal has the ends of the sleeps
by the wall clock. An answer is an entry in the journal; then the run is queued again. So is a run
whose time has come (``TimerQueue``).

What the engine says it did (started, answered, cancelled) was stored before it said so. So after a
crash nothing has to be repeated by hand: ``recover`` reads the journal and queues what is open. Two
engines may use one journal: the journal admits one of them to a run at a time (AX506).

What must stay true:

* A run that is changed while it is not loaded is changed under its lock, and a locked run is not
  loaded. Who releases the lock calls ``_load_queued``, whatever happened.
* A run that is queued or loaded has no timer.
* ``list`` and ``get`` read the journal: of a run that is not loaded, nothing else is known.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

from axil import MemoryJournal, Result, Workflow
from axil.driver import (
    Clock,
    Entry,
    Journal,
    RealClock,
    ReplayIndex,
    RunInfo,
    RunInput,
    accept_answers,
    decode_value,
    encode_value,
    snapshot,
)
from axil.plugin import EngineError, JournalError, RunError
from axil_engine.clock import SuspendingClock
from axil_engine.managed import ManagedRun
from axil_engine.protocol import RunStatus
from axil_engine.status import due_in, due_of, recoveries_without_progress, status_of
from axil_engine.timers import TimerQueue

log = logging.getLogger("axil_engine")

PATIENCE_SECONDS = 5.0
"""The seconds that all bodies of a run have to sleep before the run is unloaded."""
RECHECK_SECONDS = 30.0
"""Seconds between two looks for runs that another process left open."""
MAX_RECOVERIES = 5
"""Recoveries without progress before a run is left for a person to look at."""

Waiters = deque[asyncio.Future[Result]]
Find = Callable[[Mapping[str, Any]], Workflow]
"""From the header of a run (``graph``, ``digest``, ``origin``) to its workflow."""


class LocalEngine:
    """An engine in this process, on one event loop, for the runs of one journal.

        async with LocalEngine(SqliteJournal(".axil"), [letters]) as engine:
            run_id = await engine.start(letters, {"to": "Ada"})
            result = await engine.result(run_id)

    Entering it recovers the runs that an earlier process left open.
    """

    def __init__(
        self,
        journal: Journal | None = None,
        workflows: Iterable[Workflow] = (),
        *,
        find: Find | None = None,
        loaded: int = 100,
        patience_seconds: float = PATIENCE_SECONDS,
        **options: Any,
    ) -> None:
        """Store the settings; nothing is read or started before ``async with``.

        Args:
            journal: None: one in memory.
            workflows: those whose runs may be recovered; the engine also knows those of ``start``.
            find: returns the workflow of a run where it is none of these. If it raises, the run
                is not recovered.
            loaded: how many runs may be loaded at the same time.
            patience_seconds: how long all bodies of a run have to sleep before it is unloaded.
            options: for all runs, as of ``axil.Options``: ``deps``, ``channel``, ``clock``,
                ``observers``, ``limits``, ``executor`` …
        """
        self.journal: Journal = MemoryJournal() if journal is None else journal
        self.max_loaded, self.patience_seconds = loaded, patience_seconds
        self._options, self._find = options, find
        self._clock: Clock = options.pop("clock", None) or RealClock()
        self._workflows = {workflow.plan.graph.digest: workflow for workflow in workflows}
        self._entered = AsyncExitStack()  # workflows whose components are provisioned
        self._provisioned: set[str] = set()  # their digests
        self._queue: dict[str, None] = {}  # in order
        self._loaded: dict[str, _Loaded] = {}
        self._timers = TimerQueue(self._clock)
        self._examined: dict[str, float] = {}  # open runs of others: when each changed last
        self._waiters: dict[str, Waiters] = {}
        self._reports: set[asyncio.Task[None]] = set()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._changed, self._closing = asyncio.Event(), asyncio.Lock()
        self._background: list[asyncio.Task[None]] = []
        self._is_closed = True

    async def __aenter__(self) -> LocalEngine:
        self._is_closed = False
        self.recover()
        self._background = [
            asyncio.create_task(self._watch_timers()),
            asyncio.create_task(self._recheck()),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -------------------------------------------------------------------------- the protocol

    async def start(
        self,
        workflow: Workflow,
        input: RunInput = None,
        attributes: Mapping[str, Any] | None = None,
        *,
        run_id: str = "",
        thread: str = "",
        origin: Mapping[str, Any] | None = None,
    ) -> str:
        """Store a new run and return its id; see ``Engine``.

        Raises: EngineError (AX540); JournalError: AX504, AX505, AX508, AX509; StateError.
        """
        self._check_open()
        self._workflows.setdefault(workflow.plan.graph.digest, workflow)
        async with self._locked(run_id) if run_id else nullcontext():  # two may start it at once
            options = self._run_options(run_id, thread=thread, origin=origin or {})
            run = workflow.begun(ManagedRun, input, attributes, options)
            if run.id not in self._loaded and await run.submit():
                self._enqueue(run.id)
        return run.id

    def list(self) -> Sequence[RunInfo]:
        """Return the runs of the journal; see ``Engine``."""
        return [self._with_live_status(info) for info in self.journal.runs()]

    def get(self, run_id: str) -> RunStatus:
        """Return the status of a run; see ``Engine``. Raises: JournalError (AX503)."""
        info = next((info for info in self.journal.runs() if info.run_id == run_id), None)
        if info is None:
            raise _unknown_run(run_id)
        replay = ReplayIndex(self.journal.entries(run_id))
        return status_of(self._with_live_status(info), replay)

    async def answer(self, run_id: str, answers: Mapping[str, Any]) -> None:
        """Store answers and resume the run; see ``Engine``.

        Raises: EngineError: AX540, AX541; JournalError: AX503; AX506: another process has the run
            loaded; AX522: the deadline has passed.
        """
        self._check_open()
        async with self._locked(run_id):
            replay = self._recorded(run_id)
            for id in answers:
                _check_answerable(run_id, id, replay)
            accept_answers(replay, answers, self._clock)
            entries = [_answer_entry(id, answer) for id, answer in answers.items()]
            loaded = self._loaded.get(run_id)
            if loaded is not None and await loaded.run.take(entries):
                return
            if loaded is not None:  # it has ended, and is about to be unloaded
                await asyncio.wait({loaded.task})
            await self._append(run_id, entries)
            self._enqueue(run_id)

    async def cancel(self, run_id: str, reason: str = "cancelled") -> None:
        """End a run, whatever its status; see ``Engine``. Raises: JournalError (AX503, AX506)."""
        async with self._locked(run_id):
            if (loaded := self._loaded.get(run_id)) is not None:
                loaded.run.cancel(reason)
                if not loaded.run.has_begun:  # its components may never be provisioned
                    loaded.task.cancel()
                await asyncio.wait({loaded.task})  # it may have paused meanwhile
            ended = self._recorded(run_id).ended
            if ended is None or ended.data["status"] == "paused":
                data = {"status": "cancelled", "error": reason}
                await self._append(run_id, [Entry("ended", data=data)])
                self._timers.drop(run_id)
            self._queue.pop(run_id, None)  # not before: if the journal refuses, the run goes on
        await self._resolve_ended(run_id)

    async def resume(self, run_id: str) -> None:
        """Queue a run that is not done and not loaded here; see ``Engine``.

        Raises: JournalError (AX503); EngineError: AX540, AX542.
        """
        self._check_open()
        replay = self._recorded(run_id)
        self._workflow_of(replay)
        is_done = replay.ended is not None and replay.ended.data["status"] == "done"
        if run_id not in self._loaded and not is_done:
            self._enqueue(run_id)

    async def result(self, run_id: str) -> Result:
        """Wait until a run has ended, and return its result; see ``Engine``.

        Raises: JournalError: AX503, and what the journal refused meanwhile; EngineError (AX540):
            the engine was closed meanwhile.
        """
        is_open = run_id in self._loaded or run_id in self._queue
        if not is_open and (result := await self._ended_result(run_id)) is not None:
            return result
        self._check_open()
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(run_id, deque()).append(waiter)
        return await waiter

    async def close(self, *, grace_seconds: float = 0.0) -> None:
        """Stop all runs; see ``Engine``.

        Args:
            grace_seconds: how long loaded runs may take to end before they are interrupted.
        """
        self._is_closed = True
        async with self._closing:  # a second call waits, and finishes what a cancelled one left
            self._queue.clear()
            tasks = {loaded.task for loaded in self._loaded.values()}
            if tasks and grace_seconds:
                await self._wait_for(tasks, grace_seconds)
            for task in (*tasks, *self._background):
                task.cancel()
            await asyncio.gather(*tasks, *self._background, return_exceptions=True)
            await asyncio.gather(*self._reports)
            for waiters in self._waiters.values():
                _resolve(waiters, _closed())
            self._waiters.clear()
            await self._entered.aclose()
            self._provisioned, self._examined = set(), {}

    async def _wait_for(self, tasks: Iterable[asyncio.Task[Result]], seconds: float) -> None:
        grace = asyncio.ensure_future(self._clock.sleep(seconds))
        self._background.append(grace)
        while not grace.done() and (left := {task for task in tasks if not task.done()}):
            await asyncio.wait({grace, *left}, return_when=asyncio.FIRST_COMPLETED)

    async def idle(self) -> None:
        """Wait until no run is loaded or queued: each has ended, or waits for an answer or time."""
        while self._loaded or self._queue:
            self._changed.clear()
            await self._changed.wait()

    @property
    def loaded(self) -> int:
        """The number of loaded runs."""
        return len(self._loaded)

    # ------------------------------------------------------------------ loading and unloading

    def _run_options(self, run_id: str, **more: Any) -> dict[str, Any]:
        own = {"clock": self._clock, "journal": self.journal, "run_id": run_id}
        return {**self._options, **own, **more}

    def _enqueue(self, run_id: str) -> None:
        self._timers.drop(run_id)
        self._queue[run_id] = None
        self._load_queued()

    def _load_queued(self) -> None:
        """Load queued runs, as many as there is room for."""
        self._changed.set()
        for run_id in list(self._queue):
            if len(self._loaded) >= self.max_loaded or self._is_closed:
                return
            lock = self._locks.get(run_id)
            if run_id in self._loaded or (lock is not None and lock.locked()):
                continue  # this is called again when it is unloaded, or the lock released
            del self._queue[run_id]
            try:
                self._load(run_id)
            # A workflow that is not found, or does not compile, concerns the runs of it alone.
            except Exception as error:  # noqa: BLE001  # ``find`` may raise anything
                self._report_interrupted(run_id, error)
                self._changed.set()

    def _load(self, run_id: str) -> None:
        workflow = self._workflow_of(self._recorded(run_id))
        clock = SuspendingClock(self._clock, self.patience_seconds)
        options = {**self._run_options(run_id), "clock": clock, "resuming": True}
        run = clock.run = workflow.begun(ManagedRun, None, None, options)
        task = asyncio.create_task(self._execute(workflow, run))
        self._loaded[run_id] = _Loaded(run, task)
        task.add_done_callback(lambda task: self._unload(run, task))

    async def _execute(self, workflow: Workflow, run: ManagedRun) -> Result:
        digest = workflow.plan.graph.digest
        if digest not in self._provisioned:
            async with workflow:  # runs that are loaded while it provisions wait here, too
                if digest not in self._provisioned:
                    self._provisioned.add(digest)
                    await self._entered.enter_async_context(workflow)  # until the engine closes
        return await run.result()

    def _unload(self, run: ManagedRun, task: asyncio.Task[Result]) -> None:
        """Remove a run that has ended, paused or broken; keep the time at which it goes on."""
        del self._loaded[run.id]
        if task.cancelled():
            pass
        elif (error := task.exception()) is not None:
            self._report_interrupted(run.id, error)
        elif (result := task.result()).status != "paused":
            _resolve(self._waiters.pop(run.id, ()), result)
        elif run.is_answered(result.questions):
            self._queue[run.id] = None
        else:
            dues = (due_in(question.plain()) for question in result.questions)
            if (due := min((due for due in dues if due is not None), default=None)) is not None:
                self._timers.put(run.id, due)
        self._load_queued()

    def _report_interrupted(self, run_id: str, error: BaseException) -> None:
        log.error("run %s was interrupted: %s", run_id, error)
        if waiters := self._waiters.pop(run_id, None):
            report = asyncio.create_task(self._resolve_interrupted(run_id, waiters, error))
            self._reports.add(report)
            report.add_done_callback(self._reports.discard)

    async def _resolve_interrupted(
        self,
        run_id: str,
        waiters: Waiters,
        error: BaseException,
    ) -> None:
        """Resolve pending ``result`` calls: with the other process's result if it finished the run
        (AX506), else with ``error``."""
        result: Result | None = None
        if isinstance(error, JournalError) and error.id == "AX506":
            with suppress(Exception):  # then ``error`` is all that is known
                result = await self._ended_result(run_id)
        _resolve(waiters, error if result is None else result)

    async def _watch_timers(self) -> None:
        """Queue runs whose time has come."""
        while True:
            for run_id in await self._timers.due():
                self._enqueue(run_id)

    async def _recheck(self) -> None:
        """Look now and then for runs that other processes left open, or ended."""
        while True:
            await asyncio.sleep(RECHECK_SECONDS)  # real time: other processes do not know the clock
            try:
                self.recover()
                for run_id in self._waiters.keys() - self._loaded.keys():
                    await self._resolve_ended(run_id)
            except Exception:  # a journal that fails now may work the next time
                log.exception("looking for runs that were left open failed")

    def recover(self) -> None:
        """Queue interrupted runs of the journal, and set the timers of paused ones.

        Cost: O(runs), and reading those that changed since the last call.
        """
        for info in reversed(self.journal.runs()):
            run_id = info.run_id
            if info.status not in ("open", "paused") or self._has(run_id):
                continue
            if self._examined.get(run_id) == info.touched:
                continue
            self._examined[run_id] = info.touched
            try:
                self._recover(run_id)
            except Exception as error:  # noqa: BLE001  # ``find`` may raise anything
                log.warning("run %s is not recovered: %s", run_id, error)
        self._load_queued()

    def _recover(self, run_id: str) -> None:
        entries = list(self.journal.entries(run_id))
        replay = ReplayIndex(entries)
        self._workflow_of(replay)
        if (times := recoveries_without_progress(entries)) >= MAX_RECOVERIES:
            message = f'the run "{run_id}" was recovered {times} times without progress.'
            hint = "Find out what interrupts it; then resume or cancel it."
            raise EngineError(message, id="AX543", hint=hint)
        if replay.ended is None:
            self._queue[run_id] = None
        elif (due := due_of(replay)) is not None:
            self._timers.put(run_id, due)

    # ------------------------------------------------------------------ reading and writing

    def _check_open(self) -> None:
        if self._is_closed:
            raise _closed()

    def _has(self, run_id: str) -> bool:
        return run_id in self._queue or run_id in self._loaded or run_id in self._timers

    @asynccontextmanager
    async def _locked(self, run_id: str) -> AsyncGenerator[None]:
        """Hold the lock of a run, so that it is not loaded meanwhile; then load what is queued."""
        try:
            async with self._locks.setdefault(run_id, asyncio.Lock()):
                yield
        finally:
            self._load_queued()

    def _recorded(self, run_id: str) -> ReplayIndex:
        replay = ReplayIndex(self.journal.entries(run_id))
        if replay.header is None:
            raise _unknown_run(run_id)
        return replay

    def _workflow_of(self, replay: ReplayIndex) -> Workflow:
        assert replay.header is not None
        header = replay.header.data
        found = self._workflows.get(header["digest"])
        if found is None and self._find is not None:
            found = self._find({**header, "origin": decode_value(header.get("origin", {}))})
            self._workflows[header["digest"]] = found
        if found is None:
            name = header.get("graph", "")
            message = f'the engine has no workflow "{name}" in the version that the run began with.'
            hint = "Pass this workflow to the engine, or a function `find` that returns it."
            raise EngineError(message, id="AX542", hint=hint)
        return found

    def _with_live_status(self, info: RunInfo) -> RunInfo:
        if info.run_id in self._loaded:
            return replace(info, status="running")
        return replace(info, status="queued") if info.run_id in self._queue else info

    async def _append(self, run_id: str, entries: Iterable[Entry]) -> None:
        """Append to the record of a run that is not loaded, and wait until it is stored."""
        writer = self.journal.open(run_id)
        try:
            for entry in entries:
                writer.append(entry)
            if (stored := writer.kept()) is not None:
                await stored
        finally:
            writer.close()

    async def _resolve_ended(self, run_id: str) -> None:
        """Resolve pending ``result`` calls of a run that ended elsewhere, or was cancelled."""
        if run_id not in self._waiters or run_id in self._queue:
            return
        if (result := await self._ended_result(run_id)) is not None:
            _resolve(self._waiters.pop(run_id, ()), result)

    async def _ended_result(self, run_id: str) -> Result | None:
        """Return the result of a run from its journal; None: it has not ended."""
        entries = list(self.journal.entries(run_id))
        replay = ReplayIndex(entries)
        if replay.header is None:
            raise _unknown_run(run_id)
        if replay.ended is None or replay.ended.data["status"] == "paused":
            return None
        recorded = replay.ended.data
        stood = await snapshot(self._workflow_of(replay), entries)
        result = replace(stood.result, run_id=run_id)
        if recorded["status"] == "done":
            return result
        error = RunError(str(recorded.get("error") or recorded["status"]), id="AX400")
        return replace(result, status=recorded["status"], questions=(), error=error, output=None)


@dataclass(slots=True)
class _Loaded:
    """A loaded run and the task that executes it."""

    run: ManagedRun
    task: asyncio.Task[Result]


def _resolve(waiters: Iterable[asyncio.Future[Result]], outcome: Result | BaseException) -> None:
    for waiter in waiters:
        if waiter.done():
            continue
        if isinstance(outcome, Result):
            waiter.set_result(outcome)
        else:
            waiter.set_exception(outcome)


def _check_answerable(run_id: str, question: str, replay: ReplayIndex) -> None:
    if question not in replay.asked:
        message = f'the run "{run_id}" does not ask "{question}".'
        raise EngineError(message, id="AX541", hint="See its open questions with `get`.")
    if question in replay.answers:
        message = f'the question "{question}" of the run "{run_id}" was answered before.'
        raise EngineError(message, id="AX541", hint="The first answer counts.")


def _answer_entry(question: str, answer: Any) -> Entry:
    return Entry("answer", data={"id": question, "value": encode_value(answer)})


def _unknown_run(run_id: str) -> JournalError:
    message = f'the journal knows no run "{run_id}".'
    return JournalError(message, id="AX503", hint="See the runs that it knows with `list`.")


def _closed() -> EngineError:
    hint = "Enter it with `async with`; its runs are in the journal."
    return EngineError("the engine is closed.", id="AX540", hint=hint)


__all__ = ["LocalEngine"]
