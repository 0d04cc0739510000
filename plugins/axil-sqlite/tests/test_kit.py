"""The journal passes the conformance kit, reopened included, and so does an engine on it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from axil import Workflow
from axil_journals import LocalEngine
from axil_sqlite import SqliteJournal
from axil_testing.kit import EngineKit, JournalKit


class TestSqlite(JournalKit):
    component = SqliteJournal
    durable = True
    shared = True
    number = itertools.count()
    folder: ClassVar[Path]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _folder(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        cls.folder = tmp_path_factory.mktemp("journals")

    def make(self) -> Any:
        return SqliteJournal(self.folder / str(next(self.number)))

    def reopen(self, journal: Any) -> Any:
        return SqliteJournal(journal.config.folder)


class EnginesOnIt(EngineKit):
    sync: ClassVar[Any]

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> Iterator[None]:
        self.folder, self.journals = tmp_path, list[SqliteJournal]()
        yield
        for journal in self.journals:
            journal.close()

    def make(self, workflows: Sequence[Workflow] = (), beside: Any = None) -> Any:
        """Return one on a new database, or on that of another, whose process has come to write that
        it released its runs.
        """
        if beside is None:
            journal = SqliteJournal(self.folder / str(len(self.journals)), sync=self.sync)
        else:
            beside.journal.runs()
            journal = SqliteJournal(beside.journal.config.folder, sync=self.sync)
        self.journals.append(journal)
        return LocalEngine(journal, workflows, clock=self.clock)


class TestEngineOnSafeRows(EnginesOnIt):
    sync = "full"


class TestEngineOnQuickRows(EnginesOnIt):
    sync = "normal"
