"""Node and edge components of random workflows, made from plain data: for files and workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from axil import ComponentRef, Context, Out, Question
from axil.plugin import Task, thaw

from . import graphs
from .graphs import Edge, Node, Seen


def seen_of(node: Node, task: Task) -> Seen:
    """Return what a firing sees, without ``messages``, which files add to every typed state."""
    names = sorted(name for name in task.state if not name.startswith("@") and name != "messages")
    n = (task.state.get(graphs.own_field(node.name)) or {}).get("n", 0) + 1
    payloads = [thaw(token.payload) for token in task.tokens]
    state = [(name, thaw(task.state[name])) for name in names]
    return Seen(ordinal=task.ordinal, payloads=payloads, state=state, n=n)


def out_of(done: graphs.Done) -> Out:
    """Return the outcome of a body."""
    return Out(done.output, done.delta, None if done.to is None else frozenset(done.to))


def node_use(node: Node) -> ComponentRef:
    """Return the component of a node by its import path."""
    reported = {**asdict(node), "inside": None}
    return ComponentRef(type=f"{__name__}:Fires", config={"node": reported})


def edge_use(edge: Edge) -> ComponentRef:
    """Return the condition of an edge by its import path."""
    reported = {"table": list(edge.table), "modulus": edge.modulus}
    return ComponentRef(type=f"{__name__}:Carries", config=reported)


def seen_in(chunk: Any) -> Seen | None:
    """Return what a firing of ``Fires`` saw, from what it emitted; None: another chunk."""
    if not isinstance(chunk, Mapping) or "ordinal" not in chunk:
        return None
    state = [(name, value) for name, value in chunk["state"]]
    return Seen(
        ordinal=tuple(chunk["ordinal"]), payloads=chunk["payloads"], state=state, n=chunk["n"]
    )


class Fires:
    """The node component of a random node. Its firings emit what they see."""

    def __init__(self, node: Mapping[str, Any]) -> None:
        plain = {name: tuple(v) if isinstance(v, list) else v for name, v in node.items()}
        self.node = Node(**plain)

    def adapted(self, rules: Any) -> Any:
        return _Asking(self.node) if self.node.asks else _Plain(self.node)


class _Plain:
    mode = "thread"
    wants_ctx = True

    def __init__(self, node: Node) -> None:
        self.node = node

    def __call__(self, task: Any, ctx: Context, /) -> Any:
        return out_of(graphs.fire(self.node, self.emitted(task, ctx)))

    def emitted(self, task: Any, ctx: Context) -> Seen:
        seen = seen_of(self.node, task)
        state = [[name, value] for name, value in seen.state]
        ctx.emit({**asdict(seen), "ordinal": list(seen.ordinal), "state": state})
        return seen


class _Asking(_Plain):
    mode = "async"

    async def __call__(self, task: Any, ctx: Context, /) -> Out:
        seen = self.emitted(task, ctx)
        answer = await ctx.ask(Question(text=graphs.question(self.node, seen)))
        return out_of(graphs.fire(self.node, seen, answer))


class Carries:
    """The condition of a random edge."""

    def __init__(self, table: list[bool], modulus: int) -> None:
        self.edge = Edge(source="", target="", table=tuple(table), modulus=modulus)

    def __call__(self, seen: Any) -> bool:
        return self.edge.carries(seen.payload)
