"""``sqlite``: a journal in one SQLite file. Runs outlive the process; see ``SqliteJournal``."""

from axil_sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal"]
