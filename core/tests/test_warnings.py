"""Warnings of the check that ``build`` shows."""

from __future__ import annotations

import pytest

from axil import CustomNode, GraphWarning, RootGraph


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
