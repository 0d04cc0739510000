"""Templates: what nodes are made of, and which rule wins."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

from masfactory import (
    CustomNode,
    Factory,
    Graph,
    HistoryMemory,
    Loop,
    NodeTemplate,
    RootGraph,
    Shared,
    template_defaults,
    template_defaults_for,
    template_overrides,
    template_overrides_for,
)
from masfactory.utils.path_filter import match_path_filter, parse_path_filter


def made(template: NodeTemplate[Any], name: str = "n") -> Any:
    return RootGraph("g").create_node(template, name=name)


def test_the_later_and_the_stronger_rule_wins():
    own = NodeTemplate(CustomNode, attributes={"from": "template"})
    bare = NodeTemplate(CustomNode)
    with (
        template_defaults(attributes={"from": "defaults"}),
        template_defaults_for(type_filter=CustomNode, attributes={"from": "defaults_for"}),
    ):
        assert made(bare).attributes == {"from": "defaults_for"}
        assert made(own).attributes == {"from": "template"}
        with template_overrides(attributes={"from": "overrides"}):
            assert made(own).attributes == {"from": "overrides"}
            with template_overrides_for(name_filter="n", attributes={"from": "overrides_for"}):
                assert made(own).attributes == {"from": "overrides_for"}
                assert made(own, "other").attributes == {"from": "overrides"}
    assert made(own).attributes == {"from": "template"}


def test_rules_give_only_what_a_class_takes_and_leave_plain_classes_alone():
    with template_overrides(max_iterations=5, attributes={"a": 1}):
        graph = RootGraph("g")
        assert graph.create_node(NodeTemplate(Loop), name="loop").max_iterations == 5
        assert graph.create_node(NodeTemplate(CustomNode), name="node").attributes == {"a": 1}
        assert graph.create_node(Loop, name="plain").max_iterations == 10


def test_a_path_chooses_nodes_by_the_graphs_around_them():
    inner = NodeTemplate(
        Graph,
        nodes=[("leaf", NodeTemplate(CustomNode))],
        edges=[("entry", "leaf", {}), ("leaf", "exit", {})],
    )
    graph = RootGraph("root", nodes=[("one", inner), ("two", inner)])
    graph._declared[1].extend([("entry", "one", {}), ("one", "two", {}), ("two", "exit", {})])
    with template_overrides_for(path_filter="one>leaf", attributes={"chosen": True}):
        graph.build()
    one, two = graph.nodes
    assert one.nodes[0].attributes == {"chosen": True}
    assert two.nodes[0].attributes == {}


@pytest.mark.parametrize(
    ("reported", "matches"),
    [
        ("b>c", True),
        ("a>c", False),
        ("a>*>c", True),
        ("a>**>c", True),
        ("**>a", True),
        ("c>*", False),
        ("*>*>*>*", False),
    ],
)
def test_a_path_filter_matches_a_part_of_a_path(reported, matches):
    assert match_path_filter(parse_path_filter(reported), ("a", "b", "c")) is matches


def test_a_path_filter_with_an_empty_part_is_refused():
    with pytest.raises(ValueError, match='found the part ""'):
        parse_path_filter("a>>b")


def test_names_are_chosen_by_text_pattern_collection_and_function():
    for chosen in ("n", re.compile("^n$"), {"n", "m"}, lambda name: name == "n"):
        with template_overrides_for(name_filter=chosen, attributes={"hit": 1}):
            assert made(NodeTemplate(CustomNode)).attributes == {"hit": 1}
            assert made(NodeTemplate(CustomNode), "x").attributes == {}


def test_each_node_has_copies_but_of_what_is_shared():
    shared = HistoryMemory()
    template = NodeTemplate(
        CustomNode, memories=[HistoryMemory(), Shared(shared), Factory(HistoryMemory)]
    )
    one, two = made(template), made(template)
    assert one.memories[0] is not two.memories[0]
    assert one.memories[1] is two.memories[1] is shared
    assert one.memories[2] is not two.memories[2]


def test_a_derived_template_leaves_the_first_one_alone():
    first = NodeTemplate(CustomNode, attributes={"a": 1})
    assert made(first(attributes={"a": 2})).attributes == {"a": 2}
    assert made(first.clone()).attributes == {"a": 1}


def test_what_cannot_be_copied_is_named_with_what_to_do():
    with pytest.raises(TypeError, match=r'"memories" of a template holds a lock.*Give Shared'):
        made(NodeTemplate(CustomNode, memories=[threading.Lock()]))
