"""Named queues of a shared journal: their rules, and the choice of the runs that are taken.

A run that was submitted to a queue is taken by the rules of the queue, which are rows of the
journal and hold for all its engines together. Queues of a higher priority come first; those of the
same priority, and the runs of no queue (priority 0), share the room of an engine evenly. Within a
queue the keys take turns, one run each, from the key behind the one that was served last: a key
with many runs does not delay another one's.

The limits of a model provider are kept in arrears: engines report what the runs of the queue used,
and as long as more was used than a minute allows, or the provider asks to wait, no further run of
the queue is taken.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Protocol

from pydantic import BaseModel, ConfigDict, Field

from axil.plugin import JournalError, decode_config
from axil_journals.tables import read_tables

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
    key_calls: int | None = Field(
        default=None, ge=1, description="The most runs of one key that are taken in period_seconds."
    )
    period_seconds: float = Field(
        default=1.0, gt=0, description="The length of the period of calls and key_calls."
    )
    requests_per_minute: int | None = Field(
        default=None,
        ge=1,
        description="The requests to models a minute behind which no run is taken.",
    )
    tokens_per_minute: int | None = Field(
        default=None, ge=1, description="The tokens a minute behind which no run is taken."
    )

    @property
    def is_metered(self) -> bool:
        """True if it has a limit on what its runs use of models."""
        return self.requests_per_minute is not None or self.tokens_per_minute is not None


RULES: Final = tuple(Queue.model_fields)
"""The columns of the rules of a queue."""


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
    once: str = ""
    """A name that only one run of the queue has at a time: while one has not ended, no other begins
    (``RunExists``)."""
    debounce_seconds: float | None = None
    """A run with ``once`` waits for so long; another one with the same ``once`` takes its place
    meanwhile, and begins the wait anew."""
    longest_seconds: float | None = None
    """The longest wait since the first of them; None: as long as others come."""

    def data(self) -> dict[str, Any]:
        """Return what the header of the run has under ``place``."""
        given = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: value for name, value in given if value not in ("", None)}

    def __post_init__(self) -> None:
        if self.debounce_seconds is not None and not self.once:
            raise ValueError("debounce_seconds: expected a name in once, too, found none")

    def due(self, first: float) -> float:
        """Return when it may begin; ``first``: when the run was submitted whose place it takes."""
        due = self.start_at or 0.0  # at once
        return due if self.longest_seconds is None else min(due, first + self.longest_seconds)


class RunExists(JournalError):
    """A run of the same queue has the same ``once`` and has not ended, or was given this input."""

    def __init__(self, run_id: str, place: Place) -> None:
        message = f'the run "{run_id}" has the name "{place.once}" in the queue "{place.queue}".'
        hint = "Wait until it has ended, or choose another name."
        super().__init__(message, id="AX999", hint=hint)
        self.run_id = run_id


def place_of(header: Mapping[str, Any]) -> Place:
    """Return the place that the header of a run has."""
    return Place(**header.get("place", {}))


def _refilled(saved: float | None, at: float, most: float, seconds: float, now: float) -> float:
    """Return what may be used at once of ``most`` in so many seconds."""
    if saved is None:
        return most
    return min(most, saved + max(0.0, now - at) * most / seconds)


def _full_at(saved: float | None, at: float, most: float | None, seconds: float) -> float | None:
    """Return when one may be used; None: at once."""
    if most is None or saved is None or saved >= 1 - 1e-9:
        return None
    return at + (1 - saved) * seconds / most


_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The requests and tokens of models that runs of a queue used."""

    queue: str
    requests: int = 0
    tokens: int = 0
    closed_until: float = 0.0
    """The time until which the provider asks to wait."""

    def plus(self, other: Spent) -> Spent:
        """Return both together."""
        return Spent(
            queue=self.queue,
            requests=self.requests + other.requests,
            tokens=self.tokens + other.tokens,
            closed_until=max(self.closed_until, other.closed_until),
        )


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
    requests: float | None = None
    """The requests to models that are left at ``spent_at``, and may be negative; None: all."""
    tokens: float | None = None
    spent_at: float = 0.0
    closed_until: float = 0.0
    """The time until which its provider asks to wait."""
    keys: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """The keys that were looked at or served, as ``saved`` and ``saved_at``; if there are
    ``key_calls``."""

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> QueueState:
        """Return the queue of a row that has the columns ``RULES`` and ``STATE``."""
        rules, state = row[: len(RULES)], row[len(RULES) :]
        queue = Queue(**dict(zip(RULES, rules, strict=True)))
        return cls(queue=queue, **dict(zip(STATE, state, strict=True)))

    def row(self) -> list[Any]:
        """Return the values of the columns ``STATE``."""
        return [getattr(self, name) for name in STATE]

    def refill(self, now: float) -> float:
        """Return the number of runs that may be taken at once; only if there are ``calls``."""
        calls = float(self.queue.calls or 0)
        self.saved = _refilled(self.saved, self.saved_at, calls, self.queue.period_seconds, now)
        self.saved_at = now
        return self.saved

    def spend(self, spent: Spent, now: float) -> None:
        """Count what runs used of models."""
        queue = self.queue
        for name, most, used in (
            ("requests", queue.requests_per_minute, spent.requests),
            ("tokens", queue.tokens_per_minute, spent.tokens),
        ):
            if most is not None:
                left = _refilled(getattr(self, name), self.spent_at, most, _MINUTE, now)
                setattr(self, name, left - used)
        self.spent_at = now
        self.closed_until = max(self.closed_until, spent.closed_until)

    def next_at(self) -> float | None:
        """Return when the next run may be taken; None: at once, or it is not a matter of time."""
        queue = self.queue
        times = [
            _full_at(self.saved, self.saved_at, queue.calls, queue.period_seconds),
            _full_at(self.requests, self.spent_at, queue.requests_per_minute, _MINUTE),
            _full_at(self.tokens, self.spent_at, queue.tokens_per_minute, _MINUTE),
            (self.closed_until or None) if queue.is_metered else None,
        ]
        return max((at for at in times if at is not None), default=None)

    def key_at(self, saved: float, saved_at: float) -> float | None:
        """Return when the next run of a key may be taken; None: at once."""
        return _full_at(saved, saved_at, self.queue.key_calls, self.queue.period_seconds)

    def key_room(self, key: str, now: float) -> float:
        """Return how many runs of a key may be taken at once; only if there are ``key_calls``."""
        saved, at = self.keys.get(key, (None, 0.0))
        most = float(self.queue.key_calls or 0)
        return _refilled(saved, at, most, self.queue.period_seconds, now)

    def is_open(self, now: float) -> bool:
        """Return whether any run may be taken, as far as it is a matter of time."""
        at = self.next_at()
        return at is None or at <= now + 1e-9


STATE: Final = tuple(each.name for each in fields(QueueState) if each.name not in ("queue", "keys"))
"""The columns of the state of a queue."""


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

    def paces(self, keys: Collection[str]) -> Mapping[str, tuple[float, float]]:
        """Return what ``QueueState.keys`` has of these keys, as it was stored."""
        ...


def chosen(state: QueueState, rows: QueueRows, room: int, now: float) -> list[Any]:
    """Choose due runs of a queue, by its rules, and note in ``state`` that they were taken."""
    queue, found = state.queue, list[Any]()
    if not state.is_open(now):
        return found
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
        rooms: dict[str, float] = {}
        if queue.key_calls is not None:
            names = [key for key, _ in lanes]
            state.keys.update(rows.paces(names))
            rooms = {key: state.key_room(key, now) for key in names}
        for turn in range(wanted):
            for key, runs in lanes:
                most = queue.key_concurrency
                has_room = most is None or held.get(key, 0) < most
                has_room = has_room and rooms.get(key, 1.0) >= 1 - 1e-9
                if turn < len(runs) and has_room and len(found) < room:
                    found.append(runs[turn])
                    held[key] = held.get(key, 0) + 1
                    state.last_key = key
                    if key in rooms:
                        rooms[key] -= 1
                        state.keys[key] = (rooms[key], now)
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

    Raises: ConfigError: as ``read_tables``; and what ``decode_config`` finds.
    """
    return [
        decode_config(Queue, {"name": name, **table}, f"{path} {name}")
        for name, table in read_tables(path, "queues", "its rules")
    ]
