"""The rules of queues, kept by several worker processes of which one is killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.databases import postgres_server
from tests.faults import queued
from tests.house import programs

from axil import RootGraph
from axil_journals import LocalEngine, Place, Queue
from axil_postgres import PostgresJournal
from axil_sqlite import SqliteJournal


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with postgres_server() as found:
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty journal."""
    if request.param == "sqlite":
        return str(tmp_path / "journal")
    url = request.getfixturevalue("server").url
    with psycopg.connect(url) as connection:
        connection.execute("drop schema if exists queued cascade")
    return url


def begun(count: int, *words: str) -> list[programs.Popen]:
    """Start ``queued.py`` so many times, and wait until all are ready."""
    command, pipe = [sys.executable, queued.__file__, *words], subprocess.PIPE
    found = [programs.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(count)]
    for process in found:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    return found


def ended(process: programs.Popen) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()


def most_at_once(log: Path, killed: int, killed_at: float) -> int:
    """Return how many firings were at work at the same time, at most."""
    changes: list[tuple[float, int]] = []
    open_of: dict[tuple[str, str], float] = {}
    for line in log.read_text().splitlines():
        word, run, pid, at = line.split()
        changes.append((float(at), 1 if word == "begin" else -1))
        if word == "begin":
            open_of[run, pid] = float(at)
        else:
            del open_of[run, pid]
    assert all(int(pid) == killed for _, pid in open_of)
    changes += [(killed_at, -1)] * len(open_of)
    found = most = 0
    for _, change in sorted(changes):
        found += change
        most = max(most, found)
    return most


def test_workers_keep_a_queues_rules_together_also_of_the_runs_of_one_that_was_killed(
    database: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.touch()
    workers = begun(2, database, str(log))
    graph, journal = queued.graph(), queued.journal(database)
    killed, killed_at = 0, 0.0

    async def go() -> None:
        nonlocal killed, killed_at
        async with asyncio.timeout(60), LocalEngine(journal, loaded=0) as engine:
            ids = [f"r{n}" for n in range(10)]
            for n, run_id in enumerate(ids):
                place = Place(queue="q", key=f"k{n % 3}")
                await engine.start(graph, {"run": run_id}, run_id=run_id, place=place)
            while not log.read_text():  # noqa: ASYNC110  # other processes write it
                await asyncio.sleep(0.002)
            killed = int(log.read_text().split()[2])
            ended(next(each for each in workers if each.pid == killed))
            killed_at = time.monotonic()
            for run_id in ids:
                assert (await engine.result(run_id)).status == "done"

    try:
        asyncio.run(go())
    finally:
        for worker in workers:
            ended(worker)
        journal.close()
    assert most_at_once(log, killed, killed_at) <= 2


def test_of_many_processes_that_submit_a_name_at_once_one_begins_a_run(database: str) -> None:
    clients = begun(2, database, "once")
    for client in clients:
        assert client.stdin is not None
        client.stdin.write("go\n")
        client.stdin.flush()
    assert len({client.communicate(timeout=60)[0] for client in clients}) == 1
    journal = queued.journal(database)
    assert len(journal.runs()) == 1
    journal.close()


def test_what_comes_while_a_debounced_run_is_at_work_begins_once_and_after_it(
    database: str,
) -> None:
    """Two workers, and a queue that has one run of each key at work."""
    door, begun, ended = asyncio.Event(), list[int](), list[int]()

    async def body(inputs: dict[str, Any]) -> dict[str, Any]:
        begun.append(inputs["n"])
        await door.wait()
        ended.append(inputs["n"])
        return {}

    graph = RootGraph("saved")
    node = graph.create_node(body, name="save")
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {})
    flow = graph.build()
    place = Place(queue="saves", key="ada", once="ada", debounce_seconds=0.2)

    def journal() -> Any:
        if database.startswith("postgresql"):
            return PostgresJournal(database, tables="queued")
        return SqliteJournal(database)

    async def until(count: int) -> None:
        while len(begun) < count:  # noqa: ASYNC110  # bodies note it
            await asyncio.sleep(0.01)

    async def go() -> None:
        queues = [Queue(name="saves", key_concurrency=1)]
        journals = [journal(), journal()]
        one, two = (LocalEngine(each, [flow], queues=queues) for each in journals)
        async with asyncio.timeout(60), one, two:
            first = await one.start(flow, {"n": 1}, place=place)
            assert await two.start(flow, {"n": 2}, place=place) == first
            await until(1)
            assert begun == [2]
            second = await two.start(flow, {"n": 3}, place=place)
            assert second != first
            assert await one.start(flow, {"n": 4}, place=place) == second
            while one.get(second).info.status != "queued":  # noqa: ASYNC110  # it is due then
                await asyncio.sleep(0.01)
            assert list(journals[0].take(9, time.time())) == []
            assert begun == [2]
            door.set()
            await asyncio.gather(one.result(first), one.result(second))
        for each in journals:
            each.close()
        assert begun == ended == [2, 4]

    asyncio.run(go())
