"""Wrappers in graphs with typed state, and around loops and nodes that fire for each token."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import BaseModel

from axil import Graph, RootGraph
from axil_control import Loop
from axil_wrappers import Cache, Fallback, Retry, Timeout


class Talk(BaseModel):
    said: Annotated[list[str], "append"] = []
    total: Annotated[int, "sum"] = 0


class Flaky:
    """Fails so many times, then says something."""

    def __init__(self, failures):
        self.failures, self.calls = failures, 0

    async def __call__(self, state):
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionError
        return {"said": [f"{len(state.said)}"], "total": 2}


def typed(body, *wrappers):
    graph = RootGraph("typed", state=Talk)
    graph.create_node(body, name="x", wrappers=wrappers)
    graph.edge_from_entry("x")
    graph.edge_to_exit("x")
    return graph.build()


def test_a_typed_node_is_tried_again_and_writes_once():
    output, values = typed(Flaky(2), Retry(wait_seconds=0)).invoke({"said": ["a"]})
    assert values == {"said": ["a", "1"], "total": 2}
    assert output.total == 2


def test_a_typed_value_is_a_delta():
    assert typed(Flaky(9), Fallback(value={"total": 7})).invoke({})[1] == {"said": [], "total": 7}
    assert typed(Flaky(9), Fallback(use=Flaky(0))).invoke({})[1] == {"said": ["0"], "total": 2}


def test_what_a_typed_node_wrote_is_cached_by_the_state_it_saw():
    Cache.memory.clear()
    body = Flaky(0)
    graph = typed(body, Cache())
    assert (
        graph.invoke({"said": ["a"]})[1]
        == graph.invoke({"said": ["a"]})[1]
        == {"said": ["a", "1"], "total": 2}
    )
    assert graph.invoke({"said": ["b"]})[1] == {"said": ["b", "1"], "total": 2}
    assert body.calls == 2


def test_a_typed_graph_inside_is_tried_again_and_cached():
    Cache.memory.clear()
    body = Flaky(1)
    graph = RootGraph("outer", state=Talk)
    inner = graph.create_node(
        Graph,
        name="sub",
        state=Talk,
        wrappers=[Cache(), Retry(wait_seconds=0), Timeout(seconds=60)],
    )
    inner.create_node(body, name="x")
    inner.edge_from_entry("x")
    inner.edge_to_exit("x")
    graph.edge_from_entry(inner)
    graph.edge_to_exit(inner)
    graph.build()
    for _ in range(2):
        assert graph.invoke({"said": ["a"]})[1] == {"said": ["a", "1"], "total": 2}
    assert body.calls == 2


def test_a_loop_is_tried_again_from_its_first_round():
    rounds = []

    async def add(inputs):
        rounds.append(inputs["n"])
        if len(rounds) == 2:
            raise ConnectionError
        return {"n": inputs["n"] + 1}

    graph = RootGraph("t")
    loop = graph.create_node(Loop, name="loop", max_iterations=3, wrappers=[Retry(wait_seconds=0)])
    loop.create_node(add, name="add")
    loop.edge_from_controller("add", ["n"])
    loop.edge_to_controller("add", ["n"])
    graph.edge_from_entry(loop, ["n"])
    graph.edge_to_exit(loop, ["n"])
    assert graph.build().invoke({"n": 0})[0] == {"n": 3}
    assert rounds == [0, 1, 0, 1, 2]


def test_a_node_that_fires_for_each_token_is_tried_for_each():
    tried = []

    async def work(inputs):
        tried.append(inputs["n"])
        if tried.count(inputs["n"]) == 1:
            raise ConnectionError
        return {"n": inputs["n"]}

    graph = RootGraph("t")
    for n in (1, 2):
        graph.create_node(lambda n=n: {"n": n}, name=f"n{n}", inline=True)
        graph.edge_from_entry(f"n{n}", {})
    graph.create_node(work, name="work", join="each", wrappers=[Retry(wait_seconds=0)])
    for n in (1, 2):
        graph.create_edge(f"n{n}", "work", ["n"])
    graph.edge_to_exit("work", ["n"])
    result = asyncio.run(graph.build().start({}).result())
    assert (result.status, sorted(tried)) == ("done", [1, 1, 2, 2])


def test_items_of_a_graph_that_fails_are_reported_by_their_node():
    async def fail():
        raise ValueError("no")

    graph = RootGraph("t")
    inner = graph.create_node(Graph, name="sub", wrappers=[Timeout(seconds=60)])
    inner.create_node(fail, name="x")
    inner.edge_from_entry("x", {})
    inner.edge_to_exit("x", {})
    graph.edge_from_entry(inner, {})
    graph.edge_to_exit(inner, {})
    result = asyncio.run(graph.build().start({}).result())
    assert (result.status, result.error.path.split("/")[-1]) == ("failed", "x")
