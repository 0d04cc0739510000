"""Loops: what MASFactory's study says of them, and what axil does where MASFactory idles, leaks or
miscounts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from axil import CustomNode, Graph, RootGraph, SpecError, run_sync
from axil_control import LogicSwitch, Loop

from .masfactory_graphs import counting_loop, custom, generator_verifier, giving, stepping_loop
from .recorded import Watch


def outer(
    *keys: str,
    comes_in: list[str] | None = None,
    attributes: dict[str, Any] | None = None,
    **options: Any,
) -> tuple[RootGraph, Loop]:
    g = RootGraph("g", attributes=attributes)
    loop = g.create_node(Loop, name="loop", **options)
    g.edge_from_entry(loop, comes_in or list(keys))
    g.edge_to_exit(loop, list(keys))
    return g, loop


def test_a_verifier_that_accepts_leaves_through_the_terminate_node():
    g, _ = generator_verifier(2, 5)
    assert g.invoke({"attempt": 0}) == (
        {"candidate": "draft-2"},
        {"current_iteration": 2, "max_iterations": 5},
    )


def test_the_predicate_is_asked_before_every_round_the_first_included():
    g, noted = counting_loop(max_iterations=5, terminate_condition_function=lambda inputs: True)
    assert g.invoke({"count": 7}) == ({"count": 7}, {"current_iteration": 1, "max_iterations": 5})
    assert noted["step_inputs"] == []


@pytest.mark.parametrize("most", [None, 0, -1])
def test_a_loop_with_a_predicate_and_no_limit_turns_as_long_as_it_takes(most):
    g, noted = counting_loop(
        max_iterations=most, terminate_condition_function=lambda inputs: inputs["count"] >= 1500
    )
    assert g.invoke({"count": 0})[0] == {"count": 1500}
    assert len(noted["step_inputs"]) == 1500


def test_a_limit_of_rounds_counts_rounds_not_nodes():
    g, loop = outer("n", max_iterations=400)
    body = [custom(loop, f"s{i}", lambda inputs: {"n": inputs["n"] + 1}) for i in range(5)]
    loop.edge_from_controller(body[0], ["n"])
    for one, next_ in pairwise(body):
        loop.create_edge(one, next_, ["n"])
    loop.edge_to_controller(body[-1], ["n"])
    assert g.build().invoke({"n": 0})[0] == {"n": 2000}


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_a_predicate_takes_one_to_six_arguments(count):
    predicates = {
        1: lambda fields: fields["count"] >= 2,
        2: lambda fields, at: fields["count"] >= 2 and at["current_iteration"] == 3,
        3: lambda fields, at, me: fields["count"] >= 2 and me is not None,
        6: lambda fields, at, me, memories, tools, retrievers: (
            fields["count"] >= 2 and memories is None
        ),
    }
    g, _ = counting_loop(max_iterations=9, terminate_condition_function=predicates[count])
    assert g.invoke({"count": 0})[0] == {"count": 2}


def test_a_predicate_of_seven_arguments_is_an_error():
    with pytest.raises(ValueError, match="AX163"):
        counting_loop(
            max_iterations=9, terminate_condition_function=lambda a, b, c, d, e, f, g: True
        )


def test_what_a_predicate_writes_into_the_message_reaches_this_round_and_the_output_only():
    def predicate(inputs: Any) -> bool:
        inputs["prompt"] = f"prompt {inputs['n']}"
        return inputs["n"] >= 2

    g, loop = outer(
        "n", "prompt", comes_in=["n"], max_iterations=9, terminate_condition_function=predicate
    )
    seen: list[Any] = []

    def step(inputs: Any) -> Any:
        seen.append(inputs["prompt"])
        return {"n": inputs["n"] + 1}

    inner = custom(loop, "step", step)
    loop.edge_from_controller(inner, ["n", "prompt"])
    loop.edge_to_controller(inner, ["n"])
    assert g.build().invoke({"n": 0})[0] == {"n": 2, "prompt": "prompt 2"}
    assert seen == ["prompt 0", "prompt 1"]


def test_initial_messages_lie_under_what_comes_in():
    first = {"n": 50, "m": "first"}
    g, noted = stepping_loop(
        ["n", "m"],
        ["n"],
        lambda i: {"n": i["n"] + 1},
        ["n"],
        max_iterations=1,
        initial_messages=first,
    )
    assert g.invoke({"n": 0})[0] == {"n": 1, "m": "first"}
    assert noted["step_inputs"] == [{"n": 0, "m": "first"}]


def test_the_controllers_fields_are_new_in_each_run():
    g, noted = stepping_loop(
        ["n", "adv"], ["n", "adv"], lambda i: {"n": i["n"] + 1, "adv": "A"}, ["n"], max_iterations=1
    )
    assert [g.invoke({"n": 0})[0] for _ in range(2)] == [{"n": 1, "adv": "A"}] * 2
    assert noted["step_inputs"] == [{"n": 0, "adv": "(not set yet)"}] * 2


def test_several_feedbacks_of_one_field_are_folded_like_any_others():
    g, loop = outer("k", max_iterations=2)
    seen: list[Any] = []
    for name in ("a", "b"):
        node = custom(
            loop,
            name,
            lambda inputs: {"k": [inputs["k"]] if isinstance(inputs["k"], str) else inputs["k"]},
        )
        loop.edge_from_controller(node, ["k"])
        loop.edge_to_controller(node, ["k"])
    assert g.build().invoke({"k": "x"})[0] == {"k": ["x", "x", "x", "x"]}
    assert seen == []


def test_the_controller_waits_only_for_feedback_that_can_still_come():
    g, loop = outer("n", max_iterations=4)
    sw = loop.create_node(
        LogicSwitch,
        name="sw",
        routes={"even": lambda m: m["n"] % 2 == 0, "odd": lambda m: m["n"] % 2 == 1},
    )
    loop.edge_from_controller(sw, ["n"])
    for name in ("even", "odd"):
        node = custom(loop, name, lambda inputs: {"n": inputs["n"] + 1})
        loop.create_edge(sw, node, ["n"])
        loop.edge_to_controller(node, ["n"])
    watch = Watch()
    assert g.build().invoke({"n": 0}, observers=[watch])[0] == {"n": 4}
    assert [name for name in watch.bodies if name in ("even", "odd")] == [
        "even",
        "odd",
        "even",
        "odd",
    ]


def test_a_switch_may_route_to_the_controller_and_to_the_terminate_node_by_name():
    g, loop = outer("n", max_iterations=9)
    step = custom(loop, "step", lambda inputs: {"n": inputs["n"] + 1})
    sw = loop.create_node(
        LogicSwitch,
        name="sw",
        routes={"controller": lambda m: m["n"] < 3, "terminate": lambda m: m["n"] >= 3},
    )
    loop.edge_from_controller(step, ["n"])
    loop.create_edge(step, sw, ["n"])
    loop.edge_to_controller(sw, ["n"])
    loop.edge_to_terminate_node(sw, ["n"])
    assert g.build().invoke({"n": 0})[0] == {"n": 3}


# --------------------------------------------------------------------------------------------------


def test_the_terminate_nodes_message_alone_is_the_output():
    g, loop = outer("bye", comes_in=["n"], max_iterations=9)
    step = custom(loop, "step", giving({"n": 1, "bye": "now"}))
    loop.edge_from_controller(step, ["n"])
    loop.edge_to_terminate_node(step, ["bye"])
    watch = Watch()
    output, attributes = g.build().invoke({"n": 0}, observers=[watch])
    assert output == {"bye": "now"}
    assert attributes["current_iteration"] == 1
    assert watch.order == ["loop", "loop_controller", "step"]


def test_leaving_beats_coming_back():
    g, loop = outer("n", max_iterations=9)
    step = custom(loop, "step", lambda inputs: {"n": inputs["n"] + 1})
    loop.edge_from_controller(step, ["n"])
    loop.edge_to_controller(step, ["n"])
    loop.edge_to_terminate_node(step, ["n"])
    watch = Watch()
    output, attributes = g.build().invoke({"n": 0}, observers=[watch])
    assert output == {"n": 1}
    assert attributes["current_iteration"] == 1
    assert watch.order.count("loop_controller") == 1


def test_a_round_in_which_every_path_dies_ends_the_loop_naturally():
    g, loop = outer("n", max_iterations=9)
    sw = loop.create_node(LogicSwitch, name="sw", routes={"step": lambda m: m["n"] < 0})
    step = custom(loop, "step", lambda inputs: {"n": inputs["n"] + 1})
    loop.edge_from_controller(sw, ["n"])
    loop.create_edge(sw, step, ["n"])
    loop.edge_to_controller(step, ["n"])
    result = run_sync(g.build().run({"n": 0}))
    assert result.status == "done"
    assert result.output == {}
    assert [tally.ends for tally in result.cycles.values()] == [{"natural": 1}]


def test_nodes_beside_the_one_that_leaves_finish_and_later_ones_never_start():
    g, loop = outer("n", max_iterations=9)
    leave = custom(loop, "leave", giving({"n": 1}))
    beside = custom(loop, "beside", giving({"n": 2}))
    later = custom(loop, "later", giving({"n": 3}))
    for node in (leave, beside):
        loop.edge_from_controller(node, ["n"])
    loop.create_edge(beside, later, ["n"])
    loop.edge_to_controller(later, ["n"])
    loop.edge_to_terminate_node(leave, ["n"])
    watch = Watch()
    assert g.build().invoke({"n": 0}, observers=[watch])[0] == {"n": 1}
    assert sorted(watch.bodies) == ["beside", "leave", "loop"]


def test_a_node_of_the_body_that_leads_nowhere_runs_in_every_round():
    g, loop = outer("n", max_iterations=3)
    noted: list[int] = []
    step = custom(loop, "step", lambda inputs: {"n": inputs["n"] + 1})
    note = custom(loop, "note", lambda inputs: noted.append(inputs["n"]) or {})
    loop.edge_from_controller(step, ["n"])
    loop.create_edge(step, note, ["n"])
    loop.edge_to_controller(step, ["n"])
    assert g.build().invoke({"n": 0})[0] == {"n": 3}
    assert noted == [1, 2, 3]


def test_a_switch_of_the_body_that_only_breaks_leaves_the_other_rounds_alone():
    g, loop = outer("n", max_iterations=9)
    step = custom(loop, "step", lambda inputs: {"n": inputs["n"] + 1})
    sw = loop.create_node(LogicSwitch, name="sw")
    last = custom(loop, "last", lambda inputs: {"n": inputs["n"] * 10})
    loop.edge_from_controller(step, ["n"])
    loop.create_edge(step, sw, ["n"])
    loop.edge_to_controller(step, ["n"])
    sw.condition_binding(lambda m: m["n"] >= 2, loop.create_edge(sw, last, ["n"]))
    loop.edge_to_terminate_node(last, ["n"])
    assert g.build().invoke({"n": 0}) == ({"n": 20}, {"current_iteration": 2, "max_iterations": 9})


# --------------------------------------------------------------------------------------------------


def test_a_loop_that_names_what_it_writes_writes_that_and_no_counters():
    def written(**push: str) -> Any:
        g, loop = outer("n", max_iterations=2, attributes={"a": 0, "b": 0}, push_keys=push)
        step = custom(loop, "step", lambda inputs: {"n": inputs["n"] + 1, "a": 5, "b": 6})
        loop.edge_from_controller(step, ["n"])
        loop.edge_to_controller(step, ["n"])
        return g.build().invoke({"n": 0})[1]

    assert written(a="") == {"a": 5, "b": 0}
    assert written(a="", current_iteration="") == {"a": 5, "b": 0, "current_iteration": 2}


def test_a_condition_that_holds_at_the_limit_leaves_the_count_at_the_limit():
    g, _ = counting_loop(
        max_iterations=2, terminate_condition_function=lambda inputs: inputs["count"] >= 2
    )
    assert g.invoke({"count": 0})[1] == {"current_iteration": 2, "max_iterations": 2}


def test_a_loop_that_pushes_nothing_writes_nothing():
    g, loop = outer("n", max_iterations=2, attributes={"a": 0}, push_keys={})
    step = custom(loop, "step", lambda inputs: {"n": inputs["n"] + 1, "a": 5})
    loop.edge_from_controller(step, ["n"])
    loop.edge_to_controller(step, ["n"])
    assert g.build().invoke({"n": 0})[1] == {"a": 0}


def test_nodes_of_a_loop_see_the_round_they_are_in():
    g, loop = outer("seen", comes_in=["seen"], max_iterations=3)
    step = custom(
        loop,
        "step",
        lambda inputs, attributes: {"seen": [*inputs["seen"], attributes["current_iteration"]]},
    )
    loop.edge_from_controller(step, ["seen"])
    loop.edge_to_controller(step, ["seen"])
    assert g.build().invoke({"seen": []})[0] == {"seen": [1, 2, 3]}


def test_nested_loops_have_counters_and_limits_of_their_own():
    g, loop = outer("seen", max_iterations=2)
    inner = loop.create_node(Loop, name="inner", max_iterations=3)

    def look(inputs: Any, attributes: Any) -> Any:
        return {
            "seen": [
                *inputs["seen"],
                f"{attributes['current_iteration']}/{attributes['max_iterations']}",
            ]
        }

    step = custom(inner, "step", look)
    inner.edge_from_controller(step, ["seen"])
    inner.edge_to_controller(step, ["seen"])
    after = custom(loop, "after", look)
    loop.edge_from_controller(inner, ["seen"])
    loop.create_edge(inner, after, ["seen"])
    loop.edge_to_controller(after, ["seen"])
    output, attributes = g.build().invoke({"seen": []})
    assert output == {"seen": ["1/3", "2/3", "3/3", "1/2", "1/3", "2/3", "3/3", "2/2"]}
    assert attributes == {"current_iteration": 2, "max_iterations": 2}


def test_an_inner_loop_that_is_left_early_starts_anew_in_the_next_outer_round():
    g, loop = outer("n", "log", max_iterations=2)
    inner = loop.create_node(Loop, name="inner", max_iterations=9)
    step = custom(
        inner, "step", lambda inputs: {"n": inputs["n"] + 1, "log": [*inputs["log"], inputs["n"]]}
    )
    sw = inner.create_node(LogicSwitch, name="sw")
    inner.edge_from_controller(step, ["n", "log"])
    inner.create_edge(step, sw, ["n", "log"])
    sw.condition_binding(lambda m: m["n"] % 2 == 1, inner.edge_to_controller(sw, ["n", "log"]))
    sw.condition_binding(lambda m: m["n"] % 2 == 0, inner.edge_to_terminate_node(sw, ["n", "log"]))
    loop.edge_from_controller(inner, ["n", "log"])
    loop.edge_to_controller(inner, ["n", "log"])
    assert g.build().invoke({"n": 0, "log": []})[0] == {"n": 4, "log": [0, 1, 2, 3]}


def test_a_graph_in_a_loop_forgets_what_its_nodes_kept_by_default():
    def kept(keep: bool) -> Any:
        g, loop = outer("n", max_iterations=3)
        sub = loop.create_node(Graph, name="sub", keep=keep)

        def count(inputs: Any, local: Any) -> Any:
            local["n"] = local.get("n", 0) + 1
            return {"n": local["n"]}

        node = custom(sub, "count", count)
        sub.edge_from_entry(node, ["n"])
        sub.edge_to_exit(node, ["n"])
        loop.edge_from_controller(sub, ["n"])
        loop.edge_to_controller(sub, ["n"])
        return g.build().invoke({"n": 0})[0]["n"]

    assert (kept(False), kept(True)) == (1, 3)


def test_twenty_loops_inside_one_another_need_no_stack():
    g = RootGraph("g")
    graph: Graph = g
    for depth in range(20):
        inner = graph.create_node(Loop, name=f"l{depth}", max_iterations=1)
        if isinstance(graph, Loop):
            graph.edge_from_controller(inner, ["n"])
            graph.edge_to_controller(inner, ["n"])
        else:
            graph.edge_from_entry(inner, ["n"])
            graph.edge_to_exit(inner, ["n"])
        graph = inner
    assert isinstance(graph, Loop)
    step = custom(graph, "step", lambda inputs: {"n": inputs["n"] + 1})
    graph.edge_from_controller(step, ["n"])
    graph.edge_to_controller(step, ["n"])
    assert g.build().invoke({"n": 0})[0] == {"n": 1}


# --------------------------------------------------------------------------------------------------


def test_strangers_and_duplicates_at_a_controller_are_errors_at_once():
    _, loop = outer("n", max_iterations=1)
    node = loop.create_node(CustomNode, name="node")
    stranger = RootGraph("other").create_node(CustomNode, name="stranger")
    loop.edge_from_controller(node, ["n"])
    loop.edge_to_controller(node, ["n"])
    with pytest.raises(SpecError, match="AX125"):
        loop.edge_from_controller(stranger, ["n"])
    with pytest.raises(SpecError, match="AX125"):
        loop.edge_to_controller(stranger, ["n"])
    with pytest.raises(SpecError, match="AX106"):
        loop.edge_from_controller(node, ["n"])
    with pytest.raises(SpecError, match="AX106"):
        loop.edge_to_controller(node, ["n"])


def test_a_circle_beside_the_controller_is_an_error_that_names_it():
    _, loop = outer("n", max_iterations=1)
    a, b = (loop.create_node(CustomNode, name=name) for name in "ab")
    loop.create_edge(a, b)
    with pytest.raises(SpecError, match="b -> a -> b"):
        loop.create_edge(b, a)


@pytest.mark.parametrize("name", ["controller", "Terminate", "entry", "exit"])
def test_the_names_of_a_loops_own_nodes_are_taken(name):
    _, loop = outer("n", max_iterations=1)
    with pytest.raises(SpecError, match="AX122"):
        loop.create_node(CustomNode, name=name)
