"""A case: one workload at one size.

Standard library alone: it is read by the interpreters of others, too.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any


class Case:
    """One workload at one size; given to the function of a column that makes what is measured."""

    def __init__(self, size: int, **settings: Any) -> None:
        self.size = size
        self.seconds: float = settings.pop("seconds", 0.0)
        """The seconds that an asynchronous body waits; 0: it does not."""
        self.bytes: int = settings.pop("bytes", 0)
        """Of each message that is added to a list; 0: there is no list."""
        self.runs: int = settings.pop("runs", 1)
        """The number of runs at once."""
        self.edges = acyclic(size, settings.pop("edges", 0))
        """Of a random graph, drawn with the case, as drawing is no part of making the graph; given
        as a number for each node.
        """
        self.folder: Path = settings.pop("folder", Path())
        """The folder for data that has to outlive the process."""
        self.marks: list[float] = []
        self.closing: list[Callable[[], Any]] = []
        """An object to close, or to await, after the run; that is not measured."""
        self.ending: list[Callable[[], Any]] = []
        """The same after the last run."""
        self.waiting = 0
        self.gate: asyncio.Event | None = None
        """At which bodies stand until all runs do."""
        self.full: asyncio.Event | None = None
        """Set when as many stand there as the case has runs."""
        self.pause: Callable[[], Awaitable[None]] | None = None
        """A function whose result a body awaits instead, where there is one."""
        assert not settings, settings

    def mark(self) -> None:
        """Said by a body once a step, where single steps are measured."""
        self.marks.append(time.process_time())

    async def wait(self) -> None:
        """Wait as an asynchronous body does: for a while, or at the gate, or not at all."""
        if self.pause is not None:
            await self.pause()
        elif self.gate is not None:
            self.waiting += 1
            if self.waiting == self.size and self.full is not None:
                self.full.set()
            await self.gate.wait()
        elif self.seconds:
            await asyncio.sleep(self.seconds)

    @property
    def records(self) -> list[dict[str, Any]]:
        """A payload of ``size`` bytes: records of a kilobyte."""
        return [{"id": i, "text": "x" * 1000, "tags": ["a", "b"]} for i in range(self.size // 1000)]

    @property
    def message(self) -> str:
        """A message to be added to a list."""
        return "m" * self.bytes


def acyclic(size: int, each: int) -> list[tuple[int, int]]:
    """Return the edges of a random acyclic graph, so many for each node, all reachable from node 0;
    always the same.
    """
    if not each:
        return []
    rng = random.Random(7)
    pairs = {(rng.randrange(i), i) for i in range(1, size)}
    while len(pairs) < min(each * size, size * (size - 1) // 2):
        a, b = sorted(rng.sample(range(size), 2))
        pairs.add((a, b))
    return sorted(pairs)
