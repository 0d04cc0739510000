"""Settings of ``axil_postgres`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from typing import Literal, TypedDict

from pydantic import SecretStr


class PostgresJournalKeywords(TypedDict, total=False):
    """The settings of ``PostgresJournal``; see ``Settings``."""

    url: SecretStr | str
    """The address of the database, postgresql://user:password@host:5432/name; what it leaves out is
    in libpq's environment variables (PGPASSWORD, PGSSLMODE …).
    """

    tables: str
    """The schema of the tables; made if need be."""

    sync: Literal["full", "normal"]
    """full: what a run waited for outlives a crash of the server. normal: it outlives the process;
    a crash of the server may take the last moments, in order.
    """

    detail: int
    """Per run, how many superseded rows stay, for looking back; 0: none."""

    connections: int
    """The largest number of connections of a process; one of them listens."""

    direct_url: SecretStr | str
    """The address of the server itself, to listen; needed if url is that of a pooler that gives
    each transaction another connection (PgBouncer, transaction).
    """

    lease_seconds: float
    """How long a process that shows no sign of life keeps its runs."""

    patience_seconds: float
    """How long a server that is away is waited for."""

    objects: str
    """The folder or bucket where values of more than 256 KiB are kept: file:///…, s3://…, gs://…,
    az://…; empty: in the database.
    """

    retain_days: float | None
    """Days after which runs that have ended are forgotten; none: never."""
