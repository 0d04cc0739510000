"""Laws of ``LogicSwitch``, ``switch`` and ``router``."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from axil import Out, RootGraph, Schema, SpecError
from axil.plugin import RouteError, UnknownComponent, message
from axil_control import LogicSwitch
from axil_control.errors import BindingError
from axil_control.switches import Router, Switch


@dataclass
class Edge:
    """An out-edge as the builder hands it to ``bind``."""

    sender: str
    receiver: str


def edges(*receivers: str) -> list[Any]:
    return [Edge("sw", receiver) for receiver in receivers]


def firing(**state: Any) -> Any:
    return SimpleNamespace(state=Schema().start(state))


# ---------------------------------------------------------------------- LogicSwitch


def test_a_switch_without_bindings_sends_to_all():
    switch = LogicSwitch()
    switch.bind(edges("a", "b"))
    assert switch.run({"message": 1}, {}) == Out({"message": 1})


def test_all_edges_whose_predicate_holds_are_taken_and_unbound_ones_never():
    switch = LogicSwitch()
    a, b, c, _ = out = edges("a", "b", "c", "d")
    switch.condition_binding(lambda m, attributes: m["n"] > 1, a)
    switch.condition_binding(lambda m, attributes: m["n"] > 5, b)
    switch.condition_binding(lambda m, attributes: attributes["go"], c)
    switch.bind(out)
    assert switch.run({"n": 2}, {"go": True}).to == {"a", "c"}
    assert switch.run({"n": 0}, {"go": False}).to == frozenset()


def test_a_switch_forwards_what_came():
    switch = LogicSwitch({"a": lambda m: True})
    switch.bind(edges("a"))
    assert switch.run({"x": [1], "y": {"z": 2}}, {}).output == {"x": [1], "y": {"z": 2}}


def test_a_predicate_may_take_one_argument():
    switch = LogicSwitch(
        {"a": lambda m: m["n"] == 1, "b": lambda m, attributes: attributes["n"] == 2}
    )
    assert switch.run({"n": 1}, {"n": 2}).to == {"a", "b"}


def test_a_predicate_with_a_default_is_given_the_attributes():
    switch = LogicSwitch({"a": lambda m, attributes=None: attributes == {"n": 2}})
    assert switch.run({}, {"n": 2}).to == {"a"}


def test_what_a_predicate_raises_is_not_hidden():
    switch = LogicSwitch({"a": lambda m: m["absent"]})
    with pytest.raises(KeyError):
        switch.run({}, {})


def test_an_async_predicate_is_refused():
    async def ask(m):
        return True

    with pytest.raises(BindingError, match="AX613"):
        LogicSwitch({"a": ask})
    with pytest.raises(BindingError, match="AX613"):
        LogicSwitch({"a": "text"})


def test_an_edge_is_bound_once():
    switch, (a,) = LogicSwitch(), edges("a")
    switch.condition_binding(lambda m: True, a)
    with pytest.raises(BindingError, match=r"AX610 .*bound already"):
        switch.condition_binding(lambda m: True, a)


def test_an_edge_of_another_node_cannot_be_bound():
    switch = LogicSwitch()
    switch.name = "sw"
    with pytest.raises(BindingError, match=r"AX610 .*does not start at this switch"):
        switch.condition_binding(lambda m: True, Edge("other", "a"))


def test_routes_name_every_receiver_and_no_other():
    with pytest.raises(
        BindingError, match=r"AX611 routes names reviewr, .*Did you mean \"reviewer\""
    ):
        LogicSwitch({"reviewr": lambda m: True}).bind(edges("reviewer"))
    with pytest.raises(BindingError, match="AX612 routes has no entry for b"):
        LogicSwitch({"a": lambda m: True}).bind(edges("a", "b"))


def test_routes_and_bindings_do_not_mix():
    switch = LogicSwitch({"a": lambda m: True})
    with pytest.raises(BindingError, match="AX610"):
        switch.condition_binding(lambda m: True, edges("a")[0])


def test_binding_errors_are_value_errors():
    assert issubclass(BindingError, ValueError)


def test_the_exit_and_a_loops_controller_have_names():
    switch = LogicSwitch({"exit": lambda m: True, "loop_controller": lambda m: False})
    switch.bind(edges("@exit", "controller"))
    assert switch.run({}, {}).to == {"@exit"}


def test_a_switch_in_a_built_graph_takes_the_edge_whose_predicate_holds(registry):
    g = RootGraph("g", attributes={"limit": 3})
    switch = g.create_node(LogicSwitch, name="sw")
    big = g.create_node(lambda inputs: {"message": "big"}, name="big")
    small = g.create_node(lambda inputs: {"message": "small"}, name="small")
    g.edge_from_entry(switch, keys={"n": ""})
    to_big, to_small = (
        g.create_edge(switch, big, keys={"n": ""}),
        g.create_edge(switch, small, keys={"n": ""}),
    )
    g.edge_to_exit(big)
    g.edge_to_exit(small)
    switch.condition_binding(lambda m, attributes: m["n"] > attributes["limit"], to_big)
    switch.condition_binding(lambda m, attributes: m["n"] <= attributes["limit"], to_small)
    g.build()
    assert g.invoke({"n": 7})[0] == {"message": "big"}
    assert g.invoke({"n": 1})[0] == {"message": "small"}


@pytest.mark.parametrize(
    "said",
    [
        lambda message, attributes: message["messages"],
        lambda inputs: inputs["messages"],
        lambda state: state["messages"],
        lambda *given: given[0]["messages"],
    ],
)
def test_a_predicate_in_a_typed_graph_is_given_the_state(said):
    g = RootGraph("g", state="messages")
    g.create_node(
        LogicSwitch({"bye": said, "stay": lambda state: not state["messages"]}), name="sw"
    )
    for name in ("bye", "stay"):
        g.create_node(lambda name=name: {"messages": [message(name)]}, name=name)
        g.create_edges([("sw", name), (name, "exit")])
    g.edge_from_entry("sw")
    values = g.build().invoke({"messages": [message("hi")]})[1]
    assert [m["content"] for m in values["messages"]] == ["hi", "bye"]


def test_wrong_routes_are_found_when_a_graph_is_built(registry):
    g = RootGraph("g")
    switch = g.create_node(LogicSwitch, {"nobody": lambda m: True}, name="sw")
    g.edge_from_entry(switch)
    g.edge_to_exit(switch)
    with pytest.raises(SpecError, match=r"AX611 .*nobody"):
        g.build()


# ---------------------------------------------------------------------- switch


def switched(routes: dict[str, Any], *receivers: str) -> Switch:
    node = Switch(Switch.Config(routes=routes))
    node.bind(edges(*(receivers or tuple(routes))))
    return node


def test_a_switch_in_a_file_asks_expressions_and_conditions(registry):
    routes = {
        "a": "'ok' in text",
        "b": {"type": "keyword", "config": {"none": ["ok"]}},
        "c": True,
        "d": False,
        "e": "state.go",
    }
    assert switched(routes).run([[message("ok")]], firing(go=True)).to == {"a", "c", "e"}
    assert switched(routes).run([[message("no")]], firing(go=False)).to == {"b", "c"}


def test_a_switch_forwards_its_messages(registry):
    came = [message("a", source="A"), message("b", source="B")]
    assert switched({"a": True}).run([came[:1], came[1:]], firing()).output == came


@pytest.mark.parametrize(
    "routes",
    [{}, {"a": 1}, {"a": {"typ": "x"}}, {"a": "score > 1"}, {"a": {"type": "x", "more": 1}}],
)
def test_a_route_that_is_no_condition_is_refused(routes):
    with pytest.raises(ValidationError):
        Switch.Config(routes=routes)


def test_a_route_to_a_stranger_and_an_unknown_condition_are_found_before_the_run(registry):
    with pytest.raises(BindingError, match="AX611"):
        switched({"b": True}, "a")
    with pytest.raises(UnknownComponent, match=r"routes\.a"):
        switched({"a": {"type": "no_such_condition"}})


def test_an_unbound_edge_of_a_switch_is_never_taken(run, watch):
    graph = {
        "nodes": [
            {
                "id": "S",
                "type": "switch",
                "config": {"routes": {"A": "'x' in text", "B": "'y' in text"}},
            }
        ]
        + [{"id": name, "type": "passthrough", "config": {}} for name in "ABC"],
        "edges": [{"from": "S", "to": name} for name in "ABC"],
        "start": ["S"],
        "end": ["A", "B", "C"],
    }
    assert run(graph, "x", watch=watch).output == "x"
    assert watch.fired == ["S", "A"]
    assert run(graph, "z").messages == ()


# ---------------------------------------------------------------------- router


def routed(
    payload: Any, *receivers: str, state: dict[str, Any] | None = None, **config: Any
) -> frozenset[str] | None:
    node = Router(Router.Config(**config))
    node.bind(edges(*(receivers or ("a", "b"))))
    return node.run([payload], firing(**(state or {}))).to


def test_a_router_sends_where_a_value_says():
    assert routed([message("x", next="a")], by="message.next") == {"a"}
    assert routed([message("x")], by="state.next", state={"next": ["a", "b"]}) == {"a", "b"}
    assert routed([message(" b\n")], by="text") == {"b"}
    assert routed({"score": 9}, by="message.score > 5 and 'a' or 'b'") == {"a"}


def test_a_routers_values_may_stand_for_names():
    names = {"approve": "a", "all": ["a", "b"]}
    assert routed([message("approve")], by="text", names=names) == {"a"}
    assert routed([message("all")], by="text", names=names) == {"a", "b"}


def test_a_router_that_names_a_stranger_is_an_error():
    with pytest.raises(RouteError, match="names aa; its targets are a, b"):
        routed([message("aa")], by="text")
    with pytest.raises(RouteError, match="expected the name of a node"):
        routed([message("x", next=3)], by="message.next")


def test_a_missing_value_is_an_error_or_the_target_for_that():
    with pytest.raises(RouteError, match=r"message\.next is missing"):
        routed([message("x")], by="message.next")
    assert routed([message("x")], by="message.next", otherwise="b") == {"b"}
    assert routed([message("")], by="text", otherwise="b") == {"b"}


def test_what_a_router_may_name_is_checked_before_the_run():
    with pytest.raises(BindingError, match="AX611"):
        routed([message("x")], by="text", otherwise="nobody")
    with pytest.raises(BindingError, match="AX611"):
        routed([message("x")], by="text", names={"x": ["a", "nobody"]})


def test_a_router_routes_in_a_run(run, watch):
    graph = {
        "nodes": [{"id": "R", "type": "router", "config": {"by": "text"}}]
        + [{"id": name, "type": "passthrough", "config": {}} for name in ("writer", "editor")],
        "edges": [{"from": "R", "to": "writer"}, {"from": "R", "to": "editor"}],
        "start": ["R"],
        "end": ["writer", "editor"],
    }
    run(graph, "editor", watch=watch)
    assert watch.fired == ["R", "editor"]
    failed = run(graph, "edtor")
    assert failed.status == "failed"
    assert 'Did you mean "editor"?' in str(failed.error)


def test_a_parameter_of_a_predicate_with_a_default_is_left_alone():
    g = RootGraph("g")
    s = g.create_node(LogicSwitch, name="s")
    g.edge_from_entry(s, ["n"])
    out = g.edge_to_exit(s, ["n"])
    s.condition_binding(lambda m, limit=3: m["n"] < limit, out)
    assert g.build().invoke({"n": 2})[0] == {"n": 2}


def test_a_switch_sends_to_otherwise_where_no_condition_holds():
    g = RootGraph("g")
    g.create_node(Switch(Switch.Config(routes={"a": "'yes' in text"}, otherwise="b")), name="s")
    for name in ("a", "b"):
        g.create_node(lambda inputs, name=name: {"message": name}, name=name)
        g.create_edges([("s", name), (name, "exit")])
    g.edge_from_entry("s")
    flow = g.build()
    assert flow.invoke("yes")[0] == {"message": "a"}
    assert flow.invoke("no")[0] == {"message": "b"}


def test_otherwise_is_one_of_the_targets():
    g = RootGraph("g")
    g.create_node(Switch(Switch.Config(routes={"exit": True}, otherwise="b")), name="s")
    g.edge_from_entry("s")
    g.edge_to_exit("s")
    with pytest.raises(SpecError, match="AX611"):
        g.build()
