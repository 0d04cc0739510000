"""Run engine: starts queued runs, unloads waiting ones, reloads them on an answer or timer,
recovers them after a crash.

Theory of operation
-------------------
The journal holds the runs and is their queue; a ``ManagedRun`` only executes one. A run whose
header is stored is in one of three states:

* *due*: an engine may load it: it was submitted, answered or interrupted, or its time has come;
* *loaded*: a ``ManagedRun`` executes it in a task of its own, and the journal knows its holder;
* *waiting*: for a person or a time. No engine keeps anything of it.

One task (``_pull``) takes due runs from the journal, as many as there is room for, and loads them;
then it waits until there may be more. Another one looks for changes by other processes
(``_deliver``): due runs, and mail for loaded runs. A third one (``_resolve_all``), started by the
first call of ``result`` that has to wait, looks for runs that have ended in other processes.

A run that asks a person ends as paused and is unloaded. So is a run all of whose bodies sleep
(``SuspendingClock``): the journal has the ends of the sleeps by the wall clock, and the first of
them is when the run is due. An answer is an entry in the record; it makes the run due. Where
another process holds the run, an answer or a cancellation is posted to it.

What the engine reports (started, answered, cancelled) was stored before. So after a crash nothing
has to be repeated by hand: runs without a living holder are due. A run may be what ends the
process: of runs whose process died (*lost*) one begins, then two, then four, a moment apart
(``Trial``), since one of them may have been the reason. One that was lost three times without any
progress is executed with no other run in the engine until it makes some; if it ends the process
again and again so, it is parked: that is an end in its record. An engine that has other runs leaves
it to idle engines, and holds it if it finds it again: until it has no run, only lost ones begin in
it, and other engines go on.

Invariants:

* A run that is changed while it is not loaded is changed under its lock, and a locked run is not
  loaded.
* What was taken from the journal is loaded or released, also when the engine is closed.
* ``list`` and ``get`` read the journal: of a run that is not loaded, nothing else is known.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from axil import Result, Workflow
from axil.driver import Clock, RealClock, RunInput, wall_time
from axil.plugin import EngineError, JournalError, RunError
from axil_journals.deadlines import accept_answers
from axil_journals.engine.filing import FilingWriter
from axil_journals.engine.loading import (
    PATIENCE_SECONDS,
    RECHECK_SECONDS,
    TRIAL_SECONDS,
    BusyError,
    Gathered,
    OpenedJournal,
    PlacingWriter,
    Trial,
    append,
    check_run_options,
    deliver,
    discard_all,
    finish,
    lasting_executor,
    load,
    off_loop,
)
from axil_journals.engine.managed import ManagedRun
from axil_journals.engine.metrics import RUN_ID, EngineTally
from axil_journals.engine.protocol import (
    PASSING_ERRORS,
    AroundRun,
    FindWorkflow,
    RunLeave,
    RunStatus,
)
from axil_journals.engine.spending import TELL_SECONDS, Spending, SpendingWatch
from axil_journals.engine.status import OVER, PARKED, status_of
from axil_journals.inspection.snapshots import snapshot
from axil_journals.journal import (
    Entry,
    RunInfo,
    RunMail,
    SharedJournal,
    claimed_error,
    unknown_error,
)
from axil_journals.memory import MemoryJournal
from axil_journals.objects import RunFolderObjects, RunObjects
from axil_journals.queues import Place, Queue, RunExists, place_of
from axil_journals.recorder import answer_entry
from axil_journals.records import limits_entry
from axil_journals.replay import ReplayIndex

log = logging.getLogger("axil_journals")

_READ_AT_ONCE = 16  # records
_GATHER_SECONDS = 0.02  # changes that follow each other so closely are looked at together
_SHARE = 10.0  # a look takes at most one part in so many of the time between two looks
_LONGEST_GATHER_SECONDS = 0.5
_LONGEST_SECONDS = 3600.0  # the wall clock may be set: it is read again after so long
_SWEEP_SECONDS = 3600.0
_UNKNOWN_SECONDS = 300.0
"""The time for which runs of a graph that is unknown here are left to other engines."""

Waiters = list[asyncio.Future[Result]]


class LocalEngine:
    """An engine in this process, on one event loop, for the runs of one journal.

        async with LocalEngine(SqliteJournal(".axil"), [letters]) as engine:
            run_id = await engine.start(letters, {"to": "Ada"})
            result = await engine.result(run_id)

    Entering it resumes the runs that an earlier process left open. Several engines, in as many
    processes, may share the runs of one journal.
    """

    def __init__(
        self,
        journal: SharedJournal | None = None,
        workflows: Iterable[Workflow] = (),
        *,
        find: FindWorkflow | None = None,
        loaded: int = 100,
        patience_seconds: float = PATIENCE_SECONDS,
        recheck_seconds: float = RECHECK_SECONDS,
        folder_of: Callable[[str], Path | None] | None = None,
        around: AroundRun | None = None,
        leave: RunLeave | None = None,
        queues: Collection[Queue] = (),
        objects: RunObjects | None = None,
        **options: Any,
    ) -> None:
        """Store the settings; nothing is read or started before ``async with``.

        Args:
            journal: None: one in memory.
            workflows: those whose runs it loads; the engine also knows those of ``start``.
            find: returns the workflow of other runs. A run for which it raises is left to other
                engines, and if it raises EngineError (AX542) so are all of this graph for minutes.
            loaded: how many runs may be loaded at the same time; 0: it only submits.
            patience_seconds: how long all bodies of a run have to sleep before it is unloaded.
            recheck_seconds: real time between two looks at a journal that reports no change.
            folder_of: returns the workspace of a run by its id; None: as of the options.
            around: returns the context manager that a run is executed within. A run for which it
                raises is left to other engines.
            leave: returns the grants of a run, of its origin and of what all runs are allowed;
                ``find`` has them as ``allow`` in the header. A run for which it raises is left to
                other engines.
            queues: rules of queues, which are stored in the journal for all its engines.
            objects: where the files of runs are kept for all workers; with ``folder_of``.
            options: for all runs, as of ``axil.Options``: ``deps``, ``channel``, ``clock``,
                ``observers``, ``limits``, ``executor`` (it is closed with the engine) …
        Raises: ConfigError (AX130), TypeError: there is no such option, or it has a wrong value.
        """
        check_run_options(options, LocalEngine)
        self.journal: SharedJournal = MemoryJournal() if journal is None else journal
        self.max_loaded, self.patience_seconds = loaded, patience_seconds
        self.recheck_seconds = recheck_seconds
        self._options, self._find, self._folder_of = options, find, folder_of
        self._around, self._leave, self._queues = around, leave, queues
        self.tally = EngineTally()
        """The runs that it took, and the tokens and money that they used."""
        self._spending, self._objects = Spending(), objects
        self._executor = lasting_executor(options)
        self._clock: Clock = options.pop("clock", None) or RealClock()
        self._workflows: dict[str, Workflow] = {}
        for each in workflows:
            known = self._workflows.setdefault(each.plan.graph.digest, each)
            if known.spec != each.spec:
                raise _alike(each.spec.id)
        self._entered = AsyncExitStack()  # workflows whose components are provisioned
        self._found: dict[tuple[str, frozenset[str]], Workflow] = {}  # with leave of their own
        self._provisioned: set[int] = set()  # their ids; they are among those entered
        self._loaded: dict[str, _Loaded] = {}
        self._refused: dict[str, Exception] = {}  # runs that this engine cannot load
        self._unknown: dict[str, float] = {}  # digests that ``find`` did not know, until when
        self._looks = 0  # how often mail was looked for
        self._mail = Gathered(self.journal, self.journal.mail)
        self._infos = Gathered(self.journal, self.journal.infos)
        self._waiters: dict[str, Waiters] = {}
        self._cancelled: set[str] = set()  # since the last look for due runs began
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._wanted = asyncio.Event()  # there may be due runs, and room for them
        self._is_pulling = False
        self._trials: dict[str, Trial] = {}  # meanwhile nothing else begins
        self._at_once = 1  # lost runs that begin together
        self._left: dict[str, float] = {}  # lost runs that wait for an idle engine, until when
        # lost runs that are held until this engine is idle, with the numbers of their entries
        self._alone: dict[str, int] = {}
        self._unreleased: set[str] = set()  # the journal failed as they were to be released
        self._changed, self._closing = asyncio.Event(), asyncio.Lock()
        self._pulling: asyncio.Task[None] | None = None
        self._background: list[asyncio.Task[Any]] = []
        self._is_watching_ends = self._is_telling = False
        self._is_closed = True

    async def __aenter__(self) -> LocalEngine:
        if self._queues:
            await off_loop(self.journal, self.journal.set_queues, self._queues)
        self._is_closed = False
        self._wanted.set()
        self._pulling = asyncio.create_task(self._pull())
        self._background = [asyncio.create_task(self._repeat(self._deliver, is_work=True))]
        if self._objects is not None and self.max_loaded:
            self._background.append(asyncio.create_task(self._sweep(self._objects)))
        self._is_watching_ends = self._is_telling = False
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(
        self,
        workflow: Workflow,
        input: RunInput = None,
        attributes: Mapping[str, Any] | None = None,
        *,
        run_id: str = "",
        thread: str = "",
        origin: Mapping[str, Any] | None = None,
        place: Place | None = None,
    ) -> str:
        """See ``Engine``; ``place``: the queue in which it waits, and when it may begin.

        Where another run has its ``once``, the id of that one is returned.

        Raises: EngineError (AX540); JournalError: AX504, AX505, AX508, AX509; StateError.
        """
        self._check_open()
        self._workflows.setdefault(workflow.plan.graph.digest, workflow)
        self._unknown.pop(workflow.plan.graph.digest, None)
        run_id = run_id or secrets.token_hex(8)
        if place is not None and place.debounce_seconds is not None:
            begins = wall_time(self._clock) + place.debounce_seconds
            place = replace(place, start_at=begins)
        own = {"run_id": run_id, "thread": thread, "origin": origin or {}}
        begin = partial(self._submit, workflow, input, attributes, place, own)
        async with self._locked(run_id):  # two callers may start it at once
            try:
                return await begin()
            except JournalError as error:
                if error.id != "AX506":
                    raise
                return await begin()  # another process began it meanwhile

    async def _submit(
        self,
        workflow: Workflow,
        input: RunInput,
        attributes: Mapping[str, Any] | None,
        place: Place | None,
        own: Mapping[str, Any],
    ) -> str:
        """Store a run that the journal does not know; return its id."""
        run_id: str = own["run_id"]
        opened = await off_loop(self.journal, OpenedJournal, self.journal, run_id, own["thread"])
        if place is not None:
            opened.writer = PlacingWriter(opened.writer, place)
        if (files := self._files(run_id)) is not None:
            opened.writer = FilingWriter(opened.writer, files)
        given = {**self._options, "clock": self._clock, "journal": opened, **own}
        run = workflow.begun(ManagedRun, input, attributes, given)
        try:
            if run_id not in self._loaded and await run.submit():
                self._refused.pop(run_id, None)
        except RunExists as error:
            return error.run_id
        return run_id

    def list(self, *, after: str = "", limit: int = 0) -> Sequence[RunInfo]:
        return self._with_live_status(self.journal.runs(after=after, limit=limit))

    def get(self, run_id: str) -> RunStatus:
        """See ``Engine``. Raises: JournalError (AX503)."""
        found = self._with_live_status(self.journal.infos([run_id]))
        if not found:
            raise unknown_error(run_id)
        return status_of(found[0], ReplayIndex(self.journal.entries(run_id)))

    async def answer(self, run_id: str, answers: Mapping[str, Any]) -> None:
        """See ``Engine``.

        Raises: EngineError: AX540, AX541; JournalError: AX503; AX522: the deadline has passed.
        """
        self._check_open()
        async with self._locked(run_id):
            replay = await self._recorded(run_id)
            for id in answers:
                _check_answerable(run_id, id, replay)
            accept_answers(replay, answers, self._clock)
            entries = [answer_entry(id, answer) for id, answer in answers.items()]
            loaded = self._loaded.get(run_id)
            if loaded is not None and await loaded.run.take(entries):
                return
            if loaded is not None:  # it has ended, and is about to be unloaded
                await asyncio.wait({loaded.task})
            if not await self._append(run_id, entries):  # another process holds it
                for entry in entries:
                    if not await off_loop(self.journal, self.journal.post, run_id, entry):
                        raise _answered_before(run_id, entry.data["id"])
            self._refused.pop(run_id, None)

    async def cancel(self, run_id: str, reason: str = "cancelled") -> None:
        """See ``Engine``. Raises: JournalError (AX503)."""
        since, is_posted = 0, False
        while not await self._is_cancelled(run_id, reason):
            entry = Entry("ended", data={"status": "cancelled", "error": reason})
            if not is_posted:  # another process holds it, and reads its mail
                await off_loop(self.journal, self.journal.post, run_id, entry)
                is_posted = True
            since = await self.journal.changed(since, 1.0)
        if is_posted:  # else it would be cancelled again when it is resumed
            await discard_all(self.journal, run_id, self._mail)
        await self._resolve_ended(run_id)

    async def _is_cancelled(self, run_id: str, reason: str) -> bool:
        """Cancel a run, unless it has ended. Return False: another process holds it."""
        async with self._locked(run_id):
            if (loaded := self._loaded.get(run_id)) is not None:
                loaded.run.cancel(reason)
                if not loaded.run.has_begun:  # its components may never be provisioned
                    loaded.abort()
                await asyncio.wait({loaded.task})  # it may have paused meanwhile
            ended = (await self._recorded(run_id)).ended
            if ended is not None and ended.data["status"] not in ("paused", PARKED):
                return True
            data = {"status": "cancelled", "error": reason}
            is_stored = await self._append(run_id, [Entry("ended", data=data)])
            if is_stored:
                self._cancelled.add(run_id)  # it may have been taken before, and wait for its lock
            return is_stored

    async def resume(self, run_id: str, limits: Mapping[str, Any] | None = None) -> None:
        """See ``Engine``; a run that a process holds is not changed.

        Args:
            limits: those that the run has from now on, as of ``Limits.changed``.
        Raises: JournalError: AX503; AX506: a process holds it, and it was given limits; SpecError:
            AX128, AX130; EngineError: AX540, AX542.
        """
        self._check_open()
        async with self._locked(run_id) if limits else nullcontext():
            replay = await self._recorded(run_id)
            before = self._workflow_of(replay).spec.limits
            if replay.ended is not None and replay.ended.data["status"] == "done":
                return
            if limits:
                entry = limits_entry((replay.limits or before).changed(limits))
                loaded = self._loaded.get(run_id)
                if loaded is not None and replay.ended is not None:  # it is about to be unloaded
                    await asyncio.wait({loaded.task})
                    loaded = None
                if loaded is not None or not await self._append(run_id, [entry]):
                    raise claimed_error(run_id, "an engine")
        self._refused.pop(run_id, None)
        await off_loop(self.journal, self.journal.wake, run_id)
        self._look()

    async def workflow_of(self, run_id: str) -> Workflow:
        """Return the workflow with which a run goes on.

        Raises: JournalError (AX503); EngineError (AX542).
        """
        return self._workflow_of(await self._recorded(run_id))

    async def result(self, run_id: str) -> Result:
        """See ``Engine``.

        Raises: JournalError: AX503, and what the journal refused meanwhile; EngineError (AX540):
            the engine was closed meanwhile.
        """
        if run_id not in self._loaded and (result := await self._ended_result(run_id)) is not None:
            return result
        self._check_open()
        if (error := self._refused.get(run_id)) is not None:
            raise error
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(run_id, []).append(waiter)
        if not self._is_watching_ends:
            self._is_watching_ends = True
            watching = self._repeat(self._resolve_all, is_work=False)
            self._background.append(asyncio.create_task(watching))
        await self._resolve_ended(run_id)  # it may have ended while its record was read
        return await waiter

    async def close(self, *, grace_seconds: float = 0.0) -> None:
        """See ``Engine``; ``grace_seconds``: how long loaded runs may take to end before that."""
        self._is_closed = True
        async with self._closing:  # a second call waits, and finishes what a cancelled one left
            self._wanted.set()
            if self._pulling is not None:
                await asyncio.wait({self._pulling})  # what it takes now, it releases
            tasks = {loaded.task for loaded in self._loaded.values()}
            if tasks and grace_seconds:
                await self._wait_for(tasks, grace_seconds)
            for task in (*tasks, *self._background):
                task.cancel()
            await asyncio.gather(*tasks, *self._background, return_exceptions=True)
            await asyncio.gather(self._mail.settle(), self._infos.settle())
            for run_id in self._alone.keys() | self._unreleased:
                try:
                    await self._release(run_id)
                except Exception:  # the rest is to be closed all the same
                    log.exception("the run %s could not be released", run_id)
            self._alone.clear()
            for waiters in self._waiters.values():
                _resolve(waiters, _closed())
            self._waiters.clear()
            await self._entered.aclose()
            if self._executor is not None:
                await self._executor.end()
            self._provisioned, self._refused = set(), {}

    async def _wait_for(self, tasks: Iterable[asyncio.Task[None]], seconds: float) -> None:
        grace = asyncio.ensure_future(self._clock.sleep(seconds))
        self._background.append(grace)
        while not grace.done() and (left := {task for task in tasks if not task.done()}):
            await asyncio.wait({grace, *left}, return_when=asyncio.FIRST_COMPLETED)

    async def idle(self) -> None:
        """Wait until no run is loaded or due: each has ended, or waits for an answer or time."""
        while self._loaded or self._wanted.is_set() or self._is_pulling:
            self._changed.clear()
            await self._changed.wait()

    @property
    def loaded(self) -> int:
        """The number of loaded runs."""
        return len(self._loaded)

    # ------------------------------------------------------------------ loading and unloading

    def _look(self) -> None:
        self._wanted.set()
        self._changed.set()

    async def _pull(self) -> None:
        while not self._is_closed:
            self._is_pulling, due = True, None
            self._wanted.clear()
            try:
                due = await self._load_due()
            except Exception:  # a journal that fails now may work the next time
                log.exception("looking for runs that are due failed")
            self._is_pulling = False
            self._changed.set()
            await self._until(due)

    async def _load_due(self) -> float | None:
        """Load due runs, and return when the next one is due; None: not before a change."""
        self._cancelled.clear()
        room, journal = self.max_loaded - len(self._loaded), self.journal
        for run_id in self._unreleased.copy():
            await self._release(run_id)
        if room <= 0 or self._trials:
            return None
        if not self._loaded:
            self._left.clear()
            for run_id in self._alone:
                await self._try([run_id], self._alone.pop(run_id))
                return None
        now, digests = wall_time(self._clock), None if self._find else list(self._workflows)
        real = time.monotonic()
        unknown = [digest for digest, until in self._unknown.items() if until > real]
        known = {"digests": digests, "unknown": unknown}
        left = [run_id for run_id, until in self._left.items() if until > real]
        take = partial(journal.take, without=[*self._refused, *left], **known)
        await self._tell()
        if lost := await off_loop(journal, take, min(room, self._at_once), now, lost=True):
            self.tally.count("axil_takes_total", len(lost))
            await self._try(lost)
            return None
        self._at_once = 1
        if self._alone:
            return None
        taken = await off_loop(journal, take, room, now)
        if taken:
            self.tally.count("axil_takes_total", len(taken))
        await asyncio.gather(*map(self._load, taken))
        return await off_loop(journal, journal.next_due, now) if len(taken) < room else None

    async def _until(self, due: float | None) -> None:
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._wanted.wait())]
        if due is not None:
            left = min(due - wall_time(self._clock), _LONGEST_SECONDS)
            waits.append(asyncio.ensure_future(self._clock.sleep(left)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in waits:
                waiting.cancel()

    async def _try(self, runs: Sequence[str], seen: int | None = None) -> None:
        """Load lost runs: nothing else begins until they have made progress, were executed for a
        moment beside others, or are unloaded; then twice as many begin.
        """
        is_idle = not self._loaded and len(runs) == 1
        self._trials = trials = {
            run_id: Trial(run_id, is_idle, partial(self._tried, run_id), seen=seen)
            for run_id in runs
        }
        loads = [self._load(run_id, trial) for run_id, trial in trials.items()]
        are_settled = await asyncio.gather(*loads)
        for run_id in trials.keys() - self._loaded.keys():
            del trials[run_id]
        if not trials:
            if any(are_settled):  # else they are tried again when something has changed
                self._look()
        elif not any(trial.is_alone for trial in trials.values()):
            asyncio.get_running_loop().call_later(TRIAL_SECONDS, self._tried, *trials)

    def _tried(self, *runs: str) -> None:
        ended = [self._trials.pop(run_id, None) for run_id in runs]
        if any(ended) and not self._trials:
            self._at_once *= 2
            self._look()

    async def _load(self, run_id: str, trial: Trial | None = None) -> bool:
        """Load a run that was taken; False: it was released, and may be loaded later.

        A lost run that has to be alone is left to idle engines first, and held the next time.
        """
        looks = self._looks
        self._unreleased.discard(run_id)
        try:
            async with self._lock(run_id):
                # one that is loaded is about to be unloaded, and is taken again then
                if self._is_closed or run_id in self._cancelled or run_id in self._loaded:
                    await self._release(run_id)
                    return False
                options = {**self._options, "clock": self._clock}
                if self._folder_of is not None:
                    options["workspace"] = self._folder_of(run_id)
                around: AbstractContextManager[Any] = nullcontext()
                queue, spending = "", None

                def workflow_of(replay: ReplayIndex, entries: Sequence[Entry]) -> Workflow:
                    nonlocal around, queue, spending
                    queue = "" if replay.header is None else place_of(replay.header.data).queue
                    if queue:
                        spending = SpendingWatch(queue, self._clock)
                        options["observers"] = [*self._options.get("observers", ()), spending]
                    if self._around is not None:
                        around = self._around(replay.origin, entries)
                    given = frozenset[str](self._options.get("allow", ()))
                    allow = given if self._leave is None else self._leave(replay.origin, given)
                    options["allow"] = allow
                    return self._workflow_of(replay, allow - given)

                found = await load(
                    self.journal,
                    run_id,
                    workflow_of,
                    options,
                    self._mail,
                    self.patience_seconds,
                    trial,
                    self._files(run_id),
                )
                if found is not None:
                    workflow, run = found
                    self._loaded[run_id] = _Loaded(
                        run, asyncio.create_task(self._work(workflow, run, around, queue)), spending
                    )
                    if spending is not None:
                        spending.begin(run)
                        self._keep_telling()
            if found is None and trial is not None and trial.parked:
                log.error("run %s is parked: %s", run_id, trial.parked)
                await self._call_hooks(run_id)
                await self._resolve_ended(run_id)
        except BusyError as busy:
            self._at_once = 1  # or an idle engine would find it among others again
            if self._left.pop(run_id, None) is not None:
                self._alone[run_id] = busy.seen  # only lost runs begin until this engine is idle
            else:
                self._left[run_id] = time.monotonic() + self.recheck_seconds
                await self._release(run_id)
        except Exception as error:  # noqa: BLE001  # ``find`` may raise anything
            await self._interrupted(run_id, error)
            await self._release(run_id)
            return run_id in self._refused or _is_unknown(error)
        except asyncio.CancelledError:  # the engine is closed, and releases it
            self._unreleased.add(run_id)
            raise
        if self._looks != looks:  # mail may have come after it was read, and before it was loaded
            with suppress(JournalError):  # else it is found by the next look
                await self._deliver_to(run_id, await self._mail.of(run_id))
        return True

    async def _release(self, run_id: str) -> None:
        """Release a run that was taken; if that fails, the next look for due runs does it."""
        self._unreleased.add(run_id)
        await off_loop(self.journal, self.journal.release, run_id)
        self._unreleased.discard(run_id)

    def _files(self, run_id: str) -> RunFolderObjects | None:
        folder = None if self._folder_of is None else self._folder_of(run_id)
        if self._objects is None or folder is None:
            return None
        return self._objects.files(run_id, folder)

    async def _sweep(self, objects: RunObjects) -> None:
        """Delete the files of runs that were forgotten, as long as the engine is open."""
        suspected: Collection[str] = ()
        while True:
            try:
                suspected = await asyncio.to_thread(objects.sweep, self.journal, suspected)
            except Exception:  # a storage that fails now may work the next time
                log.exception("the files of forgotten runs could not be deleted")
            await asyncio.sleep(_SWEEP_SECONDS)

    async def _call_hooks(self, run_id: str) -> None:
        """Call the hooks of the workflow of a parked run: it began, and ended so."""
        try:
            replay = await self._recorded(run_id)
            workflow, result = self._workflow_of(replay), await self._recorded_result(run_id)
            if (hooks := workflow.setting.hooks) is not None:
                hooks.hook.run_started(run_id=run_id, plan=workflow.plan, inputs=None)
                hooks.hook.run_finished(run_id=run_id, result=result)
        except Exception:  # whatever a plugin raises: the run is parked
            log.exception("the hooks of the parked run %s failed", run_id)

    async def _work(
        self,
        workflow: Workflow,
        run: ManagedRun,
        around: AbstractContextManager[Any],
        queue: str,
    ) -> None:
        result: Result | None = None
        RUN_ID.set(run.id)  # of this task, and of those that it starts
        used = {} if run.recorder is None else dict(run.recorder.used)
        try:
            with around:
                result = await self._execute(workflow, run)
            of = {"queue": queue, "workflow": workflow.plan.graph.spec.id}
            self.tally.ended(result, of, used)
            await self._tell()
            await finish(self.journal, run, result, self._mail)
        except Exception as error:  # noqa: BLE001  # of a component, or of the journal
            await self._interrupted(run.id, error)
        finally:
            try:
                if not run.has_begun:
                    assert run.recorder is not None
                    run.recorder.close()  # what was appended before it began holds it
                    await self._release(run.id)
            finally:
                del self._loaded[run.id]
                self._trials.pop(run.id, None)
                if result is not None and result.status != "paused":
                    _resolve(self._waiters.pop(run.id, ()), result)
                self._look()

    def _keep_telling(self) -> None:
        """Tell the journal again and again what runs of queues use of models."""

        async def tell() -> None:
            while True:
                await asyncio.sleep(TELL_SECONDS)
                try:
                    await self._tell()
                except Exception:  # a journal that fails now may work the next time
                    log.exception("what runs used of models could not be stored")

        if not self._is_telling:
            self._is_telling = True
            self._background.append(asyncio.create_task(tell()))

    async def _tell(self) -> None:
        watches = (each.spending for each in self._loaded.values())
        self._spending.add(watch.drain() for watch in watches if watch is not None)
        now = wall_time(self._clock)
        if spent := self._spending.drain(now):
            try:
                limited = await off_loop(self.journal, self.journal.spend, spent, now)
            except BaseException:
                self._spending.add(spent)
                raise
            self._spending.note(spent, limited, now)

    async def _execute(self, workflow: Workflow, run: ManagedRun) -> Result:
        if id(workflow) not in self._provisioned:
            async with workflow:  # runs that are loaded while it provisions wait here, too
                if id(workflow) not in self._provisioned:
                    self._provisioned.add(id(workflow))
                    await self._entered.enter_async_context(workflow)  # until the engine closes
        return await run.result()

    async def _interrupted(self, run_id: str, error: Exception) -> None:
        """Report that a run broke off, or was not loaded; callers of ``result`` get the error.

        If another process continued it (AX506), they get its result, when there is one.
        """
        id = error.id if isinstance(error, JournalError) else ""
        if id == "AX506" or _is_unknown(error):
            log.info("run %s is left to another process: %s", run_id, error)
            with suppress(Exception):  # what waits is resolved when it has ended
                await self._resolve_ended(run_id)
            return
        if id not in PASSING_ERRORS:
            self._refused[run_id] = error
        log.error("run %s was interrupted: %s", run_id, error)
        _resolve(self._waiters.pop(run_id, ()), error)

    # ------------------------------------------------------------------ other processes

    async def _repeat(self, look: Callable[[], Awaitable[float]], *, is_work: bool) -> None:
        """Look whenever something may have changed; ``look`` returns how long the journal took."""
        since, took = 0, 0.0
        while True:
            try:
                since = await self.journal.changed(since, self.recheck_seconds, is_work=is_work)
                took = await look()
            except Exception:  # a journal that fails now may work the next time
                log.exception("looking at what other processes did failed")
                await asyncio.sleep(min(self.recheck_seconds, 1.0))
            # real time: others do not know the clock
            await asyncio.sleep(min(max(_GATHER_SECONDS, _SHARE * took), _LONGEST_GATHER_SECONDS))

    async def _deliver(self) -> float:
        """Deliver mail to the loaded runs, and look for due runs soon."""
        began = time.monotonic()
        self._looks += 1
        self._look()
        held = [*self._loaded, *self._alone]
        if not held:
            return 0.0
        mail = await off_loop(self.journal, self.journal.mail, held)
        took = time.monotonic() - began
        for run_id in dict.fromkeys(each.run_id for each in mail):
            await self._deliver_to(run_id, [each for each in mail if each.run_id == run_id])
        return took

    async def _deliver_to(self, run_id: str, mail: Sequence[RunMail]) -> None:
        if (loaded := self._loaded.get(run_id)) is not None:
            await deliver(self.journal, loaded.run, mail)
            is_cancelled = any(each.entry.kind == "ended" for each in mail)
            if is_cancelled and not loaded.run.has_begun:  # it may never be provisioned
                loaded.abort()
        elif run_id in self._alone and any(each.entry.kind == "ended" for each in mail):
            await self._load(run_id, Trial(run_id, False, seen=self._alone.pop(run_id)))

    async def _resolve_all(self) -> float:
        """Resolve pending ``result`` calls of runs that have ended in other processes."""
        began = time.monotonic()
        waiting = self._waiters.keys() - self._loaded.keys()
        if not waiting:
            return 0.0
        infos = await off_loop(self.journal, self.journal.infos, waiting)
        took = time.monotonic() - began
        ended = [info.run_id for info in infos if self.has_ended(info)]
        for at in range(0, len(ended), _READ_AT_ONCE):
            some = ended[at : at + _READ_AT_ONCE]
            await asyncio.gather(*map(self._resolve_recorded, some))
        return took

    def has_ended(self, info: RunInfo) -> bool:
        """Return whether a run has ended, and is not to be resumed."""
        is_resumed = info.due is not None and info.run_id not in self._refused
        return info.status not in ("open", "running", "paused") and not is_resumed

    # ------------------------------------------------------------------ reading and writing

    def _check_open(self) -> None:
        if self._is_closed:
            raise _closed()

    def _lock(self, run_id: str) -> asyncio.Lock:
        return self._locks.setdefault(run_id, asyncio.Lock())

    @asynccontextmanager
    async def _locked(self, run_id: str) -> AsyncGenerator[None]:
        """Hold the lock of a run, so that it is not loaded meanwhile; then load what is due."""
        try:
            async with self._lock(run_id):
                yield
        finally:
            self._look()

    async def _recorded(self, run_id: str) -> ReplayIndex:
        replay = ReplayIndex(await off_loop(self.journal, self.journal.entries, run_id))
        if replay.header is None:
            raise unknown_error(run_id)
        return replay

    def _workflow_of(self, replay: ReplayIndex, leave: frozenset[str] = frozenset()) -> Workflow:
        """Return the workflow of a run; ``leave``: what this run alone is allowed."""
        if replay.header is None:
            raise JournalError("the record of the run has no beginning.", id="AX503")
        header = replay.header.data
        digest = header["digest"]
        found = self._workflows.get(digest, self._found.get((digest, leave)))
        if found is None and self._find is not None:
            allow = leave.union(self._options.get("allow", ()))
            try:
                found = self._find({**header, "origin": replay.origin, "allow": allow})
            except EngineError as error:
                if error.id == "AX542":
                    self._unknown[digest] = time.monotonic() + _UNKNOWN_SECONDS
                    name = header.get("graph", "")
                    log.warning("runs of %s are left to other processes: %s", name, error)
                raise
            if leave:  # no run without it may use this one
                self._found[digest, leave] = found
            else:
                self._workflows[digest] = found
        if found is None:
            name = header.get("graph", "")
            message = f'the engine has no workflow "{name}" in the version of the run.'
            hint = "Pass this workflow to the engine, or a function `find` that returns it."
            raise EngineError(message, id="AX542", hint=hint)
        return found

    def _with_live_status(self, infos: Iterable[RunInfo]) -> list[RunInfo]:
        now = wall_time(self._clock)
        return [self.live(info, now) for info in infos]

    def live(self, info: RunInfo, now: float | None = None) -> RunInfo:
        """Return the facts about a run with the status that it has in this engine."""
        now = wall_time(self._clock) if now is None else now
        is_due = info.due is not None and info.due <= now
        # a loaded run that is recorded as paused, and is not due, is about to be unloaded
        has_stopped = info.status in OVER or (info.status == "paused" and not is_due)
        if info.run_id in self._loaded and not has_stopped:
            return replace(info, status="running")
        is_queued = is_due and info.status in ("open", "paused")
        if is_queued and info.run_id not in self._refused:
            return replace(info, status="queued")
        return info

    async def _append(self, run_id: str, entries: Sequence[Entry]) -> bool:
        """Append to the record of a run that is not loaded; False: another process holds it."""
        try:
            writer = await off_loop(self.journal, self.journal.open, run_id)
            await append(writer, entries)
        except JournalError as error:
            if error.id != "AX506":
                raise
            return False
        self._alone.pop(run_id, None)  # it was released
        return True

    async def _resolve_ended(self, run_id: str) -> None:
        """Resolve pending ``result`` calls of a run that ended elsewhere, or was cancelled."""
        if run_id in self._waiters and (result := await self._ended_result(run_id)) is not None:
            _resolve(self._waiters.pop(run_id, ()), result)

    async def _resolve_recorded(self, run_id: str) -> None:
        try:
            outcome = await self._recorded_result(run_id)
        except EngineError as error:  # it has no workflow here: that concerns its callers alone
            outcome = error
        if outcome is not None:
            _resolve(self._waiters.pop(run_id, ()), outcome)

    async def _ended_result(self, run_id: str) -> Result | None:
        """Return the result of a run that has ended, or None."""
        found = await self._infos.of(run_id)
        if not found:
            raise unknown_error(run_id)
        return await self._recorded_result(run_id) if self.has_ended(found[0]) else None

    async def _recorded_result(self, run_id: str) -> Result | None:
        """Return the result that the record of a run has, or None."""
        entries = list(await off_loop(self.journal, self.journal.entries, run_id))
        replay = ReplayIndex(entries)
        if replay.ended is None or replay.ended.data["status"] == "paused":
            return None
        recorded = replay.ended.data
        final = await snapshot(self._workflow_of(replay), entries)
        result = replace(final.result, run_id=run_id)
        if recorded["status"] == "done":
            return result
        error = RunError(str(recorded.get("error") or recorded["status"]), id="AX400")
        return replace(result, status=recorded["status"], questions=(), error=error, output=None)


@dataclass(slots=True)
class _Loaded:
    """A loaded run and the task that executes it."""

    run: ManagedRun
    task: asyncio.Task[None]
    spending: SpendingWatch | None = None
    """Of a run of a queue."""

    def abort(self) -> None:
        """Cancel the task when it has begun: else it would not unload the run."""
        self.task.get_loop().call_soon(self.task.cancel)  # its first step comes before


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
        raise _answered_before(run_id, question)
    status = "" if replay.ended is None else replay.ended.data.get("status")
    if status == "cancelled":
        message = f'the run "{run_id}" was cancelled, and asks nothing.'
        raise EngineError(message, id="AX541", hint="Resume it: it asks again.")
    if status == "done":
        message = f'the run "{run_id}" is done, and asks nothing.'
        raise EngineError(message, id="AX541", hint="It went on without an answer; see its result.")


def _is_unknown(error: Exception) -> bool:
    """Return whether an engine has no workflow for a run, and leaves it to others."""
    return isinstance(error, EngineError) and error.id == "AX542"


def _answered_before(run_id: str, question: str) -> EngineError:
    message = f'the question "{question}" of the run "{run_id}" was answered before.'
    return EngineError(message, id="AX541", hint="The first answer counts.")


def _alike(name: str) -> EngineError:
    message = (
        f'two graphs are called "{name}" and are the same to a journal, which knows nodes made in '
        "Python by their names: a run of one would be taken on by the other."
    )
    return EngineError(message, id="AX978", hint='Give each a name: Graph("…").')


def _closed() -> EngineError:
    hint = "Enter it with `async with`; its runs are in the journal."
    return EngineError("the engine is closed.", id="AX540", hint=hint)
