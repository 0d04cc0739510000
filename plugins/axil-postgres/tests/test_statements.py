"""Tests of the statements that reach the database: how many, from which thread, by which plan."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from axil import RootGraph
from axil.driver import LocalEngine
from axil_postgres import PostgresJournal
from axil_postgres.database import Database
from axil_postgres.journal import _TAKE

Journals = Callable[..., PostgresJournal]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Transactions of this process, by the thread that waits for them."""
    found: Counter[int] = Counter()
    transact = Database.transact

    def counted(database: Database, *values: Any, **more: Any) -> Any:
        found[threading.get_ident()] += 1
        return transact(database, *values, **more)

    monkeypatch.setattr(Database, "transact", counted)
    return found


def asking() -> RootGraph:
    graph = RootGraph("asking")

    async def ask(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return {"said": await ctx.ask("go on?", name="q")}

    node = graph.create_node(ask, name="ask")
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {"said": ""})
    return graph.build()


def test_the_loop_never_waits_for_the_database(journals: Journals, asked: Counter[int]) -> None:
    """However far away it is, other bodies go on."""
    journal, graph = journals(), asking()

    async def go() -> int:
        async with asyncio.timeout(60), LocalEngine(journal, [graph]) as engine:
            first = await engine.start(graph, {"n": 1})
            second = await engine.start(graph, {"n": 2})
            await engine.idle()
            await engine.answer(first, {"ask?q": "yes"})
            assert (await engine.result(first)).output == {"said": "yes"}
            await engine.cancel(second)
            assert (await engine.result(second)).status == "cancelled"
        return threading.get_ident()

    loop = asyncio.run(go())
    assert sum(asked.values()) > 10
    assert asked[loop] == 0


def test_an_idle_worker_asks_twice_when_something_has_changed(
    journals: Journals, asked: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statements of many workers follow from these: many-machines.md has the sum."""
    journal, looks = journals(), list[float]()
    next_due = journal.next_due

    def looked(now: float) -> float | None:
        looks.append(now)
        return next_due(now)

    monkeypatch.setattr(journal, "next_due", looked)

    async def go() -> None:
        async with asyncio.timeout(60), LocalEngine(journal, recheck_seconds=50) as engine:
            await engine.idle()
            asked.clear()
            looks.clear()
            journal.writer.database.work.ring()
            while not looks:  # noqa: ASYNC110  # another thread looks
                await asyncio.sleep(0.005)
            await engine.idle()
            assert sum(asked.values()) == 2 * len(looks)

    asyncio.run(go())


def test_runs_that_ended_or_wait_for_people_cost_a_look_nothing(journals: Journals) -> None:
    """The index of due runs holds the others alone."""
    journal = journals()
    rows = journal.writer.database.rows
    rows(
        "insert into runs (run, status, epoch, due, begun, touched) select 'r' || n, 'done', n, "
        "null, 0, 0 from generate_series(1, 20000) as n returning 1"
    )
    rows("insert into runs (run, epoch, due, begun, touched) values ('due', 1, 0, 0, 0)")
    rows("analyze runs")
    given = {"now": time.time(), "most": 10, "without": [], "digests": None, "holder": 1}

    def planned(connection: Any) -> Any:
        return connection.execute(f"explain (format json) {_TAKE}", given).fetchone()[0]

    plan = json.dumps(journal.writer.database.transact(planned))
    assert "runs_by_due" in plan
    (pages,) = rows("select pg_relation_size('runs_by_due') / 8192")[0]
    assert pages <= 2
    assert journal.take(10, time.time()) == ["due"]
