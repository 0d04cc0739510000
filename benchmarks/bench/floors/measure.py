"""Shared means of floors: processor time, with Python's collector of garbage or without it, and
tables.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..figures import exponent
from ..table import number

ENOUGH = 0.5
"""Seconds after which nothing is measured again."""


def processor(act: Callable[[], Any], *, collecting: bool = True, times: int = 7) -> float:
    """Seconds of processor time: the least of several, begun on a clean heap.

    What ``act`` gives is kept until it is done.
    """
    found: list[float] = []
    try:
        while not found or (len(found) < times and sum(found) < ENOUGH):
            gc.collect()
            (gc.enable if collecting else gc.disable)()
            begin = time.process_time()
            kept = act()
            found.append(time.process_time() - begin)
            del kept
    finally:
        gc.enable()
    return min(found)


def awaited(act: Callable[[], Any], **more: Any) -> float:
    """``processor`` of an asynchronous function, on an event loop that is there already."""
    with asyncio.Runner() as runner:
        runner.get_loop()
        return processor(lambda: runner.run(act()), **more)


def sentence(thing: object) -> str:
    """Return what a module or a function says of itself, on one line."""
    return " ".join((thing.__doc__ or "").split())


def lines(head: Sequence[str], rows: Iterable[Sequence[str | float | None]]) -> str:
    """Markdown: the first column says what, the others are figures."""
    shown = (
        (cell if isinstance(cell, str) else "" if cell is None else number(cell) for cell in row)
        for row in rows
    )
    return "\n".join(
        f"| {' | '.join(row)} |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *shown)
    )


def grown(
    what: str, sizes: Sequence[int], seconds: Callable[[int, bool], float]
) -> list[list[str | float | None]]:
    """Return a row for each size, in µs a node with the collector and without it, and one with both
    exponents.
    """
    both = {
        collecting: [(float(size), seconds(size, collecting)) for size in sizes]
        for collecting in (True, False)
    }
    rows: list[list[str | float | None]] = [
        [
            f"{what} of {size:,}",
            *(both[collecting][i][1] / size * 1e6 for collecting in (True, False)),
        ]
        for i, size in enumerate(sizes)
    ]
    return [
        *rows,
        [f"{what}, exponent", *(exponent(both[collecting]) for collecting in (True, False))],
    ]
