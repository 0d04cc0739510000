"""Components, levels and paths, against their definitions."""

from __future__ import annotations

import itertools

from hypothesis import given, settings, strategies as st

from axil.spec.check import shortest_path
from axil.spec.components import components, is_cyclic, levels


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    n = draw(st.integers(1, 9))
    return [draw(st.lists(st.integers(0, n - 1), max_size=4)) for _ in range(n)]


def reach(graph: list[list[int]], start: int) -> set[int]:
    """Return the targets of one or more edges."""
    seen: set[int] = set()
    stack = [start]
    while stack:
        for w in graph[stack.pop()]:
            if w not in seen:
                seen.add(w)
                stack.append(w)
    return seen


law = settings(deadline=None, print_blob=True, max_examples=200)


@law
@given(graphs())
def test_two_vertices_share_a_component_if_each_reaches_the_other(graph):
    found = components(graph)
    assert sorted(v for c in found for v in c) == list(range(len(graph)))
    of = {v: i for i, c in enumerate(found) for v in c}
    reached = [reach(graph, v) for v in range(len(graph))]
    for a in range(len(graph)):
        for b in range(len(graph)):
            assert (of[a] == of[b]) == (a == b or (a in reached[b] and b in reached[a]))


@law
@given(graphs())
def test_components_come_sources_first(graph):
    of = {v: i for i, c in enumerate(components(graph)) for v in c}
    assert all(of[v] <= of[w] for v in range(len(graph)) for w in graph[v])


@law
@given(graphs())
def test_a_component_is_cyclic_if_a_vertex_reaches_itself(graph):
    for component in components(graph):
        assert is_cyclic(component, graph) == (component[0] in reach(graph, component[0]))


@law
@given(graphs())
def test_an_edge_between_components_climbs_at_least_one_level(graph):
    of = {v: i for i, c in enumerate(components(graph)) for v in c}
    level = levels(graph)
    for v in range(len(graph)):
        before = [level[u] for u in range(len(graph)) for w in graph[u] if of[w] == of[v] != of[u]]
        assert level[v] == max(before, default=-1) + 1


@law
@given(graphs())
def test_a_shortest_path_is_a_path_and_exists_where_one_vertex_reaches_the_other(graph):
    for start in range(len(graph)):
        for goal in range(len(graph)):
            path = shortest_path(graph.__getitem__, start, goal)
            assert (path is not None) == (goal in reach(graph, start))
            if path is not None:
                assert (path[0], path[-1]) == (start, goal)
                assert all(b in graph[a] for a, b in itertools.pairwise(path))


def test_a_hundred_thousand_vertices_in_a_row_need_no_recursion():
    n = 100_000
    chain = [[i + 1] for i in range(n - 1)] + [[]]
    assert len(components(chain)) == n
    assert levels(chain)[-1] == n - 1
    ring = [*chain[:-1], [0]]
    assert components(ring) == [list(range(n))]
