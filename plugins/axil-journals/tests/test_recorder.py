"""A recorder recalls what an earlier one of the same run recorded, and dates it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from axil import Activation, NodeFailed, Options, Question, RootGraph, run_sync
from axil.driver import (
    Answered,
    Asked,
    ClockRead,
    EffectBegun,
    Progress,
    Recorder,
    SleepBegun,
    StepDone,
)
from axil.plugin import JournalError
from axil_journals import Entry, ManagedRun, MemoryJournal, ReplayIndex
from axil_testing import VirtualClock
from axil_testing.specs import workflow

WHO = Activation((), "a", ())
FACTS = [
    ClockRead(WHO, 1, 2.5),
    SleepBegun(WHO, 2, 7.5, 1000.0),
    SleepBegun(WHO, 3, 7.5, None),
    EffectBegun(WHO, "pay"),
    StepDone(WHO, "pay", {"paid": (1, 2)}, "digest"),
    StepDone(WHO, "look", None, None),
]


def recorder(journal: MemoryJournal, before: float = 0.0) -> Recorder:
    """Return a recorder of the one run, which follows a run that has not begun."""
    flow = workflow(["a"], ["in a", "a out"])
    made: Recorder = journal.recorder("r", flow.plan, {}, {}, Options(journal=journal))
    made.follow(Progress(VirtualClock(50.0), flow.start().meter, {}, before))
    return made


def recorded(journal: MemoryJournal, *facts: Any) -> None:
    first = recorder(journal)
    first.begin({})
    for fact in facts:
        first.record(fact)
    first.close()


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{type(fact).__name__} {fact[1]}")
def test_what_is_recorded_is_recalled_as_it_was(fact):
    journal = MemoryJournal()
    assert recorder(journal).recall(type(fact), fact[0], fact[1]) is None
    recorded(journal, fact)
    assert recorder(journal).recall(type(fact), fact[0], fact[1]) == fact


def test_what_came_of_an_effect_is_known_where_its_body_asked_by_itself():
    journal = MemoryJournal()
    recorded(journal, EffectBegun(WHO), Asked(WHO, Question(text="?", id="a?1")))
    assert recorder(journal).recall(EffectBegun, WHO, "") is None


def test_a_recorder_knows_the_answers_of_its_run_and_takes_each_once():
    journal = MemoryJournal()
    asked = Asked(WHO, Question(text="Which?", id="other"), is_shown=False)
    recorded(journal, Answered("q", "yes"), asked)
    assert recorder(journal).begin({"other": 1}) == {"q": "yes", "other": 1}
    with pytest.raises(JournalError, match="AX521"):
        recorder(journal).begin({"q": "no"})


def test_an_answer_that_is_stored_before_a_run_begins_is_dated_by_the_run():
    flow, journal = workflow(["a"], ["in a", "a out"]), MemoryJournal()

    async def go() -> list[Entry]:
        options = {"journal": journal, "run_id": "r", "clock": VirtualClock(1000.0)}
        await flow.begun(ManagedRun, {}, None, options).submit()
        run = flow.begun(ManagedRun, None, None, {**options, "resuming": True})
        assert await run.take([Entry("answer", data={"id": "q", "value": "yes"})])
        await run.result()
        return list(journal.entries("r"))

    entries = run_sync(go())
    assert [entry.data["at"] for entry in entries if entry.kind == "answer"] == [0.0]
    assert ReplayIndex(entries).elapsed == 0.0


def test_the_end_of_a_failed_run_has_each_failure_with_the_line_that_it_came_through():
    graph = RootGraph("failing")

    def broken(inputs: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("no paper")

    graph.create_node(broken, name="one")
    graph.create_node(broken, name="two")
    for name in ("one", "two"):
        graph.edge_from_entry(name, {"n": ""})
        graph.edge_to_exit(name, {"n": ""})
    journal = MemoryJournal()
    with pytest.raises(NodeFailed):
        graph.build().invoke({"n": 1}, journal=journal, run_id="r")
    *_, end = journal.entries("r")
    first = end.data["failures"][0]
    assert first["node"] in ("one", "two")
    assert first["error"] == end.data["error"]
    assert first["place"].endswith('in broken: raise ValueError("no paper")')
    assert json.loads(json.dumps(end.data)) == end.data
