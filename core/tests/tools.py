"""Means of the kernel's tests: bodies that are functions of a task, a clock that jumps, a journal
that forgets nothing.
"""

from __future__ import annotations

import asyncio
import heapq
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from axil.builder.workflow import Workflow
from axil.compiler.planner import compile_spec
from axil.contract.views import StateView
from axil.kernel.machine import Machine
from axil.kernel.state import APPEND, OVERWRITE, Field, Reducer, Schema
from axil.kernel.tokens import Activation, Out, Task
from axil.kernel.values import MISSING, Log, isolate
from axil.plugin import model_view
from axil.spec.graph import EdgeSpec, GraphSpec, NodeSpec
from axil_journals.journal import Entry, MemoryJournal


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


def never(payload: Any) -> bool:
    return False


class Hand:
    """A machine driven by hand: ``start``, then ``take`` and ``finish`` in any order."""

    def __init__(self, nodes: Any, edges: Any, *, keeps: bool = False, **more: Any) -> None:
        self.plan = compile_spec(graph(nodes, edges, **more))
        self.root = self.plan.graph.schema.start(self.plan.graph.start)
        self.machine = Machine(self.plan, (), self.root, keeps=keeps)
        self.at_work: dict[str, Task] = {}
        self.order: list[str] = []

    def start(self, inputs: Any = None) -> Hand:
        from axil.kernel.machine import entry_tokens

        self.machine.start(entry_tokens(self.plan, inputs or {}, self.root))
        return self

    def take(self) -> list[str]:
        """Take all that is due; gives the names, with ordinals where there are any."""
        taken: list[str] = []
        while (task := self.machine.take()) is not None:
            name = str(Activation((), self.plan.nodes[task.node].name, task.ordinal))
            self.at_work[name] = task
            taken.append(name)
        self.order += taken
        return taken

    def finish(self, name: str, out: Out | None = None) -> Task:
        """Finish a task: with ``out``, or with what its body says."""
        task = self.at_work.pop(name)
        self.machine.commit(
            task,
            self.machine.prepare(
                task, self.plan.nodes[task.node].vertex.body(task, None) if out is None else out
            ),
        )
        return task

    def go(self) -> Hand:
        """Take and finish, first come first served, until nothing is due."""
        self.take()
        while self.at_work:
            self.finish(next(iter(self.at_work)))
            self.take()
        return self

    @property
    def skipped(self) -> list[str]:
        return [self.plan.nodes[index].name for index in self.machine.skips]


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


@dataclass
class Watcher:
    """An observer that notes everything as ``(kind, activation)``, and the contents beside it."""

    events: list[tuple[str, str]] = field(default_factory=list)
    chunks: list[Any] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)

    def firing_started(self, activation: Activation, kind: str) -> None:
        self.events.append(("started", str(activation)))

    def chunk(self, activation: Activation, chunk: Any) -> None:
        self.chunks.append(chunk)

    def firing_finished(self, activation: Activation, kind: str, output: Any) -> None:
        self.events.append(("finished", str(activation)))
        self.outputs[str(activation)] = output

    def firing_failed(self, activation: Activation, kind: str, error: BaseException) -> None:
        self.events.append(("failed", str(activation)))

    def firing_skipped(self, activation: Activation, kind: str) -> None:
        self.events.append(("skipped", str(activation)))

    def named(self, kind: str) -> list[str]:
        return [name for what, name in self.events if what == kind]


def plain(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state without the fields that nodes keep for themselves."""
    return {name: value for name, value in state.items() if not name.startswith("@")}


# ------------------------------------------------------------------------------------- typed state


def _sum(old: Any, new: Any) -> Any:
    return new if old is MISSING or old is None else old + new


def _maximum(old: Any, new: Any) -> Any:
    return new if old is MISSING or old is None else max(old, new)


SUM = Reducer("sum", _sum, compose=_sum, pure=True, whole=True)
MAXIMUM = Reducer("maximum", _maximum, compose=_maximum, pure=True, whole=True)
_STRATEGIES = {"append": APPEND, "sum": SUM}
_EMPTY = (list, dict, set, int, float, str, bool)


def schema_of(model: Any) -> Schema:
    """Return a closed schema of a pydantic model or a TypedDict: what axil-typed makes of it, as
    far as the kernel's tests need it.
    """
    declared: dict[str, Any] = getattr(model, "model_fields", None) or {}
    if declared:
        hints = {
            name: (info.annotation, info.metadata, info.is_required(), info.default)
            for name, info in declared.items()
        }
    else:
        hints = {
            name: (kind, [], True, None) for name, kind in typing.get_type_hints(model).items()
        }
    fields = {name: _field(name, *hint) for name, hint in hints.items()}
    return Schema(
        model.__name__,
        fields,
        getattr(model, "model_config", {}).get("extra") != "allow",
        model_view(model) if declared else StateView,
    )


def _field(name: str, kind: Any, metadata: Sequence[Any], required: bool, default: Any) -> Field:
    reducer = next((_STRATEGIES[each] for each in metadata if each in _STRATEGIES), OVERWRITE)
    form: Any = Log if reducer is APPEND else lambda value: value
    empty = typing.get_origin(kind) or kind
    adapter = TypeAdapter(kind)

    def checked(value: Any) -> Any:
        return form(adapter.validate_python(list(value) if type(value) is Log else value))

    start: Callable[[], Any] | None = None
    if not required:
        start = lambda: form(isolate(default))  # noqa: E731
    elif empty in _EMPTY:
        start = lambda: form(empty())  # noqa: E731
    return Field(name, reducer, start, checked)
