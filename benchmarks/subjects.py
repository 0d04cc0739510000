"""Subjects of measurement: graphs of a size, whose bodies do nothing, so that all that is left is
the kernel.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

from axil import CycleLimit, EdgeSpec, GraphSpec, Limits, NodeSpec, Out, Schema, Workflow
from axil.plugin import APPEND, Field

NOTHING = Out({})


class Nothing:
    """A node that does nothing: inline, without a context."""

    def adapted(self, rules: Any) -> Any:
        return self

    mode = "inline"
    wants_ctx = False

    def __call__(self, task: Any, ctx: Any, /) -> Out:
        return NOTHING


class Writing(Nothing):
    """A node that writes one field."""

    def __init__(self, field: str) -> None:
        self.out = Out({}, {field: 1})

    def __call__(self, task: Any, ctx: Any, /) -> Out:
        return self.out


class Counting(Nothing):
    """A node that counts rounds in the state."""

    def __call__(self, task: Any, ctx: Any, /) -> Out:
        n = task.state["n"] + 1
        return Out(n, {"n": n})


def node(name: str, body: Any = None, **more: Any) -> NodeSpec:
    return NodeSpec(id=name, body=body or Nothing(), **more)


def edge(source: str, target: str, **more: Any) -> EdgeSpec:
    return EdgeSpec(source=source, target=target, **more)


def planned(nodes: list[NodeSpec], edges: list[EdgeSpec], **more: Any) -> Workflow:
    """Return the workflow, compiled: what is measured later is the run alone."""
    flow = Workflow(
        GraphSpec(id="bench", nodes=tuple(nodes), edges=tuple(edges), limits=Limits(), **more)
    )
    flow.plan  # noqa: B018  # compiled when it is first asked for
    return flow


def chain(n: int, fields: int = 0) -> Workflow:
    """``n`` nodes in a row; with ``fields``, a state of so many, of which every node writes one."""
    nodes = [node(f"n{i}", Writing(f"f{i % fields}") if fields else None) for i in range(n)]
    edges = [
        edge("@entry", "n0"),
        *(edge(f"n{i}", f"n{i + 1}") for i in range(n - 1)),
        edge(f"n{n - 1}", "@exit"),
    ]
    return planned(nodes, edges, attributes={f"f{i}": 0 for i in range(fields)})


def skipped_chain(n: int) -> Workflow:
    """Return one node that fires, and behind it ``n`` in a row that do not."""
    nodes = [node("s"), *(node(f"n{i}") for i in range(n))]
    dead = edge("s", "n0", condition=lambda payload: False)
    return planned(
        nodes,
        [
            edge("@entry", "s"),
            dead,
            *(edge(f"n{i}", f"n{i + 1}") for i in range(n - 1)),
            edge("s", "@exit"),
        ],
    )


def fan(n: int) -> Workflow:
    """Return one node to ``n``, and they to one."""
    nodes = [node("s"), *(node(f"n{i}") for i in range(n)), node("t")]
    middle = [part for i in range(n) for part in (edge("s", f"n{i}"), edge(f"n{i}", "t"))]
    return planned(nodes, [edge("@entry", "s"), *middle, edge("t", "@exit")])


def dag(n: int, m: int, seed: int = 7) -> Workflow:
    """Return a random acyclic graph of ``n`` nodes and about ``m`` edges, in which every node
    fires.
    """
    rng = random.Random(seed)
    pairs = {(rng.randrange(i), i) for i in range(1, n)}
    while len(pairs) < m:
        a, b = sorted(rng.sample(range(n), 2))
        pairs.add((a, b))
    return planned(
        [node(f"n{i}") for i in range(n)],
        [edge("@entry", "n0"), *(edge(f"n{a}", f"n{b}") for a, b in sorted(pairs))],
    )


def loop(rounds: int) -> Workflow:
    """Return one node that leads back to itself so often."""
    again = edge("a", "a", condition=lambda payload: payload < rounds)
    leave = edge("a", "@exit", condition=lambda payload: payload >= rounds)
    limits = {"": CycleLimit(rounds=None)}
    return planned(
        [node("a", Counting())],
        [edge("@entry", "a"), again, leave],
        attributes={"n": 0},
        cycle_limits=limits,
    )


def functions(n: int) -> Workflow:
    """Return a chain of plain functions, as the builder makes them: inline, called by name, giving
    fields.
    """
    from axil import CustomNode, RootGraph

    g = RootGraph("bench")
    nodes = [
        g.create_node(CustomNode, lambda inputs: {"message": "x"}, name=f"n{i}", inline=True)
        for i in range(n)
    ]
    g.edge_from_entry(nodes[0])
    for a, b in itertools.pairwise(nodes):
        g.create_edge(a, b)
    g.edge_to_exit(nodes[-1])
    return g.build()


class Waiting(Nothing):
    """A node whose body is asynchronous, and waits for nothing."""

    mode = "async"

    async def __call__(self, task: Any, ctx: Any, /) -> Out:
        return NOTHING


def asynchronous(n: int) -> Workflow:
    """Return a chain of bodies that are awaited."""
    nodes = [node(f"n{i}", Waiting()) for i in range(n)]
    return planned(
        nodes,
        [
            edge("@entry", "n0"),
            *(edge(f"n{i}", f"n{i + 1}") for i in range(n - 1)),
            edge(f"n{n - 1}", "@exit"),
        ],
    )


def pair(rounds: int) -> Workflow:
    """Return a loop of two nodes."""
    again = edge("b", "a", condition=lambda payload, state: state["n"] < rounds)
    leave = edge("b", "@exit", condition=lambda payload, state: state["n"] >= rounds)
    limits = {"": CycleLimit(rounds=None)}
    edges = [edge("@entry", "a"), edge("a", "b"), again, leave]
    return planned(
        [node("a", Counting()), node("b")], edges, attributes={"n": 0}, cycle_limits=limits
    )


def logging(rounds: int, body: Any) -> Workflow:
    """Return a node that leads back to itself and adds to a list, so often."""
    schema = Schema(
        "log",
        {"n": Field("n", default=int), "log": Field("log", APPEND, default=list)},
        closed=True,
    )
    again = edge("a", "a", condition=lambda payload: payload < rounds)
    leave = edge("a", "@exit", condition=lambda payload: payload >= rounds)
    limits = {"": CycleLimit(rounds=None)}
    return planned(
        [node("a", body)], [edge("@entry", "a"), again, leave], schema=schema, cycle_limits=limits
    )
