"""The page of ten million runs a day: its numbers are what its script computes, of constants that
are upper bounds of what a server is seen to write.
"""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from axil import RootGraph
from axil_journals import LocalEngine
from axil_postgres import PostgresJournal

from .capacity import Load, Measured, needs, table
from .cluster import database

PAGE = Path(__file__).parents[1] / "docs/explanation/performance/ten-million-runs.md"
RUNS, STEPS, _TIMES = 100, 10, 100


def chain(steps: int) -> RootGraph:
    async def body(inputs: dict[str, Any]) -> dict[str, Any]:
        return {"n": inputs["n"] + 1}

    graph, keys = RootGraph("chain"), {"n": ""}
    nodes = [graph.create_node(body, name=f"s{number}") for number in range(steps)]
    graph.edge_from_entry(nodes[0], keys)
    for one, following in itertools.pairwise(nodes):
        graph.create_edge(one, following, keys)
    graph.edge_to_exit(nodes[-1], keys)
    return graph.build()


def written(url: str, steps: int) -> tuple[float, float, float]:
    """Return the bytes of a run in the log, in its row, and in its entries."""
    journal, graph = PostgresJournal(url, tables=f"s{steps}", lease_seconds=60.0), chain(steps)
    rows = journal.writer.database.rows
    rows("checkpoint")  # after it each page is logged whole, once

    async def go() -> None:
        async with asyncio.timeout(120), LocalEngine(journal, [graph]) as engine:
            ids = [await engine.start(graph, {"n": 0}) for _ in range(RUNS)]
            for run_id in ids:
                assert (await engine.result(run_id)).output == {"n": steps}

    ((before,),) = rows("select pg_current_wal_lsn()")
    asyncio.run(go())
    ((log,),) = rows("select pg_wal_lsn_diff(pg_current_wal_lsn(), %s::pg_lsn)", (before,))
    columns = "graph, digest, status, epoch, next, due, begun, touched"
    rows(  # of few runs, each index is hardly more than a page
        f"insert into runs (run, {columns}) select run || n, {columns} from runs, "
        f"generate_series(2, {_TIMES}) as n"
    )
    rows("vacuum full runs")
    rows("vacuum full entries")
    sizes = [rows(f"select pg_total_relation_size('{name}')")[0][0] for name in ("runs", "entries")]
    journal.close()
    return float(log) / RUNS, sizes[0] / RUNS / _TIMES, sizes[1] / RUNS


def test_a_run_costs_a_server_no_more_than_the_page_counts_with() -> None:
    known = Measured()
    with database() as server:
        if server is None:
            pytest.skip("there is no PostgreSQL server to start")
        one, many = written(server.url, 1), written(server.url, STEPS + 1)
    step_log = (many[0] - one[0]) / STEPS
    step_entries = (many[2] - one[2]) / STEPS
    found = {
        "row": many[1],
        "run_entries": one[2] - step_entries,
        "step_entries": step_entries,
        "run_log": one[0] - step_log,
        "step_log": step_log,
    }
    assert all(value <= getattr(known, name) for name, value in found.items()), found
    # and they are no fiction
    assert all(value > getattr(known, name) / 10 for name, value in found.items()), found


def test_the_page_has_what_its_script_computes() -> None:
    assert "\n".join(table(Load(), Measured())) in PAGE.read_text("utf-8")


def test_each_worker_has_room_for_what_it_has_to_do() -> None:
    """By the defaults of the commands: 100 runs in a worker, six connections of others left."""
    load = Load()
    found = needs(load, Measured())
    assert found.at_work_each < 100
    assert found.server_processors < 8
    assert found.server_connections < 500
    ten = needs(Load(runs_a_day=10 * load.runs_a_day), Measured())
    assert ten.at_work_each > 100  # that takes more workers
