"""The runs that a process takes: those of no queue by their times, those of queues by their
rules.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Protocol

from axil_journals import Queue, QueueState, RunCount, chosen, take_by_priority
from axil_sqlite.store import Store

_STATES = (
    "select name, priority, concurrency, key_concurrency, calls, period_seconds, saved, saved_at, "
    "last_key from queues"
)
_QUEUED = "due = 0 and owner = '' and queue != '' and queue = ?"
_WITH_DUE = (
    f"{_STATES} where exists (select 1 from runs where due = 0 and owner = '' "
    "and queue != '' and queue = queues.name) order by name"
)
_COME = "due > 0 and owner = '' and queue != '' and due <= ?"
"""The runs of queues whose time has come."""
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

    lock: threading.RLock
    store: Store
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
    lost: bool

    def is_any(self, writer: Taker, reader: sqlite3.Connection) -> bool:
        """Return whether there may be such a run; no lock is held to find out."""
        if next(self._due(writer, reader), None) is not None:
            return True
        if self.lost:
            return False
        come = reader.execute(f"select 1 from runs where {_COME} limit 1", (self.now,))
        return bool(come.fetchone() or reader.execute(_WITH_DUE).fetchone())

    def take(self, writer: Taker, most: int) -> list[str]:
        """Take runs, in a transaction."""
        with writer.lock, writer.store.writing() as connection:
            taken: list[str] = []

            def take(state: QueueState | None, room: int) -> int:
                if state is None:  # no further than there is room for
                    found = list(islice(self._due(writer, connection), room))
                else:
                    rows = _QueueRows(connection, state.queue.name, self._fits)
                    found = chosen(state, rows, room, self.now)
                    sql = "update queues set saved = ?, saved_at = ?, last_key = ? where name = ?"
                    values = (state.saved, state.saved_at, state.last_key, state.queue.name)
                    connection.execute(sql, values)
                now = time.time()
                connection.executemany(
                    "update runs set owner = ?, beat = ? where run = ?",
                    [(writer.owner, now, run) for run in found],
                )
                taken.extend(found)
                return len(found)

            if self.lost:
                take(None, most)
            else:
                # noted as due at once: so those whose time is to come are not looked at
                connection.execute(f"update runs set due = 0 where {_COME}", (self.now,))
                used = connection.execute(_WITH_DUE).fetchall()
                take_by_priority([QueueState.of_row(row) for row in used], most, take)
            writer.taken.update(dict.fromkeys(taken, self.lost))
        return taken

    def _fits(self, run: str, digest: str) -> bool:
        is_known = self.digests is None or not digest or digest in self.digests
        return is_known and run not in self.without

    def _due(self, writer: Taker, connection: sqlite3.Connection) -> Iterator[str]:
        """Yield due runs of no queue, or all that are lost, in the order of their times."""
        # each in the order of the index; few runs have an owner, and many may be due
        which = "indexed by runs_by_owner where owner != ''" if self.lost else "where queue = ''"
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

    def held(self) -> Mapping[str, int]:
        sql = (
            "select key, count(*) from runs indexed by runs_by_owner "
            "where owner != '' and queue = ? group by key"
        )
        return dict(self.connection.execute(sql, (self.queue,)).fetchall())

    def due(self, after: str | None, keys: int, most: int) -> Sequence[tuple[str, Sequence[str]]]:
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


def next_due(reader: sqlite3.Connection, now: float) -> float | None:
    """Return when the next run is due, or the rate of a queue lets one pass."""
    times = [
        reader.execute(f"select min(due) from runs where {which} and due > ?", (now,)).fetchone()[0]
        for which in (  # an index for each
            "due is not null and queue = ''",
            "due > 0 and owner = '' and queue != ''",
        )
    ]
    times += [QueueState.of_row(row).next_at() for row in reader.execute(_WITH_DUE)]
    return min((at for at in times if at is not None and at > now), default=None)


def counts(reader: sqlite3.Connection, now: float) -> list[RunCount]:
    """Return how many runs have not ended, by queue, graph and state."""
    found = reader.execute(_COUNTS, {"now": now}).fetchall()
    names = ("queue", "graph", "state", "runs", "oldest")
    return [RunCount(**dict(zip(names, row, strict=True))) for row in found]


def set_queues(connection: sqlite3.Connection, queues: Collection[Queue]) -> None:
    """Store the rules of queues."""
    columns = ("priority", "concurrency", "key_concurrency", "calls", "period_seconds")
    sql = (
        f"insert into queues (name, {', '.join(columns)}) values (?, ?, ?, ?, ?, ?) "
        "on conflict (name) do update set "
        + ", ".join(f"{each} = excluded.{each}" for each in columns)
    )
    values = [(queue.name, *(getattr(queue, each) for each in columns)) for queue in queues]
    connection.executemany(sql, values)


def states(reader: sqlite3.Connection) -> list[QueueState]:
    """Return all queues."""
    return [QueueState.of_row(row) for row in reader.execute(f"{_STATES} order by name")]
