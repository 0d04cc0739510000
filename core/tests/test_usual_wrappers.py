"""The nodes that the wrappers of a graph apply to."""

from __future__ import annotations

from typing import Any

import pytest

from axil import CustomNode, RootGraph, SpecError


class Noting:
    """A wrapper that notes which nodes it wraps."""

    def __init__(self) -> None:
        self.nodes: list[str] = []

    def wrap(self, body: Any, info: Any) -> Any:
        self.nodes.append(info.name)
        return body


class Mine(CustomNode):
    """A node class of its own."""


@pytest.mark.parametrize("key", ["CustomNode", "custom_node", CustomNode, "mine", Mine, "*"])
def test_wrappers_of_a_graph_find_nodes_by_the_name_of_their_type(key: Any):
    wrapper = Noting()
    g = RootGraph("g", node_wrappers={key: [wrapper]})
    g.create_node(Mine, name="a")
    g.create_edges([("entry", "a"), ("a", "exit")])
    g.build()
    assert wrapper.nodes == ["a"]


def test_a_key_that_fits_no_node_is_an_error():
    g = RootGraph("g", node_wrappers={"agnet": [Noting()]})
    g.create_node(CustomNode, name="a")
    g.create_edges([("entry", "a"), ("a", "exit")])
    with pytest.raises(SpecError, match=r"AX170.*agnet"):
        g.build()
