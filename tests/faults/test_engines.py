"""An engine on a database: runs that wait are rows, and another process continues with all of
them.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest
from tests.house import programs

from axil import RootGraph
from axil_journals import LocalEngine
from axil_sqlite import SqliteJournal
from axil_testing import VirtualClock

LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
DAY = 86_400.0
MANY = 1000 if LONG else 200


def letters() -> RootGraph:
    """Asks a person, then sleeps a day, then adds up."""

    async def asks(inputs: Any, ctx: Any) -> dict[str, Any]:
        return {"n": inputs["n"] + await ctx.ask("how many?", name="n")}

    async def sleeps(inputs: Any, ctx: Any) -> dict[str, Any]:
        await ctx.sleep(DAY)
        return {"sum": inputs["n"]}

    graph = RootGraph("letters")
    first, last = graph.create_node(asks, name="asks"), graph.create_node(sleeps, name="sleeps")
    graph.edge_from_entry(first, {"n": ""})
    graph.create_edge(first, last, {"n": ""})
    graph.edge_to_exit(last, {"sum": ""})
    graph.build()
    return graph


def test_hundreds_of_runs_wait_in_a_database_and_end_in_another_process(tmp_path):
    graph, clock, chance = letters(), VirtualClock(), random.Random(3)
    ids = [f"r{n}" for n in range(MANY)]

    async def begins(journal: SqliteJournal) -> None:
        async with LocalEngine(
            journal, [graph], loaded=50, clock=clock, patience_seconds=1
        ) as engine:
            await asyncio.gather(
                *(engine.start(graph, {"n": n}, run_id=f"r{n}") for n in range(MANY))
            )
            await engine.idle()

    async def ends(journal: SqliteJournal) -> None:
        async with LocalEngine(
            journal, [graph], loaded=50, clock=clock, patience_seconds=1
        ) as engine:
            results = [asyncio.ensure_future(engine.result(run_id)) for run_id in ids]
            await asyncio.sleep(0)
            shuffled = chance.sample(ids, len(ids))
            await asyncio.gather(
                *(engine.answer(run_id, {"asks?n": int(run_id[1:])}) for run_id in shuffled)
            )
            assert [result.output for result in await asyncio.gather(*results)] == [
                {"sum": 2 * n} for n in range(MANY)
            ]

    for part in (begins, ends):
        journal = SqliteJournal(tmp_path)
        asyncio.run(part(journal))
        journal.close()
    assert clock.now() >= DAY
    journal = SqliteJournal(tmp_path)
    assert {info.status for info in journal.runs()} == {"done"}
    journal.close()


def test_what_a_waiting_run_holds_in_memory_is_next_to_nothing(tmp_path):
    graph = letters()

    async def waiting(runs: int) -> int:
        journal = SqliteJournal(tmp_path / str(runs), sync="normal")
        async with LocalEngine(journal, [graph], loaded=10) as engine:
            tracemalloc.start()
            try:
                before, _ = tracemalloc.get_traced_memory()
                for n in range(runs):
                    await engine.start(graph, {"n": n}, run_id=f"r{n}")
                await engine.idle()
                gc.collect()
                return tracemalloc.get_traced_memory()[0] - before
            finally:
                tracemalloc.stop()
                journal.close()

    asyncio.run(waiting(10))  # imports and caches
    few, many = asyncio.run(waiting(30)), asyncio.run(waiting(130))
    assert many - few < 100 * 1000  # bytes; a loaded run takes some tens of thousands


@pytest.mark.parametrize("sync", ["full", "normal"])
def test_runs_that_a_process_left_are_taken_up_by_the_next(tmp_path, sync):
    graph, held = letters(), asyncio.Event()

    async def body(inputs: Any) -> dict[str, Any]:
        await held.wait()
        return {"n": inputs["n"]}

    slow = RootGraph("slow")
    node = slow.create_node(body, name="slow")
    slow.edge_from_entry(node, {"n": ""})
    slow.edge_to_exit(node, {"n": ""})
    slow.build()

    async def left() -> None:
        journal = SqliteJournal(tmp_path, sync=sync)
        async with LocalEngine(journal) as engine:
            for n in range(20):
                await engine.start(slow, {"n": n}, run_id=f"r{n}")
            while engine.loaded < 20:  # noqa: ASYNC110  # runs have no event
                await asyncio.sleep(0.001)
        journal.close()

    async def taken_up() -> None:
        held.set()
        journal = SqliteJournal(tmp_path, sync=sync)
        assert {info.status for info in journal.runs()} == {"open"}
        async with LocalEngine(journal, [slow, graph]) as engine:
            results = await asyncio.gather(*(engine.result(f"r{n}") for n in range(20)))
        assert [result.output for result in results] == [{"n": n} for n in range(20)]
        journal.close()

    asyncio.run(left())
    asyncio.run(taken_up())


RACER = """
import asyncio, json, sys
from axil import RootGraph
from axil.plugin import JournalError
from axil_sqlite import SqliteJournal

async def signs(inputs, ctx):
    name = await ctx.ask("who?", name="who")
    with open(sys.argv[2], "a") as file:
        file.write(f"{ctx.key()}\\n")
    for _ in range(20):
        await asyncio.sleep(0.01)
    return {"signed": name}

graph = RootGraph("race")
graph.create_node(signs, name="signs")
graph.edge_from_entry("signs", {})
graph.edge_to_exit("signs", {"signed": ""})
graph.build()

async def go():
    journal = SqliteJournal(sys.argv[1], sync=sys.argv[3])
    journal.runs()
    try:
        if sys.argv[4] == "begin":
            result = await graph.start({}, journal=journal, run_id="r").result()
        else:
            print("ready", flush=True)
            sys.stdin.readline()
            result = await graph.resume("r", journal=journal, answers={"signs?who": sys.argv[4]})
        print(result.status, result.output, flush=True)
    except JournalError as error:
        print(error.id, flush=True)
    journal.close()

asyncio.run(go())
"""


@pytest.mark.parametrize("sync", ["full", "normal"])
def test_of_processes_that_continue_with_one_run_at_once_one_does(tmp_path, sync):
    reported = tmp_path / "reported"

    def process(*arguments: str) -> programs.Popen:
        command = [
            sys.executable,
            "-c",
            RACER,
            str(tmp_path / "j"),
            str(reported),
            sync,
            *arguments,
        ]
        return programs.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    with process("begin") as first:
        assert first.communicate()[0].startswith("paused")
    racers = [process(name) for name in ("ann", "bob", "cy")]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    said = [racer.communicate()[0].strip() for racer in racers]
    won = [each for each in said if each.startswith("done")]
    assert len(won) == 1
    assert set(said) - set(won) <= {"AX506", "AX521"}, (
        "the others are told that it is at work, or that it was answered otherwise"
    )
    assert len(reported.read_text("utf-8").splitlines()) == 1
