"""axil, with node classes as plugins have them: bodies of the kernel's own protocol, for which
nothing is adapted.
"""

from __future__ import annotations

from ..workloads import NODES_OF_A_RUN

TITLE = "axil, node classes"
KIND = "ours"
PACKAGE = "axil"
FAR = True


def kind(call):
    """Return a node class whose body is ``await call(task) -> Out``."""

    class Node:
        mode, wants_ctx = "async", False

        def adapted(self, rules):
            return self

        async def __call__(self, task, ctx, /):
            return call(task)

    return Node


def plain_kind(call):
    """Return a node class whose body is ``call(task) -> Out``."""

    class Node:
        mode, wants_ctx = "inline", False

        def adapted(self, rules):
            return self

        def __call__(self, task, ctx, /):
            return call(task)

    return Node


def row(bodies, attributes):
    from axil import RootGraph

    graph = RootGraph("row", attributes=attributes)
    for i, body in enumerate(bodies):
        graph.create_node(body, name=f"n{i}")
    graph.edge_from_entry("n0", {})
    for i in range(1, len(bodies)):
        graph.create_edge(f"n{i - 1}", f"n{i}", {})
    graph.edge_to_exit(f"n{len(bodies) - 1}", {})
    return graph.build()


def chain(case):
    from axil import Out

    add = kind(lambda task: Out({}, {"n": task.state["n"] + 1}))
    graph = row([add] * case.size, {"n": 0})

    async def go():
        return (await graph.run()).attributes["n"]

    return go


def plain(case):
    from axil import Out

    add = plain_kind(lambda task: Out({}, {"n": task.state["n"] + 1}))
    graph = row([add] * case.size, {"n": 0})

    async def go():
        return (await graph.run()).attributes["n"]

    return go


def idle(case):
    from axil import Out

    nothing = Out({})
    node = plain_kind(lambda task: nothing)
    graph = row([node] * case.size, {})

    async def go():
        return (await graph.run()).usage.firings

    return go


def fields(case):
    from axil import Out

    def writer(field):
        return kind(lambda task: Out({}, {field: task.state[field] + 1}))

    writers = [writer(f"f{i}") for i in range(case.size)]
    graph = row(
        [writers[i % case.size] for i in range(1000)], {f"f{i}": 0 for i in range(case.size)}
    )

    async def go():
        return sum((await graph.run()).attributes.values())

    return go


def loop(case):
    return turning(case, kind)


def plain_loop(case):
    return turning(case, plain_kind)


def turning(case, kind):
    from axil import Out, RootGraph

    nothing = Out({})
    graph = RootGraph("loop", attributes={"n": 0}, cycles="allow")
    graph.create_node(kind(lambda task: Out({}, {"n": task.state["n"] + 1})), name="a")
    graph.create_node(kind(lambda task: nothing), name="b")
    graph.edge_from_entry("a", {})
    graph.create_edge("a", "b", {})
    graph.create_edge("b", "a", {}, when=lambda state: state["n"] < case.size)
    graph.edge_to_exit("b", {}, when=lambda state: state["n"] >= case.size)
    graph.set_cycle_limit("a", None)
    graph.build()

    async def go():
        return (await graph.run()).attributes["n"]

    return go


def crowd(case):
    import asyncio

    from axil import Out

    class Node:
        mode, wants_ctx = "async", False

        def adapted(self, rules):
            return self

        async def __call__(self, task, ctx, /):
            await case.wait()
            return Out({}, {"n": task.state["n"] + 1})

    graph = row([Node] * NODES_OF_A_RUN, {"n": 0})

    async def go():
        results = await asyncio.gather(*(graph.run() for _ in range(case.size)))
        return [result.attributes["n"] for result in results]

    return go
