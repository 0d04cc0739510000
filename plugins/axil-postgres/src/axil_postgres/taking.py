"""The runs that a process takes: those of no queue by the index of turns, those of queues by their
rules.

A process that takes from a queue locks its row until the transaction ends: so what was held and
taken is counted by one process at a time. The runs of no queue are locked one by one, and a process
leaves those that another one has locked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from axil_journals import Queue, QueueState, chosen, take_by_priority
from axil_postgres.codec import Record
from axil_postgres.schema import TURN

_FITS: Final = """
    and run <> all(%(without)s::text[])
    and (%(digests)s::text[] is null or digest = '' or digest = any(%(digests)s::text[]))
"""
_SOON: Final = f"and {TURN} <= greatest(%(now)s, extract(epoch from now()) + 3600)"
_TAKEN: Final = """
update runs set holder = %(holder)s, epoch = (random() * 9e15)::bigint
from found where runs.id = found.id
returning case when runs.due = 0 then runs.touched else runs.due end, runs.id, runs.run,
    runs.epoch, runs.next
"""
_TAKE: Final = f"""
with found as (
    select id from runs
    where holder = 0 and {{which}} and due <= %(now)s {_FITS} {_SOON}
    order by {TURN}, id limit %(most)s for update skip locked
) {_TAKEN}
"""
TAKE_LOST: Final = _TAKE.format(which="status = 'running'")
"""A run that its dead holder had, and that was not written since, has the status ``running``."""
TAKE_OTHERS: Final = _TAKE.format(which="status <> 'running' and queue = ''")
_TAKE_CHOSEN: Final = f"""
with found as (
    select id from runs where id = any(%(chosen)s::bigint[]) and holder = 0 for update
) {_TAKEN}
"""
_DUE: Final = f"""
    holder = 0 and due = 0 and queue <> '' and queue = %(queue)s and status <> 'running' {_FITS}
"""
KEYS: Final = f"""
with recursive lanes(key, n) as (
    (
        select key, 1 from runs where {_DUE} and (%(after)s::text is null or key > %(after)s)
        order by key limit 1
    )
    union all
    select (
        select key from runs where {_DUE} and key > lanes.key order by key limit 1
    ), n + 1
    from lanes where lanes.key is not null and n < %(keys)s
)
select lanes.key, array(
    select id from runs where {_DUE} and key = lanes.key order by touched, id limit %(most)s
) from lanes where lanes.key is not null order by lanes.key
"""
"""Keys of a queue with due runs, each with its first ones: one probe of the index for each key."""
_COME: Final = 1000
_STATES: Final = (
    "select name, priority, concurrency, key_concurrency, calls, period_seconds, saved, saved_at, "
    "last_key from queues"
)
_WITH_DUE: Final = (
    f"{_STATES} where exists (select from runs where holder = 0 and due = 0 "
    "and queue <> '' and queue = queues.name)"
)
_USED: Final = f"""
with come as (
    select id from runs where holder = 0 and due > 0 and queue <> '' and due <= %s
    limit {_COME} for update skip locked
),
noted as (update runs set due = 0 from come where runs.id = come.id returning queue)
{_WITH_DUE} or name in (select queue from noted) order by name
"""
"""The queues with due runs. A run of a queue whose time has come is noted as due at once: so those
whose time is to come are not looked at. Its turn is when it was last written."""
_RECORDS: Final = (
    "select run, seq, kind, who, body, sealed, crc from entries where run = any(%s::bigint[]) "
    "order by run, seq"
)
_SHORT: Final = 100
"""Entries of a record that is read when its run is taken."""

Taken = tuple[float, int, str, int, int]
"""Turn, number, id, epoch and number of the next entry of a run."""


def taken(
    connection: Any, given: Mapping[str, Any], most: int, *, lost: bool = False
) -> list[Taken]:
    """Take runs in an open transaction.

    Args:
        given: ``now``, ``without``, ``digests`` and ``holder``.
        lost: only those that a dead process had, whatever their queue is.
    """
    if lost:
        return sorted(connection.execute(TAKE_LOST, {**given, "most": most}).fetchall())
    found: list[Taken] = []

    def take(state: QueueState | None, room: int) -> int:
        if state is None:
            rows = connection.execute(TAKE_OTHERS, {**given, "most": room}).fetchall()
        else:
            rows = _taken_from(connection, state.queue.name, given, room)
        found.extend(sorted(rows))
        return len(rows)

    used = connection.execute(_USED, (given["now"],)).fetchall()
    take_by_priority([QueueState.of_row(row) for row in used], most, take)
    return found


def _taken_from(connection: Any, name: str, given: Mapping[str, Any], room: int) -> list[Taken]:
    locked = connection.execute(f"{_STATES} where name = %s for update", (name,)).fetchone()
    if locked is None:
        return []
    state = QueueState.of_row(locked)
    ids = chosen(state, _QueueRows(connection, {**given, "queue": name}), room, given["now"])
    if not ids:
        return []
    sql = "update queues set saved = %s, saved_at = %s, last_key = %s where name = %s"
    connection.execute(sql, (state.saved, state.saved_at, state.last_key, name))
    return list(connection.execute(_TAKE_CHOSEN, {**given, "chosen": ids}).fetchall())


class _QueueRows:
    """The ``QueueRows`` of a queue whose row is locked."""

    def __init__(self, connection: Any, given: Mapping[str, Any]) -> None:
        self._connection, self._given = connection, given

    def held(self) -> Mapping[str, int]:
        sql = "select key, count(*) from runs where holder <> 0 and queue = %s group by key"
        return dict(self._connection.execute(sql, (self._given["queue"],)).fetchall())

    def due(self, after: str | None, keys: int, most: int) -> Sequence[tuple[str, Sequence[int]]]:
        given = {**self._given, "after": after, "keys": keys, "most": most}
        return list(self._connection.execute(KEYS, given).fetchall())


def with_records(connection: Any, found: Sequence[Taken]) -> list[tuple[str, Record | None]]:
    """Return the ids of runs that were taken, with their records if they are short."""
    short = {id: list[Any]() for _, id, _, _, next in found if next <= _SHORT}
    if short:  # in a statement of its own: nothing else changes them now
        for id, *row in connection.execute(_RECORDS, [list(short)]).fetchall():
            short[id].append(row)
    return [
        (run, ((epoch, next), short[id]) if id in short else None)
        for _, id, run, epoch, next in found
    ]


def next_due(connection: Any, now: float) -> float | None:
    """Return when the next run is due, or the rate of a queue lets one pass."""
    sql = "select min(due) from runs where holder = 0 and due > %s"
    times = [connection.execute(sql, (now,)).fetchone()[0]]
    used = connection.execute(_WITH_DUE).fetchall()
    times += [QueueState.of_row(row).next_at() for row in used]
    return min((at for at in times if at is not None and at > now), default=None)


def set_queues(connection: Any, queues: Collection[Queue]) -> None:
    """Store the rules of queues."""
    columns = ("priority", "concurrency", "key_concurrency", "calls", "period_seconds")
    sql = (
        f"insert into queues (name, {', '.join(columns)}) values (%s, %s, %s, %s, %s, %s) "
        "on conflict (name) do update set "
        + ", ".join(f"{each} = excluded.{each}" for each in columns)
    )
    with connection.transaction():
        for queue in sorted(queues, key=lambda queue: queue.name):
            values = [getattr(queue, each) for each in columns]
            connection.execute(sql, (queue.name, *values))


def states(connection: Any) -> list[QueueState]:
    """Return all queues."""
    return [
        QueueState.of_row(row) for row in connection.execute(f"{_STATES} order by name").fetchall()
    ]
