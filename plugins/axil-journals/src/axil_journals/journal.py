"""The journal: facts about a run, in plain data, from which a pure function rebuilds where it
stood.

An entry says what happened under the name of an activation, never under a position: ``done`` (what
it wrote and what each edge carried), ``round`` (how a round of a cycle ended), ``clock``,
``slept``, ``step`` (what a body read or did), ``asked`` and ``answer``. Nothing that is in the
journal runs again. Values are made canonical in ``values`` and nowhere else: what cannot be held
exactly is refused, never changed.

Entries are appended in the order in which they took effect, and are safe in that order: a crash
loses an end of them, never one from among them. What a run only worked out for itself may be lost
and is worked out again; so it waits for the journal before a body starts that the world could
notice, before a run continues after a step, and before it says how it ended.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from axil import Activation
from axil.driver import Frame, Ordinal, RunJournal
from axil.plugin import JournalError
from axil_journals.threads import admit_run

if TYPE_CHECKING:
    from axil import Options
    from axil.plugin import Plan
    from axil_journals.recorder import JournalRecorder


@dataclass(frozen=True, slots=True)
class Entry:
    """One fact. ``data`` is JSON data."""

    kind: str
    """One of ``KINDS``."""
    frame: Frame = ()
    node: str = ""
    ordinal: Ordinal = ()
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def activation(self) -> Activation:
        """The activation to which the fact belongs."""
        return Activation(self.frame, self.node, self.ordinal)


KINDS = (
    "run",
    "resumed",
    "began",
    "done",
    "round",
    "clock",
    "slept",
    "step",
    "prompt",
    "asked",
    "answer",
    "ended",
)
"""The kinds of entries: the run began (``run``), was resumed (``resumed``), ended (``ended``); a
body with effects outside was about to run (``began``), an activation ended (``done``), a round of a
cycle ended (``round``), a body read the clock, slept, took a step, asked a person; a person gave an
``answer``. What a body asked a model (``prompt``) is kept where ``Options.prompts`` says so."""


class Recording:
    """The part of a journal that runs use, made of the rest: each journal inherits it."""

    def recorder(
        self: Journal,
        run_id: str,
        plan: Plan,
        inputs: Any,
        values: Mapping[str, Any],
        options: Options,
    ) -> JournalRecorder:
        """See ``axil.driver.RunJournal``."""
        from axil_journals.recorder import JournalRecorder

        return JournalRecorder(self, run_id, plan, inputs, values, options)

    def check_known(self: Journal, run_id: str) -> None:
        """See ``axil.driver.RunJournal``."""
        if not any(entry.kind == "run" for entry in self.entries(run_id)):
            raise JournalError(f'the journal knows no run "{run_id}".', id="AX503")


class Journal(RunJournal, Protocol):
    """``axil.journals``: an append-only store of entries per run, in order.

    ``Recording`` has the methods of ``RunJournal``.
    """

    def open(self, run_id: str) -> JournalWriter:
        """Return the writer of a run. Opening it claims nothing yet."""
        ...

    def entries(self, run_id: str) -> Iterable[Entry]:
        """Everything known of a run, in the order it was appended; entries that a later one
        supersedes may be missing.
        """
        ...

    def thread(self, name: str) -> Sequence[str]:
        """Return the ids of the runs of a thread, oldest first."""
        ...

    def runs(self) -> Sequence[RunInfo]:
        """Return the runs of the journal, the last touched first."""
        ...

    def forget(self, run_id: str) -> None:
        """Drop all that is known of a run.

        Raises: JournalError (AX503): there is no such run; AX506: it is at work.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """The facts about a run that a journal reports without reading it."""

    run_id: str
    graph: str = ""
    status: str = "open"
    """Its status; ``running``: it is at work; ``open``: it broke off, and can be resumed."""
    thread: str = ""
    begun: float = 0.0
    """Seconds since 1970, as all times here."""
    touched: float = 0.0
    entries: int = 0
    forked_from: str = ""
    due: float | None = None
    """The time at which an engine may load it: ``DUE_NOW``, or the end of a sleep or of a limit;
    None: it has ended, or waits for a person. Journals that engines do not share say None.
    """


class JournalWriter(Protocol):
    """One run's part of a journal, held by the process that runs it.

    The first ``append`` claims the run, until ``close``. It is refused (JournalError AX506) where
    another holder is alive, or has written since this writer was opened: so a run is never at work
    twice, and who was overtaken notices at its next entry.
    """

    @property
    def entries(self) -> Sequence[Entry]:
        """The entries at the time when the writer was opened."""
        ...

    def append(self, entry: Entry) -> None:
        """Take ``entry``, behind all before it.

        It may not be safe yet; see ``kept``. Raises: JournalError.
        """
        ...

    def kept(self) -> Awaitable[None] | None:
        """Return None: all appended entries are safe.

        Else an awaitable: when it is done, it is. Raises: JournalError.
        """
        ...

    def close(self) -> None:
        """Release the run when what was appended is safe; nothing is appended after that.

        May be called again.
        """
        ...


DUE_NOW = 0.0
"""The ``due`` of a run that may be loaded at once: it was submitted, broke off, or was answered."""


@dataclass(frozen=True, slots=True)
class RunMail:
    """An entry that another process has for the holder of a run: an ``answer``, or an ``ended``
    that cancels it.
    """

    number: int
    run_id: str
    entry: Entry


class SharedJournal(Journal, Protocol):
    """A journal whose runs the engines of several processes share.

    It is their queue: a run is *due* when an engine may load it, and one that was *taken* is given
    to no other journal object until it is released, its writer is closed, or its process is gone.
    Methods may be called in any thread.
    """

    blocking: ClassVar[bool]
    """True if methods wait for a disk or a network; engines then call them in a thread."""

    def runs(
        self, *, status: Collection[str] = (), after: str = "", limit: int = 0
    ) -> Sequence[RunInfo]:
        """Return runs, the last touched first.

        Args:
            status: only those with one of these.
            after: only those behind this run, which was the last of the page before.
            limit: at most so many; 0: all.
        """
        ...

    def infos(self, run_ids: Collection[str]) -> Sequence[RunInfo]:
        """Return what is known of these runs; those that are not known are left out."""
        ...

    def take(
        self,
        most: int,
        now: float,
        *,
        digests: Collection[str] | None = None,
        without: Collection[str] = (),
        lost: bool = False,
    ) -> Sequence[str]:
        """Take runs that are due and that no living process holds, in the order of their times.

        The time of a run that is due ``DUE_NOW`` is when it was last written: it was submitted,
        answered or interrupted then. So a timer that has come waits for no later submission.

        A run is *lost* when the process that held it has died without releasing it, until it is
        written again: this run may be what ended the process. One that is released stays lost.

        Args:
            now: seconds since 1970, by the engine's clock.
            digests: only runs of these graphs; None: of all.
            without: runs that the engine cannot load.
            lost: True: only lost runs; False: only others.
        """
        ...

    def next_due(self, now: float) -> float | None:
        """Return when the first run that is not due now becomes due by itself."""
        ...

    def release(self, run_id: str) -> None:
        """Release a run that was taken and has no open writer; it stays due."""
        ...

    def wake(self, run_id: str, due: float = DUE_NOW) -> None:
        """Make a run due that no process holds.

        Raises: JournalError (AX503): there is no such run.
        """
        ...

    def post(self, run_id: str, entry: Entry) -> bool:
        """Keep an entry for the holder of a run, and make the run due if there is none.

        Returns: False: an answer to the same question was posted before.
        Raises: JournalError (AX503): there is no such run.
        """
        ...

    def mail(self, run_ids: Collection[str]) -> Sequence[RunMail]:
        """Return the letters for these runs that were not discarded, in order."""
        ...

    def discard(self, numbers: Collection[int]) -> None:
        """Mark letters as read: what they say is in the record."""
        ...

    async def changed(self, since: int, seconds: float, *, is_work: bool = False) -> int:
        """Wait until a run was submitted, posted to, woken or released in any process.

        Args:
            since: what the last call returned; 0 at first.
            seconds: of real time, at most.
            is_work: True: other changes may be left out than runs that became due, and mail for
                runs that this journal object holds; of many processes that wait for due runs, a
                change may wake some.
        Returns: a number to wait on from; one that differs from ``since`` says that something may
        have changed.
        """
        ...


def due_of_end(data: Mapping[str, Any]) -> float | None:
    """Return when a run that ended with ``data`` may be loaded again by itself; None: never.

    A paused run is due at the first of its timers and of the deadlines of its questions.

    >>> due_of_end({"status": "paused", "questions": [{"id": "a?", "due": 50}]}), due_of_end({})
    (50.0, None)
    """
    if data.get("status") != "paused":
        return None
    times = (question_due(question) for question in data.get("questions", ()))
    return min((due for due in times if due is not None), default=None)


def question_due(question: Mapping[str, Any]) -> float | None:
    """Return the time of a timer, or the deadline of a question, in seconds since 1970."""
    data: Mapping[str, Any] = question.get("data") or {}
    due: Any = question.get("due", data.get("due"))
    return float(due) if isinstance(due, (int, float)) else None


class ChangeSignal:
    """A count of changes that tasks of any event loop wait on; it is rung from any thread."""

    def __init__(self) -> None:
        self._count = 1
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def ring(self) -> None:
        """Count a change, and wake those that wait."""
        self._count += 1
        waiting, self._waiting = self._waiting, []
        for loop, event in waiting:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(event.set)

    async def rung(self, since: int, seconds: float) -> int:
        """Wait for a change after ``since``, at most so long, and return the count."""
        event = asyncio.Event()
        self._waiting.append(mine := (asyncio.get_running_loop(), event))
        try:
            if self._count == since:
                # before Python 3.12 wait_for swallows a cancellation that comes with the bell
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await event.wait()
        finally:
            with suppress(ValueError):
                self._waiting.remove(mine)
        return self._count


class Cipher(Protocol):
    """``axil.ciphers``: encrypts what a journal stores. It holds the keys.

    ``about`` is what a text belongs to; a text that was moved elsewhere does not open.
    """

    def seal(self, text: bytes, about: bytes) -> bytes:
        """Return ``text``, encrypted. Raises: JournalError (AX513): there is no usable key."""
        ...

    def open(self, sealed: bytes, about: bytes) -> bytes:
        """Return the text that was sealed.

        Raises: JournalError: AX513 there is no usable key; AX514 it was sealed with another key, or
        was changed.
        """
        ...

    def digest(self, text: bytes) -> bytes:
        """Return a digest of at least 16 bytes that depends on the key.

        Raises: JournalError (AX513).
        """
        ...

    def is_current(self, sealed: bytes) -> bool:
        """Return whether this was sealed with the key that seals now, and not with an older one."""
        ...


T = TypeVar("T")


class Compactor(Generic[T]):
    """The rule by which later entries of a run supersede earlier ones: the entry that ends an
    activation, a round, or a stretch of rounds holds all that they did; prompts stay. ``T`` is the
    journal's own id of an entry.
    """

    def __init__(self) -> None:
        self._root: _Branch[T] = _Branch()

    def add(self, entry: Entry, known_by: T) -> list[T]:
        """Take in ``entry``; gives those that it supersedes.

        Cost: O(depth of its frame), and what is given.
        """
        branch = self._root
        for part in entry.frame:
            kid = branch.kids.get(part)
            if kid is None:
                kid = branch.kids[part] = _Branch()
            branch = kid
        who, kind = (entry.node, entry.ordinal), entry.kind
        if kind == "prompt":
            return []
        gone: list[T] = []
        if kind == "done":
            if branch.facts:
                gone += branch.facts.pop(who, ())
            if branch.rounds:
                gone += branch.rounds.pop(who, ())
            branch.done.append(known_by)
        elif kind == "round":
            if "total" in entry.data:
                gone += branch.rounds.pop(who, ())
            branch.rounds.setdefault(who, []).append(known_by)
        else:
            branch.facts.setdefault(who, []).append(known_by)
            return gone
        if entry.node in branch.kids:
            inside: list[str | int] = [entry.node]
            if entry.ordinal:
                inside.append("#" + ".".join(map(str, entry.ordinal)))
            if kind == "round":
                inside.append(entry.data["round"])
            gone += _cut(branch, inside)
        return gone


class _Branch(Generic[T]):
    """The entries of one frame, and of the frames inside it."""

    __slots__ = ("done", "facts", "kids", "rounds")

    def __init__(self, kids: dict[str | int, _Branch[T]] | None = None) -> None:
        self.kids = {} if kids is None else kids
        self.facts: dict[tuple[str, Ordinal], list[T]] = {}
        self.rounds: dict[tuple[str, Ordinal], list[T]] = {}
        self.done: list[T] = []

    def all(self) -> Iterator[T]:
        stack: list[_Branch[T]] = [self]
        while stack:
            branch = stack.pop()
            yield from branch.done
            for several in (*branch.facts.values(), *branch.rounds.values()):
                yield from several
            stack.extend(branch.kids.values())


def _cut(branch: _Branch[T], path: Sequence[str | int]) -> Iterable[T]:
    for part in path[:-1]:
        if part not in branch.kids:
            return ()
        branch = branch.kids[part]
    inside = branch.kids.pop(path[-1], None)
    if inside is None or not (inside.kids or inside.facts or inside.rounds):
        return () if inside is None else inside.done
    others = {part: kid for part, kid in inside.kids.items() if str(part).startswith("#")}
    if others:  # other firings of the same node, which may be under way
        branch.kids[path[-1]] = _Branch(others)
        inside.kids = {part: kid for part, kid in inside.kids.items() if part not in others}
    return inside.all()


@dataclass(slots=True)
class _Shelf:
    """One run in memory."""

    entries: dict[int, Entry] = field(default_factory=dict[int, Entry])
    superseding: Compactor[int] = field(default_factory=Compactor[int])
    count: int = 0
    holder: _MemoryWriter | None = None
    is_taken: bool = False
    is_forgotten: bool = False
    begun: float = field(default_factory=time.time)
    touched: float = 0.0
    ended: str = ""
    due: float | None = DUE_NOW
    header: Mapping[str, Any] = field(default_factory=dict[str, Any])
    letters: list[RunMail] = field(default_factory=list[RunMail])
    read: set[int] = field(default_factory=set[int])

    @property
    def is_held(self) -> bool:
        return self.is_taken or self.holder is not None

    @property
    def status(self) -> str:
        return self.ended or ("running" if self.is_held else "open")

    @property
    def unread(self) -> list[RunMail]:
        return [letter for letter in self.letters if letter.number not in self.read]

    def info(self, run_id: str) -> RunInfo:
        header = self.header
        return RunInfo(
            run_id=run_id,
            graph=header.get("graph", ""),
            status=self.status,
            thread=header.get("thread", ""),
            begun=self.begun,
            touched=self.touched,
            entries=len(self.entries),
            forked_from=header.get("forked_from", ""),
            due=self.due,
        )


_Due = tuple[float, float, str]
"""The time by which it is taken (that of its last change, of one that is due at once), the time at
which it is due, and its id."""


class MemoryJournal(Recording):
    """A journal in this process's memory: for tests, and for runs that pause and continue in one
    process.

    Superseded entries are dropped.
    """

    blocking: ClassVar[bool] = False

    def __init__(self) -> None:
        self._shelves: dict[str, _Shelf] = {}
        self._threads: dict[str, list[str]] = {}
        self._due: list[_Due] = []  # a heap; of some runs it has older times, too
        self._bell = ChangeSignal()
        self._posted = 0

    def open(self, run_id: str) -> JournalWriter:
        """See ``Journal``."""
        return _MemoryWriter(run_id, self._shelves, self._threads, self.put_down)

    def entries(self, run_id: str) -> Sequence[Entry]:
        """See ``Journal``."""
        shelf = self._shelves.get(run_id)
        return [] if shelf is None else list(shelf.entries.values())

    def thread(self, name: str) -> Sequence[str]:
        """See ``Journal``."""
        return tuple(self._threads.get(name, ()))

    def runs(
        self, *, status: Collection[str] = (), after: str = "", limit: int = 0
    ) -> Sequence[RunInfo]:
        """See ``SharedJournal``."""
        infos = [shelf.info(run_id) for run_id, shelf in list(self._shelves.items()) if shelf.count]
        infos.sort(key=lambda info: -info.touched)
        if after:
            ids = [info.run_id for info in infos]
            infos = infos[ids.index(after) + 1 :] if after in ids else []
        infos = [info for info in infos if not status or info.status in status]
        return infos[:limit] if limit else infos

    def forget(self, run_id: str) -> None:
        """See ``Journal``."""
        shelf = self._known(run_id)
        if shelf.is_held:
            raise claimed_error(run_id, "in this process")
        del self._shelves[run_id]
        shelf.is_forgotten = True
        for runs in self._threads.values():
            if run_id in runs:
                runs.remove(run_id)

    # ------------------------------------------------------------------ what engines need

    def infos(self, run_ids: Collection[str]) -> Sequence[RunInfo]:
        """See ``SharedJournal``."""
        found = ((run_id, self._shelves.get(run_id)) for run_id in run_ids)
        return [shelf.info(run_id) for run_id, shelf in found if shelf is not None and shelf.count]

    def take(
        self,
        most: int,
        now: float,
        *,
        digests: Collection[str] | None = None,
        without: Collection[str] = (),
        lost: bool = False,
    ) -> Sequence[str]:
        """See ``SharedJournal``; no run is lost, as the journal ends with its process."""
        if lost:
            return ()
        taken: list[str] = []
        passed: list[_Due] = []
        # waiting for times that are far off costs nothing; a clock may have been put back a little
        last = max(now, time.time()) + 3600.0
        while len(taken) < most and (first := self._first_due()) is not None and first[0] <= last:
            heapq.heappop(self._due)
            _, due, run_id = first
            shelf = self._shelves[run_id]
            digest = shelf.header.get("digest", "")
            is_unknown = digests is not None and digest not in digests
            if due > now or run_id in without or is_unknown:
                passed.append(first)
            else:
                shelf.is_taken = True
                taken.append(run_id)
        for each in passed:
            heapq.heappush(self._due, each)
        return taken

    def next_due(self, now: float) -> float | None:
        """See ``SharedJournal``."""
        first = self._first_due()
        if first is None or first[1] > now:
            return None if first is None else first[1]
        later = (due for _, due, run_id in self._due if due > now and self._is_due(run_id, due))
        return min(later, default=None)

    def _is_due(self, run_id: str, due: float) -> bool:
        shelf = self._shelves.get(run_id)
        return shelf is not None and not shelf.is_held and shelf.due == due

    def _first_due(self) -> _Due | None:
        while self._due and not self._is_due(self._due[0][2], self._due[0][1]):
            heapq.heappop(self._due)
        return self._due[0] if self._due else None

    def put_down(self, run_id: str, shelf: _Shelf) -> None:
        """Note when a run that has no holder is due, and tell those that wait for changes."""
        if shelf.due is not None:
            heapq.heappush(self._due, (shelf.due or shelf.touched, shelf.due, run_id))
        self._bell.ring()

    def release(self, run_id: str) -> None:
        """See ``SharedJournal``."""
        shelf = self._shelves.get(run_id)
        if shelf is not None and shelf.is_taken and shelf.holder is None:
            shelf.is_taken = False
            if shelf.due is not None:
                heapq.heappush(self._due, (shelf.due or shelf.touched, shelf.due, run_id))

    def wake(self, run_id: str, due: float = DUE_NOW) -> None:
        """See ``SharedJournal``."""
        shelf = self._known(run_id)
        if not shelf.is_held:
            shelf.due = due
            self.put_down(run_id, shelf)

    def post(self, run_id: str, entry: Entry) -> bool:
        """See ``SharedJournal``."""
        shelf = self._known(run_id)
        if entry.kind == "answer" and any(
            letter.entry.kind == "answer" and letter.entry.data["id"] == entry.data["id"]
            for letter in shelf.letters
        ):
            return False
        self._posted += 1
        shelf.letters.append(RunMail(self._posted, run_id, entry))
        if shelf.is_held:
            self._bell.ring()
        else:
            shelf.due = DUE_NOW
            self.put_down(run_id, shelf)
        return True

    def mail(self, run_ids: Collection[str]) -> Sequence[RunMail]:
        """See ``SharedJournal``."""
        shelves = (self._shelves.get(run_id) for run_id in run_ids)
        return [letter for shelf in shelves if shelf is not None for letter in shelf.unread]

    def discard(self, numbers: Collection[int]) -> None:
        """See ``SharedJournal``."""
        for shelf in self._shelves.values():
            if shelf.letters:
                shelf.read.update(
                    letter.number for letter in shelf.letters if letter.number in numbers
                )

    async def changed(self, since: int, seconds: float, *, is_work: bool = False) -> int:
        """See ``SharedJournal``; no change is left out."""
        return await self._bell.rung(since, seconds)

    def _known(self, run_id: str) -> _Shelf:
        shelf = self._shelves.get(run_id)
        if shelf is None or not shelf.count:
            raise JournalError(f'the journal knows no run "{run_id}".', id="AX503")
        return shelf


class _MemoryWriter:
    """See ``JournalWriter``: memory is as safe as it gets at once."""

    def __init__(
        self,
        run_id: str,
        shelves: dict[str, _Shelf],
        threads: dict[str, list[str]],
        put_down: Callable[[str, _Shelf], None],
    ) -> None:
        self.run_id, self._shelves, self._threads = run_id, shelves, threads
        self._put_down = put_down
        self._shelf = shelves.setdefault(run_id, _Shelf())
        self.entries, self._seen = tuple(self._shelf.entries.values()), self._shelf.count

    def append(self, entry: Entry) -> None:
        # there was no run when this was opened: what came and went since is nothing to it
        if not self._seen and self._shelf.is_forgotten:
            self._shelf = self._shelves.setdefault(self.run_id, _Shelf())
        shelf = self._shelf
        if shelf.holder is not self:
            if shelf.is_forgotten or shelf.holder is not None or shelf.count != self._seen:
                raise claimed_error(self.run_id, "in this process")
            header = entry.data if entry.kind == "run" else shelf.header
            if header.get("thread"):
                runs = self._threads.setdefault(header["thread"], [])
                admit_run(header, self.run_id, runs, lambda run_id: self._shelves[run_id].status)
                runs += [self.run_id] if self.run_id not in runs else []
            shelf.holder, shelf.header = self, header
        if entry.kind == "resumed" and "now" in entry.data:
            shelf.header = {**shelf.header, **entry.data["now"]}
        shelf.count += 1
        for gone in shelf.superseding.add(entry, shelf.count):
            del shelf.entries[gone]
        shelf.entries[shelf.count] = entry
        shelf.touched = time.time()
        shelf.ended = entry.data["status"] if entry.kind == "ended" else ""
        shelf.due = due_of_end(entry.data) if shelf.ended else DUE_NOW

    def kept(self) -> None:
        return None

    def close(self) -> None:
        self._seen = -1
        shelf = self._shelf
        if shelf.holder is self:
            shelf.holder, shelf.is_taken = None, False
            if shelf.ended == "paused" and shelf.unread:
                shelf.due = DUE_NOW
            self._put_down(self.run_id, shelf)


def claimed_error(run_id: str, by: str) -> JournalError:
    """Return another holder runs it, or went on with it."""
    message = f'the run "{run_id}" is at work elsewhere ({by}), or was resumed there.'
    return JournalError(
        message, id="AX506", hint="Wait until it has ended, or cancel it there; then resume it."
    )
