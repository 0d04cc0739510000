"""Many runs at once by hand, each a task that waits ten times for 10 ms and has so many objects of its own; processor time, µs a node."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Sequence

from ..workloads import NODES_OF_A_RUN
from .measure import lines

SIZES: Sequence[int] = (200, 1000, 5000)
QUICK: Sequence[int] = (2,)
OBJECTS = (0, 60)
"""What the collector looks at, of each run; a run of axil that waits has about sixty."""
SECONDS = 0.01


async def one(objects: int) -> list[list[int]]:
    """One run: a fresh object for each that it has, at each node."""
    mine = [[0] for _ in range(objects)]
    for _ in range(NODES_OF_A_RUN):
        await asyncio.sleep(SECONDS)
        if mine:
            mine.append([0])
            mine.pop(0)
    return mine


def seconds(runs: int, objects: int, *, collecting: bool) -> tuple[float, float]:
    """Processor time of a node, and the part of the ideal time that was reached."""

    async def go() -> tuple[float, float]:
        work, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(one(objects) for _ in range(runs)))
        return time.process_time() - work, time.perf_counter() - wall

    gc.collect()
    (gc.enable if collecting else gc.disable)()
    try:
        found = sorted(asyncio.run(go()) for _ in range(3))[0]
    finally:
        gc.enable()
    return found[0] / runs / NODES_OF_A_RUN, 100 * NODES_OF_A_RUN * SECONDS / found[1]


def table(sizes: Sequence[int]) -> str:
    """A line for each number of runs and objects."""
    rows: list[list[str | float | None]] = []
    for runs in sizes:
        for objects in OBJECTS:
            (on, ideal), (off, _) = (seconds(runs, objects, collecting=collecting) for collecting in (True, False))
            rows.append([f"{runs:,} runs with {objects} objects", on * 1e6, off * 1e6, ideal])
    return lines(("by hand", "collector on", "collector off", "of the ideal, %"), rows)
