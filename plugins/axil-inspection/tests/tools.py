"""Graphs of bodies that are functions of a task, and a journal that keeps every entry in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from axil import EdgeSpec, GraphSpec, NodeSpec, Out, Workflow
from axil.driver import Entry
from axil.plugin import Task


@dataclass
class Raw:
    """A node whose body is ``call(task, ctx)``."""

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


def node(id: str, call: Any = None, *, mode: str = "inline", ctx: bool = False) -> NodeSpec:
    """Return a node; without a body its output is its id, as ``{"by": id}``."""
    return NodeSpec(id=id, body=Raw(call or (lambda task, ctx: Out({"by": id})), mode, ctx))


def edge(source: str, target: str, **more: Any) -> EdgeSpec:
    ends = {"in": "@entry", "out": "@exit"}
    return EdgeSpec(source=ends.get(source, source), target=ends.get(target, target), **more)


def workflow(nodes: Sequence[NodeSpec], edges: Sequence[EdgeSpec | str], **more: Any) -> Workflow:
    """Return a workflow; edges may be words: ``["in a", "a b", "b out"]``."""
    arrows = tuple(edge(*each.split()) if isinstance(each, str) else each for each in edges)
    return Workflow(GraphSpec(id="g", nodes=tuple(nodes), edges=arrows, **more))


def never(payload: Any) -> bool:
    return False


class Tape:
    """A journal of one run, and its writer, that keeps every entry in order."""

    def __init__(self) -> None:
        self.lines: list[Entry] = []

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
