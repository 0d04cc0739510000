"""The journal passes the conformance kit, reopened included, and so does an engine on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from axil import Workflow
from axil_journals import LocalEngine
from axil_postgres import PostgresJournal
from axil_testing.kit import EngineKit, JournalKit


class TestPostgres(JournalKit):
    component = PostgresJournal
    durable = True
    shared = True

    @pytest.fixture(autouse=True)
    def _server(self, journals: Callable[..., PostgresJournal]) -> None:
        self.journals = journals

    def make(self) -> Any:
        return self.journals(tables="kit")  # each law has names of its own

    def reopen(self, journal: Any) -> Any:
        return self.journals(tables=journal.config.tables)


class TestEngine(EngineKit):
    @pytest.fixture(autouse=True)
    def _server(self, journals: Callable[..., PostgresJournal]) -> None:
        self.journals = journals

    def make(self, workflows: Sequence[Workflow] = (), beside: Any = None) -> Any:
        given = {} if beside is None else {"tables": beside.journal.config.tables}
        return LocalEngine(self.journals(**given), workflows, clock=self.clock)
