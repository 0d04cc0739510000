"""The runs that a process takes: those of no queue by their times, those of queues by their
rules.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Protocol

from axil_journals import (
    RULES,
    STATE,
    Queue,
    QueueState,
    RunCount,
    Spent,
    chosen,
    take_by_priority,
)

_STATES = f"select {', '.join((*RULES, *STATE))} from queues"
_STORE = f"update queues set {', '.join(f'{each} = ?' for each in STATE)} where name = ?"
_HAS_QUEUES = "select exists (select 1 from queues)"
_QUEUED = "due = 0 and owner = '' and queue != '' and queue = ?"
_WITH_DUE = (
    f"{_STATES} where exists (select 1 from runs where due = 0 and owner = '' "
    "and queue != '' and queue = queues.name) order by name"
)
_COME = "due > 0 and owner = '' and queue != '' and due <= ?"
"""The runs of queues whose time has come."""
_WITH_LOST = "select queue from runs indexed by runs_by_owner where owner != '' and queue != ''"
_NEXT = (  # an index for each
    "select (select min(due) from runs where due is not null and queue = '' and due > ?), "
    "(select min(due) from runs where due > 0 and owner = '' and queue != '' and due > ?), "
    "exists (select 1 from queues)"
)
_KEYS_WITH_DUE = (
    "select saved, saved_at from queue_keys where queue = ? and saved < 1 and exists (select 1 "
    "from runs where due = 0 and owner = '' and queue != '' and runs.queue = queue_keys.queue "
    "and runs.key = queue_keys.key)"
)
_COUNTS = """
select queue, graph, 'due', count(*), min(case when due = 0 then touched else due end)
from runs where owner = '' and due is not null and due <= :now
    and queue = '' group by 1, 2
union all
select queue, graph, 'due', count(*), min(case when due = 0 then touched else due end)
from runs where owner = '' and queue != '' and (due = 0 or (due > 0 and due <= :now))
group by 1, 2
union all
select queue, graph, 'held', count(*), min(touched)
from runs indexed by runs_by_owner where owner != '' group by 1, 2
union all
select queue, graph, case when status = 'parked' then 'parked' else 'waiting' end, count(*),
    min(touched)
from runs where owner = '' and status in ('open', 'paused', 'parked')
    and (due is null or due > :now)
group by 1, 2, 3 order by 1, 2, 3
"""
_COLUMNS = "run, digest, owner, beat"


class Taker(Protocol):
    """The writer of the process that takes."""

    owner: str
    taken: dict[str, bool]

    def is_held(self, owner: str, beat: float, run_id: str) -> bool:
        """Return whether a living process holds a run."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The runs that an engine can take."""

    now: float
    digests: Collection[str] | None
    without: frozenset[str]
    unknown: frozenset[str]
    lost: bool

    def is_any(self, writer: Taker, reader: sqlite3.Connection) -> bool:
        """Return whether there may be such a run; no lock is held to find out."""
        if next(self._due(writer, reader), None) is not None:
            return True
        if not reader.execute(_HAS_QUEUES).fetchone()[0]:
            return False
        if self.lost:
            return next(self._due(writer, reader, is_queued=True), None) is not None
        come = reader.execute(f"select 1 from runs where {_COME} limit 1", (self.now,))
        return bool(come.fetchone() or reader.execute(_WITH_DUE).fetchone())

    def take(self, writer: Taker, connection: sqlite3.Connection, most: int) -> list[str]:
        """Take runs, in an open transaction."""
        taken: list[str] = []

        def take(state: QueueState | None, room: int) -> int:
            if state is None:  # no further than there is room for
                found = list(islice(self._due(writer, connection), room))
            else:
                rows = self._rows(writer, connection, state.queue.name)
                found = chosen(state, rows, room, self.now)
                _store(connection, state, self.now)
            now = time.time()
            connection.executemany(
                "update runs set owner = ?, beat = ? where run = ?",
                [(writer.owner, now, run) for run in found],
            )
            taken.extend(found)
            return len(found)

        if not connection.execute(_HAS_QUEUES).fetchone()[0]:
            take(None, most)
        elif self.lost:
            used = connection.execute(f"{_STATES} where name in ({_WITH_LOST})").fetchall()
            take_by_priority([QueueState.of_row(row) for row in used], most, take)
        else:
            # noted as due at once: so those whose time is to come are not looked at
            connection.execute(f"update runs set due = 0 where {_COME}", (self.now,))
            used = connection.execute(_WITH_DUE).fetchall()
            take_by_priority([QueueState.of_row(row) for row in used], most, take)
        writer.taken.update(dict.fromkeys(taken, self.lost))
        return taken

    def _fits(self, run: str, digest: str) -> bool:
        is_known = self.digests is None or not digest or digest in self.digests
        return is_known and digest not in self.unknown and run not in self.without

    def _rows(self, writer: Taker, connection: sqlite3.Connection, queue: str) -> _QueueRows:
        lost: dict[str, list[str]] | None = None
        if self.lost:
            lost = {}
            for run in self._due(writer, connection, is_queued=True):
                sql = "select key from runs where run = ? and queue = ?"
                for (key,) in connection.execute(sql, (run, queue)):
                    lost.setdefault(key, []).append(run)
        return _QueueRows(connection, queue, self._fits, writer.is_held, lost)

    def _due(
        self, writer: Taker, connection: sqlite3.Connection, *, is_queued: bool = False
    ) -> Iterator[str]:
        """Yield due runs of no queue, or lost ones of queues, in the order of their times."""
        # each in the order of the index; few runs have an owner, and many may be due
        which = f"queue {'!=' if is_queued else '='} ''"
        which = (
            f"indexed by runs_by_owner where owner != '' and {which}"
            if self.lost
            else (f"where {which}")
        )
        sql = f"select touched, {_COLUMNS} from runs {which} and due = 0 order by touched"
        timed = f"select due, {_COLUMNS} from runs {which} and due > 0 and due <= ? order by due"
        parts = connection.execute(sql), connection.execute(timed, (self.now,))
        for _, run, digest, owner, beat in merge(*parts, key=itemgetter(0)):
            # one that this process no longer holds after a fault of its disk is not lost
            is_lost = owner not in ("", writer.owner)
            if is_lost != self.lost or not self._fits(run, digest):
                continue
            if not writer.is_held(owner, beat, run):
                yield run


@dataclass(frozen=True, slots=True)
class _QueueRows:
    """The ``QueueRows`` of one queue, in a transaction."""

    connection: sqlite3.Connection
    queue: str
    fits: Callable[[str, str], bool]
    is_held: Callable[[str, float, str], bool]
    lost: Mapping[str, Sequence[str]] | None = None
    """The runs of dead processes, by key, if these are to be taken."""

    def held(self) -> Mapping[str, int]:
        sql = (
            "select key, owner, beat, run from runs indexed by runs_by_owner "
            "where owner != '' and queue = ?"
        )
        rows = self.connection.execute(sql, (self.queue,))
        return Counter(key for key, *holder in rows if self.is_held(*holder))

    def paces(self, keys: Collection[str]) -> Mapping[str, tuple[float, float]]:
        sql = "select saved, saved_at from queue_keys where queue = ? and key = ?"
        found = {key: self.connection.execute(sql, (self.queue, key)).fetchone() for key in keys}
        return {key: pace for key, pace in found.items() if pace is not None}

    def due(self, after: str | None, keys: int, most: int) -> Sequence[tuple[str, Sequence[str]]]:
        if self.lost is not None:
            lanes = sorted(self.lost.items())
            lanes = [lane for lane in lanes if after is None or lane[0] > after]
            return [(key, runs[:most]) for key, runs in lanes[:keys]]
        found: list[tuple[str, Sequence[str]]] = []
        sql = f"select min(key) from runs where {_QUEUED}"
        one = self.connection.execute
        behind = "" if after is None else " and key > ?"
        (key,) = one(f"{sql}{behind}", [self.queue, *([after] if behind else [])]).fetchone()
        while key is not None and len(found) < keys:
            if runs := list(islice(self._of(key), most)):
                found.append((key, runs))
            (key,) = one(f"{sql} and key > ?", (self.queue, key)).fetchone()
        return found

    def _of(self, key: str) -> Iterator[str]:
        sql = f"select run, digest from runs where {_QUEUED} and key = ? order by touched"
        rows = self.connection.execute(sql, (self.queue, key))
        return (run for run, digest in rows if self.fits(run, digest))


def _store(connection: sqlite3.Connection, state: QueueState, now: float) -> None:
    name = state.queue.name
    connection.execute(_STORE, (*state.row(), name))
    if state.keys:
        sql = "insert or replace into queue_keys values (?, ?, ?, ?)"
        connection.executemany(sql, [(name, key, *pace) for key, pace in state.keys.items()])
        # those that may have all again
        before = now - state.queue.period_seconds
        connection.execute(
            "delete from queue_keys where queue = ? and saved_at < ?", (name, before)
        )


def next_due(reader: sqlite3.Connection, now: float) -> float | None:
    """Return when the next run is due, or the rules of a queue let one pass."""
    times: list[float | None] = list(reader.execute(_NEXT, (now, now)).fetchone())
    has_queues = times.pop()
    for row in reader.execute(_WITH_DUE) if has_queues else ():
        state = QueueState.of_row(row)
        times.append(state.next_at())
        if state.queue.key_calls is not None:
            found = reader.execute(_KEYS_WITH_DUE, (state.queue.name,))
            times += [state.key_at(*pace) for pace in found]
    return min((at for at in times if at is not None and at > now), default=None)


def spend(connection: sqlite3.Connection, spent: Collection[Spent], now: float) -> list[str]:
    """Count what runs of queues used of models; return those of the queues that limit it."""
    found: list[str] = []
    for each in spent:
        row = connection.execute(f"{_STATES} where name = ?", (each.queue,)).fetchone()
        if row is not None and (state := QueueState.of_row(row)).queue.is_metered:
            state.spend(each, now)
            _store(connection, state, now)
            found.append(each.queue)
    return found


def counts(reader: sqlite3.Connection, now: float) -> list[RunCount]:
    """Return how many runs have not ended, by queue, graph and state."""
    found = reader.execute(_COUNTS, {"now": now}).fetchall()
    names = ("queue", "graph", "state", "runs", "oldest")
    return [RunCount(**dict(zip(names, row, strict=True))) for row in found]


def set_queues(connection: sqlite3.Connection, queues: Collection[Queue]) -> None:
    """Store the rules of queues."""
    columns = RULES[1:]
    sql = (
        f"insert into queues ({', '.join(RULES)}) values ({', '.join('?' * len(RULES))}) "
        "on conflict (name) do update set "
        + ", ".join(f"{each} = excluded.{each}" for each in columns)
    )
    values = [(queue.name, *(getattr(queue, each) for each in columns)) for queue in queues]
    connection.executemany(sql, values)


def states(reader: sqlite3.Connection) -> list[QueueState]:
    """Return all queues."""
    return [QueueState.of_row(row) for row in reader.execute(f"{_STATES} order by name")]
