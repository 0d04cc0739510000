"""Connections to the server: retried while it is away, and one that listens and holds the lease.

A process that takes or claims runs is a *holder*: a row with the time until which it counts as
alive, by the server's clock. One thread renews the row, deletes holders that are dead, frees the
runs of holders that are not there, and listens for changes. A transaction that takes or claims runs
renews the row, too, and so locks it: no run gets a holder that was deleted.

A notification is ``due`` (a run became due), ``mail`` with the holder of the run, or ``end`` (a run
ended). Of many processes, each notification of a due run wakes some to look for it; the others find
what is left when they look again after a time.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from axil.plugin import JournalError
from axil_journals import ENDED, ChangeSignal
from axil_postgres.listing import pruned
from axil_postgres.schema import migrate

T = TypeVar("T")
log = logging.getLogger("axil_postgres")

_AGAIN: Final = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.IdleInTransactionSessionTimeout,
)
"""Errors after which the same transaction may succeed."""
_PRUNE_SECONDS: Final = 60.0
_PRUNED: Final = 1000
_CONNECT_SECONDS: Final = 2.0
"""The time for which a connection is waited for at once; then the pool, which waits twice as long
each time that the server is away, begins anew."""
_WOKEN: Final = 16  # processes that look when a run becomes due, on average

_REAP = """
with dead as (delete from holders where until < now() returning id),
lost as (
    select id, holder from runs where holder <> 0 and not exists (
        select from holders where holders.id = runs.holder and until >= now()
    )
),
freed as (
    update runs set holder = 0, epoch = (random() * 9e15)::bigint,
        due = case when has_mail and status = 'paused' then 0 else due end,
        -- one that was taken, and not written yet, may have ended the process, too
        status = case when due <= extract(epoch from now()) then 'running' else status end
    -- one that a new process has taken meanwhile has another holder
    from lost where runs.id = lost.id and runs.holder = lost.holder returning 1
)
select (select count(*) from freed), (select count(*) from holders)
"""


class UnheldError(Exception):
    """The row of this process was deleted: its runs were given to others."""


class Database:
    """The connections of one journal object."""

    def __init__(
        self,
        url: str,
        *,
        schema: str,
        sync: str,
        connections: int,
        direct_url: str,
        lease_seconds: float,
        patience_seconds: float,
        retain_seconds: float | None,
    ) -> None:
        """Connect, and make the tables if need be. Raises: JournalError (AX510)."""
        self.schema, self.lease_seconds = schema, lease_seconds
        self.patience_seconds, self.retain_seconds = patience_seconds, retain_seconds
        self.changes = ChangeSignal()
        self.work = ChangeSignal()
        """The changes that may be work for this process."""
        self.has_queues = False
        """True if there was any queue when this was last looked at."""
        self.holders = 1
        """The number of processes when the lease was last renewed."""
        self.forgotten: Callable[[Sequence[str]], object] = len
        """Called with the runs that are forgotten because of their age."""
        self.is_unsure = False
        """True if this process may hold runs that it does not know of: a transaction failed."""
        self.free_unknown: Callable[[Any], object] = bool
        """Called with a connection to free those."""
        self.closed = threading.Event()
        self.holder = 0
        """The row of this process; 0: it holds nothing yet."""
        self._registering = threading.Lock()  # is not waited for with a connection
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._pruning: threading.Thread | None = None
        commit = "on" if sync == "full" else "off"
        # what a process locked that was stopped in a transaction is others' when its runs are
        idle = f"idle_in_transaction_session_timeout={round(1000 * lease_seconds)}"
        options = f'-c search_path="{schema}" -c synchronous_commit={commit} -c {idle}'
        self._made: dict[str, Any] = {
            "autocommit": True,
            "options": options,
            "application_name": "axil",
        }
        self.url, self._url = direct_url or url, url
        pooled: dict[str, Any] = self._made
        if direct_url:  # another connection for each transaction: nothing belongs to a session
            pooled = {**self._made, "prepare_threshold": None}
            del pooled["options"]
        # what it would print of each try is said once, by the error
        logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())
        self._pool = ConnectionPool(
            url,
            min_size=0,
            max_size=connections - 1,
            kwargs=pooled,
            open=False,
            reconnect_timeout=_CONNECT_SECONDS / 2,
        )
        try:
            self._pool.open()
            if direct_url:
                self._migrate_directly()
            else:
                self.transact(lambda connection: migrate(connection, schema), reading=True)
        except BaseException:
            self._pool.close(timeout=0)
            raise

    def _migrate_directly(self) -> None:
        """Make the tables, and see that they are found through the pooler.

        Raises: JournalError (AX510).
        """
        try:
            with psycopg.connect(self.url, **self._made) as connection:
                migrate(connection, self.schema)
                sql = "select current_user, current_database()"
                user, name = connection.execute(sql).fetchone() or ("", "")
        except psycopg.Error as error:
            raise self.unusable(error, reading=True) from None
        sql = "select coalesce(to_regclass('runs') = to_regclass(%s), false)"
        if not self.rows(sql, (f'"{self.schema}".runs',))[0][0]:
            message = f"the tables in the schema {self.schema} are not found through the pooler."
            hint = (
                f'Once: alter role "{user}" in database "{name}" set search_path = '
                f'"{self.schema}"; then have the pooler reconnect.'
            )
            raise JournalError(message, id="AX510", hint=hint)

    def rows(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Return the rows of one statement. Raises: JournalError (AX510)."""
        return self.transact(lambda connection: _fetched(connection, sql, values), reading=True)

    def transact(self, doing: Callable[[Any], T], *, reading: bool = False) -> T:
        """Return what ``doing`` returns for a connection; it is called again after a lost one.

        Raises: JournalError: AX510 (reading) or AX512: the server cannot be reached or used.
        """
        ends, pause = time.monotonic() + self.patience_seconds, 0.05
        while True:
            try:
                with self._pool.connection(timeout=_CONNECT_SECONDS) as connection:
                    return doing(connection)
            except UnheldError:
                self._register(anew=True)
                continue
            except _AGAIN as error:
                self.is_unsure = True
                if time.monotonic() >= ends or self.closed.is_set():
                    raise self.unusable(error, reading=reading) from None
            except psycopg.Error as error:
                raise self.unusable(error, reading=reading) from None
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def unusable(self, error: BaseException, *, reading: bool) -> JournalError:
        """Return the error for a database that cannot be used."""
        if isinstance(error, PoolTimeout):
            error = self._refusal() or error
        why = (str(error) or type(error).__name__).strip().splitlines()[0]
        if reading:
            hint = "Check the address, the rights and whether the server runs."
            return JournalError(f"the database cannot be used: {why}.", id="AX510", hint=hint)
        hint = "Check the server; then resume the run: what was safe before is."
        return JournalError(f"the database cannot be written: {why}.", id="AX512", hint=hint)

    def _refusal(self) -> psycopg.Error | None:
        """Return why there is no connection, which a pool that waited for one does not say."""
        given: dict[str, Any] = {**self._made, "connect_timeout": round(_CONNECT_SECONDS)}
        try:
            psycopg.connect(self._url, **given).close()
        except psycopg.Error as error:
            return error
        return None

    def hold(self) -> int:
        """Return the number of this process as a holder, whose lease is kept from now on."""
        self.listen()
        self._register()
        return self.holder

    def _register(self, *, anew: bool = False) -> None:
        known = self.holder
        if known and not anew:
            return
        with self._registering:
            if self.holder == known:  # others see it at once
                self.holder = self.transact(self._registered)

    def renewed(self, connection: Any) -> int:
        """Renew the lease until the transaction ends, and return the number of this process.

        A process that was stopped for so long that its runs were given to others gets a new number,
        and the transaction is tried again.
        """
        holder = self.holder
        sql = (
            "update holders set until = now() + make_interval(secs => %s) where id = %s "
            "returning exists (select from queues)"
        )
        found = connection.execute(sql, (self.lease_seconds, holder)).fetchone()
        if found is None:
            raise UnheldError
        self.has_queues = bool(found[0])
        return holder

    def _registered(self, connection: Any) -> int:
        name = f"{socket.gethostname()}:{os.getpid()}"
        sql = (
            "insert into holders (name, until) values (%s, now() + make_interval(secs => %s)) "
            "returning id"
        )
        return int(connection.execute(sql, (name, self.lease_seconds)).fetchone()[0])

    def listen(self) -> None:
        """Start the thread that listens, if it is not there."""
        with self._lock:
            if self._thread is None and not self.closed.is_set():
                name = "axil-postgres-lease"
                self._thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._thread.start()
                if self.retain_seconds is not None:
                    name = "axil-postgres-prune"
                    self._pruning = threading.Thread(target=self._prune, name=name, daemon=True)
                    self._pruning.start()

    def _work(self) -> None:
        beat = self.lease_seconds / 3
        while not self.closed.is_set():
            try:
                with psycopg.connect(self.url, **self._made) as connection:
                    connection.execute(f'listen "{self.schema}"'.encode())
                    self.notify("")  # there may have been changes before
                    while not self.closed.is_set():
                        self._renew(connection)
                        ends = time.monotonic() + beat
                        while (left := ends - time.monotonic()) > 0 and not self.closed.is_set():
                            wait = min(left, 0.5)
                            for notice in connection.notifies(timeout=wait, stop_after=1):
                                self.notify(notice.payload)
            except (psycopg.Error, OSError, JournalError):  # the pool may have no connection now
                self.closed.wait(0.2)

    def notify(self, change: str) -> None:
        """Report a change, which may be work for this process."""
        self.changes.notify()
        is_chosen = random.random() * self.holders < _WOKEN
        if not change or change == f"mail {self.holder}" or (change == "due" and is_chosen):
            self.work.notify()

    def _prune(self) -> None:
        """Forget runs that ended longer ago than they are kept, as long as the object is open."""
        while not self.closed.is_set():
            took = time.monotonic()
            try:
                is_full = self.prune() == _PRUNED
            except Exception:  # a server or a storage that fails now may work the next time
                log.exception("old runs could not be forgotten")
                is_full = False
            took = time.monotonic() - took
            # at most half of the time: others come first
            self.closed.wait(took if is_full else _PRUNE_SECONDS)

    def prune(self) -> int:
        """Forget some of the runs that ended longer ago than they are kept; return how many.

        None, while another process does it.
        """
        if self.retain_seconds is None:
            return 0
        before = time.time() - self.retain_seconds

        def doing(connection: Any) -> list[Any]:
            return pruned(connection, (before, sorted(ENDED), _PRUNED), is_waiting=False)

        found = self.transact(doing)
        self.forgotten([run for run, *_ in found])
        return len(found)

    def _renew(self, connection: Any) -> None:
        if self.holder:
            try:
                self.renewed(connection)
            except UnheldError:
                self._register(anew=True)
        if self.is_unsure:
            self.free_unknown(connection)
        freed, self.holders = connection.execute(_REAP).fetchone()
        if freed:
            connection.execute("select pg_notify(%s, 'due')", (self.schema,))

    def close(self) -> None:
        """End the thread, release what is held, and close the connections."""
        self.closed.set()
        if self._thread is not None:
            with suppress(JournalError):
                self.transact(self._release)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        if self._pruning is not None:
            self._pruning.join()
        self._pool.close(timeout=1.0)

    def _release(self, connection: Any) -> None:
        holder, self.holder = self.holder, 0
        with connection.transaction():
            if holder:
                connection.execute("update runs set holder = 0 where holder = %s", (holder,))
                connection.execute("delete from holders where id = %s", (holder,))
            # other processes may take its runs, and its own thread ends
            connection.execute("select pg_notify(%s, 'due')", (self.schema,))


def _fetched(connection: Any, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    cursor = connection.execute(sql, values)
    return cursor.fetchall() if cursor.description else []
