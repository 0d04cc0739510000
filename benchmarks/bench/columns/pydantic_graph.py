"""pydantic-graph's builder: typed steps, edges, joins with reducers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

TITLE = "pydantic-graph, builder"
KIND = "peer"
REQUIRES = ("pydantic-graph>=2",)
PACKAGE = "pydantic-graph"
IMPORT = "pydantic_graph"


@dataclass
class Counter:
    """The state of a run, which its steps change."""

    n: int = 0


def built(state_type=Counter, output_type=int):
    from pydantic_graph import GraphBuilder

    return GraphBuilder(state_type=state_type, output_type=output_type)


def row(size, body, state_type=Counter):
    """``size`` steps in a row; the last one gives the counter."""
    g = built(state_type)
    steps = [g.step(body, node_id=f"n{i}") for i in range(size)]
    path = [g.edge_from(g.start_node).to(steps[0])]
    path += [g.edge_from(a).to(b) for a, b in itertools.pairwise(steps)]
    g.add(*path, g.edge_from(steps[-1]).to(g.end_node))
    return g.build()


async def add(ctx) -> int:
    ctx.state.n += 1
    return ctx.state.n


def chain(case):
    graph = row(case.size, add)

    async def go():
        return await graph.run(state=Counter())

    return go


def streamed(case):
    graph = row(case.size, add)

    async def go():
        steps = 0
        async with graph.iter(state=Counter()) as run:
            async for _ in run:
                steps += 1
        assert steps > case.size
        return run.output

    return go


def fan(case):
    from pydantic_graph import reduce_sum

    async def begin(ctx) -> int:
        return 1

    async def work(ctx) -> int:
        await case.wait()
        return ctx.inputs

    g = built()
    first = g.step(begin, node_id="begin")
    join = g.join(reduce_sum, initial=0, node_id="end")
    steps = [g.step(work, node_id=f"n{i}") for i in range(case.size)]
    g.add(
        g.edge_from(g.start_node).to(first),
        g.edge_from(first).to(*steps),
        g.edge_from(*steps).to(join),
        g.edge_from(join).to(g.end_node),
    )
    graph = g.build()

    async def go():
        return await graph.run(state=Counter())

    return go


def loop(case):
    from typing import Literal

    from pydantic_graph import TypeExpression

    async def same(ctx) -> str:
        return "again" if ctx.state.n < case.size else "over"

    async def over(ctx) -> int:
        return ctx.state.n

    g = built()
    a, b, end = g.step(add, node_id="a"), g.step(same, node_id="b"), g.step(over, node_id="end")
    decision = (
        g.decision()
        .branch(g.match(TypeExpression[Literal["again"]]).to(a))
        .branch(g.match(TypeExpression[Literal["over"]]).to(end))
    )
    g.add(
        g.edge_from(g.start_node).to(a),
        g.edge_from(a).to(b),
        g.edge_from(b).to(decision),
        g.edge_from(end).to(g.end_node),
    )
    graph = g.build()

    async def go():
        return await graph.run(state=Counter())

    return go


def mapped(case):
    from pydantic_graph import reduce_sum

    async def begin(ctx) -> list[int]:
        return list(range(case.size))

    async def work(ctx) -> int:
        return ctx.inputs + 1

    g = built()
    first, step = g.step(begin, node_id="begin"), g.step(work, node_id="work")
    join = g.join(reduce_sum, initial=0, node_id="end")
    g.add(
        g.edge_from(g.start_node).to(first),
        g.edge_from(first).map().to(step),
        g.edge_from(step).to(join),
        g.edge_from(join).to(g.end_node),
    )
    graph = g.build()

    async def go():
        return await graph.run(state=Counter())

    return go


@dataclass
class Log:
    log: list
    n: int = 0


def growing(case):
    from typing import Literal

    from pydantic_graph import TypeExpression

    async def step(ctx) -> str:
        case.mark()
        ctx.state.log.append("m")
        return "again" if len(ctx.state.log) < case.size else "over"

    async def over(ctx) -> int:
        return len(ctx.state.log)

    g = built(Log)
    a, end = g.step(step, node_id="a"), g.step(over, node_id="end")
    decision = (
        g.decision()
        .branch(g.match(TypeExpression[Literal["again"]]).to(a))
        .branch(g.match(TypeExpression[Literal["over"]]).to(end))
    )
    g.add(
        g.edge_from(g.start_node).to(a),
        g.edge_from(a).to(decision),
        g.edge_from(end).to(g.end_node),
    )
    graph = g.build()

    async def go():
        return await graph.run(state=Log([]))

    return go


def payload(case):
    records = case.records
    graph = row(50, add, Log)

    async def go():
        state = Log(records)
        return await graph.run(state=state), len(state.log)

    return go


def crowd(case):
    import asyncio

    async def step(ctx) -> int:
        await case.wait()
        ctx.state.n += 1
        return ctx.state.n

    graph = row(10, step)

    async def go():
        return list(await asyncio.gather(*(graph.run(state=Counter()) for _ in range(case.size))))

    return go


def first():
    import asyncio

    assert asyncio.run(row(2, add).run(state=Counter())) == 2
