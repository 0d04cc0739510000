"""pydantic-graph's class API, as its first major version has it: a class for each node, which names
its successor by its return type.
"""

from __future__ import annotations

from dataclasses import dataclass

TITLE = "pydantic-graph, classes"
KIND = "peer"
REQUIRES = ("pydantic-graph<2",)
PACKAGE = "pydantic-graph"
IMPORT = "pydantic_graph"


@dataclass
class Counter:
    """The state of a run, which its nodes change."""

    n: int = 0
    data: list | None = None


def kind(name, run):
    """Return a node class."""
    import types

    from pydantic_graph import BaseNode

    return dataclass(
        types.new_class(
            name,
            (BaseNode[Counter, None, int],),
            {},
            lambda body: body.update(run=run, __module__=__name__),
        )
    )


def row(size, wait=None):
    """``size`` classes in a row."""
    from pydantic_graph import End, Graph, GraphRunContext

    classes = {}

    def made(i):
        after = f"N{i + 1}" if i + 1 < size else None

        async def run(self, ctx):
            if wait is not None:
                await wait()
            ctx.state.n += 1
            return classes[after]() if after else End(ctx.state.n)

        run.__annotations__ = {"ctx": GraphRunContext[Counter], "return": after or End[int]}
        return kind(f"N{i}", run)

    for i in range(size):
        classes[f"N{i}"] = made(i)
    for node in classes.values():  # forward references to classes made here
        reported = node.run.__annotations__["return"]
        node.run.__annotations__["return"] = (
            classes.get(reported, reported) if isinstance(reported, str) else reported
        )
    return Graph(nodes=tuple(classes.values())), classes["N0"]


def chain(case):
    graph, begin = row(case.size)

    async def go():
        return (await graph.run(begin(), state=Counter())).output

    return go


def streamed(case):
    graph, begin = row(case.size)

    async def go():
        steps = 0
        async with graph.iter(begin(), state=Counter()) as run:
            async for _ in run:
                steps += 1
        assert steps >= case.size
        return run.result.output

    return go


def turning(case, again, body):
    """Two nodes, of which the second leads back."""
    from pydantic_graph import End, Graph, GraphRunContext

    kinds = {}

    async def run_a(self, ctx):
        body(ctx.state)
        return kinds["B"]()

    async def run_b(self, ctx):
        return kinds["A"]() if again(ctx.state) else End(ctx.state.n)

    for name, run in (("A", run_a), ("B", run_b)):
        run.__annotations__ = {"ctx": GraphRunContext[Counter], "return": None}
        kinds[name] = kind(name, run)
    run_a.__annotations__["return"] = kinds["B"]
    run_b.__annotations__["return"] = kinds["A"] | End[int]
    return Graph(nodes=tuple(kinds.values())), kinds["A"]


def loop(case):
    def add(state):
        state.n += 1

    graph, begin = turning(case, lambda state: state.n < case.size, add)

    async def go():
        return (await graph.run(begin(), state=Counter())).output

    return go


def growing(case):
    def add(state):
        case.mark()
        state.n += 1
        state.data.append("m")

    graph, begin = turning(case, lambda state: state.n < case.size, add)

    async def go():
        state = Counter(data=[])
        await graph.run(begin(), state=state)
        return len(state.data)

    return go


def payload(case):
    records = case.records
    graph, begin = row(50)

    async def go():
        state = Counter(data=records)
        return (await graph.run(begin(), state=state)).output, len(state.data)

    return go


def crowd(case):
    import asyncio

    graph, begin = row(10, case.wait)

    async def go():
        results = await asyncio.gather(
            *(graph.run(begin(), state=Counter()) for _ in range(case.size))
        )
        return [result.output for result in results]

    return go


def first():
    import asyncio

    graph, begin = row(2)
    assert asyncio.run(graph.run(begin(), state=Counter())).output == 2
