"""``postgresql``: a journal in a PostgreSQL database, shared by the engines of many machines."""

from axil_postgres.journal import PostgresJournal

__all__ = ["PostgresJournal"]
