"""The writer of a process, which commits what its runs appended together.

Where runs wait for the disk (``full``), a thread takes what was appended by then, in all runs that
were asked for, and commits it as one transaction. Where they do not (``normal``), the event loop
commits itself, once a turn: that takes less time than waking a thread.

Every transaction checks of each run that this process still holds it: its epoch is the one of the
claim. A run of which that is not so is refused, alone. The check is an update of the number of the
next entry; what indexes hold of a run at work is written once in ``FRESH`` seconds, as it costs
twice as many pages.
"""

from __future__ import annotations

import os
import queue
import socket
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axil import AxilError
from axil.plugin import JournalError
from axil_journals import (
    ENDED,
    GroupCommit,
    RunExists,
    RunPart,
    claimed_error,
    left_behind_error,
    overtaken_error,
)
from axil_sqlite.codec import Codec
from axil_sqlite.store import Store, Sync

if TYPE_CHECKING:
    import asyncio

    from axil_sqlite.journal import SqliteRunWriter

    Part = RunPart[SqliteRunWriter]
    Asked = Sequence[tuple[SqliteRunWriter, asyncio.Future[None] | None]]

BEAT = 10.0
"""Seconds between signs of life."""
SILENCE = 30.0
"""Seconds without one after which a holder counts as gone, even if its process is there."""
FRESH = 1.0
"""Seconds by which the time at which a run at work was last written may be late."""

_HOLD = (
    "update runs set next = ?, status = ?, owner = ?, beat = ?, touched = ?, due = case when ? "
    "and exists (select 1 from mail where mail.run = runs.id and not read) then 0 else ? end "
    "where id = ? and epoch = ?"
)
_GO_ON = "update runs set next = ? where id = ? and epoch = ?"

LOST = ":::"
"""The owner of a run that was lost, and was taken and released since: no process."""
_SEVERAL = (64, 8, 1)
"""Rows to an insert: the interpreter's lock is released and taken once a statement."""
_INSERTS = {
    n: "insert into entries (run, seq, kind, who, body, crc) values "
    f"{', '.join(['(?, ?, ?, ?, ?, ?)'] * n)}"
    for n in _SEVERAL
}


class Writer(GroupCommit["SqliteRunWriter"]):
    """Writes for all runs of one journal object."""

    def __init__(self, store: Store, codec: Codec, sync: Sync) -> None:
        super().__init__()
        self.store, self.codec, self.sync = store, codec, sync
        self.reading, self._gate = threading.Lock(), threading.RLock()
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}:{id(self):x}"
        self._asked: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()
        self._held: set[SqliteRunWriter] = set()
        self.taken: dict[str, bool] = {}
        """Runs that were taken, and that no ``RunWriter`` holds yet, with whether each was lost."""
        self._beaten = time.time()
        self._thread: threading.Thread | None = None
        self._closed = self._ends_alone = False
        self.commits = 0
        """The number of transactions so far, for tests and measurements."""

    def ask(self, asked: Asked) -> None:
        if self.sync != "full" or not self._ask(asked):
            self.commit(list(dict.fromkeys(run for run, _ in asked)))
            self.settle(asked)

    def finish(self, run: SqliteRunWriter) -> None:
        self.finishing.add(run)
        if self.sync == "normal" or not self._ask([(run, None)]):
            self.commit([run])

    def _ask(self, asked: Asked) -> bool:
        """Have the thread commit; False: there is none, so the caller does it."""
        with self._gate:  # other event loops ask, too, and another thread may close
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
            if runs := list(dict.fromkeys(run for run, _ in wanted)):
                self.commit(runs)
            self.settle_threadsafe(wanted)
            if None in asked:
                if self._ends_alone:
                    self._end()
                return

    def commit(self, runs: Sequence[SqliteRunWriter]) -> None:
        with self.lock:
            # a run that was released may be another process's by now
            self.finishing.difference_update([run for run in runs if run.is_released])
            runs = [run for run in runs if not run.is_released]
            if not runs:
                return
            taken: list[Part] = []
            try:
                with self.store.writing() as connection:
                    for run in runs:
                        taken.append(run.take_part())
                    self._put(connection, taken)
                self.commits += 1
            # whatever it is: the waiters get it, and nothing is written behind a gap
            except BaseException as error:
                why = str(error) or type(error).__name__
                message = f"the journal in {self.store.folder} cannot be written: {why}."
                hint = "Make room or repair the disk; then resume the run: what was safe is."
                fault = JournalError(message, id="AX512", hint=hint)
                for run in runs:
                    run.fault = run.fault or fault
                if not isinstance(error, Exception):
                    raise
            for run, rows, is_closing, *_ in taken:
                if run.fault is None and rows:
                    run.safe = rows[-1][0] + 1
                # one that was closed meanwhile has rows still to be written
                if is_closing and run.fault is None:
                    run.is_released = True
            ended = [run for run in runs if run.is_released or run.fault is not None]
            self._held.difference_update(ended)
            self.finishing.difference_update(ended)
            if self._held and time.time() - self._beaten > BEAT:
                self._beat()
        # for signs of life, however long nothing is committed
        if self._held and self._thread is None:
            with self._gate:
                if not self._closed:
                    self._has_thread()

    def _put(self, connection: sqlite3.Connection, taken: Sequence[Part]) -> None:
        """Write parts in few statements; a run that this process no longer holds gets a fault."""
        parts: list[Part] = []
        for part in taken:
            run = part.run
            if run.fault is not None:
                if part.is_closing and run.epoch is not None:
                    sql = "update runs set owner = '' where id = ? and epoch = ?"
                    connection.execute(sql, (run.id, run.epoch))
            elif run.epoch is not None:
                parts.append(part)
        parts = self._hold(connection, parts)  # before others claim: some of these release theirs
        fresh: list[Part] = []
        for part in taken:
            run = part.run
            if run.epoch is None and run.fault is None and part.rows:
                try:
                    self._claim(connection, run)
                except AxilError as error:
                    run.fault = error
                    continue
                self._held.add(run)
                self.taken.pop(run.run_id, None)
                fresh.append(part)
        parts += self._hold(connection, fresh)
        values = [
            value
            for run, rows, *_ in parts
            for row in rows
            for value in (run.id, *self.codec.stored(connection, run.run_id, row))
        ]
        insert(connection, values)
        for run, *_ in parts:
            if run.digest:
                connection.execute("update runs set digest = ? where id = ?", (run.digest, run.id))
                run.digest = ""
        gone = [(part.run.id, seq) for part in parts for seq in part.superseded]
        if gone:
            connection.executemany("delete from entries where run = ? and seq = ?", gone)

    def _hold(self, connection: sqlite3.Connection, parts: Sequence[Part]) -> list[Part]:
        """Write the rows of the runs; return the parts of those that this process holds."""
        if not parts:
            return []
        now = time.time()
        changes: dict[str, list[tuple[SqliteRunWriter, tuple[Any, ...]]]] = {_HOLD: [], _GO_ON: []}
        for part in parts:
            run, is_closing = part.run, part.is_closing
            status = part.ended or ("open" if is_closing else "running")
            shown = status, is_closing, part.due
            if run.shown == shown and 0 <= now - run.touched < FRESH:
                changes[_GO_ON].append((run, (part.next, run.id, run.epoch)))
                continue
            run.shown, run.touched = shown, now
            owner = "" if is_closing else self.owner
            reads_mail = is_closing and status == "paused"  # what has come makes it due
            times = (now, now, reads_mail, part.due)
            change = (part.next, status, owner, *times, run.id, run.epoch)
            changes[_HOLD].append((run, change))
        for sql, rows in changes.items():
            if connection.executemany(sql, [row for _, row in rows]).rowcount != len(rows):
                for run, row in rows:  # which of them were lost
                    if not connection.execute(sql, row).rowcount:
                        run.fault = claimed_error(run.run_id, "it was taken over")
        return [part for part in parts if part.run.fault is None]

    def _claim(self, connection: sqlite3.Connection, run: SqliteRunWriter) -> None:
        """Claim a run. Raises: JournalError (AX506, AX508, AX529)."""
        found = connection.execute(
            "select id, epoch, next, owner, beat from runs where run = ?", (run.run_id,)
        ).fetchone()
        if found is None:
            if run.seen[1]:
                raise claimed_error(run.run_id, "it was deleted")
            header = run.header
            self._admit(connection, run)
            if header.get("thread"):
                sql = (
                    "select run, status, owner, beat from runs where thread = ? "
                    "order by id desc limit 1"
                )
                found = connection.execute(sql, (header["thread"],)).fetchone()
                last, status, owner, beat = found or ("", "", "", 0.0)
                # it may have failed, and be resumed now
                is_at_work = status == "running" and owner and self.is_alive(owner, beat, last)
                if header.get("after", "") != last or is_at_work:
                    raise overtaken_error(header["thread"], last)
            # unlike that of any run before, whose number this one may get
            run.epoch, now = time.time_ns(), time.time()
            names = [header.get(name, "") for name in ("graph", "thread", "forked_from")]
            names += [run.place.queue, run.place.key]
            if run.place.queue:  # each that is used has a row
                name = (run.place.queue,)
                connection.execute("insert or ignore into queues (name) values (?)", name)
            sql = (
                "insert into runs (run, graph, thread, forked_from, queue, key, begun, touched, "
                "epoch) values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            )
            values = (run.run_id, *names, now, now, run.epoch)
            run.id = connection.execute(sql, values).lastrowid or 0
            if run.place.once:
                sql = "insert or replace into once values (?, ?, ?)"
                connection.execute(sql, (run.place.queue, run.place.once, run.id))
            return
        id, epoch, next, owner, beat = found
        if owner and self.is_alive(owner, beat, run.run_id):
            raise claimed_error(run.run_id, _whose(owner))
        if (epoch, next) != run.seen:
            raise claimed_error(run.run_id, "since its journal was read")
        sql = (
            "select later.run, own.thread from runs own join runs later on later.thread = "
            "own.thread and later.id > own.id "
            "where own.id = ? and own.thread != '' and own.status != 'done' order by later.id desc"
        )
        later = connection.execute(sql, (id,)).fetchone()
        if later:
            raise left_behind_error(later[1], run.run_id, later[0])
        connection.execute("update runs set epoch = ? where id = ?", (epoch + 1, id))
        run.id, run.epoch = id, epoch + 1

    def _admit(self, connection: sqlite3.Connection, run: SqliteRunWriter) -> None:
        """Refuse a run whose name another one has, which waits with its input if it is debounced.

        Raises: RunExists.
        """
        if run.first is None:
            return
        place = run.place
        sql = (
            "select runs.id, runs.run, owner, beat, next, begun, status from once join runs on "
            "runs.id = once.run where once.queue = ? and name = ?"
        )
        found = connection.execute(sql, (place.queue, place.once)).fetchone()
        if found is None or found[-1] in (*ENDED, "parked"):
            return
        id, run_id, owner, beat, next, begun, _ = found
        if place.debounce_seconds is not None:
            if next != 1 or self.is_held(owner, beat, run_id):
                return
            # no update: triggers count the parts of rows that come and go; and first the old row
            # goes, as parts that both have may go with it
            sql = "delete from entries where run = ? and seq = ?"
            connection.execute(sql, (id, run.first.seq))
            insert(connection, [id, *self.codec.stored(connection, run_id, run.first)])
            sql = (
                "update runs set graph = ?, digest = ?, key = ?, due = ?, epoch = epoch + 1, "
                "touched = ? where id = ?"
            )
            values = (run.header.get("graph", ""), run.digest, place.key, place.due(begun))
            connection.execute(sql, (*values, time.time(), id))
        raise RunExists(run_id, place)

    def is_alive(self, owner: str, beat: float, run_id: str) -> bool:
        """Return whether a holder's process exists, and it has renewed its claim lately."""
        host, pid, started, _ = owner.rsplit(":", 3)
        if owner == self.owner:
            # a reader does not hold the lock
            return any(run.run_id == run_id for run in self._held.copy())
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
        """Renew the claims of this process."""
        with self.lock:
            self._beaten = time.time()
            if self._held or self.taken:
                sql = "update runs set beat = ? where owner = ?"
                failures = (sqlite3.Error, OSError, JournalError)
                with suppress(*failures), self.store.writing() as connection:
                    connection.execute(sql, (self._beaten, self.owner))

    def close(self) -> None:
        """Write all that is left, end the thread, and close the database.

        The garbage collector may call this in the thread itself, which then ends when it is done.
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
            for run in list(self._held):
                run.closing = True
            self.commit(list(self._held))
        with self.reading:
            self.store.close()


def insert(connection: sqlite3.Connection, values: list[Any]) -> None:
    """Insert rows of entries, given as one list of values."""
    at = 0
    for several in _SEVERAL:
        while len(values) - at >= 6 * several:
            connection.execute(_INSERTS[several], values[at : at + 6 * several])
            at += 6 * several


def _whose(owner: str) -> str:
    host, pid, *_ = owner.rsplit(":", 3)
    return f"process {pid} on {host}"


def _started(pid: int) -> str:
    """Return when a process began, as the system counts, to recognise a reused process number.

    Empty: there is no such process; "?": it is not known.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
        return stat.rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        pass
    except OSError:  # too many files are open: that tells nothing of the process
        return "?"
    if os.name == "nt":
        return "?"
    if Path("/proc/self/stat").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "?"
