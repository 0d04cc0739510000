"""A worker of the chaos test: ``python chain.py URL TABLES LOG``.

Its graph is a chain of bodies that write to a log when they are done, with the process.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from typing import Any

from axil import RootGraph
from axil_journals import LocalEngine
from axil_postgres import PostgresJournal

LINE = 64
"""Bytes of a line of the log: part of a memory page, so that no kill cuts one."""
LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
LOG_FILE = os.open(os.environ.get("CHAIN_LOG", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
STEPS = int(os.environ.get("CHAIN_STEPS", "10" if LONG else "4"))


def chain() -> RootGraph:
    graph = RootGraph("chain")

    def step(number: int) -> Any:
        async def body(inputs: dict[str, Any]) -> dict[str, Any]:
            await asyncio.sleep(0.3 if LONG else 0.02)
            line = f"{inputs['run']} {number} {os.getpid()}".ljust(LINE - 1) + "\n"
            # one write, so that lines of processes do not mix; in one page, so that none is cut
            os.write(LOG_FILE, line.encode())
            return {"run": inputs["run"], "n": inputs["n"] + 1}

        return body

    nodes = [graph.create_node(step(number), name=f"s{number}") for number in range(STEPS)]
    keys = {"run": "", "n": ""}
    graph.edge_from_entry(nodes[0], keys)
    for one, next in itertools.pairwise(nodes):
        graph.create_edge(one, next, keys)
    graph.edge_to_exit(nodes[-1], keys)
    graph.build()
    return graph


def journal(url: str, tables: str) -> PostgresJournal:
    return PostgresJournal(url=url, tables=tables, lease_seconds=1.0)


async def work(url: str, tables: str) -> None:
    async with LocalEngine(journal(url, tables), [chain()], loaded=10):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2]))
