"""Graphs as specs whose nodes are functions of a task, and journals with a given record: the
shortest way to try a rule of the kernel.

>>> from axil_testing.specs import says, node, workflow
>>> workflow([node("a", says({"n": 1})), "b"], ["in a", "a b", "b out"]).invoke({})[0]
{'by': 'b'}
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from axil import ComponentRef, EdgeSpec, GraphSpec, NodeSpec, Out, RootGraph, Workflow
from axil.plugin import SURROUNDINGS, CompileOptions, Registry, Task
from axil_journals import Entry, MemoryJournal, Recording


@dataclass
class Raw:
    """A node whose body is ``call(task, ctx)``, as it is."""

    call: Callable[[Task, Any], Any]
    mode: str = "inline"
    ctx: bool = False

    def adapted(self, rules: Any) -> Any:
        """Return the body."""
        return _Body(self)


class _Body:
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
    """Return a node; without a body its output is its id, as ``{"by": id}``."""
    return NodeSpec(id=id, body=Raw(call or says({"by": id}), mode, ctx), **more)


def edge(source: str, target: str, **more: Any) -> EdgeSpec:
    """Return an edge; ``in`` is the entry and ``out`` the exit."""
    ends = {"in": "@entry", "out": "@exit"}
    return EdgeSpec(source=ends.get(source, source), target=ends.get(target, target), **more)


def graph(
    nodes: Sequence[NodeSpec | str], edges: Sequence[EdgeSpec | str], **more: Any
) -> GraphSpec:
    """Return a spec; nodes and edges may be words: ``graph(["a", "b"], ["in a", "a b"])``."""
    return GraphSpec(
        id=more.pop("id", "g"),
        nodes=tuple(node(each) if isinstance(each, str) else each for each in nodes),
        edges=tuple(edge(*each.split()) if isinstance(each, str) else each for each in edges),
        **more,
    )


def workflow(
    nodes: Sequence[NodeSpec | str], edges: Sequence[EdgeSpec | str], **more: Any
) -> Workflow:
    """Return a workflow, described as ``graph`` takes it."""
    return Workflow(graph(nodes, edges, **more))


def chain(bodies: Mapping[str, Any], keys: Mapping[str, str] | None = None) -> RootGraph:
    """Return a built graph of bodies by name, one after another; ``keys``: of all its edges."""
    made = RootGraph("chain")
    for name, body in bodies.items():
        made.create_node(body, name=name)
    names = [*bodies]
    made.edge_from_entry(names[0], keys or {})
    for source, target in pairwise(names):
        made.create_edge(source, target, keys or {})
    made.edge_to_exit(names[-1], keys or {})
    return made.build()


def without_places(spec: GraphSpec) -> GraphSpec:
    """Return what two readings of one graph share: all but places, surroundings and the schema."""
    return replace(
        spec,
        nodes=tuple(replace(node, place=None) for node in spec.nodes),
        edges=tuple(replace(edge, place=None) for edge in spec.edges),
        extras={key: value for key, value in spec.extras.items() if key not in SURROUNDINGS},
        place=None,
        schema=None,
    )


class Part:
    """A component that logs what happens to it, takes its time, and may fail."""

    log: list[str]

    def __init__(self, name: str = "part", fails: str = "") -> None:
        self.name, self.fails, self.is_ready = name, fails, False

    async def provision(self) -> None:
        """Get ready; with ``fails="provision"`` raise."""
        self.log.append(f"provision {self.name}")
        for _ in range(9):
            await asyncio.sleep(0)
        if self.fails == "provision":
            raise OSError(self.name)
        self.is_ready = True

    async def close(self) -> None:
        """Close; with ``fails="close"`` raise."""
        self.log.append(f"close {self.name}")
        self.is_ready = False
        if self.fails == "close":
            raise OSError(self.name)

    async def run(self) -> dict[str, Any]:
        """Give nothing; it has to be ready."""
        assert self.is_ready
        await asyncio.sleep(0)
        self.log.append(f"run {self.name}")
        return {}


def with_parts(**fails: str) -> tuple[Workflow, list[str]]:
    """Return a workflow of ``Part`` components that run beside each other, and their log."""
    log: list[str] = []
    registry = Registry(entry_points=[])
    for name, how in fails.items():

        def begin(self: Any, name: str = name, how: str = how) -> None:
            Part.__init__(self, name, how)

        registry.register("nodes", name, type(name, (Part,), {"log": log, "__init__": begin}))
    nodes = [NodeSpec(id=name, use=ComponentRef(type=name)) for name in fails]
    spec = graph(nodes, [f"in {name}" for name in fails])
    return Workflow(spec, CompileOptions(registry=registry)), log


def never(payload: Any) -> bool:
    """Return False: a condition."""
    return False


class Tape(Recording):
    """A journal of one run, and its writer, that keeps every entry in order."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.lines: list[Entry] = list(entries)

    def open(self, run_id: str) -> Tape:
        """Return the writer: the same object."""
        return self

    @property
    def entries(self) -> Any:
        """All entries."""
        return list(self.lines)

    def thread(self, name: str) -> Sequence[str]:
        """Return no runs: there are no threads."""
        return ()

    def append(self, entry: Entry) -> None:
        """Keep an entry."""
        self.lines.append(entry)

    def kept(self) -> Any:
        """Return None: nothing has to be waited for."""
        return None

    def close(self) -> None:
        """Do nothing."""


def write(journal: MemoryJournal, entries: Sequence[Entry], run_id: str = "r") -> None:
    """Append ``entries`` to a run that is at work nowhere."""
    writer = journal.open(run_id)
    for entry in entries:
        writer.append(entry)
    writer.close()


def written(entries: Sequence[Entry], run_id: str = "r") -> MemoryJournal:
    """Return a journal in memory that has ``entries`` of a run that is at work nowhere."""
    journal = MemoryJournal()
    write(journal, entries, run_id)
    return journal
