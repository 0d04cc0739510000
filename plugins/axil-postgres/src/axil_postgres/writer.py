"""The writer of all books of a process: what has come together is committed at once.

A book's rows go into its own queue. A caller that needs them safe asks; the writer's thread takes
what has come together by then, from all books that were asked for, and commits it in one
transaction. The statement that writes also checks, run by run, that the book still holds its run:
the epoch is the one that it claimed, the number of the next entry is the one it knows. A book for
which that is not so is refused, alone.

A transaction whose connection was lost may have been committed. It is tried again: a book whose
epoch stands in the database with the number behind its rows was committed before.
"""

from __future__ import annotations

import asyncio
import queue
import secrets
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from axil import AxilError
from axil.driver import EntryRow, claimed_error, left_behind_error, overtaken_error
from axil_postgres.codec import Codec, Stored
from axil_postgres.database import Database

if TYPE_CHECKING:
    from axil_postgres.journal import PostgresBook

Waiter = asyncio.Future[None]
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
    returning runs.id
),
written as (
    insert into entries (run, seq, kind, who, body, sealed, crc)
    select entry.* from unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::text[],
        %s::bytea[], %s::bigint[]) as entry (run, seq, kind, who, body, sealed, crc)
    join held on held.id = entry.run
)
select id from held
"""
_ALIVE: Final = "exists (select from holders where holders.id = runs.holder and until > now())"


class _Part(NamedTuple):
    """The rows of a book in one transaction, as they were when they were taken."""

    book: PostgresBook
    rows: Sequence[EntryRow]
    is_closing: bool
    ended: str
    due: float | None
    superseded: Sequence[int]

    @property
    def before(self) -> int:
        return self.book.safe

    @property
    def next(self) -> int:
        return self.rows[-1].seq + 1 if self.rows else self.book.safe


class Writer:
    """Writes for all books of one journal object."""

    def __init__(self, database: Database, codec: Codec) -> None:
        self.database, self.codec = database, codec
        self._asked: queue.SimpleQueue[Sequence[tuple[PostgresBook, Waiter | None]] | None] = (
            queue.SimpleQueue()
        )
        self._turns: dict[asyncio.AbstractEventLoop, list[tuple[PostgresBook, Waiter]]] = {}
        self.held: set[PostgresBook] = set()
        self.taken: set[str] = set()
        """Runs that were taken for this process, and that no book holds yet."""
        self._finishing: set[PostgresBook] = set()  # closed, and not written to their end yet
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    # ------------------------------------------------------------------ what books ask for

    def kept(self, book: PostgresBook) -> Waiter:
        """Return what is done when all that ``book`` has appended is safe."""
        loop = asyncio.get_running_loop()
        waiter: Waiter = loop.create_future()
        if loop in self._turns:
            self._turns[loop].append((book, waiter))
        else:  # one request to the thread for each turn of the loop, not for each run
            self._turns[loop] = [(book, waiter)]
            loop.call_soon(lambda: self._ask(self._turns.pop(loop)))
        return waiter

    def finish(self, book: PostgresBook) -> None:
        """Write the rest of ``book``, and release its run."""
        self._finishing.add(book)
        self._ask([(book, None)])

    def settle(self, run_id: str = "") -> None:
        """Write closed books to their end now; those of one run, or of all."""
        if any(not run_id or book.run_id == run_id for book in self._finishing.copy()):
            with self._lock:
                if closing := list(self._finishing):
                    self.commit(closing)

    def _ask(self, asked: Sequence[tuple[PostgresBook, Waiter | None]]) -> None:
        self._asked.put(asked)
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._work, name="axil-postgres", daemon=True
                    )
                    self._thread.start()

    def _work(self) -> None:
        while True:
            asked = [self._asked.get()]
            with suppress(queue.Empty):
                while len(asked) < _MOST:
                    asked.append(self._asked.get_nowait())
            wanted = [each for several in asked if several is not None for each in several]
            self.commit(list(dict.fromkeys(book for book, _ in wanted)))
            _tell([(book, waiter) for book, waiter in wanted if waiter is not None])
            if None in asked:
                return

    def close(self) -> None:
        """Write all that is left, and end the thread."""
        if self._is_closed:
            return
        self._is_closed = True
        with self._lock:
            for book in list(self.held):
                book.closing = True
            self.commit(list(self.held | self._finishing))
        if self._thread is not None:
            self._asked.put(None)
            if self._thread is not threading.current_thread():
                self._thread.join()

    # ------------------------------------------------------------------ transactions

    def commit(self, books: Sequence[PostgresBook]) -> None:
        """Commit what ``books`` have appended; a book that is refused has a ``fault``."""
        if not books:
            return
        with self._lock:
            # one that was released may have been asked for before that
            parts = [_part(book) for book in books if book.fault is None and not book.is_let_go]
            try:
                fresh = [part for part in parts if part.book.epoch is None and part.rows]
                if fresh:
                    self.database.hold()
                parts = [part for part in parts if part.book.epoch is not None or part.rows]
                faults = self.database.transact(lambda connection: self._put(connection, parts))
            except BaseException as error:
                # whatever it is: those who wait hear of it, and nothing is written behind a gap
                fault = (
                    error
                    if isinstance(error, AxilError)
                    else self.database.unusable(error, reading=False)
                )
                faults = {part.book: fault for part in parts}
                if not isinstance(error, Exception):
                    raise
            for part in parts:
                book = part.book
                book.fault = faults.get(book)
                if book.fault is None:
                    book.safe = part.next
                    self.taken.discard(book.run_id)
                    self.held.add(book)
                if part.is_closing or book.fault is not None:
                    self.held.discard(book)
                    book.is_let_go = part.is_closing
            for book in books:
                if book.is_let_go or book.fault is not None:  # else it was closed meanwhile
                    self._finishing.discard(book)

    def _put(self, connection: Any, parts: Sequence[_Part]) -> dict[PostgresBook, AxilError]:
        """Write parts in one transaction; return the faults of books that were refused."""
        faults: dict[PostgresBook, AxilError] = {}
        claiming = [part for part in parts if part.book.epoch is None]
        is_alone = not claiming and not any(part.superseded for part in parts)
        is_heard = any(part.is_closing for part in parts)
        if is_alone and not is_heard:
            self._write(connection, parts, faults)
            return faults
        claimed: dict[PostgresBook, tuple[int, int]] = {}
        with connection.transaction():
            for part in claiming:
                found = self._claimed(connection, part.book)
                if isinstance(found, AxilError):
                    faults[part.book] = found
                else:
                    claimed[part.book] = found
            self._write(
                connection, [part for part in parts if part.book not in faults], faults, claimed
            )
            for part in parts:
                if part.superseded and part.book not in faults:
                    id, _ = claimed.get(part.book) or (part.book.id, 0)
                    connection.execute(
                        "delete from entries where run = %s and seq = any(%s)",
                        (id, list(part.superseded)),
                    )
            if is_heard:
                connection.execute("select pg_notify(%s, '')", (self.database.schema,))
        for book, (id, epoch) in claimed.items():
            book.id, book.epoch = id, epoch
        return faults

    def _write(
        self,
        connection: Any,
        parts: Sequence[_Part],
        faults: dict[PostgresBook, AxilError],
        claimed: dict[PostgresBook, tuple[int, int]] | None = None,
    ) -> None:
        if not parts:
            return
        ids = {
            part.book: (claimed or {}).get(part.book) or (part.book.id, part.book.epoch or 0)
            for part in parts
        }
        heads = [
            (
                *ids[part.book],
                part.before,
                part.next,
                part.ended or ("open" if part.is_closing else "running"),
                part.is_closing,
                part.due,
            )
            for part in parts
        ]
        rows: list[tuple[int, *Stored]] = [
            (ids[part.book][0], *self.codec.stored(part.book.run_id, row))
            for part in parts
            for row in part.rows
        ]
        values = [*_columns(heads, 7), *_columns(rows, 7)]
        held = {id for (id,) in connection.execute(_WRITE, values).fetchall()}
        lost = [part for part in parts if ids[part.book][0] not in held]
        for part in lost:  # rare: each is asked for by itself
            id, epoch = ids[part.book]
            sql = "select 1 from runs where id = %s and epoch = %s and next = %s"
            if not connection.execute(sql, (id, epoch, part.next)).fetchone():
                faults[part.book] = claimed_error(part.book.run_id, "it was taken over")

    def _claimed(self, connection: Any, book: PostgresBook) -> tuple[int, int] | AxilError:
        """Return the number of a run and the epoch in which the book holds it, or the refusal."""
        sql = f"select id, epoch, next, holder, {_ALIVE}, thread, status from runs where run = %s"
        found = connection.execute(f"{sql} for update", (book.run_id,)).fetchone()
        if found is None:
            if book.seen[1]:
                return claimed_error(book.run_id, "it was deleted")
            return self._begun(connection, book)
        id, epoch, next, holder, is_alive, thread, status = found
        if epoch == book.claiming:  # in a transaction whose connection was lost
            return id, epoch
        own = self.database.holder
        if holder and is_alive and (holder != own or self._is_held(book.run_id)):
            return claimed_error(book.run_id, self._name(connection, holder))
        if (epoch, next) != book.seen:
            return claimed_error(book.run_id, "since its journal was read")
        if thread and status != "done":
            sql = "select run from runs where thread = %s and id > %s order by id desc limit 1"
            later = connection.execute(sql, (thread, id)).fetchone()
            if later:
                return left_behind_error(thread, book.run_id, later[0])
        sql = "update runs set epoch = %s, holder = %s, digest = coalesce(%s, digest) where id = %s"
        connection.execute(sql, (book.claiming, own, book.digest or None, id))
        return id, book.claiming

    def _begun(self, connection: Any, book: PostgresBook) -> tuple[int, int] | AxilError:
        header = book.header
        thread = str(header.get("thread", ""))
        if thread:
            connection.execute("select pg_advisory_xact_lock(hashtextextended(%s, 0))", (thread,))
            sql = (
                f"select run, status, {_ALIVE} from runs where thread = %s order by id desc limit 1"
            )
            last = connection.execute(sql, (thread,)).fetchone()
            is_at_work = last is not None and last[1] == "running" and last[2]
            if header.get("after", "") != (last[0] if last else "") or is_at_work:
                return overtaken_error(thread, last[0] if last else "")
        sql = (
            "insert into runs (run, graph, digest, thread, forked_from, epoch, holder, begun, "
            f"touched) values (%s, %s, %s, %s, %s, %s, %s, {_NOW}, {_NOW}) "
            "on conflict do nothing returning id"
        )
        names = (
            book.run_id,
            str(header.get("graph", "")),
            book.digest,
            thread,
            str(header.get("forked_from", "")),
        )
        values = (*names, book.claiming, self.database.holder)
        made = connection.execute(sql, values).fetchone()
        if made is None:
            return claimed_error(book.run_id, "since its journal was read")
        return made[0], book.claiming

    def _is_held(self, run_id: str) -> bool:
        return any(book.run_id == run_id for book in self.held.copy())

    def _name(self, connection: Any, holder: int) -> str:
        found = connection.execute("select name from holders where id = %s", (holder,)).fetchone()
        host, _, pid = str(found[0] if found else "").rpartition(":")
        return f"process {pid} on {host}"


def new_epoch() -> int:
    """Return a number that no other claim has."""
    return secrets.randbits(62) | 1


def _part(book: PostgresBook) -> _Part:
    """Take the rows of a book; whether it is closing and how it ended are read before."""
    is_closing, ended, due = book.closing, book.ended, book.due
    rows: list[EntryRow] = []
    with suppress(IndexError):  # the book may have taken back the last one
        for _ in range(len(book.rows)):
            rows.append(book.rows.popleft())
    gone: list[int] = []
    while rows and book.superseded and book.superseded[0][0] <= rows[-1].seq:
        gone.append(book.superseded.popleft()[1])
    return _Part(book, rows, is_closing, ended, due, gone)


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


def _tell(waiters: Iterable[tuple[PostgresBook, Waiter]]) -> None:
    """Let those who wait go on, each in its own event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, deque[tuple[PostgresBook, Waiter]]] = {}
    for book, waiter in waiters:
        by_loop.setdefault(waiter.get_loop(), deque()).append((book, waiter))
    for loop, theirs in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed: there are no waiters any more
            loop.call_soon_threadsafe(_settle, theirs)


def _settle(waiters: Iterable[tuple[PostgresBook, Waiter]]) -> None:
    for book, waiter in waiters:
        if waiter.done():
            continue
        if book.fault is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(book.fault)


__all__ = ["Writer", "new_epoch"]
