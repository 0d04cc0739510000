"""Random workflows come to the same in all ways of running them, and to what the model says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from . import ways
from .generation import random_graph
from .graphs import ENTRY, EXIT, Edge, Graph, Node

GRAPHS = 100_000 if ways.LONG else 100
BLOCK = 500 if ways.LONG else 50
"""Workflows of one test: small, so that they spread over processes."""
MOST = 1 if ways.LONG else 4
"""Ways beside the plain one in which each workflow is run."""


@pytest.fixture(autouse=True)
def _workers() -> Iterator[None]:
    """Give each block of workflows processes of its own."""
    yield
    ways.PROCESSES.end()


@pytest.mark.parametrize("first", range(0, GRAPHS, BLOCK))
def test_random_workflows_come_to_the_same_in_all_ways(first: int):
    for seed in range(first, first + BLOCK):
        graph = random_graph(seed)
        found = next(ways.compared(graph, seed, most=MOST), None)
        if found is not None:
            pytest.fail(ways.report(graph, seed, found), pytrace=False)


def test_every_way_is_taken_for_many_workflows():
    taken = dict.fromkeys(ways.WAYS, 0)
    for seed in range(1_000):
        for way in ways.choice(random_graph(seed), seed, 4):
            taken[way.name] += 1
    assert min(taken.values()) >= 50, taken


def test_a_workflow_that_files_can_express_is_shown_as_one():
    node, edges = Node(name="a", writes=("last",)), (Edge(source=ENTRY, target="a"),)
    leaving = Edge(source="a", target=EXIT)
    assert ways.as_yaml(Graph(nodes=(node,), edges=(*edges, leaving))).startswith("graph:")
    assert ways.as_yaml(Graph(nodes=(node,), edges=edges)) == ""
    assert ways.as_yaml(Graph(nodes=(replace(node, merges=True),), edges=(*edges, leaving))) == ""
