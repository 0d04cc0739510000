"""The database: a file in WAL mode, its tables, and the lock of its writers."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from axil.plugin import JournalError
from axil_sqlite.parts import TABLES as _PARTS

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

VERSION = 5
Sync = Literal["full", "normal"]

_TABLES = """
create table runs (
    id integer primary key,
    run text not null unique,
    graph text not null default '',
    status text not null default 'open',
    thread text not null default '',
    forked_from text not null default '',
    epoch integer not null default 0,
    owner text not null default '',
    beat real not null default 0,
    next integer not null default 0,
    begun real not null,
    touched real not null
);
create index runs_by_thread on runs (thread, id) where thread != '';
create table entries (
    id integer primary key,
    run integer not null references runs (id) on delete cascade,
    seq integer not null,
    kind text not null,
    who text not null,
    body text not null,
    crc integer not null
);
create unique index entries_by_run on entries (run, seq);
"""

_SHARED = """
alter table runs add column digest text not null default '';
alter table runs add column due real;
update runs set due = 0 where status in ('open', 'running', 'paused');
create index runs_by_due on runs (due, touched) where due is not null;
create table mail (
    id integer primary key,
    run integer not null references runs (id) on delete cascade,
    question text,
    kind text not null,
    body blob not null,
    read integer not null default 0
);
create unique index mail_by_question on mail (run, question) where question is not null;
create index mail_by_run on mail (run) where not read;
"""

_QUEUES = """
alter table runs add column queue text not null default '';
alter table runs add column key text not null default '';
drop index runs_by_due;
create index runs_by_due on runs (due, touched) where due is not null and queue = '';
create index runs_by_queue on runs (queue, key, touched)
    where due = 0 and owner = '' and queue != '';
create index runs_by_queue_time on runs (due) where due > 0 and owner = '' and queue != '';
create table queues (
    name text primary key,
    priority integer not null default 0,
    concurrency integer,
    key_concurrency integer,
    calls integer,
    period_seconds real not null default 1,
    saved real,
    saved_at real not null default 0,
    last_key text
);
"""

_METERED = """
alter table queues add column key_calls integer;
alter table queues add column requests_per_minute integer;
alter table queues add column tokens_per_minute integer;
alter table queues add column requests real;
alter table queues add column tokens real;
alter table queues add column spent_at real not null default 0;
alter table queues add column closed_until real not null default 0;
create table queue_keys (
    queue text not null,
    key text not null,
    saved real not null,
    saved_at real not null,
    primary key (queue, key)
) without rowid;
create table once (
    queue text not null,
    name text not null,
    run integer not null references runs (id) on delete cascade,
    primary key (queue, name)
) without rowid;
create index once_of_run on once (run);
"""

PATIENCE = 30.0
"""Seconds that a process waits for another one to release the lock."""
LONGEST_PAUSE = 0.005
"""Seconds between two tries to take the lock, at most; a lock that others wait for is released for
as long.
"""

_MIGRATIONS: dict[int, str] = {1: _TABLES, 2: _PARTS, 3: _SHARED, 4: _QUEUES, 5: _METERED}
"""Statements that make version n of version n - 1; forward only, each in one transaction."""
_BACK = """
drop table once;
drop table queue_keys;
alter table queues drop column key_calls;
alter table queues drop column requests_per_minute;
alter table queues drop column tokens_per_minute;
alter table queues drop column requests;
alter table queues drop column tokens;
alter table queues drop column spent_at;
alter table queues drop column closed_until;
"""
"""Statements that make the version before this one of it; rules that it does not know are lost."""
_INDEXES = (
    "create index if not exists runs_by_owner on runs (owner) where owner != ''",
    # it is not written while a run is at work, unlike the one that versions before had
    "create index if not exists runs_by_status on runs (status, touched, id) where owner = ''",
    "drop index if exists runs_by_touched",
    # a run that is deleted takes its mail along, which without an index is a look at all mail
    "create index if not exists mail_of_run on mail (run)",
    "drop index if exists mail_by_run",
)
"""The indexes for pages of runs and for runs with a holder; no part of a version, as every version
works with and without them.
"""

_REMOTE = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs"}

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Store:
    """An open database."""

    def __init__(self, folder: Path, sync: Sync) -> None:
        """Open or make it.

        Raises: JournalError (AX510): it cannot be opened, is of a newer version, or is where SQLite
            is not safe.
        """
        self.folder, self.path = folder, folder / "runs.db"
        try:
            os.fsencode(folder)
            kind = _file_system(folder)
        except ValueError as error:  # a character that no path can have
            shown = Path(str(folder).encode("utf-8", "backslashreplace").decode())
            why = f"no folder can have this name ({error})"
            raise unusable(shown, why, "Correct the path.") from None
        if kind in _REMOTE:
            why = f"it is on a network file system ({kind}), where SQLite's log is not safe"
            raise unusable(folder, why, "Choose a local folder.")
        try:
            # for the user alone; a folder that is there already keeps its permissions
            folder.mkdir(0o700, parents=True, exist_ok=True)
            ignored = folder / ".gitignore"
            if not ignored.exists():
                ignored.write_text("*\n", "utf-8")
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            # SQLite gives its other files the permissions of this one
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise unusable(folder, f"{error}", "Check the path and the permissions.") from None
        self._watching: sqlite3.Connection | None = None
        try:
            self.connection = self._connected(sync)
            try:
                self.reader = self._connect()
                """A connection for reading, which does not wait for the disk."""
                self.reader.execute("pragma query_only = on")
            except BaseException:
                self.connection.close()
                raise
        except JournalError:
            os.close(self._lock)
            raise
        except (OSError, sqlite3.Error, UnicodeDecodeError) as error:  # a message quotes damage
            os.close(self._lock)
            hint = "Check the path, the permissions and the space on the disk."
            if getattr(error, "sqlite_errorcode", 0) in _DAMAGED:
                old, new = quote(f"{folder}"), quote(f"{folder}.damaged")
                hint = (
                    f"Its file is damaged. {rescue(folder)}; or put a backup there; or begin anew: "
                    f"mv {old} {new}"
                )
            raise unusable(folder, f"{error}", hint) from None

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)

    def _connected(self, sync: Sync) -> sqlite3.Connection:
        connection = self._connect()
        try:
            connection.execute(f"pragma synchronous = {sync}")
            connection.execute("pragma fullfsync = 1")
            connection.execute("pragma foreign_keys = on")
            # a list that is deleted names parts, which may be lists
            connection.execute("pragma recursive_triggers = on")
            connection.execute("pragma journal_size_limit = 16777216")
            # others that make it at the same time may take longer than SQLite's ``timeout``
            with self.alone():
                # must come before the first table
                connection.execute("pragma auto_vacuum = incremental")
                connection.execute("pragma journal_mode = wal")
                self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        version = int(connection.execute("pragma user_version").fetchone()[0])
        if version > VERSION:
            why = f"a newer axil-sqlite wrote it (format {version}; this one knows {VERSION})"
            raise unusable(self.folder, why, "Upgrade axil-sqlite, or choose another folder.")
        for next in range(version + 1, VERSION + 1):
            if version:
                path = self.path.with_suffix(f".before-{next}")
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
                with closing(sqlite3.connect(path)) as backup:
                    connection.backup(backup)
            connection.executescript(
                f"begin immediate; {_MIGRATIONS[next]}; pragma user_version = {next}; commit;"
            )
        for index in _INDEXES:
            connection.execute(index)

    def go_back(self) -> int:
        """Give the database the format of the version before this one, and return its number."""
        with self.alone():
            back = VERSION - 1
            sql = f"begin immediate; {_BACK}; pragma user_version = {back}; commit;"
            self.connection.executescript(sql)
        return back

    @contextmanager
    def alone(self) -> Generator[None]:
        """Hold the lock of the writers of all processes: SQLite before 3.51.3 can lose a log that
        two write and check in at once.

        Raises: JournalError (AX510): another process has held the lock for more than ``PATIENCE``.
        """
        if self._lock < 0:
            raise sqlite3.ProgrammingError("it was closed")
        if fcntl is None:
            yield
            return
        self._take_lock(fcntl)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _take_lock(self, fcntl: Any) -> None:
        ends, pause = time.monotonic() + PATIENCE, 0.0002
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= ends:
                    break
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        why = f"{_holder(self._lock)} holds its lock, for more than {PATIENCE:g} seconds"
        raise unusable(self.folder, why, "End that process, or let it finish; then try again.")

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """Open one transaction. Raises: sqlite3.Error; the transaction is then rolled back."""
        with self.alone():
            self.connection.execute("begin immediate")
            try:
                yield self.connection
                self.connection.execute("commit")
            except BaseException:
                # where the disk is full, SQLite has rolled back already
                if self.connection.in_transaction:
                    self.connection.execute("rollback")
                raise

    def one(self, sql: str, *values: Any) -> Any:
        return self.connection.execute(sql, values).fetchone()

    def version(self) -> int:
        """Return a number that differs when another connection has committed meanwhile."""
        if self._watching is None:
            self._watching = self._connect()
        return int(self._watching.execute("pragma data_version").fetchone()[0])

    def close(self) -> None:
        """Check the log in and close."""
        with self.alone():
            if self._watching is not None:
                self._watching.close()
            self.reader.close()  # first: the last one to close checks the log in
            self.connection.close()
        lock, self._lock = self._lock, -1  # its number may be another file's next
        os.close(lock)


def rescue(folder: Path) -> str:
    """Return how what can be read of a damaged database is rescued."""
    return f"axil runs doctor --repair --journal {quote(str(folder))} rescues what can be read"


def unusable(folder: Path, why: str, hint: str) -> JournalError:
    """Return the error for a journal that cannot be used at its place."""
    return JournalError(f"the journal in {folder} cannot be used: {why}.", id="AX510", hint=hint)


def _holder(lock: int) -> str:
    """Return the process that holds a lock, if the system knows it."""
    seen = os.fstat(lock)
    file = f"{os.major(seen.st_dev):02x}:{os.minor(seen.st_dev):02x}:{seen.st_ino}"
    with suppress(OSError, ValueError):
        for line in Path("/proc/locks").read_text("ascii", "replace").splitlines():
            _, *fields = line.split()
            if fields[:1] == ["FLOCK"] and fields[4] == file:
                name = ""
                with suppress(OSError):
                    name = Path(f"/proc/{fields[3]}/comm").read_text("utf-8", "replace").strip()
                return f"process {fields[3]}" + (f" ({name})" if name else "")
    return "another process"


def _file_system(folder: Path) -> str:
    """Return the file system on which ``folder`` is, or will be; empty: it is not known."""
    try:
        lines = Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    here = os.path.realpath(folder)
    found = ("", "")
    for line in lines:
        _, point, kind, *_ = line.split(" ")
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), point)  # a space
        inside = here == point or here.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(found[0]):
            found = (point, kind)
    return found[1]
