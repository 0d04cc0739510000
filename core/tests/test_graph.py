"""The builder's vocabulary: what it takes, what it refuses at once, and what attributes see."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, TypedDict

import pytest

from axil import ComponentRef, ConfigError, CustomNode, Graph, Options, RootGraph, node
from axil.errors import (
    BodyError,
    MissingKeys,
    NodeFailed,
    NotBuilt,
    PluginContract,
    RouteError,
    SpecError,
)
from axil.runtime.result import Result
from axil_control import Loop


def passing(inputs: dict[str, Any]) -> dict[str, Any]:
    return inputs


def chain(*functions: Any, attributes: Any = None, **rules: Any) -> RootGraph:
    """Functions one after another; everything is carried."""
    g = RootGraph("g", attributes=attributes)
    nodes = [
        g.create_node(CustomNode, function, name=f"n{i}", inline=True, **rules)
        for i, function in enumerate(functions)
    ]
    g.edge_from_entry(nodes[0], {})
    for a, b in itertools.pairwise(nodes):
        g.create_edge(a, b, {})
    g.edge_to_exit(nodes[-1], {})
    return g


def refused(id: str):
    return pytest.raises(SpecError, match=id)


# ------------------------------------------------------------------------------------------------ c


def test_a_node_is_made_of_a_class_an_instance_or_a_function():
    g = RootGraph("g")
    made = [
        g.create_node(CustomNode, passing, name="a"),
        g.create_node(CustomNode(passing), name="b"),
        g.create_node(passing, name="c"),
        g.create_node(passing),
    ]
    assert list(g.nodes) == ["a", "b", "c", "passing"]
    assert list(g.nodes.values()) == made


@pytest.mark.parametrize("name", ["entry", "exit", "Entry", "EXIT"])
def test_a_reserved_name_is_refused(name):
    with refused("AX122"):
        RootGraph("g").create_node(passing, name=name)


@pytest.mark.parametrize("name", ["controller", "terminate"])
def test_a_loop_reserves_two_names_more(name):
    RootGraph("g").create_node(passing, name=name)
    with refused("AX122"):
        Loop("l").create_node(passing, name=name)


@pytest.mark.parametrize("name", ["a b", "a/b", "ä", "a.b"])
def test_a_malformed_name_is_refused(name):
    with refused("AX102"):
        RootGraph("g").create_node(passing, name=name)


def test_a_text_where_a_list_is_wanted_is_refused_and_not_read_letter_by_letter():
    g = RootGraph("g")
    with pytest.raises(
        SpecError, match=r'AX176 .*wrappers as a list, found "retry"\. Write \["ret'
    ):
        g.create_node(passing, name="a", wrappers="retry")
    g.create_node(passing, name="a")
    with pytest.raises(SpecError, match=r'AX176 .*found "topic"\. Write \["topic"\]'):
        g.edge_from_entry("a", "topic")


def test_an_unknown_option_of_a_run_is_answered_with_the_one_that_is_meant():
    with pytest.raises(TypeError, match=r'option\(s\) jornal\. Did you mean "journal"\?'):
        looping(passing).build().invoke({}, jornal=None)


def test_a_name_can_be_given_once():
    g = RootGraph("g")
    g.create_node(passing, name="a")
    with refused("AX101"):
        g.create_node(passing, name="a")


def test_a_root_graph_cannot_be_a_node():
    with refused("AX121"):
        RootGraph("g").create_node(RootGraph, name="inner")
    with refused("AX121"):
        RootGraph("g").create_node(RootGraph("other"), name="inner")


def test_a_decorated_function_says_how_it_runs():
    @node(inline=True)
    def double(inputs):
        return {"n": 2 * inputs["n"]}

    g = RootGraph("g")
    a = g.create_node(double)
    g.edge_from_entry(a, ["n"])
    g.edge_to_exit(a, ["n"])
    assert g.build().plan.nodes[0].mode == "inline"
    assert g.invoke({"n": 4}) == ({"n": 8}, {})


# ------------------------------------------------------------------------------------------------ c


def two() -> tuple[RootGraph, Any, Any]:
    g = RootGraph("g")
    return g, g.create_node(passing, name="a"), g.create_node(passing, name="b")


def test_ends_are_nodes_or_their_names():
    g, a, b = two()
    g.create_edge(a, "b")
    with refused("AX106"):
        g.create_edge("a", b)


def test_a_stranger_is_refused_and_a_close_name_offered():
    g, a, _ = two()
    with refused("AX104"):
        g.create_edge(a, "c")
    with refused("AX125"):
        g.create_edge(a, CustomNode(passing))
    g.create_node(passing, name="reviewer")
    with pytest.raises(SpecError, match='Did you mean "reviewer"'):
        g.create_edge(a, "reviewr")


def test_a_node_of_another_graph_is_a_stranger_even_under_the_same_name():
    g, a, _ = two()
    with pytest.raises(SpecError, match="another node of that name"):
        g.create_edge(a, RootGraph("other").create_node(CustomNode, passing, name="b"))


def test_a_second_edge_between_the_same_two_needs_a_group_of_its_own():
    g, a, b = two()
    g.create_edge(a, b)
    with refused("AX106"):
        g.create_edge(a, b, ["other"])
    g.create_edge(a, b, group="second")


def test_an_edge_that_closes_a_cycle_is_refused_and_its_path_is_shown():
    g, a, b = two()
    c = g.create_node(passing, name="c")
    g.create_edge(a, b)
    g.create_edge(b, c)
    with pytest.raises(SpecError, match=r"c -> a -> b -> c|a -> b -> c -> a"):
        g.create_edge(c, a)
    with refused("AX111"):
        g.create_edge(a, a)
    g.create_edge(c, a, trigger=False)  # data closes no cycle


def test_cycles_may_be_allowed():
    g = RootGraph("g", cycles="allow")
    a = g.create_node(
        lambda local: local.update(n=local.get("n", 0) + 1) or {"n": local["n"]},
        name="a",
        inline=True,
    )
    g.edge_from_entry(a, {})
    g.create_edge(a, a, ["n"], when=lambda payload: payload["n"] < 5)
    g.edge_to_exit(a, ["n"], when=lambda payload: payload["n"] == 5)
    assert g.build().invoke({})[0] == {"n": 5}


def test_keys_select_and_no_keys_mean_the_message_and_empty_keys_trigger_without_data():
    seen: list[Any] = []

    def look(inputs):
        seen.append(dict(inputs))
        return inputs

    for keys, expected in (
        (None, {"message": "m"}),
        ({}, {}),
        (["x"], {"x": 1}),
        ({"x": "an x", "message": ""}, {"x": 1, "message": "m"}),
    ):
        g = RootGraph("g")
        a, b = (
            g.create_node(lambda inputs: {"message": "m", "x": 1, "y": 2}, name="a"),
            g.create_node(look, name="b"),
        )
        g.edge_from_entry(a, {})
        g.create_edge(a, b, keys)
        g.edge_to_exit(b, {})
        g.build().invoke({})
        assert seen.pop() == expected


def test_a_missing_field_fails_its_sender_and_names_edge_field_and_what_there_is():
    g, a, b = two()
    g.edge_from_entry(a, ["x"])
    g.create_edge(a, b, ["z"])
    g.edge_to_exit(b, {})
    with pytest.raises(NodeFailed, match=r'node "a".*a->b.*z.*has x') as error:
        g.build().invoke({"x": 1})
    assert isinstance(error.value.__cause__, MissingKeys)


def test_an_edge_that_is_not_taken_is_not_asked_for_its_fields():
    g, a, b = two()
    g.edge_from_entry(a, ["x"])
    g.create_edge(a, b, ["z"], when=lambda payload: False)
    g.edge_to_exit(a, ["x"])
    assert g.build().invoke({"x": 1})[0] == {"x": 1}


def test_input_that_no_entry_edge_asks_for_is_left_behind():
    g, a, _ = two()
    g.edge_from_entry(a, ["x"])
    g.edge_to_exit(a, ["x"])
    g.create_edge("a", "b", {})
    assert g.build().invoke({"x": 1, "more": 2})[0] == {"x": 1}


def test_an_edge_may_ask_the_state_and_rewrite_what_it_carries():
    g = RootGraph("g", attributes={"loud": True})
    a, b = g.create_node(passing, name="a"), g.create_node(passing, name="b")
    g.edge_from_entry(a)
    g.create_edge(
        a,
        b,
        when=lambda state: state["loud"],
        process=lambda payload: {"message": payload["message"].upper()},
    )
    g.edge_to_exit(b)
    g.build()
    assert g.invoke("hi")[0] == {"message": "HI"}
    assert g.invoke("hi", {"loud": False})[0] == {}


@pytest.mark.parametrize(
    ("first", "second", "folded"),
    [
        (1, 2, [1, 2]),
        (1, [2], [1, [2]]),
        ([1], [2], [1, 2]),
        ([1], 2, [1, 2]),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, [5], [{"a": 1}, [5]]),
        ("x", "x", ["x", "x"]),
        (None, None, [None, None]),
    ],
)
def test_a_field_that_comes_on_two_edges_is_folded_in_edge_order(first, second, folded):
    g = RootGraph("g")
    a, b = (
        g.create_node(lambda inputs: {"k": first}, name="a"),
        g.create_node(lambda inputs: {"k": second}, name="b"),
    )
    for n in (a, b):
        g.edge_from_entry(n, {})
    g.edge_to_exit(a, ["k"])
    g.edge_to_exit(b, ["k"])
    assert g.build().invoke({})[0] == {"k": folded}


def test_folding_never_changes_what_a_node_gave():
    mine = [1]
    g = RootGraph("g")
    a, b, c = (
        g.create_node(f, name=n)
        for n, f in (
            ("a", lambda inputs: {"k": mine}),
            ("b", lambda inputs: {"k": [2]}),
            ("c", passing),
        )
    )
    for n in (a, b):
        g.edge_from_entry(n, {})
        g.create_edge(n, c, ["k"])
    g.edge_to_exit(c, ["k"])
    assert g.build().invoke({})[0] == {"k": [1, 2]}
    assert mine == [1]


# ------------------------------------------------------------------------------------------------ b


def test_a_graph_is_used_after_build_and_changed_before_it():
    g, a, _ = two()
    with pytest.raises(NotBuilt, match="AX123"):
        g.invoke({})
    g.edge_from_entry(a, {})
    g.create_edge("a", "b", {})
    g.edge_to_exit("b", {})
    g.build()
    with pytest.raises(NotBuilt, match="AX124"):
        g.create_node(passing, name="late")
    with pytest.raises(NotBuilt, match="AX124"):
        g.create_edge("b", "exit")


def test_build_reports_everything_at_once_and_can_be_repeated_after_a_repair():
    g = RootGraph("g")
    g.create_node(passing, name="alone")
    g.create_node(passing, name="lonely")
    with pytest.raises(SpecError) as error:
        g.build()
    assert [p.id for p in error.value.problems] == ["AX112", "AX112"]
    for name in ("alone", "lonely"):
        g.edge_from_entry(name, {})
        g.edge_to_exit(name, {})
    assert g.build().invoke({}) == ({}, {})


def test_nodes_and_edges_may_be_declared():
    g = RootGraph(
        "g",
        nodes=[("a", CustomNode, passing), ("b", passing)],
        edges=[("entry", "a", ["x"]), ("a", "b", ["x"]), ("b", "exit", ["x"])],
    )
    assert g.build().invoke({"x": 1})[0] == {"x": 1}


def test_a_graph_may_be_built_by_a_function_when_it_is_needed():
    def build(g):
        a = g.create_node(passing, name="a")
        g.edge_from_entry(a)
        g.edge_to_exit(a)

    assert RootGraph("g", build_func=build).build().invoke("hi")[0] == {"message": "hi"}


def test_an_empty_graph_gives_nothing():
    assert RootGraph("g").build().invoke({"x": 1}) == ({}, {})


def test_an_edge_from_entry_to_exit_passes_input_on():
    g = RootGraph("g")
    g.create_edge("entry", "exit", ["x"])
    assert g.build().invoke({"x": 1})[0] == {"x": 1}


# ------------------------------------------------------------------------------------------------ b


@pytest.mark.parametrize(
    "forward",
    [
        lambda inputs: {"m": inputs["x"]},
        lambda message: {"m": message["x"]},
        lambda anything, attributes_: {"m": anything["x"]},
        lambda a, b, c, d, e, f: {"m": a["x"]},
    ],
)
def test_a_custom_node_takes_its_arguments_by_name_or_by_position(forward):
    g = RootGraph("g")
    a = g.create_node(CustomNode, forward, name="a")
    g.edge_from_entry(a, ["x"])
    g.edge_to_exit(a, ["m"])
    assert g.build().invoke({"x": 7})[0] == {"m": 7}


def test_by_position_a_custom_node_gets_input_attributes_memories_tools_retrievers_and_itself():
    seen: list[Any] = []

    def forward(a, b, c, d, e, f):
        seen.extend([dict(a), dict(b), c, d, e, f])
        return {}

    g = RootGraph("g", attributes={"tone": "dry"})
    custom = g.create_node(CustomNode, forward, name="a", memories=[1], tools=[2], retrievers=[3])
    g.edge_from_entry(custom, ["x"])
    g.build().invoke({"x": 7})
    assert seen == [{"x": 7}, {"tone": "dry"}, [1], [2], [3], custom]


def test_what_a_body_asks_for_goes_to_the_parameter_of_that_name_behind_one_with_a_default():
    def forward(limit=5, state=None):
        return {"n": state["n"] + limit}

    assert chain(forward, attributes={"n": 1}).build().invoke({})[1] == {"n": 6}


def test_what_an_edge_asks_for_goes_to_the_parameter_of_that_name_behind_one_with_a_default():
    g = chain(lambda state: {"n": state["n"] + 1}, attributes={"n": 1})
    g.edge_to_exit("n0", ["n"], when=lambda most=1, state=None: state["n"] > most)
    assert g.build().invoke({})[0] == {"n": 2}


@pytest.mark.parametrize("name", [3, ("n",), None])
def test_an_attribute_whose_name_is_no_text_is_refused_though_a_rule_names_it(name):
    g = chain(lambda state: {name: 1}, attributes={"n": 1}, push_keys={name: ""})
    with pytest.raises(NodeFailed, match="field names"):
        g.build().invoke({})


def test_what_a_body_gave_and_keeps_is_not_what_was_written():
    kept = {"n": 1, "log": ["a"]}
    flow = chain(
        lambda: kept,
        lambda: (kept["log"].append("b"), kept.update(n=7), {})[-1],
        attributes={"n": 0, "log": []},
    ).build()
    assert flow.invoke({})[1] == {"n": 1, "log": ["a"]}


def test_a_function_that_mixes_known_names_out_of_place_with_others_is_refused():
    g = chain(lambda whatever, state: {})
    with refused("AX162"):
        g.build()


def test_a_function_of_too_many_arguments_is_refused():
    g = chain(lambda p, q, r, s, t, u, v: {})
    with refused("AX163"):
        g.build()


def test_a_custom_node_without_a_function_passes_its_input_on():
    g = RootGraph("g")
    a = g.create_node(CustomNode, name="a")
    g.edge_from_entry(a, ["x"])
    g.edge_to_exit(a, ["x"])
    assert g.build().invoke({"x": 1})[0] == {"x": 1}


def test_a_custom_node_may_get_its_function_later():
    g = RootGraph("g")
    a = g.create_node(CustomNode, name="a")
    a.set_forward(lambda inputs: {"x": 2})
    g.edge_from_entry(a, ["x"])
    g.edge_to_exit(a, ["x"])
    assert g.build().invoke({"x": 1})[0] == {"x": 2}


def test_a_result_that_is_not_a_mapping_fails_the_node():
    g = chain(lambda inputs: "text")
    with pytest.raises(NodeFailed, match="returned str") as error:
        g.build().invoke({})
    assert isinstance(error.value.__cause__, BodyError)


# ------------------------------------------------------------------------------------------------ a


@pytest.mark.parametrize(
    ("pull", "push", "attributes"),
    [
        # no rules: what the graph has is written, what it has not is dropped
        (None, None, {"a": 2, "b": 0}),
        ({"a": ""}, None, {"a": 2, "b": 0}),
        ({}, None, {"a": 1, "b": 0}),
        (None, {}, {"a": 1, "b": 0}),
        ({}, {"a": "", "new": ""}, {"a": 2, "b": 0, "new": 3}),
        (None, {"new": ""}, {"a": 1, "b": 0, "new": 3}),
    ],
)
def test_what_a_node_pushes(pull, push, attributes):
    g = chain(
        lambda inputs: {"a": 2, "new": 3},
        attributes={"a": 1, "b": 0},
        pull_keys=pull,
        push_keys=push,
    )
    assert g.build().invoke({})[1] == attributes


@pytest.mark.parametrize(
    ("pull", "seen"),
    [(None, {"a": 1, "b": 0}), ({}, {}), ({"a": "an a"}, {"a": 1}), ({"zz": "absent"}, {})],
)
def test_what_a_node_pulls(pull, seen):
    found: list[Any] = []

    def look(attributes):
        found.append(dict(attributes))
        return {}

    chain(look, attributes={"a": 1, "b": 0}, pull_keys=pull).build().invoke({})
    assert found == [seen]


def test_what_a_node_sets_in_its_attributes_is_pushed_by_the_same_rules():
    def setting(attributes):
        attributes["a"] = 5
        return {}

    assert chain(setting, attributes={"a": 1}).build().invoke({})[1] == {"a": 5}
    with pytest.raises(NodeFailed, match='assigned "a" to the attributes'):
        chain(setting).build().invoke({})


def test_an_attribute_of_a_nodes_own_lasts_between_its_firings_and_not_between_runs():
    seen: list[int] = []

    def count(attributes):
        seen.append(attributes["n"])
        return {"n": attributes["n"] + 1}

    g = RootGraph("g", cycles="allow")
    a = g.create_node(CustomNode, count, name="a", attributes={"n": 1}, inline=True)
    g.edge_from_entry(a, {})
    g.create_edge(a, a, ["n"], when=lambda payload: payload["n"] < 4)
    g.edge_to_exit(a, {}, trigger=False)
    g.build()
    for _ in range(2):
        assert g.invoke({})[1] == {}
        assert seen == [1, 2, 3]
        seen.clear()


def test_nothing_survives_an_invoke():
    g = chain(lambda attributes: {"n": attributes["n"] + 1}, attributes={"n": 0}).build()
    assert g.invoke({})[1] == {"n": 1}
    assert g.invoke({}, {"n": 10})[1] == {"n": 11}
    assert g.invoke({})[1] == {"n": 1}


def test_a_body_that_changes_what_it_was_given_changes_nothing_else():
    def spoil(inputs, attributes):
        inputs["deep"]["x"].append("spoilt")
        attributes["deep"]["y"].append("spoilt")
        return {}

    given = {"deep": {"x": []}}
    g = RootGraph("g", attributes={"deep": {"y": []}})
    a, b = g.create_node(spoil, name="a"), g.create_node(spoil, name="b")
    for n in (a, b):
        g.edge_from_entry(n, ["deep"])
    g.edge_to_exit(b, {})
    assert g.build().invoke(given)[1] == {"deep": {"y": []}}
    assert given == {"deep": {"x": []}}


# ------------------------------------------------------------------------------------------------ l


def looping(
    work: Any, most: int | None = 3, back: Any = None, out: Any = None, **options: Any
) -> RootGraph:
    """``controller → work → controller``, in a root graph that shows what leaves."""
    g = RootGraph("g", attributes=options.pop("attributes", None))
    loop = g.create_node(Loop, name="loop", max_iterations=most, **options)
    w = loop.create_node(CustomNode, work, name="w", inline=True)
    loop.edge_from_controller(w, back or {})
    loop.edge_to_controller(w, back or {})
    g.edge_from_entry(loop, {})
    g.edge_to_exit(loop, out if out is not None else back or {})
    return g


def test_a_loop_runs_its_body_so_often():
    ran: list[int] = []
    looping(lambda attributes: ran.append(attributes["current_iteration"]) or {}).build().invoke({})
    assert ran == [1, 2, 3]


@pytest.mark.parametrize("most", [0, -1, None])
def test_a_loop_that_nothing_would_end_is_refused(most):
    with refused("AX126"):
        Loop("l", most)
    Loop("l", most, terminate_condition_function=lambda fields: True)


def test_a_stop_function_is_asked_before_each_round_with_the_count():
    asked: list[int] = []

    def stop(message, attributes):
        asked.append(attributes["current_iteration"])
        return len(asked) == 3

    ran: list[int] = []
    looping(
        lambda inputs: ran.append(1) or {}, None, terminate_condition_function=stop
    ).build().invoke({})
    assert (asked, len(ran)) == ([1, 2, 3], 2)


@pytest.mark.parametrize("count", range(1, 7))
def test_a_stop_function_takes_one_to_six_arguments_by_position(count):
    names = ["a", "b", "c", "d", "e", "f"][:count]
    seen: list[int] = []
    namespace: dict[str, Any] = {"seen": seen}
    stop = {
        1: lambda a: bool(seen.append(1)) or True,
        2: lambda a, b: bool(seen.append(2)) or True,
        3: lambda a, b, c: bool(seen.append(3)) or True,
        4: lambda a, b, c, d: bool(seen.append(4)) or True,
        5: lambda a, b, c, d, e: bool(seen.append(5)) or True,
        6: lambda a, b, c, d, e, f: bool(seen.append(6)) or True,
    }[count]
    looping(passing, terminate_condition_function=stop).build().invoke({})
    assert seen == [count], (names, namespace)


def test_fields_that_come_back_are_kept_and_one_not_yet_set_says_so():
    seen: list[Any] = []

    def work(inputs):
        seen.append(inputs["x"])
        return {"x": len(seen)}

    assert looping(work, back=["x"]).build().invoke({})[0] == {"x": 3}
    assert seen == ["(not set yet)", 1, 2]


def test_a_field_may_be_set_before_anything_came_in():
    seen: list[Any] = []
    looping(
        lambda inputs: seen.append(inputs["x"]) or {"x": 1},
        1,
        back=["x"],
        initial_messages={"x": "first"},
    ).build().invoke({})
    assert seen == ["first"]


def test_a_loop_remembers_what_came_in_and_sends_it_again():
    seen: list[Any] = []
    g = RootGraph("g")
    loop = g.create_node(Loop, name="loop", max_iterations=2)
    w = loop.create_node(
        CustomNode,
        lambda inputs: seen.append(dict(inputs)) or {"draft": "d"},
        name="w",
        inline=True,
    )
    loop.edge_from_controller(w, ["topic"])
    loop.edge_to_controller(w, ["draft"])
    g.edge_from_entry(loop, ["topic"])
    g.edge_to_exit(loop, ["topic", "draft"])
    assert g.build().invoke({"topic": "t"})[0] == {"topic": "t", "draft": "d"}
    assert seen == [{"topic": "t"}, {"topic": "t"}]


def test_a_message_at_the_terminate_node_leaves_at_once_and_is_the_output():
    ran: list[int] = []
    g = RootGraph("g")
    loop = g.create_node(Loop, name="loop", max_iterations=9)
    w = loop.create_node(
        CustomNode,
        lambda inputs: ran.append(1) or {"n": len(ran), "more": 1},
        name="w",
        inline=True,
    )
    loop.edge_from_controller(w, {})
    loop.edge_to_controller(w, ["more"])
    loop.edge_to_terminate_node(w, ["n"], when=lambda payload: payload["n"] == 2)
    g.edge_from_entry(loop, {})
    g.edge_to_exit(loop, ["n"])
    assert g.build().invoke({})[0] == {"n": 2}
    assert len(ran) == 2


def test_a_body_may_end_through_the_terminate_node_alone():
    g = RootGraph("g")
    loop = g.create_node(Loop, name="loop", max_iterations=9)
    w = loop.create_node(CustomNode, lambda inputs: {"n": 1}, name="w", inline=True)
    loop.edge_from_controller(w, {})
    loop.edge_to_terminate_node(w, ["n"])
    g.edge_from_entry(loop, {})
    g.edge_to_exit(loop, ["n"])
    assert g.build().invoke({})[0] == {"n": 1}


def test_a_loop_writes_its_counters_and_what_exists_outside_by_default():
    g = looping(lambda inputs: {"mine": 1}, attributes={"mine": 0}).build()
    assert g.invoke({})[1] == {"mine": 1, "current_iteration": 3, "max_iterations": 3}


def test_a_loop_needs_no_declared_fields_for_its_counters():
    class Reported(TypedDict):
        n: int
        current_iteration: int

    class Bare(TypedDict):
        n: int

    def built(state: Any, push: Any = None) -> RootGraph:
        g = RootGraph("g", state=state)
        loop = g.create_node(Loop, name="loop", max_iterations=3, push_keys=push)

        def step(attributes: Any) -> dict[str, Any]:
            return {"n": attributes["n"] + attributes["current_iteration"]}

        loop.create_node(step, name="step", push_keys={"n": ""}, inline=True)
        loop.edge_from_controller("step", {})
        loop.edge_to_controller("step", {})
        g.edge_from_entry(loop)
        g.edge_to_exit(loop)
        return g.build()

    assert built(Bare).invoke({"n": 1})[1] == {"n": 7}
    assert built(Reported).invoke({"n": 1})[1] == {"n": 7, "current_iteration": 3}
    with pytest.raises(NodeFailed, match='AX201 "max_iterations"'):
        built(Bare, {"n": "", "max_iterations": ""}).invoke({"n": 1})


def test_a_loop_configured_to_push_nothing_pushes_nothing():
    assert looping(passing, attributes={"mine": 0}, push_keys={}).build().invoke({})[1] == {
        "mine": 0
    }


def test_on_the_limit_the_count_stays_at_it_and_on_a_condition_it_is_one_more_than_the_rounds():
    assert looping(passing, 4).build().invoke({})[1]["current_iteration"] == 4
    stop = looping(
        passing,
        4,
        terminate_condition_function=lambda message, attributes: (
            attributes["current_iteration"] == 3
        ),
    )
    assert stop.build().invoke({})[1]["current_iteration"] == 3


def test_an_inner_loop_counts_for_itself():
    outer_seen: list[int] = []
    inner_seen: list[tuple[int, int]] = []
    g = RootGraph("g")
    outer = g.create_node(Loop, name="outer", max_iterations=2)
    inner = outer.create_node(Loop, name="inner", max_iterations=3)
    w = inner.create_node(
        CustomNode,
        lambda attributes: (
            inner_seen.append((attributes["current_iteration"], attributes["max_iterations"])) or {}
        ),
        name="w",
        inline=True,
    )
    inner.edge_from_controller(w, {})
    inner.edge_to_controller(w, {})
    after = outer.create_node(
        CustomNode,
        lambda attributes: outer_seen.append(attributes["current_iteration"]) or {},
        name="after",
        inline=True,
    )
    outer.edge_from_controller(inner, {})
    outer.create_edge(inner, after, {})
    outer.edge_to_controller(after, {})
    g.edge_from_entry(outer, {})
    g.edge_to_exit(outer, {})
    g.build().invoke({})
    assert outer_seen == [1, 2]
    assert inner_seen == [(1, 3), (2, 3), (3, 3)] * 2


def test_a_loop_refuses_strangers_duplicates_and_cycles_beside_its_controller():
    loop = Loop("l")
    a, b = loop.create_node(passing, name="a"), loop.create_node(passing, name="b")
    loop.edge_from_controller(a)
    with refused("AX106"):
        loop.edge_from_controller(a)
    with refused("AX125"):
        loop.edge_to_controller(CustomNode(passing))
    loop.create_edge(a, b)
    with refused("AX111"):
        loop.create_edge(b, a)
    with refused("AX111"):
        loop.create_edge("controller", "controller")


def test_a_loop_inside_two_concurrent_runs_counts_apart():
    g = looping(lambda attributes: {"x": attributes["current_iteration"]}, 5, back=["x"]).build()

    async def go() -> list[Result]:
        return await asyncio.gather(*(g.run({}) for _ in range(4)))

    assert [r.output for r in asyncio.run(go())] == [{"x": 5}] * 4


# ------------------------------------------------------------------------------------------------ t


class Chat(TypedDict):
    topic: str
    count: int


def typed(**nodes: Any) -> RootGraph:
    g = RootGraph("g", state=Chat)
    for name, function in nodes.items():
        g.create_node(function, name=name, inline=True)
    g.edge_from_entry(next(iter(nodes)))
    return g


def test_a_node_of_a_typed_graph_may_return_nothing():
    g = typed(a=lambda state: None)
    g.edge_to_exit("a")
    assert g.build().invoke({"topic": "t"})[1] == {"topic": "t", "count": 0}


def router(answer: Any) -> RootGraph:
    g = typed(a=lambda state: None, b=lambda state: {"topic": "b"}, c=lambda state: {"count": 1})
    g.create_router("a", lambda state: answer, ["b", "c", "exit"])
    g.edge_to_exit("b")
    g.edge_to_exit("c")
    return g.build()


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("b", {"topic": "b", "count": 0}),
        (["b", "c"], {"topic": "b", "count": 1}),
        ([], {"topic": "t", "count": 0}),
        ("exit", {"topic": "t", "count": 0}),
        ("end", {"topic": "t", "count": 0}),
        (("b", lambda state: {"count": 7}), {"topic": "b", "count": 7}),
        ([("c", None), "b"], {"topic": "b", "count": 1}),
    ],
)
def test_a_router_names_one_target_or_several_with_filters_or_none(answer, state):
    assert router(answer).invoke({"topic": "t"})[1] == state


@pytest.mark.parametrize("answer", ["nobody", None, 3])
def test_a_router_that_names_no_target_fails_its_node(answer):
    with pytest.raises(NodeFailed) as error:
        router(answer).invoke({"topic": "t"})
    assert isinstance(error.value.__cause__, RouteError)
    assert error.value.path == "a"


def test_a_router_is_asked_once_for_each_firing():
    asked: list[int] = []
    g = typed(a=lambda state: None, b=lambda state: None, c=lambda state: None)
    g.create_router("a", lambda state: asked.append(1) or ["b", "c"], ["b", "c"])
    g.build().invoke({})
    assert asked == [1]


def test_options_of_a_run_that_do_not_exist_are_refused():
    with pytest.raises(TypeError, match="jurnal"):
        typed(a=lambda state: None).build().invoke({}, jurnal=None)
    assert "journal" in Options.__dataclass_fields__


def test_adding_an_edge_costs_the_same_however_many_there_are():
    import sys

    def lines(n: int) -> int:
        """Lines of code executed to connect a chain of ``n`` nodes."""
        count = 0

        def trace(frame, event, arg):
            nonlocal count
            count += event == "line"
            return trace

        g = RootGraph("g")
        nodes = [g.create_node(CustomNode, name=f"n{i}") for i in range(n)]
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            for a, b in itertools.pairwise(nodes):
                g.create_edge(a, b, {})
        finally:
            sys.settrace(before)
        return count

    assert lines(200) < 5 * lines(50)


def test_a_graph_says_what_it_is():
    graph = RootGraph("brief")
    a = graph.create_node(lambda inputs: {}, name="a")
    graph.edge_from_entry(a, {})
    assert repr(graph) == '<RootGraph "brief": 1 node, 1 edge>'
    assert repr(graph.create_node(Loop, name="turn")) == '<Loop "turn": 0 nodes, 0 edges>'


def test_a_setting_that_a_node_class_does_not_take_is_reported():
    with pytest.raises(SpecError, match='Did you mean "max_iterations"'):
        RootGraph("g").create_node(Loop, name="turn", max_iteration=3)


def test_a_graph_puts_usual_wrappers_around_its_nodes():
    class Named:
        def __init__(self, name):
            self.name = name

        def use(self):
            return ComponentRef(type=self.name)

    def usual(**graph):
        made = RootGraph("t", **graph)
        made.create_node(lambda: {}, name="f", wrappers=["own", {"type": "retry", "tries": 3}])
        made.create_node(Graph, name="g")
        made.create_node("agent", name="h", wrappers=[ComponentRef(type="x", config={"y": 1})])
        return [
            [(use.type, *use.config.values()) for use in node.wrappers]
            for node in made.to_spec().nodes
        ]

    assert usual() == [[("own",), ("retry", 3)], [], [("x", 1)]]
    assert usual(node_wrappers=["retry", Named("cache")]) == [
        [("cache",), ("own",), ("retry", 3)], [("retry",), ("cache",)], [("retry",), ("cache",),
        ("x", 1)],
    ]  # fmt: skip
    assert usual(node_wrappers={Graph: ["a"], "agent": ["b"], "*": ["c"]}) == [
        [("c",), ("own",), ("retry", 3)], [("a",), ("c",)], [("b",), ("c",), ("x", 1)],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong", [{"config": {}}, {"type": 3}, {"type": "retry", "config": {}, "tries": 3}]
)
def test_a_wrapper_that_names_no_component_is_refused(wrong):
    with pytest.raises(SpecError, match="AX168"):
        RootGraph("t").create_node(lambda: {}, name="f", wrappers=[wrong])


@pytest.mark.parametrize(
    ("id", "wrong"),
    [
        ("AX131.*attributes", lambda: RootGraph("g", attributes=["a"])),
        ("AX131.*limits: expected Limits", lambda: RootGraph("g", limits={"firings": 3})),
        ('AX131.*cycles: .* found "?.?alow', lambda: RootGraph("g", cycles="alow")),
        ("AX131.*nodes: .*'a'", lambda: RootGraph("g", nodes=["a"])),
        ("AX131.*nodes: expected id and type", lambda: RootGraph("g", nodes=[{"id": "a"}])),
        ("AX131.*edges: .*'a->b'", lambda: RootGraph("g", edges=["a->b"])),
        ("AX131.*edges: expected from and to", lambda: RootGraph("g", edges=[{"from": "a"}])),
        ('AX102.*"3"', lambda: RootGraph(3)),
        ('AX102.*Give one: name="…"', lambda: RootGraph("g").create_node(lambda: {})),
        ("AX131.*kind", lambda: RootGraph("g").create_node(None, name="a")),
        ("AX131.*resources", lambda: chain(passing, resources=["gpu"])),
        (r'AX176.*Write \["lang"\]', lambda: chain(passing, pull_keys="lang")),
        ('AX125.*"passing"', lambda: chain(lambda: {}).edge_to_exit(passing)),
        ("AX104.*Nodes: n0", lambda: chain(passing).edge_to_exit("other")),
        ("AX131.*rounds", lambda: chain(passing).set_cycle_limit("n0", "3")),
        ("AX305.*not a wrapper", lambda: chain(passing, wrappers=[3]).build()),
    ],
)
def test_an_argument_that_does_not_fit_is_refused_where_it_is_given(id, wrong):
    with pytest.raises((SpecError, PluginContract), match=id):
        wrong()


def test_a_graph_that_cannot_run_says_which_one_can():
    with pytest.raises(AttributeError, match=r'Graph "inner" has no "invoke"\..* a RootGraph'):
        Graph("inner").invoke({})


@pytest.mark.parametrize("option", ["channel", "clock", "hooks", "executor", "journal"])
def test_an_option_of_a_run_that_is_no_object_of_its_kind_is_refused(option):
    with pytest.raises(TypeError, match=rf"{option}: expected an object with \w+, found 3\."):
        chain(passing).build().invoke({}, **{option: 3})


@pytest.mark.parametrize(
    ("allow", "said"),
    [
        (["cod"], 'AX136.*"cod" is not a permission. Did you mean "code"'),
        ({"net"}, r'AX136.*"net" names no HOST. Write net:HOST, or network for all'),
        ("code", r'AX136.*expected words, found "code". Write allow=\{"code"\}'),
        (3, "AX136.*expected words, found 3"),
        ([3], "AX136.*expected a word, found 3"),
    ],
)
def test_a_word_of_allow_that_no_file_can_be_allowed_is_refused(allow, said):
    with pytest.raises(ConfigError, match=said):
        chain(passing).build().invoke({}, allow=allow)


def test_an_observer_that_observes_nothing_is_refused():
    with pytest.raises(TypeError, match=r"observers: expected an object with methods.*print"):
        chain(passing).build().invoke({}, observers=[print])


class Doubling(CustomNode):
    def _forward(self, input: dict[str, Any]) -> dict[str, Any]:
        return {"n": 2 * input["n"]}


class Named(CustomNode):
    def forward(self, input: dict[str, Any]) -> dict[str, Any]:
        return {"n": input["n"] + 1}


def one(kind: Any, *args: Any, **settings: Any) -> Any:
    g = RootGraph("g")
    made = g.create_node(kind, *args, **settings)
    g.edge_from_entry(made, {"n": ""})
    g.edge_to_exit(made, {"n": ""})
    return g.build().invoke({"n": 3})[0]


@pytest.mark.parametrize(("kind", "result"), [(Doubling, 6), (Named, 4), (CustomNode, 3)])
def test_the_method_of_a_subclass_of_custom_node_is_its_body(kind: type, result: int):
    assert one(kind, name="a") == {"n": result}


def test_a_function_takes_the_place_of_the_method_of_a_subclass():
    assert one(Doubling, lambda d: {"n": 0}, name="a") == {"n": 0}


def test_a_text_first_among_the_arguments_is_the_name_of_the_node():
    g = RootGraph("g")
    g.create_node(CustomNode, "a", forward=passing)
    g.create_node(Graph, "b")
    g.create_node(Loop, "c", max_iterations=1)
    assert list(g.nodes) == ["a", "b", "c"]


def test_an_edge_knows_the_fields_that_it_carries():
    g = RootGraph("g")
    a, b = g.create_node(CustomNode, "a"), g.create_node(CustomNode, "b")
    assert g.create_edge(a, b, {"n": "a number"}).keys == {"n": "a number"}
    assert g.edge_from_entry(a).keys == {"message": ""}


def test_an_unknown_option_of_a_graph_is_answered_with_the_one_that_is_meant():
    for kind in (Graph, RootGraph, Loop):
        with pytest.raises(ConfigError, match=r'takes no "atributes"\. Did you mean'):
            kind("g", atributes={"a": 1})


@pytest.mark.parametrize(
    ("method", "wrong", "meant"),
    [
        ("create_edge", "wehn", 'Did you mean "when"?'),
        ("edge_to_exit", "proces", 'Did you mean "process"?'),
        ("create_router", "gruop", 'Did you mean "group"?'),
        ("set_cycle_limit", "at_limits", 'Did you mean "at_limit"?'),
        ("create_edge", "xyz", "It takes carry, formatter"),
    ],
)
def test_an_unknown_keyword_of_a_method_is_answered_with_the_one_that_is_meant(
    method, wrong, meant
):
    g = RootGraph("g")
    a, b = g.create_node(CustomNode, "a"), g.create_node(CustomNode, "b")
    given = (a,) if method == "edge_to_exit" else (a, b)
    with pytest.raises(ConfigError) as caught:
        getattr(g, method)(*given, **{wrong: None})
    assert f'{method.replace("edge_to_exit", "create_edge")} takes no "{wrong}". ' in str(
        caught.value
    )
    assert meant in str(caught.value)
    assert list(g.to_spec().edges) == []
