"""A program of a user: it runs one row of the table, and prints what became of it as JSON.

Its argument is the row, with the file of the workflow and the place of the journal, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from pair_parts import mark  # pyright: ignore[reportMissingImports]

from axil import AxilError, Result
from axil.plugin import JournalError
from axil_files import load
from axil_journals import LocalEngine, MemoryJournal

ROW: dict[str, Any] = json.loads(sys.argv[1])


def make_journal() -> Any:
    if ROW["journal"] == "memory":
        return MemoryJournal()
    if ROW["journal"] == "postgres":
        from axil_postgres import PostgresJournal

        return PostgresJournal(ROW["place"])
    if ROW["journal"] == "off":
        return None
    from axil_sqlite import SqliteJournal

    return SqliteJournal(ROW["place"], sync=ROW["journal"])


def make_executor() -> Any:
    if ROW["body"] != "ray":
        return None
    import ray  # pyright: ignore[reportMissingImports]

    from axil_ray import RayExecutor

    small = {"num_cpus": 2, "object_store_memory": 80 << 20, "include_dashboard": False}
    ray.init(**small, log_to_driver=False, logging_level="ERROR")
    return RayExecutor(workers=1)


@asynccontextmanager
async def engine_of(flow: Any, options: dict[str, Any]) -> AsyncIterator[Any]:
    journal = options.pop("journal")
    if ROW["engine"] == "temporal":
        from axil_temporal import TemporalEngine

        made: Any = TemporalEngine(journal, [flow], **options)
    elif ROW["engine"] == "worker":
        made = LocalEngine(journal, loaded=0, **options)
    else:
        made = LocalEngine(journal, [flow], **options)
    async with made as engine:
        yield engine


async def begun() -> None:
    """Wait until a body is at work that only its cancellation ends."""
    while not mark("begun").exists():  # noqa: ASYNC110  # another process makes it
        await asyncio.sleep(0.02)


async def alone(flow: Any, options: dict[str, Any]) -> Result:
    """Run without an engine."""
    name = ROW["name"]
    if ROW["is_again"]:
        with suppress(JournalError):  # what was killed at once may not have been recorded
            return await flow.resume(name, **options)
    job = asyncio.ensure_future(flow.run(ROW["given"], run_id=name, **options))
    if ROW["happening"] == "cancelled":
        await begun()
        job.cancel()
    result = await job
    if result.status == "paused":
        answers = {result.questions[0].id: "yes"}
        result = await flow.resume(name, answers=answers, **options)
    return result


async def managed(flow: Any, options: dict[str, Any]) -> Result:
    """Run by an engine."""
    async with engine_of(flow, options) as engine:
        name = await engine.start(flow, ROW["given"], run_id=ROW["name"])
        if ROW["happening"] == "cancelled":
            await begun()
            await engine.cancel(name)
        if ROW["happening"] == "paused":
            while not (questions := engine.get(name).questions):  # noqa: ASYNC110  # as users do
                await asyncio.sleep(0.02)
            await engine.answer(name, {questions[0].id: "yes"})
        return await engine.result(name)


async def main() -> None:
    flow = load(ROW["file"])
    options: dict[str, Any] = {"journal": make_journal()}
    if executor := make_executor():
        options["executor"] = executor
    journal = options["journal"]
    try:
        result = await (alone if ROW["engine"] == "none" else managed)(flow, options)
        output = dict(result.attributes) if result.output is result.state else result.output
        told = {"status": result.status, "output": output}
    except AxilError as error:
        told = {"status": error.result.status, "output": error.result.output}
    except asyncio.CancelledError:
        told = {"status": "cancelled", "output": None}
    sys.stdout.write(json.dumps(told, default=str))
    if hasattr(journal, "close"):
        journal.close()


asyncio.run(main())
