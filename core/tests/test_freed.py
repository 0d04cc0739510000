"""The remains of a run that has ended, where the collector of garbage does not come by: nothing."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from axil import Out
from axil.kernel.machine import Machine
from axil.kernel.scheduler import RunningFrame
from axil.runtime.pool import WorkerPool
from axil.runtime.run import Run, run_sync
from axil.runtime.services import RunServices
from axil_journals import MemoryJournal
from axil_testing.specs import edge, node, workflow


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def waits(task: Any, ctx: Any) -> Out:
    await asyncio.sleep(0)
    return Out({"n": 1}, {"n": 1})


async def enters(task: Any, ctx: Any) -> Out:
    inner = workflow([node("w", waits, mode="async")], ["in w", "w out"]).plan
    return Out((await ctx.run(inner, {}, name="s")).output)


async def asks(task: Any, ctx: Any) -> Out:
    return Out(await ctx.ask("what?"))


class Watch:
    def firing_started(self, activation: Any, kind: str) -> None:
        pass


def of_one(body: Any, mode: str = "async") -> Any:
    return workflow([node("a", body, mode=mode, ctx=True)], ["in a", "a out"])


def turning() -> Any:
    """Three rounds."""
    counts = node("b", lambda task, ctx: Out({"n": task.frame[-1]}))
    again, over = (
        edge("b", to, condition=lambda payload, to=to: (payload["n"] < 2) == (to == "a"))
        for to in ("a", "out")
    )
    return workflow([node("a", waits, mode="async"), counts], ["in a", "a b", again, over])


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "calls": (workflow(["a", "b"], ["in a", "a b", "b out"]), {}),
    "waits": (of_one(waits), {}),
    "in a thread": (of_one(lambda task, ctx: Out({}), "thread"), {}),
    "in a cycle": (turning(), {}),
    "a graph of a body's own": (of_one(enters), {}),
    "a question": (of_one(asks), {}),
    "watched": (of_one(waits), {"observers": [Watch()]}),
    "journaled": (of_one(waits), {"journal": MemoryJournal()}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_run_that_has_ended_is_freed_with_its_last_reference(name: str) -> None:
    flow, options = CASES[name]

    def alive() -> int:
        return sum(
            isinstance(each, (Run, WorkerPool, RunServices, Machine, RunningFrame))
            for each in gc.get_objects()
        )

    others = set(threading.enumerate())

    def settle() -> None:
        """Wait until threads have released what they held: they do so a moment after their result
        is there.
        """
        for thread in set(threading.enumerate()) - others:
            thread.join(60)

    async def go() -> None:
        await flow.start({}, **options)  # what is made once for all runs
        await asyncio.sleep(0)
        settle()
        before = alive()
        run = flow.start({}, **options)
        seen = weakref.ref(run)
        result = await run.result()
        await asyncio.sleep(0)  # the loop releases a worker's task
        assert result.status == ("paused" if name == "a question" else "done")
        del run
        settle()
        assert seen() is None
        # whose pause was raised: what is raised holds the frames that it went through, and they
        # hold it
        if name != "a question":
            assert alive() == before

    run_sync(go())
