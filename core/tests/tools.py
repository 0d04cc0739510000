"""Means of the kernel's tests: a machine that is driven by hand, an observer, typed state."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from axil.compiler.planner import compile_spec
from axil.contract.views import StateView
from axil.kernel.machine import Machine
from axil.kernel.state import APPEND, OVERWRITE, Field, Reducer, Schema
from axil.kernel.tokens import Activation, Out, Task
from axil.kernel.values import MISSING, Log, isolate
from axil.typed.views import model_view
from axil_testing.specs import graph


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
            name = str(Activation((), task.node.name, task.ordinal))
            self.at_work[name] = task
            taken.append(name)
        self.order += taken
        return taken

    def finish(self, name: str, out: Out | None = None) -> Task:
        """Finish a task: with ``out``, or with what its body says."""
        task = self.at_work.pop(name)
        self.machine.commit(
            task,
            self.machine.prepare(task, task.node.vertex.body(task, None) if out is None else out),
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
    """Return a closed schema of a pydantic model or a TypedDict: what axil makes of it, as
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
