"""Crowds by hand, ten bodies of 10 ms a run: plain or keeping a run's promises, bare or with as
many objects as axil's; µs a node.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from ..workloads import NODES_OF_A_RUN
from .hands import Hands, Job
from .measure import lines

SIZES: Sequence[int] = (200, 1000, 5000)
QUICK: Sequence[int] = (2,)
OBJECTS = 53
"""The number of objects of one waiting run of axil that the garbage collector looks at."""
PLAIN, KEPT = 13, 27
"""The same numbers for a run of each of these floors."""
SECONDS = 0.01
Run = Callable[[int], Coroutine[Any, Any, dict[str, int]]]


async def one(objects: int) -> dict[str, int]:
    """Return one run: a fresh object for each that it has, at each node."""
    mine = [[0] for _ in range(objects)]
    state = {"n": 0}
    for _ in range(NODES_OF_A_RUN):
        state = {**state, **await step(state)}
        if mine:
            mine.append([0])
            mine.pop(0)
    return state


async def step(state: dict[str, int]) -> dict[str, int]:
    """Return what a node does."""
    await asyncio.sleep(SECONDS)
    return {"n": state["n"] + 1}


async def kept(objects: int) -> dict[str, int]:
    """Return one run that keeps what a run promises of its bodies, each of which is sent on by the
    one before.
    """
    mine = [[0] for _ in range(objects)]
    last: dict[str, int] = {}

    def begin(job: Job) -> Coroutine[Any, Any, dict[str, int]]:
        return step({**job.state})

    def hear(job: Job, given: dict[str, Any]) -> None:
        nonlocal last
        output = {**given}
        last = {**job.state, **{name: value for name, value in output.items() if name in job.state}}
        if job.node + 1 < NODES_OF_A_RUN:
            hands.put(Job(job.node + 1, ((job.node, output, last),), last))

    hands = Hands(begin, hear)
    hands.put(Job(0, (), {"n": 0}))
    await hands.done()
    assert len(mine) == objects
    return last


def seconds(run: Run, runs: int, objects: int, *, collecting: bool) -> tuple[float, float]:
    """Processor time of a node, and the part of the ideal time that was reached."""

    async def go() -> tuple[float, float]:
        work, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(run(objects) for _ in range(runs)))
        return time.process_time() - work, time.perf_counter() - wall

    gc.collect()
    (gc.enable if collecting else gc.disable)()
    try:
        found = sorted(asyncio.run(go()) for _ in range(3))[0]
    finally:
        gc.enable()
    return found[0] / runs / NODES_OF_A_RUN, 100 * NODES_OF_A_RUN * SECONDS / found[1]


def table(sizes: Sequence[int]) -> str:
    """Return a line for each number of runs and objects."""
    rows: list[list[str | float | None]] = []
    for runs in sizes:
        for run, objects in ((one, 0), (one, OBJECTS - PLAIN), (kept, 0), (kept, OBJECTS - KEPT)):
            (on, ideal), (off, _) = (
                seconds(run, runs, objects, collecting=collecting) for collecting in (True, False)
            )
            what = "with what it promises" if run is kept else "plain"
            rows.append(
                [f"{runs:,} runs, {what}, and {objects} objects more", on * 1e6, off * 1e6, ideal]
            )
    return lines(("by hand", "collector on", "collector off", "of the ideal, %"), rows)
