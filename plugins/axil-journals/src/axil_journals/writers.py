"""Writers of runs for journals that commit what many runs appended in one transaction.

A ``RunWriter`` turns the entries of its run into rows, in a queue of its own. A caller that needs
them safe asks the ``GroupCommit`` of the process, which commits the queues of all runs that were
asked for. What no caller asks for is committed all the same, within ``LAG`` seconds: the items of a
map that have ended are not worked on again after a crash, though others are at work for hours. Its
subclasses know the database.
"""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar
from weakref import WeakKeyDictionary

from axil import AxilError
from axil.plugin import without_secrets
from axil_journals.journal import DUE_NOW, Compactor, Entry, claimed_error, due_of_end
from axil_journals.queues import Place, place_of
from axil_journals.rows import EntryRow, entry_row, joined_row

Waiter = asyncio.Future[None]

LAG: Final = 0.05
"""Seconds after which rows are committed that no caller asked for. It is looked for them twice in
this time, and what was not there before is left for the next look: its caller is about to ask.
"""


class RunWriter(ABC):
    """A ``JournalWriter``. A ``GroupCommit`` sets its attributes."""

    def __init__(
        self,
        group: GroupCommit[Any],
        run_id: str,
        *,
        seen: tuple[int, int],
        entries: Iterable[tuple[int, Entry]],
        detail: int,
    ) -> None:
        """Read the record of the run; nothing is claimed yet.

        Args:
            seen: the epoch of the run and the number of its next entry, read before ``entries``,
                so that what another process writes in between is noticed; zeros: there is no run.
            detail: how many superseded entries stay.
        """
        self.run_id, self.seen = run_id, seen
        self._group, self._detail = group, detail
        self.id = 0
        """The number of the run in the database."""
        self.epoch: int | None = None
        """Of the claim; None: nothing is claimed yet."""
        self.rows: deque[EntryRow] = deque()
        """Appended, and not yet taken for a transaction."""
        self.superseded: deque[tuple[int, int]] = deque()
        """Pairs of numbers: of an entry that is committed before or with the deletion of another,
        and of that other."""
        self.fault: AxilError | None = None
        self.closing = self.is_released = False
        self.noted: int | None = None
        """The number of the first row that was there at the last look for rows that no caller had
        asked for, or of the one before the first since; None: no look is due."""
        self.ended = ""
        """The status with which the run ended, or empty."""
        self.due: float | None = DUE_NOW
        self.header: Mapping[str, Any] = {}
        self.place = Place()
        self.first: EntryRow | None = None
        """The beginning of a run of a name, which another one may get (``Place.once``)."""
        self.digest = ""
        """Of the run's graph, if it is to be written."""
        self._known = Compactor[int]()
        self._past: deque[int] = deque()  # superseded, and still stored
        self._done: Entry | None = None  # the last entry, if it is a firing's
        stored: dict[int, Entry] = {}
        for seq, entry in entries:
            for gone in self._known.add(entry, seq):
                del stored[gone]
                self._past.append(gone)
            stored[seq] = entry
        self.entries: Sequence[Entry] = list(stored.values())
        self.safe = self._next = seen[1]

    @abstractmethod
    def check_names(self, *names: str) -> None:
        """Raises: JournalError (AX501): the database cannot hold a name."""

    def append(self, entry: Entry) -> None:
        if self.fault is not None:
            raise self.fault
        if self.closing:
            raise claimed_error(self.run_id, "its writer was closed")
        both = self._joined(entry) if entry.kind == "round" else None
        row = both or entry_row(self._next, entry)
        if entry.kind == "run":
            names = ("graph", "thread", "forked_from")
            self.place = place_of(entry.data)
            places = (self.place.queue, self.place.key, self.place.once)
            self.first = row if self.place.once else None
            self.check_names(*(str(entry.data.get(name, "")) for name in names), *places)
            self.digest = str(entry.data.get("digest", ""))
            self.header = {**entry.data, "graph": without_secrets(entry.data.get("graph", ""))}
        elif entry.kind == "resumed" and "now" in entry.data:
            self.digest = str(entry.data["now"].get("digest", ""))
        gone = self._known.add(entry, row.seq)
        if both is not None:
            gone.remove(row.seq - 1)  # it goes when its row does
        self._past.extend(gone)
        while len(self._past) > self._detail:
            self.superseded.append((row.seq, self._past.popleft()))
        self._next += 1
        self._done = entry if entry.kind == "done" else None
        self.rows.append(row)
        if self.noted is None:
            self._group.keep_later(self, row.seq)
        # behind the row: a thread that reads this finds the row
        self.due = due_of_end(entry.data) if entry.kind == "ended" else DUE_NOW
        if entry.kind == "run":
            self.due = self.place.due(time.time())
        self.ended = entry.data["status"] if entry.kind == "ended" else ""

    def _joined(self, round: Entry) -> EntryRow | None:
        """Return one row for ``round`` and the firing that ended it."""
        if self._done is None or not self._detail:
            return None
        try:
            both = joined_row(self.rows[-1], self._done, round)
            if both is not None:
                self.rows.pop()
        except IndexError:  # the row of the firing was taken for a transaction
            return None
        return both

    def kept(self) -> Waiter | None:
        if self.fault is not None:
            raise self.fault
        return None if self.safe == self._next else self._group.kept(self)

    def close(self) -> None:
        self.closing = True
        # it holds the run, or is about to
        if not self.is_released and self._next > self.seen[1]:
            self._group.finish(self)

    def take_part(self) -> RunPart[Self]:
        """Take the rows for a transaction."""
        # read before the rows, which then have all that belongs to it
        is_closing, ended, due = self.closing, self.ended, self.due
        rows: list[EntryRow] = []
        try:
            for _ in range(len(self.rows)):
                rows.append(self.rows.popleft())
        except IndexError:  # three calls more
            pass  # ``append`` took back the last one, to join it with the next
        gone: list[int] = []
        while rows and self.superseded and self.superseded[0][0] <= rows[-1].seq:
            gone.append(self.superseded.popleft()[1])
        return RunPart(self, rows, is_closing, ended, due, gone)


W = TypeVar("W", bound=RunWriter)


class RunPart(NamedTuple, Generic[W]):
    """The rows of a run in one transaction, as they were when they were taken."""

    run: W
    rows: Sequence[EntryRow]
    is_closing: bool
    ended: str
    due: float | None
    superseded: Sequence[int]
    """The numbers of entries to be deleted; none that is superseded by an entry that is not among
    the rows, as a crash would lose both."""

    @property
    def next(self) -> int:
        """The number of the entry behind these."""
        return self.rows[-1].seq + 1 if self.rows else self.run.safe


class GroupCommit(ABC, Generic[W]):
    """The commits of a process: one for all runs asked for in one turn of an event loop."""

    def __init__(self) -> None:
        self._turns: dict[asyncio.AbstractEventLoop, list[tuple[W, Waiter | None]]] = {}
        # weak: a loop that is closed calls nobody
        self._late = WeakKeyDictionary[asyncio.AbstractEventLoop, list[W]]()
        self.lock = threading.RLock()
        """Held while a transaction is made."""
        self.finishing: set[W] = set()
        """Runs that are closed, and not written to their end yet."""

    def kept(self, run: W) -> Waiter:
        """Return a future that is done when all that ``run`` has appended is safe."""
        loop = asyncio.get_running_loop()
        waiter: Waiter = loop.create_future()
        if loop in self._turns:
            self._turns[loop].append((run, waiter))
        else:  # one request for each turn of the loop, not for each run
            self._turns[loop] = [(run, waiter)]
            loop.call_soon(lambda: self.ask(self._turns.pop(loop)))
        return waiter

    def keep_later(self, run: W, seq: int) -> None:
        """Have the row ``seq`` of ``run``, and what it appends next, committed within ``LAG``
        seconds, in the turn of an event loop; where none is running, nothing else is at work
        meanwhile.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        run.noted = seq - 1
        if (late := self._late.get(loop)) is None:
            self._look_later(loop, [run])
        else:
            late.append(run)

    def _look_later(self, loop: asyncio.AbstractEventLoop, runs: list[W]) -> None:
        self._late[loop] = runs
        loop.call_later(LAG / 2, self._keep_late, loop)

    def _keep_late(self, loop: asyncio.AbstractEventLoop) -> None:
        late: list[tuple[W, Waiter | None]] = []
        fresh: list[W] = []
        for run in self._late.pop(loop):
            noted, run.noted = run.noted, None
            try:
                first = run.rows[0].seq
            except IndexError:  # a thread has taken the rows
                continue
            if run.closing:
                continue
            if noted is not None and first > noted:
                run.noted = first
                fresh.append(run)
            else:
                late.append((run, None))
        if fresh:
            self._look_later(loop, fresh)
        if late:
            self.ask(late)

    @abstractmethod
    def ask(self, asked: Sequence[tuple[W, Waiter | None]]) -> None:
        """Have the rows of these runs committed, and then settle the waiters."""

    @abstractmethod
    def finish(self, run: W) -> None:
        """Write the rest of a run, and release it."""

    def finish_now(self, run_id: str = "") -> None:
        """Write closed runs to their end now; those of one run, or all."""
        if any(not run_id or run.run_id == run_id for run in self.finishing.copy()):
            with self.lock:  # a thread may be at it
                if closing := list(self.finishing):
                    self.commit(closing)

    @abstractmethod
    def commit(self, runs: Sequence[W]) -> None:
        """Commit what ``runs`` have appended; a run that is refused has a ``fault``."""

    def settle(self, waiters: Iterable[tuple[W, Waiter | None]]) -> None:
        """Resolve waiters after a commit, in their event loop."""
        for run, waiter in waiters:
            if waiter is None or waiter.done():
                continue
            if run.fault is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(run.fault)

    def settle_threadsafe(self, waiters: Iterable[tuple[W, Waiter | None]]) -> None:
        """Resolve waiters after a commit from any thread."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[W, Waiter | None]]] = {}
        for run, waiter in waiters:
            if waiter is not None:
                by_loop.setdefault(waiter.get_loop(), []).append((run, waiter))
        for loop, own in by_loop.items():
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self.settle, own)
