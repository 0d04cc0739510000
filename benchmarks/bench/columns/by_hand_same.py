"""Written by hand with asyncio, the same as a graph does: tasks, fields folded in the order of
edges, a state of its own on each path.

No journal, limits, places of errors, or bodies kept apart.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

TITLE = "asyncio, by hand, the same"
KIND = "baseline"
FAR = True


class Token(NamedTuple):
    """The payload and the state of an edge."""

    edge: int
    payload: dict[str, Any]
    state: dict[str, Any]


class Graph:
    """Nodes by number; the first begins, and the last to end gives what the graph gives."""

    def __init__(self, bodies, edges, field):
        """``field``: what each edge carries of an output that has it."""
        self.bodies, self.field = bodies, field
        self.out = [[] for _ in bodies]
        self.waits = [0] * len(bodies)
        for number, (source, target) in enumerate(edges):
            self.out[source].append((number, target))
            self.waits[target] += 1

    async def run(self):
        """Return how many nodes have fired, and what the last of them gave."""
        waits, fired, over = list(self.waits), 0, asyncio.Event()
        came: dict[int, list[Token]] = {}
        start, last = {"n": 0}, {}
        under_way = set()

        async def fire(node):
            nonlocal fired, last
            tokens = sorted(came.pop(node, ()), key=lambda token: token.edge)
            state = joined([token.state for token in tokens]) if tokens else start
            last = await self.bodies[node](folded([token.payload for token in tokens]))
            delta = {name: value for name, value in last.items() if name in state}
            after = {**state, **delta} if delta else state
            fired += 1
            sends = [
                (
                    target,
                    Token(
                        number, {self.field: last[self.field]} if self.field in last else {}, after
                    ),
                )
                for number, target in self.out[node]
            ]
            for target, token in sends:
                came.setdefault(target, []).append(token)
                waits[target] -= 1
                if not waits[target]:
                    begin(target)
            if fired == len(self.bodies):
                over.set()

        def begin(node):
            task = asyncio.create_task(fire(node))
            under_way.add(task)
            task.add_done_callback(under_way.discard)

        begin(0)
        await over.wait()
        return fired, last


def folded(payloads):
    """Fields that come more than once become lists, and lists are put behind one another."""
    result: dict[str, Any] = {}
    made = set()
    for payload in payloads:
        for name, value in payload.items():
            if name not in result:
                result[name] = value
                continue
            if name not in made:
                made.add(name)
                result[name] = (
                    list(result[name]) if isinstance(result[name], list) else [result[name]]
                )
            result[name] += value if isinstance(value, list) else [value]
    return result


def joined(states):
    """Return the one state if there are no writes; else the writes, in order."""
    first = states[0]
    for state in states:
        if state is not first:
            first = {**first, **state}
    return first


def fan(case):
    async def begin(inputs):
        return {}

    async def work(inputs):
        await case.wait()
        return {"part": [1]}

    async def end(inputs):
        return {"n": sum(inputs["part"])}

    size = case.size
    edges = [*((0, i + 1) for i in range(size)), *((i + 1, size + 1) for i in range(size))]
    graph = Graph([begin, *[work] * size, end], edges, "part")

    async def go():
        return (await graph.run())[1]["n"]

    return go


def dag(case):
    async def work(inputs):
        return {"in": len(inputs)}

    graph = Graph([work] * case.size, case.edges, "in")

    async def go():
        return (await graph.run())[0]

    return go
