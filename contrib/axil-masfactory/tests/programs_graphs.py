"""Programs of graphs and loops."""

from __future__ import annotations

from typing import Any

from masfactory import (
    CustomNode,
    Edge,
    Graph,
    LogicSwitch,
    Loop,
    Node,
    NodeTemplate,
    RootGraph,
    template_overrides_for,
)
from masfactory.utils.hook import masf_hook

from .programs import add, giving, program, ran, single


@program
def attributes_that_are_new_stay_with_their_node() -> Any:
    def count(message: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
        attributes["seen"] = attributes.get("seen", 0) + 1
        attributes["log"].append(message["n"])
        return {"n": attributes["seen"]}

    graph = RootGraph("g", attributes={"log": []})
    node = graph.create_node(CustomNode, "count", forward=count)
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {"n": ""})
    graph.build()
    return [*ran(graph, {"n": 7}, {"n": 8}), node.attributes["seen"]]


@program
def what_a_node_gives_and_pushes_stays_with_it_too() -> Any:
    seen: list[Any] = []

    def count(message: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
        seen.append([attributes.get(name) for name in ("total", "last", "seen")])
        attributes["last"] = "set"
        return {"n": 0, "total": attributes.get("total", 0) + message["n"], "last": "given"}

    graph = RootGraph("g", attributes={"seen": 1})
    keys = {"pull_keys": {"seen": ""}, "push_keys": {"total": "", "last": ""}}
    node = graph.create_node(CustomNode, "count", forward=count, attributes={"total": 0}, **keys)
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {"n": ""})
    graph.build()
    return [*ran(graph, {"n": 7}, {"n": 8}), seen]


@program
def a_node_reads_and_replaces_its_store() -> Any:
    class Store(Node):
        @masf_hook(Node.Hook.FORWARD)
        def _forward(self, input: dict[str, Any]) -> dict[str, Any]:
            self._attributes_store["last"] = input["n"]
            self._attributes_store = {**self._attributes_store, "more": 1}
            return {"n": self._attributes_store["base"] + input["n"], "name": self._name}

    graph = RootGraph("g", attributes={"base": 10, "last": 0})
    node = graph.create_node(Store, "store")
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {"n": "", "name": ""})
    graph.build()
    return [*ran(graph, {"n": 1}), node.attributes["more"]]


@program
def what_push_keys_name_is_written_and_nothing_else() -> Any:
    def give(message: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
        attributes["b"] = 5
        return {"a": message["n"], "b": 2, "c": 3}

    graph = RootGraph("g", attributes={"a": 0, "b": 0, "c": 0})
    rules: list[Any] = [None, {}, {"a": "", "d": ""}]
    last: Any = None
    for number, push in enumerate(rules):
        node = graph.create_node(CustomNode, f"n{number}", forward=give, push_keys=push)
        if last is None:
            graph.edge_from_entry(node, {"n": ""})
        else:
            graph.create_edge(last, node, {"n": ""})
        last = graph.create_node(
            CustomNode, f"p{number}", forward=lambda m, a: {"n": a["a"] + 1}, push_keys={}
        )
        graph.create_edge(node, last, {})
    graph.edge_to_exit(last, {"n": ""})
    graph.build()
    return ran(graph, {"n": 4})


@program
def a_switch_sends_on_every_way_that_holds() -> Any:
    graph = RootGraph("g", attributes={"limit": 2})
    ways = {
        "low": lambda m, a: m["n"] <= a["limit"],
        "even": lambda m, a: m["n"] % 2 == 0,
        "high": lambda m, a: m["n"] > a["limit"],
    }
    switch = graph.create_node(LogicSwitch, "switch", routes=ways)
    graph.edge_from_entry(switch, {"n": ""})
    for way in ways:
        node = graph.create_node(CustomNode, way, forward=giving(via=[way]))
        graph.create_edge(switch, node, {"n": ""})
        graph.edge_to_exit(node, {"via": ""})
    graph.build()
    return ran(graph, {"n": 2}, {"n": 3}, {"n": 4})


@program
def fields_that_meet_are_joined() -> Any:
    graph = RootGraph("g")
    end = graph.create_node(CustomNode, "end", forward=lambda m: {"all": m})
    for name, fields in (
        ("a", {"l": [1], "d": {"x": 1}, "t": "a"}),
        ("b", {"l": [2], "d": {"y": 2}, "t": "b"}),
    ):
        node = graph.create_node(CustomNode, name, forward=giving(**fields))
        graph.edge_from_entry(node, {})
        graph.create_edge(node, end, {"l": "", "d": "", "t": ""})
    graph.edge_to_exit(end, {"all": ""})
    graph.build()
    return ran(graph, {})


@program
def a_loop_asks_its_function_with_its_controller() -> Any:
    seen: list[Any] = []

    def stop(message: dict[str, Any], attributes: dict[str, Any], controller: Any) -> bool:
        attributes["asked"] = attributes.get("asked", 0) + 1
        seen.append([controller.name, message.get("n"), attributes["current_iteration"]])
        return attributes["asked"] > 2

    graph = RootGraph("g", attributes={"n": 0})
    loop = graph.create_node(Loop, "l", max_iterations=9, terminate_condition_function=stop)
    body = loop.create_node(CustomNode, "b", forward=lambda m: {"n": m["n"] + 1})
    loop.edge_from_controller(body, {"n": ""})
    loop.edge_to_controller(body, {"n": ""})
    graph.edge_from_entry(loop, {"n": ""})
    graph.edge_to_exit(loop, {"n": ""})
    graph.build()
    return [*ran(graph, {"n": 5}), seen]


@program
def a_loop_writes_its_counters_and_no_other_attribute() -> Any:
    graph = RootGraph("g", attributes={"n": 0})
    loop = graph.create_node(Loop, "l", max_iterations=3)
    body = loop.create_node(CustomNode, "b", forward=lambda m, a: {"n": a["n"] + 1})
    loop.edge_from_controller(body, {})
    loop.edge_to_controller(body, {"n": ""})
    graph.edge_from_entry(loop, {})
    graph.edge_to_exit(loop, {"n": ""})
    graph.build()
    return ran(graph, {})


@program
def what_a_stop_function_puts_in_is_in_the_round_and_the_output() -> Any:
    def stop(message: dict[str, Any], attributes: dict[str, Any]) -> bool:
        message["hint"] = f"round {attributes['current_iteration']}"
        return attributes["current_iteration"] > 2

    graph = RootGraph("g")
    loop = graph.create_node(Loop, "l", max_iterations=5, terminate_condition_function=stop)
    body = loop.create_node(CustomNode, "b", forward=lambda m: {"log": f"{m['log']}|{m['hint']}"})
    loop.edge_from_controller(body, {"log": "", "hint": ""})
    loop.edge_to_controller(body, {"log": ""})
    graph.edge_from_entry(loop, {"log": ""})
    graph.edge_to_exit(loop, {"log": "", "hint": ""})
    graph.build()
    return ran(graph, {"log": ""})


@program
def the_terminate_node_leaves_a_loop_at_once() -> Any:
    graph = RootGraph("g")
    loop = graph.create_node(Loop, "l", max_iterations=9)
    body = loop.create_node(CustomNode, "b", forward=add(1))
    ways = {"l_terminate": lambda m, a: m["n"] >= 3, "l_controller": lambda m, a: m["n"] < 3}
    switch = loop.create_node(LogicSwitch, "s", routes=ways)
    loop.edge_from_controller(body, {"n": ""})
    loop.create_edge(body, switch, {"n": ""})
    loop.edge_to_terminate_node(switch, {"n": ""})
    loop.edge_to_controller(switch, {"n": ""})
    graph.edge_from_entry(loop, {"n": ""})
    graph.edge_to_exit(loop, {"n": ""})
    graph.build()
    return ran(graph, {"n": 0})


@program
def a_subclass_of_a_loop_is_around_its_rounds() -> Any:
    class Around(Loop):
        @masf_hook(Node.Hook.FORWARD)
        def _forward(self, input: dict[str, Any]) -> dict[str, Any]:
            self._attributes_store["step"] = 10
            result = super()._forward({**input, "n": input["n"] * 2})
            return {**result, "was": input["n"]}

    graph = RootGraph("g")
    loop = graph.create_node(Around, "l", max_iterations=2)
    body = loop.create_node(CustomNode, "b", forward=lambda m, a: {"n": m["n"] + a["step"]})
    loop.edge_from_controller(body, {"n": ""})
    loop.edge_to_controller(body, {"n": ""})
    graph.edge_from_entry(loop, {"n": ""})
    graph.edge_to_exit(loop, {"n": "", "was": ""})
    graph.build()
    return [each[0] for each in ran(graph, {"n": 1})]


@program
def a_subclass_of_a_graph_makes_its_nodes_when_it_is_built() -> Any:
    class Phase(Graph):
        def __init__(self, name: str, step: int, **more: Any) -> None:
            super().__init__(name, **more)
            self._step = step

        @masf_hook(Node.Hook.BUILD)
        def build(self) -> None:
            self._attributes_store = {**self._attributes_store, **self._pull_keys}
            node = self.create_node(CustomNode, name=self._name + "_work", forward=add(self._step))
            self.edge_from_entry(receiver=node, keys={"n": ""})
            self.edge_to_exit(sender=node, keys={"n": ""})
            super().build()

    graph = RootGraph("g", attributes={"n": 1})
    phase = graph.create_node(Phase, name="p", step=4, pull_keys={"n": "a"}, push_keys={"n": "a"})
    graph.edge_from_entry(phase, {"n": ""})
    graph.edge_to_exit(phase, {"n": ""})
    graph.build()
    return [*ran(graph, {"n": 2}), [node.name for node in phase._nodes.values()]]


@program
def templates_are_overridden_by_path() -> Any:
    step = NodeTemplate(CustomNode, forward=add(1))
    inner = NodeTemplate(
        Graph,
        nodes=[("one", step), ("two", step)],
        edges=[("entry", "one", {"n": ""}), ("one", "two", {"n": ""}), ("two", "exit", {"n": ""})],
    )
    graph = RootGraph(
        "g",
        nodes=[("inner", inner), ("two", step)],
        edges=[
            ("ENTRY", "inner", {"n": ""}),
            ("inner", "two", {"n": ""}),
            ("two", "EXIT", {"n": ""}),
        ],
    )
    with template_overrides_for(path_filter="inner>two", forward=add(100)):
        graph.build()
    return ran(graph, {"n": 0})


@program
def hooks_are_called_around_nodes_and_edges() -> Any:
    calls: list[str] = []
    graph = single(CustomNode, ["n"], ["n"], forward=add(1))
    node = next(iter(graph._nodes.values()))
    node.hook_register(Node.Hook.FORWARD.BEFORE, lambda n, i: calls.append(f"before {n.name} {i}"))
    node.hook_register(Node.Hook.FORWARD.AFTER, lambda n, r, i: calls.append(f"after {r} {i}"))
    for edge in (*node.in_edges, *node.out_edges):
        edge.hook_register(Edge.Hook.SEND_MESSAGE, lambda s, r, m: calls.append(f"sent {m['n']}"))
    ran(graph, {"n": 1})
    return calls
