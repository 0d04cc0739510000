"""A worker of a queue: ``python queued.py JOURNAL LOG``; or, with ``once``, a client that submits.

Its graph notes the beginning and the end of each firing, with the process.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

from axil import RootGraph
from axil_journals import LocalEngine, Place, Queue

RULES = Queue(name="q", concurrency=2, key_calls=40, period_seconds=60.0)


def graph(log: str = os.devnull) -> RootGraph:
    def note(word: str, run: str) -> None:
        with open(log, "a") as file:
            file.write(f"{word} {run} {os.getpid()} {time.monotonic()}\n")

    async def body(inputs: dict[str, Any]) -> dict[str, Any]:
        note("begin", inputs["run"])
        await asyncio.sleep(0.05)
        note("end", inputs["run"])
        return {"run": inputs["run"]}

    made = RootGraph("queued")
    node = made.create_node(body, name="body")
    made.edge_from_entry(node, {"run": ""})
    made.edge_to_exit(node, {"run": ""})
    return made.build()


def journal(at: str) -> Any:
    if at.startswith("postgresql:"):
        from axil_postgres import PostgresJournal

        return PostgresJournal(at, tables="queued", lease_seconds=1.0)
    from axil_sqlite import SqliteJournal

    return SqliteJournal(at)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def work(at: str, log: str) -> None:
    made = graph(log)
    async with LocalEngine(journal(at), [made], loaded=10, recheck_seconds=0.2, queues=[RULES]):
        say("ready")
        await asyncio.Event().wait()


async def submit(at: str, pid: int) -> None:
    made, kept = graph(), journal(at)
    async with LocalEngine(kept, [made], loaded=0) as engine:
        say("ready")
        sys.stdin.readline()
        place = Place(queue="other", once="report")
        say(await engine.start(made, {"run": f"{pid}"}, place=place))
    kept.close()


if __name__ == "__main__":
    if sys.argv[2] == "once":
        asyncio.run(submit(sys.argv[1], os.getpid()))
    else:
        asyncio.run(work(sys.argv[1], sys.argv[2]))
