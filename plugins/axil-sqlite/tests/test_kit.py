"""The journal passes the conformance kit, reopened included, and so does an engine on it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest

from axil import RootGraph, Workflow
from axil_journals import LocalEngine
from axil_sqlite import SqliteJournal
from axil_testing.kit import EngineKit, JournalKit


class TestSqlite(JournalKit):
    component = SqliteJournal
    durable = True
    shared = True
    number = itertools.count()

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


def test_a_run_that_another_engine_begins_at_this_moment_is_begun_once(tmp_path: Path) -> None:
    graph = RootGraph("asks")

    async def ask(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return {"said": await ctx.ask("Go?")}

    graph.create_node(ask, name="ask")
    graph.edge_from_entry("ask", {"x": ""})
    graph.edge_to_exit("ask", {"said": ""})
    workflow = graph.build()

    async def started(**options: Any) -> str:
        with closing(SqliteJournal(tmp_path)) as journal:
            async with LocalEngine(journal, [workflow], loaded=0, **options) as engine:
                return await engine.start(workflow, {"x": 1}, run_id="r")

    def elsewhere(run_id: str) -> None:
        """Begin it with another engine, between a look at the journal and the first entry."""
        with ThreadPoolExecutor(1) as threads:
            threads.submit(lambda: asyncio.run(started())).result(30)

    assert asyncio.run(started(folder_of=elsewhere)) == "r"
    with closing(SqliteJournal(tmp_path)) as journal:
        assert [entry.kind for entry in journal.entries("r")] == ["run"]
