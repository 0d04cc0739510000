"""A graph becomes a plan: cycles folded, levels, ports, what is waited for."""

from __future__ import annotations

import sys

import pytest

from axil.compiler.folding import fold
from axil.compiler.planner import compile_spec
from axil.kernel.joins import EACH, GATE
from axil.kernel.plan import BACK, OUTSIDE, Plan
from axil.kernel.scopes import CycleBody, cycle_name
from axil_testing.specs import edge, graph, node


def plan_of(nodes, edges, **more) -> Plan:
    return compile_spec(graph(nodes, edges, **more))


def names(plan: Plan) -> list[str]:
    return [n.name for n in plan.nodes]


def names_of(plan: Plan, nodes) -> list[str]:
    return [plan.nodes[index].name for index in nodes]


def cycle_in(plan: Plan, name: str) -> CycleBody:
    body = plan.nodes[plan.index[name]].vertex.body
    assert isinstance(body, CycleBody)
    return body


def body_of(plan: Plan, cycle: str, entry: str) -> Plan:
    body = cycle_in(plan, cycle)
    return body.body(next(i for i, v in enumerate(plan.graph.vertices) if v.name == entry))


def test_plan_order_is_level_then_first_in_edge_then_declaration():
    plan = plan_of(["z", "a", "b", "c"], ["in b", "in a", "a z", "b c", "c out", "z out"])
    assert names(plan) == ["b", "a", "z", "c"]
    assert [n.level for n in plan.nodes] == [0, 0, 1, 1]


def test_a_level_is_the_longest_way_from_a_source():
    plan = plan_of(["a", "b", "c"], ["in a", "in c", "a b", "b c", "c out"])
    assert {n.name: n.level for n in plan.nodes} == {"a": 0, "b": 1, "c": 2}


def test_a_data_edge_does_not_raise_a_level():
    plan = plan_of(["a", "b", "c"], ["in a", "in c", "a b", edge("b", "c", trigger=False), "c out"])
    assert {n.name: n.level for n in plan.nodes} == {"a": 0, "b": 1, "c": 0}


def test_a_gate_has_one_port_for_each_group_and_counts_its_edges():
    plan = plan_of(
        ["a", "b", "c"],
        ["in a", "in b", "a c", edge("b", "c", group="g"), edge("a", "c", group="g")],
    )
    ports = [p for p in plan.ports if p.node == plan.index["c"]]
    assert [(p.group, p.needs, p.ordinal) for p in ports] == [("", 1, ()), ("g", 2, (1,))]
    assert [plan.waits[plan.ports.index(p)] for p in ports] == [1, 2]
    assert plan.opens[plan.nodes[plan.index["c"]].unit] == 2


def test_each_has_one_port_whatever_the_groups_and_waits_for_data_only():
    plan = plan_of(
        ["a", "b", node("c", join="each")],
        ["in a", "in b", "a c", edge("b", "c", group="g"), edge("a", "c", trigger=False)],
    )
    (port,) = [p for p in plan.ports if p.node == plan.index["c"]]
    assert plan.waits[plan.ports.index(port)] == 1
    assert plan.opens[plan.nodes[plan.index["c"]].unit] == 3  # two edges and the port


def test_a_cycle_is_one_node_named_after_its_members():
    plan = plan_of(["a", "b", "c", "d"], ["in a", "a b", "b c", "c b", "c d"])
    assert names(plan) == ["a", "cycle(b,c)", "d"]
    assert [arc.target_name for arc in plan.nodes[1].out] == ["d"]


def test_a_long_cycle_has_a_short_name():
    assert cycle_name(["a", "b", "c"]) == "cycle(a,b,c)"
    assert cycle_name(["a", "b", "c", "d"]) == "cycle(a,b,+2)"


def test_a_node_that_leads_to_itself_is_a_cycle():
    assert names(plan_of(["a"], ["in a", "a a", "a out"])) == ["cycle(a)"]


def test_a_data_edge_closes_no_cycle():
    assert names(plan_of(["a", "b"], ["in a", "a b", edge("b", "a", trigger=False)])) == ["a", "b"]


def test_the_edges_into_the_initial_node_are_cut_and_the_body_is_folded_again():
    plan = plan_of(["a", "b", "c"], ["in a", "a b", "b c", "c b", "c a"])
    assert names(plan) == ["cycle(a,b,c)"]
    body = body_of(plan, "cycle(a,b,c)", "a")
    assert names(body) == ["a", "cycle(b,c)"]
    assert body.entry == 0
    inner = body_of(body, "cycle(b,c)", "b")
    assert names(inner) == ["b", "c"]
    assert {arc.port for arc in inner.nodes[1].out} == {BACK, OUTSIDE}


def test_a_body_is_compiled_once_for_each_entry():
    plan = plan_of(["a", "b"], ["in a", "in b", "a b", "b a"])
    cycle = cycle_in(plan, "cycle(a,b)")
    assert cycle.body(0) is cycle.body(0)
    assert names(cycle.body(0)) == ["a", "b"]
    assert names(cycle.body(1)) == ["b", "a"]


def test_only_a_node_that_can_leave_holds_up_what_is_above_it():
    plan = plan_of(["a", "b", "c"], ["in a", "a b", "b c", "c a", "b out", "a out"])
    body = body_of(plan, "cycle(a,b,c)", "a")
    assert body.barriers == ((0, 1), (1, 1))
    assert plan.barriers == ()


def test_a_data_edge_out_of_a_cycle_is_no_barrier():
    plan = plan_of(
        ["a", "b", "d"], ["in a", "a b", "b a", "in d", edge("b", "d", trigger=False), "d out"]
    )
    assert body_of(plan, "cycle(a,b)", "a").barriers == ()


def test_a_data_edge_to_a_lower_level_of_a_body_is_late_and_one_to_a_higher_is_waited_for():
    plan = plan_of(
        ["a", "b", "c"],
        ["in a", "a b", "b c", "c a", edge("c", "b", trigger=False), edge("a", "c", trigger=False)],
        cycles="allow",
    )
    body = body_of(plan, "cycle(a,b,c)", "a")
    late = {arc.target_name: arc.late for n in body.nodes for arc in n.out if not arc.trigger}
    assert late == {"b": True, "c": False}


def test_data_edges_of_an_acyclic_graph_are_waited_for_unless_they_wait_for_each_other():
    plan = plan_of(["a", "b"], ["in a", "in b", edge("a", "b", trigger=False)])
    assert [arc.late for n in plan.nodes for arc in n.out] == [False]
    both = plan_of(
        ["a", "b"], ["in a", "in b", edge("a", "b", trigger=False), edge("b", "a", trigger=False)]
    )
    assert [arc.late for n in both.nodes for arc in n.out] == [True, True]


def test_a_cycle_of_each_nodes_stays_flat_and_closes_as_one():
    plan = plan_of(
        [node("a", join="each"), node("b", join="each"), "c"], ["in a", "a b", "b a", "b c"]
    )
    assert names(plan) == ["a", "b", "c"]
    units = {n.name: n.unit for n in plan.nodes}
    assert units["a"] == units["b"] != units["c"]
    assert {(arc.target_name, arc.inner) for n in plan.nodes for arc in n.out} == {
        ("b", True),
        ("a", True),
        ("c", False),
    }
    assert set(plan.flat_limits) == {0, 1}


def test_only_what_trigger_edges_tie_together_is_one_flat_cycle():
    nodes = [node("a", join="each"), node("b", join="each"), node("c", join="each")]
    plan = plan_of(nodes, ["in a", "a b", "b a", "b c", "c c", edge("c", "a", trigger=False)])
    assert [names_of(plan, unit) for unit in plan.units] == [["a", "b"], ["c"]]
    assert names_of(plan, plan.flat_limits) == ["a", "b", "c"]


def test_a_node_that_only_data_tie_to_a_flat_cycle_is_no_part_of_it():
    nodes = [node("a", join="each"), node("b", join="each")]
    data = [edge("a", "b", trigger=False), edge("b", "a", trigger=False)]
    plan = plan_of(nodes, ["in a", "in b", "a a", *data])
    assert [names_of(plan, unit) for unit in plan.units] == [["a"], ["b"]]
    assert names_of(plan, plan.flat_limits) == ["a"]


def test_a_cycle_with_one_gate_is_folded():
    assert names(plan_of([node("a", join="each"), "b"], ["in a", "a b", "b a"])) == ["cycle(a,b)"]


def test_a_cycle_entered_only_at_each_nodes_is_entered_for_each_token():
    plan = plan_of([node("a", join="each"), "b"], ["in a", "a b", "b a"])
    assert plan.nodes[0].vertex.join is EACH
    gated = plan_of([node("a", join="each"), "b"], ["in a", "in b", "a b", "b a"])
    assert gated.nodes[0].vertex.join is GATE


def test_edges_between_the_same_two_nodes_are_distinguished_by_number():
    plan = plan_of(["a", "b"], ["in a", "a b", edge("a", "b", group="g"), "b out"])
    assert [e.name for e in plan.graph.edges] == ["@entry->a", "a->b", "a->b#1", "b->@exit"]


def test_an_edge_from_entry_to_exit_touches_no_node():
    plan = plan_of(["a"], ["in a", "in out", "a out"])
    assert plan.entries[1].port == OUTSIDE


def test_a_node_that_nothing_leads_to_is_dead_from_the_start():
    plan = plan_of(["a", "b"], ["in a", "b a", "a out"])
    assert [plan.nodes[plan.units[u][0]].name for u in plan.sources] == ["b"]


@pytest.mark.parametrize("n", [10, 100])
def test_folding_touches_each_edge_a_fixed_number_of_times(n):
    """Linear: ten times the graph, ten times the calls; see benchmarks for the pins."""
    plan = plan_of(
        [f"n{i}" for i in range(n)], ["in n0", *(f"n{i} n{i + 1}" for i in range(n - 1))]
    )
    calls = 0

    def count(frame, event, arg):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        fold(plan.graph)
    finally:
        sys.setprofile(None)
    assert calls < 60 * n + 400


def test_folding_cycles_in_cycles_touches_each_edge_as_often_however_deep_they_are():
    """All nodes lead to all others: as many cycles in one another as there are nodes."""

    def calls_for_an_edge(n: int) -> float:
        every = [f"n{a} n{b}" for a in range(n) for b in range(n)]
        plan = plan_of([f"n{i}" for i in range(n)], ["in n0", *every])
        calls = 0

        def count(frame, event, arg):
            nonlocal calls
            calls += event == "call" and frame.f_code.co_name in ("_arc", "meet")

        sys.setprofile(count)
        try:
            for entry in range(n):
                plan = plan.nodes[-1].body.body(entry)
        finally:
            sys.setprofile(None)
        assert not any(isinstance(node.body, CycleBody) for node in plan.nodes)
        return calls / n**2

    assert calls_for_an_edge(40) < 1.1 * calls_for_an_edge(20)
