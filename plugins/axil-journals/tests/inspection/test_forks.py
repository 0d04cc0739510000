"""Laws of forks with other values or another graph, and of records that were migrated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from axil import Out, RootGraph, StateError, Workflow, run_sync
from axil.plugin import JournalError
from axil_journals import Edit, MemoryJournal, ReplayIndex, fork, snapshot
from axil_testing.specs import node, workflow
from axil_testing.versions import Brief, brief, paper, paused, typed

# ----------------------------------------------------------------------- other versions


def test_a_fork_under_a_newer_state_is_migrated_and_the_old_run_is_not():
    journal = MemoryJournal()
    question = paused(brief(), journal)
    run_sync(fork(journal, "r", "f", workflow=paper()))
    answers = {question: "n2"}
    forked = run_sync(paper().resume("f", journal=journal, answers=answers))
    assert forked.state.notes == ["- n1", "n2"]
    resumed = run_sync(brief().resume("r", journal=journal, answers=answers))
    assert resumed.state.notes == ["n1", "n2"]


def test_a_moment_of_a_migrated_run_has_the_newer_state():
    journal = MemoryJournal()
    question = paused(brief(), journal)
    answers = {question: "n2"}
    run_sync(paper().resume("r", journal=journal, answers=answers, migrate=True))
    assert run_sync(snapshot(paper(), journal.entries("r"))).state["notes"] == ["- n1", "n2"]


def test_a_moment_needs_no_plugin_in_the_version_that_the_run_is_pinned_to():
    journal, flow = MemoryJournal(), brief()
    question = paused(flow, journal)
    header = ReplayIndex(journal.entries("r")).header
    assert header is not None
    other = {**header.data["pins"], "axil-core": {"version": "99.0"}}
    answers = {question: "n2"}
    run_sync(flow.resume("r", journal=journal, pins=other, answers=answers, migrate=True))
    assert run_sync(snapshot(flow, journal.entries("r"))).result.status == "done"


# ----------------------------------------------------------------------- edits


def line() -> Workflow:
    def body(name: str) -> Any:
        def call(task: Any, ctx: Any) -> Out:
            n = task.tokens[0].payload["n"] + 1
            return Out({"n": n}, {name: n, "seen": dict(task.state).get("mark")})

        return call

    nodes = [node(name, body(name)) for name in "abc"]
    return workflow(nodes, ["in a", "a b", "b c", "c out"], attributes={"mark": "first"})


def forked(
    edit: Edit, at: int | None = None, flow: Workflow | None = None, inputs: Any = None
) -> Any:
    flow = flow or line()
    journal = MemoryJournal()
    run_sync(flow.run(inputs or {"n": 0}, journal=journal, run_id="r"))
    run_sync(fork(journal, "r", "f", at=at, workflow=flow, edit=edit))
    return run_sync(flow.resume("f", journal=journal))


def test_a_fork_with_another_input_begins_at_the_beginning_unless_it_says_where():
    attributes = forked(Edit(input={"n": 10})).attributes
    assert attributes == {"mark": "first", "seen": "first", "a": 11, "b": 12, "c": 13}
    assert forked(Edit(input={"n": 10}), at=2).attributes["b"] == 2


def test_a_fork_with_another_state_is_seen_by_all_that_lies_behind_the_step():
    result = forked(Edit(state={"mark": "second", "extra": 1}), at=3)
    assert [result.attributes[name] for name in ("seen", "extra", "b")] == ["second", 1, 2]
    assert forked(Edit(state={"mark": "second"}), at=1).attributes["seen"] == "second"


def test_a_fork_with_another_outcome_goes_on_from_it():
    assert forked(Edit(output={"n": 100}), at=2).attributes["c"] == 102


def test_the_edges_of_a_step_decide_again_what_they_carry_of_another_output():
    def say(inputs: Any, attributes: Any, ctx: Any) -> Any:
        attributes["said"] = inputs["message"]
        return {"message": f"{inputs['message']}: {ctx.activation.node}"}

    graph = RootGraph("deciding", attributes={"said": ""})
    for name in ("judge", "pay", "refuse"):
        graph.create_node(say, name=name, push_keys={"said": ""})
    graph.edge_from_entry("judge")
    graph.create_edge("judge", "pay", when=lambda text: "yes" in text)
    graph.create_edge("judge", "refuse", when=lambda text, state: state["said"] and "no" in text)
    for name in ("pay", "refuse"):
        graph.edge_to_exit(name)
    flow = graph.build()

    def left(given: Any, **more: Any) -> Any:
        edit = Edit(output=given, **more)
        return forked(edit, 2, flow, {"message": "yes"}).output

    no = {"message": "no"}
    assert left(no) == {"message": "no: pay"}
    assert left(no, is_routed=True) == {"message": "no: refuse"}
    with pytest.raises(JournalError, match=r"AX528.*judge cannot decide again.*lacks"):
        left({"other": "yes"}, is_routed=True)


def test_a_changed_field_that_grows_is_set_and_not_added_to():
    def body(task: Any, ctx: Any) -> Out:
        return Out({}, {"notes": [ctx.activation.node], "cost": 1})

    nodes = [node(name, body, ctx=True) for name in "abc"]
    flow = workflow(nodes, ["in a", "a b", "b c", "c out"], **typed(Brief))
    journal = MemoryJournal()
    run_sync(flow.run({"topic": "x"}, journal=journal, run_id="r"))
    edit = Edit(state={"notes": ["other"], "cost": "40"})
    run_sync(fork(journal, "r", "f", at=3, workflow=flow, edit=edit))
    state = run_sync(flow.resume("f", journal=journal)).state
    assert state == Brief(topic="x", notes=["other", "c"], cost=41)
    with pytest.raises(StateError, match="AX20"):
        run_sync(fork(journal, "r", "g", at=3, workflow=flow, edit=Edit(state={"nothing": 1})))
    with pytest.raises(StateError, match="AX20"):
        run_sync(fork(journal, "r", "g", at=3, workflow=flow, edit=Edit(state={"cost": "much"})))
    assert journal.entries("g") == []


def test_an_edit_that_fits_no_step_is_refused():
    output = Edit(output={})
    for edit, at in ((output, None), (Edit(state={"a": 1}), None), (output, 1), (output, 5)):
        with pytest.raises(JournalError, match="AX528"):
            forked(edit, at)
    journal = MemoryJournal()
    run_sync(line().run({"n": 0}, journal=journal, run_id="r"))
    with pytest.raises(JournalError, match=r"AX528.*no workflow"):
        run_sync(fork(journal, "r", "f", edit=Edit(input={})))


def test_another_version_of_the_code_runs_behind_the_fork():
    journal = MemoryJournal()
    run_sync(line().run({"n": 0}, journal=journal, run_id="r"))
    nodes = (*line().spec.nodes[:2], node("c", lambda task, ctx: Out({"n": -1})))
    other = Workflow(replace(line().spec, nodes=nodes))
    run_sync(fork(journal, "r", "f", at=3, workflow=other))
    assert run_sync(other.resume("f", journal=journal)).output == {"n": -1}
