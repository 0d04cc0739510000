"""Warnings of the check that ``build`` shows."""

from __future__ import annotations

from typing import Any

import pytest

from axil import ComponentRef, CustomNode, GraphWarning, RootGraph
from axil.plugin import EdgeInput


def lonely() -> RootGraph:
    g = RootGraph("g")
    a = g.create_node(CustomNode, name="a")
    b = g.create_node(CustomNode, name="b")
    g.edge_from_entry(a, ["x"])
    g.edge_to_exit(a, ["x"])
    g.create_edge(b, a, ["x"])
    return g


def test_build_shows_a_warning_of_the_check_as_a_warning_of_python():
    with pytest.warns(GraphWarning, match=r'AX113.*"b"') as seen:
        lonely().build()
    assert [w.filename for w in seen] == [__file__]


def test_a_warning_made_an_error_leaves_the_graph_open():
    g = lonely()
    with pytest.raises(GraphWarning):
        g.build()
    g.edge_from_entry("b", ["x"])
    assert g.build().invoke({"x": 1})[0] == {"x": [1, 1]}


def test_a_graph_without_a_result_is_warned_of():
    def graph(**options: Any) -> RootGraph:
        g = RootGraph("g", **options)
        g.edge_from_entry(g.create_node(CustomNode, name="a"), ["x"])
        return g

    with pytest.warns(GraphWarning, match=r'AX177 graph "g": no edge.*edge_to_exit\("a"'):
        graph().build()
    # the result of one with attributes or with typed state is its state
    assert graph(attributes={"x": 0}).build().invoke({"x": 1}).attributes == {"x": 1}
    graph(state="messages").build()


class Sorts:
    """A node that declares its output."""

    strict = True
    gives = ("category",)

    def run(self) -> dict[str, str]:
        return {"category": "spam"}


class Reads:
    """A condition that says what it reads."""

    def __init__(self, name: str) -> None:
        self.reads = {("message", name)}

    def __call__(self, seen: EdgeInput) -> bool:
        return True


def test_a_condition_on_a_field_that_is_not_declared_is_warned_of():
    def sorted_by(field: str) -> RootGraph:
        g = RootGraph("g")
        g.create_node(Sorts(), name="sort")
        g.edge_from_entry("sort", {})
        g.create_edge("sort", "exit", ["category"], when=ComponentRef.of(Reads(field)))
        return g

    with pytest.warns(GraphWarning, match=r'AX158.*categroy.*Did you mean "category"'):
        sorted_by("categroy").build()
    assert sorted_by("category").build().invoke({})[0] == {"category": "spam"}
