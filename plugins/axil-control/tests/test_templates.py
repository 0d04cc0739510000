"""Laws of templates in Python: what nodes made of one have, and which scope wins."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from axil import CustomNode, Graph, GraphWarning, RootGraph
from axil_control import (
    Factory,
    NodeTemplate,
    Shared,
    template_defaults,
    template_defaults_for,
    template_overrides,
    template_overrides_for,
)
from axil_control.errors import ControlError


class Kept:
    """A node with a setting."""

    def __init__(self, memory: Any = None, mood: str = "none") -> None:
        self.memory, self.mood = memory, mood

    def run(self, inputs: Any, attributes: Any) -> Any:
        return {"message": f"{self.mood} {attributes.get('n')}"}


class Other(Kept):
    """A node of a kind of its own."""


def made(template: NodeTemplate[Any], name: str = "node", **settings: Any) -> Any:
    return RootGraph("root").create_node(template, name=name, **settings)


def test_settings_go_from_weak_to_strong():
    own, bare = NodeTemplate(Kept, mood="template"), NodeTemplate(Kept)
    with template_defaults(mood="defaults"), template_defaults_for(kind=Kept, mood="chosen"):
        assert (made(bare).mood, made(own).mood) == ("chosen", "template")
        assert made(own(mood="derived")).mood == "derived"
        assert made(own, mood="call").mood == "call"
        with template_overrides(mood="all"), template_overrides_for("b", mood="b"):
            assert (made(own, mood="call").mood, made(own, "b").mood) == ("all", "b")
    assert made(bare).mood == "none"


def test_rules_give_only_what_a_kind_takes():
    with template_overrides(mood="high", attributes={"n": 1}, max_iterations=3):
        graph = RootGraph("root")
        graph.create_node(NodeTemplate(Kept), name="kept")
        graph.create_node(NodeTemplate(lambda attributes: dict(attributes)), name="function")
        plain = graph.create_node(Kept, name="plain")
    graph.create_edges([("entry", name) for name in graph.nodes])
    graph.create_edge("kept", "exit")
    graph.create_edge("function", "exit", ["n"])
    assert graph.build().invoke({"message": ""}).output == {"message": "high 1", "n": 1}
    assert plain.mood == "none"


def test_a_path_chooses_by_the_names_of_graphs():
    leaf = NodeTemplate(Kept)
    inner = NodeTemplate(Graph, nodes=[("leaf", leaf)], edges=[("entry", "leaf"), ("leaf", "exit")])
    with (
        template_overrides_for("root>*>leaf", mood="any"),
        template_overrides_for("two>leaf", kind=Kept, mood="two"),
    ):
        graph = RootGraph("root", nodes=[("one", inner), ("two", inner)])
        three = graph.create_node(Graph, name="three")
        three.create_node(leaf, name="leaf")
        deferred = graph.create_node(
            NodeTemplate(Graph, build_func=lambda graph: graph.create_node(leaf, name="leaf")),
            name="four",
        )
        deferred.to_spec()
    moods = [graph.nodes[name].nodes["leaf"].mood for name in ("one", "two", "three", "four")]
    assert moods == ["any", "two", "any", "any"]


def test_a_scope_that_fits_nothing_is_warned_of_where_it_stands():
    with (
        pytest.warns(GraphWarning, match=r'AX172 .* path "writer" and kind Other') as caught,
        template_overrides_for("writer", kind=Other, mood="x"),
    ):
        made(NodeTemplate(Kept), "writer")
    assert caught[0].filename == __file__


def test_nodes_have_copies_but_of_what_is_shared():
    shared: list[int] = []
    template = NodeTemplate(Kept, memory=[[], Shared(shared), Factory(list)])
    one, two = made(template).memory, made(template).memory
    assert one == two
    assert [a is b for a, b in zip(one, two, strict=True)] == [False, True, False]
    assert one[1] is shared


def test_a_template_of_a_node_type_by_name(registry: Any) -> None:
    graph = RootGraph("root", registry=registry)
    graph.create_node(NodeTemplate("literal", content="Hello.")(role="assistant"), name="say")
    graph.edge_from_entry("say")
    graph.edge_to_exit("say")
    assert graph.build().invoke({"message": ""}).output == {"message": "Hello."}


def test_what_cannot_be_a_template_or_be_copied_says_what_to_do():
    with pytest.raises(ControlError, match=r"AX615 .*Give its class"):
        NodeTemplate(CustomNode(lambda: {}))  # type: ignore[arg-type]
    with pytest.raises(ControlError, match=r"AX615 .*holds a lock.*Give Shared"):
        made(NodeTemplate(Kept, memory=threading.Lock()))
    with pytest.raises(ValueError, match="empty part"), template_defaults_for("a>>b", mood="x"):
        pass
