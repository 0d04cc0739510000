"""Runs that are killed at any moment, again and again; at every point that they pass, see
``test_crashes``.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.house import programs

from axil import RootGraph
from axil_journals import ReplayIndex
from axil_sqlite import SqliteJournal

from .tools import add_loop

LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"


def effects(path: Path) -> list[dict[str, Any]]:
    return (
        [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    )


SIZE = 512
"""Bytes of a line: a part of a memory page, for a kill may cut a write between two pages."""
LEFT: float | None = None
"""In a process that is to be killed: the number of steps before the end, and the time after them.

The process counts by itself, because no other process is sure to look in time.
"""


def counted() -> None:
    """Count a step; at the last one have this process killed a moment later, whatever it is at by
    then.
    """
    global LEFT
    if LEFT is None:
        return
    LEFT -= 1
    if -1 < LEFT <= 0:
        threading.Thread(target=killed, args=((LEFT + 1) / 50,), daemon=True).start()


def killed(seconds: float) -> None:
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


def factory(path: Path, rounds: int = 3) -> RootGraph:
    """Return a fan, a loop and a join; every body tells the world that it ran, with its key, and
    takes a moment.
    """

    async def tell(ctx: Any, say: str) -> None:
        about = {"activation": str(ctx.activation), "key": ctx.key(), "run": ctx.deps, "say": say}
        line = json.dumps(about).ljust(SIZE - 1) + "\n"
        assert len(line) == SIZE
        with path.open("a") as file:
            file.write(line)
        counted()
        await asyncio.sleep(0.001)

    async def start(inputs: Any, ctx: Any) -> dict[str, Any]:
        await tell(ctx, "start")
        return {"n": inputs["n"]}

    def branch(add: int) -> Any:
        async def body(inputs: Any, ctx: Any) -> dict[str, Any]:
            await tell(ctx, "branch")
            got = await ctx.step("double", lambda: doubled(ctx, inputs["n"]))
            return {f"b{add}": got + add}

        return body

    async def doubled(ctx: Any, n: int) -> int:
        await tell(ctx, "step")
        return 2 * n

    async def turn(attributes: Any, ctx: Any) -> dict[str, Any]:
        await tell(ctx, "turn")
        attributes["turns"] += 1
        return {"said": attributes["turns"]}

    async def end(inputs: Any, attributes: Any, ctx: Any) -> dict[str, Any]:
        await tell(ctx, "end")
        return {
            "sum": sum(v for k, v in inputs.items() if k.startswith("b")),
            "turns": attributes["turns"],
        }

    graph = RootGraph("factory", attributes={"turns": 0})
    first = graph.create_node(start, name="start")
    last = graph.create_node(end, name="end", pull_keys={"turns": ""})
    graph.edge_from_entry(first, {"n": ""})
    for i in range(3):
        node = graph.create_node(branch(i), name=f"branch{i}")
        graph.create_edge(first, node, {"n": ""})
        graph.create_edge(node, last, {f"b{i}": ""})
    add_loop(graph, first, last, turn, rounds)
    return graph


CHILD = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from tests.faults import test_kills
from tests.faults.test_kills import factory
from axil_sqlite import SqliteJournal
test_kills.LEFT = float(sys.argv[8])
journal = SqliteJournal(sys.argv[1], detail=int(sys.argv[6]), sync=sys.argv[7])
async def go():
    graph = factory(Path(sys.argv[2]), rounds=int(sys.argv[5]))
    names = [f"r{i}" for i in range(int(sys.argv[4]))]
    runs = [graph.run({"n": 20}, journal=journal, run_id=name, deps=name) for name in names]
    await asyncio.gather(*runs)
asyncio.run(go())
journal.close()
"""


RUNS, ROUNDS, LIVES, STEPS, DETAIL = (16, 1500, 1000, 160, 500) if LONG else (4, 40, 12, 25, 10_000)
"""Runs, rounds of each, the largest number of kills, and the steps after which they come:
steps; what is kept of what is over.
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.parametrize(
    "sync",
    [
        "full",
        pytest.param(
            "normal", marks=pytest.mark.skipif(not LONG, reason="takes minutes: make thorough")
        ),
    ],
)
def test_runs_outlive_being_killed_again_and_again(tmp_path, sync):
    """Recorded firings never run again; others run again with the same key; the end is the same."""
    chance = random.Random(20)
    reported, folder = tmp_path / "reported", tmp_path / "j"
    kills, done = 0, dict[tuple[str, str], int]()
    size = [str(RUNS), str(ROUNDS), str(DETAIL), sync]
    command = [
        sys.executable,
        "-c",
        CHILD,
        str(folder),
        str(reported),
        str(Path(__file__).parents[2]),
        *size,
    ]
    for _ in range(LIVES):
        with programs.Popen([*command, str(chance.uniform(1, STEPS))]) as child:
            child.wait(600)
        assert child.returncode in (0, -signal.SIGKILL)
        kills += child.returncode != 0
        journal, seen = (
            SqliteJournal(folder, detail=DETAIL, sync=sync),
            reported.read_bytes().count(b"\n") if reported.exists() else 0,
        )
        assert list(journal.examine()) == []
        for info in journal.runs():
            for who in ReplayIndex(journal.entries(info.run_id)).done:
                done.setdefault((info.run_id, str(who)), seen)
        ended = [info.status for info in journal.runs()]
        journal.close()
        if ended == ["done"] * RUNS:
            break
    journal, graph = (
        SqliteJournal(folder, detail=DETAIL, sync=sync),
        factory(reported, rounds=ROUNDS),
    )

    async def rest() -> list[Any]:
        return await asyncio.gather(
            *(
                graph.run({"n": 20}, journal=journal, run_id=f"r{i}", deps=f"r{i}")
                for i in range(RUNS)
            )
        )

    assert [result.output for result in asyncio.run(rest())] == [
        {"sum": 123, "turns": ROUNDS}
    ] * RUNS
    journal.close()
    assert kills >= (200 if LONG else 3)
    assert len(done) > 20
    lines = effects(reported)
    for number, each in enumerate(lines):
        if each["say"] != "step":
            assert number < done.get((each["run"], each["activation"]), len(lines)), (
                f"{each} was done and ran again"
            )
    assert max(Counter((each["key"], each["say"]) for each in lines).values()) <= kills + 1
    steps = RUNS * (5 + ROUNDS)
    assert (
        len({each["key"] for each in lines})
        == len({(each["run"], each["activation"]) for each in lines})
        == steps
    )
