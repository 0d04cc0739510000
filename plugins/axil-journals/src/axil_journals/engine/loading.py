"""Loading a run from a shared journal: its record, its mail, and its execution until it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from inspect import signature
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from axil import ConfigError, Context, Options, Problem, Result, Workflow
from axil.driver import Clock, Executor, LocalExecutor, RealClock, wall_time
from axil.plugin import (
    Body,
    EngineError,
    JournalError,
    Plan,
    Task,
    did_you_mean,
    format_names,
)
from axil_journals.deadlines import accept_answers
from axil_journals.engine.clock import SuspendingClock
from axil_journals.engine.filing import FilingWriter
from axil_journals.engine.managed import ManagedRun
from axil_journals.engine.status import NO_PROGRESS, PARKED, recoveries_without_progress
from axil_journals.journal import (
    Entry,
    JournalWriter,
    RunMail,
    SharedJournal,
    claimed_error,
    first_due,
    unknown_error,
)
from axil_journals.objects import RunFolderObjects, list_of
from axil_journals.queues import Place, place_of
from axil_journals.recorder import Recording
from axil_journals.replay import ReplayIndex

P = ParamSpec("P")
T = TypeVar("T")
OfRun = TypeVar("OfRun", bound="_OfRun")

PATIENCE_SECONDS = 5.0
RECHECK_SECONDS = 5.0
MAX_RECOVERIES = 5
"""Recoveries without progress before a run is left for a person to resume."""
TRIAL_SECONDS = 0.1
"""Real time after which the next lost runs begin beside some that may be beside others."""
_MOST_BESIDE = 2
"""Recoveries without progress after which a run is executed alone."""
_THREADS = 8
_SETTLED = 8  # callers that are resumed in one turn of the loop


async def off_loop(
    journal: SharedJournal, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a method of a journal, in a thread if the journal waits for a disk or a network: a slow
    one then delays no other run.
    """
    if not journal.blocking:
        return call(*args, **kwargs)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads(), partial(call, *args, **kwargs))


@cache
def _threads() -> ThreadPoolExecutor:
    """Return threads of their own: those of bodies may all be busy."""
    return ThreadPoolExecutor(_THREADS, "axil-journal")


class _OfRun(Protocol):
    @property
    def run_id(self) -> str: ...


class Gathered(Generic[OfRun]):
    """A method of a journal that reads for many runs at once, called for one run at a time.

    While a call is under way, callers gather; the next call reads for all of them.
    """

    def __init__(
        self, journal: SharedJournal, read: Callable[[Collection[str]], Iterable[OfRun]]
    ) -> None:
        self._journal, self._read = journal, read
        self._asked: list[tuple[str, asyncio.Future[list[OfRun]]]] = []
        self._reading: asyncio.Task[None] | None = None

    async def of(self, run_id: str) -> Sequence[OfRun]:
        """Return what the journal has for a run, read after this call began."""
        if not self._journal.blocking:
            return list(self._read([run_id]))
        waiter: asyncio.Future[list[OfRun]] = asyncio.get_running_loop().create_future()
        self._asked.append((run_id, waiter))
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._work())
        return await waiter

    async def settle(self) -> None:
        """Wait until no call is under way, which may have outlived its callers."""
        if self._reading is not None:
            await asyncio.wait({self._reading})

    async def _work(self) -> None:
        while self._asked:
            asked, self._asked = self._asked, []
            found: dict[str, list[OfRun]] = {run_id: [] for run_id, _ in asked}
            fault: Exception | None = None
            try:
                for each in await off_loop(self._journal, self._read, list(found)):
                    found[each.run_id].append(each)
            except Exception as error:  # noqa: BLE001  # the callers get it
                fault = error
            for number, (run_id, waiter) in enumerate(asked, 1):
                if waiter.done():  # its caller was cancelled
                    continue
                if fault is None:
                    waiter.set_result(found[run_id])
                else:
                    waiter.set_exception(fault)
                if number % _SETTLED == 0:  # other work of the loop has its turn, too
                    await asyncio.sleep(0)


Mail = Gathered[RunMail]


class LastingExecutor:
    """An executor of many runs: a run that ends does not close it, its engine does."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def check(self, plan: Plan) -> None:
        given: Any = self._executor
        if hasattr(given, "check"):
            given.check(plan)

    async def execute(self, body: Body, task: Task, ctx: Context) -> Any:
        return await self._executor.execute(body, task, ctx)

    async def close(self) -> None:
        """Keep what was acquired for the next run."""

    async def end(self) -> None:
        """Release what was acquired."""
        await self._executor.close()


def lasting_executor(options: dict[str, Any]) -> LastingExecutor | None:
    """Replace the executor in the options of all runs by one that lasts, and return it; that of the
    event loop has nothing to keep.
    """
    given = options.get("executor")
    if given is None or type(given) is LocalExecutor:
        return None
    options["executor"] = lasting = LastingExecutor(given)
    return lasting


_OF_ONE_RUN = frozenset(["run_id", "resuming", "journal", "thread", "origin", "pins", "answers"])
"""The fields of ``axil.Options`` that are no options of all runs of an engine."""


def check_run_options(options: Mapping[str, Any], *makers: type[object]) -> None:
    """Check the options that an engine has for all its runs.

    Args:
        makers: the class that takes them, and those that it gives others to.
    Raises: ConfigError: AX130: it takes no such option, AX136; TypeError: one has a wrong value.
    """
    known = {field.name for field in fields(Options)} - _OF_ONE_RUN
    known |= {name for each in makers for name in signature(each).parameters} - {"options"}
    for name in options:
        if name not in known:
            hint = did_you_mean(name, known) or f"It takes {format_names(sorted(known), 40)}."
            message = f'{makers[0].__name__} takes no "{name}".'
            raise ConfigError(Problem("AX130", "", message, hint))
    of_runs = Options.__dataclass_fields__.keys() & options.keys()
    Options(**{name: options[name] for name in of_runs})


class OpenedJournal(Recording):
    """A journal for one run, with what the run reads when it is made already read."""

    def __init__(self, journal: SharedJournal, run_id: str, thread: str = "") -> None:
        self._journal, self._run_id = journal, run_id
        self.writer: JournalWriter = journal.open(run_id)
        self._thread, self._runs = thread, tuple(journal.thread(thread)) if thread else ()
        self._records: dict[str, Sequence[Entry]] = {}
        for each in reversed(self._runs):  # back to the state with which the next run begins
            self._records[each] = entries = list(journal.entries(each))
            ended = ReplayIndex(entries).ended
            if ended is not None and ended.data["status"] == "done":
                break

    def open(self, run_id: str) -> JournalWriter:
        return self.writer if run_id == self._run_id else self._journal.open(run_id)

    def entries(self, run_id: str) -> Sequence[Entry]:
        found = self._records.get(run_id)
        return list(self._journal.entries(run_id)) if found is None else found

    def thread(self, name: str) -> Sequence[str]:
        return self._runs if name == self._thread else self._journal.thread(name)


class PlacingWriter:
    """The writer of a run whose header gets the place in which the run waits."""

    def __init__(self, writer: JournalWriter, place: Place) -> None:
        self._append, self._place = writer.append, place
        self.entries, self.kept, self.close = writer.entries, writer.kept, writer.close

    def append(self, entry: Entry) -> None:
        if entry.kind == "run" and (data := self._place.data()):
            entry = replace(entry, data={**entry.data, "place": data})
        self._append(entry)


class BusyError(Exception):
    """A lost run has to be the only one that its engine executes, and it is not."""

    def __init__(self, seen: int) -> None:
        """``seen``: the number of its entries."""
        super().__init__(seen)
        self.seen = seen


class Trial:
    """The execution of a lost run, from its resumption to the first progress that is stored; it is
    the writer of the run.

    A run that was begun or resumed at most twice since its last progress may be executed beside
    others: processes die of many reasons. One that was lost again before any progress is executed
    with no other run in the engine, and this is recorded: if the process dies again, it was this
    run. After ``MAX_RECOVERIES`` of these it is parked.
    """

    def __init__(
        self,
        run_id: str,
        is_idle: bool,
        on_progress: Callable[[], object] = bool,
        *,
        seen: int | None = None,
    ) -> None:
        """Store what is known.

        Args:
            is_idle: the engine executes no other run.
            seen: the number of its entries when it was found that it has to be alone.
        """
        self.run_id, self.is_idle, self._on_progress = run_id, is_idle, on_progress
        self._seen = seen
        self.is_alone = False
        self.parked = ""
        """The reason why it was parked; empty: it was not."""
        self._reporting: asyncio.Task[None] | None = None

    def parked_entry(self, entries: Sequence[Entry]) -> Entry | None:
        """Return the entry that parks the run; None: it is tried.

        Raises: BusyError; JournalError (AX506): others had it meanwhile.
        """
        if self._seen is not None and self._seen != len(entries):
            raise claimed_error(self.run_id, "another process")
        times = recoveries_without_progress(entries, alone=True)
        if times >= MAX_RECOVERIES:
            self.parked = (
                f"AX543 the process died {times} times while it executed this run alone, "
                "without progress."
            )
            return Entry("ended", data={"status": PARKED, "error": self.parked})
        self.is_alone = recoveries_without_progress(entries) > _MOST_BESIDE
        if self.is_alone and not self.is_idle:
            raise BusyError(len(entries))
        return None

    async def begin(self, writer: JournalWriter) -> None:
        """Record that the run is resumed, and wait until it is stored: its bodies follow."""
        self._append, self.kept, self.close = writer.append, writer.kept, writer.close
        self.entries = writer.entries
        try:
            writer.append(Entry("resumed", data={"alone": True} if self.is_alone else {}))
            await _stored(writer.kept())
        except BaseException:
            writer.close()
            raise

    def append(self, entry: Entry) -> None:
        """See ``JournalWriter``; the resumption has been recorded, unless it has data."""
        if entry.kind == "resumed" and "now" not in entry.data:
            return
        self._append(entry)
        if entry.kind not in NO_PROGRESS and self._reporting is None:
            self._reporting = asyncio.ensure_future(self._report())

    async def _report(self) -> None:
        with suppress(JournalError):
            await _stored(self.kept())
            self._on_progress()


async def _stored(waiting: Awaitable[None] | None) -> None:
    if waiting is not None:
        await waiting


async def load(
    journal: SharedJournal,
    run_id: str,
    workflow_of: Callable[[ReplayIndex, Sequence[Entry]], Workflow],
    options: Mapping[str, Any],
    mail: Mail,
    patience_seconds: float = PATIENCE_SECONDS,
    trial: Trial | None = None,
    files: RunFolderObjects | None = None,
) -> tuple[Workflow, ManagedRun] | None:
    """Return a run that was taken, ready to be awaited, with the answers in its mail; None: it was
    cancelled by its mail, or parked.

    Raises: JournalError; BusyError; what ``workflow_of`` raises. The run is not released then.
    """
    opened = await off_loop(journal, OpenedJournal, journal, run_id)
    entries = opened.writer.entries
    replay = ReplayIndex(entries)
    workflow = workflow_of(replay, entries)
    if files is not None:
        if named := list_of(entries):
            await asyncio.to_thread(files.restore, named)
        opened.writer = FilingWriter(opened.writer, files)
    waiting = await mail.of(run_id)
    late = _late_entry(replay, entries, options)
    for each in [RunMail(0, run_id, late), *waiting] if late else waiting:
        if each.entry.kind == "ended":
            if replay.ended is None or replay.ended.data["status"] == "paused":
                await append(opened.writer, [each.entry])
            await _discard(journal, waiting)
            await off_loop(journal, journal.release, run_id)
            return None
    if trial is not None:
        if (parked := trial.parked_entry(entries)) is not None:
            await append(opened.writer, [parked])
            await off_loop(journal, journal.release, run_id)
            return None
        await trial.begin(opened.writer)
        opened.writer = trial
    clock: Clock = options.get("clock") or RealClock()
    suspending = SuspendingClock(clock, patience_seconds)
    given = {**options, "journal": opened, "run_id": run_id, "resuming": True, "clock": suspending}
    try:
        run = suspending.run = workflow.begun(ManagedRun, None, None, given)
        if waiting:
            answers = [each.entry for each in waiting if _is_new(each.entry, replay, clock)]
            if answers and not await run.take(answers):
                raise JournalError(f'the run "{run_id}" takes no answers.', id="AX506")
            await _discard(journal, waiting)
    except BaseException:
        opened.writer.close()  # a run on trial, or with new answers, is held by it
        raise
    return workflow, run


def _late_entry(
    replay: ReplayIndex, entries: Sequence[Entry], options: Mapping[str, Any]
) -> Entry | None:
    """Return the end of a run that has not begun by its deadline; None: it may begin."""
    header = replay.header
    if header is None or any(entry.kind not in ("run", "resumed") for entry in entries):
        return None
    deadline = place_of(header.data).deadline
    if deadline is None or wall_time(options.get("clock") or RealClock()) <= deadline:
        return None
    message = "AX546 the deadline passed before the run could begin."
    return Entry("ended", data={"status": "cancelled", "error": message})


async def append(writer: JournalWriter, entries: Sequence[Entry]) -> None:
    """Append to the record of a run that is not loaded, and wait until it is stored."""
    try:
        for entry in entries:
            writer.append(entry)
        stored = writer.kept()
    finally:
        writer.close()  # before it is stored, so that one transaction stores and releases it
    await _stored(stored)


async def deliver(journal: SharedJournal, run: ManagedRun, mail: Sequence[RunMail]) -> None:
    """Deliver mail to a loaded run, and discard it when it is stored in the record of the run.

    A cancellation stays until the run has ended: ``finish`` discards it.
    """
    answers = [each for each in mail if each.entry.kind == "answer"]
    if answers:
        known = run.services.answers
        fresh = [each.entry for each in answers if each.entry.data["id"] not in known]
        if await run.take(fresh):
            await _discard(journal, answers)
    for each in mail:
        if each.entry.kind == "ended":
            run.cancel(str(each.entry.data.get("error", "cancelled")))


async def discard_all(journal: SharedJournal, run_id: str, mail: Mail) -> None:
    """Discard the mail of a run that has ended."""
    if left := await mail.of(run_id):
        await _discard(journal, left)


async def _discard(journal: SharedJournal, mail: Iterable[RunMail]) -> None:
    await off_loop(journal, journal.discard, [each.number for each in mail])


async def finish(
    journal: SharedJournal, run: ManagedRun, result: Result, mail: Mail
) -> float | None:
    """Settle a loaded run that has ended or paused, and return when it is due by itself."""
    if result.status != "paused":
        await discard_all(journal, run.id, mail)
        return None
    if run.is_answered(result.questions):
        await off_loop(journal, journal.wake, run.id)
    return first_due(
        {"data": each.data} if each.due is None else {"due": each.due} for each in result.questions
    )


def _is_new(answer: Entry, replay: ReplayIndex, clock: Clock) -> bool:
    """Return whether an answer counts: it is the first one, and in time."""
    question = answer.data["id"]
    if question in replay.answers:
        return False
    with suppress(JournalError):
        return bool(accept_answers(replay, {question: answer.data["value"]}, clock))
    return False


@dataclass(frozen=True, slots=True)
class ResumedStatus:
    """The status of a run after ``resume_run``."""

    status: str
    due: float | None = None
    """The time at which it continues by itself, in seconds since 1970; None: after an answer, or
    never.
    """


async def resume_run(
    journal: SharedJournal,
    workflow: Workflow,
    run_id: str,
    *,
    recheck_seconds: float = RECHECK_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
    max_recoveries: int | None = MAX_RECOVERIES,
    **options: Any,
) -> ResumedStatus:
    """Execute a run until it ends or waits: what an engine does with a run that is due.

    Mail is read when the run is loaded and whenever the journal reports a change. ``workflow`` has
    to be entered (``async with workflow``).

    Args:
        recheck_seconds: between two looks for mail, where the journal reports no change.
        patience_seconds: how long all bodies have to sleep before the run is unloaded.
        max_recoveries: how often it may be recovered without progress; None: without limit.
        options: as of ``axil.Options``.
    Raises: JournalError: AX506: another process holds the run; AX503, AX504 and others.
        EngineError (AX543): it was recovered too often.
    """

    def found(replay: ReplayIndex, entries: Sequence[Entry]) -> Workflow:
        if replay.header is None:
            raise unknown_error(run_id)
        times = recoveries_without_progress(entries)
        if max_recoveries is not None and times >= max_recoveries:
            message = f'the run "{run_id}" was recovered {times} times without progress.'
            hint = "Find out what interrupts it; then resume or cancel it."
            raise EngineError(message, id="AX543", hint=hint)
        return workflow

    mail = Gathered(journal, journal.mail)
    loaded = await load(journal, run_id, found, options, mail, patience_seconds)
    if loaded is None:
        return ResumedStatus("cancelled")
    _, run = loaded
    reading = asyncio.create_task(_read_mail(journal, run, recheck_seconds, mail))
    try:
        result = await run.result()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    return ResumedStatus(result.status, await finish(journal, run, result, mail))


async def _read_mail(
    journal: SharedJournal, run: ManagedRun, recheck_seconds: float, mail: Mail
) -> None:
    since = 0
    while True:
        since = await journal.changed(since, recheck_seconds, is_work=True)
        if found := await mail.of(run.id):
            await deliver(journal, run, found)
