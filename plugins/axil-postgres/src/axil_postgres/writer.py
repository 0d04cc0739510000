"""The writer of a process, which commits what its runs appended together.

A thread takes what was appended by then, in all runs that were asked for, and commits it in one
transaction. The statement that writes also checks of each run that this process still holds it: its
epoch is the one of the claim, and the number of its next entry the one that its writer knows. A run
of which that is not so is refused, alone.

A transaction whose connection was lost may have been committed. It is tried again: a run that has
its epoch and the number behind its rows in the database was committed before.
"""

from __future__ import annotations

import asyncio
import queue
import secrets
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from axil import AxilError
from axil_journals import (
    ENDED,
    GroupCommit,
    RunExists,
    RunPart,
    claimed_error,
    left_behind_error,
    overtaken_error,
)
from axil_postgres.codec import Codec, Record, Stored
from axil_postgres.database import Database

if TYPE_CHECKING:
    from axil_postgres.journal import PostgresRunWriter

    Part = RunPart[PostgresRunWriter]
    Asked = Sequence[tuple[PostgresRunWriter, asyncio.Future[None] | None]]


_MOST: Final = 512
"""Requests that are answered by one transaction."""

_NOW: Final = "extract(epoch from clock_timestamp())"
_WRITE: Final = f"""
with part as (
    select * from unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[],
        %s::boolean[], %s::float8[])
        as part (id, epoch, before, next, status, is_closing, due)
),
held as (
    update runs set next = part.next, status = part.status, touched = {_NOW},
        holder = case when part.is_closing then 0 else runs.holder end,
        due = case when runs.has_mail and part.is_closing and part.status = 'paused'
            then 0 else part.due end
    from part
    where runs.id = part.id and runs.epoch = part.epoch and runs.next = part.before
    returning runs.id, runs.due, runs.queue, part.is_closing
),
written as (
    insert into entries (run, seq, kind, who, body, sealed, crc)
    select entry.* from unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::text[],
        %s::bytea[], %s::bigint[]) as entry (run, seq, kind, who, body, sealed, crc)
    join held on held.id = entry.run
)
select id, case when is_closing then
    -- the end of a run of a queue may make room for another one
    pg_notify(%s, case when due is null and queue = '' then 'end' else 'due' end)::text end
from held
"""
ROWS: Final = (
    "select seq, kind, who, body, sealed, crc from entries "
    "where run = (select id from runs where run = %s) order by seq"
)
_CLAIM: Final = """
update runs set epoch = part.claiming, holder = %s,
    digest = case when part.digest = '' then runs.digest else part.digest end
from (
    select * from unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[])
        as part (run, epoch, next, claiming, digest)
) as part
where runs.run = part.run and runs.epoch = part.epoch and runs.next = part.next
    and runs.holder in (0, %s) and (runs.thread = '' or runs.status = 'done')
returning runs.run, runs.id
"""
_BEGIN: Final = f"""
insert into runs (run, graph, digest, forked_from, queue, key, epoch, holder, begun, touched)
select run, graph, digest, forked_from, queue, key, claiming, %s, {_NOW}, {_NOW}
from unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[])
    as part (run, graph, digest, forked_from, queue, key, claiming)
on conflict do nothing returning run, id
"""
_FREE: Final = """
with freed as (
    update runs set holder = 0, epoch = (random() * 9e15)::bigint,
        due = case when has_mail and status = 'paused' then 0 else due end
    where holder = %s and run <> all(%s::text[]) returning 1
)
select pg_notify(%s, 'due') from freed limit 1
"""
_ALIVE: Final = "exists (select from holders where holders.id = runs.holder and until > now())"


class Writer(GroupCommit["PostgresRunWriter"]):
    """Writes for all runs of one journal object."""

    def __init__(self, database: Database, codec: Codec) -> None:
        super().__init__()
        self.database, self.codec = database, codec
        database.free_unknown = self.free_unknown
        self._asked: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()
        self.held: set[PostgresRunWriter] = set()
        self.taken: dict[str, Record | None] = {}
        """Runs that were taken, and that no ``RunWriter`` holds yet, each with its record if it was
        read when it was taken, and not used since."""
        self._thread: threading.Thread | None = None
        self._gate, self._is_closed = threading.RLock(), False
        self.commits = 0
        """The number of transactions so far."""

    def finish(self, run: PostgresRunWriter) -> None:
        self.finishing.add(run)
        self.ask([(run, None)])

    def ask(self, asked: Asked) -> None:
        if not self._ask(asked):
            self.commit(list(dict.fromkeys(run for run, _ in asked)))
            self.settle(asked)

    def _ask(self, asked: Asked) -> bool:
        """Have the thread commit; False: there is none any more, so the caller does it."""
        with self._gate:  # other event loops ask, too, and another thread may close
            if self._is_closed:
                return False
            if self._thread is None:
                name = "axil-postgres"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                thread.start()  # where the system gives no more of them, the next one tries again
                self._thread = thread
            self._asked.put(asked)
            return True

    def _work(self) -> None:
        while True:
            asked = [self._asked.get()]
            with suppress(queue.Empty):
                while len(asked) < _MOST:
                    asked.append(self._asked.get_nowait())
            wanted = [each for several in asked if several is not None for each in several]
            self.commit(list(dict.fromkeys(run for run, _ in wanted)))
            self.settle_threadsafe(wanted)
            if None in asked:
                return

    def close(self) -> None:
        """Write all that is left, and end the thread."""
        with self._gate:
            if self._is_closed:
                return
            self._is_closed = True
        with self.lock:
            for run in list(self.held):
                run.closing = True
            self.commit(list(self.held | self.finishing))
        if self._thread is not None:
            self._asked.put(None)
            if self._thread is not threading.current_thread():
                self._thread.join()

    def record(self, run_id: str) -> Record:
        """Return the record of a run, as it is or as it was when the run was taken."""
        if (found := self.taken.get(run_id)) is not None:
            self.taken[run_id] = None
            return found
        rows = self.database.rows
        seen = rows("select epoch, next from runs where run = %s", (run_id,))
        return (seen[0], rows(ROWS, (run_id,))) if seen else ((0, 0), ())

    def commit(self, runs: Sequence[PostgresRunWriter]) -> None:
        if not runs:
            return
        with self.lock:
            # one that was released may have been asked for before that
            parts = [run.take_part() for run in runs if run.fault is None and not run.is_released]
            try:
                fresh = [part for part in parts if part.run.epoch is None and part.rows]
                if fresh:
                    self.database.hold()
                parts = [part for part in parts if part.run.epoch is not None or part.rows]
                if not parts:
                    return
                moved = self.codec.moved
                parts = [part._replace(rows=moved(part.run.run_id, part.rows)) for part in parts]
                faults = self.database.transact(lambda connection: self._put(connection, parts))
                self.commits += 1
            # whatever it is: the waiters get it, and nothing is written behind a gap
            except BaseException as error:
                is_ours = isinstance(error, AxilError)
                fault = error if is_ours else self.database.unusable(error, reading=False)
                faults = {part.run: fault for part in parts}
                self.database.is_unsure = True
                if not isinstance(error, Exception):
                    raise
            for part in parts:
                run = part.run
                run.fault = faults.get(run)
                if run.fault is None:
                    run.safe = part.next
                    self.taken.pop(run.run_id, None)
                    self.held.add(run)
                if part.is_closing or run.fault is not None:
                    self.held.discard(run)
                    run.is_released = part.is_closing
            for run in runs:
                if run.is_released or run.fault is not None:  # else it was closed meanwhile
                    self.finishing.discard(run)

    def free_unknown(self, connection: Any) -> None:
        """Free the runs that this process has in the database, and that no run here is: of a
        transaction that failed it is not known whether it took, claimed or released them.
        """
        with self.lock:  # nothing is claimed meanwhile
            self.database.is_unsure = False
            known = [*self.taken, *(run.run_id for run in self.held)]
            try:
                connection.execute(_FREE, (self.database.holder, known, self.database.schema))
            except BaseException:
                self.database.is_unsure = True
                raise

    def _put(self, connection: Any, parts: Sequence[Part]) -> dict[PostgresRunWriter, AxilError]:
        """Write parts in one transaction; return the faults of runs that were refused."""
        faults: dict[PostgresRunWriter, AxilError] = {}
        claiming = [part for part in parts if part.run.epoch is None]
        if not claiming and not any(part.superseded for part in parts):  # one statement
            self._write(connection, parts, faults)
            return faults
        claimed: dict[PostgresRunWriter, tuple[int, int]] = {}
        written = parts
        with connection.transaction():
            if claiming:
                self.database.renewed(connection)
            if any(part.run.header.get("thread") or part.run.place.once for part in claiming):
                # a run begins on a thread, or has its name, after what the run before it wrote
                known = [part for part in parts if part.run.epoch is not None]
                self._write(connection, known, faults)
                written = claiming
            claimed.update(self._claimed_at_once(connection, [part.run for part in claiming]))
            for part in claiming:
                if part.run in claimed:
                    continue
                found = self._claimed(connection, part.run)
                if isinstance(found, AxilError):
                    faults[part.run] = found
                else:
                    claimed[part.run] = found
            self._write(
                connection, [part for part in written if part.run not in faults], faults, claimed
            )
            for part in parts:
                if part.superseded and part.run not in faults:
                    id, _ = claimed.get(part.run) or (part.run.id, 0)
                    sql = "delete from entries where run = %s and seq = any(%s)"
                    connection.execute(sql, (id, list(part.superseded)))
        for run, (id, epoch) in claimed.items():
            run.id, run.epoch = id, epoch
        return faults

    def _write(
        self,
        connection: Any,
        parts: Sequence[Part],
        faults: dict[PostgresRunWriter, AxilError],
        claimed: dict[PostgresRunWriter, tuple[int, int]] | None = None,
    ) -> None:
        if not parts:
            return
        ids = {
            part.run: (claimed or {}).get(part.run) or (part.run.id, part.run.epoch or 0)
            for part in parts
        }
        heads = [
            (
                *ids[part.run],
                part.run.safe,
                part.next,
                part.ended or ("open" if part.is_closing else "running"),
                part.is_closing,
                part.due,
            )
            for part in parts
        ]
        rows: list[tuple[int, *Stored]] = [
            (ids[part.run][0], *self.codec.stored(part.run.run_id, row))
            for part in parts
            for row in part.rows
        ]
        values = [*_columns(heads, 7), *_columns(rows, 7), self.database.schema]
        held = {id for id, _ in connection.execute(_WRITE, values).fetchall()}
        lost = [part for part in parts if ids[part.run][0] not in held]
        for part in lost:  # rare: each is asked for by itself
            id, epoch = ids[part.run]
            sql = "select 1 from runs where id = %s and epoch = %s and next = %s"
            if not connection.execute(sql, (id, epoch, part.next)).fetchone():
                faults[part.run] = claimed_error(part.run.run_id, "it was taken over")

    def _claimed_at_once(
        self, connection: Any, runs: Sequence[PostgresRunWriter]
    ) -> dict[PostgresRunWriter, tuple[int, int]]:
        """Claim runs in as few statements as possible; return their numbers and epochs.

        Left are runs that another process holds, that have changed, or that are of a thread.
        """
        own = self.database.holder
        held = {run.run_id for run in self.held}
        by_name = {run.run_id: run for run in runs if run.run_id not in held}
        found: list[Any] = []
        known = [run for run in by_name.values() if run.seen[1]]
        if known:
            values = [(run.run_id, *run.seen, run.claiming, run.digest) for run in known]
            found += connection.execute(_CLAIM, [own, *_columns(values, 5), own]).fetchall()
        fresh = [
            run
            for run in by_name.values()
            if not run.seen[1] and not run.header.get("thread") and not run.place.once
        ]
        if fresh:
            values = [
                (
                    run.run_id,
                    run.header.get("graph", ""),
                    run.digest,
                    run.header.get("forked_from", ""),
                    run.place.queue,
                    run.place.key,
                    run.claiming,
                )
                for run in fresh
            ]
            found += connection.execute(_BEGIN, [own, *_columns(values, 7)]).fetchall()
            _keep_queues(connection, fresh)
        return {by_name[name]: (id, by_name[name].claiming) for name, id in found}

    def _claimed(self, connection: Any, run: PostgresRunWriter) -> tuple[int, int] | AxilError:
        """Return the number of a run and the epoch of the claim, or the refusal."""
        sql = f"select id, epoch, next, holder, {_ALIVE}, thread, status from runs where run = %s"
        found = connection.execute(f"{sql} for update", (run.run_id,)).fetchone()
        if found is None:
            if run.seen[1]:
                return claimed_error(run.run_id, "it was deleted")
            return self._begun(connection, run)
        id, epoch, next, holder, is_alive, thread, status = found
        if epoch == run.claiming:  # in a transaction whose connection was lost
            return id, epoch
        own = self.database.holder
        if holder and is_alive and (holder != own or self._is_held(run.run_id)):
            return claimed_error(run.run_id, self._name(connection, holder))
        if (epoch, next) != run.seen:
            return claimed_error(run.run_id, "since its journal was read")
        if thread and status != "done":
            sql = "select run from runs where thread = %s and id > %s order by id desc limit 1"
            later = connection.execute(sql, (thread, id)).fetchone()
            if later:
                return left_behind_error(thread, run.run_id, later[0])
        sql = "update runs set epoch = %s, holder = %s, digest = coalesce(%s, digest) where id = %s"
        connection.execute(sql, (run.claiming, own, run.digest or None, id))
        return id, run.claiming

    def _begun(self, connection: Any, run: PostgresRunWriter) -> tuple[int, int] | AxilError:
        header = run.header
        if (refused := self._refused(connection, run)) is not None:
            return refused
        thread = str(header.get("thread", ""))
        if thread:
            connection.execute("select pg_advisory_xact_lock(hashtextextended(%s, 0))", (thread,))
            sql = (
                f"select run, status = 'running' and {_ALIVE} from runs where thread = %s "
                "order by id desc limit 1"
            )
            last, is_at_work = connection.execute(sql, (thread,)).fetchone() or ("", False)
            if header.get("after", "") != last or is_at_work:
                if self._exists(connection, run.run_id):  # begun elsewhere during the wait
                    return claimed_error(run.run_id, "since its journal was read")
                return overtaken_error(thread, last)
        sql = (
            "insert into runs (run, graph, digest, thread, forked_from, queue, key, epoch, holder, "
            f"begun, touched) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, {_NOW}, {_NOW}) "
            "on conflict do nothing returning id"
        )
        graph, source = str(header.get("graph", "")), str(header.get("forked_from", ""))
        claim = (run.claiming, self.database.holder)
        place = (run.place.queue, run.place.key)
        values = (run.run_id, graph, run.digest, thread, source, *place, *claim)
        _keep_queues(connection, [run])
        made = connection.execute(sql, values).fetchone()
        if made is None:
            return claimed_error(run.run_id, "since its journal was read")
        if run.place.once:
            sql = (
                "insert into once values (%s, %s, %s) on conflict (queue, name) do update "
                "set run = excluded.run"
            )
            connection.execute(sql, (run.place.queue, run.place.once, made[0]))
        return made[0], run.claiming

    def _refused(self, connection: Any, run: PostgresRunWriter) -> RunExists | None:
        """Return the refusal of a run whose name another one has, which waits with its input if it
        is debounced; None: it may begin.
        """
        place = run.place
        if run.first is None:
            return None
        lock = "select pg_advisory_xact_lock(hashtextextended(%s, 1))"
        connection.execute(lock, (f"{place.queue}\n{place.once}",))
        sql = (
            "select id, runs.run, holder = 0 and next = 1, begun from once join runs on "
            "runs.id = once.run where once.queue = %s and name = %s and status <> all(%s) "
            "for update of runs"
        )
        ended = [*ENDED, "parked"]
        found = connection.execute(sql, (place.queue, place.once, ended)).fetchone()
        if found is None:
            return None
        id, run_id, is_waiting, begun = found
        if place.debounce_seconds is not None:
            if not is_waiting:
                return None
            row = self.codec.stored(run_id, run.first)
            sql = (
                "update entries set kind = %s, who = %s, body = %s, sealed = %s, crc = %s "
                "where run = %s and seq = %s"
            )
            connection.execute(sql, (*row[1:], id, row[0]))
            sql = (
                "update runs set graph = %s, digest = %s, key = %s, due = %s, epoch = %s, "
                f"touched = {_NOW} where id = %s"
            )
            values = (run.header.get("graph", ""), run.digest, place.key, place.due(begun))
            connection.execute(sql, (*values, new_epoch(), id))
        return RunExists(run_id, place)

    def _exists(self, connection: Any, run_id: str) -> bool:
        sql = "select 1 from runs where run = %s"
        return connection.execute(sql, (run_id,)).fetchone() is not None

    def _is_held(self, run_id: str) -> bool:
        return any(run.run_id == run_id for run in self.held.copy())

    def _name(self, connection: Any, holder: int) -> str:
        found = connection.execute("select name from holders where id = %s", (holder,)).fetchone()
        host, _, pid = str(found[0] if found else "").rpartition(":")
        return f"process {pid} on {host}"


def _keep_queues(connection: Any, runs: Iterable[PostgresRunWriter]) -> None:
    """Have a row for each queue that is used."""
    if names := sorted({run.place.queue for run in runs} - {""}):
        sql = "insert into queues (name) select unnest(%s::text[]) on conflict do nothing"
        connection.execute(sql, (names,))


def new_epoch() -> int:
    """Return a number that no other claim has."""
    return secrets.randbits(62) | 1


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]
