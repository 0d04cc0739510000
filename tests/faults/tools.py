"""Bodies that are functions of a task, for graphs that are made to break."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from axil import EdgeSpec, GraphSpec, NodeSpec, Out, Result, RootGraph, Workflow, run_sync
from axil_control import Loop


class Raw:
    """A node whose body is ``call(task, ctx)``."""

    def __init__(self, call: Any, mode: str = "inline") -> None:
        self.call, self.mode = call, mode

    def adapted(self, rules: Any) -> Any:
        return _Body(self.call, self.mode)


class _Body:
    def __init__(self, call: Any, mode: Any) -> None:
        self.call, self.mode, self.wants_ctx = call, mode, mode != "inline"

    def __call__(self, task: Any, ctx: Any, /) -> Any:
        return self.call(task, ctx)


def add_loop(graph: RootGraph, first: Any, last: Any, turn: Any, rounds: int) -> None:
    """Add a loop of ``turn`` between two nodes, end the graph after them, and build it."""
    keys = {"pull_keys": {"turns": ""}, "push_keys": {"turns": ""}}
    loop = graph.create_node(Loop, name="loop", max_iterations=rounds, **keys)
    worker = loop.create_node(turn, name="turn", **keys)
    loop.edge_from_controller(worker, {})
    loop.edge_to_controller(worker, {"said": ""})
    graph.create_edge(first, loop, {})
    graph.create_edge(loop, last, {"said": ""})
    graph.edge_to_exit(last, {"sum": "", "turns": ""})
    graph.build()


NOTHING = Out({})


def nothing(task: Any, ctx: Any) -> Out:
    return NOTHING


def node(id: str, call: Any = nothing, mode: str = "inline", **more: Any) -> NodeSpec:
    return NodeSpec(id=id, body=Raw(call, mode), **more)


def edges(*words: str | EdgeSpec) -> tuple[EdgeSpec, ...]:
    def one(word: str | EdgeSpec) -> EdgeSpec:
        if isinstance(word, EdgeSpec):
            return word
        source, target = word.split(">")
        return EdgeSpec(
            source={"in": "@entry"}.get(source, source), target={"out": "@exit"}.get(target, target)
        )

    return tuple(one(word) for word in words)


def flow(nodes: Iterable[NodeSpec], *words: str | EdgeSpec, **more: Any) -> Workflow:
    return Workflow(GraphSpec(id="g", nodes=tuple(nodes), edges=edges(*words), **more))


def finish(workflow: Workflow, input: Any = None, within: float = 600, **options: Any) -> Result:
    """Run to its end, whatever that is; ``within`` real seconds."""

    async def go() -> Result:
        async with asyncio.timeout(within):
            return await workflow.start(input, **options)

    return run_sync(go())
