"""The rescue of what is readable in a damaged database, into a new one.

Theory of operation
-------------------
SQLite reads a table by the numbers of its rows, and a page that is damaged hides the rows on it and
no others. So each table is read row by row, and behind an error from the next number that can be
read. The first page, with the schema, is that of a new database where it is damaged: all databases
of this version have the same tables at the same places. An index is a second copy of what it is
about: it tells the names of runs and which entries there were, so that what is lost is known. The
record of a run is cut before the first entry that is lost: what follows is not true without it.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from axil_journals import RULES, STATE, Damage
from axil_sqlite.store import Store

_RUNS: Final = (
    "id, run, graph, status, thread, forked_from, epoch, beat, next, begun, touched, digest, due, "
    "queue, key"
)
_TABLES: Final = {
    "runs": _RUNS,
    "parts": "id, name, uses, kind, body",
    "entries": "id, run, seq, kind, who, body, crc",
    "mail": "id, run, question, kind, body, read",
    "sealing": "id, proof",
    "queues": f"rowid, {', '.join((*RULES, *STATE))}",
}
_MOST_ROWS: Final = 2**48
"""Greater than the number of any row."""
_FAULTS: Final = (sqlite3.DatabaseError, UnicodeDecodeError)


@dataclass(slots=True, kw_only=True)
class Rescue:
    """The result of a rescue."""

    old: Path
    """The place where it lies now; what belongs to it is beside it."""
    runs: int = 0
    """The number of runs that were rescued, in whole or in part."""
    entries: int = 0
    """The number of rows of their records."""
    lost: list[Damage] = field(default_factory=list[Damage])
    """The losses: of runs, and of the database where the run is not known."""


def rescued(folder: Path) -> Rescue:
    """Put a new database in the place of a damaged one, with all that can be read of it.

    No other process may use it meanwhile. The old one stays beside it.
    Raises: JournalError (AX510): a new one cannot be made, or another process holds the lock.
    """
    path = folder / "runs.db"
    number = 1
    while os.path.lexists(old := folder / f"runs.db-damaged-{number}"):
        number += 1
    found = Rescue(old=old)
    with tempfile.TemporaryDirectory(prefix="runs.db-", dir=folder) as scratch:
        copy, new = Path(scratch, "runs.db"), Path(scratch, "new")
        store = Store(new, "full")
        try:
            _fill(store, _read(path, copy, new / "runs.db", found), found)
        finally:
            store.close()
        for ending in ("", "-wal"):
            if os.path.exists(f"{path}{ending}"):
                os.replace(f"{path}{ending}", f"{old}{ending}")
        with suppress(FileNotFoundError):
            os.unlink(f"{path}-shm")
        os.replace(new / "runs.db", path)
    return found


# ------------------------------------------------------------------------------- reading


@dataclass(slots=True, kw_only=True)
class _Readable:
    """The readable part of a damaged database."""

    rows: dict[str, list[tuple[Any, ...]]]
    names: Mapping[int, str]
    """The names of runs, of an index."""
    indexed: set[tuple[int, int]]
    """Runs with numbers of entries, of an index."""
    once: set[tuple[str, str, int]]
    """Queues, names and runs that have them."""


def _read(path: Path, copy: Path, new: Path, found: Rescue) -> _Readable:
    """Return what can be read, in that of the ways that reads most."""
    best: _Readable | None = None
    for with_log in (True, False):
        for with_schema in (True, False):
            for ending in ("", "-wal", "-shm"):
                Path(f"{copy}{ending}").unlink(missing_ok=True)
            shutil.copyfile(path, copy)
            if with_log and os.path.exists(f"{path}-wal"):
                shutil.copyfile(f"{path}-wal", f"{copy}-wal")
            if not with_schema:
                _graft(copy, new)
            with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                read = _readable(connection)
            if best is None or _size(read) > _size(best):
                best = read
    assert best is not None
    if not _size(best):
        found.lost.append(Damage("", "nothing of it can be read"))
    return best


def _size(read: _Readable) -> int:
    return sum(map(len, read.rows.values()))


def _graft(copy: Path, new: Path) -> None:
    """Give a database the first page of a new one, which says what is where."""
    with closing(sqlite3.connect(new)) as connection:
        size = int(connection.execute("pragma page_size").fetchone()[0])
        connection.execute("pragma wal_checkpoint(truncate)").fetchall()
    first = bytearray(new.read_bytes()[:size])
    first[28:32] = (os.path.getsize(copy) // size).to_bytes(4, "big")  # how many pages there are
    first[32:40] = bytes(8)  # none of them is free
    with copy.open("r+b") as file:
        file.write(first)


def _readable(connection: sqlite3.Connection) -> _Readable:
    with suppress(*_FAULTS):
        connection.execute("pragma writable_schema = on")
        connection.execute("pragma query_only = on")
    rows = {name: list(_rows(connection, name, columns)) for name, columns in _TABLES.items()}
    names = "select id, run from runs indexed by sqlite_autoindex_runs_1 order by run"
    entries = "select run, seq from entries indexed by entries_by_run order by run"
    indexed = {*_both_ways(connection, entries, ", seq")}
    once = {*_both_ways(connection, "select queue, name, run from once order by queue", ", name")}
    named = dict(_both_ways(connection, names))
    return _Readable(rows=rows, names=named, indexed=indexed, once=once)


def _rows(connection: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that can be read."""
    sql, after = f"select {columns} from {table} where rowid > ? order by rowid", -1

    def is_readable(number: int) -> bool:
        try:
            connection.execute(f"{sql} limit 1", (number,)).fetchone()
        except _FAULTS:
            return False
        return True

    while after < _MOST_ROWS:
        try:
            for row in connection.execute(sql, (after,)):
                yield row
                after = row[0]
            return
        except _FAULTS:
            step = 1
            while not is_readable(after + step):
                if step > _MOST_ROWS:
                    return
                step *= 2
            low, high = after + step // 2, after + step  # the last that is not, the first that is
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if is_readable(middle) else (middle, high)
            after = high


def _both_ways(
    connection: sqlite3.Connection, sql: str, then: str = ""
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of an index up to an error, from its beginning and from its end."""
    for way in ("", " desc"):
        further = f"{then}{way}" if then else ""
        with suppress(*_FAULTS):
            yield from connection.execute(f"{sql}{way}{further}")
            return


# ------------------------------------------------------------------------------- writing


def _fill(store: Store, read: _Readable, found: Rescue) -> None:
    runs = _runs(read, found)
    entries = _entries(read, runs, found)
    found.runs, found.entries = len(runs), len(entries)
    store.connection.execute("pragma foreign_keys = off")
    with store.writing() as connection:
        triggers = connection.execute(
            "select name, sql from sqlite_master where type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"drop trigger {name}")
        rows = {**read.rows, "runs": list(runs.values()), "entries": entries}
        rows["mail"] = [each for each in rows["mail"] if each[1] in runs]
        for table, columns in _TABLES.items():
            marks = ", ".join("?" * len(columns.split(",")))
            sql = f"insert or ignore into {table} ({columns}) values ({marks})"
            connection.executemany(sql, rows[table])
        once = [each for each in read.once if each[2] in runs]
        connection.executemany("insert into once values (?, ?, ?)", once)
        sql = (  # the runs of a queue without a row would never be due
            "insert into queues (name) select distinct queue from runs where queue != '' "
            "and queue not in (select name from queues) returning name"
        )
        for (name,) in connection.execute(sql).fetchall():
            found.lost.append(Damage("", f"the rules of the queue {name}"))
        _count(connection)
        for _, sql in triggers:
            connection.execute(sql)


def _runs(read: _Readable, found: Rescue) -> dict[int, tuple[Any, ...]]:
    """Return the runs by number; one whose own row is lost is made of its entries and its name."""
    runs = {row[0]: row for row in read.rows["runs"]}
    now = time.time()
    for number in sorted({row[1] for row in read.rows["entries"]} - runs.keys()):
        name = read.names.get(number, f"rescued-{number}")
        last = max(row[2] for row in read.rows["entries"] if row[1] == number)
        row = (number, name, "", "open", "", "", 0, 0.0, last + 1, now, now, "", None, "", "")
        runs[number] = row
        found.lost.append(Damage(name, "its graph, status, thread, queue and times"))
    for number, name in read.names.items():
        if number not in runs:
            found.lost.append(Damage(name, "all of it"))
    return runs


def _entries(
    read: _Readable, runs: dict[int, tuple[Any, ...]], found: Rescue
) -> list[tuple[Any, ...]]:
    """Return the entries up to the first of each run that is lost; a run without any is taken
    away.
    """
    there = {(row[1], row[2]) for row in read.rows["entries"]}
    first: dict[int, int] = {}
    for number, seq in sorted(read.indexed - there):
        first.setdefault(number, seq)
    kept = [row for row in read.rows["entries"] if row[2] < first.get(row[1], row[2] + 1)]
    left = Counter(row[1] for row in kept)
    for number in [number for number in first if number in runs]:
        row, seq = runs[number], first[number]
        if left[number]:
            found.lost.append(Damage(row[1], f"what followed its entry {seq}", left[number]))
            runs[number] = (*row[:3], "open", *row[4:6], row[6] + 1, row[7], seq, *row[9:])
    for number in [number for number in runs if not left[number]]:
        found.lost.append(Damage(runs.pop(number)[1], "all of it"))
    return kept


def _count(connection: sqlite3.Connection) -> None:
    """Count how often each part is named, and delete those that nothing names."""
    naming = (
        "select substr(body, 2) from entries where substr(body, 1, 1) = '#' "
        "union all select body from parts where kind = 'list'"
    )
    while True:
        counted = Counter[str]()
        for (names,) in connection.execute(naming):
            with suppress(ValueError):
                counted.update(set(json.loads(names)))
        connection.execute("update parts set uses = 0")
        values: Sequence[tuple[int, str]] = [(uses, name) for name, uses in counted.items()]
        connection.executemany("update parts set uses = ? where name = ?", values)
        if not connection.execute("delete from parts where uses = 0").rowcount:
            return


__all__ = ["Rescue", "rescued"]
