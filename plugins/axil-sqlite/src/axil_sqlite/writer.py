"""The writer for all books of a process: their entries are committed together, so that many runs
share one wait for the disk.

A book's rows go into its own queue. A caller that needs them safe asks; the writer's thread takes
what has come together by then, from every book that somebody waits for, and commits it as one
transaction. Where safety does not mean the disk (``normal``), the event loop commits itself, once
for all who asked in one turn: that takes less time than waking a thread.

Every transaction checks, run by run, that the book still holds its run: its epoch is the one it
claimed. A book that does not is refused, alone; the others go on.
"""

from __future__ import annotations

import asyncio
import os
import queue
import socket
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from axil import AxilError
from axil.driver import EntryRow as Row, claimed_error, left_behind_error, overtaken_error
from axil.plugin import JournalError
from axil_sqlite.codec import Codec
from axil_sqlite.store import Store, Sync

if TYPE_CHECKING:
    from axil_sqlite.journal import SqliteBook

BEAT = 10.0
"""Seconds between signs of life."""
SILENCE = 30.0
"""Seconds without one after which a holder counts as gone, even if its process is there: it may be
stopped for good.
"""

_HOLD = (
    "update runs set next = ?, status = ?, owner = ?, beat = ?, touched = ?, due = case when ? "
    "and exists (select 1 from mail where mail.run = runs.id and not read) then 0 else ? end "
    "where id = ? and epoch = ?"
)

_SEVERAL = (64, 8, 1)
"""Rows to an insert.

Python's interpreter lock is released and taken once a statement, not once a row.
"""
_INSERTS = {
    n: "insert into entries (run, seq, kind, who, body, crc) values "
    f"{', '.join(['(?, ?, ?, ?, ?, ?)'] * n)}"
    for n in _SEVERAL
}

Waiter = asyncio.Future[None]


class _Part(NamedTuple):
    """The rows of a book in one transaction: as they were when they were taken, whatever happens to
    the book meanwhile.
    """

    book: SqliteBook
    rows: list[Row]
    is_closing: bool
    ended: str


def _part(book: SqliteBook) -> _Part:
    """Take the rows of a book.

    Whether it is closing and how it ended are read before: then all that belongs to it is among the
    rows.
    """
    is_closing, ended = book.closing, book.ended
    return _Part(book, _taken(book.rows), is_closing, ended)


class Writer:
    """Writes for all books of one journal object."""

    def __init__(self, store: Store, codec: Codec, sync: Sync) -> None:
        self.store, self.codec, self.sync = store, codec, sync
        self.lock, self.reading, self._gate = threading.RLock(), threading.Lock(), threading.RLock()
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}:{id(self):x}"
        self._asked: queue.SimpleQueue[Sequence[tuple[SqliteBook, Waiter | None]] | None] = (
            queue.SimpleQueue()
        )
        self._turns: dict[asyncio.AbstractEventLoop, list[tuple[SqliteBook, Waiter]]] = {}
        self._held: set[SqliteBook] = set()
        self.taken: set[str] = set()
        """Runs that were taken for this process, and that no book holds yet."""
        self._finishing: set[SqliteBook] = set()  # closed, and not written to their end yet
        self._beaten = time.time()
        self._thread: threading.Thread | None = None
        self._closed = self._ends_alone = False
        self.commits = 0
        """Transactions so far: for tests and measurements."""

    def kept(self, book: SqliteBook) -> Waiter | None:
        """Have what ``book`` has appended made safe. None: it is. Raises: JournalError."""
        loop = asyncio.get_running_loop()
        waiter: Waiter = loop.create_future()
        if loop in self._turns:
            self._turns[loop].append((book, waiter))
        else:
            self._turns[loop] = [(book, waiter)]
            loop.call_soon(self._turn, loop)
        return waiter

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Commit, or have committed, what was asked for in one turn of an event loop: one word to
        the thread, not one a run.
        """
        asked = self._turns.pop(loop)
        if self.sync != "full" or not self._ask(asked):
            self.commit(list(dict.fromkeys(book for book, _ in asked)))
            _settle(asked)

    def finish(self, book: SqliteBook) -> None:
        """Write the rest of ``book``, and release its run."""
        self._finishing.add(book)
        if self.sync == "normal" or not self._ask([(book, None)]):
            self.commit([book])

    def let_go(self, run_id: str = "") -> None:
        """Write closed books to their end now, where the thread has not done it yet.

        Args:
            run_id: those of this run only; empty: of all runs.
        """
        if any(not run_id or book.run_id == run_id for book in self._finishing.copy()):
            with self.lock:  # the thread may be at it
                if closing := list(self._finishing):
                    self.commit(closing)

    def _ask(self, asked: Sequence[tuple[SqliteBook, Waiter | None]]) -> bool:
        """Have the thread commit. False: there is none, so the caller does it."""
        with self._gate:  # other event loops ask, too, and somebody may close
            if self._closed or not self._has_thread():
                return False
            self._asked.put(asked)
            return True

    def _has_thread(self) -> bool:
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="axil-sqlite", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system gives no more of them
                return False
            self._thread = thread
        return True

    def _work(self) -> None:
        while True:
            try:
                asked = [self._asked.get(timeout=BEAT)]
            except queue.Empty:
                self._beat()
                continue
            with suppress(queue.Empty):
                while len(asked) < 512:
                    asked.append(self._asked.get_nowait())
            wanted = [each for several in asked if several is not None for each in several]
            if books := list(dict.fromkeys(book for book, _ in wanted)):
                self.commit(books)
            _tell([(book, waiter) for book, waiter in wanted if waiter is not None])
            if None in asked:
                if self._ends_alone:
                    self._end()
                return

    # ------------------------------------------------------------------ transactions

    def commit(self, books: Sequence[SqliteBook]) -> None:
        """Commit what ``books`` have appended; a book whose part is refused, or all if nothing can
        be written, has a ``fault``.
        """
        with self.lock:
            # the run of a released book may be another's by now
            self._finishing.difference_update([book for book in books if book.is_released])
            books = [book for book in books if not book.is_released]
            if not books:
                return
            taken: list[_Part] = []
            try:
                with self.store.writing() as connection:
                    for book in books:
                        taken.append(_part(book))
                    self._put(connection, taken)
                self.commits += 1
            except (
                BaseException
                # whatever it is: those who wait hear of it, the thread lives on, and nothing is
                # written behind a gap
            ) as error:
                message = str(error) or type(error).__name__
                fault = JournalError(
                    f"the journal in {self.store.folder} cannot be written: {message}.",
                    id="AX512",
                    hint="Make room or mend the disk; "
                    "then resume the run: what was safe before is.",
                )
                for book in books:
                    book.fault = book.fault or fault
                if not isinstance(error, Exception):
                    raise
            for book, rows, is_closing, _ in taken:
                if book.fault is None and rows:
                    book.safe = rows[-1][0] + 1
                if is_closing:  # one that was closed meanwhile has rows still to be written
                    book.is_released = True
                    self._held.discard(book)
                    self._finishing.discard(book)
            for book in books:
                if book.fault is not None:
                    self._held.discard(book)
                    self._finishing.discard(book)
            if self._held and time.time() - self._beaten > BEAT:
                self._beat()
        # for signs of life, however long nothing is committed
        if self._held and self._thread is None:
            with self._gate:
                if not self._closed:
                    self._has_thread()

    def _put(self, connection: sqlite3.Connection, taken: Sequence[_Part]) -> None:
        """Insert all books' rows in few statements; a book that no longer holds its run is left
        out, with a ``fault``.
        """
        parts: list[_Part] = []
        for part in taken:
            book = part.book
            if book.fault is not None:
                if part.is_closing and book.epoch is not None:
                    connection.execute(
                        "update runs set owner = '' where id = ? and epoch = ?",
                        (book.id, book.epoch),
                    )
            elif book.epoch is not None:
                parts.append(part)
        parts = self._hold(connection, parts)  # before others claim: some of these let go
        fresh: list[_Part] = []
        for part in taken:
            book = part.book
            if book.epoch is None and book.fault is None and part.rows:
                try:
                    self._claim(connection, book)
                except AxilError as error:
                    book.fault = error
                    continue
                self._held.add(book)
                self.taken.discard(book.run_id)
                fresh.append(part)
        parts += self._hold(connection, fresh)
        insert(
            connection,
            [
                value
                for book, rows, *_ in parts
                for row in rows
                for value in (book.id, *self.codec.stored(connection, book.run_id, row))
            ],
        )
        for book, *_ in parts:
            if book.digest:
                connection.execute(
                    "update runs set digest = ? where id = ?", (book.digest, book.id)
                )
                book.digest = ""
        gone: list[tuple[int, int]] = []
        for book, rows, *_ in parts:
            # An entry that was appended since these rows were taken is not safe yet, and may
            # supersede others: a crash now would lose both.
            while rows and book.superseded and book.superseded[0][0] <= rows[-1][0]:
                gone.append((book.id, book.superseded.popleft()[1]))
        if gone:
            connection.executemany("delete from entries where run = ? and seq = ?", gone)

    def _hold(self, connection: sqlite3.Connection, parts: Sequence[_Part]) -> list[_Part]:
        """Say of each run where it stands; gives those parts whose books hold theirs."""
        now, changes = time.time(), list[tuple[Any, ...]]()
        for book, rows, is_closing, ended in parts:
            status = ended or ("open" if is_closing else "running")
            owner = "" if is_closing else self.owner
            changes.append(
                (
                    rows[-1][0] + 1 if rows else book.safe,
                    status,
                    owner,
                    now,
                    now,
                    is_closing and status == "paused",  # mail that came is read at once
                    book.due,
                    book.id,
                    book.epoch,
                )
            )
        # whose it was that does not is asked one by one
        if connection.executemany(_HOLD, changes).rowcount != len(changes):
            for (book, *_), change in zip(parts, changes, strict=True):
                if not connection.execute(_HOLD, change).rowcount:
                    book.fault = claimed_error(book.run_id, "it was taken over")
        return [part for part in parts if part.book.fault is None]

    def _claim(self, connection: sqlite3.Connection, book: SqliteBook) -> None:
        """Take a run for this book. Raises: JournalError (AX506, AX508, AX529)."""
        found = connection.execute(
            "select id, epoch, next, owner, beat from runs where run = ?", (book.run_id,)
        ).fetchone()
        if found is None:
            if book.seen[1]:
                raise claimed_error(book.run_id, "it was deleted")
            header = book.header
            if header.get("thread"):
                sql = (
                    "select run, status, owner, beat from runs where thread = ? "
                    "order by id desc limit 1"
                )
                last = connection.execute(sql, (header["thread"],)).fetchone()
                if header.get("after", "") != (last[0] if last else ""):
                    raise overtaken_error(header["thread"], last[0] if last else "")
                if (
                    last
                    and last[1] == "running"
                    and last[2]
                    and self.is_alive(last[2], last[3], last[0])
                ):
                    # it did not end well, and was resumed
                    raise overtaken_error(header["thread"], last[0])
            now = time.time()
            names = (
                book.run_id,
                header.get("graph", ""),
                header.get("thread", ""),
                header.get("forked_from", ""),
                now,
                now,
            )
            # unlike that of any run before, whose number this one may get
            book.epoch = time.time_ns()
            sql = (
                "insert into runs (run, graph, thread, forked_from, begun, touched, epoch) "
                "values (?, ?, ?, ?, ?, ?, ?)"
            )
            book.id = connection.execute(sql, (*names, book.epoch)).lastrowid or 0
            return
        id, epoch, next, owner, beat = found
        if owner and self.is_alive(owner, beat, book.run_id):
            raise claimed_error(book.run_id, _whose(owner))
        if (epoch, next) != book.seen:
            raise claimed_error(book.run_id, "since its journal was read")
        sql = (
            "select later.run, own.thread from runs own join runs later on later.thread = "
            "own.thread and later.id > own.id "
            "where own.id = ? and own.thread != '' and own.status != 'done' order by later.id desc"
        )
        later = connection.execute(sql, (id,)).fetchone()
        if later:
            raise left_behind_error(later[1], book.run_id, later[0])
        connection.execute("update runs set epoch = ? where id = ?", (epoch + 1, id))
        book.id, book.epoch = id, epoch + 1

    def is_alive(self, owner: str, beat: float, run_id: str) -> bool:
        """Return whether a holder is alive: its process exists, and it has renewed its claim of
        late.
        """
        host, pid, started, _ = owner.rsplit(":", 3)
        if owner == self.owner:
            # a reader does not hold the lock
            return any(book.run_id == run_id for book in self._held.copy())
        if host == socket.gethostname():
            now = _started(int(pid))
            if not now or (now != started and "?" not in (now, started)):
                return False
        return time.time() - beat < SILENCE

    def is_held(self, owner: str, beat: float, run_id: str) -> bool:
        """Return whether a run is at work, or was taken by a process that is alive."""
        if owner == self.owner and run_id in self.taken:
            return True
        return bool(owner) and self.is_alive(owner, beat, run_id)

    def _beat(self) -> None:
        """Show that the runs of this process are at work."""
        with self.lock:
            self._beaten = time.time()
            if self._held or self.taken:
                with (
                    suppress(sqlite3.Error, OSError, JournalError),
                    self.store.writing() as connection,
                ):
                    connection.execute(
                        "update runs set beat = ? where owner = ?", (self._beaten, self.owner)
                    )

    def close(self) -> None:
        """Write all that is left, end the thread, and close the database.

        In the thread itself only what is under way comes first: the collector may come by there,
        and find that the journal is free.
        """
        with self._gate:
            self._closed = True
            self._asked.put(None)
        if self._thread is not None:
            if self._thread is threading.current_thread():
                self._ends_alone = True
                return
            self._thread.join()
        self._end()

    def _end(self) -> None:
        with self.lock:
            for book in list(self._held):
                book.closing = True
            self.commit(list(self._held))
        with self.reading:
            self.store.close()


def _taken(rows: deque[Row]) -> list[Row]:
    """Take and return the rows that are there."""
    taken: list[Row] = []
    # meanwhile the book may have taken back the last one, to say it together with the next
    with suppress(IndexError):
        for _ in range(len(rows)):
            taken.append(rows.popleft())
    return taken


def insert(connection: sqlite3.Connection, values: list[Any]) -> None:
    """Insert rows of entries, one behind the other."""
    at = 0
    for several in _SEVERAL:
        while len(values) - at >= 6 * several:
            connection.execute(_INSERTS[several], values[at : at + 6 * several])
            at += 6 * several


def _tell(waiters: Iterable[tuple[SqliteBook, Waiter]]) -> None:
    """Let those who wait go on, each in its own event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, deque[tuple[SqliteBook, Waiter]]] = {}
    for book, waiter in waiters:
        by_loop.setdefault(waiter.get_loop(), deque()).append((book, waiter))
    for loop, theirs in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed: there are no waiters any more
            loop.call_soon_threadsafe(_settle, theirs)


def _settle(waiters: Iterable[tuple[SqliteBook, Waiter]]) -> None:
    for book, waiter in waiters:
        if waiter.done():
            continue
        if book.fault is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(book.fault)


def _whose(owner: str) -> str:
    host, pid, *_ = owner.rsplit(":", 3)
    return f"process {pid} on {host}"


def _started(pid: int) -> str:
    """Return when a process began, by the system's count, so that a reused process number is
    recognised.

    Empty: there is no such process; "?": it is not known.
    """
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[19]
        )
    except (FileNotFoundError, ProcessLookupError):
        pass
    except OSError:  # too many files are open: that says nothing of the process
        return "?"
    if Path("/proc/self/stat").exists() or os.name == "nt":
        return "" if os.name != "nt" else "?"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "?"
    return "?"
