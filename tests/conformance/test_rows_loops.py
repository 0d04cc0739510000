"""Loops: what they write back, what stop functions are asked, and what cannot end."""

from __future__ import annotations

from typing import Any

import pytest

from axil import CustomNode, Graph, RootGraph, SpecError
from axil_control import Loop


def counted(kind: Any, **options: Any) -> dict[str, Any]:
    g = RootGraph("g", attributes={"n": 0})
    inner: Any = g.create_node(kind, name="l", **options)
    body = inner.create_node(
        CustomNode, name="b", forward=lambda d, attributes: {"n": attributes["n"] + 1}
    )
    if kind is Loop:
        inner.edge_from_controller(body, {})
        inner.edge_to_controller(body, {})
    else:
        inner.edge_from_entry(body, {})
        inner.edge_to_exit(body, {})
    g.edge_from_entry(inner, {})
    g.edge_to_exit(inner, {})
    return g.build().invoke({})[1]


def test_a_loop_writes_attributes_back_as_a_graph_does():
    assert counted(Graph)["n"] == 1
    assert counted(Loop, max_iterations=3)["n"] == 3
    assert counted(Loop, max_iterations=3, pull_keys={"n": ""})["n"] == 3
    assert counted(Loop, max_iterations=3, push_keys={})["n"] == 0


def judged(stop: Any, most: int = 9) -> list[Any]:
    g = RootGraph("g")
    loop = g.create_node(Loop, name="l", max_iterations=most, terminate_condition_function=stop)
    body = loop.create_node(
        CustomNode, name="b", forward=lambda d: {"score": 1 + len(d["log"]), "log": [*d["log"], 1]}
    )
    loop.edge_from_controller(body, ["log"])
    loop.edge_to_controller(body, ["score", "log"])
    g.edge_from_entry(loop, ["log"])
    g.edge_to_exit(loop, ["log"])
    return g.build().invoke({"log": []})[0]["log"]


def test_a_stop_function_that_reads_what_is_not_set_yet_is_taken_to_say_no():
    assert judged(lambda m: m["score"] >= 3) == [1, 1, 1]
    assert judged(lambda m: m["score"] != "(not set yet)" and m["score"] >= 3) == [1, 1, 1]


def test_a_stop_function_may_give_a_default_for_what_is_not_set_yet():
    assert judged(lambda m: m.get("score", 5) >= 5) == []


def test_what_is_not_set_yet_is_none_by_get_and_cuts_nothing_off():
    seen: list[Any] = []

    def stop(message: dict[str, Any], attributes: dict[str, Any]) -> bool:
        seen.append((message.get("score"), attributes.get("n")))
        message["log"] = [*message["log"], "asked"]
        return (message.get("score") or 0) >= 2

    assert judged(stop) == ["asked", 1, "asked"]
    assert seen == [(None, None), (2, None)]


def test_an_async_stop_function_is_asked_by_the_same_rule():
    async def stop(m: Any) -> bool:
        return m["score"] >= 2

    assert judged(stop) == [1, 1]


@pytest.mark.parametrize(
    ("edges", "found"),
    [
        ([], "has no nodes"),
        ([("controller", "a")], "leads back"),
        ([("controller", "a"), ("a", "b")], "leads back"),
        ([("controller", "a"), ("b", "controller")], "leads back"),
        ([("controller", "a"), ("a", "controller", False)], "leads back"),
        ([("a", "controller")], "into its body"),
        ([("controller", "a", False), ("a", "controller")], "into its body"),
    ],
)
def test_a_loop_that_cannot_turn_is_an_error_at_build(edges: list[Any], found: str):
    g = RootGraph("g")
    loop = g.create_node(Loop, name="l", max_iterations=3)
    for name in {name for edge in edges for name in edge[:2]} - {"controller"}:
        loop.create_node(CustomNode, name=name)
    for one, two, *trigger in edges:
        loop.create_edge(one, two, ["x"], trigger=not trigger)
    g.edge_from_entry(loop, ["x"])
    g.edge_to_exit(loop, ["x"])
    with pytest.raises(SpecError, match=f"AX129.*{found}"):
        g.build()
