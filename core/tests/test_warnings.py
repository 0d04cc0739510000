"""Warnings of the check that ``build`` shows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

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


class Topic(TypedDict):
    topic: str


class Brief(TypedDict):
    text: str
    notes: NotRequired[list[str]]


@dataclass
class Question:
    topic: str


class Wide(TypedDict, total=False):
    text: str


def ends(
    taken: type, given: type, entry: Sequence[str], *exits: Sequence[str], **options: Any
) -> list[str]:
    """Return what ``build`` warns of in a graph with these keys of edges at its ends."""
    g = RootGraph[taken, given]("g")
    g.create_node(CustomNode, name="a")
    g.edge_from_entry("a", entry, **options)
    for number, keys in enumerate(exits):
        g.edge_to_exit("a", keys, group=str(number))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        g.build()
    return [str(each.message) for each in seen]


@pytest.mark.parametrize("taken", [Topic, Question])
def test_keys_at_the_ends_are_held_against_the_types_of_inputs_and_outputs(taken):
    assert ends(taken, Brief, ["topic"], ["text"], ["notes"]) == []
    assert ends(taken, Wide, ["topic"], ["text"]) == []
    [entry] = ends(taken, Brief, ["topci"], ["text"])
    assert entry.startswith("AX983 edge @entry->a: the edge carries topci, which")
    assert entry.endswith('Did you mean "topic"?')
    [exit] = ends(taken, Brief, ["topic"], ["text"], ["ntoes"])
    assert exit.startswith("AX983 edge a->@exit: the edge carries ntoes, which Brief does not")
    assert exit.endswith('Did you mean "notes"?')


def test_a_field_of_the_outputs_that_no_edge_brings_is_warned_of():
    [missing] = ends(Topic, Brief, ["topic"], ["notes"])
    assert "AX983 edge a->@exit: no edge brings text to the exit, which Brief has." in missing
    assert ends(Topic, Brief, ["topic"], ["notes"], ["text"]) == []


def test_an_edge_from_the_entry_to_the_exit_is_at_both_ends():
    g = RootGraph[Topic, Brief]("g")
    g.create_node(CustomNode, name="a")
    g.edge_from_entry("a", ["topic"])
    g.edge_to_exit("a", ["notes"])
    g.create_edge("entry", "exit", ["text"])
    with pytest.warns(GraphWarning, match="AX983.*carries text, which Topic"):
        g.build()


def test_nothing_is_said_of_types_without_names_and_of_edges_that_rewrite():
    assert ends(dict[str, str], object, ["topci"], ["text"]) == []
    assert ends(Topic, Brief, ["topci"], ["text"], process=dict) == []
    wide = RootGraph[Topic]("wide")  # the types may be left out from the end
    wide.create_node(CustomNode, name="a")
    wide.edge_from_entry("a", ["topic"])
    wide.edge_to_exit("a", {"topic": "of any name"})
    assert wide.build().invoke({"topic": "axils"}).output == {"topic": "axils"}
