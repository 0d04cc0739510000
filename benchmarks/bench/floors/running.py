"""Exponents of a run: the fan and the random graph that are written by hand with asyncio, a task
for each node; µs a node.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..case import Case
from ..columns import by_hand
from .measure import awaited, grown, lines

SIZES: Sequence[int] = (100, 1000, 10_000, 100_000)
QUICK: Sequence[int] = (10, 20)


def table(sizes: Sequence[int]) -> str:
    """With Python's collector, and without it."""
    acts = {
        (name, size): getattr(by_hand, name)(Case(size, edges=3))
        for name in ("fan", "dag")
        for size in sizes
    }
    rows = [
        row
        for name in ("fan", "dag")
        for row in grown(
            name,
            sizes,
            lambda size, collecting, name=name: awaited(acts[name, size], collecting=collecting),
        )
    ]
    return lines(("run by hand", "collector on", "collector off"), rows)
