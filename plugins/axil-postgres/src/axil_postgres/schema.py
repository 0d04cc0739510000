"""The tables of a journal, and how a database gets those of this version."""

from __future__ import annotations

from typing import Any, Final

from axil.plugin import JournalError

VERSION: Final = 3
_LOCK: Final = 4_158_119_001
"""The advisory lock under which one process at a time migrates."""

_TABLES: Final = """
create table holders (
    id bigint generated always as identity primary key,
    name text not null,
    until timestamptz not null
);
create table runs (
    id bigint generated always as identity primary key,
    run text not null unique,
    graph text not null default '',
    digest text not null default '',
    thread text not null default '',
    forked_from text not null default '',
    status text not null default 'open',
    epoch bigint not null,
    holder bigint not null default 0,
    next bigint not null default 0,
    due double precision,
    has_mail boolean not null default false,
    begun double precision not null,
    touched double precision not null
) with (fillfactor = 70);
create index runs_by_due on runs (due, id) where holder = 0 and due is not null;
create index runs_by_holder on runs (holder) where holder <> 0;
create index runs_by_thread on runs (thread, id) where thread <> '';
create table entries (
    run bigint not null references runs on delete cascade,
    seq bigint not null,
    kind text not null,
    who text not null,
    body text,
    sealed bytea,
    crc bigint not null,
    primary key (run, seq)
);
create table mail (
    id bigint generated always as identity primary key,
    run bigint not null references runs on delete cascade,
    question text,
    kind text not null,
    body text,
    sealed bytea,
    is_read boolean not null default false
);
create unique index mail_by_question on mail (run, question) where question is not null;
create index mail_by_run on mail (run) where not is_read;
create table sealing (id integer primary key check (id = 1), proof bytea not null);
"""

_QUEUES: Final = """
alter table runs add column queue text not null default '',
    add column key text collate "C" not null default '';
create table queues (
    name text collate "C" primary key,
    priority integer not null default 0,
    concurrency integer,
    key_concurrency integer,
    calls integer,
    period_seconds double precision not null default 1,
    saved double precision,
    saved_at double precision not null default 0,
    last_key text collate "C"
);
drop index if exists runs_by_turn;
"""

_METERED: Final = """
alter table queues add column key_calls integer,
    add column requests_per_minute integer,
    add column tokens_per_minute integer,
    add column requests double precision,
    add column tokens double precision,
    add column spent_at double precision not null default 0,
    add column closed_until double precision not null default 0;
create table queue_keys (
    queue text collate "C" not null,
    key text collate "C" not null,
    saved double precision not null,
    saved_at double precision not null,
    primary key (queue, key)
);
create table once (
    queue text collate "C" not null,
    name text collate "C" not null,
    run bigint not null references runs on delete cascade,
    primary key (queue, name)
);
create index once_of_run on once (run);
"""

_BACK: Final = """
drop table once, queue_keys;
alter table queues drop column key_calls, drop column requests_per_minute,
    drop column tokens_per_minute, drop column requests, drop column tokens,
    drop column spent_at, drop column closed_until;
"""
"""Statements that make the version before this one of it; rules that it does not know are lost."""

TURN: Final = "(case when due = 0 then touched else due end)"
"""The time by which due runs are taken; one that is due at once has waited since it was written."""
_INDEXES: Final = (
    f"create index if not exists runs_by_turn on runs ({TURN}, id) "
    "where holder = 0 and due is not null and queue = ''",
    "create index if not exists runs_by_queue on runs (queue, key, touched, id) "
    "where holder = 0 and due = 0 and queue <> ''",
    "create index if not exists runs_by_queue_time on runs (due) "
    "where holder = 0 and due > 0 and queue <> ''",
    "create index if not exists runs_by_loss on runs (id) where holder = 0 and status = 'running'",
    # not written while a run is at work: see listing.py
    "create index if not exists runs_by_status on runs (status, touched, id) where holder = 0",
    # by the order of bytes, whatever that of the database is
    "create index if not exists runs_by_name on runs (run text_pattern_ops)",
    # a run that is deleted takes its mail along, which without an index is a look at all mail
    "create index if not exists mail_of_run on mail (run)",
    "drop index if exists mail_by_run",
)
"""Indexes that are no part of a version, as every version works with them; the newest last but for
those that are dropped."""
_NEWEST: Final = "mail_of_run"
_MIGRATIONS: Final[dict[int, str]] = {1: _TABLES, 2: _QUEUES, 3: _METERED}
"""Statements that make version n of version n - 1; forward only, each in one transaction."""


def migrate(connection: Any, schema: str) -> None:
    """Make the schema and its tables, or bring them to this version; one process at a time.

    Raises: JournalError (AX510): the tables were made by a newer axil-postgres.
    """
    has_index = connection.execute("select to_regclass(%s)", (f'"{schema}".{_NEWEST}',))
    if _version(connection, schema) == VERSION and has_index.fetchone()[0] is not None:
        return
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(f'create schema if not exists "{schema}"')
        connection.execute("create table if not exists version (number integer not null)")
        version = _version(connection, schema)
        if version > VERSION:
            found = f"(format {version}; this one knows {VERSION})"
            message = f"a newer axil-postgres made the tables in the schema {schema} {found}."
            hint = "Upgrade axil-postgres, or name another schema."
            raise JournalError(message, id="AX510", hint=hint)
        for number in range(version + 1, VERSION + 1):
            connection.execute(_MIGRATIONS[number])
            connection.execute("delete from version")
            connection.execute("insert into version values (%s)", (number,))
        for index in _INDEXES:
            connection.execute(index)


def go_back(connection: Any) -> int:
    """Give the tables the format of the version before this one, and return its number."""
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(_BACK)
        connection.execute("update version set number = %s", (VERSION - 1,))
    return VERSION - 1


def _version(connection: Any, schema: str) -> int:
    """Return the version of the tables; 0: there are none."""
    there = connection.execute("select to_regclass(%s)", (f'"{schema}".version',)).fetchone()
    if there[0] is None:
        return 0
    found = connection.execute("select max(number) from version").fetchone()
    return int(found[0] or 0)
