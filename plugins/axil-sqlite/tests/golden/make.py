"""A golden database of today's schema version: ``python make.py``.

What is written is committed, and never changed again.

A version that users may have is opened, migrated and continued by every later one; see
``test_golden.py``.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from axil import RootGraph
from axil_control import Loop
from axil_journals import fork
from axil_sqlite import SqliteJournal
from axil_sqlite.store import VERSION

HERE = Path(__file__).parent


def letters() -> RootGraph:
    """Two rounds, a step, a question; nothing of it is to be changed: kept runs say that they were
    of this graph.
    """

    async def turn(attributes: Any) -> dict[str, Any]:
        attributes["turns"] += 1
        return {"said": f"ünïcode \u2028 {attributes['turns']}"}

    async def asks(inputs: Any, ctx: Any) -> dict[str, Any]:
        async def fetched() -> dict[str, Any]:
            if not ctx.allows("code"):
                raise ConnectionError("not today")
            return {"nan": float("nan"), "huge": 2**70, "set": {1, 2}}

        got = await ctx.step("fetch", fetched)
        return {"answer": await ctx.ask("how many?", name="n"), "huge": got["huge"]}

    graph = RootGraph("golden", attributes={"turns": 0})
    loop = graph.create_node(
        Loop, name="loop", max_iterations=2, pull_keys={"turns": ""}, push_keys={"turns": ""}
    )
    worker = loop.create_node(turn, name="turn", pull_keys={"turns": ""}, push_keys={"turns": ""})
    loop.edge_from_controller(worker, {})
    loop.edge_to_controller(worker, {"said": ""})
    last = graph.create_node(asks, name="asks")
    graph.edge_from_entry(loop, {})
    graph.create_edge(loop, last, {"said": ""})
    graph.edge_to_exit(last, {"answer": "", "huge": ""})
    graph.build()
    return graph


async def lives(journal: SqliteJournal) -> None:
    """Make a run of each kind: done in two parts, of a thread; paused; failed; forked and not gone
    on with.
    """
    graph, code = letters(), frozenset({"code"})
    for run_id, thread in (("done", "t"), ("paused", "")):
        result = await graph.start(
            {}, journal=journal, run_id=run_id, thread=thread, allow=code
        ).result()
        assert result.status == "paused"
    await graph.resume("done", journal=journal, answers={"asks?n": 5}, allow=code)
    assert (await graph.start({}, journal=journal, run_id="failed").result()).status == "failed"
    await fork(journal, "done", "forked", at=4)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        journal = SqliteJournal(folder)
        asyncio.run(lives(journal))
        journal.close()
        source = sqlite3.connect(Path(folder) / "runs.db")
        source.execute("update runs set owner = '', begun = 1.5e9 + id, touched = 1.5e9 + id")
        source.commit()
        goal = HERE / f"version-{VERSION}.db"
        goal.unlink(missing_ok=True)
        source.execute("vacuum into ?", (str(goal),))
        source.close()


if __name__ == "__main__":
    main()
