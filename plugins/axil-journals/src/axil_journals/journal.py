"""Interfaces of journals, which record the facts of runs as plain data.

An entry has the name of its activation, never a position: ``done`` (what it wrote and what each
edge carried), ``round``, ``clock``, ``slept``, ``step``, ``asked``, ``answer``. What is recorded
is not executed again. Values that cannot be held exactly are refused, never changed (``values``).

Entries are appended in the order in which they took effect, and are safe in that order: a crash
loses an end of them, never one from among them. What a run only worked out may be lost and is
worked out again. So a run waits for the journal before a body with effects outside starts, before
it continues after a step, and before it reports its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from axil import Activation
from axil.driver import Frame, Ordinal, RunJournal
from axil.plugin import JournalError

if TYPE_CHECKING:
    from axil_journals.queues import Queue, Spent


@dataclass(slots=True)  # frozen ones take five times as long, and each step makes two
class Entry:
    """One fact. ``data`` is JSON data."""

    kind: str
    """``run``: the run began; ``resumed``; ``ended``; ``began``: a body with effects outside was
    about to run; ``done``: an activation ended; ``round``: a round of a cycle ended; ``clock``,
    ``slept``, ``step``, ``asked``: a body read the clock, slept, took a step, asked a person;
    ``answer``: a person answered; ``prompt``: what a model was asked, see ``Options.prompts``."""
    frame: Frame = ()
    node: str = ""
    ordinal: Ordinal = ()
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def activation(self) -> Activation:
        """The activation to which the fact belongs."""
        return Activation(self.frame, self.node, self.ordinal)


class Journal(RunJournal, Protocol):
    """``axil.journals``: an append-only store of entries per run, in order.

    ``Recording`` has the methods of ``RunJournal``.
    """

    def open(self, run_id: str) -> JournalWriter:
        """Return the writer of a run. Opening it claims nothing yet."""
        ...

    def entries(self, run_id: str) -> Iterable[Entry]:
        """Return the entries of a run in order; superseded ones may be missing."""
        ...

    def thread(self, name: str) -> Sequence[str]:
        """Return the ids of the runs of a thread, oldest first."""
        ...

    def runs(self) -> Sequence[RunInfo]:
        """Return the runs of the journal, the last touched first."""
        ...

    def forget(self, run_id: str) -> None:
        """Delete a run.

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
    """The time at which it was last written; of one at work a journal may say up to a second
    less."""
    entries: int = 0
    forked_from: str = ""
    due: float | None = None
    """The time at which an engine may load it: ``DUE_NOW``, or the end of a sleep or of a limit;
    None: it has ended, or waits for a person. Journals that engines do not share say None.
    """

    @property
    def revision(self) -> tuple[str, float, int]:
        """The facts of which at least one changes with each entry."""
        return self.status, self.touched, self.entries


class JournalWriter(Protocol):
    """One run's part of a journal, held by the process that runs it.

    The first ``append`` claims the run, until ``close``. It is refused (JournalError AX506) where
    another holder is alive, or has written since this writer was opened: so a run is never at work
    twice, and a holder that lost its run notices at its next entry.
    """

    @property
    def entries(self) -> Sequence[Entry]:
        """The entries at the time when the writer was opened."""
        ...

    def append(self, entry: Entry) -> None:
        """Append an entry. It is safe when ``kept`` says so, and within seconds if no caller asks.

        Raises: JournalError.
        """
        ...

    def kept(self) -> Awaitable[None] | None:
        """Return an awaitable that is done when all appended entries are safe; None: they are.

        Raises: JournalError.
        """
        ...

    def close(self) -> None:
        """Release the run when what was appended is safe; nothing is appended after that.

        May be called again.
        """
        ...


ENDED = frozenset(["done", "failed", "cancelled", "limited"])
"""The statuses of runs that have ended."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCount:
    """The number of runs of a queue and a graph that have not ended, in one of these states.

    ``due``: an engine may take them; ``held``: a process has them loaded; ``waiting``: for a
    person or a time; ``parked``.
    """

    queue: str
    graph: str
    state: str
    runs: int
    oldest: float
    """The time at which the first of them was last written, or became due."""


class SharedJournal(Journal, Protocol):
    """A journal whose runs the engines of several processes share.

    It is their queue: a run is *due* when an engine may load it, and one that was *taken* is given
    to no other journal object until it is released, its writer is closed, or its process is gone.
    Methods may be called in any thread.
    """

    blocking: ClassVar[bool]
    """True if methods wait for a disk or a network; engines then call them in a thread."""

    def runs(
        self,
        *,
        status: Collection[str] = (),
        after: str = "",
        limit: int = 0,
        before: float | None = None,
    ) -> Sequence[RunInfo]:
        """Return runs, the last touched first. A page costs what is on it, however many there are.

        Args:
            status: only those with one of these.
            after: only those behind this run, which was the last of the page before.
            limit: at most so many; 0: all.
            before: only those that were last touched before this time.
        """
        ...

    def named(self, prefix: str, limit: int) -> Sequence[str]:
        """Return the ids of runs that begin so, in their order, at most so many."""
        ...

    def prune(
        self, before: float, *, status: Collection[str] = ENDED, limit: int = 1000
    ) -> Sequence[RunInfo]:
        """Delete runs that no process holds, in one transaction, and return what they were.

        One process at a time prunes a journal; a second one waits.

        Args:
            before: those that were last touched before this time, the oldest first.
            status: those with one of these.
            limit: at most so many.
        """
        ...

    def infos(self, run_ids: Collection[str]) -> Sequence[RunInfo]:
        """Return the facts about these runs; unknown ones are left out."""
        ...

    def take(
        self,
        most: int,
        now: float,
        *,
        digests: Collection[str] | None = None,
        without: Collection[str] = (),
        unknown: Collection[str] = (),
        lost: bool = False,
    ) -> Sequence[str]:
        """Take runs that are due and that no living process holds, in the order of their times.

        The time of a run that is due ``DUE_NOW`` is when it was last written, so that a timer that
        has come waits for no later submission.

        Runs of a queue are taken by its rules (``axil_journals.Queue``), those that a dead process
        had as well.

        A run is *lost* when the process that held it has died without releasing it, until it is
        written again: this run may be what ended the process. One that is released stays lost.

        Args:
            now: seconds since 1970, by the engine's clock.
            digests: only runs of these graphs; None: of all.
            without: runs that the engine cannot load.
            unknown: graphs whose runs the engine cannot load.
            lost: True: only lost runs; False: only others.
        """
        ...

    def next_due(self, now: float) -> float | None:
        """Return when the first run that is not due now becomes due by itself, or when the rate of
        a queue lets the next one pass.
        """
        ...

    def set_queues(self, queues: Collection[Queue]) -> None:
        """Store the rules of queues, for all engines of the journal; those of others stay."""
        ...

    def queues(self) -> Sequence[Queue]:
        """Return the queues that have rules or were used, by their names."""
        ...

    def spend(self, spent: Collection[Spent], now: float) -> Collection[str]:
        """Count what runs of queues used of models; return those of the queues that limit it."""
        ...

    def counts(self, now: float) -> Sequence[RunCount]:
        """Return how many runs have not ended. It costs what it counts, not what has ended."""
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
        """Return what was posted for these runs and not discarded, in order."""
        ...

    def discard(self, numbers: Collection[int]) -> None:
        """Mark mail as read: it is in the record."""
        ...

    async def changed(self, since: int, seconds: float, *, is_work: bool = False) -> int:
        """Wait until a run was submitted, posted to, woken or released in any process.

        Args:
            since: what the last call returned; 0 at first.
            seconds: of real time, at most.
            is_work: True: only runs that became due and mail for runs that this journal object
                holds have to be reported, and a due run only to some of many waiting processes.
        Returns: a number to wait on from; if it is not ``since``, something may have changed.
        """
        ...


def due_of_end(data: Mapping[str, Any]) -> float | None:
    """Return when a run that ended with ``data`` may be loaded again by itself; None: never.

    A paused run is due at the first of its timers and of the deadlines of its questions.

    >>> due_of_end({"status": "paused", "questions": [{"id": "a?", "due": 50}]}), due_of_end({})
    (50.0, None)
    """
    return first_due(data.get("questions", ())) if data.get("status") == "paused" else None


def first_due(questions: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the first of the times of timers and of the deadlines of questions."""
    return min((due for each in questions if (due := question_due(each)) is not None), default=None)


def question_due(question: Mapping[str, Any]) -> float | None:
    """Return the time of a timer, or the deadline of a question, in seconds since 1970."""
    data: Mapping[str, Any] = question.get("data") or {}
    due: Any = question.get("due", data.get("due"))
    return float(due) if isinstance(due, (int, float)) else None


class ChangeSignal:
    """A count of changes, noted from any thread, on which tasks of any event loop wait."""

    def __init__(self) -> None:
        self._count = 1
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def notify(self) -> None:
        """Count a change, and wake those that wait."""
        self._count += 1
        waiting, self._waiting = self._waiting, []
        for loop, event in waiting:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(event.set)

    async def wait(self, since: int, seconds: float) -> int:
        """Wait at most so long for a change after ``since``, and return the count."""
        event = asyncio.Event()
        self._waiting.append(mine := (asyncio.get_running_loop(), event))
        try:
            if self._count == since:
                # wait_for before Python 3.12 swallows a cancellation that comes with the event
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await event.wait()
        finally:
            with suppress(ValueError):
                self._waiting.remove(mine)
        return self._count


class Cipher(Protocol):
    """``axil.ciphers``: encrypts what a journal stores. It holds the keys.

    ``about`` is what a text belongs to; a text that was moved elsewhere does not open. All methods
    raise JournalError (AX513) where there is no usable key.
    """

    def seal(self, text: bytes, about: bytes) -> bytes:
        """Return ``text``, encrypted."""
        ...

    def open(self, sealed: bytes, about: bytes) -> bytes:
        """Return the text that was sealed.

        Raises: JournalError (AX514): it was sealed with another key, or was changed.
        """
        ...

    def digest(self, text: bytes) -> bytes:
        """Return a digest of at least 16 bytes that depends on the key."""
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
        """Add an entry, and return those that it supersedes.

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


def claimed_error(run_id: str, by: str) -> JournalError:
    """Return the error for a run that another holder executes, or continued."""
    message = f'the run "{run_id}" is at work elsewhere ({by}), or was resumed there.'
    hint = "Wait until it has ended, or cancel it there; then resume it."
    return JournalError(message, id="AX506", hint=hint)


def unknown_error(run_id: str) -> JournalError:
    """Return the error for a run that a journal does not know."""
    message = f'the journal knows no run "{run_id}".'
    return JournalError(message, id="AX503", hint="Check its id against the runs of the journal.")
