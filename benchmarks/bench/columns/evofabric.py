"""EvoFabric: nodes that give deltas of a typed state, in an asynchronous engine.

As it is on PyPI it cannot be imported beside today's mcp and fastmcp; with those of its time it
can.
"""

from __future__ import annotations

TITLE = "EvoFabric"
KIND = "peer"
REQUIRES = ("evofabric", "mcp<2", "fastmcp<3")
PACKAGE = "evofabric"
IMPORT = "evofabric.core.graph"
PUBLISHED = (
    "109 µs a node in a chain of 100 (EvoFabric 0.1.4), in a comparison made before this one."
)


def summing():
    """Return the strategy that adds up.

    What is not there is given as a sentinel, which is no number and no list.
    """
    from evofabric.core.graph import StateUpdater

    if not StateUpdater.registered("bench_add"):

        @StateUpdater.register("bench_add")
        def bench_add(old=0, new=0):
            return sum(each for each in (old, new) if isinstance(each, int))

        @StateUpdater.register("bench_extend")
        def bench_extend(old=(), new=()):
            return [each for part in (old, new) if isinstance(part, list) for each in part]

    return "bench_add"


def state(**fields):
    """Return a schema of ``name=(type, strategy)``."""
    from typing import Annotated

    from typing_extensions import TypedDict

    summing()
    return TypedDict(
        "State", {name: Annotated[kind, strategy] for name, (kind, strategy) in fields.items()}
    )


def row(size, body, **fields):
    from evofabric.core.graph import GraphBuilder

    graph = GraphBuilder(state_schema=state(n=(int, "overwrite"), **fields))
    for i in range(size):
        graph.add_node(f"n{i}", body)
    for i in range(1, size):
        graph.add_edge(f"n{i - 1}", f"n{i}")
    graph.set_entry_point("n0")
    return graph.build()


async def add(state):
    return {"n": state["n"] + 1}


def chain(case):
    engine = row(case.size, add)

    async def go():
        return (await engine.run({"n": 0}))["n"]

    return go


def fan(case):
    from evofabric.core.graph import GraphBuilder

    async def work(state):
        await case.wait()
        return {"n": 1}

    async def nothing(state):
        return {}

    graph = GraphBuilder(state_schema=state(n=(int, summing())))
    graph.add_node("begin", nothing)
    graph.add_node("last", nothing, action_mode="all")
    for i in range(case.size):
        graph.add_node(f"n{i}", work)
        graph.add_edge("begin", f"n{i}")
        graph.add_edge(f"n{i}", "last")
    graph.set_entry_point("begin")
    engine = graph.build()

    async def go():
        return (await engine.run({"n": 0}))["n"]

    return go


def dag(case):
    from evofabric.core.graph import GraphBuilder

    fired = []

    async def work(state):
        fired.append(1)
        return {}

    graph = GraphBuilder(state_schema=state(n=(int, "overwrite")))
    for i in range(case.size):
        graph.add_node(f"n{i}", work, action_mode="all")
    for a, b in case.edges:
        graph.add_edge(f"n{a}", f"n{b}")
    graph.set_entry_point("n0")
    engine = graph.build()

    async def go():
        fired.clear()
        await engine.run({"n": 0})
        return len(fired)

    return go


def loop(case):
    from evofabric.core.graph import GraphBuilder

    async def same(state):
        return {}

    graph = GraphBuilder(state_schema=state(n=(int, "overwrite")))
    graph.add_node("a", add)
    graph.add_node("b", same)
    graph.add_edge("a", "b")
    graph.add_condition_edge(
        "b", lambda state: "a" if state["n"] < case.size else "end", {"a", "end"}
    )
    graph.set_entry_point("a")
    engine = graph.build()

    async def go():
        return (await engine.run({"n": 0}))["n"]

    return go


def growing(case):
    from evofabric.core.graph import GraphBuilder

    async def step(state):
        case.mark()
        return {"n": state["n"] + 1, "log": ["m"]}

    graph = GraphBuilder(state_schema=state(n=(int, "overwrite"), log=(list, "bench_extend")))
    graph.add_node("step", step)
    graph.add_condition_edge(
        "step", lambda state: "step" if state["n"] < case.size else "end", {"step", "end"}
    )
    graph.set_entry_point("step")
    engine = graph.build()

    async def go():
        return len((await engine.run({"n": 0, "log": []}))["log"])

    return go


def payload(case):
    engine, records = row(50, add, data=(list, "overwrite")), case.records

    async def go():
        result = await engine.run({"n": 0, "data": records})
        return result["n"], len(result["data"])

    return go


def crowd(case):
    """Return an engine for each run: one engine has one run at a time."""
    import asyncio

    async def step(state):
        await case.wait()
        return {"n": state["n"] + 1}

    engines = [row(10, step) for _ in range(case.size)]

    async def go():
        return [
            result["n"]
            for result in await asyncio.gather(*(engine.run({"n": 0}) for engine in engines))
        ]

    return go


def first():
    import asyncio

    assert asyncio.run(row(2, add).run({"n": 0}))["n"] == 2
