"""Graphs of bodies that are functions of a task, and journals with a given record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from axil import EdgeSpec, GraphSpec, MemoryJournal, NodeSpec, Out, Use, Workflow
from axil.driver import Entry
from axil.plugin import CompileOptions, Registry, Task


@dataclass
class Raw:
    """A node whose body is ``call(task, ctx)``."""

    call: Callable[[Task, Any], Any]
    mode: str = "inline"

    def adapted(self, rules: Any) -> Any:
        return _RawBody(self)


class _RawBody:
    wants_ctx = False

    def __init__(self, raw: Raw) -> None:
        self.call, self.mode = raw.call, raw.mode

    def __call__(self, task: Task, ctx: Any, /) -> Any:
        return self.call(task, ctx)


def node(id: str, call: Any = None, *, mode: str = "inline") -> NodeSpec:
    """Return a node; without a body its output is its id, as ``{"by": id}``."""
    return NodeSpec(id=id, body=Raw(call or (lambda task, ctx: Out({"by": id})), mode))


def edge(source: str, target: str) -> EdgeSpec:
    ends = {"in": "@entry", "out": "@exit"}
    return EdgeSpec(source=ends.get(source, source), target=ends.get(target, target))


def graph(nodes: Sequence[NodeSpec | str], edges: Sequence[str], id: str = "g") -> GraphSpec:
    """Return a spec; nodes and edges may be words: ``graph(["a", "b"], ["in a", "a b"])``."""
    return GraphSpec(
        id=id,
        nodes=tuple(node(each) if isinstance(each, str) else each for each in nodes),
        edges=tuple(edge(*each.split()) for each in edges),
    )


def workflow(nodes: Sequence[NodeSpec | str], edges: Sequence[str], id: str = "g") -> Workflow:
    return Workflow(graph(nodes, edges, id))


def written(entries: Sequence[Entry], run_id: str = "r") -> MemoryJournal:
    """Return a journal in memory that has ``entries`` of one run."""
    journal = MemoryJournal()
    writer = journal.open(run_id)
    for entry in entries:
        writer.append(entry)
    writer.close()
    return journal


# -------------------------------------------------------------------------------- components


class Part:
    """A component that logs what happens to it, takes its time, and may fail."""

    log: list[str]

    def __init__(self, name: str, fails: str = "") -> None:
        self.name, self.fails, self.is_ready = name, fails, False

    async def provision(self) -> None:
        self.log.append(f"provision {self.name}")
        for _ in range(9):
            await asyncio.sleep(0)
        if self.fails == "provision":
            raise OSError(self.name)
        self.is_ready = True

    async def close(self) -> None:
        self.log.append(f"close {self.name}")
        self.is_ready = False

    async def run(self) -> dict[str, Any]:
        assert self.is_ready
        await asyncio.sleep(0)
        self.log.append(f"run {self.name}")
        return {}


def with_parts(**fails: str) -> tuple[Workflow, list[str]]:
    """Return a workflow of components that run beside each other, and their log."""
    log: list[str] = []
    registry = Registry(entry_points=[])
    for name, how in fails.items():

        def begin(self: Any, name: str = name, how: str = how) -> None:
            Part.__init__(self, name, how)

        registry.register("nodes", name, type(name, (Part,), {"log": log, "__init__": begin}))
    nodes = [NodeSpec(id=name, use=Use(type=name)) for name in fails]
    spec = graph(nodes, [f"in {name}" for name in fails])
    return Workflow(spec, CompileOptions(registry=registry)), log
