"""Random workflows as axil runs them: specs with live bodies, and what can be seen of a run."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from axil import (
    MISSING,
    Activation,
    ComponentRef,
    CycleLimit,
    EdgeSpec,
    GraphSpec,
    Limits,
    NodeSpec,
    Out,
    Question,
    Reducer,
    Result,
    Schema,
)
from axil.plugin import (
    APPEND,
    SUM,
    CompileOptions,
    Field,
    Log,
    RouterSpec,
    SubgraphSpec,
    Task,
    combine_deltas,
    compile_spec,
    default_registry,
    thaw,
)
from axil_files import dump_spec
from axil_wrappers import Retry

from . import components, graphs
from .components import out_of, seen_of
from .graphs import Edge, Graph, Node, Observed, Seen

FIRINGS = 400
"""Firings after which a run is limited."""


def _said(old: Any, new: Any) -> str:
    return ("" if old is MISSING else old) + new


def _bag(old: Any, new: Any) -> dict[str, Any]:
    bag = {} if old is MISSING else old
    bag.update(new)
    return bag


TYPED = Schema(
    "typed",
    {
        "log": Field("log", APPEND, default=Log),
        "total": Field("total", SUM, default=lambda: 0),
        "said": Field("said", Reducer("said", _said, pure=True)),
        "best": Field("best", default_registry().resolve("reducers", "maximum")),
        "bag": Field("bag", Reducer("bag", _bag)),
        "last": Field("last"),
    },
    closed=True,
)


FILED = {
    "log": {"type": "list[any]", "strategy": "append"},
    "total": {"type": "int", "strategy": "sum", "default": 0},
}
"""The fields of a typed state that a file declares."""


class Failure(Exception):
    """The exception of a failing node."""


@dataclass
class World:
    """Everything around one run: how long bodies take, which fail, what each activation saw."""

    mode: str = "inline"
    """Of bodies that need no context: ``inline``, ``async`` or ``thread``; ``mixed``: by chance."""
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    delays: str = "none"
    """The duration of async bodies: ``turns`` of the event loop, or seconds on the ``clock``."""
    seen: dict[str, Any] = field(default_factory=dict[str, Any])
    """By activation."""
    ran: Counter[str] = field(default_factory=Counter[str])
    """The number of times that each activation's body ended."""
    failed: Counter[str] = field(default_factory=Counter[str])
    emits: bool = False
    names: Callable[[Node], bool] = lambda node: False
    """A function that says if a node is a component that is named by its import path."""
    is_file: bool = False
    """Everything is named, as a file does it."""

    clash: str = ""
    """An activation that saw one thing at one time and another thing at another."""

    def chunk(self, activation: Activation, chunk: Any) -> None:
        """Note what a firing of a named component saw. An observer's method."""
        seen = components.seen_in(chunk)
        if seen is not None:
            self.note(str(activation), seen)
            self.ran[str(activation)] += 1

    def note(self, activation: str, seen: Seen) -> None:
        """Note what a firing saw."""
        before = self.seen.setdefault(activation, seen)
        if before != seen:
            self.clash = f"{activation} saw two things:\n    {before}\n    {seen}"

    def begin(self, node: Node, task: Task, activation: str) -> Seen:
        """Note what a firing sees. Raises: Failure: this try fails."""
        seen = seen_of(node, task)
        self.note(activation, seen)
        if self.failed[activation] < node.fails:
            self.failed[activation] += 1
            raise Failure(f"try {self.failed[activation]} of {activation}")
        self.ran[activation] += 1
        return seen

    async def wait(self, ctx: Any) -> None:
        """Take some time."""
        if self.delays == "turns":
            for _ in range(self.chance.randrange(5)):
                await asyncio.sleep(0)
        elif self.delays == "clock":
            await ctx.sleep(self.chance.choice((0.0, 0.1, 0.2, 0.5, 1.0, 3.0)))


class Kind:
    """A node component: gives the body of one random node."""

    def __init__(self, node: Node, world: World, inner: GraphSpec | None) -> None:
        self.node, self.world, self.inner = node, world, inner

    def adapted(self, rules: Any) -> Any:
        if self.node.items:
            assert self.inner is not None
            return MapBody(
                self.node, self.world, compile_spec(self.inner, CompileOptions(allow_code=True))
            )
        if self.node.asks:
            return AskingBody(self.node, self.world)
        mode = self.world.mode
        if mode == "mixed":
            mode = self.world.chance.choice(("inline", "async"))
        return (
            AsyncBody(self.node, self.world)
            if mode == "async"
            else PlainBody(self.node, self.world, mode)
        )


class PlainBody:
    """A body that is a call, on the event loop or in a thread."""

    wants_ctx = True

    def __init__(self, node: Node, world: World, mode: str) -> None:
        self.node, self.world, self.mode = node, world, mode

    def __call__(self, task: Task, ctx: Any, /) -> Out:
        if self.world.emits:
            ctx.emit({"from": self.node.name})
        return out_of(
            graphs.fire(self.node, self.world.begin(self.node, task, str(ctx.activation)))
        )


class AsyncBody:
    """A body that takes some time."""

    mode = "async"
    wants_ctx = True

    def __init__(self, node: Node, world: World) -> None:
        self.node, self.world = node, world

    async def __call__(self, task: Task, ctx: Any, /) -> Out:
        await self.world.wait(ctx)
        seen = self.world.begin(self.node, task, str(ctx.activation))
        return out_of(graphs.fire(self.node, seen, *await self.more(task, ctx, seen)))

    async def more(self, task: Task, ctx: Any, seen: Seen) -> Sequence[Any]:
        return ()


class AskingBody(AsyncBody):
    """A body that asks a person."""

    async def more(self, task: Task, ctx: Any, seen: Seen) -> Sequence[Any]:
        return (await ctx.ask(Question(text=graphs.question(self.node, seen))),)


class MapBody(AsyncBody):
    """A body that runs a graph once per item, all at the same time."""

    def __init__(self, node: Node, world: World, plan: Any) -> None:
        super().__init__(node, world)
        self.plan = plan

    async def __call__(self, task: Task, ctx: Any, /) -> Out:
        await self.world.wait(ctx)
        seen = self.world.begin(self.node, task, str(ctx.activation))
        inputs = graphs.items(self.node, seen)
        running = (
            ctx.run(self.plan, each, name=i, state=task.state) for i, each in enumerate(inputs)
        )
        returned = await asyncio.gather(*running)
        done = graphs.fire(self.node, seen, [thaw(each.output) for each in returned])
        changes = combine_deltas(
            task.state.schema, [*(each.changes for each in returned), done.delta]
        )
        return Out(done.output, changes, None)


class Inner:
    """A node component that is a graph."""

    def __init__(self, nested: SubgraphSpec) -> None:
        self.nested = nested

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        return self.nested


def spec_of(graph: Graph, world: World, name: str = "random") -> GraphSpec:
    """Return ``graph`` as a spec with live bodies, and named ones where ``world`` says so."""
    limits = {
        at: CycleLimit(rounds=limit.rounds, at_limit="exit" if limit.is_exit else "limited")
        for at, limit in graph.limits
    }
    routers = {
        f"{node.name}?": RouterSpec(source=node.name, targets=node.routes, ask=_router(node.routes))
        for node in graph.nodes
        if node.routes
    }
    return GraphSpec(
        id=name,
        nodes=tuple(_node(node, graph, world) for node in graph.nodes),
        edges=tuple(_edge(edge, world) for edge in graph.edges),
        routers=routers,
        schema=TYPED if graph.typed else None,
        attributes={} if graph.typed else {"last": 0},
        payload=graph.payload,  # type: ignore[arg-type]  # one of the known ones
        cycle_limits=limits,
        limits=Limits(firings=FIRINGS),
        extras={"state": FILED} if graph.typed and world.is_file else {},
    )


def _node(node: Node, graph: Graph, world: World) -> NodeSpec:
    pull, push = (
        None if names is None else dict.fromkeys(names, "")
        for names in ((node.inside.pulls, node.inside.pushes) if node.inside else (None, None))
    )
    inner = None if node.inside is None else spec_of(node.inside, world, node.name)
    join: Any = node.join
    if inner is not None and world.is_file:
        config = {"type": "config", "config": dump_spec(inner)["graph"], "keep": node.keeps}
        use = ComponentRef(type="subgraph", config=config)
        return NodeSpec(id=node.name, use=use, join=join, pull=pull, push=push)
    if inner is not None and not node.items:
        nested = SubgraphSpec(spec=inner, pull=pull, push=push, keep=node.keeps)
        return NodeSpec(id=node.name, body=Inner(nested), join=join)
    groups = sorted({edge.group for edge in graph.edges if edge.target == node.name})
    more: dict[str, Any] = {"id": node.name, "join": join}
    if node.merges and groups:
        more["merge"] = dict.fromkeys(groups, graphs.merge)
    if node.fails:
        more["wrappers"] = (
            ComponentRef.of(Retry(tries=graphs.TRIES, wait_seconds=0.25, jitter="none")),
        )
    if world.is_file or world.names(node):
        return NodeSpec(use=components.node_use(node), lane="named", **more)
    return NodeSpec(body=Kind(node, world, inner), **more)


def _edge(edge: Edge, world: World) -> EdgeSpec:
    def carries(payload: Any) -> bool:
        return edge.carries(thaw(payload))

    condition = components.edge_use(edge) if world.is_file else carries
    return EdgeSpec(
        source=edge.source,
        target=edge.target,
        trigger=edge.trigger,
        group=edge.group,
        condition=condition if edge.asks else None,
        filter=_filter(edge.filter) if edge.filter else None,
        router=f"{edge.source}?" if edge.routed else None,
    )


def _filter(name: str) -> Callable[[Any], dict[str, Any]]:
    return lambda state: graphs.FILTERS[name](state)


def _router(targets: Sequence[str]) -> Callable[[Any], list[str]]:
    return lambda state: [graphs.route(targets, state)]


# ----------------------------------------------------------------------------- what can be seen


def observed(result: Result, world: World) -> Observed:
    """Return what can be seen of a run of axil."""
    if world.clash:
        return Observed(status="inconsistent", error=world.clash)
    output = result.output
    error = result.error
    return Observed(
        status=result.status,
        output=_plain(output) if isinstance(output, Mapping) else thaw(output),
        state=_plain(result.attributes),
        exits=dict(result.exits),
        cycles={
            path: (tally.entries, tally.rounds, dict(tally.ends))
            for path, tally in result.cycles.items()
        },
        activations=dict(world.seen),
        error="" if error is None else f"{type(error).__name__}: {error}",
    )


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: thaw(value) for name, value in values.items() if name != "messages"}
