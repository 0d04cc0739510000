"""pytest fixtures: write ``pytest_plugins = ["axil_testing.fixtures"]`` in a conftest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from axil import Activation, EdgeSpec, GraphSpec, NodeSpec, Out, State, Token
from axil.driver import FrameResult, Machine
from axil.plugin import KERNEL, Policy, Registry, Task, compile_spec, entry_tokens, use_registry
from axil_testing.agents import cassette, model_script, pytest_addoption, pytest_configure, workflow
from axil_testing.clock import VirtualClock
from axil_testing.recorder import Recorder

__all__ = [
    "Bench",
    "MakeBench",
    "OnlyPlugins",
    "cassette",
    "machine",
    "model_script",
    "only_plugins",
    "pytest_addoption",
    "pytest_configure",
    "recorder",
    "virtual_clock",
    "workflow",
]


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """Return a clock that jumps: give it to a run as ``clock``."""
    return VirtualClock()


@pytest.fixture
def recorder() -> Recorder:
    """Return an observer that keeps what happened."""
    return Recorder()


class _Silent:
    """A node whose body is never called: its outcomes are given by hand."""

    def adapted(self, rules: Any) -> Any:
        return self

    mode = "inline"
    wants_ctx = False

    def __call__(self, task: Task, ctx: Any, /) -> Out:
        return Out({})


@dataclass
class Bench:
    """A machine driven by hand: ``start``, ``take`` what is due, ``finish`` it in any order.

    Activations go by name: ``"a"``, ``"a#0.1"``.
    """

    spec: GraphSpec
    machine: Machine = field(init=False)
    at_work: dict[str, Task] = field(default_factory=dict[str, Task])
    taken: list[str] = field(default_factory=list[str])
    """All that was ever due, in order."""

    def __post_init__(self) -> None:
        self.plan = compile_spec(self.spec)
        self.root: State = self.plan.graph.schema.start(self.plan.graph.start)
        self.machine = Machine(self.plan, (), self.root)

    def start(
        self, inputs: Mapping[str, Any] | None = None, *, only: Iterable[str] | None = None
    ) -> Bench:
        """Let the inputs in: on every entry edge, or on those to the nodes in ``only``."""
        tokens = entry_tokens(self.plan, dict(inputs or {}), self.root)
        wanted = None if only is None else set(only)
        edges = self.plan.graph.edges
        self.machine.start(
            [t for t in tokens if wanted is None or edges[t.edge].target_name in wanted]
        )
        return self

    def take(self) -> list[str]:
        """Return all that is due now."""
        names: list[str] = []
        while (task := self.machine.take()) is not None:
            name = str(Activation((), task.node.name, task.ordinal))
            self.at_work[name] = task
            names.append(name)
        self.taken += names
        return names

    def finish(
        self, name: str, output: Any = None, *, to: Iterable[str] | None = None, **delta: Any
    ) -> Task:
        """End an activation: what edges carry (its own name by default), where to, and its writes.

        Raises: KeyError: it is not at work; whatever an edge or the state refuses.
        """
        task = self.at_work.pop(name)
        out = Out(
            {"by": name} if output is None else output, delta, None if to is None else frozenset(to)
        )
        self.machine.commit(task, self.machine.prepare(task, out))
        return task

    def go(self) -> Bench:
        """Take and finish, first come first served, until nothing is due."""
        self.take()
        while self.at_work:
            self.finish(next(iter(self.at_work)))
            self.take()
        return self

    def payloads(self, name: str) -> list[Any]:
        """Return the payloads of an activation at work, in edge order."""
        return [token.payload for token in self.at_work[name].tokens]

    def state(self, name: str) -> dict[str, Any]:
        """Return the state that an activation at work began with."""
        return dict(self.at_work[name].state)

    @property
    def skipped(self) -> list[str]:
        """Nodes that will not fire."""
        return sorted(self.plan.nodes[index].name for index in self.machine.skips)

    @property
    def exits(self) -> list[tuple[str, Any]]:
        """The exits so far: the edge and its payload."""
        return [(self.plan.graph.edges[e.edge].name, e.payload) for e in self.machine.exits]

    def end(self) -> FrameResult:
        """Return the result that is left at the end."""
        return self.machine.end()

    def put(self, *payloads: tuple[str, Any]) -> Bench:
        """Start with these payloads on these edges (``"@entry->a"``) and nothing on any other."""
        ids = {edge.name: edge.id for edge in self.plan.graph.edges}
        self.machine.start([Token(ids[name], payload, self.root) for name, payload in payloads])
        return self


MakeBench = Callable[..., Bench]


@pytest.fixture
def machine() -> MakeBench:
    """Drive a machine by hand, from a description in words.

    ``machine("in>a a>b a>c b>d c>d d>out", joins={"d": "all"})``: edges, ``in`` and ``out`` being
    the entry and the exit; an edge may carry labels: ``a>b:group=x``, ``a>b:data`` (``trigger:
    false``). Nodes are those that the edges name, in that order. ``more``: fields of ``GraphSpec``,
    such as ``attributes`` or ``schema``. Of cycles it takes flat ones only.
    """

    def make(
        edges: str | Sequence[EdgeSpec],
        *,
        joins: Mapping[str, str] | None = None,
        merges: Mapping[str, Callable[..., Any]] | None = None,
        **more: Any,
    ) -> Bench:
        specs = (
            tuple(_edge(word) for word in edges.split()) if isinstance(edges, str) else tuple(edges)
        )
        names = dict.fromkeys(
            end for edge in specs for end in (edge.source, edge.target) if not end.startswith("@")
        )
        nodes = tuple(
            NodeSpec(
                id=name,
                body=_Silent(),
                join=cast("Any", (joins or {}).get(name)),
                merge={"": merges[name]} if merges and name in merges else None,
            )
            for name in names
        )
        return Bench(GraphSpec(id="bench", nodes=nodes, edges=specs, **more))

    return make


def _edge(word: str) -> EdgeSpec:
    ends, *labels = word.split(":")
    source, target = ends.split(">")
    data = dict(label.split("=") for label in labels if "=" in label)
    unknown = {label for label in labels if label != "data"} - {f"group={data.get('group')}"}
    if unknown:
        raise ValueError(f'"{word}": an edge is "a>b", "a>b:group=x" or "a>b:data".')
    return EdgeSpec(
        source={"in": "@entry"}.get(source, source),
        target={"out": "@exit"}.get(target, target),
        trigger="data" not in labels,
        group=data.get("group", ""),
    )


OnlyPlugins = Callable[..., Registry]


@pytest.fixture
def only_plugins() -> Iterator[OnlyPlugins]:
    """Make this test see only the plugins it names.

    ``only_plugins("axil-control", "nodes:agent")``: distributions, and single components as
    ``kind:name``. The registry is the process's own until the test ends; the kernel is always
    there. ``block`` names what is refused though it is installed.
    """
    with ExitStack() as stack:

        def restrict(*names: str, block: Iterable[str] = ()) -> Registry:
            policy = Policy(
                mode="listed", allow=frozenset({*names, KERNEL}), block=frozenset(block)
            )
            return stack.enter_context(use_registry(Registry(policy)))

        yield restrict
