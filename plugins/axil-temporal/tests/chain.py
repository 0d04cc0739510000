"""A worker of the chaos test: ``python chain.py FOLDER LOG``.

Its graph is a chain of bodies that write to a log when they are done, with the process.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from typing import Any

from axil import RootGraph
from axil_sqlite import SqliteJournal
from axil_temporal import TemporalEngine

STEPS = 4


def chain(log: int) -> RootGraph:
    graph = RootGraph("chain")

    def step(number: int) -> Any:
        async def body(inputs: dict[str, Any]) -> dict[str, Any]:
            await asyncio.sleep(0.1)
            # one write: lines of processes do not mix
            os.write(log, f"{inputs['run']} {number} {os.getpid()}\n".encode())
            return {"run": inputs["run"], "n": inputs["n"] + 1}

        return body

    nodes = [graph.create_node(step(number), name=f"s{number}") for number in range(STEPS)]
    keys = {"run": "", "n": ""}
    graph.edge_from_entry(nodes[0], keys)
    for one, next in itertools.pairwise(nodes):
        graph.create_edge(one, next, keys)
    graph.edge_to_exit(nodes[-1], keys)
    return graph.build()


async def work(folder: str, log: str) -> None:
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    journal = SqliteJournal(folder)
    async with TemporalEngine(journal, [chain(file)], queue="chain", loaded=4):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2]))
