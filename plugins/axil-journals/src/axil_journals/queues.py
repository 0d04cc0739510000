"""Named queues of a shared journal: their rules, and the choice of the runs that are taken.

A run that was submitted to a queue is taken by the rules of the queue, which are rows of the
journal and hold for all its engines together. Queues of a higher priority come first; those of the
same priority, and the runs of no queue (priority 0), share the room of an engine evenly. Within a
queue the keys take turns, one run each, from the key behind the one that was served last: a key
with many runs does not delay another one's.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Protocol, cast

from pydantic import BaseModel, ConfigDict, Field

from axil import ConfigError, Problem
from axil.plugin import decode_config

_MORE_KEYS: Final = 32
"""Keys that are looked at beyond the number of runs that are wanted: some have their share."""


class Queue(BaseModel):
    """The rules of a queue. A queue without rules exists from the first run that is put in it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, description="Its name.")
    priority: int = Field(
        default=0, description="Queues of a higher one come first; runs of no queue have 0."
    )
    concurrency: int | None = Field(
        default=None,
        ge=1,
        description="The most runs at work at the same time, in all workers together.",
    )
    key_concurrency: int | None = Field(
        default=None, ge=1, description="The most runs of one key at work at the same time."
    )
    calls: int | None = Field(
        default=None, ge=1, description="The most runs that are taken in period_seconds."
    )
    period_seconds: float = Field(
        default=1.0, gt=0, description="The length of the period of calls."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The queue in which a run waits, and the times between which it may begin."""

    queue: str = ""
    key: str = ""
    """The name of its owner: the keys of a queue take turns."""
    start_at: float | None = None
    """The time before which it does not begin, in seconds since 1970; None: at once."""
    deadline: float | None = None
    """The time after which it does not begin any more: it is cancelled."""

    def data(self) -> dict[str, Any]:
        """Return what the header of the run has under ``place``."""
        given = (("queue", self.queue), ("key", self.key))
        times = (("start_at", self.start_at), ("deadline", self.deadline))
        return {name: value for name, value in (*given, *times) if value not in ("", None)}


def place_of(header: Mapping[str, Any]) -> Place:
    """Return the place that the header of a run has."""
    return Place(**header.get("place", {}))


@dataclass(slots=True, kw_only=True)
class QueueState:
    """A queue, and what was taken from it."""

    queue: Queue
    saved: float | None = None
    """The number of runs that may be taken at once; None: as many as ``calls``."""
    saved_at: float = 0.0
    """The time at which it was that number."""
    last_key: str | None = None
    """The key that was served last."""

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> QueueState:
        """Return the queue of a row that has the fields of ``Queue`` in their order, then those of
        this class.
        """
        *rules, saved, saved_at, last_key = row
        queue = Queue(**dict(zip(Queue.model_fields, rules, strict=True)))
        return cls(queue=queue, saved=saved, saved_at=saved_at, last_key=last_key)

    def refill(self, now: float) -> float:
        """Return the number of runs that may be taken at once; only if there are ``calls``."""
        calls = float(self.queue.calls or 0)
        rate = calls / self.queue.period_seconds
        passed = max(0.0, now - self.saved_at)
        self.saved = calls if self.saved is None else min(calls, self.saved + passed * rate)
        self.saved_at = now
        return self.saved

    def next_at(self) -> float | None:
        """Return when the next run may be taken; None: at once, or it is not a matter of time."""
        if self.queue.calls is None or self.saved is None or self.saved >= 1 - 1e-9:
            return None
        return self.saved_at + (1 - self.saved) * self.queue.period_seconds / self.queue.calls


class QueueRows(Protocol):
    """The rows of one queue in a journal, while nothing else takes from it."""

    def held(self) -> Mapping[str, int]:
        """Return how many of its runs are held, by key."""
        ...

    def due(self, after: str | None, keys: int, most: int) -> Sequence[tuple[str, Sequence[Any]]]:
        """Return keys with due runs in the order of code points, each with its first ones.

        Args:
            after: only keys behind this one; None: from the first.
            keys: at most so many keys.
            most: at most so many runs of each.
        """
        ...


def chosen(state: QueueState, rows: QueueRows, room: int, now: float) -> list[Any]:
    """Choose due runs of a queue, by its rules, and note in ``state`` that they were taken."""
    queue, found = state.queue, list[Any]()
    is_limited = queue.concurrency is not None or queue.key_concurrency is not None
    held = dict(rows.held()) if is_limited else {}
    if queue.concurrency is not None:
        room = min(room, queue.concurrency - sum(held.values()))
    if queue.calls is not None:
        room = min(room, int(state.refill(now) + 1e-9))
    seen = set[str]()
    while room > len(found):
        wanted = room - len(found)
        lanes = [lane for lane in _lanes(state, rows, wanted) if lane[0] not in seen]
        if not lanes:
            break
        seen |= {key for key, _ in lanes}
        for turn in range(wanted):
            for key, runs in lanes:
                most = queue.key_concurrency
                has_room = most is None or held.get(key, 0) < most
                if turn < len(runs) and has_room and len(found) < room:
                    found.append(runs[turn])
                    held[key] = held.get(key, 0) + 1
                    state.last_key = key
        if room > len(found):  # these have had what they may have: on to those behind them
            state.last_key = lanes[-1][0]
    if queue.calls is not None:
        state.saved = (state.saved or 0.0) - len(found)
    return found


def _lanes(state: QueueState, rows: QueueRows, wanted: int) -> list[tuple[str, Sequence[Any]]]:
    """Return keys in their turn, each with its first due runs."""
    count, start = wanted + _MORE_KEYS, state.last_key
    lanes = list(rows.due(start, count, wanted))
    if start is not None and len(lanes) < count:
        left = rows.due(None, count - len(lanes), wanted)
        lanes += [lane for lane in left if lane[0] <= start]
    return lanes


Take = Callable[["QueueState | None", int], int]
"""A function that takes at most so many runs of a queue, None: of no queue; it returns how many."""


def take_by_priority(states: Sequence[QueueState], room: int, take: Take) -> None:
    """Call ``take`` for each queue that has due runs, and for the runs of no queue."""
    members: list[tuple[int, QueueState | None]] = [(0, None)]
    members += [(state.queue.priority, state) for state in states]
    members.sort(key=lambda each: -each[0])
    for _, group in groupby(members, key=lambda each: each[0]):
        left = [state for _, state in group]
        random.shuffle(left)  # none is always the first
        while left and room > 0:
            more = list[QueueState | None]()
            for at, state in enumerate(left):
                share = -(-room // (len(left) - at))  # rounded up
                taken = take(state, share) if share else 0
                room -= taken
                if taken == share and share:  # there may be more
                    more.append(state)
            left = more


def read_queues(path: Path) -> Sequence[Queue]:
    """Return the queues of a TOML file, a table each.

    Raises: ConfigError: AX740: it cannot be read; and what ``decode_config`` finds.
    """
    try:
        data: Mapping[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        message = f"the queues cannot be read: {why}."
        raise ConfigError(Problem("AX740", str(path), message, "Name a TOML file.")) from None
    found: list[Queue] = []
    for name, table in data.items():
        given = cast("Mapping[str, Any]", table) if isinstance(table, Mapping) else {"": table}
        found.append(decode_config(Queue, {"name": name, **given}, f"{path} {name}"))
    return found
