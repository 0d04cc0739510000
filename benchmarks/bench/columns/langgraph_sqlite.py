"""LangGraph with its SQLite savers: a step's result is kept before the next one begins
(``durability="sync"``).

One run uses the plain saver; several at once use the asynchronous one, as its documentation says.
"""

from __future__ import annotations

from .langgraph import (  # noqa: F401
    PACKAGE,
    REQUIRES,
    add_at_once,
    asked,
    asking,
    counter,
    log_loop,
    options,
    row,
)

TITLE = "LangGraph, SqliteSaver"
KIND = "peer"


def opened(case):
    """Return a saver that keeps in the case's folder, and is closed with it."""
    import sqlite3

    from langgraph.checkpoint.sqlite import SqliteSaver

    connection = sqlite3.connect(case.folder / "runs.db", check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    return saver, connection


def plain(case):
    saver, _ = opened(case)
    graph = row(case.size, counter(), add_at_once, saver)
    return lambda: graph.invoke({"n": 0}, **options(case.size, durability="sync"))["n"]


def kept_agent(case):
    """Return an agent whose runs share one open saver, as those of a server do."""
    graphs = []

    async def go():
        if not graphs:
            import aiosqlite
            from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

            connection = await aiosqlite.connect(str(case.folder / "runs.db"))
            case.ending.append(connection.close)
            saver = AsyncSqliteSaver(connection)
            await saver.setup()
            graphs.append(asking(case, saver))
        return await asked(case, graphs[0], durability="sync")

    return go


def durable(case):
    return alone(case) if case.runs == 1 else together(case)


def alone(case):
    saver, connection = opened(case)
    graph = log_loop(case, saver, case.message, is_async=False)
    case.closing.append(connection.close)
    return lambda: graph.invoke({"n": 0, "log": []}, **options(case.size, durability="sync"))["n"]


def together(case):
    import asyncio

    async def go():
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(str(case.folder / "runs.db")) as saver:
            await saver.setup()
            graph = log_loop(case, saver, case.message)
            runs = (
                graph.ainvoke({"n": 0, "log": []}, **options(case.size, durability="sync"))
                for _ in range(case.runs)
            )
            (n,) = {result["n"] for result in await asyncio.gather(*runs)}
            return n

    return go
