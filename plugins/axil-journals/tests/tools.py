"""Means of this member's tests: bodies that are functions of a task, a clock that jumps, a journal
that forgets nothing.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from axil import EdgeSpec, GraphSpec, MemoryJournal, NodeSpec, Out, Workflow
from axil.driver import Entry
from axil.plugin import Task


@dataclass
class Raw:
    """A node whose body is ``call(task, ctx)``, as it is."""

    call: Callable[[Task, Any], Any]
    mode: str = "inline"
    ctx: bool = False

    def adapted(self, rules: Any) -> Any:
        return _RawBody(self)


class _RawBody:
    def __init__(self, raw: Raw) -> None:
        self.call, self.mode, self.wants_ctx = raw.call, raw.mode, raw.ctx

    def __call__(self, task: Task, ctx: Any, /) -> Any:
        return self.call(task, ctx)


def says(output: Any = None, **delta: Any) -> Callable[[Task, Any], Out]:
    """Return a body that always gives this."""
    return lambda task, ctx: Out({} if output is None else output, delta)


def node(
    id: str, call: Any = None, *, mode: str = "inline", ctx: bool = False, **more: Any
) -> NodeSpec:
    """Return a node; without a body it gives its own name as ``{"by": id}``."""
    return NodeSpec(id=id, body=Raw(call or says({"by": id}), mode, ctx), **more)


def edge(source: str, target: str, **more: Any) -> EdgeSpec:
    return EdgeSpec(
        source={"in": "@entry"}.get(source, source),
        target={"out": "@exit"}.get(target, target),
        **more,
    )


def graph(
    nodes: Sequence[NodeSpec | str], edges: Sequence[EdgeSpec | str], **more: Any
) -> GraphSpec:
    """Return a spec; nodes and edges may be words: ``graph(["a", "b"], ["in a", "a b"])``."""
    return GraphSpec(
        id=more.pop("id", "g"),
        nodes=tuple(node(n) if isinstance(n, str) else n for n in nodes),
        edges=tuple(edge(*e.split()) if isinstance(e, str) else e for e in edges),
        **more,
    )


def workflow(
    nodes: Sequence[NodeSpec | str], edges: Sequence[EdgeSpec | str], **more: Any
) -> Workflow:
    return Workflow(graph(nodes, edges, **more))


class Tape:
    """A journal of one run, and its book, that keeps every entry in order."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.lines: list[Entry] = list(entries)

    def open(self, run_id: str) -> Tape:
        return self

    @property
    def entries(self) -> Any:
        return list(self.lines)

    def thread(self, name: str) -> Sequence[str]:
        return ()

    def append(self, entry: Entry) -> None:
        self.lines.append(entry)

    def kept(self) -> Any:
        return None

    def close(self) -> None:
        pass


def written(entries: Sequence[Entry], run_id: str = "r") -> MemoryJournal:
    """Return a journal in memory that holds ``entries`` of a run that is at work nowhere."""
    journal = MemoryJournal()
    write(journal, entries, run_id)
    return journal


def write(journal: MemoryJournal, entries: Sequence[Entry], run_id: str = "r") -> None:
    book = journal.open(run_id)
    for entry in entries:
        book.append(entry)
    book.close()


class Jumping:
    """A clock that jumps to the next sleeper when the loop has had nothing else to do for a while.

    ``axil_testing`` has the good one.
    """

    def __init__(self, time: float = 0.0) -> None:
        self.time = time
        self.sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = self._woken = 0

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self.sleepers, (self.time + seconds, self._count, woken))
        ticking = asyncio.ensure_future(self._tick())
        try:
            await woken
        finally:
            ticking.cancel()

    async def _tick(self) -> None:
        while True:
            before = self._woken
            for _ in range(50):
                await asyncio.sleep(0)
            if before != self._woken:  # another sleeper's tick was first: let what it woke run
                continue
            while self.sleepers and self.sleepers[0][2].done():
                heapq.heappop(self.sleepers)
            if self.sleepers:
                self.time, _, woken = heapq.heappop(self.sleepers)
                woken.set_result(None)
                self._woken += 1
