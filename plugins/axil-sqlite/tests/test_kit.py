"""The journal passes the conformance kit, reopened included."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

from axil_sqlite import SqliteJournal
from axil_testing.kit import JournalKit


class TestSqlite(JournalKit):
    component = SqliteJournal
    durable = True
    place = tempfile.TemporaryDirectory()
    number = itertools.count()

    def make(self) -> Any:
        return SqliteJournal(Path(self.place.name) / str(next(self.number)))

    def reopen(self, journal: Any) -> Any:
        return SqliteJournal(journal.config.folder)
