"""LangGraph's compiled graphs: objects of the form of its builders, without LangGraph."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

import pytest

from axil import NodeFailed
from axil_importers import ImportProblem, from_langgraph

Send = SimpleNamespace


def interrupt(value: object) -> Any:
    """Ask as LangGraph does."""
    raise RuntimeError(value)


class Runnable:
    """A function as LangGraph holds it."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self.func, self.func_accepts = func, {}

    def invoke(self, state: Any) -> Any:
        return self.func(state)


class Talk(TypedDict):
    n: int
    log: Annotated[list[str], operator.add]


def compiled(nodes: dict[str, Any], edges: set[tuple[str, str]], **more: Any) -> Any:
    """Return a compiled graph; ``branches``: by source a function and its ends."""
    branches = {
        source: {"route": SimpleNamespace(path=Runnable(path), ends=ends)}
        for source, (path, ends) in more.pop("branches", {}).items()
    }
    specs = {
        key: SimpleNamespace(runnable=Runnable(each), ends=more.get("ends", ()), retry_policy=None)
        for key, each in nodes.items()
    }
    builder = SimpleNamespace(
        nodes=specs,
        edges=edges,
        branches=branches,
        waiting_edges=more.get("waiting", set()),
        state_schema=Talk,
    )
    return SimpleNamespace(builder=builder, name="talk")


def says(name: str) -> Callable[[Any], Any]:
    """Return a node that says its name and counts."""
    return lambda state: {"log": [name], "n": state["n"] + (name == "a")}


def test_branches_joins_and_cycles_run_as_they_did():
    graph = compiled(
        {name: says(name) for name in ("a", "left", "right", "join")},
        {("__start__", "a"), ("a", "left"), ("a", "right")},
        waiting={(("left", "right"), "join")},
        branches={
            "join": (
                lambda state: "__end__" if state["n"] > 1 else "a",
                {"a": "a", "__end__": "__end__"},
            )
        },
    )
    made = from_langgraph(graph)
    assert [each.status for each in made.findings] == ["taken"] * 5
    _, state = made.graph.build().invoke({"n": 0, "log": []})
    assert dict(state) == {"n": 2, "log": ["a", "left", "right", "join"] * 2}


def test_what_cannot_be_followed_is_left():
    graph = compiled(
        {"a": says("a")},
        {("__start__", "a"), ("a", "__end__")},
        branches={"a": (lambda state: "a", None)},
        ends=("b",),
    )
    assert [each.status for each in from_langgraph(graph).findings] == ["left", "left"]


def test_a_branch_is_asked_once():
    asked = list[int]()

    def route(state: Any) -> str:
        asked.append(state["n"])
        return "b"

    graph = compiled(
        {name: says(name) for name in "abc"},
        {("__start__", "a"), ("b", "__end__"), ("c", "__end__")},
        branches={"a": (route, {"b": "b", "c": "c"})},
    )
    _, state = from_langgraph(graph).graph.build().invoke({"n": 0, "log": []})
    assert (state["log"], asked) == (["a", "b"], [1])


def test_a_branch_that_sends_inputs_is_left_and_says_so_where_it_runs():
    def route(state: Any) -> list[Any]:
        return [Send(node="b", arg={"n": n}) for n in range(2)]

    graph = compiled(
        {"a": says("a"), "b": says("b")},
        {("__start__", "a"), ("b", "__end__")},
        branches={"a": (route, {"b": "b"})},
    )
    made = from_langgraph(graph)
    (left,) = [each for each in made.findings if each.status == "left"]
    assert left.place == 'branches["a"]["route"]'
    assert "Map(" in left.advice
    with pytest.raises(NodeFailed, match='leads to "b" with an input of its own') as failed:
        made.graph.build().invoke({"n": 0, "log": []})
    assert "Map(" in str(failed.value)


def test_a_node_that_interrupts_is_left():
    graph = compiled(
        {"a": lambda state: {"n": interrupt("?")}}, {("__start__", "a"), ("a", "__end__")}
    )
    (left,) = from_langgraph(graph).findings
    assert (left.status, "ctx.ask" in left.advice) == ("left", True)


def test_only_a_compiled_graph_is_read():
    with pytest.raises(ImportProblem, match="expected a compiled StateGraph, found dict"):
        from_langgraph({})
