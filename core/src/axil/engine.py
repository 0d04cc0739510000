"""Who owns runs: begins them, puts them away while they wait, wakes them, brings them back after a crash, and ends.

Theory of operation
-------------------
A run is what its journal says; a ``Run`` object is only somebody at work on it. So an engine accepts a run by writing its header, and
from then on the run needs no memory at all: it is *queued* (an id in a queue), *loaded* (a ``Run`` at work, of which there are so many at
once and no more), or *at rest*, where nothing is kept but, perhaps, a time at which to look again. A run that asks a person ends paused,
and its ``Run`` is dropped. A run all of whose bodies sleep is stopped at those sleeps in the same way: the sleeps are in the journal, with
their ends by the clock on the wall. An answer is a line in the journal, and then the run is queued again.

Whatever an engine says it has done (begun, answered, cancelled), it says when it is safe. So nothing has to be told to it a second time
after a crash: the next one reads the journal and goes on.

``Engine`` is the seam for others that own runs: on a database server, in a cluster. What they have in common with this one is the
journal's entries and the plan, both plain data.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol
from weakref import WeakValueDictionary

from axil.context import Clock, Question
from axil.desk import RealClock
from axil.due import accepted
from axil.errors import EngineError, JournalError, RunError
from axil.journal import Entry, Journal, MemoryJournal, Replay, RunInfo, decode, encode
from axil.owned import IN_VAIN, TIMER, OwnedRun, Resting, due_in, due_of, in_vain, open_questions, question_of
from axil.past import moment
from axil.result import Result
from axil.timetable import Timetable
from axil.workflow import Input, Workflow

log = logging.getLogger("axil.engine")

PATIENCE = 5.0
"""Seconds for which all bodies of a run have to sleep before the run is put away."""
RECHECK = 30.0
"""Seconds between looks for runs that another process left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a run stands, as its journal has it."""

    info: RunInfo
    """Its ``status`` is ``queued`` where this engine will go on with it when there is room."""
    questions: tuple[Question, ...] = ()
    """What it waits for people to answer."""
    due: float | None = None
    """When it goes on by itself, in seconds since 1970; None: only with an answer, or it does not wait."""
    error: str = ""
    output: Any = None
    """Of a run that is done, as far as the journal keeps it."""


class Engine(Protocol):
    """Owns runs. Each of these is safe when it returns: what was begun, answered or cancelled stays so, whatever crashes."""

    async def start(
        self,
        workflow: Workflow,
        input: Input = None,
        attributes: Mapping[str, Any] | None = None,
        *,
        run_id: str = "",
        thread: str = "",
        origin: Mapping[str, Any] | None = None,
    ) -> str:
        """Accept a run, to be begun when there is room; gives its id. The same id and input again: the same run, begun once."""
        ...

    def list(self) -> Sequence[RunInfo]:
        """The runs there are, those that were touched last first."""
        ...

    def get(self, run_id: str) -> Standing:
        """Where a run stands. Raises: JournalError (AX503)."""
        ...

    async def answer(self, run_id: str, answers: Mapping[str, Any]) -> None:
        """Take answers, by question id; the run goes on. Raises: EngineError (AX541): it asks no such thing, or was answered."""
        ...

    async def cancel(self, run_id: str, reason: str = "cancelled") -> None:
        """End a run, wherever it stands; one that has ended stays as it is."""
        ...

    async def resume(self, run_id: str) -> None:
        """Go on with a run that broke off, failed, met a limit or was cancelled."""
        ...

    async def result(self, run_id: str) -> Result:
        """What a run comes to; waits until it has ended, through all its pauses."""
        ...

    async def close(self) -> None:
        """Let go of all runs; those that have not ended can be gone on with. May be called again."""
        ...


Waiters = deque[asyncio.Future[Result]]
Find = Callable[[Mapping[str, Any]], Workflow]
"""From the header of a run (``graph``, ``digest``, ``origin``) to its workflow."""


class LocalEngine:
    """Runs in this process, on one event loop, as its journal has them.

        async with LocalEngine(SqliteJournal(".axil"), [letters]) as engine:
            run_id = await engine.start(letters, {"to": "Ada"})
            result = await engine.result(run_id)

    Entering it takes up the runs that an earlier process left open.
    """

    def __init__(
        self,
        journal: Journal | None = None,
        workflows: Iterable[Workflow] = (),
        *,
        find: Find | None = None,
        loaded: int = 100,
        patience_seconds: float = PATIENCE,
        **options: Any,
    ) -> None:
        """Nothing is read or begun before ``async with``.

        Args:
            journal: None: one in memory.
            workflows: those whose runs may be gone on with; what ``start`` is given is known too.
            find: asked for the workflow of a run where none of these is it. It may raise; the run is left alone then.
            loaded: runs at work at the same time.
            patience_seconds: how long all bodies of a run have to sleep before it is put away.
            options: for all runs, as of ``axil.Options``: ``deps``, ``channel``, ``clock``, ``observers``, ``limits``, ``executor`` …
        """
        self.journal: Journal = MemoryJournal() if journal is None else journal
        self.most, self.patience = loaded, patience_seconds
        self._options, self._find = options, find
        self._clock: Clock = options.pop("clock", None) or RealClock()
        self._flows = {workflow.plan.graph.digest: workflow for workflow in workflows}
        self._houses = AsyncExitStack()
        self._inside: set[str] = set()
        self._queue: dict[str, None] = {}  # in order
        self._at_work: dict[str, _Work] = {}
        self._rests = Timetable(self._clock)
        self._looked: dict[str, float] = {}  # runs that others left, and when they were touched last
        self._waiters: dict[str, Waiters] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._doors: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._moved, self._closing = asyncio.Event(), asyncio.Lock()
        self._keepers: list[asyncio.Task[None]] = []
        self._is_closed = True

    async def __aenter__(self) -> LocalEngine:
        self._is_closed = False
        self.recover()
        self._keepers = [asyncio.create_task(self._wake()), asyncio.create_task(self._recheck())]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ------------------------------------------------------------------ what is asked of it

    async def start(
        self,
        workflow: Workflow,
        input: Input = None,
        attributes: Mapping[str, Any] | None = None,
        *,
        run_id: str = "",
        thread: str = "",
        origin: Mapping[str, Any] | None = None,
    ) -> str:
        """See ``Engine``. Raises: EngineError (AX540); JournalError: AX504, AX505, AX508, AX509; StateError."""
        self._open()
        self._flows.setdefault(workflow.plan.graph.digest, workflow)
        async with self._alone(run_id) if run_id else nullcontext():  # the same may be begun twice at once
            run = workflow.begun(OwnedRun, input, attributes, self._given(run_id, thread=thread, origin=origin or {}))
            if run.id not in self._at_work and await run.submit():
                self._enqueue(run.id)
        return run.id

    def list(self) -> Sequence[RunInfo]:
        """See ``Engine``."""
        return [self._overlaid(info) for info in self.journal.runs()]

    def get(self, run_id: str) -> Standing:
        """See ``Engine``. Raises: JournalError (AX503)."""
        info = next((info for info in self.journal.runs() if info.run_id == run_id), None)
        if info is None:
            raise JournalError(f'the journal knows no run "{run_id}".', id="AX503")
        replay = Replay(self.journal.entries(run_id))
        told: Mapping[str, Any] = {} if replay.ended is None else replay.ended.data
        return Standing(
            info=self._overlaid(info),
            questions=tuple(question_of(each) for each in open_questions(replay) if each.get("kind") != TIMER),
            due=due_of(replay),
            error=str(told.get("error", "")),
            output=decode(told["output"]) if "output" in told else None,
        )

    async def answer(self, run_id: str, answers: Mapping[str, Any]) -> None:
        """See ``Engine``. Raises: EngineError: AX540, AX541; JournalError: AX503; AX506: at work in another process; AX522: too late."""
        self._open()
        async with self._alone(run_id):
            replay = self._known(run_id)
            for id in answers:
                if id not in replay.asked:
                    raise EngineError(f'the run "{run_id}" asks no "{id}".', id="AX541", hint="Look at its questions with get.")
                if id in replay.answers:
                    raise EngineError(f'"{id}" of the run "{run_id}" was answered already.', id="AX541", hint="The first answer counts.")
            accepted(replay, answers, self._clock)
            facts = [Entry("answer", data={"id": id, "value": encode(answer)}) for id, answer in answers.items()]
            work = self._at_work.get(run_id)
            if work is not None and await work.run.take(facts):
                return
            if work is not None:  # it had ended, and was about to be put away
                await asyncio.wait({work.job})
            await self._write(run_id, facts)
            self._enqueue(run_id)

    async def cancel(self, run_id: str, reason: str = "cancelled") -> None:
        """See ``Engine``. Raises: JournalError (AX503, AX506)."""
        async with self._alone(run_id):
            if (work := self._at_work.get(run_id)) is not None:
                work.run.cancel(reason)
                if not work.run.has_begun:  # it waits for its components, which may never come
                    work.job.cancel()
                await asyncio.wait({work.job})  # it may have paused just then
            ended = self._known(run_id).ended
            if ended is None or ended.data["status"] == "paused":
                await self._write(run_id, [Entry("ended", data={"status": "cancelled", "error": reason})])
                self._rests.drop(run_id)
            self._queue.pop(run_id, None)  # now: one that cannot be cancelled goes on
        await self._tell(run_id)

    async def resume(self, run_id: str) -> None:
        """See ``Engine``; a run that is done, or at work here already, is left alone. Raises: JournalError (AX503); EngineError."""
        self._open()
        replay = self._known(run_id)
        self._workflow(replay)
        if run_id not in self._at_work and (replay.ended is None or replay.ended.data["status"] != "done"):
            self._enqueue(run_id)

    async def result(self, run_id: str) -> Result:
        """See ``Engine``. Raises: JournalError: AX503, and what the journal refused; EngineError (AX540): it was closed meanwhile."""
        if run_id not in self._at_work and run_id not in self._queue and (came := await self._came(run_id)) is not None:
            return came
        self._open()
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(run_id, deque()).append(waiter)
        return await waiter

    async def close(self, *, grace_seconds: float = 0.0) -> None:
        """See ``Engine``. Nothing begins any more; what is at work may take so long to end, then it is broken off."""
        self._is_closed = True
        async with self._closing:  # who comes meanwhile waits, and does what is left where this is broken off
            self._queue.clear()
            jobs = {work.job for work in self._at_work.values()}
            if jobs and grace_seconds:
                self._keepers.append(grace := asyncio.ensure_future(self._clock.sleep(grace_seconds)))
                while not grace.done() and (left := {job for job in jobs if not job.done()}):
                    await asyncio.wait({grace, *left}, return_when=asyncio.FIRST_COMPLETED)
            for job in (*jobs, *self._keepers):
                job.cancel()
            await asyncio.gather(*jobs, *self._keepers, return_exceptions=True)
            await asyncio.gather(*self._telling)
            _tell((waiter for several in self._waiters.values() for waiter in several), _closed())
            self._waiters.clear()
            await self._houses.aclose()
            self._inside, self._looked = set(), {}

    async def idle(self) -> None:
        """Wait until no run is loaded or queued: each has ended, or waits for a person or a time."""
        while self._at_work or self._queue:
            self._moved.clear()
            await self._moved.wait()

    @property
    def loaded(self) -> int:
        """How many runs are in memory."""
        return len(self._at_work)

    # ------------------------------------------------------------------ loading and putting away

    def _given(self, run_id: str, **more: Any) -> dict[str, Any]:
        return {**self._options, "clock": self._clock, "journal": self.journal, "run_id": run_id, **more}

    def _enqueue(self, run_id: str) -> None:
        self._rests.drop(run_id)
        self._queue[run_id] = None
        self._fill()

    def _fill(self) -> None:
        """Load what is queued, as far as there is room."""
        self._moved.set()
        for run_id in list(self._queue):
            if len(self._at_work) >= self.most or self._is_closed:
                return
            door = self._doors.get(run_id)
            if run_id in self._at_work or (door is not None and door.locked()):
                continue  # whoever is at it looks again
            del self._queue[run_id]
            try:
                self._load(run_id)
            except Exception as error:  # noqa: BLE001  # its workflow cannot be found, or is another now: its own affair
                self._broke(run_id, error)
                self._moved.set()

    def _load(self, run_id: str) -> None:
        workflow = self._workflow(self._known(run_id))
        clock = Resting(self._clock, self.patience)
        run = workflow.begun(OwnedRun, None, None, {**self._given(run_id), "clock": clock, "resuming": True})
        clock.run = run
        work = self._at_work[run_id] = _Work(run, asyncio.create_task(self._drive(workflow, run)))
        work.job.add_done_callback(lambda job: self._put_away(run, job))

    async def _drive(self, workflow: Workflow, run: OwnedRun) -> Result:
        digest = workflow.plan.graph.digest
        if digest not in self._inside:
            async with workflow:  # who comes while its components are provisioned waits, too
                if digest not in self._inside:
                    self._inside.add(digest)
                    await self._houses.enter_async_context(workflow)  # they stay as long as this engine lives
        return await run.result()

    def _put_away(self, run: OwnedRun, job: asyncio.Task[Result]) -> None:
        """A run has ended, paused or broken off: nothing of it stays in memory but when to look again."""
        del self._at_work[run.id]
        if job.cancelled():
            pass
        elif (error := job.exception()) is not None:
            self._broke(run.id, error)
        elif (result := job.result()).status != "paused":
            _tell(self._waiters.pop(run.id, ()), result)
        elif run.is_answered(result.questions):
            self._queue[run.id] = None
        elif dues := [due for question in result.questions if (due := due_in(question.plain())) is not None]:
            self._rests.put(run.id, min(dues))
        self._fill()

    def _broke(self, run_id: str, error: BaseException) -> None:
        log.error("the run %s broke off: %s", run_id, error)
        if waiters := self._waiters.pop(run_id, None):
            telling = asyncio.create_task(self._tell_why(run_id, waiters, error))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    async def _tell_why(self, run_id: str, waiters: Waiters, error: BaseException) -> None:
        """Tell those who wait why a run cannot be gone on with: if it is since it was ended elsewhere meanwhile, what it came to there."""
        came: Result | None = None
        if isinstance(error, JournalError) and error.id == "AX506":
            with suppress(Exception):  # then why is all there is to tell
                came = await self._came(run_id)
        _tell(waiters, error if came is None else came)

    async def _wake(self) -> None:
        """Queue the runs whose time has come."""
        while True:
            for run_id in await self._rests.due():
                self._enqueue(run_id)

    async def _recheck(self) -> None:
        while True:
            await asyncio.sleep(RECHECK)  # by the real clock: another process does not know of this one's
            try:
                self.recover()
                for run_id in self._waiters.keys() - self._at_work.keys():
                    await self._tell(run_id)
            except Exception:  # whatever is wrong with the journal now may be right the next time
                log.exception("runs that were left could not be looked for")

    def recover(self) -> None:
        """Take up what others left: runs that broke off, and the times at which those that rest go on. Cheap for what did not change."""
        for info in reversed(self.journal.runs()):
            run_id = info.run_id
            if info.status not in ("open", "paused") or run_id in self._queue or run_id in self._at_work or run_id in self._rests:
                continue
            if self._looked.get(run_id) == info.touched:
                continue
            self._looked[run_id] = info.touched
            try:
                entries = list(self.journal.entries(run_id))
                replay = Replay(entries)
                self._workflow(replay)
                if (times := in_vain(entries)) >= IN_VAIN:
                    told = f'the run "{run_id}" was brought back {times} times and came no further.'
                    raise EngineError(told, id="AX543", hint="Look at what it does; resume it, or cancel it.")
            except Exception as error:  # noqa: BLE001  # whatever is wrong with it, or whoever finds workflows raises
                log.warning("the run %s is left alone: %s", run_id, error)
                continue
            if replay.ended is None:
                self._queue[run_id] = None
            elif (due := due_of(replay)) is not None:
                self._rests.put(run_id, due)
        self._fill()

    # ------------------------------------------------------------------ what is known

    def _open(self) -> None:
        if self._is_closed:
            raise _closed()

    @asynccontextmanager
    async def _alone(self, run_id: str) -> AsyncGenerator[None]:
        """Who changes a run that is not at work does it alone. If it was queued meanwhile, it is loaded then, whatever came of that."""
        try:
            async with self._doors.setdefault(run_id, asyncio.Lock()):
                yield
        finally:
            self._fill()

    def _known(self, run_id: str) -> Replay:
        replay = Replay(self.journal.entries(run_id))
        if replay.header is None:
            raise JournalError(f'the journal knows no run "{run_id}".', id="AX503")
        return replay

    def _workflow(self, replay: Replay) -> Workflow:
        assert replay.header is not None
        header = replay.header.data
        found = self._flows.get(header["digest"])
        if found is None and self._find is not None:
            found = self._find({**header, "origin": decode(header.get("origin", {}))})
            self._flows[header["digest"]] = found
        if found is None:
            told = f'this engine has no workflow "{header.get("graph", "")}" as the run began it.'
            raise EngineError(told, id="AX542", hint="Give it to the engine, or a function that finds it.")
        return found

    def _overlaid(self, info: RunInfo) -> RunInfo:
        if info.run_id in self._at_work:
            return replace(info, status="running")
        return replace(info, status="queued") if info.run_id in self._queue else info

    async def _write(self, run_id: str, facts: Iterable[Entry]) -> None:
        """Append to a run that nobody is at work on."""
        book = self.journal.open(run_id)
        try:
            for fact in facts:
                book.append(fact)
            if (waiting := book.kept()) is not None:
                await waiting
        finally:
            book.close()

    async def _tell(self, run_id: str) -> None:
        """Tell those who wait for a run what it came to, if it has ended: in another process, or in none."""
        if run_id in self._waiters and run_id not in self._queue and (came := await self._came(run_id)) is not None:
            _tell(self._waiters.pop(run_id, ()), came)

    async def _came(self, run_id: str) -> Result | None:
        """What a run came to, as its journal has it; None: it has not ended."""
        ended = self._known(run_id).ended
        return None if ended is None or ended.data["status"] == "paused" else await self._of_the_past(run_id)

    async def _of_the_past(self, run_id: str) -> Result:
        """The result of a run that ended some time ago."""
        entries = list(self.journal.entries(run_id))
        replay = Replay(entries)
        assert replay.ended is not None
        told = replay.ended.data
        result = replace((await moment(self._workflow(replay), entries)).result, run_id=run_id)
        if told["status"] == "done":
            return result
        error = RunError(str(told.get("error") or told["status"]), id="AX400")
        return replace(result, status=told["status"], questions=(), error=error, output=None)


@dataclass(slots=True)
class _Work:
    """A run in memory."""

    run: OwnedRun
    job: asyncio.Task[Result]


def _tell(waiters: Iterable[asyncio.Future[Result]], came: Result | BaseException) -> None:
    for waiter in waiters:
        if waiter.done():
            continue
        if isinstance(came, Result):
            waiter.set_result(came)
        else:
            waiter.set_exception(came)


def _closed() -> EngineError:
    return EngineError("the engine is closed.", id="AX540", hint="Enter it with `async with`; its runs are in the journal.")


__all__ = ["TIMER", "Engine", "LocalEngine", "Standing", "due_of"]
