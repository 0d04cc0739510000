"""Scopes inside a node: cycles, how they turn and end; graphs, what they pull and push."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from axil import Graph, RootGraph
from axil.errors import CycleError, LimitReached, NodeFailed
from axil.kernel.plan import CycleLimit
from axil.kernel.state import APPEND, Field, Reducer, Schema
from axil.kernel.tokens import Out
from axil.kernel.values import Log
from axil.runtime.result import Result
from axil.runtime.run import run_sync
from axil.spec.graph import EdgeSpec, NodeSpec, SubgraphSpec
from axil_journals import MemoryJournal
from axil_testing import Recorder
from axil_testing.specs import Raw, edge, graph, never, node, workflow

LOG = Schema("log", {"log": Field("log", APPEND, default=Log)}, closed=True)


def counting(name: str) -> Raw:
    """Counts its firings in its own field, and says how many."""

    def call(task, ctx):
        n = (task.state.get(f"@node/{name}") or {}).get("n", 0) + 1
        return Out({"by": name, "n": n}, {f"@node/{name}": {"n": n}})

    return Raw(call)


def counter(name: str, **more: Any) -> NodeSpec:
    return NodeSpec(id=name, body=counting(name), **more)


def up_to(n: int):
    return lambda payload: payload["n"] < n


def from_(n: int):
    return lambda payload: payload["n"] >= n


def run(flow, input: Any = None, **options: Any) -> Result:
    async def go():
        return await flow.start(input, **options)

    return run_sync(go())


def turning(rounds: int, **more: Any):
    """``a`` and ``b`` in a cycle that ``b`` leaves in the given round."""
    edges = [
        "in a",
        "a b",
        edge("b", "a", condition=up_to(rounds)),
        edge("b", "out", condition=from_(rounds)),
    ]
    return workflow([counter("a"), counter("b")], edges, **more)


# ------------------------------------------------------------------------------------------------ h


def test_a_cycle_turns_until_a_token_leaves():
    result = run(turning(3))
    assert result.output == {"by": "b", "n": 3}
    (tally,) = result.cycles.values()
    assert (tally.entries, tally.rounds, tally.ends) == (1, 3, {"exit": 1})


def test_rounds_are_frames_and_activations_are_named_by_them():
    watcher = Recorder()
    run(turning(2), observers=[watcher])
    assert watcher.names() == [
        "cycle(a,b)/0/a",
        "cycle(a,b)/0/b",
        "cycle(a,b)/1/a",
        "cycle(a,b)/1/b",
        "cycle(a,b)",
    ]


def test_leaving_beats_coming_back():
    flow = workflow([counter("a"), counter("b")], ["in a", "a b", "b a", "b out"])
    (tally,) = run(flow).cycles.values()
    assert (tally.rounds, tally.ends) == (1, {"exit": 1})


def test_a_cycle_that_nothing_leaves_and_nothing_comes_back_in_ends_naturally():
    flow = workflow(
        [counter("a"), counter("b")], ["in a", "a b", edge("b", "a", condition=up_to(2))]
    )
    result = run(flow)
    (tally,) = result.cycles.values()
    assert (result.status, tally.rounds, tally.ends) == ("done", 2, {"natural": 1})


def test_after_a_natural_end_the_edges_that_leave_are_dead():
    edges = [
        "in a",
        "a b",
        edge("b", "a", condition=never),
        edge("b", "c", condition=never),
        "in d",
        "c t",
        "d t",
        "t out",
    ]
    watcher = Recorder()
    result = run(workflow([counter("a"), counter("b"), "c", "d", "t"], edges), observers=[watcher])
    assert watcher.names("skipped") == ["c"]
    assert result.output == {"by": "t"}


def test_reaching_its_limit_ends_the_run_as_limited_and_says_where():
    result = run(
        workflow(
            [counter("a"), counter("b")],
            ["in a", "a b", "b a"],
            cycle_limits={"": CycleLimit(rounds=4)},
        )
    )
    assert result.status == "limited"
    assert isinstance(result.error, LimitReached)
    assert result.error.id == "AX411"
    assert "cycle(a,b)" in str(result.error)


def test_a_limit_that_is_an_exit_ends_the_cycle_as_if_nothing_had_come_back():
    limits = {"a": CycleLimit(rounds=4, at_limit="exit")}
    result = run(
        workflow([counter("a"), counter("b")], ["in a", "a b", "b a"], cycle_limits=limits)
    )
    (tally,) = result.cycles.values()
    assert (result.status, tally.rounds, tally.ends) == ("done", 4, {"limit": 1})


def test_a_cycle_turns_a_hundred_times_by_default():
    watcher = Recorder()
    assert (
        run(
            workflow([counter("a"), counter("b")], ["in a", "a b", "b a"]), observers=[watcher]
        ).status
        == "limited"
    )
    assert sum(name.endswith("/b") for name in watcher.names()) == 100


def test_a_limit_counts_for_the_node_at_which_the_cycle_is_entered():
    limits = {"b": CycleLimit(rounds=2, at_limit="exit"), "": CycleLimit(rounds=5, at_limit="exit")}
    result = run(
        workflow([counter("a"), counter("b")], ["in b", "a b", "b a"], cycle_limits=limits)
    )
    assert next(iter(result.cycles.values())).rounds == 2


def test_a_cycle_entered_at_several_nodes_at_once_is_an_error_that_names_them_and_the_edges():
    flow = workflow([counter("a"), counter("b")], ["in a", "in b", "a b", "b a"])
    result = run(flow)
    assert result.status == "failed"
    assert isinstance(result.error, NodeFailed)
    cause = result.error.__cause__
    assert isinstance(cause, CycleError)
    for word in ("a", "b", "@entry->a", "@entry->b"):
        assert word in str(cause)


def test_a_cycle_is_entered_where_the_live_edge_leads():
    edges = [edge("in", "a", condition=never), "in b", "a b", edge("b", "a", condition=never)]
    watcher = Recorder()
    run(workflow([counter("a"), counter("b")], edges), observers=[watcher])
    assert watcher.names() == ["cycle(a,b)/0/b", "cycle(a,b)"]


def test_a_cycle_that_nothing_enters_is_skipped():
    edges = ["in s", edge("s", "a", condition=never), "a b", "b a", "b out"]
    watcher = Recorder()
    run(workflow(["s", counter("a"), counter("b")], edges), observers=[watcher])
    assert watcher.names("skipped") == ["cycle(a,b)"]


def test_a_cycle_applies_its_initial_nodes_join_to_what_enters():
    nodes = ["s", "p", counter("a", join="all"), counter("b")]
    some = ["in s", "s a", edge("s", "p", condition=never), "p a", "a b", "b a", "b out"]
    watcher = Recorder()
    assert run(workflow(nodes, some), observers=[watcher]).output == {}
    assert not any(name.startswith("cycle(a,b)/") for name in watcher.names())
    every = ["in s", "s a", "s p", "p a", "a b", "b a", "b out"]
    assert run(workflow(nodes, every)).output == {"by": "b", "n": 1}


def test_the_initial_node_gets_all_that_entered_and_later_all_that_came_back():
    seen: list[Any] = []

    def call(task, ctx):
        seen.append([token.payload.get("by", "entry") for token in task.tokens])
        return Out({"n": len(seen)})

    nodes = ["p", "q", node("a", call), "b", "c"]
    edges = [
        "in p",
        "in q",
        "p a",
        "q a",
        edge("a", "b", condition=up_to(2)),
        "a c",
        "b a",
        "c a",
        edge("a", "out", condition=from_(2)),
    ]
    run(workflow(nodes, edges))
    assert seen == [["p", "q"], ["b", "c"]]


def test_nested_cycles_turn_within_rounds_of_the_outer_one():
    nodes = [counter("a"), counter("b"), counter("c")]
    edges = [
        "in a",
        "a b",
        "b c",
        edge("c", "b", condition=lambda payload: payload["n"] % 2 == 1),
        edge("c", "a", condition=lambda payload: payload["n"] % 2 == 0 and payload["n"] < 4),
        edge("c", "out", condition=lambda payload: payload["n"] == 4),
    ]
    watcher = Recorder()
    result = run(workflow(nodes, edges), observers=[watcher])
    assert result.output == {"by": "c", "n": 4}
    assert [name for name in watcher.names() if name.endswith("/c")] == [
        "cycle(a,b,c)/0/cycle(b,c)/0/c",
        "cycle(a,b,c)/0/cycle(b,c)/1/c",
        "cycle(a,b,c)/1/cycle(b,c)/0/c",
        "cycle(a,b,c)/1/cycle(b,c)/1/c",
    ]


def test_what_nodes_of_a_cycle_keep_outlasts_the_round_and_the_entry():
    seen: list[int] = []

    def inner(task, ctx):
        n = (task.state.get("@node/b") or {}).get("n", 0) + 1
        seen.append(n)
        return Out({"n": n}, {"@node/b": {"n": n}})

    edges = [
        "in s",
        "s e",
        "in e",
        "e b",
        edge("b", "b", condition=lambda payload: payload["n"] % 2 == 1),
        "b out",
    ]
    run(
        workflow(
            ["s", node("e", join="each"), node("b", inner, join="each")],
            edges,
            cycle_limits={"": CycleLimit(rounds=9)},
        )
    )
    assert sorted(seen) == [1, 1, 2, 2]  # two paths, each of its own
    seen.clear()
    edges = [
        "in a",
        "a b",
        edge("b", "b", condition=lambda payload: payload["n"] % 2 == 1),
        edge("b", "a", condition=up_to(4)),
    ]
    run(workflow(["a", node("b", inner)], edges))
    assert seen == [1, 2, 3, 4]


def test_a_late_payload_reaches_its_target_in_the_next_round():
    seen: list[list[str]] = []

    def b(task, ctx):
        seen.append([str(t.payload["by"]) for t in task.tokens])
        return Out({"by": "b"})

    edges = [
        "in a",
        "a b",
        "b c",
        edge("c", "a", condition=up_to(3)),
        edge("c", "b", trigger=False),
        edge("c", "out", condition=from_(3)),
    ]
    run(workflow([counter("a"), node("b", b), counter("c")], edges))
    assert [sorted(names) for names in seen] == [["a"], ["a", "c"], ["a", "c"]]


def test_data_for_a_node_that_did_not_fire_waits_for_a_later_round():
    seen: list[list[str]] = []

    def b(task, ctx):
        seen.append(sorted(str(t.payload["by"]) for t in task.tokens))
        return Out({"by": "b"})

    nodes = [counter("a"), node("b", b), counter("x"), counter("c")]
    edges = [
        "in a",
        edge("a", "b", trigger=False, condition=lambda payload: payload["n"] == 1),
        "a x",
        edge("x", "b", condition=from_(2)),
        "x c",
        "b c",
        edge("c", "a", condition=up_to(2)),
    ]
    run(workflow(nodes, edges))
    assert seen == [["a", "x"]]


@pytest.mark.parametrize("journaled", [False, True])
@pytest.mark.parametrize(
    ("turns", "taken"),
    [
        # waits around the cycle that d is then within
        (["h b 1", "b c", "c h 1", "h a 2", "a d", "d out 1"], [["c1", "a1"]]),
        # and the other way round
        (
            ["h a 1", "a d", "d b 1", "b c", "c h 1", "h b 2", "c a 2", "d out 2"],
            [["a1"], ["c1", "c2", "a2"]],
        ),
    ],
)
def test_data_for_a_node_waits_for_it_in_whatever_cycle_of_a_later_round_it_is(
    turns, taken, journaled
):
    """A round entered at another node folds other cycles within: a, d; or b, c, d."""
    seen: list[list[str]] = []
    count = counting("d")

    def d(task, ctx):
        seen.append([f"{token.payload['by']}{token.payload['n']}" for token in task.tokens])
        return count.call(task, ctx)

    def turn(words: str) -> EdgeSpec:
        source, target, *when = words.split()
        return edge(
            source,
            target,
            condition=(lambda payload: payload["n"] == int(when[0])) if when else None,
        )

    never_taken = [
        edge(*ends, condition=never)
        for ends in (("b", "b"), ("d", "a"), ("d", "b"))
        if not any(t.startswith(" ".join(ends)) for t in turns)
    ]
    edges = [edge("in", "h"), *map(turn, turns), *never_taken, edge("c", "d", trigger=False)]
    flow = workflow([*map(counter, "habc"), node("d", d)], edges)
    journal = MemoryJournal() if journaled else None
    assert run(flow, journal=journal, run_id="r").status == "done"
    assert seen == taken


def test_data_that_waits_is_in_the_journal():
    """A run that broke off before the round in which it is taken continues with it."""
    seen: list[list[str]] = []
    breaks = [True]

    def d(task, ctx):
        if breaks:
            raise OSError(breaks.pop())
        seen.append(sorted(token.payload["by"] for token in task.tokens))
        return Out({"by": "d", "n": 0})

    edges = [
        "in h",
        edge("h", "b", condition=up_to(2)),
        edge("h", "a", condition=from_(2)),
        edge("b", "b", condition=never),
        "b c",
        edge("c", "d", trigger=False),
        "c h",
        "a d",
        edge("d", "a", condition=never),
        edge("d", "b", condition=never),
        "d out",
    ]
    flow, journal = workflow([*map(counter, "habc"), node("d", d)], edges), MemoryJournal()
    assert run(flow, journal=journal, run_id="r").status == "failed"
    assert run(flow, journal=journal, run_id="r", resuming=True).status == "done"
    assert seen == [["a", "c"]]


def test_what_a_cycle_hands_to_its_parent_is_one_change_whatever_the_rounds():
    def write(task, ctx):
        n = len(task.state["log"]) + 1
        return Out({"n": n}, {"log": [n]})

    edges = [
        "in a",
        edge("a", "a", condition=up_to(5)),
        edge("a", "t", condition=from_(5)),
        "in x",
        "x t",
        "t out",
    ]
    x = node("x", lambda task, ctx: Out({}, {"log": ["x"]}))
    result = run(workflow([node("a", write), x, "t"], edges, schema=LOG))
    assert result.attributes["log"] == [1, 2, 3, 4, 5, "x"]


def test_changes_that_cannot_be_composed_are_kept_in_order():
    schema = Schema(
        "said",
        {"said": Field("said", Reducer("said", lambda old, new: (old or "") + new, pure=True))},
        closed=True,
    )

    def write(task, ctx):
        n = len(task.state.get("said") or "") + 1
        return Out({"n": n}, {"said": str(n)})

    edges = [
        "in a",
        edge("a", "a", condition=up_to(4)),
        edge("a", "t", condition=from_(4)),
        "in x",
        "x t",
        "t out",
    ]
    x = node("x", lambda task, ctx: Out({}, {"said": "x"}))
    assert (
        run(workflow([node("a", write), x, "t"], edges, schema=schema)).attributes["said"]
        == "1234x"
    )


@pytest.mark.parametrize("slow", ["a", "c", ""])
def test_which_firings_a_limit_cuts_off_does_not_depend_on_what_was_slow(slow):
    """c fires for what comes in, for what a sends and for what it sends itself: three times."""

    def taking(name: str) -> NodeSpec:
        async def body(task, ctx):
            for _ in range(50 if name == slow else 0):
                await asyncio.sleep(0)
            return Out({"by": name})

        return node(name, body, mode="async", join="each" if name == "c" else None)

    watcher = Recorder()
    limits = {"c": CycleLimit(rounds=3, at_limit="exit")}
    edges = ["in c", "in a", "a c", "c c", "c out"]
    flow = workflow([taking("a"), taking("c")], edges, cycle_limits=limits)
    result = run(flow, observers=[watcher])
    assert result.status == "done"
    assert sorted(watcher.names()) == ["a", "c#0", "c#0.2", "c#1"]
    assert len(result.exits["c"]) == 3


def test_several_tokens_that_leave_a_cycle_on_one_edge_are_distinguished():
    watcher = Recorder()
    nodes = ["p", "q", counter("a"), node("e", join="each"), node("t", join="each")]
    edges = ["in a", "a p", "a q", "p e", "q e", "e t", edge("e", "a", condition=never), "t out"]
    result = run(workflow(nodes, edges), observers=[watcher])
    fired = [name for name in watcher.names() if name.startswith("t")]
    assert len(fired) == len(set(fired)) == 2
    assert len(result.exits["t"]) == 2


# ------------------------------------------------------------------------------------------------ g


class Inside:
    """A graph as a node's body."""

    def __init__(self, spec, **rules: Any) -> None:
        self.nested = SubgraphSpec(spec=spec, **rules)

    def scope(self, node: str, setting: Any) -> SubgraphSpec:
        return self.nested


WRITER = graph(
    [node("w", lambda task, ctx: Out({"m": 1}, {"a": task.state.get("a", 0) + 10, "b": 2}))],
    ["in w", "w out"],
)


def around(spec=WRITER, attributes: Any = None, **rules: Any) -> Result:
    return run(
        workflow(
            [NodeSpec(id="sub", body=Inside(spec, **rules))],
            ["in sub", "sub out"],
            attributes=attributes or {},
        )
    )


@pytest.mark.parametrize(
    ("rules", "attributes"),
    [
        ({}, {"a": 11}),  # pulls all; pushes what the parent has
        ({"pull": {"a": ""}}, {"a": 11}),
        ({"pull": {}}, {"a": 1}),
        ({"pull": {}, "push": {"a": "", "b": ""}}, {"a": 10, "b": 2}),
        ({"pull": {"a": ""}, "push": {}}, {"a": 1}),
        ({"push": {"b": ""}}, {"a": 1, "b": 2}),
    ],
)
def test_a_graph_pulls_on_entry_and_pushes_what_it_wrote_on_return(rules, attributes):
    assert around(attributes={"a": 1}, **rules).attributes == attributes


def test_a_graph_begins_with_its_own_first_values_under_what_it_pulls():
    spec = graph(
        [node("w", lambda task, ctx: Out({"saw": dict(task.state)}))],
        ["in w", "w out"],
        attributes={"a": 5, "c": 6},
    )
    assert around(spec, {"a": 1}).output == {"saw": {"a": 1, "c": 6}}
    assert around(spec, {"a": 1}, pull={}).output == {"saw": {"a": 5, "c": 6}}


def test_a_graph_pushes_only_what_was_written():
    spec = graph(["w"], ["in w", "w out"], attributes={"a": 5})
    assert around(spec, {"a": 1}, pull={}, push={"a": ""}).attributes == {"a": 1}


def test_a_graph_whose_exit_nothing_reaches_kills_its_edges():
    spec = graph(["w"], ["in w", edge("w", "out", condition=never)])
    watcher = Recorder()
    flow = workflow([NodeSpec(id="sub", body=Inside(spec)), "t"], ["in sub", "sub t", "t out"])
    run(flow, observers=[watcher])
    assert watcher.names("skipped") == ["t"]


def test_a_node_in_a_graph_is_named_by_its_path():
    boom = graph([node("w", lambda task, ctx: 1 / 0)], ["in w", "w out"])
    result = around(boom)
    assert isinstance(result.error, NodeFailed)
    assert result.error.path == "sub/w"


def test_what_nodes_of_a_graph_keep_is_gone_with_it_by_default():
    inner = graph([counter("w")], ["in w", "w out"])
    for keep, expected in ((False, 1), (True, 3)):
        sub = NodeSpec(id="sub", body=Inside(inner, keep=keep))
        edges = ["in a", "a sub", edge("sub", "a"), edge("a", "out", condition=from_(4))]
        result = run(workflow([counter("a"), sub], edges))
        assert result.status == "done"
        seen = Recorder()
        run(workflow([counter("a"), sub], edges), observers=[seen])
        assert [r.payload["n"] for r in seen if r.name.endswith("/sub/w")][-1] == expected


def test_a_graph_that_keeps_its_nodes_fields_takes_no_others():
    """A map's item may have a node of the same name, and its fields come back with the item's."""
    seen: list[dict[str, Any]] = []

    def sees(task, ctx):
        seen.append(dict(task.state))
        return Out({})

    kept = Inside(graph([node("x", sees)], ["in x"], schema=LOG), keep=True)
    other = node("a", lambda task, ctx: Out({}, {"@node/g": {"n": 1}}))
    run(workflow([other, NodeSpec(id="g", body=kept)], ["in a", "a g"], schema=LOG))
    assert seen == [{"log": []}]


def test_a_typed_graph_in_a_typed_graph_shares_its_fields():
    spec = graph(
        [node("w", lambda task, ctx: Out({}, {"log": ["w"]}))],
        ["in w", "w out"],
        schema=LOG,
        payload="state",
    )
    nodes = [
        node("a", lambda task, ctx: Out({}, {"log": ["a"]})),
        NodeSpec(id="sub", body=Inside(spec)),
    ]
    result = run(workflow(nodes, ["in a", "a sub", "sub out"], schema=LOG, payload="state"))
    assert result.attributes == {"log": ["a", "w"]}


def test_a_typed_graph_writes_are_joined_with_those_of_its_siblings():
    spec = graph(
        [node("w", lambda task, ctx: Out({}, {"log": ["w"]}))],
        ["in w", "w out"],
        schema=LOG,
        payload="state",
    )
    x = node("x", lambda task, ctx: Out({}, {"log": ["x"]}))
    result = run(
        workflow(
            [x, NodeSpec(id="sub", body=Inside(spec)), "t"],
            ["in x", "in sub", "x t", "sub t", "t out"],
            schema=LOG,
            payload="state",
        )
    )
    assert result.attributes == {"log": ["x", "w"]}


def test_graphs_of_the_builder_nest():
    g = RootGraph("g", attributes={"seen": 0})
    sub = g.create_node(Graph, name="sub")
    w = sub.create_node(
        lambda inputs, attributes: {"seen": attributes["seen"] + inputs["n"]}, name="w"
    )
    sub.edge_from_entry(w, ["n"])
    sub.edge_to_exit(w, ["seen"])
    g.edge_from_entry(sub, ["n"])
    g.edge_to_exit(sub, ["seen"])
    assert g.build().invoke({"n": 3}) == ({"seen": 3}, {"seen": 3})
