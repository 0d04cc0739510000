"""Random graphs that can be built, run, wrapped, and run again."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from axil import Limits, Workflow
from axil_testing.graphs import graphs, random_graph

law = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


async def run(case, **options):
    return await Workflow(case.spec(**options)).start({}).result()


def outcome(case, **options):
    result = asyncio.run(run(case, **options))
    return result.status, result.output, result.attributes, result.exits


@law
@given(graphs())
def test_an_acyclic_graph_is_done(case):
    result = asyncio.run(run(case))
    assert result.status == "done" or result.error.__cause__.id == "AX213"
    assert result.cycles == {}


@law
@given(graphs(cyclic=True))
def test_a_cyclic_graph_ends(case):
    result = asyncio.run(run(case))
    assert result.status in ("done", "limited") or (result.error.__cause__.id in ("AX402", "AX213"))


@law
@given(graphs(cyclic=True))
def test_a_graph_does_the_same_with_bodies_of_any_kind_and_around_them(case):
    first = outcome(case)
    if first[0] != "done":
        return

    def later(call, node):
        async def body(task, ctx):
            await asyncio.sleep(0)
            return call(task, ctx)

        return body

    assert outcome(case, mode="thread") == first
    assert outcome(case, wrap=later, mode="async") == first


@law
@given(
    graphs(
        cyclic=False,
        joins=("gate",),
        groups=False,
        data=False,
        switches=False,
        filters=False,
        depth=0,
        typed=True,
    )
)
def test_wishes_are_granted(case):
    assert case.typed
    assert all(
        node.join == "gate" and node.inside is None and not node.picks and not node.routes
        for node in case.nodes
    )
    assert all(edge.trigger and not edge.group and not edge.filters for edge in case.edges)


def test_a_seed_always_gives_the_same_graph():
    assert str(random_graph(7, cyclic=True)) == str(random_graph(7, cyclic=True))
    assert random_graph(7).spec().id == "random"


def test_a_wish_that_cannot_be_made_is_refused():
    with pytest.raises(TypeError):
        graphs(colour="red")


def test_dense_graphs_turn_skip_switch_and_fire_often():
    seen: Counter[str] = Counter()
    for seed in range(200):
        result = asyncio.run(run(random_graph(seed, cyclic=True)))
        seen["cycles"] += bool(result.cycles)
        seen["rounds"] += any(tally.rounds > tally.entries for tally in result.cycles.values())
        seen["firings"] += result.usage.firings
    assert seen["cycles"] > 30
    assert seen["rounds"] > 5
    assert seen["firings"] > 600
    assert Limits().firings is None
