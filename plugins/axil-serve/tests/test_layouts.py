"""Laws of the layouts that the page is given: what is open, what is kept, what is exported."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from axil_serve.layouts import Layouts, exported_layouts, layout_data


def scope(title: str, *nodes: dict[str, Any]) -> dict[str, Any]:
    """Return a graph whose nodes follow each other."""
    names = ["@entry", *(node["name"] for node in nodes), "@exit"]
    edges = [
        {"name": f"{one}->{other}", "source": one, "target": other, "label": "", "trigger": True}
        for one, other in pairwise(names)
    ]
    return {"kind": "graph", "title": title, "nodes": list(nodes), "edges": edges}


def node(name: str, level: int = 0, inside: Any = None) -> dict[str, Any]:
    own = {} if inside is None else {"inside": inside}
    return {"name": name, "level": level, "type": "python", **own}


NESTED = scope("top", node("a", 0, scope("a", node("b", 0, scope("b", node("c"))))), node("d", 1))


def shown(layout: dict[str, Any]) -> dict[str, bool]:
    """Return the nodes of a layout by their names, and whether each is open."""
    return {"/".join(b["path"]): b["is_open"] for b in layout["boxes"] if not b["is_end"]}


def test_what_is_inside_a_node_is_drawn_if_the_node_and_all_around_it_are_open():
    all_open = {"a": True, "a/b": True, "a/b/c": False, "d": False}
    assert shown(layout_data(NESTED, None)) == all_open
    assert shown(layout_data(NESTED, [])) == {"a": False, "d": False}
    assert shown(layout_data(NESTED, [("a",)])) == {"a": True, "a/b": False, "d": False}
    assert shown(layout_data(NESTED, [("a", "b")])) == {"a": False, "d": False}


def test_a_large_graph_is_folded_at_first():
    large = scope("top", node("a", 0, scope("a", *(node(f"n{at}", at) for at in range(60)))))
    assert shown(layout_data(large, None)) == {"a": False}


def test_a_layout_is_made_once_for_each_graph_and_what_is_open():
    made: list[str] = []

    def plan() -> dict[str, Any]:
        made.append("once")
        return NESTED

    layouts = Layouts()
    found = [layouts.of("digest", plan, opened) for opened in (None, None, [("a",)], [("a",)])]
    assert len(made) == 2
    assert found[0] is found[1]
    for number in range(70):
        layouts.of(str(number), plan, None)
    assert layouts.of("digest", plan, None) == found[0]
    assert len(made) == 73


def test_a_page_without_a_server_has_all_folds_of_few_nodes_and_some_of_many():
    few = exported_layouts(NESTED)
    assert [each["open"] for each in few[1:]] == [[], [["a"]]]
    assert sorted(few[0]["open"]) == [["a"], ["a", "b"]]  # as it begins
    many = scope("top", *(node(f"n{at}", at, scope("in", node("x"))) for at in range(50)))
    found = exported_layouts(many)
    assert len(found) == 40
    assert found[0]["open"] == []  # it is large
    assert {len(each["open"]) for each in found} == {0, 1, 50}
