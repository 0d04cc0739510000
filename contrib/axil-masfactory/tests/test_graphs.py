"""Graphs by MASFactory's names: what runs, what is carried, what is called."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from masfactory import (
    BaseSwitch,
    CustomNode,
    Graph,
    ImageAsset,
    LogicSwitch,
    Loop,
    Node,
    RootGraph,
    masf_hook,
)

PNG = b"\x89PNG\r\n\x1a\n"


def line(**forwards: Any) -> RootGraph:
    """Nodes in a line on the field ``n``."""
    names = list(forwards)
    graph = RootGraph("line", nodes=[(name, CustomNode, f) for name, f in forwards.items()])
    graph._declared[1].extend(
        (a, b, {"n": ""}) for a, b in zip(["entry", *names], [*names, "exit"], strict=True)
    )
    return graph


def up(message: dict[str, Any]) -> dict[str, Any]:
    return {"n": message["n"] + 1}


def test_a_declared_graph_is_made_by_build():
    graph = line(a=up, b=up)
    with pytest.raises(RuntimeError, match=r'"line" is not built yet. Call build\(\) first'):
        graph.invoke({"n": 1})
    graph.build()
    assert graph.invoke({"n": 1}) == ({"n": 3}, {})


def test_a_function_is_called_by_position_whatever_its_names_are():
    graph = RootGraph("g", attributes={"step": 10})
    memory = object()

    def add(messages: dict[str, Any], attrs: dict[str, Any], notes: list[Any]) -> dict[str, Any]:
        assert notes == [memory]
        return {"n": messages["n"] + attrs["step"]}

    node = graph.create_node(CustomNode, name="add", forward=add, memories=[memory])
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {"n": ""})
    graph.build()
    assert graph.invoke({"n": 1})[0] == {"n": 11}


def test_an_async_function_is_awaited():
    async def later(message: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return up(message)

    graph = line(a=later)
    graph.build()
    assert graph.invoke({"n": 1})[0] == {"n": 2}


def test_a_function_that_takes_too_much_is_refused_at_once():
    with pytest.raises(ValueError, match=r"takes 7 arguments, expected 1 to 6"):
        CustomNode("n", lambda a, b, c, d, e, f, g: {})


def test_a_result_that_is_no_dict_is_an_error_that_names_the_node():
    graph = line(a=lambda message: "text")
    graph.build()
    with pytest.raises(TypeError, match=r'node "a": the function gave a str'):
        graph.invoke({"n": 1})


def test_what_a_node_raises_is_raised_as_it_is_with_a_note():
    def fail(message: dict[str, Any]) -> dict[str, Any]:
        raise LookupError("nothing there")

    graph = line(a=up, b=fail)
    graph.build()
    with pytest.raises(LookupError, match="nothing there") as failed:
        graph.invoke({"n": 1})
    assert 'node "b"' in failed.value.__notes__[0]


def test_attributes_stay_from_one_invoke_to_the_next_until_reset():
    graph = RootGraph("g", attributes={"count": 0})
    node = graph.create_node(
        CustomNode,
        name="inc",
        forward=lambda message, attributes: {"count": attributes["count"] + 1},
        push_keys={"count": ""},
    )
    graph.edge_from_entry(node, {})
    graph.edge_to_exit(node, {"count": ""})
    graph.build()
    assert [graph.invoke({})[1]["count"] for _ in range(2)] == [1, 2]
    graph.reset()
    assert graph.invoke({})[1] == {"count": 1}
    assert graph.invoke({}, {"count": 7})[0] == {"count": 8}


def test_a_graph_can_be_invoked_where_an_event_loop_is_running():
    graph = line(a=up)
    graph.build()

    async def notebook() -> Any:
        return graph.invoke({"n": 1})[0]

    assert asyncio.run(notebook()) == {"n": 2}


def test_a_node_can_be_added_to_a_built_graph_that_is_built_again():
    graph = line(a=up)
    graph.build()
    late = graph.create_node(CustomNode, name="late", forward=lambda message: {"m": message["n"]})
    graph.edge_from_entry(late, {"n": ""})
    graph.edge_to_exit(late, {"m": ""})
    graph.build()
    assert graph.invoke({"n": 1})[0] == {"n": 2, "m": 1}


def test_a_subclass_of_node_works_by_its_forward_and_writes_attributes():
    class Tally(Node):
        def _forward(self, input: dict[str, Any]) -> dict[str, Any]:
            self._attributes_store["seen"] = [*self._attributes_store["seen"], input["n"]]
            return input

    graph = RootGraph("g", attributes={"seen": []})
    node = graph.create_node(Tally, name="tally")
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {"n": ""})
    graph.build()
    graph.invoke({"n": 1})
    assert graph.invoke({"n": 2})[1] == {"seen": [1, 2]}


def test_a_subclass_of_a_loop_makes_its_nodes_when_it_is_built():
    class Phase(Loop):
        @masf_hook(Node.Hook.BUILD)
        def build(self) -> None:
            node = self.create_node(CustomNode, name="step", forward=up)
            self.edge_from_controller(node, {"n": ""})
            self.edge_to_controller(node, {"n": ""})
            super().build()

    graph = RootGraph("g")
    built: list[str] = []
    phase = graph.create_node(Phase, name="phase", max_iterations=3)
    phase.hook_register(Node.Hook.BUILD.AFTER, lambda node, result: built.append(node.name))
    graph.edge_from_entry(phase, {"n": ""})
    graph.edge_to_exit(phase, {"n": ""})
    graph.build()
    assert graph.invoke({"n": 0}) == ({"n": 3}, {"current_iteration": 3, "max_iterations": 3})
    assert built == ["phase"]


def test_a_loop_stops_by_its_function_and_keeps_what_is_not_fed_back():
    graph = RootGraph("g")
    loop = graph.create_node(
        Loop, name="loop", terminate_condition_function=lambda fields, at: fields["n"] >= 2
    )
    step = loop.create_node(CustomNode, name="step", forward=up)
    loop.edge_from_controller(step, {"n": ""})
    loop.edge_to_controller(step, {"n": ""})
    graph.edge_from_entry(loop, {"n": "", "kept": ""})
    graph.edge_to_exit(loop, {"n": "", "kept": ""})
    graph.build()
    assert graph.invoke({"n": 0, "kept": "k"})[0] == {"n": 2, "kept": "k"}


def test_a_loop_that_nothing_would_end_is_refused():
    with pytest.raises(ValueError, match="nothing would end it"):
        Loop("loop", max_iterations=0)


def ways(routes: Any) -> RootGraph:
    graph = RootGraph("g")
    switch = graph.create_node(LogicSwitch, name="switch", routes=routes)
    graph.edge_from_entry(switch, {"n": ""})
    for name in ("low", "high"):
        node = graph.create_node(CustomNode, name=name, forward=lambda m, name=name: {"way": name})
        node.set_forward(lambda m, name=name: {"way": m["n"]})
        graph.create_edge(switch, node, {"n": ""})
        graph.edge_to_exit(node, {"way": ""})
    return graph


def test_routes_have_to_name_every_receiver_and_no_other():
    with pytest.raises(ValueError, match="missing routes for receiver node names"):
        ways({"low": lambda m, a: True}).build()
    with pytest.raises(ValueError, match=r"unknown receiver node names: \['middle'\]"):
        ways({"middle": lambda m, a: True}).build()


def test_an_edge_without_a_condition_is_not_taken_where_another_has_one():
    graph = RootGraph("g")
    switch = graph.create_node(LogicSwitch, name="switch")
    graph.edge_from_entry(switch, {"n": ""})
    left = graph.create_node(CustomNode, name="left", forward=lambda m: {"left": m["n"]})
    right = graph.create_node(CustomNode, name="right", forward=lambda m: {"right": m["n"]})
    switch.condition_binding(lambda m: m["n"] > 0, graph.create_edge(switch, left, {"n": ""}))
    graph.create_edge(switch, right, {"n": ""})
    graph.edge_to_exit(left, {"left": ""})
    graph.edge_to_exit(right, {"right": ""})
    graph.build()
    assert graph.invoke({"n": 1})[0] == {"left": 1}
    assert graph.invoke({"n": 0})[0] == {}


def test_a_switch_of_your_own_says_by_a_method_what_holds():
    class AtLeast(BaseSwitch[int]):
        def _evaluate_condition(self, condition: int, message: dict[str, Any]) -> bool:
            return message["n"] >= condition

    graph = RootGraph("g")
    switch = graph.create_node(AtLeast, name="switch", routes={"few": 0, "many": 10})
    graph.edge_from_entry(switch, {"n": ""})
    for name in ("few", "many"):
        node = graph.create_node(CustomNode, name=name, forward=lambda m: {"n": m["n"]})
        graph.create_edge(switch, node, {"n": ""})
        graph.edge_to_exit(node, {"n": ""})
    graph.build()
    assert graph.invoke({"n": 3})[0] == {"n": 3}
    assert graph.invoke({"n": 12})[0] == {"n": [12, 12]}


def test_mistakes_of_wiring_are_errors_where_they_are_made():
    graph = RootGraph("g")
    a, b = (graph.create_node(CustomNode, name=name) for name in "ab")
    graph.create_edge(a, b)
    for wrong, reported in (
        (lambda: graph.create_edge(a, b), "exists already"),
        (lambda: graph.create_edge(b, a), "close a cycle: b -> a -> b"),
        (lambda: graph.create_edge(a, "c"), 'no node "c"'),
        (lambda: graph.create_edge(a, CustomNode("b")), "not a node of this graph"),
        (lambda: graph.create_node(CustomNode, name="a"), "exists already"),
        (lambda: graph.create_node(CustomNode, name="entry"), "reserved"),
        (lambda: graph.create_node(CustomNode, name="a b"), "expected letters"),
        (lambda: graph.create_node(CustomNode), "has no name"),
        (lambda: graph.create_node(RootGraph, name="r"), "cannot be inside a graph"),
    ):
        with pytest.raises(ValueError, match=reported):
            wrong()
    with pytest.raises(TypeError, match="expected a class of nodes"):
        graph.create_node(dict, name="d")


def test_an_edge_checks_the_modality_of_what_it_carries():
    graph = RootGraph("g")
    node = graph.create_node(CustomNode, name="look", forward=lambda m: {"kind": m["im"]["type"]})
    graph.edge_from_entry(node, {"im": "IMAGE:a photo"})
    graph.edge_to_exit(node, {"kind": ""})
    graph.build()
    photo = ImageAsset.from_bytes(PNG, filename="leaf.png")
    assert (photo.modality, photo.mime_type, photo.filename) == ("IMAGE", "image/png", "leaf.png")
    assert graph.invoke({"im": photo})[0] == {"kind": "image"}
    with pytest.raises(Exception, match='"im" holds TEXT, expected IMAGE'):
        graph.invoke({"im": "a text"})


# ------------------------------------------------------------------------------------------- hooks


def test_stages_of_a_node_are_called_in_order_with_what_they_are_about():
    graph = line(a=up)
    seen: list[Any] = []
    hook = Node.Hook
    for stage in (
        hook.EXECUTE,
        hook.MESSAGE_AGGREGATE_IN,
        hook.FORWARD,
        hook.MESSAGE_DISPATCH_OUT,
    ):
        for key in (stage.BEFORE, stage.AFTER):
            graph.hook_register(
                key,
                lambda node, *more, key=key: seen.append((node.name, key)),
                recursion=True,
                target_names={"a"},
            )
    graph.build()
    graph.invoke({"n": 1})
    assert [key for _, key in seen] == [
        hook.EXECUTE.BEFORE,
        hook.MESSAGE_AGGREGATE_IN.BEFORE,
        hook.MESSAGE_AGGREGATE_IN.AFTER,
        hook.FORWARD.BEFORE,
        hook.FORWARD.AFTER,
        hook.MESSAGE_DISPATCH_OUT.BEFORE,
        hook.MESSAGE_DISPATCH_OUT.AFTER,
        hook.EXECUTE.AFTER,
    ]
    assert {name for name, _ in seen} == {"a"}


def test_what_a_hook_changes_in_the_input_is_what_the_node_gets():
    graph = line(a=up)
    graph.build()
    (node,) = graph.nodes
    node.hook_register(Node.Hook.FORWARD.BEFORE, lambda node, fields: fields.update(n=40))
    outputs: list[Any] = []
    node.hook_register(Node.Hook.FORWARD.AFTER, lambda node, out, fields: outputs.append(dict(out)))
    assert graph.invoke({"n": 1})[0] == {"n": 41}
    assert outputs == [{"n": 41}]


def test_hooks_with_recursion_reach_graphs_and_their_nodes():
    graph = RootGraph("root")
    inner = graph.create_node(Graph, name="inner", attributes={"own": 1})
    node = inner.create_node(CustomNode, name="leaf", forward=up)
    inner.edge_from_entry(node, {"n": ""})
    inner.edge_to_exit(node, {"n": ""})
    graph.edge_from_entry(inner, {"n": ""})
    graph.edge_to_exit(inner, {"n": ""})
    seen: list[str] = []
    graph.hook_register(
        Node.Hook.EXECUTE.BEFORE, lambda node, outer: seen.append(node.name), recursion=True
    )
    graph.build()
    assert graph.invoke({"n": 1})[0] == {"n": 2}
    assert seen == ["root", "inner", "leaf"]


def test_entries_exits_and_controllers_are_no_nodes_that_have_hooks():
    graph = RootGraph("root")
    loop = graph.create_node(Loop, name="loop", max_iterations=2)
    node = loop.create_node(CustomNode, name="leaf", forward=up)
    loop.edge_from_controller(node, {"n": ""})
    loop.edge_to_controller(node, {"n": ""})
    graph.edge_from_entry(loop, {"n": ""})
    graph.edge_to_exit(loop, {"n": ""})
    graph.build()
    seen: list[str] = []
    graph.hook_register(
        Node.Hook.FORWARD.BEFORE, lambda node, fields: seen.append(node.name), recursion=True
    )
    assert graph.invoke({"n": 1})[0] == {"n": 3}
    assert seen == ["root", "loop", "leaf", "leaf"]


def test_a_failure_calls_the_hooks_of_errors():
    def fail(message: dict[str, Any]) -> dict[str, Any]:
        raise LookupError("gone")

    graph = line(a=fail)
    graph.build()
    seen: list[str] = []
    graph.nodes[0].hook_register(
        Node.Hook.FORWARD.ERROR, lambda node, error, fields: seen.append(str(error))
    )
    with pytest.raises(LookupError):
        graph.invoke({"n": 1})
    assert seen == ["gone"]


def test_an_edge_tells_what_is_sent():
    graph = line(a=up)
    graph.build()
    sent: list[Any] = []
    graph.hook_register(
        "send_message",
        lambda sender, receiver, message: sent.append((sender.name, receiver.name, message)),
        recursion=True,
    )
    graph.invoke({"n": 1})
    assert sent == [("line_entry", "a", {"n": 1}), ("a", "line_exit", {"n": 2})]


def test_what_lies_behind_the_node_that_ends_a_loop_is_not_asked_for():
    ran: list[str] = []

    def noting(name: str) -> Any:
        return lambda message: ran.append(name) or {}

    graph = RootGraph("g")
    loop = graph.create_node(Loop, "loop", max_iterations=3)
    for name in ("write", "review", "edit", "last"):
        loop.create_node(CustomNode, name=name, forward=noting(name))
    for source, target in (("write", "review"), ("review", "edit"), ("edit", "controller")):
        loop.create_edge(source, target, {})
    for name in ("write", "last"):
        loop.edge_from_controller(name, {})
    loop.edge_to_terminate_node("last", {})
    graph.edge_from_entry(loop, {})
    graph.edge_to_exit(loop, {})
    graph.build()
    graph.invoke({})
    assert sorted(ran) == ["last", "write"]  # MASFactory runs review and edit, made before last
