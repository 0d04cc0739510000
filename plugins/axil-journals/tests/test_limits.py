"""The limits that a run was given are kept with it, and bound it wherever it continues."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from axil import Context, Limits, RootGraph, SpecError, run_sync
from axil.plugin import JournalError
from axil_journals import Entry, LocalEngine, MemoryJournal, ReplayIndex, fork, snapshot
from axil_testing import VirtualClock


def letters(limits: Limits | None = None) -> Any:
    """Return a graph that asks a person, then takes three steps of 10 seconds each."""
    graph = RootGraph("letters", limits=limits)

    async def ask(ctx: Context) -> dict[str, Any]:
        return {"text": await ctx.ask("What?")}

    async def write(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        await ctx.sleep(10)
        ctx.spend(input_tokens=100, cost=1.0)
        return {"text": f"{inputs['text']}!"}

    graph.create_node(ask, name="ask")
    graph.edge_from_entry("ask", {})
    before = "ask"
    for name in ("one", "two", "three"):
        graph.create_node(write, name=name)
        graph.create_edge(before, name, {"text": ""})
        before = name
    graph.edge_to_exit(before, {"text": ""})
    return graph.build()


def begun(journal: MemoryJournal, limits: Limits | None, graph: Any = None) -> dict[str, Any]:
    """Begin the run, which pauses, and return what answers it."""
    options: dict[str, Any] = {"journal": journal, "run_id": "r", "clock": VirtualClock()}
    paused = run_sync((graph or letters()).run({}, limits=limits, **options))
    assert paused.status == "paused"
    return {question.id: "Dear Ada" for question in paused.questions}


def resumed(journal: MemoryJournal, run_id: str = "r", graph: Any = None, **options: Any) -> Any:
    clock = VirtualClock()
    return run_sync((graph or letters()).resume(run_id, journal=journal, clock=clock, **options))


def kept(journal: MemoryJournal, run_id: str = "r") -> Limits | None:
    return ReplayIndex(journal.entries(run_id)).limits


BOUNDS = [
    ({"firings": 3}, "AX412"),
    ({"seconds": 15}, "AX415"),
    ({"tokens": 150}, "AX413"),
    ({"cost": 1.5}, "AX414"),
]


@pytest.mark.parametrize(("bound", "error"), BOUNDS, ids=lambda each: str(each))
def test_a_resumed_run_keeps_to_the_limits_that_it_was_given(bound, error):
    journal = MemoryJournal()
    answers = begun(journal, Limits(**bound))
    result = resumed(journal, answers=answers)
    assert (result.status, result.error.id) == ("limited", error)


def test_limits_are_recorded_as_plain_data_and_read_as_they_were():
    journal = MemoryJournal()
    lanes = MappingProxyType({"human": 2})
    given = Limits(firings=30, seconds=600.5, concurrency=4, lanes=lanes, tokens=10**17, cost=0.25)
    begun(journal, given)
    [header, *_] = journal.entries("r")
    assert json.loads(json.dumps(header.data)) == header.data
    assert kept(journal) == replace(given, lanes={"human": 2})


def test_new_limits_win_and_are_kept_in_turn():
    journal = MemoryJournal()
    answers = begun(journal, Limits(firings=2))
    assert resumed(journal, answers=answers, limits=Limits(firings=3)).status == "limited"
    assert kept(journal) == Limits(firings=3)
    again = resumed(journal)
    assert (again.status, again.usage.firings) == ("limited", 3)
    assert resumed(journal, limits=Limits()).status == "done"
    assert kept(journal) == Limits()


def test_limits_that_are_given_again_are_not_recorded_again():
    journal = MemoryJournal()
    answers = begun(journal, Limits(firings=9))
    assert resumed(journal, answers=answers, limits=Limits(firings=9)).status == "done"
    assert [e.data.get("now") for e in journal.entries("r") if e.kind == "resumed"] == [None]


def test_given_limits_replace_those_of_the_graph_and_all_of_them():
    graph, journal = letters(Limits(firings=2)), MemoryJournal()
    answers = begun(journal, Limits(), graph)
    assert resumed(journal, graph=graph, answers=answers).status == "done"


def test_a_run_that_was_given_none_has_those_of_its_graph():
    graph, journal = letters(Limits(firings=2)), MemoryJournal()
    answers = begun(journal, None, graph)
    [header, *_] = journal.entries("r")
    assert "limits" not in header.data  # as in records of earlier versions
    assert resumed(journal, graph=graph, answers=answers).status == "limited"


def test_a_migrated_run_keeps_its_limits():
    journal = MemoryJournal()
    answers = begun(journal, Limits(firings=3))
    graph = letters(Limits(firings=100))
    assert resumed(journal, graph=graph, answers=answers, migrate=True).status == "limited"
    assert kept(journal) == Limits(firings=3)


@pytest.mark.parametrize("has_graph", [False, True])
@pytest.mark.parametrize("given", ["at the beginning", "later"])
def test_a_fork_has_the_limits_of_its_run(has_graph, given):
    graph, journal = letters(), MemoryJournal()
    answers = begun(journal, Limits(firings=3) if given == "at the beginning" else None, graph)
    if given == "later":
        assert resumed(journal, graph=graph, limits=Limits(firings=3)).status == "paused"
    run_sync(fork(journal, "r", "f", workflow=graph if has_graph else None))
    result = resumed(journal, "f", graph, answers=answers)
    assert (result.status, result.error.id) == ("limited", "AX412")


def test_an_engine_holds_a_run_of_another_process_to_its_limits():
    graph, journal = letters(), MemoryJournal()
    answers = begun(journal, Limits(firings=3), graph)

    async def main() -> Any:
        async with LocalEngine(journal, [graph], clock=VirtualClock()) as engine:
            await engine.answer("r", answers)
            return await engine.result("r")

    result = asyncio.run(main())
    assert (result.status, result.error.id) == ("limited", "AX412")


def test_an_engine_resumes_a_limited_run_with_other_limits():
    graph, journal = letters(Limits(firings=2, seconds=900)), MemoryJournal()
    answers = begun(journal, None, graph)

    async def main() -> list[Any]:
        async with LocalEngine(journal, [graph], clock=VirtualClock()) as engine:
            await engine.answer("r", answers)
            ends = [await engine.result("r")]
            for limits in ({"firings": 3}, None, {"firings": None}):
                await engine.resume("r", limits)
                ends.append(await engine.result("r"))
            await engine.resume("r", {"firings": 1})  # it is done
            return ends

    assert [end.status for end in asyncio.run(main())] == ["limited"] * 3 + ["done"]
    assert kept(journal) == Limits(seconds=900)


def test_limits_of_a_run_that_another_process_holds_are_not_changed():
    graph, journal = letters(), MemoryJournal()
    begun(journal, Limits(firings=3), graph)

    async def main() -> None:
        async with LocalEngine(journal, [graph], loaded=0) as engine:
            writer = journal.open("r")
            writer.append(Entry("resumed"))
            with pytest.raises(JournalError) as refused:
                await engine.resume("r", {"firings": 9})
            assert refused.value.id == "AX506"
            writer.close()

    asyncio.run(main())
    assert kept(journal) == Limits(firings=3)


@pytest.mark.parametrize(
    ("given", "error"),
    [({"firing": 3}, "AX130"), ({"lanes": {}}, "AX130"), ({"cost": float("nan")}, "AX128")],
)
def test_limits_that_there_are_not_are_refused(given, error):
    with pytest.raises(SpecError) as refused:
        Limits().changed(given)
    assert refused.value.problems[0].id == error


def test_a_moment_shows_what_was_due_though_a_limit_was_reached():
    graph, journal = letters(), MemoryJournal()
    answers = begun(journal, Limits(firings=3), graph)
    assert resumed(journal, graph=graph, answers=answers).status == "limited"
    stood = run_sync(snapshot(graph, journal.entries("r")))
    assert [firing.activation for firing in stood.due] == ["three"]


def test_a_record_of_an_earlier_version_is_read_as_before():
    replay = ReplayIndex([Entry("run", data={"digest": "d", "inputs": {}, "values": {}})])
    assert replay.limits is None
