"""The work of ``durable.py`` by LangGraph and its SQLite savers; run by an interpreter that has them, with nothing of axil.

    PYTHON durable_beside.py FOLDER WORK

``WORK`` is JSON, see ``durable.Work``. Prints seconds. One run uses the plain saver, several at once the asynchronous one; both keep
what a step came to before the next one begins (``durability="sync"``).
"""

from __future__ import annotations

import asyncio
import json
import operator
import sys
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict


class State(TypedDict):
    """A counter, and a list that grows."""

    n: int
    log: Annotated[list[str], operator.add]


def built(steps: int, bytes: int, *, is_async: bool) -> Any:
    """One node that leads back to itself."""
    from langgraph.graph import END, START, StateGraph

    def step(state: State) -> dict[str, Any]:
        n = state["n"] + 1
        return {"n": n, "log": [f"{n:>{bytes}}"]} if bytes else {"n": n}

    async def later(state: State) -> dict[str, Any]:
        return step(state)

    graph = StateGraph(State)
    graph.add_node("step", later if is_async else step)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: END if state["n"] >= steps else "step", ["step", END])
    return graph


def options(run: int, steps: int) -> dict[str, Any]:
    return {"config": {"configurable": {"thread_id": f"r{run}"}, "recursion_limit": steps + 10}, "durability": "sync"}


def alone(path: Path, work: dict[str, Any]) -> float:
    from langgraph.checkpoint.sqlite import SqliteSaver

    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        graph = built(work["steps"], work["bytes"], is_async=False).compile(checkpointer=saver)
        begin = time.perf_counter()
        result = graph.invoke({"n": 0, "log": []}, **options(0, work["steps"]))
        seconds = time.perf_counter() - begin
    assert result["n"] == work["steps"]
    return seconds


async def together(path: Path, work: dict[str, Any]) -> float:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        await saver.setup()
        graph = built(work["steps"], work["bytes"], is_async=True).compile(checkpointer=saver)
        begin = time.perf_counter()
        runs = (graph.ainvoke({"n": 0, "log": []}, **options(run, work["steps"])) for run in range(work["runs"]))
        results = await asyncio.gather(*runs)
        seconds = time.perf_counter() - begin
    assert {result["n"] for result in results} == {work["steps"]}
    return seconds


def main() -> None:
    path, work = Path(sys.argv[1]) / "runs.db", json.loads(sys.argv[2])
    print(alone(path, work) if work["runs"] == 1 else asyncio.run(together(path, work)))


if __name__ == "__main__":
    main()
