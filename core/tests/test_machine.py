"""Tokens in, tasks out: joins, dead paths, groups, data edges, barriers, ordinals, history.

No loop, no clock, no bodies.
"""

from __future__ import annotations

import pytest

from axil.errors import ConcurrentReset, RouteError, UndeclaredField
from axil.kernel.machine import Machine
from axil.kernel.plan import CycleLimit, Plan
from axil.kernel.state import APPEND, Field, Schema
from axil.kernel.tokens import Out, Token
from axil.kernel.values import Log
from axil_testing.specs import edge, never, node

from .tools import Hand, plain

DIAMOND = (["s", "a", "b", "t"], ["in s", "s a", "s b", "a t", "b t", "t out"])
LOG = Schema("log", {"log": Field("log", APPEND, default=Log)}, closed=True)


def payloads(task) -> list:
    return [token.payload for token in task.tokens]


# ------------------------------------------------------------------------------------------------ j


def test_a_gate_waits_for_every_edge_and_fires_once():
    hand = Hand(*DIAMOND).start()
    assert hand.take() == ["s"]
    hand.finish("s")
    assert hand.take() == ["a", "b"]
    hand.finish("b")
    assert hand.take() == []
    hand.finish("a")
    assert hand.take() == ["t"]
    assert payloads(hand.finish("t")) == [{"by": "a"}, {"by": "b"}]
    assert not hand.machine.due
    assert not hand.machine.taken


def test_payloads_come_in_the_order_of_edges_whatever_finished_first():
    for first, second in (("a", "b"), ("b", "a")):
        hand = Hand(["s", "a", "b", "t"], ["in s", "s a", "s b", "b t", "a t"]).start()
        hand.take()
        hand.finish("s")
        hand.take()
        hand.finish(first)
        hand.finish(second)
        hand.take()
        assert payloads(hand.finish("t")) == [{"by": "b"}, {"by": "a"}]


def test_a_gate_fires_with_what_is_live_when_the_rest_is_dead():
    hand = (
        Hand(["s", "a", "b", "t"], ["in s", "s a", edge("s", "b", condition=never), "a t", "b t"])
        .start()
        .go()
    )
    assert hand.order == ["s", "a", "t"]
    assert hand.skipped == ["b"]


def test_a_gate_with_nothing_live_is_skipped():
    hand = Hand(["s", "t"], ["in s", edge("s", "t", condition=never), "t out"]).start().go()
    assert hand.skipped == ["t"]
    assert hand.machine.end().exits == ()


def test_all_fires_only_if_every_edge_is_live():
    edges = ["in s", "s a", edge("s", "b", condition=never), "a t", "b t"]
    assert Hand(["s", "a", "b", node("t", join="all")], edges).start().go().order == ["s", "a"]
    assert Hand(["s", "a", "b", node("t", join="all")], DIAMOND[1]).start().go().order == [
        "s",
        "a",
        "b",
        "t",
    ]


def test_each_fires_for_every_live_token_and_waits_for_nothing():
    hand = Hand(["s", "a", "b", node("t", join="each")], DIAMOND[1]).start()
    hand.take()
    hand.finish("s")
    hand.take()
    hand.finish("b")
    assert hand.take() == ["t#1"]
    assert payloads(hand.finish("t#1")) == [{"by": "b"}]
    hand.finish("a")
    assert hand.take() == ["t#0"]


def test_groups_join_independently_and_each_makes_a_firing():
    nodes, edges = (
        ["s", "a", "b", "t"],
        ["in s", "s a", "s b", edge("a", "t", group="x"), edge("b", "t", group="y"), "t out"],
    )
    hand = Hand(nodes, edges).start()
    hand.take()
    hand.finish("s")
    hand.take()
    hand.finish("b")
    assert hand.take() == ["t#1"]
    hand.finish("a")
    assert hand.take() == ["t"]
    hand.go()
    assert len(hand.machine.end().exits) == 2


def test_a_node_is_skipped_only_when_all_its_groups_are_dead():
    nodes = ["s", "a", "b", "t"]
    one = [
        "in s",
        "s a",
        edge("s", "b", condition=never),
        edge("a", "t", group="x"),
        edge("b", "t", group="y"),
    ]
    assert Hand(nodes, one).start().go().skipped == ["b"]
    none = [
        "in s",
        edge("s", "a", condition=never),
        edge("s", "b", condition=never),
        edge("a", "t", group="x"),
        edge("b", "t", group="y"),
    ]
    assert sorted(Hand(nodes, none).start().go().skipped) == ["a", "b", "t"]


def test_groups_of_all_need_only_their_own_edges():
    edges = [
        "in s",
        "s a",
        edge("s", "b", condition=never),
        edge("a", "t", group="x"),
        edge("b", "t", group="y"),
    ]
    assert Hand(["s", "a", "b", node("t", join="all")], edges).start().go().order == ["s", "a", "t"]


def test_each_ignores_groups():
    edges = ["in s", "s a", "s b", edge("a", "t", group="x"), edge("b", "t", group="y")]
    assert sorted(Hand(["s", "a", "b", node("t", join="each")], edges).start().go().order) == [
        "a",
        "b",
        "s",
        "t#0",
        "t#1",
    ]


def test_a_join_after_a_node_that_fires_often_gets_all_its_tokens_in_ordinal_order():
    hand = Hand(
        ["s", "a", "b", node("e", join="each"), "t"], ["in s", "s a", "s b", "a e", "b e", "e t"]
    ).start()
    hand.take()
    hand.finish("s")
    hand.take()
    hand.finish("b")
    hand.take()
    hand.finish("e#1", Out({"n": 2}))
    assert hand.take() == []  # its source may fire again
    hand.finish("a")
    hand.take()
    hand.finish("e#0", Out({"n": 1}))
    assert hand.take() == ["t"]
    assert payloads(hand.finish("t")) == [{"n": 1}, {"n": 2}]


def test_an_ordinal_names_the_edge_and_its_sources_ordinal():
    nodes = ["s", "a", "b", node("e", join="each"), node("f", join="each")]
    hand = Hand(nodes, ["in s", "s a", "s b", "a e", "b e", "s f", "e f"]).start().go()
    assert sorted(name for name in hand.order if name[0] in "ef") == [
        "e#0",
        "e#1",
        "f#0",
        "f#0.1",
        "f#1.1",
    ]


# ------------------------------------------------------------------------------------------------ d


def test_a_skipped_node_kills_its_out_edges_and_death_travels():
    hand = (
        Hand(["s", "a", "b", "c"], ["in s", edge("s", "a", condition=never), "a b", "b c", "c out"])
        .start()
        .go()
    )
    assert hand.skipped == ["a", "b", "c"]


def test_an_entry_edge_that_carries_nothing_is_dead():
    hand = (
        Hand(["a", "b"], [edge("in", "a", condition=never), "in b", "a out", "b out"]).start().go()
    )
    assert (hand.order, hand.skipped) == (["b"], ["a"])


def test_a_node_that_nothing_leads_to_is_skipped_at_once():
    hand = Hand(["a", "b", "c"], ["in a", "b c", "a c"]).start()
    assert hand.skipped == ["b"]
    assert hand.go().order == ["a", "c"]


def test_a_request_that_cannot_be_met_does_not_wait():
    edges = ["in s", edge("s", "a", condition=never), "a b", "b t", "s t"]
    assert Hand(["s", "a", "b", "t"], edges).start().go().order == ["s", "t"]


def test_to_sends_only_where_it_says():
    hand = Hand(["s", "a", "b"], ["in s", "s a", "s b"]).start()
    hand.take()
    hand.finish("s", Out({}, to=frozenset({"b"})))
    assert hand.take() == ["b"]
    assert hand.skipped == ["a"]


def test_to_must_name_a_target():
    hand = Hand(["s", "a"], ["in s", "s a"]).start()
    hand.take()
    with pytest.raises(RouteError, match="nowhere"):
        hand.finish("s", Out({}, to=frozenset({"nowhere"})))


def test_a_long_dead_chain_is_settled_without_recursion():
    n = 20_000
    edges = ["in s", edge("s", "n0", condition=never), *(f"n{i} n{i + 1}" for i in range(n - 1))]
    assert len(Hand(["s", *(f"n{i}" for i in range(n))], edges).start().go().skipped) == n


# ------------------------------------------------------------------------------------------------ d


def test_a_data_edge_never_makes_its_target_live():
    hand = Hand(["a", "b"], ["in a", edge("a", "b", trigger=False), "b out"]).start().go()
    assert (hand.order, hand.skipped) == (["a"], ["b"])


def test_an_acyclic_target_waits_for_its_data():
    hand = Hand(["a", "b", "c"], ["in a", "in c", edge("a", "b", trigger=False), "c b"]).start()
    hand.take()
    hand.finish("c")
    assert hand.take() == []
    hand.finish("a")
    assert hand.take() == ["b"]
    assert payloads(hand.finish("b")) == [{"by": "a"}, {"by": "c"}]


def test_dead_data_does_not_skip_a_live_node():
    hand = (
        Hand(
            ["a", "b", "c"], ["in a", "in c", edge("a", "b", trigger=False, condition=never), "c b"]
        )
        .start()
        .go()
    )
    assert "b" in hand.order


def test_data_counts_for_no_join_but_is_seen_by_each_firing():
    nodes = ["d", "a", "b", node("t", join="each")]
    hand = Hand(
        nodes, ["in d", "in a", "in b", edge("d", "t", trigger=False), "a t", "b t"]
    ).start()
    hand.take()
    hand.finish("a")
    hand.finish("b")
    assert hand.take() == []
    hand.finish("d")
    assert hand.take() == ["t#1", "t#2"]
    assert payloads(hand.finish("t#1")) == [{"by": "d"}, {"by": "a"}]


def test_all_is_satisfied_by_its_trigger_edges_alone():
    nodes = ["a", "d", node("t", join="all")]
    assert (
        "t"
        in Hand(nodes, ["in a", "in d", "a t", edge("d", "t", trigger=False, condition=never)])
        .start()
        .go()
        .order
    )


# ------------------------------------------------------------------------------------------------ c


def body(nodes, edges, entry: str) -> tuple[Plan, Machine]:
    hand = Hand(nodes, edges)
    cycle = next(n.body for n in hand.plan.nodes if n.vertex.type == "cycle")
    index = next(i for i, v in enumerate(hand.plan.graph.vertices) if v.name == entry)
    plan = cycle.body(index)  # type: ignore[attr-defined]
    machine = Machine(plan, ("c", 0), hand.root, keeps=True)
    machine.start((), entry=())
    return plan, machine


def turn(plan: Plan, machine: Machine, name: str, out: Out | None = None) -> None:
    task = machine.take()
    assert task is not None
    assert task.node.name == name
    machine.commit(task, machine.prepare(task, out or Out({"by": name})))


def test_the_entry_node_of_a_round_fires_unconditionally():
    _plan, machine = body(["a", "b"], ["in a", "a b", "b a"], "a")
    task = machine.take()
    assert task is not None
    assert task.tokens == ()


def test_nodes_above_one_that_may_leave_wait_until_it_is_decided():
    plan, machine = body(
        ["a", "b", "c", "d"], ["in a", "a b", "a c", "c d", "d a", "b out", "b a"], "a"
    )
    turn(plan, machine, "a")
    first, second = machine.take(), machine.take()
    assert first is not None
    assert second is not None
    machine.commit(second, machine.prepare(second, Out({})))
    assert machine.take() is None  # d is above b, and b may leave
    machine.commit(first, machine.prepare(first, Out({}, to=frozenset({"a"}))))
    turn(plan, machine, "d")


def test_when_one_has_left_its_level_finishes_and_later_levels_never_start():
    plan, machine = body(
        ["a", "b", "c", "d"], ["in a", "a b", "a c", "c d", "d a", "b out", "b a"], "a"
    )
    turn(plan, machine, "a")
    turn(plan, machine, "b")
    turn(plan, machine, "c")
    assert machine.take() is None
    assert not machine.due
    assert not machine.taken
    assert [exit.trigger for exit in machine.exits] == [True]
    ended = machine.end()
    assert len(ended.exits) == 1
    assert len(ended.returns) == 1


def test_a_token_back_to_the_entry_is_a_return_and_no_task():
    plan, machine = body(["a", "b"], ["in a", "a b", "b a"], "a")
    turn(plan, machine, "a")
    turn(plan, machine, "b")
    assert not machine.due
    assert not machine.taken
    assert [e.trigger for e in machine.end().returns] == [True]


def test_a_late_payload_is_handed_over_without_state():
    plan, machine = body(
        ["a", "b", "c"], ["in a", "a b", "b c", "c a", edge("c", "b", trigger=False)], "a"
    )
    for name in "abc":
        turn(plan, machine, name)
    data = machine.end().data
    assert [(plan.graph.edges[t.edge].name, t.state) for t in data] == [("c->b", None)]


def test_data_that_a_node_took_for_each_of_its_tokens_does_not_wait_for_the_next_round():
    nodes = ["a", "d", "c", node("b", join="each")]
    edges = ["in a", "a d", "d c", edge("d", "b", trigger=False), "c b", "b a"]
    plan, machine = body(nodes, edges, "a")
    for name in "adc":
        turn(plan, machine, name)
    task = machine.take()
    assert task is not None
    assert payloads(task) == [{"by": "d"}, {"by": "c"}]
    machine.commit(task, machine.prepare(task, Out({"by": "b"})))
    assert machine.end().data == ()


def test_data_for_a_firing_that_was_held_when_the_round_was_left_waits_for_the_next_round():
    nodes = ["a", "b", "c", "d"]
    edges = ["in a", "a b", "a c", "c d", edge("a", "d", trigger=False), "d a", "b out", "b a"]
    plan, machine = body(nodes, edges, "a")
    turn(plan, machine, "a")
    first, second = machine.take(), machine.take()
    assert first is not None
    assert second is not None
    machine.commit(second, machine.prepare(second, Out({})))  # d has all that it waits for
    machine.commit(first, machine.prepare(first, Out({})))  # b leaves
    assert not machine.due
    assert [plan.graph.edges[t.edge].name for t in machine.end().data] == ["a->d"]


def test_a_flat_cycle_turns_until_no_token_is_live():
    def until(payload):
        return payload["n"] < 4

    hand = Hand(
        [node("a", join="each"), node("b", join="each"), "t"],
        ["in a", "a b", edge("b", "a", condition=until), "b t"],
    ).start()
    n = 0
    while taken := hand.take():
        for name in taken:
            n += 1
            hand.finish(name, Out({"n": n}))
    assert [name[0] for name in hand.order] == ["a", "b", "a", "b", "t"]
    assert not hand.machine.due
    assert not hand.machine.taken


def test_a_flat_cycle_that_reaches_an_exit_limit_drops_the_token():
    nodes = [node("a", join="each"), "t"]
    hand = (
        Hand(
            nodes, ["in a", "a a", "a t"], cycle_limits={"a": CycleLimit(rounds=3, at_limit="exit")}
        )
        .start()
        .go()
    )
    assert [name[0] for name in hand.order] == ["a", "a", "a", "t"]


def test_a_wave_begins_when_nothing_else_can_come_and_fires_in_the_order_of_ordinals():
    nodes = ["a", "b", node("c", join="each")]
    limits = {"c": CycleLimit(rounds=3, at_limit="exit")}
    edges = ["in c", "in a", "a b", "b c", "c c"]
    hand = Hand(nodes, edges, cycle_limits=limits).start()
    assert hand.take() == ["a"]  # what came in waits for what may come from b
    hand.finish("a")
    assert hand.take() == ["b"]
    hand.finish("b")
    assert hand.take() == ["c#0", "c#1"]
    hand.finish("c#1")
    assert hand.take() == []  # the other one is at work
    hand.finish("c#0")
    assert hand.take() == ["c#0.2"]  # c#1.2 is beyond the limit
    hand.finish("c#0.2")
    assert hand.take() == []
    assert not hand.machine.taken


def test_a_limit_that_ends_the_run_holds_nothing_back():
    limits = {"c": CycleLimit(rounds=3)}
    nodes = ["a", node("c", join="each")]
    hand = Hand(nodes, ["in c", "in a", "a c", "c c"], cycle_limits=limits).start()
    assert hand.take() == ["c#0", "a"]


def test_a_node_may_wait_for_data_of_a_flat_cycle_that_its_own_data_lead_back_to():
    def until(payload):
        return payload["n"] < 2

    nodes = ["c", node("a", join="each"), node("b", join="each")]
    data = [edge("a", "b", trigger=False), edge("b", "a", trigger=False)]
    hand = Hand(nodes, ["in a", "in c", edge("a", "a", condition=until), "c b", *data]).start()
    n = 0
    while taken := hand.take():
        for name in taken:
            n += 1
            task = hand.finish(name, Out({"n": n}))
    assert [name[0] for name in hand.order][-1] == "b"
    assert len(payloads(task)) > 1


# ------------------------------------------------------------------------------------------------ s


def test_a_node_sees_what_is_upstream_of_it_and_nothing_else():
    hand = Hand(*DIAMOND, attributes={"x": 0}).start()
    hand.take()
    hand.finish("s", Out({}, {"x": 1}))
    hand.take()
    hand.finish("a", Out({}, {"x": 2}))
    assert plain(hand.at_work["b"].state) == {"x": 1}


def test_at_a_join_the_later_edge_wins_where_both_overwrote():
    for first, second in (("a", "b"), ("b", "a")):
        hand = Hand(*DIAMOND, attributes={"x": 0}).start()
        hand.take()
        hand.finish("s")
        hand.take()
        writes = {"a": Out({}, {"x": "a"}), "b": Out({}, {"x": "b"})}
        hand.finish(first, writes[first])
        hand.finish(second, writes[second])
        hand.take()
        assert plain(hand.at_work["t"].state) == {"x": "b"}


def test_a_branch_that_did_not_write_cannot_undo_one_that_did():
    hand = Hand(*DIAMOND, attributes={"x": 0}).start()
    hand.take()
    hand.finish("s")
    hand.take()
    hand.finish("a", Out({}, {"x": 1}))
    hand.finish("b")
    hand.take()
    assert plain(hand.at_work["t"].state) == {"x": 1}


def test_a_scope_without_an_exit_ends_with_the_states_of_all_its_paths():
    hand = Hand(["a", "b"], ["in a", "in b"], attributes={"x": 0, "y": 0}).start()
    hand.take()
    hand.finish("b", Out({}, {"y": 2}))
    hand.finish("a", Out({}, {"x": 1}))
    assert plain(hand.machine.end().state) == {"x": 1, "y": 2}


def test_ended_paths_are_joined_by_level_before_the_order_of_nodes():
    hand = Hand(["b", "a"], ["in a", "a b", "in b"], attributes={"x": 0}, cycles="allow").start()
    hand.take()
    hand.finish("a", Out({}, {"x": "a"}))
    hand.take()
    hand.finish("b", Out({}, {"x": "b"}))
    assert plain(hand.machine.end().state) == {"x": "b"}


def test_history_is_folded_where_one_path_alone_is_alive():
    hand = Hand(["a", "b", "c"], ["in a", "a b", "b c", "c out"], schema=LOG).start()
    for name in "abc":
        hand.take()
        hand.finish(name, Out({}, {"log": [name]}))
        assert hand.machine.history.count == 0
    assert hand.machine.end().state["log"] == ["a", "b", "c"]


def test_history_is_kept_while_another_path_is_alive():
    hand = Hand(*DIAMOND, schema=LOG).start()
    hand.take()
    hand.finish("s", Out({}, {"log": ["s"]}))
    hand.take()
    hand.finish("b", Out({}, {"log": ["b"]}))
    hand.finish("a", Out({}, {"log": ["a"]}))
    assert hand.machine.history.count == 2
    hand.take()
    hand.finish("t", Out({}, {"log": ["t"]}))
    assert hand.machine.history.count == 0
    assert hand.machine.end().state["log"] == ["s", "a", "b", "t"]


def test_shared_history_is_never_applied_twice():
    hand = (
        Hand(
            ["s", "a", "b", "c", "t"],
            ["in s", "s a", "s b", "s c", "a t", "b t", "c t"],
            schema=LOG,
        )
        .start()
        .go()
    )
    assert hand.machine.end().state["log"] == []
    hand = Hand(
        ["s", "a", "b", "t"], ["in s", "s a", "s b", "a t", "b t", "s t"], schema=LOG
    ).start()
    hand.take()
    hand.finish("s", Out({}, {"log": [1]}))
    hand.go()
    assert hand.machine.end().state["log"] == [1]


def test_a_filter_sets_the_state_that_goes_on_and_local_fields_survive():
    edges = ["in a", edge("a", "b", filter=lambda state: {"x": state["x"] + 1}), "b out"]
    hand = Hand(["a", "b"], edges, attributes={"x": 1, "y": 2}).start()
    hand.take()
    hand.finish("a", Out({}, {"@node/a": {"n": 1}}))
    hand.take()
    assert dict(hand.at_work["b"].state) == {"x": 2, "@node/a": {"n": 1}}


def test_a_filter_that_leaves_nothing_leaves_nothing():
    hand = Hand(
        ["a", "b"], ["in a", edge("a", "b", filter=lambda state: {}), "b out"], attributes={"x": 1}
    ).start()
    hand.take()
    hand.finish("a")
    hand.take()
    assert dict(hand.at_work["b"].state) == {}


def test_a_reset_that_meets_concurrent_writes_of_a_growing_field_is_an_error_that_names_it():
    edges = ["in s", "s a", "s b", edge("a", "t", filter=lambda state: {"log": ["reset"]}), "b t"]
    hand = Hand(["s", "a", "b", "t"], edges, schema=LOG).start()
    hand.take()
    hand.finish("s")
    hand.take()
    hand.finish("a", Out({}, {"log": ["a"]}))
    hand.finish("b", Out({}, {"log": ["b"]}))
    with pytest.raises(ConcurrentReset, match='"log"'):
        hand.take()
    assert hand.plan.nodes[hand.machine.failed_node].name == "t"


def test_a_merge_decides_where_states_meet():
    nodes = [
        "s",
        "a",
        "b",
        node("t", merge={"": lambda states: {"x": sum(s["x"] for s in states)}}),
    ]
    hand = Hand(nodes, DIAMOND[1], attributes={"x": 0}).start()
    hand.take()
    hand.finish("s")
    hand.take()
    hand.finish("a", Out({}, {"x": 1}))
    hand.finish("b", Out({}, {"x": 2}))
    hand.take()
    assert plain(hand.at_work["t"].state) == {"x": 3}


def test_what_a_body_writes_is_checked_before_anything_happens():
    hand = Hand(["a"], ["in a", "a out"], schema=LOG).start()
    hand.take()
    with pytest.raises(UndeclaredField, match='"lug"'):
        hand.finish("a", Out({}, {"lug": [1]}))


def test_a_scope_hands_its_parent_one_change_for_each_written_field():
    hand = Hand(["a", "b", "c"], ["in a", "a b", "b c"], schema=LOG, keeps=True).start()
    for name in "abc":
        hand.take()
        hand.finish(name, Out({}, {"log": [name]}))
    assert dict(hand.machine.end().changes) == {"log": ["a", "b", "c"]}


def test_a_token_from_the_entry_straight_to_the_exit_is_an_exit():
    ended = Hand(["a"], ["in a", "in out", "a out"]).start({"m": 1}).go().machine.end()
    assert [e.payload for e in ended.exits] == [{"m": 1}, {"by": "a"}]


def test_a_machine_asked_before_its_end_gives_what_there_is():
    hand = Hand(*DIAMOND, attributes={"x": 0}).start()
    hand.take()
    hand.finish("s", Out({}, {"x": 5}))
    ended = hand.machine.end()
    assert ended.fired
    assert plain(ended.state) == {"x": 5}


def test_a_machine_whose_last_task_failed_gives_what_there_is():
    """The outcome was worked out, which folds the history, and an edge refused it."""

    def refuses(payload):
        raise ValueError(payload)

    edges = [*DIAMOND[1][:-1], edge("t", "out", condition=refuses)]
    hand = Hand(DIAMOND[0], edges, attributes={"a": 0, "b": 0}).start()
    hand.take()
    hand.finish("s")
    hand.take()
    for name in "ab":
        hand.finish(name, Out({}, {name: 1}))
    hand.take()
    with pytest.raises(ValueError, match="'by': 't'"):
        hand.finish("t", Out({"by": "t"}, {"a": 2}))
    assert plain(hand.machine.end().state) == {"a": 1, "b": 1}


def test_tokens_put_by_hand_go_where_their_edge_leads():
    hand = Hand(["a", "b"], ["in a", "in b"])
    hand.machine.start([Token(1, "only b", hand.root)])
    assert hand.take() == ["b"]
    assert hand.skipped == ["a"]
