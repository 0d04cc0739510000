"""Streams: the events of runs, those of the record and those that are not recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Final

from axil_journals import Entry
from axil_serve.data import OVER, entry_key, place_of, step_data, step_for
from axil_serve.feed import Feed, FeedEvent, Follower
from axil_serve.records import Records

_MOST_TOGETHER: Final = 256
"""Events that a stream sends at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """One event of a run, as a stream has it."""

    kind: str
    data: Any
    id: str = ""
    """Of a recorded step: where a stream is resumed behind it."""


class StreamPermit:
    """Leave to keep one stream open, within ``with``, or until the response ends that has it."""

    __slots__ = ("_owner", "_streams", "is_handed_over")

    def __init__(self, streams: Counter[str], owner: str) -> None:
        self._streams, self._owner, self.is_handed_over = streams, owner, False
        streams[owner] += 1

    def close(self) -> None:
        """Give it back, once."""
        if self._owner:
            self._streams[self._owner] -= 1
            if not self._streams[self._owner]:
                del self._streams[self._owner]
            self._owner = ""

    def __enter__(self) -> StreamPermit:
        return self

    def __exit__(self, *args: object) -> None:
        if not self.is_handed_over:
            self.close()


class RunStream:
    """The events of one run for one follower of its feed, each recorded one once."""

    def __init__(
        self, records: Records, run_id: str, follower: Follower, after: str, *, live: bool
    ) -> None:
        """``after``, ``live``: as of ``RunService.stream``."""
        self._records, self._run_id, self._follower = records, run_id, follower
        self._after, self._live = after, live
        self._seen: set[str] = set()  # keys of entries
        self._number, self._revision = 0, None
        self._is_first, self._is_stale = True, False
        self._is_awake = self._has_ended = False

    async def batches(
        self, feed: Feed, poll_seconds: float
    ) -> AsyncGenerator[Sequence[StreamEvent]]:
        """Yield the events, those together that happened meanwhile, until the run has ended."""
        follower, run_id = self._follower, self._run_id
        taken: Sequence[FeedEvent] = ()
        while True:
            if follower.is_behind:
                feed.begin(run_id, follower)
                self._is_stale = True
            # what waits comes first: the record may have the end already
            if self._is_first or not (taken or follower.waiting):
                await self._look()
            if self._is_stale:
                entries = await self._records.read(self._records.entries, run_id)
                for batch in self._recorded(entries):
                    yield batch
                if _is_over(entries[-1]) and not self._is_awake:
                    return
            taken = await follower.take(poll_seconds)
            for first in range(0, len(taken), _MOST_TOGETHER):
                batch = await self._happened(taken[first : first + _MOST_TOGETHER])
                if batch:
                    yield batch
                if self._has_ended:
                    return
            if not taken:
                yield [StreamEvent(kind="", data=None)]  # nothing happened; the reader is there

    async def _look(self) -> None:
        """See whether another process has written to the record."""
        info = await self._records.read(self._records.info, self._run_id)
        self._is_stale = self._is_stale or info.revision != self._revision or self._is_awake
        self._revision = info.revision
        self._is_awake = self._records.is_awake(info)

    def _recorded(self, entries: Sequence[Entry]) -> Iterator[list[StreamEvent]]:
        """Yield what is new in the record."""
        waiting, seen = self._follower.waiting, self._seen
        batch: list[StreamEvent] = []
        if self._is_first and self._after:
            if (place := place_of(entries, self._after)) is None:
                batch.append(StreamEvent(kind="reset", data={}))
            seen.update(entry_key(entry) for entry in entries[: place or 0])
        self._is_first, self._is_stale, self._number = False, False, len(entries)
        if self._live and _is_over(entries[-1]):  # what was shown comes before the end
            batch += [_beside(each) for each in waiting if each.entry is None]
        for at, entry in enumerate(entries, 1):
            if (key := entry_key(entry)) not in seen:
                seen.add(key)
                batch.append(_step_event(entry, at))
            if len(batch) >= _MOST_TOGETHER:
                yield batch
                batch = []
        if batch:
            yield batch
        seen.update(_stored_before(waiting, seen))

    async def _happened(self, taken: Sequence[FeedEvent]) -> list[StreamEvent]:
        """Return what is new in events of the feed, up to the end of the run."""
        batch: list[StreamEvent] = []
        for each in taken:
            if each.entry is None:
                batch += [_beside(each)] if self._live else []
            elif (key := entry_key(each.entry)) not in self._seen:
                self._seen.add(key)
                self._number += 1
                if each.entry.kind == "ended":
                    await self._records.stored(self._run_id, key)
                batch.append(_step_event(each.entry, self._number))
                if _is_over(each.entry):
                    self._has_ended = True
                    break
        return batch


def _beside(event: FeedEvent) -> StreamEvent:
    return StreamEvent(kind=event.kind, data=event.data)


def _is_over(last: Entry) -> bool:
    return last.kind == "ended" and last.data.get("status") in OVER


def _stored_before(waiting: Sequence[FeedEvent], seen: Set[str]) -> list[str]:
    """Return the keys of entries that were appended before one that is in the journal; those that
    it lacks were superseded.
    """
    keys = [entry_key(each.entry) for each in waiting if each.entry is not None]
    return keys[: max((at for at, key in enumerate(keys, 1) if key in seen), default=0)]


def shared(batch: Sequence[StreamEvent], rights: Set[str]) -> list[StreamEvent]:
    """Return events for who may not see what is inside nodes."""
    found: list[StreamEvent] = []
    for event in batch:
        if event.kind == "step":
            data = step_for(event.data, rights)
            found += [] if data is None else [replace(event, data=data)]
        elif event.kind != "chunk":
            found.append(event)
    return found


def _step_event(entry: Entry, number: int) -> StreamEvent:
    step = step_data(entry, number)
    return StreamEvent(kind="step", data=step, id=step["id"])


__all__ = ["RunStream", "StreamEvent", "StreamPermit", "shared"]
