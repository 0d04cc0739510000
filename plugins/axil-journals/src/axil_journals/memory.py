"""``MemoryJournal``: a journal in the memory of one process."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from axil.plugin import JournalError
from axil_journals.journal import (
    DUE_NOW,
    ChangeSignal,
    Compactor,
    Entry,
    JournalWriter,
    RunInfo,
    RunMail,
    claimed_error,
    due_of_end,
)
from axil_journals.recorder import Recording
from axil_journals.threads import admit_run


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
