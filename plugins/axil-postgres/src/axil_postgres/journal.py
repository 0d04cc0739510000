"""``postgresql``: the journal and its writers of runs."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Unpack

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from axil.plugin import JournalError
from axil_journals import (
    DUE_NOW,
    ENDED,
    Bucket,
    Cipher,
    Damage,
    Entry,
    Queue,
    Recording,
    RunCount,
    RunInfo,
    RunMail,
    RunObjects,
    RunWriter,
    Spent,
    claimed_error,
    damage_of,
    entry_row,
    find_cut,
    run_info,
    unknown_error,
)
from axil_postgres.codec import Codec, Record
from axil_postgres.database import Database, UnheldError
from axil_postgres.listing import COUNTS, FACTS, IS_HELD, NAMED, listing, pruned
from axil_postgres.schema import go_back
from axil_postgres.taking import (
    ANY_LOST,
    next_due,
    set_queues,
    spend,
    states,
    taken,
    taken_at_once,
    with_records,
)
from axil_postgres.writer import ROWS, Writer, new_epoch

if TYPE_CHECKING:
    from axil_postgres.keywords import PostgresJournalKeywords

_INFOS: Final = f"select {FACTS}, {IS_HELD} from runs"
_POST: Final = """
with found as (select id, holder from runs where run = %(run)s for update),
added as (
    insert into mail (run, question, kind, body, sealed)
    select id, %(question)s, %(kind)s, %(body)s, %(sealed)s from found
    on conflict do nothing returning run
),
noted as (
    update runs set has_mail = true,
        due = case when runs.holder = 0 then 0 else runs.due end
    from added where runs.id = added.run returning 1
)
select (select count(*) from found), (select count(*) from noted),
    pg_notify(%(tables)s, (
        select case when holder = 0 then 'due' else 'mail ' || holder end from found
    ))
"""
_HELD_BY_NONE: Final = (
    "select run from runs where holder <> 0 "
    "and not exists (select from holders where holders.id = runs.holder)"
)
_MAIL: Final = (
    "select mail.id, runs.run, kind, body, sealed from mail join runs on runs.id = mail.run "
    "where not is_read and runs.run = any(%s::text[]) order by mail.id"
)


class Settings(BaseModel):
    """The settings of the journal."""

    model_config = ConfigDict(extra="forbid")

    url: SecretStr = Field(
        description="The address of the database, postgresql://user:password@host:5432/name; what "
        "it leaves out is in libpq's environment variables (PGPASSWORD, PGSSLMODE …).",
    )
    tables: str = Field(
        default="axil",
        pattern="^[a-z_][a-z0-9_]{0,50}$",
        description="The schema of the tables; made if need be.",
    )
    sync: Literal["full", "normal"] = Field(
        default="full",
        description="full: what a run waited for outlives a crash of the server. normal: it "
        "outlives the process; a crash of the server may take the last moments, in order.",
    )
    detail: int = Field(
        default=10_000,
        ge=0,
        description="Per run, how many superseded rows stay, for looking back; 0: none.",
    )
    connections: int = Field(
        default=3,
        ge=2,
        le=100,
        description="The largest number of connections of a process; one of them listens.",
    )
    direct_url: SecretStr = Field(
        default=SecretStr(""),
        description="The address of the server itself, to listen; needed if url is that of a "
        "pooler that gives each transaction another connection (PgBouncer, transaction).",
    )
    lease_seconds: float = Field(
        default=6.0,
        gt=0.0,
        description="How long a process that shows no sign of life keeps its runs.",
    )
    patience_seconds: float = Field(
        default=30.0, ge=0.0, description="How long a server that is away is waited for."
    )
    objects: str = Field(
        default="",
        description="The folder or bucket where values of more than 256 KiB are kept: "
        "file:///…, s3://…, gs://…, az://…; empty: in the database.",
    )
    retain_days: float | None = Field(
        default=None,
        gt=0.0,
        description="Days after which runs that have ended are forgotten; none: never.",
    )


class PostgresJournal(Recording):
    """A ``SharedJournal`` in a PostgreSQL database, for any number of processes and machines.

    The server is connected to, and the tables made if need be, by the first use.
    """

    Config = Settings
    examples = ({"url": "postgresql://localhost/axil"},)
    kit_excuse = "it needs a server: the tests of axil-postgres start one"
    blocking: ClassVar[bool] = True

    def __init__(
        self,
        config: Settings | str | None = None,
        *,
        cipher: Cipher | None = None,
        **settings: Unpack[PostgresJournalKeywords],
    ) -> None:
        """Store the settings.

        Args:
            config: the settings, or just the address.
            cipher: encrypts what runs were given, wrote and asked; ids of runs, and names of
                graphs, threads and kinds of entries stay readable.
        """
        if isinstance(config, str):
            settings["url"] = config
        self.config = config if isinstance(config, Settings) else Settings.model_validate(settings)
        self.cipher = cipher
        self._lock = threading.Lock()
        self._writer: Writer | None = None
        self._closing: Any = None

    @property
    def writer(self) -> Writer:
        """The writer; connects. Raises: JournalError (AX510, AX513, AX514, AX515)."""
        with self._lock:
            if self._writer is None:
                config = self.config
                retain = None if config.retain_days is None else config.retain_days * 86_400
                database = Database(
                    config.url.get_secret_value(),
                    schema=config.tables,
                    sync=config.sync,
                    connections=config.connections,
                    direct_url=config.direct_url.get_secret_value(),
                    lease_seconds=config.lease_seconds,
                    patience_seconds=config.patience_seconds,
                    retain_seconds=retain,
                )
                objects = None
                if config.objects:
                    objects = RunObjects(Bucket(config.objects), cipher=self.cipher)
                    database.forgotten = objects.forget
                codec = Codec(self.cipher, objects)
                try:
                    codec.admit(database)
                except BaseException:
                    database.close()
                    raise
                self._writer = Writer(database, codec)
                # also at the end of the process
                self._closing = weakref.finalize(self, _close, self._writer)
            return self._writer

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        return self.writer.database.rows(sql, values)

    def open(self, run_id: str) -> PostgresRunWriter:
        """Return the writer of a run. Raises: JournalError (AX511): an entry is damaged."""
        _check_names(run_id)
        return PostgresRunWriter(self, run_id)

    def entries(self, run_id: str) -> Sequence[Entry]:
        """Return the entries of a run, with superseded ones, as far as they are kept."""
        self.writer.finish_now(run_id)
        return [entry for _, entry in self.read(run_id)]

    def read(self, run_id: str) -> Iterator[tuple[int, Entry]]:
        """Yield the entries with their numbers. Raises: JournalError (AX511): one is damaged."""
        codec = self.writer.codec
        if not _is_storable(run_id):
            return
        for row in self._rows(ROWS, run_id):
            yield from codec.entries(run_id, row)

    def thread(self, name: str) -> Sequence[str]:
        if not name or not _is_storable(name):
            return []
        self.writer.finish_now()
        sql = "select run from runs where thread = %s order by id"
        return [run for (run,) in self._rows(sql, name)]

    def runs(
        self,
        *,
        status: Collection[str] = (),
        after: str = "",
        limit: int = 0,
        before: float | None = None,
    ) -> Sequence[RunInfo]:
        self.writer.finish_now()
        key = (None, None)
        if after:
            sql = "select touched, id from runs where run = %s"
            found = self._rows(sql, after) if _is_storable(after) else ()
            if not found:
                return ()
            key = found[0]
        given = {
            "all": not status,
            "status": list(status),
            "touched": key[0],
            "id": key[1],
            "before": before,
            "most": limit or None,
        }
        sql = listing(is_after=bool(after), is_before=before is not None)
        return [_info(row) for row in self.writer.database.rows(sql, given)]

    def named(self, prefix: str, limit: int) -> Sequence[str]:
        self.writer.finish_now()
        found = self._rows(NAMED, prefix, limit) if _is_storable(prefix) else ()
        return list(takewhile(lambda run: run.startswith(prefix), (run for (run,) in found)))

    def prune(
        self, before: float, *, status: Collection[str] = ENDED, limit: int = 1000
    ) -> Sequence[RunInfo]:
        self.writer.finish_now()
        database = self.writer.database
        given = (before, list(status), limit)
        found = [_info((*row, False)) for row in database.transact(partial(pruned, given=given))]
        self._forgotten([info.run_id for info in found])
        return found

    def _forgotten(self, run_ids: Sequence[str]) -> None:
        if (objects := self.writer.codec.objects) is not None:
            objects.forget(run_ids)

    def forget(self, run_id: str) -> None:
        self.writer.finish_now()

        def doing(connection: Any) -> None:
            with connection.transaction():
                id = self._free(connection, run_id)
                connection.execute("delete from runs where id = %s", (id,))

        self.writer.database.transact(doing)
        self._forgotten([run_id])

    def _free(self, connection: Any, run_id: str) -> int:
        """Return the number of a run, locked. Raises: JournalError (AX503, AX506)."""
        sql = (
            "select id, holder <> 0 and exists (select from holders "
            "where holders.id = runs.holder and until > now()) from runs where run = %s for update"
        )
        found = connection.execute(sql, (run_id,)).fetchone() if _is_storable(run_id) else None
        if found is None:
            raise unknown_error(run_id)
        if found[1]:
            raise claimed_error(run_id, "it is at work")
        return int(found[0])

    def examine(self) -> Sequence[Damage]:
        """Return what is damaged; nothing is changed."""
        held = {run for (run,) in self._rows(_HELD_BY_NONE)}
        found: list[Damage] = []
        for (run_id,) in self._rows("select run from runs order by id"):
            damage = damage_of(run_id, self.read(run_id))
            if not damage.problem and run_id in held:
                problem = "it is held by a process that is not there any more"
                damage = damage._replace(problem=problem)
            if damage.problem:
                found.append(damage)
        return found

    def cut(self, run_id: str, at: int) -> None:
        """Drop the entries of a run but for the first ``at``, so that it continues from there.

        Raises: JournalError (AX503, AX506).
        """
        self.writer.finish_now()
        codec = self.writer.codec

        def doing(connection: Any) -> None:
            with connection.transaction():
                id = self._free(connection, run_id)
                connection.execute("update runs set holder = 0 where id = %s", (id,))
                rows = connection.execute(ROWS, (run_id,)).fetchall()
                cut = find_cut(rows, partial(codec.entries, run_id), at)
                if cut is None:
                    return
                sql = "delete from entries where run = %s and seq >= %s"
                connection.execute(sql, (id, cut.row))
                for each in cut.kept:
                    stored = codec.stored(run_id, entry_row(*each))
                    sql = "insert into entries values (%s, %s, %s, %s, %s, %s, %s)"
                    connection.execute(sql, (id, *stored))
                sql = (
                    "update runs set next = %s, status = 'open', due = 0, epoch = %s where id = %s"
                )
                connection.execute(sql, (cut.next, new_epoch(), id))

        self.writer.database.transact(doing)

    def infos(self, run_ids: Collection[str]) -> Sequence[RunInfo]:
        for run_id in run_ids:
            self.writer.finish_now(run_id)
        names = [run_id for run_id in run_ids if _is_storable(run_id)]
        return [_info(row) for row in self._rows(f"{_INFOS} where run = any(%s::text[])", names)]

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
        writer = self.writer
        writer.finish_now()
        database = writer.database
        if lost and not database.rows(ANY_LOST)[0][0]:  # most often; no lock is held to find out
            return []
        given: dict[str, Any] = {
            "now": now,
            "without": list(without),
            "unknown": list(unknown),
            "digests": None if digests is None else list(digests),
        }

        def doing(connection: Any) -> list[tuple[str, Record | None]]:
            if not (lost or database.has_queues):
                at_once = {"holder": database.holder, "lease": database.lease_seconds, "most": most}
                is_held, database.has_queues, found = taken_at_once(connection, given | at_once)
                if not is_held:
                    raise UnheldError
                if not database.has_queues:
                    return with_records(connection, found)
            with connection.transaction():
                held = {**given, "holder": database.renewed(connection)}
                found = taken(connection, held, most, has_queues=database.has_queues, lost=lost)
            return with_records(connection, found)

        database.hold()
        records = dict(database.transact(doing))
        writer.taken.update(records)
        return list(records)

    def next_due(self, now: float) -> float | None:
        self.writer.finish_now()
        return self.writer.database.transact(partial(next_due, now=now), reading=True)

    @property
    def format(self) -> int:
        """The version of the tables."""
        return int(self._rows("select number from version")[0][0])

    def go_back(self) -> int:
        """Give the journal the format of the version before this one, for that one to open it, and
        return its number; no process may use it meanwhile.
        """
        return self.writer.database.transact(go_back)

    def set_queues(self, queues: Collection[Queue]) -> None:
        self.writer.database.transact(partial(set_queues, queues=queues))
        self._rows("select pg_notify(%s, 'due')", self.config.tables)

    def queues(self) -> Sequence[Queue]:
        return [state.queue for state in self.writer.database.transact(states, reading=True)]

    def spend(self, spent: Collection[Spent], now: float) -> Collection[str]:
        return self.writer.database.transact(partial(spend, spent=spent, now=now))

    def counts(self, now: float) -> Sequence[RunCount]:
        self.writer.finish_now()
        names = ("queue", "graph", "state", "runs", "oldest")
        found = self.writer.database.rows(COUNTS, {"now": now})
        return [RunCount(**dict(zip(names, row, strict=True))) for row in found]

    def release(self, run_id: str) -> None:
        writer = self.writer
        if run_id in writer.taken:
            writer.taken.pop(run_id, None)
            sql = "update runs set holder = 0 where run = %s and holder = %s"
            self._rows(sql, run_id, writer.database.holder)

    def wake(self, run_id: str, due: float = DUE_NOW) -> None:
        self.writer.finish_now(run_id)
        sql = (
            "update runs set due = case when holder = 0 then %s else due end where run = %s "
            "returning pg_notify(%s, 'due')"
        )
        found = _is_storable(run_id) and self._rows(sql, due, run_id, self.config.tables)
        if not found:
            raise unknown_error(run_id)

    def post(self, run_id: str, entry: Entry) -> bool:
        writer = self.writer
        writer.finish_now(run_id)
        question, body = writer.codec.encode_mail(run_id, entry)
        given = {
            "run": run_id,
            "question": question,
            "kind": entry.kind,
            "body": body if isinstance(body, str) else None,
            "sealed": body if isinstance(body, bytes) else None,
            "tables": self.config.tables,
        }

        def doing(connection: Any) -> Any:
            return connection.execute(_POST, given).fetchone()

        known, added, _ = writer.database.transact(doing) if _is_storable(run_id) else (0, 0, "")
        if not known:
            raise unknown_error(run_id)
        return bool(added)

    def mail(self, run_ids: Collection[str]) -> Sequence[RunMail]:
        decode = self.writer.codec.decode_mail
        return [
            RunMail(number, run, decode(run, kind, body if sealed is None else bytes(sealed)))
            for number, run, kind, body, sealed in self._rows(_MAIL, list(run_ids))
        ]

    def discard(self, numbers: Collection[int]) -> None:
        given = (list(numbers),)

        def doing(connection: Any) -> None:
            with connection.transaction():
                # the lock comes first: what is posted meanwhile waits, or is seen
                connection.execute(
                    "select 1 from runs where id in (select run from mail where id = "
                    "any(%s::bigint[])) order by id for update",
                    given,
                )
                sql = "update mail set is_read = true where id = any(%s::bigint[])"
                connection.execute(sql, given)
                connection.execute(
                    "update runs set has_mail = exists (select from mail where mail.run = runs.id "
                    "and not is_read) where id in (select run from mail where id = "
                    "any(%s::bigint[]))",
                    given,
                )

        self.writer.database.transact(doing)

    async def changed(self, since: int, seconds: float, *, is_work: bool = False) -> int:
        database = (await asyncio.to_thread(lambda: self.writer)).database
        database.listen()
        if is_work:  # negative, so that no number of one signal is one of the other
            return -await database.work.wait(-since, seconds)
        return await database.changes.wait(since, seconds)

    def close(self) -> None:
        """Write what is left and disconnect; the next use connects again.

        May be called again.
        """
        with self._lock:
            self._writer = None
            if self._closing is not None:
                self._closing()

    def __repr__(self) -> str:
        return f"PostgresJournal(tables={self.config.tables!r}, sync={self.config.sync!r})"


class PostgresRunWriter(RunWriter):
    """One run's part of the journal."""

    def __init__(self, journal: PostgresJournal, run_id: str) -> None:
        writer = journal.writer
        writer.finish_now(run_id)  # what an earlier writer of this process has still to write
        seen, stored = writer.record(run_id)
        entries = (each for row in stored for each in writer.codec.entries(run_id, row))
        super().__init__(writer, run_id, seen=seen, entries=entries, detail=journal.config.detail)
        self.claiming = new_epoch()
        """The epoch that the claim will have."""

    def check_names(self, *names: str) -> None:
        """See ``RunWriter``."""
        _check_names(*names)


def _info(row: Sequence[Any]) -> RunInfo:
    *facts, is_held = row
    return run_info(facts, lambda: is_held)


def _close(writer: Writer) -> None:
    writer.close()
    writer.database.close()


def _is_storable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in name


def _check_names(*names: str) -> None:
    """Raises: JournalError (AX501): the database cannot hold a name."""
    for name in names:
        if not _is_storable(name):
            message = f"the name {name!a} cannot be kept: it holds half a character or a zero."
            hint = "Choose another name; values may hold any text."
            raise JournalError(message, id="AX501", hint=hint)
