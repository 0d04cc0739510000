"""A fan and a random graph whose bodies do not wait, by hand; each line adds something that a join
gives its node; µs a node.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from ..case import acyclic
from ..columns import by_hand_same
from .hands import Hands, Job
from .measure import awaited, lines, sentence

SIZES: Sequence[int] = (100, 1000, 10_000)
QUICK: Sequence[int] = (10,)

Go = Callable[[], Coroutine[Any, Any, int]]


class Token(NamedTuple):
    """The payload of one edge."""

    edge: int
    payload: dict[str, Any]
    state: dict[str, Any]
    ordinal: tuple[int, ...]


class Graph:
    """The edges of a case, by where they begin, and how many each node waits for."""

    def __init__(self, size: int, edges: Sequence[tuple[int, int]]) -> None:
        self.size, self.edges = size, edges
        self.out: list[list[tuple[int, int]]] = [[] for _ in range(size)]
        self.waits = [0] * size
        for number, (source, target) in enumerate(edges):
            self.out[source].append((number, target))
            self.waits[target] += 1


def fanned(size: int) -> list[tuple[int, int]]:
    """Edges from the first node to all others, and from them to the last."""
    return [(0, i) for i in range(1, size - 1)] + [(i, size - 1) for i in range(1, size - 1)]


async def body(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return what a node does."""
    return {"in": len(inputs)}


def in_tasks(graph: Graph) -> Go:
    """Return a task for every node as soon as the last before it has ended; nothing is handed
    along.
    """

    async def go() -> int:
        waits, done, ended = list(graph.waits), 0, asyncio.Event()

        async def fire(node: int) -> None:
            nonlocal done
            await body({})
            done += 1
            for _, target in graph.out[node]:
                waits[target] -= 1
                if not waits[target]:
                    under_way.add(asyncio.create_task(fire(target)))
            if done == graph.size:
                ended.set()

        under_way = {asyncio.create_task(fire(0))}
        await ended.wait()
        return done

    return go


def awaited_in_turn(graph: Graph) -> Go:
    """Return one task awaits the bodies in turn; nothing is handed along."""

    async def go() -> int:
        waits, due, done = list(graph.waits), deque([0]), 0
        while due:
            node = due.popleft()
            await body({})
            done += 1
            for _, target in graph.out[node]:
                waits[target] -= 1
                if not waits[target]:
                    due.append(target)
        return done

    return go


def with_inputs(graph: Graph) -> Go:
    """And each edge carries one field, and each node gets what came, folded in the order of its
    edges.
    """

    async def go() -> int:
        waits, due, done = list(graph.waits), deque([0]), 0
        came: list[list[tuple[int, dict[str, Any]]]] = [[] for _ in range(graph.size)]
        while due:
            node = due.popleft()
            came[node].sort(key=lambda each: each[0])
            output = await body(folded([payload for _, payload in came[node]]))
            done += 1
            for number, target in graph.out[node]:
                came[target].append((number, {"in": output["in"]}))
                waits[target] -= 1
                if not waits[target]:
                    due.append(target)
        return done

    return go


def with_state(graph: Graph) -> Go:
    """And a state, which each node may write to without its neighbours seeing it, and a name for
    everything that happens.
    """

    async def go() -> int:
        waits, due, done = list(graph.waits), deque([0]), 0
        came: dict[int, list[Token]] = {}
        taken: set[int] = set()
        start: dict[str, Any] = {"n": 0}
        while due:
            node = due.popleft()
            tokens = sorted(came.pop(node, ()), key=lambda token: (token.edge, token.ordinal))
            state = joined([token.state for token in tokens]) if tokens else start
            taken.add(node)
            output = await body(folded([token.payload for token in tokens]))
            if not isinstance(output, dict):
                raise TypeError(node)
            taken.discard(node)
            done += 1
            sends = [(number, target, {"in": output["in"]}) for number, target in graph.out[node]]
            for number, target, payload in sends:
                came.setdefault(target, []).append(Token(number, payload, state, ()))
                waits[target] -= 1
                if not waits[target]:
                    due.append(target)
        return done

    return go


def with_state_in_tasks(graph: Graph) -> Go:
    """Return the same, with a task for every node."""
    same = by_hand_same.Graph([body] * graph.size, graph.edges, "in")

    async def go() -> int:
        return (await same.run())[0]

    return go


def in_hands(graph: Graph) -> Go:
    """Without tasks again, but bodies may wait, fail and be cancelled, leave nothing behind, and
    share no value with anybody.
    """

    async def go() -> int:
        waits, done = list(graph.waits), 0
        came: dict[int, list[Token]] = {}
        start: dict[str, Any] = {"n": 0}

        def begin(job: Job) -> Coroutine[Any, Any, dict[str, Any]]:
            return body({**folded([token.payload for token in job.tokens])})

        def hear(job: Job, given: dict[str, Any]) -> None:
            nonlocal done
            if not isinstance(given, dict):
                raise TypeError(job.node)
            done += 1
            output = {**given}
            delta = {name: value for name, value in output.items() if name in job.state}
            state = {**job.state, **delta} if delta else job.state
            sends: list[tuple[int, Token]] = []
            for number, target in graph.out[job.node]:
                try:
                    sends.append((target, Token(number, {"in": output["in"]}, state, ())))
                except Exception as error:
                    error.add_note(f"on the edge {number}")
                    raise
            for target, token in sends:
                came.setdefault(target, []).append(token)
                waits[target] -= 1
                if not waits[target]:
                    tokens = sorted(came.pop(target), key=lambda token: (token.edge, token.ordinal))
                    hands.put(Job(target, tokens, joined([token.state for token in tokens])))

        hands = Hands(begin, hear)
        hands.put(Job(0, (), start))
        await hands.done()
        return done

    return go


def folded(payloads: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Fields that come more than once become lists."""
    result: dict[str, Any] = {}
    made: set[str] = set()
    for payload in payloads:
        for name, value in payload.items():
            if name not in result:
                result[name] = value
            elif name in made:
                result[name].append(value)
            else:
                made.add(name)
                result[name] = [result[name], value]
    return result


def joined(states: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the one state if there are no writes."""
    first = states[0]
    for state in states:
        if state is not first:
            first = {**first, **state}
    return first


WAYS = (in_tasks, awaited_in_turn, with_inputs, with_state, with_state_in_tasks, in_hands)


def table(sizes: Sequence[int]) -> str:
    """Return a line for each way."""
    graphs = {("fan", n): Graph(n, fanned(n)) for n in sizes} | {
        ("random graph", n): Graph(n, acyclic(n, 3)) for n in sizes
    }
    rows = [
        [sentence(way), *(awaited(way(graph)) / graph.size * 1e6 for graph in graphs.values())]
        for way in WAYS
    ]
    return lines(("by hand", *(f"{what} of {n:,}" for what, n in graphs)), rows)
