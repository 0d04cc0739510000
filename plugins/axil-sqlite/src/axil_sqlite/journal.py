"""``sqlite``: the journal and its writers of runs."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
import weakref
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from heapq import merge
from itertools import islice, takewhile
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from pydantic import BaseModel, ConfigDict, Field

from axil.plugin import JournalError
from axil_journals import (
    DUE_NOW,
    ENDED,
    Cipher,
    Damage,
    Entry,
    Queue,
    Recording,
    RunCount,
    RunInfo,
    RunMail,
    RunWriter,
    Spent,
    claimed_error,
    damage_of,
    entry_row,
    find_cut,
    row_entries,
    run_info,
    unknown_error,
)
from axil_sqlite.codec import Codec, Stored
from axil_sqlite.parts import Part
from axil_sqlite.store import LONGEST_PAUSE, Store, Sync, rescue, unusable
from axil_sqlite.taking import Wanted, counts, next_due, set_queues, spend, states
from axil_sqlite.writer import LOST, Writer, insert

if TYPE_CHECKING:
    from axil_sqlite.keywords import SqliteJournalKeywords
    from axil_sqlite.repair import Rescue

_ROWS = (
    "select seq, kind, who, body, crc from entries where run = (select id from runs "
    "where run = ?) order by seq"
)
_INFOS = (
    "select run, graph, status, thread, begun, touched, next, forked_from, due, owner, beat, id "
    "from runs"
)
_NAMING = (
    "select substr(body, 2) from entries where substr(body, 1, 1) = '#' "
    "union all select body from parts where kind = 'list'"
)
_SLICE = 1_000  # pages that are given back to the disk in one go
POLL_SECONDS = 0.1
"""Seconds between two looks whether another process has written."""


class Settings(BaseModel):
    """The settings of the journal."""

    model_config = ConfigDict(extra="forbid")

    folder: Path = Field(
        default=Path(".axil"),
        description="Where the database lies; made if need be.",
    )
    sync: Sync = Field(
        default="full",
        description="full: what a run waited for is on the disk, and outlives a power cut. "
        "normal: it outlives the process; a power cut "
        "may take the last moments, in order, never something from among them.",
    )
    detail: int = Field(
        default=10_000,
        ge=0,
        description="Per run, how many superseded rows stay, for looking back; 0: none.",
    )


class SqliteJournal(Recording):
    """A ``SharedJournal`` in one SQLite database, for the threads and processes of one machine.

    The database is opened, and made if need be, by the first use.
    """

    Config = Settings
    blocking: ClassVar[bool] = True

    def __init__(
        self,
        config: Settings | str | Path | None = None,
        *,
        cipher: Cipher | None = None,
        **settings: Unpack[SqliteJournalKeywords],
    ) -> None:
        """Store the settings.

        Args:
            config: the settings, or just the folder.
            cipher: encrypts what runs were given, wrote and asked; ids of runs, and names of
                graphs, threads and kinds of entries stay readable.
        """
        self.cipher = cipher
        if isinstance(config, (str, Path)):
            settings["folder"] = config
        self.config = config if isinstance(config, Settings) else Settings.model_validate(settings)
        self._lock = threading.RLock()
        self._writer: Writer | None = None
        self._closing: Any = None

    @property
    def writer(self) -> Writer:
        """The writer; opens the database. Raises: JournalError (AX510, AX513, AX514, AX515)."""
        with self._lock:
            if self._writer is None:
                store = Store(self.config.folder, self.config.sync)
                codec = Codec(self.config.folder, self.cipher)
                try:
                    codec.admit(store)
                except BaseException:
                    store.close()
                    raise
                self._writer = Writer(store, codec, self.config.sync)
                # also at the end of the process
                self._closing = weakref.finalize(self, self._writer.close)
            return self._writer

    def open(self, run_id: str) -> SqliteRunWriter:
        """Return the writer of a run. Raises: JournalError (AX511): an entry is damaged."""
        return SqliteRunWriter(self, run_id)

    def entries(self, run_id: str) -> Sequence[Entry]:
        """Return the entries of a run, with superseded ones, as far as they are kept."""
        self.writer.finish_now(run_id)
        return [entry for _, entry in self.read(run_id)]

    def read(self, run_id: str) -> Iterator[tuple[int, Entry]]:
        """Yield the entries with their numbers, as they are at one time.

        Raises: JournalError (AX511): one is damaged.
        """
        _check_names(run_id)
        parts: dict[str, Part] = {}
        writer = self.writer
        with self._reading(writer) as reader:
            for row in reader.execute(_ROWS, (run_id,)):
                yield from _entries_of(writer.codec, reader, row, run_id, parts)

    @contextmanager
    def _reading(self, writer: Writer) -> Generator[sqlite3.Connection]:
        """Begin a transaction that reads. It does not use ``self.writer``: ``close`` waits for the
        readers, and ``self.writer`` for ``close``.
        """
        with writer.reading:
            reader = writer.store.reader
            try:
                reader.execute("begin")
                yield reader
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                message = f"the journal in {self.config.folder} cannot be read: {error}."
                hint = f"{rescue(self.config.folder)}, or put a backup there."
                raise JournalError(message, id="AX510", hint=hint) from None
            finally:
                if reader.in_transaction:
                    reader.execute("rollback")

    def query(self, sql: str, *values: object) -> list[Any]:
        """Return rows of a reading query. Raises: JournalError (AX510): the database is damaged."""
        _check_names(*(value for value in values if isinstance(value, str)))
        with self._reading(self.writer) as reader:
            return reader.execute(sql, values).fetchall()

    def thread(self, name: str) -> Sequence[str]:
        sql = "select run from runs where thread = ? order by id"
        return [run for (run,) in self.query(sql, name)] if name else []

    def runs(
        self,
        *,
        status: Collection[str] = (),
        after: str = "",
        limit: int = 0,
        before: float | None = None,
    ) -> Sequence[RunInfo]:
        """See ``SharedJournal``; merged from the runs of each status and those with an owner, as an
        index of all runs would be written with each entry.
        """
        writer = self.writer
        writer.finish_now()
        _check_names(after)
        where, values = list[str](), list[Any]()
        if before is not None:
            where.append("touched < ?")
            values.append(before)
        with self._reading(writer) as reader:  # no further than the limit
            if after:
                key = reader.execute("select touched, id from runs where run = ?", (after,))
                if (found := key.fetchone()) is None:
                    return ()
                where.append("(touched, id) < (?, ?)")
                values += found
            narrowed = "".join(f" and {each}" for each in where)
            order = "order by touched desc, id desc"
            sql = f"{_INFOS} where owner = '' and status = ?{narrowed} {order}"
            parts = [
                reader.execute(sql, (each, *values))
                for each in _statuses(reader)
                if not status or ("open" if each == "running" else each) in status
            ]
            sql = f"{_INFOS} indexed by runs_by_owner where owner != ''{narrowed} {order}"
            parts.append(reader.execute(sql, values))
            rows = merge(*parts, key=itemgetter(5, -1), reverse=True)
            infos = (_info(writer, row) for row in rows)
            fitting = (info for info in infos if not status or info.status in status)
            return list(islice(fitting, limit or None))

    def named(self, prefix: str, limit: int) -> Sequence[str]:
        self.writer.finish_now()
        sql = "select run from runs where run >= ? order by run limit ?"
        found = (run for (run,) in self.query(sql, prefix, limit))
        return list(takewhile(lambda run: run.startswith(prefix), found))

    def prune(
        self, before: float, *, status: Collection[str] = ENDED, limit: int = 1000
    ) -> Sequence[RunInfo]:
        writer = self.writer
        writer.finish_now()
        with _writing(writer) as connection:
            parts = [
                connection.execute(
                    f"{_INFOS} where owner = '' and status = ? and touched < ? "
                    "order by touched, id limit ?",
                    (each, before, limit),
                )
                # one that a dead process had says still that it runs
                for each in [*{*status} - {"running"}, *(["running"] if "open" in status else [])]
            ]
            rows = list(islice(merge(*parts, key=itemgetter(5, -1)), limit))
            sql = "delete from runs where id in (select value from json_each(?))"
            connection.execute(sql, (json.dumps([row[-1] for row in rows]),))
        return [_info(writer, row) for row in rows]

    def forget(self, run_id: str) -> None:
        with self._changing(run_id) as (connection, id, is_held):
            if is_held:
                raise claimed_error(run_id, "it is at work")
            connection.execute("delete from runs where id = ?", (id,))

    def infos(self, run_ids: Collection[str]) -> Sequence[RunInfo]:
        writer = self.writer
        for run_id in run_ids:
            writer.finish_now(run_id)
        names = json.dumps(list(run_ids))
        rows = self.query(f"{_INFOS} where run in (select value from json_each(?))", names)
        return [_info(writer, row) for row in rows]

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
        """See ``SharedJournal``; a run of an unknown digest fits every engine."""
        writer = self.writer
        writer.finish_now()
        wanted = Wanted(
            now=now,
            digests=digests,
            without=frozenset(without),
            unknown=frozenset(unknown),
            lost=lost,
        )
        with self._reading(writer) as reader:
            is_any = wanted.is_any(writer, reader)
        if not is_any:
            return ()
        with _writing(writer) as connection:
            return wanted.take(writer, connection, most)

    def next_due(self, now: float) -> float | None:
        self.writer.finish_now()
        with self._reading(self.writer) as reader:
            return next_due(reader, now)

    @property
    def format(self) -> int:
        """The version of the tables."""
        with self._reading(self.writer) as reader:
            return int(reader.execute("pragma user_version").fetchone()[0])

    def go_back(self) -> int:
        """Give the journal the format of the version before this one, for that one to open it, and
        return its number; no process may use it meanwhile.
        """
        writer = self.writer
        with writer.lock:
            return writer.store.go_back()

    def set_queues(self, queues: Collection[Queue]) -> None:
        writer = self.writer
        with _writing(writer) as connection:
            set_queues(connection, queues)

    def queues(self) -> Sequence[Queue]:
        with self._reading(self.writer) as reader:
            return [state.queue for state in states(reader)]

    def spend(self, spent: Collection[Spent], now: float) -> Collection[str]:
        writer = self.writer
        with _writing(writer) as connection:
            return spend(connection, spent, now)

    def counts(self, now: float) -> Sequence[RunCount]:
        self.writer.finish_now()
        with self._reading(self.writer) as reader:
            return counts(reader, now)

    def release(self, run_id: str) -> None:
        writer = self.writer
        with writer.lock:
            if run_id in writer.taken:
                with _writing(writer) as connection:
                    is_lost = writer.taken[run_id]
                    sql = "update runs set owner = ?, beat = 0 where run = ? and owner = ?"
                    connection.execute(sql, (LOST if is_lost else "", run_id, writer.owner))
                writer.taken.pop(run_id, None)

    def wake(self, run_id: str, due: float = DUE_NOW) -> None:
        with self._changing(run_id) as (connection, id, is_held):
            if not is_held:
                connection.execute("update runs set due = ? where id = ?", (due, id))

    def post(self, run_id: str, entry: Entry) -> bool:
        question, body = self.writer.codec.encode_mail(run_id, entry)
        with self._changing(run_id) as (connection, id, is_held):
            added = connection.execute(
                "insert or ignore into mail (run, question, kind, body) values (?, ?, ?, ?)",
                (id, question, entry.kind, body),
            ).rowcount
            if added and not is_held:
                connection.execute("update runs set due = 0 where id = ?", (id,))
        return bool(added)

    @contextmanager
    def _changing(self, run_id: str) -> Generator[tuple[sqlite3.Connection, int, bool]]:
        """Open a transaction about a run, of which a process may hold the run.

        Raises: JournalError (AX503).
        """
        _check_names(run_id)
        writer = self.writer
        writer.finish_now(run_id)
        with _writing(writer) as connection:
            sql = "select id, owner, beat from runs where run = ?"
            found = connection.execute(sql, (run_id,)).fetchone()
            if found is None:
                raise unknown_error(run_id)
            yield connection, found[0], writer.is_held(found[1], found[2], run_id)

    def mail(self, run_ids: Collection[str]) -> Sequence[RunMail]:
        sql = (
            "select mail.id, runs.run, kind, body from mail join runs on runs.id = mail.run "
            "where not read and runs.run in (select value from json_each(?)) order by mail.id"
        )
        return [
            RunMail(number, run, self.writer.codec.decode_mail(run, kind, body))
            for number, run, kind, body in self.query(sql, json.dumps(list(run_ids)))
        ]

    def discard(self, numbers: Collection[int]) -> None:
        writer = self.writer
        with _writing(writer) as connection:
            sql = "update mail set read = 1 where id in (select value from json_each(?))"
            connection.execute(sql, (json.dumps(list(numbers)),))

    async def changed(self, since: int, seconds: float, *, is_work: bool = False) -> int:
        """See ``SharedJournal``; everything that is written is a change."""
        ends = time.monotonic() + seconds
        while True:
            await asyncio.sleep(min(POLL_SECONDS, max(0.0, ends - time.monotonic())))
            now = self.writer.store.version()
            if now != since or time.monotonic() >= ends:
                return now

    def shrink(self) -> int:
        """Give the space of what was deleted back to the disk; return how many files were deleted,
        which databases of version 1 have for large values.
        """
        writer = self.writer
        gone = 0
        if writer.codec.files.is_used():
            with writer.lock, writer.store.alone():
                sql = "select body from entries where body like '@%'"
                used = {body for (body,) in writer.store.connection.execute(sql)}
                gone = writer.codec.files.sweep(used)
        for _ in range(0, writer.store.one("pragma freelist_count")[0], _SLICE):
            with writer.lock, writer.store.alone():  # others write between two slices
                sql = f"pragma incremental_vacuum({_SLICE})"
                writer.store.connection.execute(sql).fetchall()
            time.sleep(LONGEST_PAUSE)
        with writer.lock, writer.store.alone():
            writer.store.connection.execute("pragma wal_checkpoint(truncate)").fetchall()
        return gone

    def examine(self) -> Sequence[Damage]:
        """Return what is damaged; nothing is changed."""
        found: list[Damage] = []
        try:
            found.extend(self._miscounted())
            lines = [line for (line,) in self.query("pragma integrity_check(20)")]
            found.extend(Damage("", line) for line in lines if line != "ok")
            runs = [run for (run,) in self.query("select run from runs order by id")]
        except JournalError as error:
            return [*found, Damage("", error.message)]
        damages = (damage_of(run_id, self.read(run_id)) for run_id in runs)
        return [*found, *(each for each in damages if each.problem)]

    def _miscounted(self) -> Iterator[Damage]:
        """Yield parts whose count of uses is wrong."""
        with self._reading(self.writer) as reader:
            counted = Counter[str]()
            for (names,) in reader.execute(_NAMING):
                with suppress(ValueError):  # the entry that it belongs to is found below
                    counted.update(set(json.loads(names)))
            there = dict(reader.execute("select name, uses from parts").fetchall())
        for name in counted.keys() | there.keys():
            if counted[name] != there.get(name, 0):
                known = there.get(name, "no")
                how = f"has {known} uses, and is named {counted[name]} times"
                yield Damage("", f"part {name} {how}")

    def repair(self) -> Rescue:
        """Put a new database in the place of a damaged one, with all that can be read of it; the
        old one stays beside it. Nothing else may use the journal meanwhile.

        Raises: JournalError: AX510 there is none, or a new one cannot be made; AX514 the key is
            another one.
        """
        from axil_sqlite.repair import rescued

        self.close()
        folder = self.config.folder
        if not (folder / "runs.db").is_file():
            raise unusable(folder, "there is no database", "Name the folder that it is in.")
        found = rescued(folder)
        for damage in self.examine():
            if not damage.run_id:
                found.lost.append(damage)
            elif damage.good:
                self.cut(damage.run_id, damage.good)
                what = f"what followed its step {damage.good}"
                found.lost.append(Damage(damage.run_id, what, damage.good))
            else:
                self.forget(damage.run_id)
                found.lost.append(Damage(damage.run_id, "all of it"))
        return found

    def cut(self, run_id: str, at: int) -> None:
        """Drop the entries of a run but for the first ``at``, so that it continues from there.

        Raises: JournalError (AX503, AX506).
        """
        codec = self.writer.codec
        with self._changing(run_id) as (connection, id, is_held):
            if is_held:
                raise claimed_error(run_id, "it is at work")
            rows = connection.execute(_ROWS, (run_id,)).fetchall()
            cut = find_cut(rows, lambda row: _entries_of(codec, connection, row, run_id), at)
            if cut is None:
                return
            sql = "delete from entries where run = ? and seq >= ?"
            connection.execute(sql, (id, cut.row))
            stored = (codec.stored(connection, run_id, entry_row(*each)) for each in cut.kept)
            insert(connection, [value for row in stored for value in (id, *row)])
            sql = "update runs set next = ?, status = 'open', epoch = epoch + 1 where id = ?"
            connection.execute(sql, (cut.next, id))

    def close(self) -> None:
        """Write what is left and close the database; the next use opens it again.

        May be called again.
        """
        with self._lock:
            self._writer = None
            if self._closing is not None:
                self._closing()

    def __repr__(self) -> str:
        return f"SqliteJournal({str(self.config.folder)!r}, sync={self.config.sync!r})"


class SqliteRunWriter(RunWriter):
    """One run's part of the journal."""

    def __init__(self, journal: SqliteJournal, run_id: str) -> None:
        journal.writer.finish_now(run_id)  # what an earlier writer of this process has to write
        found = journal.query("select epoch, next from runs where run = ?", run_id)
        super().__init__(
            journal.writer,
            run_id,
            seen=found[0] if found else (0, 0),
            entries=journal.read(run_id),
            detail=journal.config.detail,
        )
        self.shown: tuple[str, bool, float | None] | None = None
        """The status, whether it was released, and when it is due, as its row has it."""
        self.touched = 0.0
        """The time at which all of its row was written."""

    def check_names(self, *names: str) -> None:
        """See ``RunWriter``."""
        _check_names(*names)


@contextmanager
def _writing(writer: Writer) -> Generator[sqlite3.Connection]:
    """Open a transaction that writes. Raises: JournalError (AX512)."""
    try:
        with writer.lock, writer.store.writing() as connection:
            yield connection
    except sqlite3.Error as error:
        message = f"the journal in {writer.store.folder} cannot be written: {error}."
        hint = "Make room or repair the disk; then try again."
        raise JournalError(message, id="AX512", hint=hint) from None


def _statuses(reader: sqlite3.Connection) -> list[str]:
    """Return the statuses of runs without an owner; one probe of the index for each."""
    found, sql = list[str](), "select min(status) from runs where owner = ''"
    (each,) = reader.execute(sql).fetchone()
    while each is not None:
        found.append(each)
        (each,) = reader.execute(f"{sql} and status > ?", (each,)).fetchone()
    return found


def _info(writer: Writer, row: Sequence[Any]) -> RunInfo:
    """Return the facts of a row of ``_INFOS``."""
    *facts, owner, beat, _ = row
    return run_info(facts, lambda: writer.is_held(owner, beat, row[0]))


def _entries_of(
    codec: Codec,
    connection: sqlite3.Connection,
    stored: Stored,
    run_id: str,
    parts: dict[str, Part] | None = None,
) -> list[tuple[int, Entry]]:
    row, crc = codec.row(connection, run_id, stored, parts)
    return row_entries(row, crc, run_id)


def _check_names(*names: str) -> None:
    """Raises: JournalError (AX501): the database cannot hold a name."""
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            message = f"the name {name!a} cannot be kept: it holds half a character."
            hint = "Choose another name; values may hold any text."
            raise JournalError(message, id="AX501", hint=hint) from None
