"""The runs that a process takes: those of no queue by the index of turns, those of queues by their
rules.

A process that takes from a queue locks its row until the transaction ends: so what was held and
taken is counted by one process at a time. The runs of no queue are locked one by one, and a process
leaves those that another one has locked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from axil_journals import RULES, STATE, Queue, QueueState, Spent, chosen, take_by_priority
from axil_postgres.codec import Record
from axil_postgres.schema import TURN

_FITS: Final = """
    and run <> all(%(without)s::text[]) and digest <> all(%(unknown)s::text[])
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
TAKE_LOST: Final = _TAKE.format(which="status = 'running' and queue = ''")
"""A run that its dead holder had, and that was not written since, has the status ``running``."""
TAKE_OTHERS: Final = _TAKE.format(which="status <> 'running' and queue = ''")
TAKE_AT_ONCE: Final = f"""
with me as (
    update holders set until = now() + make_interval(secs => %(lease)s) where id = %(holder)s
    returning id
),
found as (
    select id from runs
    where exists (select from me) and not exists (select from queues)
    and holder = 0 and status <> 'running' and queue = '' and due <= %(now)s {_FITS} {_SOON}
    order by {TURN}, id limit %(most)s for update skip locked
),
taken (turn, id, run, epoch, next) as ({_TAKEN})
select is_held, has_queues, taken.* from (
    select exists (select from me) as is_held, exists (select from queues) as has_queues
) state left join taken on true
"""
"""The lease, and where there is no queue the runs, in one statement and one transaction."""
ANY_LOST: Final = "select exists (select from runs where holder = 0 and status = 'running')"
_TAKE_CHOSEN: Final = f"""
with found as (
    select id from runs where id = any(%(chosen)s::bigint[]) and holder = 0 for update
) {_TAKEN}
"""
_DUE: Final = f"""
    holder = 0 and due = 0 and queue <> '' and queue = %(queue)s and status <> 'running' {_FITS}
"""
_LOST: Final = f"""
    select key, id from runs where holder = 0 and status = 'running' and queue = %(queue)s
    and due <= %(now)s {_FITS} order by key, id
"""
_WITH_LOST: Final = """
select distinct queue from runs where holder = 0 and status = 'running' and queue <> ''
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
_STATES: Final = f"select {', '.join((*RULES, *STATE))} from queues"
_STORE: Final = f"update queues set {', '.join(f'{each} = %s' for each in STATE)} where name = %s"
_STORE_KEYS: Final = """
insert into queue_keys select %s, * from unnest(%s::text[], %s::float8[], %s::float8[])
on conflict (queue, key) do update set saved = excluded.saved, saved_at = excluded.saved_at
"""
_KEY_TIMES: Final = """
select saved, saved_at from queue_keys where queue = %(queue)s and saved < 1 and exists (
    select from runs where holder = 0 and due = 0 and runs.queue <> ''
    and runs.queue = queue_keys.queue and runs.key = queue_keys.key
) order by saved_at - saved * %(seconds)s limit 1
"""
"""Of the keys that have to wait, the first one that may be served."""
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
    connection: Any,
    given: Mapping[str, Any],
    most: int,
    *,
    has_queues: bool = True,
    lost: bool = False,
) -> list[Taken]:
    """Take runs in an open transaction.

    Args:
        given: ``now``, ``without``, ``unknown``, ``digests`` and ``holder``.
        has_queues: whether there is any queue; if not, none is looked for.
        lost: only those that a dead process had.
    """
    found: list[Taken] = []
    others = TAKE_LOST if lost else TAKE_OTHERS

    def take(state: QueueState | None, room: int) -> int:
        if state is None:
            rows = connection.execute(others, {**given, "most": room}).fetchall()
        else:
            rows = _taken_from(connection, state.queue.name, given, room, lost=lost)
        found.extend(sorted(rows))
        return len(rows)

    used: list[Any] = []
    if has_queues and lost:
        sql = f"{_STATES} where name in ({_WITH_LOST}) order by name"
        used = connection.execute(sql).fetchall()
    elif has_queues:
        used = connection.execute(_USED, (given["now"],)).fetchall()
    take_by_priority([QueueState.of_row(row) for row in used], most, take)
    return found


def taken_at_once(connection: Any, given: Mapping[str, Any]) -> tuple[bool, bool, list[Taken]]:
    """Take runs of no queue in a transaction of its own, unless there is any queue.

    Args:
        given: as of ``taken``, and ``most`` and ``lease``.
    Returns: Whether this process has its lease, whether there is any queue, and what was taken.
    """
    rows = connection.execute(TAKE_AT_ONCE, given).fetchall()
    return rows[0][0], rows[0][1], sorted(row[2:] for row in rows if row[2] is not None)


def _taken_from(
    connection: Any, name: str, given: Mapping[str, Any], room: int, *, lost: bool
) -> list[Taken]:
    locked = connection.execute(f"{_STATES} where name = %s for update", (name,)).fetchone()
    if locked is None:
        return []
    state = QueueState.of_row(locked)
    kind = _LostRows if lost else _QueueRows
    ids = chosen(state, kind(connection, {**given, "queue": name}), room, given["now"])
    if not ids:
        return []
    connection.execute(_STORE, (*state.row(), name))
    if state.keys:
        keys = [(key, *pace) for key, pace in state.keys.items()]
        connection.execute(_STORE_KEYS, (name, *map(list, zip(*keys, strict=True))))
        # those that may have all again
        before = given["now"] - state.queue.period_seconds
        connection.execute(
            "delete from queue_keys where queue = %s and saved_at < %s", (name, before)
        )
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

    def paces(self, keys: Collection[str]) -> Mapping[str, tuple[float, float]]:
        sql = "select key, saved, saved_at from queue_keys where queue = %s and key = any(%s)"
        found = self._connection.execute(sql, (self._given["queue"], list(keys))).fetchall()
        return {key: (saved, at) for key, saved, at in found}


class _LostRows(_QueueRows):
    """The runs of a queue that dead processes had: few."""

    def due(self, after: str | None, keys: int, most: int) -> Sequence[tuple[str, Sequence[int]]]:
        found: dict[str, list[int]] = {}
        for key, id in self._connection.execute(_LOST, self._given).fetchall():
            if after is None or key > after:
                found.setdefault(key, []).append(id)
        return [(key, ids[:most]) for key, ids in found.items()][:keys]


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
    """Return when the next run is due, or the rules of a queue let one pass."""
    sql = "select min(due), exists (select from queues) from runs where holder = 0 and due > %s"
    due, has_queues = connection.execute(sql, (now,)).fetchone()
    times: list[float | None] = [due]
    for row in connection.execute(_WITH_DUE).fetchall() if has_queues else ():
        state = QueueState.of_row(row)
        times.append(state.next_at())
        if (calls := state.queue.key_calls) is not None:
            seconds = state.queue.period_seconds / calls
            given = {"queue": state.queue.name, "seconds": seconds}
            found = connection.execute(_KEY_TIMES, given).fetchone()
            times.append(state.key_at(*found) if found else None)
    return min((at for at in times if at is not None and at > now), default=None)


def spend(connection: Any, spent: Collection[Spent], now: float) -> list[str]:
    """Count what runs of queues used of models; return those of the queues that limit it."""
    found: list[str] = []
    with connection.transaction():
        for each in sorted(spent, key=lambda each: each.queue):
            sql = (
                f"{_STATES} where name = %s and "
                "(requests_per_minute is not null or tokens_per_minute is not null) for update"
            )
            row = connection.execute(sql, (each.queue,)).fetchone()
            if row is not None:
                state = QueueState.of_row(row)
                state.spend(each, now)
                connection.execute(_STORE, (*state.row(), each.queue))
                found.append(each.queue)
    return found


def set_queues(connection: Any, queues: Collection[Queue]) -> None:
    """Store the rules of queues."""
    columns = RULES[1:]
    sql = (
        f"insert into queues ({', '.join(RULES)}) values ({', '.join(['%s'] * len(RULES))}) "
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
