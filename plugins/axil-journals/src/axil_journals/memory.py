"""``MemoryJournal``: a journal in the memory of one process."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from axil_journals.journal import (
    DUE_NOW,
    ENDED,
    ChangeSignal,
    Compactor,
    Entry,
    JournalWriter,
    RunCount,
    RunInfo,
    RunMail,
    claimed_error,
    due_of_end,
    unknown_error,
)
from axil_journals.queues import (
    Place,
    Queue,
    QueueState,
    RunExists,
    Spent,
    chosen,
    place_of,
    take_by_priority,
)
from axil_journals.recorder import Recording
from axil_journals.rows import data_without_secrets
from axil_journals.threads import admit_run


@dataclass(slots=True)
class _StoredRun:
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
    place: Place = field(default_factory=Place)
    mail: list[RunMail] = field(default_factory=list[RunMail])
    read: set[int] = field(default_factory=set[int])

    @property
    def is_held(self) -> bool:
        return self.is_taken or self.holder is not None

    @property
    def status(self) -> str:
        return self.ended or ("running" if self.is_held else "open")

    @property
    def unread(self) -> list[RunMail]:
        return [each for each in self.mail if each.number not in self.read]

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
"""The time by which a run is taken, the time at which it is due, and its id."""


class MemoryJournal(Recording):
    """A ``SharedJournal`` in this process's memory: for tests, and for runs that pause and continue
    in one process. Superseded entries are dropped.
    """

    blocking: ClassVar[bool] = False

    def __init__(self) -> None:
        self.stored: dict[str, _StoredRun] = {}
        self.threads: dict[str, list[str]] = {}
        self._due: list[_Due] = []  # a heap; of some runs it has older times, too
        self._changes = ChangeSignal()
        self._posted = 0
        self._queues: dict[str, QueueState] = {}
        self.once: dict[tuple[str, str], str] = {}
        """The last run of each ``Place.once``."""

    def open(self, run_id: str) -> JournalWriter:
        return _MemoryWriter(self, run_id)

    def entries(self, run_id: str) -> Sequence[Entry]:
        run = self.stored.get(run_id)
        return [] if run is None else list(run.entries.values())

    def thread(self, name: str) -> Sequence[str]:
        return tuple(self.threads.get(name, ()))

    def runs(
        self,
        *,
        status: Collection[str] = (),
        after: str = "",
        limit: int = 0,
        before: float | None = None,
    ) -> Sequence[RunInfo]:
        infos = [run.info(run_id) for run_id, run in list(self.stored.items()) if run.count]
        infos.sort(key=lambda info: -info.touched)
        if after:
            ids = [info.run_id for info in infos]
            infos = infos[ids.index(after) + 1 :] if after in ids else []
        infos = [
            info
            for info in infos
            if (not status or info.status in status) and (before is None or info.touched < before)
        ]
        return infos[:limit] if limit else infos

    def named(self, prefix: str, limit: int) -> Sequence[str]:
        stored = list(self.stored.items())
        return sorted(id for id, run in stored if run.count and id.startswith(prefix))[:limit]

    def prune(
        self, before: float, *, status: Collection[str] = ENDED, limit: int = 1000
    ) -> Sequence[RunInfo]:
        found = [
            info
            for info in self.runs(status=status, before=before)
            if not self.stored[info.run_id].is_held
        ]
        found = found[::-1][:limit]
        for info in found:
            self.forget(info.run_id)
        return found

    def forget(self, run_id: str) -> None:
        run = self._known(run_id)
        if run.is_held:
            raise claimed_error(run_id, "in this process")
        del self.stored[run_id]
        if self.once.get(name := (run.place.queue, run.place.once)) == run_id:
            del self.once[name]
        run.is_forgotten = True
        for runs in self.threads.values():
            if run_id in runs:
                runs.remove(run_id)

    # ------------------------------------------------------------------ what engines need

    def infos(self, run_ids: Collection[str]) -> Sequence[RunInfo]:
        found = ((run_id, self.stored.get(run_id)) for run_id in run_ids)
        return [run.info(run_id) for run_id, run in found if run is not None and run.count]

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
        """See ``SharedJournal``; no run is lost, as the journal ends with its process."""
        if lost:
            return ()
        taken: list[str] = []

        def fits(run_id: str) -> bool:
            digest = self.stored[run_id].header.get("digest", "")
            is_known = digest not in unknown and (digests is None or digest in digests)
            return is_known and run_id not in without

        def take(state: QueueState | None, room: int) -> int:
            if state is None:
                found = self._take(room, now, fits)
            else:
                found = chosen(state, _QueueRows(self, state.queue.name, now, fits), room, now)
            for run_id in found:
                self.stored[run_id].is_taken = True
            taken.extend(found)
            return len(found)

        take_by_priority(list(self._queues.values()), most, take)
        return taken

    def _take(self, most: int, now: float, fits: Callable[[str], bool]) -> list[str]:
        """Return due runs of no queue."""
        taken: list[str] = []
        passed: list[_Due] = []
        # waiting for times that are far off costs nothing; a clock may have been put back a little
        last = max(now, time.time()) + 3600.0
        while len(taken) < most and (first := self._first_due()) is not None and first[0] <= last:
            heapq.heappop(self._due)
            _, due, run_id = first
            run = self.stored[run_id]
            if due > now or run.place.queue or not fits(run_id):
                passed.append(first)
            else:
                run.is_taken = True  # else it would be the first again
                taken.append(run_id)
        for each in passed:
            heapq.heappush(self._due, each)
        return taken

    def next_due(self, now: float) -> float | None:
        later = [due for _, due, run_id in self._due if due > now and self._is_due(run_id, due)]
        for name, state in self._queues.items():
            at, rows = state.next_at(), _QueueRows(self, name, now)
            if at is not None and at > now and rows.due(None, 1, 1):
                later.append(at)
            for key, pace in state.keys.items():
                at = state.key_at(*pace)
                if at is not None and at > now and rows.has_due(key):
                    later.append(at)
        return min(later, default=None)

    def counts(self, now: float) -> Sequence[RunCount]:
        found: dict[tuple[str, str, str], list[float]] = {}
        for run in list(self.stored.values()):
            if not run.count:
                continue
            is_due = run.due is not None and run.due <= now
            if run.is_held:
                state = "held"
            elif run.ended in ENDED and not is_due:
                continue
            elif run.ended == "parked" and not is_due:
                state = "parked"
            else:
                state = "due" if is_due else "waiting"
            at = (run.due or run.touched) if state == "due" else run.touched
            key = (run.place.queue, str(run.header.get("graph", "")), state)
            found.setdefault(key, []).append(at)
        return [
            RunCount(queue=queue, graph=graph, state=state, runs=len(at), oldest=min(at))
            for (queue, graph, state), at in sorted(found.items())
        ]

    def set_queues(self, queues: Collection[Queue]) -> None:
        for queue in queues:
            self.queue_state(queue.name).queue = queue
        self._changes.notify()

    def queues(self) -> Sequence[Queue]:
        return [state.queue for _, state in sorted(self._queues.items())]

    def spend(self, spent: Collection[Spent], now: float) -> Collection[str]:
        found = [each for each in spent if self.queue_state(each.queue).queue.is_metered]
        for each in found:
            self.queue_state(each.queue).spend(each, now)
        return [each.queue for each in found]

    def queue_state(self, name: str) -> QueueState:
        """Return the state of a queue, which is there from now on."""
        return self._queues.setdefault(name, QueueState(queue=Queue(name=name)))

    def _is_due(self, run_id: str, due: float) -> bool:
        run = self.stored.get(run_id)
        return run is not None and not run.is_held and run.due == due

    def _first_due(self) -> _Due | None:
        while self._due and not self._is_due(self._due[0][2], self._due[0][1]):
            heapq.heappop(self._due)
        return self._due[0] if self._due else None

    def released(self, run_id: str, run: _StoredRun) -> None:
        """Note when a run that has no holder is due, and report the change."""
        self._queue(run_id, run)
        self._changes.notify()

    def _queue(self, run_id: str, run: _StoredRun) -> None:
        if run.due is not None:
            heapq.heappush(self._due, (run.due or run.touched, run.due, run_id))

    def release(self, run_id: str) -> None:
        run = self.stored.get(run_id)
        if run is not None and run.is_taken and run.holder is None:
            run.is_taken = False
            self._queue(run_id, run)

    def wake(self, run_id: str, due: float = DUE_NOW) -> None:
        run = self._known(run_id)
        if not run.is_held:
            run.due = due
            self.released(run_id, run)

    def post(self, run_id: str, entry: Entry) -> bool:
        run = self._known(run_id)
        if entry.kind == "answer" and any(
            each.entry.kind == "answer" and each.entry.data["id"] == entry.data["id"]
            for each in run.mail
        ):
            return False
        self._posted += 1
        run.mail.append(RunMail(self._posted, run_id, entry))
        if run.is_held:
            self._changes.notify()
        else:
            run.due = DUE_NOW
            self.released(run_id, run)
        return True

    def mail(self, run_ids: Collection[str]) -> Sequence[RunMail]:
        runs = (self.stored.get(run_id) for run_id in run_ids)
        return [each for run in runs if run is not None for each in run.unread]

    def discard(self, numbers: Collection[int]) -> None:
        for run in self.stored.values():
            run.read.update(each.number for each in run.mail if each.number in numbers)

    async def changed(self, since: int, seconds: float, *, is_work: bool = False) -> int:
        """See ``SharedJournal``; no change is left out."""
        return await self._changes.wait(since, seconds)

    def _known(self, run_id: str) -> _StoredRun:
        run = self.stored.get(run_id)
        if run is None or not run.count:
            raise unknown_error(run_id)
        return run


class _QueueRows:
    """The ``QueueRows`` of one queue."""

    def __init__(
        self,
        journal: MemoryJournal,
        name: str,
        now: float,
        fits: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._now, self._fits = now, fits
        self._runs = {id: run for id, run in journal.stored.items() if run.place.queue == name}

    def held(self) -> Mapping[str, int]:
        return Counter(run.place.key for run in self._runs.values() if run.is_held)

    def due(self, after: str | None, keys: int, most: int) -> Sequence[tuple[str, Sequence[str]]]:
        found: dict[str, list[tuple[float, str]]] = {}
        for id, run in self._runs.items():
            is_due = run.due is not None and run.due <= self._now and not run.is_held
            if is_due and (after is None or run.place.key > after) and self._fits(id):
                found.setdefault(run.place.key, []).append((run.due or run.touched, id))
        return [(key, [id for _, id in sorted(found[key])[:most]]) for key in sorted(found)[:keys]]

    def paces(self, keys: Collection[str]) -> Mapping[str, tuple[float, float]]:
        return {}  # the state in memory has them

    def has_due(self, key: str) -> bool:
        return any(lane == key for lane, _ in self.due(None, len(self._runs), 1))


class _MemoryWriter:
    """A ``JournalWriter`` whose entries are as safe as memory is at once."""

    def __init__(self, journal: MemoryJournal, run_id: str) -> None:
        self._journal, self.run_id = journal, run_id
        self._run = journal.stored.setdefault(run_id, _StoredRun())
        self.entries, self._seen = tuple(self._run.entries.values()), self._run.count

    def append(self, entry: Entry) -> None:
        data = data_without_secrets(entry.data)
        if data is not entry.data:
            entry = replace(entry, data=data)
        # there was no run when this was opened: what came and went since is nothing to it
        if not self._seen and self._run.is_forgotten:
            self._run = self._journal.stored.setdefault(self.run_id, _StoredRun())
        run = self._run
        if run.holder is not self:
            if run.is_forgotten or run.holder is not None or run.count != self._seen:
                raise claimed_error(self.run_id, "in this process")
            header = entry.data if entry.kind == "run" else run.header
            if entry.kind == "run":
                self._admit(entry, place_of(entry.data))
            if header.get("thread"):
                runs = self._journal.threads.setdefault(header["thread"], [])
                stored = self._journal.stored
                admit_run(header, self.run_id, runs, lambda run_id: stored[run_id].status)
                runs += [self.run_id] if self.run_id not in runs else []
            run.holder, run.header = self, header
        if entry.kind == "resumed" and "now" in entry.data:
            run.header = {**run.header, **entry.data["now"]}
        run.count += 1
        for gone in run.superseding.add(entry, run.count):
            del run.entries[gone]
        run.entries[run.count] = entry
        run.touched = time.time()
        run.ended = entry.data["status"] if entry.kind == "ended" else ""
        run.due = due_of_end(entry.data) if run.ended else DUE_NOW
        if entry.kind == "run":
            run.place = place_of(entry.data)
            run.due = run.place.due(run.begun)
            if run.place.queue:
                self._journal.queue_state(run.place.queue)

    def _admit(self, entry: Entry, place: Place) -> None:
        """Note the name that one run has at a time. Raises: RunExists."""
        if not place.once:
            return
        journal, name = self._journal, (place.queue, place.once)
        known = journal.once.get(name, "")
        run = journal.stored.get(known)
        if run is not None and run.count and run.ended not in (*ENDED, "parked"):
            has_begun = run.is_held or run.count > 1
            if place.debounce_seconds is None or not has_begun:
                if place.debounce_seconds is not None:
                    run.entries, run.header, run.place = {1: entry}, entry.data, place
                    run.due, run.touched = place.due(run.begun), time.time()
                    journal.released(known, run)
                raise RunExists(known, place)
        journal.once[name] = self.run_id

    def kept(self) -> None:
        return None

    def close(self) -> None:
        self._seen = -1
        run = self._run
        if run.holder is self:
            run.holder, run.is_taken = None, False
            if run.ended == "paused" and run.unread:
                run.due = DUE_NOW
            self._journal.released(self.run_id, run)
