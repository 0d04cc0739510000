"""Events of the runs of a server, for their followers.

Two sources: a journal that says what was appended to it, and a hook plugin that says what is not
recorded (a firing has started, a model has said a word). A follower whose queue is full loses it
and reads the journal again behind what it has read.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from axil import hookimpl
from axil_journals import (
    Entry,
    JournalWriter,
    Recording,
    SharedJournal,
    data_without_secrets,
)
from axil_serve.data import plain

MOST: Final = 10_000
"""Events that wait for one follower."""
MOST_CHUNKS: Final = 1_000
"""Chunks of one firing at work that are kept for followers who come later: the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEvent:
    """Something that happened in a run: an entry of its journal, or an event beside it."""

    entry: Entry | None = None
    kind: str = ""
    data: Any = None


@dataclass(slots=True, kw_only=True, eq=False)
class Follower:
    """One that follows a run, with what it has not read yet."""

    loop: asyncio.AbstractEventLoop
    thread: int = field(default_factory=threading.get_ident)
    """The thread of the loop: what happens there wakes the reader without a way around it."""
    waiting: list[FeedEvent] = field(default_factory=list[FeedEvent])
    lock: threading.Lock = field(default_factory=threading.Lock)
    more: asyncio.Event = field(default_factory=asyncio.Event)
    is_behind: bool = False
    """True if events were lost, because too many waited."""
    _until: float = 0.0
    _alarm: asyncio.TimerHandle | None = None

    def put(self, event: FeedEvent) -> None:
        """Add an event; from any thread."""
        with self.lock:
            if self.is_behind:
                return
            is_first = not self.waiting
            if len(self.waiting) >= MOST:
                self.is_behind, self.waiting = True, []
            else:
                self.waiting.append(event)
        if is_first or self.is_behind:  # the reader was awake already for all others
            if threading.get_ident() == self.thread:
                self.more.set()
            else:
                self.loop.call_soon_threadsafe(self.more.set)

    async def take(self, seconds: float) -> list[FeedEvent]:
        """Wait for events, at most so long, and return them."""
        if not self.waiting and not self.is_behind:
            self._until = self.loop.time() + seconds
            if self._alarm is None:
                self._alarm = self.loop.call_at(self._until, self._look)
            await self.more.wait()
        with self.lock:
            self.more.clear()
            taken, self.waiting = self.waiting, []
        return taken

    def _look(self) -> None:
        """End the waiting, if it has lasted; one timer serves many: a word comes every moment."""
        self._alarm = None
        if self.loop.time() >= self._until:
            self.more.set()
        else:
            self._alarm = self.loop.call_at(self._until, self._look)

    def close(self) -> None:
        """Wait no more."""
        if self._alarm is not None:
            self._alarm.cancel()


@dataclass(slots=True, kw_only=True, eq=False)
class _AtWork:
    """A firing that has started and not ended, with what it has shown of its work."""

    kind: str
    who: Mapping[str, Any]
    """Its place, as events have it."""
    error: str = ""
    chunks: deque[Any] = field(default_factory=lambda: deque[Any](maxlen=MOST_CHUNKS))
    count: int = 0
    """Of all chunks, those that are not kept any more included."""

    def events(self) -> list[FeedEvent]:
        """Return what a follower that comes now has missed of it."""
        lost = self.count - len(self.chunks)
        more = {"lost": lost} if lost else {}
        found = [_event("started", self.who, what=self.kind, **more)]
        found += [_event("chunk", self.who, chunk=_shown(each)) for each in self.chunks]
        if self.error:
            found.append(_event("failed", self.who, what=self.kind, error=self.error))
        return found


def _who(activation: Any) -> dict[str, Any]:
    frame, node = list(activation.frame), activation.node
    return {"frame": frame, "node": node, "activation": str(activation)}


def _event(kind: str, who: Mapping[str, Any], **data: Any) -> FeedEvent:
    return FeedEvent(kind=kind, data={**who, **data})


def _shown(chunk: Any) -> Any:
    return plain(chunk if isinstance(chunk, dict) else {"kind": "text", "text": str(chunk)})


class Feed:
    """The followers of runs, by run; as a hook plugin, the source of what is not recorded."""

    def __init__(self) -> None:
        self._followers: dict[str, list[Follower]] = {}
        # entries that were appended and may not be stored yet: a journal does not have them
        self._unstored: dict[str, list[Entry]] = {}
        self._at_work: dict[str, dict[Any, _AtWork]] = {}  # by run and activation
        self._lock = threading.Lock()

    @contextmanager
    def follow(self, run_id: str) -> Generator[Follower]:
        """Within it, return a follower of the run."""
        follower = Follower(loop=asyncio.get_running_loop())
        with self._lock:  # at once: what happens next comes behind what it has missed
            self._begin(run_id, follower)
            self._followers.setdefault(run_id, []).append(follower)
        try:
            yield follower
        finally:
            follower.close()
            with self._lock:
                left = self._followers[run_id]
                left.remove(follower)
                if not left:
                    del self._followers[run_id]

    def begin(self, run_id: str, follower: Follower) -> None:
        """Give a follower what a journal that is read now may lack."""
        with self._lock:
            self._begin(run_id, follower)

    def _begin(self, run_id: str, follower: Follower) -> None:
        with follower.lock:
            unstored = self._unstored.get(run_id, ())
            follower.waiting = [FeedEvent(entry=entry) for entry in unstored]
            for firing in list(self._at_work.get(run_id, {}).values()):
                follower.waiting += firing.events()
            follower.is_behind = False

    def appended(self, run_id: str, entry: Entry) -> None:
        """Report an entry that was appended to the record of a run."""
        with self._lock:
            self._unstored.setdefault(run_id, []).append(entry)
            if entry.kind == "done":
                self._at_work.get(run_id, {}).pop(entry.activation, None)
            elif entry.kind == "ended":
                self._at_work.pop(run_id, None)
            self.publish(run_id, FeedEvent(entry=entry))

    def stored(self, run_id: str, last: Entry | None = None) -> None:
        """Forget what was appended up to an entry, which is stored; None: all of it."""
        with self._lock:
            unstored = self._unstored.get(run_id, [])
            at = next((at for at, entry in enumerate(unstored) if entry is last), None)
            left = unstored[at + 1 :] if at is not None else unstored if last is not None else []
            if left:
                self._unstored[run_id] = left
            else:
                self._unstored.pop(run_id, None)

    def closed(self, run_id: str) -> None:
        """Forget what was at work in a run, and what was appended: its record is closed."""
        self.stored(run_id)
        with self._lock:
            self._at_work.pop(run_id, None)

    def is_followed(self, run_id: str) -> bool:
        """Return whether a run has followers."""
        return run_id in self._followers

    def publish(self, run_id: str, event: FeedEvent) -> None:
        """Give an event to all that follow the run."""
        for follower in self._followers.get(run_id, ()):
            follower.put(event)

    def _happened(self, run_id: str, kind: str, activation: Any, **data: Any) -> None:
        if self.is_followed(run_id):
            self.publish(run_id, _event(kind, _who(activation), **data))

    @hookimpl
    def firing_started(self, run_id: str, activation: Any, kind: str) -> None:
        """Report that a firing has started."""
        with self._lock:
            at_work = self._at_work.setdefault(run_id, {})
            at_work[activation] = _AtWork(kind=kind, who=_who(activation))
            self._happened(run_id, "started", activation, what=kind)

    @hookimpl
    def chunk(self, run_id: str, activation: Any, chunk: Any) -> None:
        """Report what a body shows of its work."""
        with self._lock:
            if firing := self._at_work.get(run_id, {}).get(activation):
                firing.chunks.append(chunk)
                firing.count += 1
            if self.is_followed(run_id):
                who = firing.who if firing else _who(activation)
                self.publish(run_id, _event("chunk", who, chunk=_shown(chunk)))

    @hookimpl
    def firing_failed(self, run_id: str, activation: Any, kind: str, error: Any) -> None:
        """Report that a firing has failed."""
        with self._lock:
            if firing := self._at_work.get(run_id, {}).get(activation):
                firing.error = str(error)
            self._happened(run_id, "failed", activation, what=kind, error=str(error))

    @hookimpl
    def firing_skipped(self, run_id: str, activation: Any, kind: str) -> None:
        """Report that a node was skipped."""
        self._happened(run_id, "skipped", activation, what=kind)


class PublishingJournal(Recording):
    """A journal that says what is appended to it; all else is that of another one."""

    blocking: ClassVar[bool]

    def __init__(self, journal: SharedJournal, feed: Feed) -> None:
        self.journal, self._feed = journal, feed
        self.entries, self.thread, self.forget = journal.entries, journal.thread, journal.forget
        self.runs, self.infos, self.changed = journal.runs, journal.infos, journal.changed
        self.named, self.prune = journal.named, journal.prune
        self.counts, self.queues, self.set_queues = (
            journal.counts,
            journal.queues,
            journal.set_queues,
        )
        self.take, self.next_due, self.spend = journal.take, journal.next_due, journal.spend
        self.release, self.wake = journal.release, journal.wake
        self.post, self.mail, self.discard = journal.post, journal.mail, journal.discard

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)

    def open(self, run_id: str) -> JournalWriter:
        """See ``Journal``."""
        return _PublishingWriter(self.journal.open(run_id), run_id, self._feed)


class _PublishingWriter:
    """The writer of a ``PublishingJournal``."""

    def __init__(self, writer: JournalWriter, run_id: str, feed: Feed) -> None:
        self._writer, self._run_id, self._feed = writer, run_id, feed
        self._last: Entry | None = None

    @property
    def entries(self) -> Sequence[Entry]:
        return self._writer.entries

    def append(self, entry: Entry) -> None:
        self._writer.append(entry)
        # followers compare it with what is stored, which has no secrets
        data = data_without_secrets(entry.data)
        self._last = last = entry if data is entry.data else replace(entry, data=data)
        self._feed.appended(self._run_id, last)

    def kept(self) -> Awaitable[None] | None:
        waiting, last = self._writer.kept(), self._last
        if waiting is None:
            self._feed.stored(self._run_id)
        elif isinstance(waiting, asyncio.Future):
            waiting.add_done_callback(lambda _: self._feed.stored(self._run_id, last))
        return waiting

    def close(self) -> None:
        self._writer.close()
        self._feed.closed(self._run_id)  # reading it waits for what is left


__all__ = ["Feed", "FeedEvent", "Follower", "PublishingJournal"]
