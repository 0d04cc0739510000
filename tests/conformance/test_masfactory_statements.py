"""Statements of MASFactory's study beyond its recorded runs: closure at every depth, loops, scopes,
sane where it is not.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from axil import CustomNode, Graph, GraphWarning, NodeFailed, RootGraph, SpecError
from axil_control import LogicSwitch, Loop
from axil_journals import MemoryJournal

from .masfactory_graphs import custom, giving
from .recorded import Watch


def passing(graph: Graph, name: str, **options: Any) -> Any:
    return graph.create_node(CustomNode, name=name, **options)


def failing(inputs: Any) -> Any:
    raise RuntimeError("broken")


def yes(message: Any) -> bool:
    return True


def no(message: Any) -> bool:
    return False


# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False])
def test_a_node_that_leads_nowhere_runs_whenever_it_was_created(first):
    g = RootGraph("g", attributes={"seen": 0})

    def dead_end() -> Any:
        return custom(g, "note", giving({"seen": 1}), push_keys={"seen": ""})

    note = dead_end() if first else None
    work = custom(g, "work", giving({"x": 1}))
    note = note or dead_end()
    g.edge_from_entry(work, {})
    g.create_edge(work, note, {})
    g.edge_to_exit(work, ["x"])
    assert g.build().invoke({}) == ({"x": 1}, {"seen": 1})


def test_a_node_without_in_edges_is_dead_and_starves_no_other_node():
    g = RootGraph("g")
    lonely = custom(g, "lonely", giving({"k": "lonely"}))
    work = custom(g, "work", giving({"k": "work"}))
    join = custom(g, "join", lambda inputs: {"seen": inputs["k"]})
    g.edge_from_entry(work, {})
    g.create_edge(lonely, join, ["k"])
    g.create_edge(work, join, ["k"])
    g.edge_to_exit(join, ["seen"])
    watch = Watch()
    with pytest.warns(GraphWarning, match="AX113"):
        g.build()
    assert g.invoke({}, observers=[watch])[0] == {"seen": "work"}
    assert "lonely" in [activation.node for activation in watch.skipped]


def test_an_edge_without_keys_carries_the_message_and_empty_keys_carry_nothing():
    g = RootGraph("g")
    talk = passing(g, "talk")
    seen: dict[str, Any] = {}

    def note(inputs: Any) -> Any:
        seen.update(inputs)
        return {"done": True}

    end = custom(g, "end", note)
    g.edge_from_entry(talk)
    g.create_edge(talk, end, {})
    g.edge_to_exit(talk)
    g.edge_to_exit(end, {})
    assert g.build().invoke({"message": "hi", "more": 1})[0] == {"message": "hi"}
    assert seen == {}


def test_an_edge_that_is_not_taken_is_not_checked_for_its_keys():
    g = RootGraph("g")
    sw = g.create_node(LogicSwitch, name="sw", routes={"a": yes, "b": no})
    a, b = passing(g, "a"), passing(g, "b")
    g.edge_from_entry(sw, ["x"])
    g.create_edge(sw, a, ["x"])
    g.create_edge(sw, b, ["not there"])
    g.edge_to_exit(a, ["x"])
    g.edge_to_exit(b, {})
    assert g.build().invoke({"x": 1})[0] == {"x": 1}


def test_merging_leaves_the_senders_data_alone():
    g = RootGraph("g")
    mine: list[int] = [1]
    p, q = custom(g, "p", giving({"k": mine})), custom(g, "q", giving({"k": [2]}))
    join = custom(g, "join", lambda inputs: {"k": inputs["k"]})
    other = custom(g, "other", lambda inputs: {"other": inputs["k"]})
    for node in (p, q):
        g.edge_from_entry(node, {})
        g.create_edge(node, join, ["k"])
    g.create_edge(p, other, ["k"])
    g.edge_to_exit(join, ["k"])
    g.edge_to_exit(other, ["other"])
    assert g.build().invoke({})[0] == {"k": [1, 2], "other": [1]}
    assert mine == [1]


def test_fields_meet_in_the_order_of_the_edges_not_of_the_nodes():
    g = RootGraph("g")
    a, b = custom(g, "a", giving({"k": "a"})), custom(g, "b", giving({"k": "b"}))
    join = custom(g, "join", lambda inputs: {"k": inputs["k"]})
    for node in (a, b):
        g.edge_from_entry(node, {})
    g.create_edge(b, join, ["k"])
    g.create_edge(a, join, ["k"])
    g.edge_to_exit(join, ["k"])
    assert g.build().invoke({})[0] == {"k": ["b", "a"]}


def test_a_failing_body_is_named_and_the_graph_can_be_invoked_again():
    g = RootGraph("g")
    inner = g.create_node(Graph, name="inner")
    n = custom(inner, "n", lambda inputs: {"y": 1 / inputs["x"]})
    inner.edge_from_entry(n, ["x"])
    inner.edge_to_exit(n, ["y"])
    g.edge_from_entry(inner, ["x"])
    g.edge_to_exit(inner, ["y"])
    g.build()
    with pytest.raises(NodeFailed, match='node "inner/n"') as caught:
        g.invoke({"x": 0})
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert g.invoke({"x": 2})[0] == {"y": 0.5}


def test_attributes_are_not_written_by_an_activation_whose_edge_failed():
    g = RootGraph("g", attributes={"counter": 0})
    n = custom(g, "n", giving({"counter": 1}))
    g.edge_from_entry(n, {})
    g.edge_to_exit(n, ["lacking"])
    with pytest.raises(NodeFailed, match="lacking") as caught:
        g.build().invoke({})
    assert caught.value.result.attributes == {"counter": 0}


# --------------------------------------------------------------------------------------------------


def switched(**routes: Any) -> tuple[RootGraph, Any]:
    g = RootGraph("g")
    sw = g.create_node(LogicSwitch, name="sw")
    g.edge_from_entry(sw, ["x"])
    for name, predicate in routes.items():
        target = custom(g, name, giving({name: 1}))
        edge = g.create_edge(sw, target, ["x"])
        if predicate is not None:
            sw.condition_binding(predicate, edge)
        g.edge_to_exit(target, [name])
    return g, sw


def test_a_switch_without_bindings_sends_to_all():
    assert switched(a=None, b=None)[0].build().invoke({"x": 1})[0] == {"a": 1, "b": 1}


def test_an_unbound_edge_is_never_taken_once_another_is_bound():
    assert switched(a=yes, b=None)[0].build().invoke({"x": 1})[0] == {"a": 1}


def test_predicates_see_the_message_and_the_attributes():
    g = RootGraph("g", attributes={"limit": 3})
    sw = g.create_node(
        LogicSwitch,
        name="sw",
        routes={"a": lambda m, at: m["x"] < at["limit"], "b": lambda m, at: m["x"] >= at["limit"]},
    )
    g.edge_from_entry(sw, ["x"])
    for name in "ab":
        target = custom(g, name, giving({"took": name}))
        g.create_edge(sw, target, {})
        g.edge_to_exit(target, ["took"])
    g.build()
    assert [g.invoke({"x": x})[0]["took"] for x in (2, 3)] == ["a", "b"]
    assert g.invoke({"x": 3}, {"limit": 9})[0] == {"took": "a"}


def test_a_predicate_that_raises_fails_the_switch():
    with pytest.raises(NodeFailed, match='node "sw"'):
        switched(a=lambda message: message["nothing"])[0].build().invoke({"x": 1})


def test_binding_an_edge_twice_or_a_foreign_edge_is_an_error():
    g, sw = switched(a=yes)
    bound = g.create_edge(sw, custom(g, "c", giving({})), {})
    sw.condition_binding(yes, bound)
    with pytest.raises(ValueError, match="bound already"):
        sw.condition_binding(yes, bound)
    foreign = g.create_edge(g.nodes["a"], g.nodes["c"], {})
    with pytest.raises(ValueError, match="start"):
        sw.condition_binding(yes, foreign)


def test_no_match_gives_an_empty_output_every_time_and_spoils_no_later_run():
    g, _ = switched(low=lambda message: message["x"] > 5)
    g.build()
    assert [g.invoke({"x": x})[0] for x in (7, 1, 8, 2)] == [{"low": 1}, {}, {"low": 1}, {}]


# -------------------------------------------------------------------------------------------------


def closing(graph: Graph) -> None:
    """In ``graph``: a switch that matches nothing, between entry and exit."""
    sw = graph.create_node(LogicSwitch, name="sw", routes={"n": no})
    n = passing(graph, "n")
    graph.edge_from_entry(sw, ["x"])
    graph.create_edge(sw, n, ["x"])
    graph.edge_to_exit(n, ["x"])


def test_closure_travels_through_a_chain_nested_graphs_and_loops():
    g = RootGraph("g")
    sw = g.create_node(LogicSwitch, name="sw", routes={"n": no, "open": yes})
    n = passing(g, "n")
    sub = g.create_node(Graph, name="sub")
    inside = passing(sub, "inside")
    sub.edge_from_entry(inside, ["x"])
    sub.edge_to_exit(inside, ["x"])
    loop = g.create_node(Loop, name="loop", max_iterations=2)
    step = passing(loop, "step")
    loop.edge_from_controller(step, ["x"])
    loop.edge_to_controller(step, ["x"])
    chain = [sw, n, sub, loop]
    g.edge_from_entry(sw, ["x"])
    for one, next_ in pairwise(chain):
        g.create_edge(one, next_, ["x"])
    open_ = custom(g, "open", giving({"o": 1}))
    join = custom(g, "join", lambda inputs: {"seen": dict(inputs)})
    g.create_edge(sw, open_, {})
    g.create_edge(loop, join, ["x"])
    g.create_edge(open_, join, ["o"])
    g.edge_to_exit(join, ["seen"])
    watch = Watch()
    assert g.build().invoke({"x": 1}, observers=[watch])[0] == {"seen": {"o": 1}}
    assert watch.bodies == ["sw", "open", "join"]
    assert {activation.node for activation in watch.skipped} == {"n", "sub", "loop"}


@pytest.mark.parametrize("keys", [["x"], {}], ids=["with keys", "without data"])
@pytest.mark.parametrize("kind", ["graph", "loop"])
def test_what_matches_nothing_inside_a_subgraph_kills_its_out_edges(kind, keys):
    g = RootGraph("g")
    sub = g.create_node(Graph, name="sub")
    inner = sub
    if kind == "loop":
        inner = sub.create_node(Graph, name="deeper")
        sub.edge_from_entry(inner, ["x"])
        sub.edge_to_exit(inner, ["x"])
    closing(inner)
    after = custom(g, "after", giving({"ran": True}))
    other = custom(g, "other", giving({"other": True}))
    join = custom(g, "join", lambda inputs: {"seen": dict(inputs)})
    g.edge_from_entry(sub, ["x"])
    g.edge_from_entry(other, {})
    g.create_edge(sub, after, keys)
    g.create_edge(after, join, ["ran"])
    g.create_edge(other, join, ["other"])
    g.edge_to_exit(join, ["seen"])
    assert g.build().invoke({"x": 1})[0] == {"seen": {"other": True}}


def test_a_subgraph_that_nothing_left_still_wrote_what_its_nodes_wrote():
    g = RootGraph("g", attributes={"seen": 0})
    sub = g.create_node(Graph, name="sub")
    note = custom(sub, "note", lambda inputs: {"x": inputs["x"], "seen": 1})
    sw = sub.create_node(LogicSwitch, name="sw", routes={"n": no})
    n = passing(sub, "n")
    sub.edge_from_entry(note, ["x"])
    sub.create_edge(note, sw, ["x"])
    sub.create_edge(sw, n, ["x"])
    sub.edge_to_exit(n, ["x"])
    g.edge_from_entry(sub, ["x"])
    g.edge_to_exit(sub, ["x"])
    assert g.build().invoke({"x": 1}) == ({}, {"seen": 1})


# --------------------------------------------------------------------------------------------------


Values = dict[str, Any]


def scoped(
    outer: Values, inner: Values | None, pull: Any, push: Any, writes: Values
) -> tuple[Values, Values]:
    """Return what a node in a subgraph sees, and the root's attributes after its ``writes``."""
    g = RootGraph("g", attributes=outer)
    sub = g.create_node(Graph, name="sub", attributes=inner, pull_keys=pull, push_keys=push)
    seen: dict[str, Any] = {}

    def look(attributes: Any) -> Any:
        seen.update(attributes)
        return writes

    n = custom(sub, "n", look)
    sub.edge_from_entry(n, {})
    sub.edge_to_exit(n, {})
    g.edge_from_entry(sub, {})
    g.edge_to_exit(sub, {})
    return seen, g.build().invoke({})[1]


def test_a_subgraph_sees_its_own_attributes_and_over_them_the_outer_ones():
    seen, after = scoped(
        {"a": 1, "b": 2}, {"b": 20, "c": 30}, None, None, {"a": 100, "b": 200, "c": 300, "d": 400}
    )
    assert seen == {"a": 1, "b": 2, "c": 30}
    assert after == {"a": 100, "b": 200}


def test_a_subgraph_that_pulls_nothing_keeps_its_own_attributes_and_writes_none_out():
    seen, after = scoped({"a": 1, "b": 2}, {"b": 20}, {}, None, {"a": 100, "b": 200})
    assert seen == {"b": 20}
    assert after == {"a": 1, "b": 2}


def test_a_subgraph_pushes_what_it_pulled_by_default():
    assert scoped({"a": 1, "b": 2}, {"b": 20}, {"a": ""}, None, {"a": 100, "b": 200}) == (
        {"a": 1, "b": 20},
        {"a": 100, "b": 2},
    )
    assert scoped({"a": 1, "b": 2}, {}, {"a": ""}, {}, {"a": 100}) == ({"a": 1}, {"a": 1, "b": 2})
    assert scoped({"a": 1}, {"new": 0}, None, {"new": ""}, {"a": 100, "new": 5}) == (
        {"a": 1, "new": 0},
        {"a": 1, "new": 5},
    )


def test_nothing_of_a_run_is_seen_by_the_next_unless_it_is_handed_on():
    g = RootGraph("g", attributes={"n": 0})
    count = custom(g, "count", lambda attributes: {"n": attributes["n"] + 1})
    g.edge_from_entry(count, {})
    g.edge_to_exit(count, ["n"])
    g.build()
    assert [g.invoke({})[0]["n"] for _ in range(3)] == [1, 1, 1]
    _, handed_on = g.invoke({}, {"n": 5})
    assert handed_on == {"n": 6}
    assert g.invoke({}, handed_on)[0] == {"n": 7}
    assert g.invoke({})[0] == {"n": 1}


def test_a_nodes_own_attributes_are_seen_by_itself_alone_and_last_for_the_run():
    g = RootGraph("g")
    seen: list[Any] = []

    def look(attributes: Any, inputs: Any) -> Any:
        seen.append(attributes.get("mine"))
        return {"n": inputs["n"] + 1, "mine": (attributes.get("mine") or 0) + 1}

    loop = g.create_node(Loop, name="loop", max_iterations=3)
    own = custom(loop, "own", look, attributes={"mine": 0})
    stranger = custom(
        loop,
        "stranger",
        lambda attributes, inputs: {"n": inputs["n"], "sees": "mine" in attributes},
    )
    loop.edge_from_controller(own, ["n"])
    loop.create_edge(own, stranger, ["n"])
    loop.edge_to_controller(stranger, ["n", "sees"])
    g.edge_from_entry(loop, ["n"])
    g.edge_to_exit(loop, ["n", "sees"])
    g.build()
    assert g.invoke({"n": 0})[0] == {"n": 3, "sees": False}
    assert g.invoke({"n": 0})[0] == {"n": 3, "sees": False}
    assert seen == [0, 1, 2, 0, 1, 2]


def test_only_what_an_activation_wrote_is_pushed():
    g = RootGraph("g", attributes={"kept": 1, "items": [1]})

    def write(attributes: Any) -> Any:
        attributes["items"].append(2)  # a private copy: nobody else sees it
        return {}

    n = custom(g, "n", write)
    g.edge_from_entry(n, {})
    g.edge_to_exit(n, {})
    assert g.build().invoke({})[1] == {"kept": 1, "items": [1]}


def test_what_is_set_in_the_attributes_argument_counts_as_written():
    g = RootGraph("g", attributes={"a": 1})

    def write(attributes: Any) -> Any:
        attributes["a"] = 2
        return {}

    n = custom(g, "n", write)
    g.edge_from_entry(n, {})
    g.edge_to_exit(n, {})
    assert g.build().invoke({})[1] == {"a": 2}


def test_the_description_of_an_attribute_that_is_absent_is_not_its_value():
    g = RootGraph("g", attributes={"a": 1})
    seen: dict[str, Any] = {}

    def look(attributes: Any) -> Any:
        seen.update(attributes)
        return {}

    n = custom(g, "n", look, pull_keys={"a": "", "zz": "what zz is"})
    g.edge_from_entry(n, {})
    g.edge_to_exit(n, {})
    assert g.build().invoke({})[1] == {"a": 1}
    assert seen == {"a": 1}


# --------------------------------------------------------------------------------------------------


BY_POSITION = [
    lambda i: {"got": [i["x"]]},
    lambda i, at: {"got": [i["x"], at["a"]]},
    lambda i, at, m: {"got": [i["x"], at["a"], m]},
    lambda i, at, m, t: {"got": [i["x"], at["a"], m, t]},
    lambda i, at, m, t, r: {"got": [i["x"], at["a"], m, t, r]},
    lambda i, at, m, t, r, me: {"got": [i["x"], at["a"], m, t, r, me.name]},
]


@pytest.mark.parametrize("function", BY_POSITION)
def test_a_function_of_unknown_names_is_called_by_position(function):
    g = RootGraph("g", attributes={"a": 1})
    n = g.create_node(
        CustomNode,
        name="n",
        forward=function,
        inline=True,
        memories=["m"],
        tools=["t"],
        retrievers=["r"],
    )
    g.edge_from_entry(n, ["x"])
    g.edge_to_exit(n, ["got"])
    whole = [7, 1, ["m"], ["t"], ["r"], "n"]
    got = g.build().invoke({"x": 7})[0]["got"]
    assert got == whole[: len(got)]


def test_an_async_function_is_awaited():
    async def work(inputs: Any) -> Any:
        await asyncio.sleep(0)
        return {"y": inputs["x"] + 1}

    g = RootGraph("g")
    n = g.create_node(CustomNode, name="n", forward=work)
    g.edge_from_entry(n, ["x"])
    g.edge_to_exit(n, ["y"])
    assert g.build().invoke({"x": 1})[0] == {"y": 2}


def test_names_out_of_place_among_strangers_are_an_error_at_build():
    g = RootGraph("g")
    n = g.create_node(CustomNode, name="n", forward=lambda strange, state: {})
    g.edge_from_entry(n, {})
    g.edge_to_exit(n, {})
    with pytest.raises(SpecError, match="AX162"):
        g.build()


def test_a_built_graph_cannot_be_changed_and_a_failed_build_can_be_repeated():
    g = RootGraph("g")
    n = g.create_node(CustomNode, name="n", forward=lambda strange, state: {})
    g.edge_from_entry(n, {})
    g.edge_to_exit(n, {})
    with pytest.raises(SpecError):
        g.build()
    n.set_forward(lambda inputs: {})
    assert g.build().invoke({})[0] == {}
    with pytest.raises(RuntimeError, match="built"):
        g.create_node(CustomNode, name="late")


def test_a_graph_can_be_declared():
    g = RootGraph(
        "g",
        nodes=[("first", CustomNode), ("loop", Loop, {"max_iterations": 2, "nodes": [("step",
        CustomNode)], "edges": [
            ("controller", "step", ["x"]), ("step", "controller", ["x"])]})],
        edges=[("ENTRY", "first", ["x"]), ("first", "loop", ["x"]), ("loop", "exit", ["x"])],
    )  # fmt: skip
    watch = Watch()
    assert g.build().invoke({"x": 1}, observers=[watch])[0] == {"x": 1}
    assert watch.bodies == ["first", "loop", "step", "step"]


def test_an_edge_may_lead_straight_from_entry_to_exit():
    g = RootGraph("g", edges=[("entry", "exit", ["x"])])
    assert g.build().invoke({"x": 1, "y": 2})[0] == {"x": 1}


def test_the_kind_of_a_node_is_given_by_position():
    g = RootGraph("g")
    with pytest.raises(TypeError, match="kind"):
        g.create_node(cls=CustomNode, name="a")
    assert g.create_node(CustomNode, name="a").name == "a"


def test_an_edge_from_entry_may_name_it():
    g = RootGraph("g")
    work = custom(g, "work", giving({"x": 1}))
    g.create_edge("entry", work, {})
    g.edge_to_exit(work, ["x"])
    assert g.build().invoke({}).output == {"x": 1}


def test_a_failing_observer_does_not_change_the_run(caplog):
    class Broken:
        def firing_started(self, activation: Any) -> None:
            raise RuntimeError("broken")

    assert switched(a=yes)[0].build().invoke({"x": 1}, observers=[Broken()])[0] == {"a": 1}
    assert "Broken" in caplog.text


def test_many_runs_of_one_graph_may_be_under_way_at_once():
    g = RootGraph("g", attributes={"who": ""})

    async def slow(inputs: Any, attributes: Any) -> Any:
        await asyncio.sleep(0)
        return {"who": inputs["who"], "seen": attributes["who"]}

    a, b = (g.create_node(CustomNode, name=name, forward=slow) for name in "ab")
    join = custom(
        g, "join", lambda inputs, attributes: {"who": inputs["who"], "seen": attributes["who"]}
    )
    for node in (a, b):
        g.edge_from_entry(node, ["who"])
        g.create_edge(node, join, ["who"])
    g.edge_to_exit(join, ["who", "seen"])
    g.build()

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(
            *(g.run({"who": n}, journal=MemoryJournal()) for n in range(60))
        )

    results = asyncio.run(all_at_once())
    assert [result.output for result in results] == [{"who": [n, n], "seen": n} for n in range(60)]
