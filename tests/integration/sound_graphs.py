"""Graphs in Python of odd shapes that work: nothing may be said against them."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from pydantic import BaseModel

from axil import ComponentRef, Graph, RootGraph
from axil_agent import Agent, ContextPolicy, Scripted
from axil_control import LogicSwitch


class Desk(TypedDict):
    kind: str
    draft: NotRequired[str]


class Counts(BaseModel):
    mode: str = ""
    n: int = 0


class Cited(TypedDict):
    text: str


def asks(text: str) -> ComponentRef:
    return ComponentRef(type="expression", config={"expression": text})


def leave(state: Desk) -> dict[str, Any]:
    return {}


def write(state: Desk) -> dict[str, Any]:
    return {"draft": "A draft."}


def read(state: Desk) -> dict[str, Any]:
    return {"kind": state["draft"]}


def up(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"text": inputs["text"].upper()}


def both(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"text": inputs["text"], "log": "seen"}


def typed(bodies: dict[str, Any], *edges: str, state: type = Desk) -> RootGraph:
    graph = RootGraph("desk", state=state)
    for name, body in bodies.items():
        graph.create_node(body, name=name)
    for edge in edges:
        source, target, *condition = edge.split(" ", 2)
        graph.create_edge(source, target, when=asks(condition[0]) if condition else None)
    return graph


def a_constant_or_what_came() -> RootGraph:
    def decide(state: Desk) -> dict[str, Any]:
        return {"kind": "bug"} if state["kind"] else {"kind": state["kind"]}

    nodes = {"a": decide, "b": leave, "c": leave}
    return typed(nodes, "entry a", 'a b state.kind == "feature"', "a c", "b c", "c exit")


def a_constant_on_one_way() -> RootGraph:
    def decide(state: Desk) -> dict[str, Any]:
        if state["kind"] == "x":
            return {"kind": "bug"}
        return {}

    nodes = {"a": decide, "b": leave, "c": leave}
    return typed(nodes, "entry a", 'a b state.kind == "feature"', "a c", "b c", "c exit")


def a_constant_of_another_type() -> RootGraph:
    def decide(state: Counts) -> dict[str, Any]:
        return {"n": "3"}

    nodes = {"a": decide, "b": leave, "c": leave}
    return typed(nodes, "entry a", "a b state.n == 3", "a c", "b c", "c exit", state=Counts)


def a_constant_that_grows() -> RootGraph:
    def decide(state: Counts) -> dict[str, Any]:
        state.n = 7
        state.mode = "b"
        return {"n": 1}

    nodes = {"a": decide, "b": leave, "c": leave}
    edges = ("entry a", 'a b state.mode == "b" and state.n >= 1', "a c", "b c", "c exit")
    return typed(nodes, *edges, state=Counts)


def a_field_added_later() -> RootGraph:
    def give(inputs: dict[str, Any]) -> dict[str, Any]:
        given = {"text": inputs["text"]}
        given["more"] = 1
        return given

    graph = RootGraph("added")
    graph.create_node(give, name="a")
    graph.create_node(up, name="b")
    graph.edge_from_entry("a", ["text"])
    graph.create_edge("a", "b", ["text"], when=asks("message.more == 1"))
    graph.edge_to_exit("b", ["text"])
    return graph


def read_with_a_default() -> RootGraph:
    def read_or_not(state: Desk) -> dict[str, Any]:
        return {"kind": state.get("draft", "")}

    nodes = {"a": leave, "b": write, "c": read_or_not}
    return typed(nodes, "entry a", 'a b state.kind == "x"', "a c", "b c", "c exit")


def read_behind_a_guard() -> RootGraph:
    nodes = {"a": leave, "b": write, "c": leave, "d": read}
    edges = (
        "entry a",
        'a b state.kind == "x"',
        "a c",
        "b c",
        "c d state.draft",
        "c exit",
        "d exit",
    )
    return typed(nodes, *edges)


def read_behind_a_flag() -> RootGraph:
    def finish(state: Desk) -> dict[str, Any]:
        return {"draft": "A draft.", "kind": "done"}

    nodes = {"a": leave, "b": finish, "c": leave, "d": leave, "e": read}
    edges = ('a b state.kind == "bug"', 'a c state.kind != "bug"', "b d", "c d")
    more = ('d e state.kind == "done"', "d exit", "e exit")
    return typed(nodes, "entry a", *edges, *more)


def a_filter_that_sets_a_field() -> RootGraph:
    graph = typed({"a": leave, "b": leave, "c": leave}, "entry a", "c exit")
    is_x = asks('state.kind == "x"')
    graph.create_edge("a", "b", when=is_x, state_filter=lambda state: {"kind": "y"})
    graph.create_edge("b", "c", when=asks('state.kind == "y"'))
    graph.create_edge("a", "c", when=asks('state.kind != "x"'))
    return graph


def a_merge_that_sets_a_field() -> RootGraph:
    nodes = {"a": leave, "b": leave, "c": leave}
    is_x = 'state.kind == "x"'
    graph = typed(nodes, "entry a", f"a b {is_x}", f"a c {is_x}", f"a exit not ({is_x})")
    graph.create_node(leave, name="d", merge=lambda states: {"kind": "z"})
    graph.create_edge("b", "d")
    graph.create_edge("c", "d")
    graph.create_edge("d", "exit", when=asks('state.kind == "z"'))
    return graph


def left_by_a_count() -> RootGraph:
    def step(inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
        return {"text": inputs["text"], "n": attributes["n"] + 1}

    graph = RootGraph("counted", attributes={"n": 0}, cycles="allow")
    graph.create_node(step, name="a")
    graph.edge_from_entry("a", ["text"])
    graph.create_edge("a", "a", ["text"], when=asks("state.n < 3"))
    graph.create_edge("a", "exit", ["text"], when=asks("state.n >= 3"))
    return graph


def a_switch_that_sends_to_both() -> RootGraph:
    graph = RootGraph("both")
    switch = graph.create_node(LogicSwitch, name="s")
    graph.create_node(up, name="b")
    graph.create_node(up, name="c")
    graph.create_node("passthrough", name="d", join="all", only_last_message=False)
    graph.edge_from_entry(switch, ["text"])
    for name in "bc":
        edge = graph.create_edge(switch, name, ["text"])
        switch.condition_binding(lambda message: True, edge)
        graph.create_edge(name, "d", ["text"])
    graph.edge_to_exit("d", ["text"])
    return graph


def an_inner_graph_of_two_exits() -> RootGraph:
    graph = RootGraph("outer")
    inner = graph.create_node(Graph, name="inner")
    inner.create_node(both, name="x")
    inner.edge_from_entry("x", ["text"])
    inner.edge_to_exit("x", ["log"])
    inner.create_edge("entry", "exit", ["text"])
    graph.edge_from_entry(inner, ["text"])
    graph.edge_to_exit(inner, ["text", "log"])
    inner.create_node(up, name="y")
    inner.create_edge("x", "y", ["text"])
    inner.edge_to_exit("y", ["text"])
    return graph


def an_inner_graph_for_each_item() -> RootGraph:
    graph = RootGraph("outer")
    each = {"type": "map", "over": "texts", "item": "text"}
    inner = graph.create_node(Graph, name="inner", wrappers=[each])
    inner.create_node(up, name="x")
    inner.edge_from_entry("x", ["text"])
    inner.edge_to_exit("x", ["text"])
    graph.edge_from_entry(inner, ["texts"])
    graph.edge_to_exit(inner, ["text"])
    return graph


def an_inner_graph_without_fields() -> RootGraph:
    graph = RootGraph("outer")
    inner = graph.create_node(Graph, name="inner")
    inner.create_node(lambda inputs: {"text": "x"}, name="x")
    inner.edge_from_entry("x", {})
    inner.edge_to_exit("x", ["text"])
    graph.edge_from_entry(inner, {})
    graph.edge_to_exit(inner, ["text"])
    return graph


def citations_of_an_agent() -> RootGraph:
    graph = RootGraph("cited")
    model = Scripted(['{"text": "x"}'])
    agent = Agent(model, "Answer.", output_type=Cited, context=ContextPolicy(cite=True))
    graph.create_node(agent, name="a")
    graph.edge_from_entry("a", ["topic"])
    graph.edge_to_exit("a", ["text", "citations"])
    return graph


class Two:
    """A join that fires with two edges, however many there are."""

    early = per_token = False
    rest = "ignore"

    def fires(self, live: int, dead: int, total: int) -> bool:
        assert live + dead == total, "a join that is not early is asked when all is decided"
        return live >= 2


def two_of_three_ways() -> RootGraph:
    nodes = {"a": leave, "b": leave, "c": leave, "d": leave, "w": leave}
    is_x, is_y = 'state.kind == "x"', 'state.kind == "y"'
    graph = typed(nodes, "entry a", f"a b {is_x}", f"a c {is_y}", "a d", "w exit")
    graph.create_node(leave, name="z", join=Two())
    for name in "bcd":
        graph.create_edge(name, "z")
    graph.create_edge("z", "w", when=asks(is_x))
    return graph


def an_inner_graph_that_gives_more() -> RootGraph:
    graph = RootGraph("outer")
    inner = graph.create_node(Graph, name="inner")
    inner.create_node(both, name="x")
    inner.edge_from_entry("x", ["text"])
    inner.edge_to_exit("x", ["text", "log"])
    graph.edge_from_entry(inner, ["text"])
    graph.edge_to_exit(inner, ["text"])
    return graph


GRAPHS = {
    each.__name__: each
    for each in (
        a_constant_or_what_came,
        a_constant_on_one_way,
        a_constant_of_another_type,
        a_constant_that_grows,
        a_field_added_later,
        read_with_a_default,
        read_behind_a_guard,
        read_behind_a_flag,
        a_filter_that_sets_a_field,
        a_merge_that_sets_a_field,
        left_by_a_count,
        a_switch_that_sends_to_both,
        an_inner_graph_of_two_exits,
        an_inner_graph_for_each_item,
        an_inner_graph_without_fields,
        citations_of_an_agent,
        two_of_three_ways,
        an_inner_graph_that_gives_more,
    )
}
