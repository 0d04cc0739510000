"""A run under another version of its graph, its plugins or its state."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from axil import Out, RootGraph, SpecError, Workflow, run_sync, schema_of
from axil.plugin import JournalError
from axil_journals import MemoryJournal, ReplayIndex, version_changes
from axil_testing.specs import Tape, edge, never, node, workflow, written
from axil_testing.versions import Brief, Paper, asks, brief, paper, paused, to_paper, typed

# ------------------------------------------------------------------------------------------------ s


def test_an_old_run_goes_on_under_a_newer_state_when_it_is_migrated():
    journal = MemoryJournal()
    question = paused(brief(), journal)
    with pytest.raises(JournalError, match=r"AX504.*migrate"):
        run_sync(paper().resume("r", journal=journal))
    result = run_sync(paper().resume("r", journal=journal, answers={question: "n2"}, migrate=True))
    assert result.state == Paper(title="Growth", notes=["- n1", "n2"], cents=25)


def test_a_migrated_run_is_the_newer_graphs_from_then_on():
    journal = MemoryJournal()
    question = paused(brief(), journal)
    assert run_sync(paper().resume("r", journal=journal, migrate=True)).status == "paused"
    with pytest.raises(JournalError, match="AX504"):
        run_sync(brief().resume("r", journal=journal))
    result = run_sync(paper().resume("r", journal=journal, answers={question: "n2"}))
    assert result.state == Paper(title="Growth", notes=["- n1", "n2"], cents=25)
    # what was written behind the migration is not migrated
    again = run_sync(paper().resume("r", journal=journal))
    assert again.state == result.state


def test_a_round_that_left_a_cycle_where_the_newer_graph_has_no_way_out_is_done_again():
    def turns(last: str, *more: str) -> Workflow:
        back = edge(last, "a", condition=never)
        edges = ["in a", "a b", "b c", "c d", f"d {last}", back, "e x", "x out", *more]
        return workflow([*dict.fromkeys(["a", "b", "c", "d", last, *"ex"])], edges, cycles="allow")

    tape = Tape()
    run_sync(turns("e").start({}, journal=tape, run_id="r").result())
    at = [entry.kind for entry in tape.lines].index("round") + 1
    journal, newer = written(tape.lines[:at]), turns("f", "f e")
    assert run_sync(newer.resume("r", journal=journal, migrate=True)).output == {"by": "x"}
    assert {str(each) for each in ReplayIndex(journal.entries("r")).done} >= {"e", "x"}


def test_where_no_migration_leads_it_says_which_is_missing():
    journal = MemoryJournal()
    paused(brief(), journal)
    gap = paper(state_version=3, migrations={2: to_paper})
    with pytest.raises(
        JournalError,
        match=r"AX525.*under version 1.*has version 3.*from 1 to 2 \(there are: 2 to 3\)",
    ):
        run_sync(gap.resume("r", journal=journal, migrate=True))
    with pytest.raises(JournalError, match=r"AX526.*does not fit.*topic"):
        run_sync(paper(state_version=1, migrations={}).resume("r", journal=journal, migrate=True))
    newer = MemoryJournal()
    paused(paper(), newer)
    with pytest.raises(JournalError, match=r"AX525.*lead forward only"):
        run_sync(brief().resume("r", journal=newer, migrate=True))


@pytest.mark.parametrize(
    ("migration", "reported"),
    [
        (lambda values: values["absent"], "KeyError"),
        (lambda values: None, "NoneType"),
        (lambda values: {"cents": "many"}, "does not fit"),
    ],
)
def test_a_migration_that_fails_is_named_with_what_it_was_given(migration, reported):
    journal = MemoryJournal()
    paused(brief(), journal)
    with pytest.raises(JournalError, match=f"AX526.*{reported}"):
        run_sync(paper(migrations={1: migration}).resume("r", journal=journal, migrate=True))


def test_a_thread_goes_on_under_a_newer_state():
    journal = MemoryJournal()
    old = workflow(
        [node("a", lambda task, ctx: Out({}, {"notes": ["n1"], "cost": 0.25}))],
        ["in a", "a out"],
        schema=schema_of(Brief),
        payload="state",
    )
    run_sync(old.run({"topic": "seeds"}, journal=journal, thread="t"))
    new = workflow(
        [node("a", lambda task, ctx: Out({}, {"notes": ["n2"], "cents": 1}))],
        ["in a", "a out"],
        **typed(Paper, state_version=2, migrations={1: to_paper}),
    )
    assert run_sync(new.run({}, journal=journal, thread="t")).state == Paper(
        title="Seeds", notes=["- n1", "n2"], cents=26
    )
    assert run_sync(new.run({}, journal=journal, thread="t")).state.cents == 27
    with pytest.raises(JournalError, match=r"AX525.*lead forward only"):
        run_sync(old.run({}, journal=journal, thread="t"))


def test_a_thread_whose_state_does_not_fit_any_more_says_so():
    journal = MemoryJournal()
    run_sync(
        workflow(["a"], ["in a"], **typed(Brief)).run(
            {"topic": "seeds"}, journal=journal, thread="t"
        )
    )
    with pytest.raises(
        JournalError,
        match=r'AX526 .*what the thread.s last run left does not fit.*"topic".*migration',
    ):
        run_sync(workflow(["a"], ["in a"], **typed(Paper)).run({}, journal=journal, thread="t"))


def test_versions_and_migrations_of_attributes_and_of_a_loops_rounds():
    """A run that broke off in the middle of a cycle: its rounds are migrated as its nodes are."""
    journal = MemoryJournal()

    def turning(field: str, **more: Any) -> Workflow:
        async def turn(task: Any, ctx: Any) -> Out:
            n = task.state[field] + 1
            if n == 3:
                await ctx.ask("go on?")
            return Out({"n": n}, {field: n})

        edges = [
            "in a",
            edge("a", "a", condition=lambda p, s: p["n"] < 5),
            edge("a", "out", condition=lambda p, s: p["n"] >= 5),
        ]
        return workflow(
            [node("a", turn, mode="async", ctx=True)], edges, attributes={field: 0}, **more
        )

    first = run_sync(turning("count").run({}, journal=journal, run_id="r"))
    newer = turning(
        "rounds",
        state_version=2,
        migrations={1: lambda v: {"rounds": v["count"]} if "count" in v else v},
    )
    done = run_sync(
        newer.resume("r", journal=journal, migrate=True, answers={first.questions[0].id: "yes"})
    )
    assert (done.status, done.attributes, done.usage.firings) == ("done", {"rounds": 5}, 5)


def test_a_graph_inside_has_a_version_of_its_own():
    def built(field: str, **more: Any) -> RootGraph:
        from axil import Graph

        outer = RootGraph("outer")
        inner = outer.create_node(Graph, name="inner", attributes={field: 0}, **more)

        def sets(inputs: Any, attributes: Any) -> dict[str, Any]:
            attributes[field] = 7
            return {}

        async def asks(inputs: Any, attributes: Any, ctx: Any) -> dict[str, Any]:
            await ctx.ask("?")
            return {"seen": attributes[field]}

        inner.create_node(sets, name="sets")
        inner.create_node(asks, name="asks")
        inner.edge_from_entry("sets", {})
        inner.create_edge("sets", "asks", {})
        inner.edge_to_exit("asks", ["seen"])
        outer.edge_from_entry(inner, {})
        outer.edge_to_exit(inner, ["seen"])
        return outer.build()

    journal = MemoryJournal()
    first = run_sync(built("old").run({}, journal=journal, run_id="r"))
    newer = built(
        "new",
        state_version=4,
        migrations={n: (lambda v: {"new": v["old"] * 10} if "old" in v else v) for n in (1, 2, 3)},
    )
    done = run_sync(
        newer.resume("r", journal=journal, migrate=True, answers={first.questions[0].id: "yes"})
    )
    assert done.output == {"seen": 70}


def test_a_state_without_a_version_counts_as_it_did_before():
    plain, same = workflow(["a"], ["in a"]).spec, workflow(["a"], ["in a"], state_version=1).spec
    other, led = (
        workflow(["a"], ["in a"], state_version=2).spec,
        workflow(["a"], ["in a"], state_version=2, migrations={1: to_paper}).spec,
    )
    assert plain.digest() == same.digest() != other.digest() == led.digest()


@pytest.mark.parametrize(
    "migrations", [{2: to_paper}, {0: to_paper}, {1: "no function"}, {1: 5}, {"1": to_paper}]
)
def test_migrations_that_lead_nowhere_are_refused(migrations):
    with pytest.raises(SpecError, match=r"AX527|AX148"):
        _ = workflow(["a"], ["in a"], state_version=2, migrations=migrations).plan


# ------------------------------------------------------------------------------------------------ t


def test_a_migrated_run_keeps_what_was_done_and_runs_the_rest_as_it_is_now():
    ran: list[str] = []

    def flow(*names: str) -> Workflow:
        def body(name: str) -> Any:
            async def call(task: Any, ctx: Any) -> Out:
                ran.append(name)
                if name == "b":
                    await ctx.ask("?")
                return Out({"path": f"{task.tokens[0].payload['path']}{name}"}, {"last": name})

            return call

        steps = ["in", *names, "out"]
        return workflow(
            [node(n, body(n), mode="async", ctx=True) for n in names],
            [f"{a} {b}" for a, b in pairwise(steps)],
        )

    journal = MemoryJournal()
    question = (
        run_sync(flow("a", "b", "c").run({"path": ""}, journal=journal, run_id="r")).questions[0].id
    )
    ran.clear()
    result = run_sync(
        flow("a", "b", "d", "e").resume(
            "r", journal=journal, migrate=True, answers={question: "yes"}
        )
    )
    assert (result.output, ran) == ({"path": "abde"}, ["b", "d", "e"])


def test_nodes_that_are_gone_are_left_out():
    journal = MemoryJournal()
    two = workflow(
        [node("a"), node("x"), node("b", asks, mode="async", ctx=True)],
        ["in a", "in x", "a b", "x b", "b out"],
    )
    question = run_sync(two.run({}, journal=journal, run_id="r")).questions[0].id
    one = workflow([node("a"), node("b", asks, mode="async", ctx=True)], ["in a", "a b", "b out"])
    assert (
        run_sync(one.resume("r", journal=journal, migrate=True, answers={question: "yes"})).status
        == "done"
    )


# ------------------------------------------------------------------------------------------------ p


def test_a_run_is_pinned_to_the_given_plugins():
    journal, pins = MemoryJournal(), {"acme": {"version": "1.0"}}
    flow = brief()
    question = paused(flow, journal, pins=pins)
    # it was begun
    assert ReplayIndex(journal.entries("r")).header.data["pins"] == pins  # type: ignore[union-attr]
    other = {"acme": {"version": "99.0"}}
    with pytest.raises(JournalError, match=r"AX524.*acme was 1\.0, and is 99\.0.*migrate.*fork"):
        run_sync(flow.resume("r", journal=journal, pins=other))
    assert run_sync(flow.resume("r", journal=journal, pins=other, migrate=True)).status == "paused"
    with pytest.raises(JournalError, match="AX524"):
        run_sync(flow.resume("r", journal=journal, pins=pins))
    assert (
        run_sync(flow.resume("r", journal=journal, pins=other, answers={question: "n2"})).status
        == "done"
    )


def test_a_run_without_recorded_plugins_is_resumed():
    assert version_changes({}, {"axil-core": {"version": "1"}}) == []


def test_what_became_of_plugins_is_said():
    before = {
        "a": {"version": "1", "record": "x"},
        "b": {"version": "1"},
        "c": {"version": "1", "record": "x"},
        "d": {"version": "1"},
    }
    now = {"a": {"version": "1", "record": "y"}, "b": {"version": "2"}, "c": {"version": "1"}}
    assert version_changes(before, now) == [
        "a 1 has other contents under the same version",
        "b was 1, and is 2",
        "d 1 is not used any more, or not installed",
    ]


def test_a_distribution_that_went_into_another_is_no_change():
    before = {"axil-typed": {"version": "0.1.0"}, "axil-engine": {"version": "0.1.0"}}
    now = {"axil-core": {"version": "0.2.0"}, "axil-files": {"version": "0.2.0"}}
    assert version_changes(before, now) == [
        "axil-engine 0.1.0 is not used any more, or not installed"
    ]
