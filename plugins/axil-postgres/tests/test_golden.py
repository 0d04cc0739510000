"""Databases of every version of the tables there has been: each is brought up to date by its first
use, and its runs go on.

``python -m tests.test_golden`` in the folder of the distribution writes that of today's version.
What is written is committed, and never changed again.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from axil import RootGraph
from axil_journals import answer_entry
from axil_postgres import PostgresJournal, schema

from .server import Server, start_server

GOLDEN = Path(__file__).parent / "golden"
VERSIONS = sorted(GOLDEN.glob("version-*.sql"))
_NOT_SQL = re.compile(r"^(--.*|\\.*|SET .*|SELECT pg_catalog\.set_config.*|)\n", re.MULTILINE)


def letters() -> RootGraph:
    """Return a graph of a step and a question; it is not to be changed: kept runs name it."""

    async def asks(inputs: Any, ctx: Any) -> dict[str, Any]:
        async def fetched() -> str:
            if not ctx.allows("code"):
                raise ConnectionError("not today")
            return "ünïcode"

        got = await ctx.step("fetch", fetched)
        return {"answer": f"{got} {await ctx.ask('how many?', name='n')}"}

    graph = RootGraph("golden")
    node = graph.create_node(asks, name="asks")
    graph.edge_from_entry(node, {})
    graph.edge_to_exit(node, {"answer": ""})
    return graph.build()


@pytest.fixture(params=VERSIONS, ids=lambda path: path.stem)
def kept(request: pytest.FixtureRequest, server: Server) -> Any:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("drop schema if exists golden cascade")
        connection.execute(request.param.read_bytes())
    journal = PostgresJournal(server.url, tables="golden", lease_seconds=60.0)
    yield journal
    journal.close()


def test_there_is_a_golden_database_of_every_version() -> None:
    names = [f"version-{number}" for number in range(1, schema.VERSION + 1)]
    assert [path.stem for path in VERSIONS] == names


def test_its_runs_are_listed_sound_and_go_on(kept: PostgresJournal) -> None:
    statuses = {"done": "done", "paused": "paused", "failed": "failed", "posted": "paused"}
    assert {info.run_id: info.status for info in kept.runs()} == statuses
    assert list(kept.thread("t")) == ["done"]
    assert list(kept.named("pa", 9)) == ["paused"]
    assert kept.examine() == []
    assert kept.writer.database.rows("select number from version") == [(schema.VERSION,)]
    assert [letter.entry.data["value"] for letter in kept.mail(["posted"])] == [8]
    graph = letters()
    for run_id in ("paused", "failed"):
        again = graph.resume(run_id, journal=kept, answers={"asks?n": 7}, allow=frozenset({"code"}))
        assert asyncio.run(again).output == {"answer": "ünïcode 7"}
    before = max(info.touched for info in kept.runs()) + 1
    assert len(kept.prune(before)) == 3


def _shape(url: str) -> set[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        sql = (
            "select table_name, column_name, data_type, column_default, is_nullable from "
            "information_schema.columns where table_schema = 'golden'"
        )
        return set(connection.execute(sql).fetchall())


def test_the_way_back_makes_the_tables_of_the_version_before(server: Server) -> None:
    """They are those of its fixture, and its runs go on when they are brought up again."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("drop schema if exists golden cascade")
        connection.execute(VERSIONS[-2].read_bytes())
        before = _shape(server.url)
        connection.execute("drop schema golden cascade")
        connection.execute(VERSIONS[-1].read_bytes())
    journal = PostgresJournal(server.url, tables="golden", lease_seconds=60.0)
    assert (journal.format, journal.go_back()) == (schema.VERSION, schema.VERSION - 1)
    journal.close()
    assert _shape(server.url) == before
    test_its_runs_are_listed_sound_and_go_on(journal)
    assert journal.format == schema.VERSION
    journal.close()


def main() -> None:
    """Write the database of today's version."""
    server = start_server()
    assert server is not None
    try:
        journal = PostgresJournal(server.url, tables="golden")
        asyncio.run(_lives(journal))
        journal.close()
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("update golden.runs set begun = 1.5e9 + id, touched = 1.5e9 + id")
        command = ["pg_dump", "--inserts", "--no-owner", "-n", "golden", server.url]
        made = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    finally:
        server.close()
    (GOLDEN / f"version-{schema.VERSION}.sql").write_text(_NOT_SQL.sub("", made), "utf-8")


async def _lives(journal: PostgresJournal) -> None:
    """Make a run of each kind: done, of a thread; paused; failed; answered by another process."""
    graph, code = letters(), frozenset({"code"})
    for run_id, thread in (("done", "t"), ("paused", ""), ("posted", "")):
        await graph.run({}, journal=journal, run_id=run_id, thread=thread, allow=code)
    await graph.resume("done", journal=journal, answers={"asks?n": 5}, allow=code)
    await graph.start({}, journal=journal, run_id="failed").result()
    journal.post("posted", answer_entry("asks?n", 8))


if __name__ == "__main__":
    main()
