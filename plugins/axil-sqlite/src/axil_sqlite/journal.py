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
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from axil.plugin import JournalError
from axil_journals import (
    DUE_NOW,
    Cipher,
    Entry,
    Recording,
    RunInfo,
    RunMail,
    RunWriter,
    claimed_error,
    entry_row as row_of,
    row_entries as entries_of,
)
from axil_sqlite.codec import Codec, Stored
from axil_sqlite.parts import Part
from axil_sqlite.store import LONGEST_PAUSE, Store, Sync
from axil_sqlite.writer import LOST, Writer, insert

_ROWS = (
    "select seq, kind, who, body, crc from entries where run = (select id from runs "
    "where run = ?) order by seq"
)
_INFOS = (
    "select run, graph, status, owner, beat, thread, begun, touched, next, forked_from, due "
    "from runs"
)
_NAMING = (
    "select substr(body, 2) from entries where substr(body, 1, 1) = '#' "
    "union all select body from parts where kind = 'list'"
)


_SLICE = 1_000
"""Pages that are given back to the disk in one go."""
POLL_SECONDS = 0.1
"""Seconds between two questions whether another process has written."""


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


class Damage(NamedTuple):
    """The damage that ``examine`` found."""

    run_id: str
    """Empty: the database itself."""
    problem: str
    good: int = 0
    """The number of sound entries before it."""


class SqliteJournal(Recording):
    """Runs in one SQLite database, for any number of runs, threads and processes on one machine.

    Making one has no effects; the database is opened, and made if need be, by the first use.
    """

    Config = Settings
    blocking: ClassVar[bool] = True

    def __init__(
        self,
        config: Settings | str | Path | None = None,
        *,
        cipher: Cipher | None = None,
        **settings: Any,
    ) -> None:
        """Set where runs are kept, and how.

        Args:
            config: the settings, or just the folder.
            cipher: encrypts what runs were given, wrote and asked; ids of runs, and names of
                graphs, threads and kinds of entries stay readable.
        """
        self.cipher = cipher
        if isinstance(config, (str, Path)):
            settings["folder"] = config
        self.config = config if isinstance(config, Settings) else Settings(**settings)
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

    # ------------------------------------------------------------------ what a run needs

    def open(self, run_id: str) -> SqliteRunWriter:
        """See ``axil_journals.Journal``. Raises: JournalError (AX511): an entry is damaged."""
        return SqliteRunWriter(self, run_id)

    def entries(self, run_id: str) -> Sequence[Entry]:
        """See ``axil_journals.Journal``; with superseded entries, as far as they are kept."""
        self.writer.finish_now(run_id)
        return [entry for _, entry in self.numbered(run_id)]

    def numbered(self, run_id: str) -> Sequence[tuple[int, Entry]]:
        """Return the entries with their numbers in the run.

        Raises: JournalError (AX511): one is damaged.
        """
        return list(self.read(run_id))

    def read(self, run_id: str) -> Iterator[tuple[int, Entry]]:
        """Yield the entries with their numbers, as they are at one time: nothing that is deleted
        meanwhile is missed.

        Raises: JournalError (AX511): one is damaged.
        """
        _storable(run_id)
        parts: dict[str, Part] = {}  # that one entry has most others have, too
        writer = self.writer
        with self._reading(writer) as reader:
            for row in reader.execute(_ROWS, (run_id,)):
                yield from _entries_of(writer.codec, reader, row, run_id, parts)

    @contextmanager
    def _reading(self, writer: Writer) -> Generator[sqlite3.Connection]:
        """Read at one time. Inside, ``self.writer`` is not asked for: ``close`` waits for the
        readers, and what asks for the writer waits for ``close``.
        """
        with writer.reading:
            reader = writer.store.reader
            try:
                reader.execute("begin")
                yield reader
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                hint = "Keep a copy, and try SqliteJournal.examine; a backup may be needed."
                raise JournalError(
                    f"the journal in {self.config.folder} cannot be read: {error}.",
                    id="AX510",
                    hint=hint,
                ) from None
            finally:
                if reader.in_transaction:
                    reader.execute("rollback")

    def query(self, sql: str, *values: Any) -> list[Any]:
        """Return rows of a reading query. Raises: JournalError (AX510): the database is damaged."""
        _storable(*(value for value in values if isinstance(value, str)))
        with self._reading(self.writer) as reader:
            return reader.execute(sql, values).fetchall()

    def thread(self, name: str) -> Sequence[str]:
        """See ``axil_journals.Journal``."""
        return (
            [
                run
                for (run,) in self.query("select run from runs where thread = ? order by id", name)
            ]
            if name
            else []
        )

    # ------------------------------------------------------------------ what people need

    def runs(
        self, *, status: Collection[str] = (), after: str = "", limit: int = 0
    ) -> Sequence[RunInfo]:
        """See ``axil_journals.SharedJournal``."""
        writer = self.writer
        writer.finish_now()
        # whether one that was at work is so still is found out below
        wanted = {*status, "open", "running"} if {"open", "running"} & {*status} else {*status}
        where, values = ["? or status in (select value from json_each(?))"], list[Any]()
        values += [not status, json.dumps(sorted(wanted))]
        if after:
            where.append("(touched, id) < (select touched, id from runs where run = ?)")
            values.append(after)
        sql = f"{_INFOS} where ({') and ('.join(where)}) order by touched desc, id desc"
        with self._reading(writer) as reader:  # no further than the limit
            found = (_info(writer, row) for row in reader.execute(sql, values))
            fitting = (info for info in found if not status or info.status in status)
            return list(islice(fitting, limit or None))

    def forget(self, run_id: str) -> None:
        """See ``axil_journals.Journal``."""
        _storable(run_id)
        writer = self.writer
        writer.finish_now()
        with writer.lock, writer.store.writing() as connection:
            found = connection.execute(
                "select id, owner, beat from runs where run = ?", (run_id,)
            ).fetchone()
            if found is None:
                raise JournalError(f'the journal knows no run "{run_id}".', id="AX503")
            id, owner, beat = found
            if writer.is_held(owner, beat, run_id):
                raise claimed_error(run_id, "it is at work")
            connection.execute("delete from runs where id = ?", (id,))

    # ------------------------------------------------------------------ what engines need

    def infos(self, run_ids: Collection[str]) -> Sequence[RunInfo]:
        """See ``axil_journals.SharedJournal``."""
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
        lost: bool = False,
    ) -> Sequence[str]:
        """See ``axil_journals.SharedJournal``; a run of an unknown digest fits every engine."""
        writer = self.writer
        writer.finish_now()
        left_out = frozenset(without)

        def fits(run: str, owner: str, beat: float) -> bool:
            # one that this process holds no more after a fault of its disk is not lost
            is_lost = owner not in ("", writer.owner)
            return is_lost == lost and not writer.is_held(owner, beat, run)

        # in the order of the index, each: those that are due at once, and those whose time has come
        sql = "select touched, run, digest, owner, beat from runs where due = 0 order by touched"
        timed = (
            "select due, run, digest, owner, beat from runs where due > 0 and due <= ? order by due"
        )
        if lost:  # few runs have an owner, and many may be due
            sql = sql.replace("where", "indexed by runs_by_owner where owner != '' and")
            timed = timed.replace("where", "indexed by runs_by_owner where owner != '' and")
        with self._reading(writer) as reader:  # no further than there is room for
            due = (
                run
                for _, run, digest, owner, beat in merge(
                    reader.execute(sql), reader.execute(timed, (now,)), key=itemgetter(0)
                )
                if digests is None or not digest or digest in digests
                if run not in left_out and fits(run, owner, beat)
            )
            wanted = list(islice(due, most))
        if not wanted:
            return ()
        with writer.lock, writer.store.writing() as connection:
            taken: list[str] = []
            for run in wanted:
                sql = "select owner, beat from runs where run = ? and due <= ?"
                found = connection.execute(sql, (run, now)).fetchone()
                if found is not None and fits(run, *found):
                    sql = "update runs set owner = ?, beat = ? where run = ?"
                    connection.execute(sql, (writer.owner, time.time(), run))
                    taken.append(run)
            writer.taken.update(dict.fromkeys(taken, lost))
        return taken

    def next_due(self, now: float) -> float | None:
        """See ``axil_journals.SharedJournal``."""
        self.writer.finish_now()
        return self.query("select min(due) from runs where due > ?", now)[0][0]

    def release(self, run_id: str) -> None:
        """See ``axil_journals.SharedJournal``."""
        writer = self.writer
        with writer.lock:
            if run_id in writer.taken:
                with writer.store.writing() as connection:
                    is_lost = writer.taken[run_id]
                    sql = "update runs set owner = ?, beat = 0 where run = ? and owner = ?"
                    connection.execute(sql, (LOST if is_lost else "", run_id, writer.owner))
                writer.taken.pop(run_id, None)

    def wake(self, run_id: str, due: float = DUE_NOW) -> None:
        """See ``axil_journals.SharedJournal``."""
        with self._changing(run_id) as (connection, id, is_held):
            if not is_held:
                connection.execute("update runs set due = ? where id = ?", (due, id))

    def post(self, run_id: str, entry: Entry) -> bool:
        """See ``axil_journals.SharedJournal``."""
        question, body = self.writer.codec.letter(run_id, entry)
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
        """Open a transaction about a run; also says whether a process holds it."""
        _storable(run_id)
        writer = self.writer
        writer.finish_now(run_id)
        with writer.lock, writer.store.writing() as connection:
            sql = "select id, owner, beat from runs where run = ?"
            found = connection.execute(sql, (run_id,)).fetchone()
            if found is None:
                raise JournalError(f'the journal knows no run "{run_id}".', id="AX503")
            yield connection, found[0], writer.is_held(found[1], found[2], run_id)

    def mail(self, run_ids: Collection[str]) -> Sequence[RunMail]:
        """See ``axil_journals.SharedJournal``."""
        sql = (
            "select mail.id, runs.run, kind, body from mail join runs on runs.id = mail.run "
            "where not read and runs.run in (select value from json_each(?)) order by mail.id"
        )
        return [
            RunMail(number, run, self.writer.codec.entry(run, kind, body))
            for number, run, kind, body in self.query(sql, json.dumps(list(run_ids)))
        ]

    def discard(self, numbers: Collection[int]) -> None:
        """See ``axil_journals.SharedJournal``."""
        writer = self.writer
        with writer.lock, writer.store.writing() as connection:
            sql = "update mail set read = 1 where id in (select value from json_each(?))"
            connection.execute(sql, (json.dumps(list(numbers)),))

    async def changed(self, since: int, seconds: float, *, is_work: bool = False) -> int:
        """See ``axil_journals.SharedJournal``: the database says whether anything was written."""
        ends = time.monotonic() + seconds
        while True:
            await asyncio.sleep(min(POLL_SECONDS, max(0.0, ends - time.monotonic())))
            now = self.writer.store.version()
            if now != since or time.monotonic() >= ends:
                return now

    def shrink(self) -> int:
        """Give the space of what was deleted back to the disk; return how many large values of
        databases of version 1, which lie in files of their own, went.
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
        """Read everything and say what is damaged; nothing is changed."""
        found: list[Damage] = []
        try:
            found.extend(self._miscounted())
            lines = [line for (line,) in self.query("pragma integrity_check(20)")]
            found.extend(Damage("", line) for line in lines if line != "ok")
            runs = [run for (run,) in self.query("select run from runs order by id")]
        except JournalError as error:
            return [*found, Damage("", error.message)]
        for run_id in runs:
            good = 0
            try:
                for _ in self.read(run_id):
                    good += 1
            except JournalError as error:
                found.append(Damage(run_id, error.message, good))
        return found

    def _miscounted(self) -> Iterator[Damage]:
        """Yield what is wrong with how often parts are named."""
        with self._reading(self.writer) as reader:
            counted = Counter[str]()
            for (names,) in reader.execute(_NAMING):
                with suppress(ValueError):  # the entry that it belongs to is found below
                    counted.update(set(json.loads(names)))
            there = dict(reader.execute("select name, uses from parts").fetchall())
        for name in counted.keys() | there.keys():
            if counted[name] != there.get(name, 0):
                known = there.get(name, "no")
                yield Damage(
                    "", f"part {name} has {known} uses, and is named {counted[name]} times"
                )

    def cut(self, run_id: str, at: int) -> None:
        """Drop the entries of a run but for the first ``at``, so that it continues from there.

        Raises: JournalError (AX503, AX506).
        """
        _storable(run_id)
        writer = self.writer
        writer.finish_now()
        with writer.lock, writer.store.writing() as connection:
            found = connection.execute(
                "select id, owner, beat from runs where run = ?", (run_id,)
            ).fetchone()
            if found is None:
                raise JournalError(f'the journal knows no run "{run_id}".', id="AX503")
            if found[1] and writer.is_alive(found[1], found[2], run_id):
                raise claimed_error(run_id, "it is at work")
            left = at
            # one by one: their numbers have gaps, as superseded ones may be gone
            for row in connection.execute(_ROWS, (run_id,)).fetchall():
                try:
                    several = _entries_of(writer.codec, connection, row, run_id)
                except JournalError:
                    several = [(row[0], Entry(row[1]))]
                if len(several) > left:
                    connection.execute(
                        "delete from entries where run = ? and seq >= ?", (found[0], row[0])
                    )
                    insert(
                        connection,
                        [
                            value
                            for whole in several[:left]
                            for value in (
                                found[0],
                                *writer.codec.stored(connection, run_id, row_of(*whole)),
                            )
                        ],
                    )
                    sql = (
                        "update runs set next = ?, status = 'open', epoch = epoch + 1 where id = ?"
                    )
                    connection.execute(sql, (several[left][0], found[0]))
                    break
                left -= len(several)

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
    """One run's part; see ``axil_journals.JournalWriter``."""

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

    def check_names(self, *names: str) -> None:
        """Raises: JournalError (AX501)."""
        _storable(*names)


def _info(writer: Writer, row: Sequence[Any]) -> RunInfo:
    """Return what a row of ``_INFOS`` says."""
    run, graph, status, owner, beat, thread, begun, touched, entries, source, due = row
    if status in ("open", "running"):
        status = "running" if writer.is_held(owner, beat, run) else "open"
    return RunInfo(
        run_id=run,
        graph=graph,
        status=status,
        thread=thread,
        begun=begun,
        touched=touched,
        entries=entries,
        forked_from=source,
        due=due,
    )


def _entries_of(
    codec: Codec,
    connection: sqlite3.Connection,
    stored: Stored,
    run_id: str,
    parts: dict[str, Part] | None = None,
) -> list[tuple[int, Entry]]:
    row, crc = codec.row(connection, run_id, stored, parts)
    return entries_of(row, crc, run_id)


def _storable(*names: str) -> None:
    """Raises: JournalError (AX501): a name holds what is no character, and no database text."""
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            hint = "Choose another name; values may hold any text."
            raise JournalError(
                f"the name {name!a} cannot be kept: it holds half a character.",
                id="AX501",
                hint=hint,
            ) from None
