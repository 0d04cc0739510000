"""MASFactory's recorded graphs, written in axil's vocabulary.

Each function gives a built graph, and what its bodies noted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from axil import CustomNode, Graph, RootGraph, node
from axil_control import LogicSwitch, Loop

Made = tuple[RootGraph, dict[str, Any]]


def body(function: Callable[..., Any]) -> Callable[..., Any]:
    return node(function, inline=True)


def giving(output: dict[str, Any]) -> Callable[..., Any]:
    return lambda inputs: output


def custom(graph: Graph, name: str, function: Callable[..., Any], **options: Any) -> Any:
    return graph.create_node(CustomNode, name=name, forward=body(function), **options)


def linear_field_routing() -> Made:
    g = RootGraph("g")
    extract = custom(
        g, "extract", lambda inputs: {"title": inputs["raw"].strip(), "len": len(inputs["raw"])}
    )
    render = custom(g, "render", lambda inputs: {"result": f"{inputs['title']} ({inputs['len']})"})
    g.edge_from_entry(extract, ["raw"])
    g.create_edge(extract, render, ["title", "len"])
    g.edge_to_exit(render, ["result"])
    return g.build(), {}


def vertical_attributes_counter() -> Made:
    g = RootGraph("g", attributes={"counter": 0})

    def count(inputs: Any, attributes: Any) -> Any:
        return {"payload": inputs["payload"], "counter": attributes["counter"] + 1}

    n1, n2 = (
        custom(g, name, count, pull_keys={"counter": ""}, push_keys={"counter": ""})
        for name in ("n1", "n2")
    )
    g.edge_from_entry(n1, ["payload"])
    g.create_edge(n1, n2, ["payload"])
    g.edge_to_exit(n2, ["payload", "counter"])
    return g.build(), {}


def logic_switch_three_ways() -> Made:
    g = RootGraph("g")
    scorer = custom(
        g, "scorer", lambda inputs: {**inputs, "score": min(1, len(inputs["content"]) / 200)}
    )
    router = g.create_node(LogicSwitch, name="router")
    g.edge_from_entry(scorer, ["content"])
    g.create_edge(scorer, router, ["content", "score"])
    ways = {
        "high": lambda message: message["score"] >= 0.8,
        "mid": lambda message: 0.5 <= message["score"] < 0.8,
        "low": lambda message: message["score"] < 0.5,
    }
    for name, predicate in ways.items():
        branch = custom(g, name, giving({"feedback": name.upper()}))
        router.condition_binding(predicate, g.create_edge(router, branch, ["content"]))
        g.edge_to_exit(branch, ["feedback"])
    return g.build(), {}


def diamond(left: bool, right: bool) -> Made:
    g = RootGraph("g")
    sw = g.create_node(
        LogicSwitch, name="sw", routes={"left": lambda m, a: left, "right": lambda m, a: right}
    )
    join = custom(g, "join", lambda inputs: {"seen": dict(inputs)})
    g.edge_from_entry(sw, ["x"])
    for name, key in (("left", "l"), ("right", "r")):
        side = custom(g, name, giving({key: key.upper()}))
        g.create_edge(sw, side, ["x"])
        g.create_edge(side, join, [key])
    g.edge_to_exit(join, ["seen"])
    return g.build(), {}


def aggregation(values: list[Any]) -> RootGraph:
    g = RootGraph("g")
    producers = [custom(g, f"p{i}", giving({"k": value})) for i, value in enumerate(values)]
    join = custom(g, "join", lambda inputs: {"merged": inputs["k"]})
    for producer in producers:
        g.edge_from_entry(producer, {})
        g.create_edge(producer, join, ["k"])
    g.edge_to_exit(join, ["merged"])
    return g.build()


def order_zab() -> Made:
    g = RootGraph("g")
    z, a, b = (custom(g, name, giving({})) for name in "zab")
    g.edge_from_entry(a, {})
    g.edge_from_entry(b, {})
    g.create_edge(a, z, {})
    g.edge_to_exit(z, {})
    g.edge_to_exit(b, {})
    return g.build(), {}


def counting_loop(**options: Any) -> Made:
    return stepping_loop(
        ["count"], ["count"], lambda inputs: {"count": inputs["count"] + 1}, **options
    )


def stepping_loop(
    out: list[str],
    back: list[str],
    step: Callable[..., Any],
    comes_in: list[str] | None = None,
    **options: Any,
) -> Made:
    g = RootGraph("g")
    noted: dict[str, Any] = {"step_inputs": []}

    def noting(inputs: Any) -> Any:
        noted["step_inputs"].append(dict(inputs))
        return step(inputs)

    loop = g.create_node(Loop, name="loop", **options)
    inner = custom(loop, "step", noting)
    loop.edge_from_controller(inner, out)
    loop.edge_to_controller(inner, back)
    g.edge_from_entry(loop, comes_in or out)
    g.edge_to_exit(loop, out)
    return g.build(), noted


def loop_predicate_call_trace() -> Made:
    calls: list[list[int]] = []

    def predicate(inputs: Any, attributes: Any) -> bool:
        calls.append([inputs["count"], attributes["current_iteration"]])
        return False

    g, _ = counting_loop(max_iterations=2, terminate_condition_function=predicate)
    return g, {"predicate_calls": calls}


def loop_break_with_terminate_node() -> Made:
    g = RootGraph("g")
    loop = g.create_node(Loop, name="loop", max_iterations=10)
    step = custom(loop, "step", lambda inputs: {"n": inputs["n"] + 1})
    sw = loop.create_node(LogicSwitch, name="sw")
    loop.edge_from_controller(step, ["n"])
    loop.create_edge(step, sw, ["n"])
    sw.condition_binding(
        lambda message, attributes: message["n"] < 3, loop.edge_to_controller(sw, ["n"])
    )
    sw.condition_binding(
        lambda message, attributes: message["n"] >= 3, loop.edge_to_terminate_node(sw, ["n"])
    )
    g.edge_from_entry(loop, ["n"])
    g.edge_to_exit(loop, ["n"])
    return g.build(), {}


def solver_critics_loop() -> Made:
    g = RootGraph("g")
    vsf = g.create_node(Graph, name="vsf")
    first = custom(vsf, "first", lambda inputs: {"sol": "F:" + inputs["q"]})
    loop = vsf.create_node(Loop, name="vsf_vertical_decision_graph", max_iterations=2)
    solver = custom(
        loop, "solver", lambda inputs: {"sol": inputs["sol"] + "+" + "".join(inputs["fb"])}
    )
    for name in ("k1", "k2"):
        critic = custom(loop, name, giving({"fb": name}))
        loop.edge_from_controller(critic, ["sol"])
        loop.create_edge(critic, solver, ["fb"])
    loop.edge_from_controller(solver, ["sol"])
    loop.edge_to_controller(solver, ["sol"])
    vsf.edge_from_entry(first, ["q"])
    vsf.create_edge(first, loop, ["sol"])
    vsf.edge_to_exit(loop, ["sol"])
    g.edge_from_entry(vsf, ["q"])
    g.edge_to_exit(vsf, ["sol"])
    return g.build(), {}


def brainstorm_broadcast() -> Made:
    g = RootGraph("g")
    seen: list[Any] = []
    bs = g.create_node(Graph, name="bs", attributes={"broadcast": {}})
    line = bs.create_node(Graph, name="bs_horizontal_graph")
    scope = {"pull_keys": {"broadcast": ""}, "push_keys": {"broadcast": ""}}

    def critic(name: str) -> Callable[..., Any]:
        def speak(inputs: Any, attributes: Any) -> Any:
            seen.append([name, {"broadcast": dict(attributes["broadcast"])}])
            said = {"q": inputs["q"], "o": inputs.get("o", "") + name.upper()}
            return {**said, "broadcast": {**attributes["broadcast"], name: said}}

        return speak

    c1, c2 = (custom(line, name, critic(name), **scope) for name in ("c1", "c2"))
    line.edge_from_entry(c1, ["q"])
    line.create_edge(c1, c2, ["q", "o"])
    line.edge_to_exit(c2, ["q", "o"])
    solver = custom(bs, "solver", lambda inputs: {"ans": inputs["o"]})
    bs.edge_from_entry(line, ["q"])
    bs.create_edge(line, solver, ["q", "o"])
    bs.edge_to_exit(solver, ["ans"])
    g.edge_from_entry(bs, ["q"])
    g.edge_to_exit(bs, ["ans"])
    return g.build(), {"attributes_seen_by_critics": seen}


def generator_verifier(accepts_at: int, most: int) -> Made:
    g = RootGraph("g")
    gv = g.create_node(Loop, name="gv", max_iterations=most)
    generator = custom(
        gv,
        "generator",
        lambda inputs: {
            "attempt": inputs["attempt"] + 1,
            "candidate": f"draft-{inputs['attempt'] + 1}",
        },
    )
    verifier = custom(
        gv, "verifier", lambda inputs: {**inputs, "accepted": inputs["attempt"] >= accepts_at}
    )
    decision = gv.create_node(LogicSwitch, name="decision")
    gv.edge_from_controller(generator, ["attempt"])
    gv.create_edge(generator, verifier, ["attempt", "candidate"])
    gv.create_edge(verifier, decision, ["attempt", "candidate", "accepted"])
    decision.condition_binding(
        lambda message: not message["accepted"],
        gv.edge_to_controller(decision, ["attempt", "candidate"]),
    )
    decision.condition_binding(
        lambda message: message["accepted"], gv.edge_to_terminate_node(decision, ["candidate"])
    )
    g.edge_from_entry(gv, ["attempt"])
    g.edge_to_exit(gv, ["candidate"])
    return g.build(), {}


def edge_send_events() -> Made:
    g = RootGraph("g")
    a = custom(g, "a", giving({"x": 1}))
    b = custom(g, "b", lambda inputs: {"y": inputs["x"] + 1})
    g.edge_from_entry(a, {})
    g.create_edge(a, b, ["x"])
    g.edge_to_exit(b, ["y"])
    return g.build(), {}


def pull_push(pull: Any, push: Any) -> Made:
    g = RootGraph("g", attributes={"a": 1, "c": 3})
    noted: dict[str, Any] = {}

    def look(attributes: Any) -> Any:
        noted["node_sees"] = dict(attributes)
        return {"a": 10, "b": 20, "c": 30}

    n = custom(g, "n", look, pull_keys=pull, push_keys=push)
    g.edge_from_entry(n, {})
    g.edge_to_exit(n, {})
    return g.build(), noted


GRAPHS: dict[str, Callable[[], Made]] = {
    "linear_field_routing": linear_field_routing,
    "vertical_attributes_counter": vertical_attributes_counter,
    "logic_switch_three_ways": logic_switch_three_ways,
    "diamond_left_only": lambda: diamond(True, False),
    "diamond_both": lambda: diamond(True, True),
    "diamond_none": lambda: diamond(False, False),
    "sequential_order_rescans_from_first_node": order_zab,
    "loop_predicate": lambda: counting_loop(
        max_iterations=50, terminate_condition_function=lambda inputs: inputs["count"] >= 3
    ),
    "loop_max_iterations": lambda: counting_loop(max_iterations=3),
    "loop_predicate_call_trace": loop_predicate_call_trace,
    "loop_break_with_terminate_node": loop_break_with_terminate_node,
    "loop_first_round_placeholder": lambda: stepping_loop(
        ["n", "adv"],
        ["n", "adv"],
        lambda i: {"n": i["n"] + 1, "adv": f"A{i['n']}"},
        ["n"],
        max_iterations=2,
    ),
    "loop_controller_keeps_fields": lambda: stepping_loop(
        ["n", "q"], ["n"], lambda i: {"n": i["n"] + 1}, max_iterations=3
    ),
    "solver_critics_loop": solver_critics_loop,
    "brainstorm_broadcast": brainstorm_broadcast,
    "generator_verifier_accepts": lambda: generator_verifier(2, 5),
    "generator_verifier_exhausted": lambda: generator_verifier(99, 2),
    "edge_send_events": edge_send_events,
}
