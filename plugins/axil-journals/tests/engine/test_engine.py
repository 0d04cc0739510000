"""Laws of LocalEngine: runs are stored, unloaded while they wait, reloaded and recovered."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import weakref
from collections.abc import Callable, Collection, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from axil import ConfigError, Out, Question, RootGraph, Workflow, hookimpl, run_sync
from axil.driver import LocalExecutor
from axil.plugin import EngineError, JournalError, hook_manager
from axil_journals import (
    Entry,
    LocalEngine,
    ManagedRun,
    MemoryJournal,
    ReplayIndex,
    ResumedStatus,
    RunInfo,
    answer_entry,
    resume_run,
)
from axil_journals.engine.loading import MAX_RECOVERIES, Gathered
from axil_testing import VirtualClock
from axil_testing.specs import node, with_parts, workflow, written

DAY = 86_400.0


def asking(times: int = 1) -> Workflow:
    """Return a workflow that asks so many questions and adds up the answers."""

    async def body(task: Any, ctx: Any) -> Out:
        said = [await ctx.ask(f"number {n}?", name=f"n{n}") for n in range(times)]
        return Out({"sum": sum(said)})

    return workflow([node("a", body, mode="async")], ["in a", "a out"])


def sleeping(seconds: float = DAY) -> Workflow:
    async def body(task: Any, ctx: Any) -> Out:
        await ctx.sleep(seconds)
        return Out({"slept": seconds})

    return workflow([node("a", body, mode="async")], ["in a", "a out"], id="sleeping")


class Lost(MemoryJournal):
    """A journal as another process reads it, whose runs were lost."""

    def __init__(self, facts: Collection[Entry] = (), lost: Collection[str] = ("r",)) -> None:
        super().__init__()
        self.lost = set(lost)
        if facts:
            writer = self.open("r")
            for entry in facts:
                writer.append(entry)
            writer.close()

    def take(self, most: int, now: float, *, lost: bool = False, **more: Any) -> Any:
        taken = super().take(99, now, **more)
        fit = [run_id for run_id in taken if (run_id in self.lost) == lost]
        for run_id in taken:
            if run_id not in fit[:most]:
                self.release(run_id)
        return fit[:most]


def alone() -> Entry:
    return Entry("resumed", data={"alone": True})


def within(seconds: float, doing: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async def go() -> Any:
        async with asyncio.timeout(seconds):
            return await doing()

    return run_sync(go())


# ---------------------------------------------------------------------------------- begun and ended


def test_the_result_of_a_run_can_be_asked_for_again_later():
    async def go() -> None:
        flow = workflow(["a"], ["in a", "a out"])
        async with LocalEngine() as engine:
            run_id = await engine.start(flow, {})
            assert (await engine.result(run_id)).output == {"by": "a"}
            assert (await engine.result(run_id)).output == {"by": "a"}
            standing = engine.get(run_id)
            assert (standing.info.status, standing.output) == ("done", {"by": "a"})
            assert [info.run_id for info in engine.list()] == [run_id]

    within(60, go)


def test_a_started_run_is_stored_before_it_runs_and_another_engine_runs_it():
    journal = MemoryJournal()
    flow = workflow(["a"], ["in a", "a out"])

    async def accepts() -> str:
        engine = LocalEngine(journal, [flow], loaded=0)
        async with engine:
            run_id = await engine.start(flow, {"n": 1})
            assert [entry.kind for entry in journal.entries(run_id)] == ["run"]
            assert engine.list()[0].status == "queued"
            return run_id

    async def goes_on(run_id: str) -> None:
        async with LocalEngine(journal, [flow]) as engine:
            assert (await engine.result(run_id)).status == "done"

    run_id = within(60, accepts)
    within(60, lambda: goes_on(run_id))


def test_a_run_that_is_started_twice_under_one_id_runs_once():
    ran: list[str] = []

    def body(task: Any, ctx: Any) -> Out:
        ran.append("a")
        return Out({})

    async def go() -> None:
        flow = workflow([node("a", body)], ["in a", "a out"])
        async with LocalEngine() as engine:
            for _ in range(2):
                assert await engine.start(flow, {"n": 1}, run_id="r") == "r"
            await engine.result("r")
            await engine.start(flow, {"n": 1}, run_id="r")
            with pytest.raises(JournalError, match="AX505"):
                await engine.start(flow, {"n": 2}, run_id="r")
            await engine.idle()

    within(60, go)
    assert ran == ["a"]


def test_a_failed_run_has_a_failed_result_now_and_later():
    def body(task: Any, ctx: Any) -> Out:
        raise LookupError("no")

    async def go() -> None:
        flow = workflow([node("a", body)], ["in a"])
        async with LocalEngine() as engine:
            run_id = await engine.start(flow)
            first, later = await engine.result(run_id), await engine.result(run_id)
            assert first.status == later.status == "failed"
            assert "no" in str(later.error)
            assert "no" in engine.get(run_id).error

    within(60, go)


# ------------------------------------------------------------------------------------------- people


def test_an_answer_resumes_the_run_and_is_given_once():
    async def go() -> None:
        flow = asking(2)
        async with LocalEngine() as engine:
            run_id = await engine.start(flow)
            await engine.idle()
            (question,) = engine.get(run_id).questions
            assert isinstance(question, Question)
            assert question.text == "number 0?"
            with pytest.raises(EngineError, match="AX541"):
                await engine.answer(run_id, {"a?no such": 1})
            await engine.answer(run_id, {question.id: 40})
            with pytest.raises(EngineError, match="AX541"):
                await engine.answer(run_id, {question.id: 41})
            await engine.idle()
            await engine.answer(run_id, {engine.get(run_id).questions[0].id: 2})
            assert (await engine.result(run_id)).output == {"sum": 42}

    within(60, go)


class First:
    early, per_token, rest = True, False, "cancel"

    def fires(self, live: int, dead: int, total: int, /) -> bool | None:
        return bool(live) or None


def test_a_run_that_is_done_takes_no_answer_to_a_question_that_it_did_not_wait_for():
    async def asks(task: Any, ctx: Any) -> Out:
        return Out({"n": await ctx.ask("how many?", name="n")})

    async def go() -> None:
        nodes = [node("a", asks, mode="async"), "b", node("c", join=First())]
        flow = workflow(nodes, ["in a", "in b", "a c", "b c", "c out"])
        async with LocalEngine() as engine:
            run_id = await engine.start(flow, {})
            assert (await engine.result(run_id)).status == "done"
            entries = list(engine.journal.entries(run_id))
            with pytest.raises(EngineError, match="AX541"):
                await engine.answer(run_id, {"a?n": 5})
            assert list(engine.journal.entries(run_id)) == entries

    within(60, go)


def test_an_answer_is_taken_while_other_branches_run_and_nothing_runs_twice():
    ran: list[str] = []

    async def go() -> None:
        goes_on = asyncio.Event()

        async def asks(task: Any, ctx: Any) -> Out:
            return Out({"n": await ctx.ask("how many?", name="n")})

        async def works(task: Any, ctx: Any) -> Out:
            ran.append("b")
            await goes_on.wait()
            return Out({"m": 1})

        nodes = [node("a", asks, mode="async"), node("b", works, mode="async")]
        flow = workflow(nodes, ["in a", "in b", "a out", "b out"])
        async with LocalEngine() as engine:
            run_id = await engine.start(flow)
            for _ in range(50):
                await asyncio.sleep(0)
            assert engine.loaded == 1
            await engine.answer(run_id, {"a?n": 5})
            assert ReplayIndex(engine.journal.entries(run_id)).answers == {"a?n": 5}
            goes_on.set()
            assert (await engine.result(run_id)).output == {"n": 5, "m": 1}

    within(60, go)
    assert ran == ["b"]


# ------------------------------------------------------------------------------------------- timers


def test_a_sleeping_run_is_unloaded_and_reloaded_when_its_sleep_ends():
    async def go() -> None:
        clock = VirtualClock()
        async with LocalEngine(clock=clock, patience_seconds=5) as engine:
            run_id = await engine.start(sleeping())
            result = await engine.result(run_id)
            assert (result.output, clock.now()) == ({"slept": DAY}, DAY)
            kinds = [entry.kind for entry in engine.journal.entries(run_id)]
            assert kinds.count("ended") == 2  # it was put away once

    within(60, go)


def test_a_sleeping_run_stays_loaded_while_another_of_its_bodies_works():
    async def go() -> None:
        clock = VirtualClock()
        goes_on = asyncio.Event()

        async def sleeps(task: Any, ctx: Any) -> Out:
            await ctx.sleep(60)
            goes_on.set()
            return Out({"slept": True})

        async def works(task: Any, ctx: Any) -> Out:
            await goes_on.wait()
            return Out({"worked": True})

        nodes = [node("a", sleeps, mode="async"), node("b", works, mode="async")]
        flow = workflow(nodes, ["in a", "in b", "a out", "b out"])
        async with LocalEngine(clock=clock, patience_seconds=5) as engine:
            run_id = await engine.start(flow)
            assert (await engine.result(run_id)).output == {"slept": True, "worked": True}
            assert [entry.kind for entry in engine.journal.entries(run_id)].count("ended") == 1

    within(60, go)


def test_several_sleeps_of_one_run_end_in_their_order():
    woken: list[str] = []

    async def go() -> None:
        clock = VirtualClock()

        def napping(name: str, seconds: float) -> Any:
            async def body(task: Any, ctx: Any) -> Out:
                await ctx.sleep(seconds)
                woken.append(name)
                return Out({name: clock.now() >= seconds})

            return node(name, body, mode="async")

        nodes = [napping("long", 7200), napping("short", 2), napping("middle", 3600)]
        edges = [edge.format(each.id) for each in nodes for edge in ("in {}", "{} out")]
        flow = workflow(nodes, edges)
        async with LocalEngine(clock=clock, patience_seconds=5) as engine:
            result = await engine.result(await engine.start(flow))
            assert result.output == {"long": True, "short": True, "middle": True}

    within(60, go)
    assert woken == ["short", "middle", "long"]


def test_timers_are_in_the_journal_and_another_engine_reloads_the_run():
    journal, flow, clock = MemoryJournal(), sleeping(), VirtualClock()

    async def begins() -> str:
        async with LocalEngine(journal, [flow], clock=clock) as engine:
            run_id = await engine.start(flow)
            await clock.sleep(10)
            assert engine.get(run_id).due == DAY
            assert engine.get(run_id).questions == ()
            return run_id

    async def wakes(run_id: str) -> None:
        async with LocalEngine(journal, [flow], clock=clock) as engine:
            assert (await engine.result(run_id)).status == "done"
            assert clock.now() >= DAY

    run_id = within(60, begins)
    within(60, lambda: wakes(run_id))


@pytest.mark.parametrize("years", [10, -10])
def test_a_sleep_ends_once_and_in_time_when_the_wall_clock_is_set(years):
    woken: list[float] = []

    class Walled(VirtualClock):
        offset = 1e9

        def wall(self) -> float:
            return self.now() + self.offset

    async def go() -> None:
        clock = Walled()

        async def body(task: Any, ctx: Any) -> Out:
            await ctx.sleep(DAY)
            woken.append(clock.now())
            return Out({})

        async with LocalEngine(clock=clock) as engine:
            flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
            run_id = await engine.start(flow)
            await engine.idle()
            clock.offset += years * 365 * DAY
            await engine.resume(run_id)  # what is left of a sleep is never more than was asked for
            assert (await engine.result(run_id)).status == "done"
            assert clock.now() < 2 * DAY
            assert len(woken) == 1

    within(60, go)


def test_a_run_is_resumed_at_the_deadline_of_its_question():
    asked = {"id": "a?n", "node": "a", "text": "?", "kind": "text", "options": [], "due": 50.0}
    ended = {"status": "paused", "questions": [asked]}
    facts = [Entry("run", data=_header(asking())), Entry("ended", data=ended)]
    journal = written(facts)

    async def go() -> None:
        clock = VirtualClock()
        async with LocalEngine(journal, [asking()], clock=clock) as engine:
            assert engine.get("r").due == 50.0
            await clock.sleep(49)
            assert not any(entry.kind == "resumed" for entry in journal.entries("r"))
            await clock.sleep(2)
            await engine.idle()
            assert any(entry.kind == "resumed" for entry in journal.entries("r"))

    within(60, go)


def _header(flow: Workflow) -> dict[str, Any]:
    return {"graph": "g", "digest": flow.spec.digest(), "inputs": {}, "values": {}}


# --------------------------------------------------------------------------------------------- many


def test_a_thousand_runs_are_loaded_a_few_at_a_time_and_answered_in_any_order():
    """A waiting run has no object in memory."""
    chance = random.Random(7)
    seen: weakref.WeakSet[ManagedRun] = weakref.WeakSet()
    most = 0

    async def body(task: Any, ctx: Any) -> Out:
        nonlocal most
        most = max(most, engine.loaded)
        n = task.tokens[0].payload["n"]
        return Out({"sum": n + await ctx.ask("how many?", name="n")})

    async def end(task: Any, ctx: Any) -> Out:
        await ctx.sleep(DAY)
        return Out({"sum": task.tokens[0].payload["sum"]})

    nodes = [node("a", body, mode="async"), node("b", end, mode="async")]
    flow = workflow(nodes, ["in a", "a b", "b out"])

    class Watching(LocalEngine):
        async def _work(self, workflow: Workflow, run: ManagedRun, *others: Any) -> None:
            seen.add(run)
            await super()._work(workflow, run, *others)

    engine = Watching(clock=VirtualClock(), loaded=20, patience_seconds=1)

    async def go() -> None:
        async with engine:
            ids = [await engine.start(flow, {"n": n}, run_id=f"r{n}") for n in range(1000)]
            await engine.idle()
            gc.collect()
            assert len(seen) == 0
            assert {engine.get(run_id).info.status for run_id in ids[::100]} == {"paused"}
            results = [asyncio.ensure_future(engine.result(run_id)) for run_id in ids]
            await asyncio.sleep(0)
            chance.shuffle(ids)
            for run_id in ids:
                await engine.answer(run_id, {"a?n": int(run_id[1:])})
            ended = await asyncio.gather(*results)
            assert [result.output for result in ended] == [{"sum": 2 * n} for n in range(1000)]
            del ended, results
            gc.collect()
            assert len(seen) == 0

    within(600, go)
    assert 1 < most <= 20


# -------------------------------------------------------------------------- cancelled, left, closed


def test_runs_are_cancelled_whatever_their_status():
    async def go() -> None:
        async def forever(task: Any, ctx: Any) -> Out:
            await asyncio.Event().wait()
            return Out({})

        at_work, asks = workflow([node("a", forever, mode="async")], ["in a"], id="w"), asking()
        async with LocalEngine(loaded=1) as engine:
            paused = await engine.start(asks)
            await engine.idle()
            working = await engine.start(at_work)
            await until(lambda: engine.loaded)
            queued = await engine.start(asks)
            ids = (paused, working, queued)
            statuses = [engine.get(run_id).info.status for run_id in ids]
            assert statuses == ["paused", "running", "queued"]
            waits = asyncio.ensure_future(engine.result(paused))
            await asyncio.sleep(0)
            for run_id in (paused, queued, working):
                await engine.cancel(run_id, "enough")
                assert engine.get(run_id).info.status == "cancelled"
                assert (await engine.result(run_id)).status == "cancelled"
            assert (await waits).status == "cancelled"
            done = await engine.start(workflow(["a"], ["in a", "a out"], id="done"))
            await engine.result(done)
            await engine.cancel(done)
            assert engine.get(done).info.status == "done"
            await engine.resume(paused)
            await engine.idle()
            assert engine.get(paused).info.status == "paused"

    within(60, go)


def test_closing_interrupts_loaded_runs_and_the_next_engine_recovers_them():
    journal, ran = MemoryJournal(), list[str]()

    async def go() -> None:
        hold, begun = asyncio.Event(), asyncio.Event()

        async def slow(task: Any, ctx: Any) -> Out:
            ran.append("b")
            begun.set()
            await hold.wait()
            return Out({"done": True})

        def first(task: Any, ctx: Any) -> Out:
            ran.append("a")
            return Out({})

        flow = workflow([node("a", first), node("b", slow, mode="async")], ["in a", "a b", "b out"])
        async with LocalEngine(journal) as engine:
            run_id = await engine.start(flow)
            await begun.wait()
            waits = asyncio.ensure_future(engine.result(run_id))
            await asyncio.sleep(0)
        with pytest.raises(EngineError, match="AX540"):
            await waits
        with pytest.raises(EngineError, match="AX540"):
            await engine.start(flow)
        assert journal.runs()[0].status == "open"
        hold.set()
        async with LocalEngine(journal, [flow]) as engine:
            assert (await engine.result(run_id)).output == {"done": True}

    within(60, go)
    assert ran == ["a", "b", "b"]


def test_closing_with_grace_lets_loaded_runs_end():
    async def go() -> None:
        async def slow(task: Any, ctx: Any) -> Out:
            for _ in range(20):
                await asyncio.sleep(0)
            return Out({"done": True})

        flow = workflow([node("a", slow, mode="async")], ["in a", "a out"])
        engine = LocalEngine()
        async with engine:
            run_id = await engine.start(flow)
            await until(lambda: engine.loaded)
            await engine.close(grace_seconds=30)
        assert engine.get(run_id).info.status == "done"

    within(60, go)


def test_a_run_of_an_unknown_workflow_is_recovered_only_if_find_returns_it(caplog):
    flow = asking()
    journal = written([Entry("run", data={**_header(flow), "origin": {"file": "letters.yaml"}})])

    async def go() -> None:
        async with LocalEngine(journal) as engine:
            await engine.idle()
            assert not caplog.text  # it may be another engine's
            with pytest.raises(EngineError, match="AX542"):
                await engine.resume("r")
        asked: list[Any] = []

        def find(header: Any) -> Workflow:
            asked.append(header["origin"])
            return flow

        async with LocalEngine(journal, find=find) as engine:
            await engine.idle()
            assert engine.get("r").info.status == "paused"
        assert asked == [{"file": "letters.yaml"}]

    within(60, go)


def test_the_runs_of_a_graph_that_is_nowhere_to_be_found_are_looked_at_once():
    asked: list[str] = []

    def find(header: Any) -> Workflow:
        asked.append(header["digest"])
        raise EngineError("no such workflow.", id="AX542")

    async def go() -> None:
        journal, other, own = MemoryJournal(), asking(), workflow(["a"], ["in a", "a out"])
        async with LocalEngine(journal, loaded=0) as submits:
            for name in ("one", "two", "three"):
                await submits.start(other, {}, run_id=name)
            await submits.start(own, {}, run_id="four")
        async with LocalEngine(journal, [own], find=find, loaded=1) as engine:
            assert (await engine.result("four")).status == "done"
            assert asked == [other.plan.graph.digest]
            await engine.start(other, {}, run_id="five")  # now it is known
            await until(lambda: engine.get("two").questions)

    within(60, go)


def test_runs_of_a_graph_that_was_unknown_are_looked_at_again_after_a_time(monkeypatch):
    monkeypatch.setattr("axil_journals.engine.local._UNKNOWN_SECONDS", 0.05)
    asked: list[str] = []
    flow = workflow(["a"], ["in a", "a out"])

    def find(header: Any) -> Workflow:
        asked.append(header["digest"])
        if len(asked) < 3:
            raise EngineError("no such workflow.", id="AX542")
        return flow

    async def go() -> None:
        journal = MemoryJournal()
        async with LocalEngine(journal, loaded=0) as submits:
            await submits.start(flow, {}, run_id="one")
        async with LocalEngine(journal, find=find, recheck_seconds=0.01) as engine:
            assert (await engine.result("one")).status == "done"
        assert len(asked) == 3

    within(60, go)


def test_a_run_that_was_recovered_too_often_without_progress_is_not_recovered(caplog):
    flow = workflow(["a"], ["in a", "a out"])
    facts = [Entry("run", data=_header(flow)), *[alone()] * MAX_RECOVERIES]

    async def go() -> None:
        journal = Lost(facts)
        async with LocalEngine(journal, [flow]) as engine:
            await engine.idle()
            assert "AX543" in caplog.text
            status = engine.get("r")
            assert (status.info.status, status.info.due) == ("parked", None)
            assert "AX543" in status.error
            assert [info.status for info in engine.list()] == ["parked"]
            assert (await engine.result("r")).status == "parked"
            journal.lost.clear()  # it has ended
            await engine.resume("r")
            assert (await engine.result("r")).status == "done"

    within(60, go)


def test_hooks_hear_of_a_run_that_is_parked_and_may_raise(caplog):
    heard: list[str] = []

    class Hearing:
        @hookimpl
        def run_started(self, run_id: str) -> None:
            heard.append(run_id)

        @hookimpl
        def run_finished(self, run_id: str, result: Any) -> None:
            heard.append(f"{run_id} {result.status}")
            raise ValueError("no paper")

    plain = workflow(["a"], ["in a", "a out"])
    flow = Workflow(plain.spec, replace(plain.setting, hooks=hook_manager([Hearing()])))
    facts = [Entry("run", data=_header(flow)), *[alone()] * MAX_RECOVERIES]

    async def go() -> None:
        async with LocalEngine(Lost(facts), [flow]) as engine:
            assert (await engine.result("r")).status == "parked"
        assert heard == ["r", "r parked"]
        assert "no paper" in caplog.text

    within(60, go)


def test_a_run_whose_pause_is_recorded_is_paused_before_it_is_unloaded():
    seen: list[tuple[str, ...]] = []

    class Looking:
        @hookimpl
        def run_finished(self, run_id: str) -> None:
            [listed] = engine.list()
            found = engine.get(run_id)
            seen.append((listed.status, found.info.status, *(each.id for each in found.questions)))

    plain = asking()
    flow = Workflow(plain.spec, replace(plain.setting, hooks=hook_manager([Looking()])))
    engine = LocalEngine()

    async def go() -> None:
        async with engine:
            run_id = await engine.start(flow, {})
            await engine.idle()
            [(*statuses, question)] = seen
            assert statuses == ["paused", "paused"]
            await engine.answer(run_id, {question: 2})
            assert (await engine.result(run_id)).output == {"sum": 2}

    within(60, go)


def test_a_parked_run_can_be_cancelled():
    flow = workflow(["a"], ["in a", "a out"])
    facts = [Entry("run", data=_header(flow)), *[alone()] * MAX_RECOVERIES]

    async def go() -> None:
        async with LocalEngine(Lost(facts), [flow]) as engine:
            await engine.idle()
            await engine.cancel("r")
            assert engine.get("r").info.status == "cancelled"

    within(60, go)


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([Entry("resumed")] * 2 * MAX_RECOVERIES, id="beside others"),
        pytest.param([*[alone()] * MAX_RECOVERIES, Entry("resumed")], id="ended in order"),
        pytest.param([alone()] * (MAX_RECOVERIES - 1), id="not often enough"),
    ],
)
def test_only_deaths_of_a_process_with_this_run_alone_are_counted(entries: list[Entry]):
    flow = workflow(["a"], ["in a", "a out"])

    async def go() -> None:
        journal = Lost([Entry("run", data=_header(flow)), *entries])
        async with LocalEngine(journal, [flow]) as engine:
            assert (await engine.result("r")).status == "done"
        after = journal.entries("r")[1 + len(entries) :]
        assert [entry for entry in after if entry.kind == "resumed"] == [alone()]

    within(60, go)


def test_lost_runs_begin_one_at_a_time_and_nothing_begins_beside_them(monkeypatch):
    monkeypatch.setattr("axil_journals.engine.local.TRIAL_SECONDS", 3600.0)
    going, seen = list[str](), list[list[str]]()
    doors = {name: asyncio.Event() for name in ("fresh", "one", "two")}

    async def body(task: Any, ctx: Any) -> Out:
        name = task.tokens[0].payload["name"]
        going.append(name)
        seen.append(list(going))
        await doors[name].wait()
        going.remove(name)
        return Out({"name": name})

    flow = workflow([node("a", body, mode="async")], ["in a", "a out"])

    async def go() -> None:
        journal = Lost(lost=("one", "two"))
        async with LocalEngine(journal, loaded=0) as submits:
            for name in doors:
                await submits.start(flow, {"name": name}, run_id=name)
        async with LocalEngine(journal, [flow]) as engine:
            for name in ("one", "two", "fresh"):
                while name not in going:  # noqa: ASYNC110  # the engine loads it
                    await asyncio.sleep(0)
                doors[name].set()
            for name in doors:
                assert (await engine.result(name)).status == "done"
        assert seen == [["one"], ["two"], ["fresh"]]

    within(60, go)


def test_twice_as_many_lost_runs_begin_each_time_that_nothing_happened(monkeypatch):
    monkeypatch.setattr("axil_journals.engine.local.TRIAL_SECONDS", 0.0)
    names = [f"r{number}" for number in range(12)]
    taken, door = list[int](), asyncio.Event()

    class Counting(Lost):
        def take(self, most: int, now: float, *, lost: bool = False, **more: Any) -> Any:
            found = super().take(most, now, lost=lost, **more)
            if lost:
                taken.append(len(found))
            return found

    async def body(task: Any, ctx: Any) -> Out:
        await door.wait()
        return Out({})

    flow = workflow([node("a", body, mode="async")], ["in a", "a out"])

    async def go() -> None:
        journal = Counting(lost=names)
        async with LocalEngine(journal, loaded=0) as submits:
            for name in names:
                await submits.start(flow, {}, run_id=name)
        async with LocalEngine(journal, [flow], loaded=9) as engine:
            while engine.loaded < 9:  # noqa: ASYNC110  # the engine loads them
                await asyncio.sleep(0)
            assert taken == [1, 2, 4, 2]  # no more than there is room for
            door.set()
            for name in names:
                assert (await engine.result(name)).status == "done"
        assert sum(taken) == len(names)

    within(60, go)


@pytest.mark.parametrize(
    ("resumptions", "are_together"), [(0, True), (2, True), (3, False)], ids=str
)
def test_runs_that_were_lost_twice_need_not_wait_for_each_others_progress(
    monkeypatch: pytest.MonkeyPatch, resumptions: int, are_together: bool
):
    monkeypatch.setattr("axil_journals.engine.local.TRIAL_SECONDS", 0.0)
    going, most, door = list[str](), list[int](), asyncio.Event()

    async def body(task: Any, ctx: Any) -> Out:
        going.append(task.tokens[0].payload["name"])
        most.append(len(going))
        if are_together:
            if len(going) == 3:
                door.set()
            await door.wait()
        else:
            await asyncio.sleep(0.01)
        going.pop()
        return Out({})

    flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
    names = ("one", "two", "three")

    async def go() -> None:
        journal = Lost(lost=names)
        async with LocalEngine(journal, loaded=0) as submits:
            for name in names:
                await submits.start(flow, {"name": name}, run_id=name)
        for name in names:
            writer = journal.open(name)
            for _ in range(resumptions):  # each process died before the first step was done
                writer.append(Entry("resumed"))
            writer.close()
        async with LocalEngine(journal, [flow]) as engine:
            for name in names:
                assert (await engine.result(name)).status == "done"
        assert max(most) == (3 if are_together else 1)
        alone = [entry.data for entry in journal.entries("one") if entry.kind == "resumed"][-1]
        assert bool(alone.get("alone")) is not are_together

    within(60, go)


def test_a_lost_run_that_has_to_be_alone_holds_up_no_lost_run_and_no_other_engine():
    going, beside = list[str](), dict[str, list[str]]()
    doors = {name: asyncio.Event() for name in ("long", "suspect", "lost", "fresh", "later")}

    async def body(task: Any, ctx: Any) -> Out:
        name = task.tokens[0].payload["name"]
        beside[name] = list(going)
        going.append(name)
        await doors[name].wait()
        going.remove(name)
        return Out({})

    flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
    journal = Lost(lost=("long", "suspect", "lost"))

    async def until(name: str) -> None:
        while name not in going:  # noqa: ASYNC110  # an engine loads it
            await asyncio.sleep(0)

    async def go() -> None:
        async with LocalEngine(journal, loaded=0) as submits:
            for name in list(doors)[:4]:
                await submits.start(flow, {"name": name}, run_id=name)
            writer = journal.open("suspect")
            for _ in range(3):  # each process died before the first step was done
                writer.append(Entry("resumed"))
            writer.close()
            async with LocalEngine(journal, [flow], recheck_seconds=0.01) as engine:
                for name in ("long", "lost"):
                    await until(name)
                while journal.take(9, 1.0, lost=True):  # until it is held, and not only left
                    journal.release("suspect")
                    await asyncio.sleep(0.01)
                async with LocalEngine(journal, [flow]) as other:
                    doors["fresh"].set()
                    assert (await other.result("fresh")).status == "done"
                await submits.start(flow, {"name": "later"}, run_id="later")
                doors["lost"].set()
                assert (await engine.result("lost")).status == "done"
                assert going == ["long"]
                doors["long"].set()
                await until("suspect")
                doors["suspect"].set()
                doors["later"].set()
                assert (await engine.result("later")).status == "done"
            assert (beside["lost"], beside["suspect"]) == (["long"], [])

    within(60, go)


def test_a_lost_run_that_has_progressed_lets_others_begin():
    going: list[str] = []
    door = asyncio.Event()

    async def first(task: Any, ctx: Any) -> Out:
        return Out(task.tokens[0].payload)

    async def second(task: Any, ctx: Any) -> Out:
        going.append(task.tokens[0].payload["name"])
        await door.wait()
        return Out(task.tokens[0].payload)

    nodes = [node("a", first, mode="async"), node("b", second, mode="async")]
    flow = workflow(nodes, ["in a", "a b", "b out"])

    async def go() -> None:
        journal = Lost(lost=("one", "two"))
        async with LocalEngine(journal, loaded=0) as submits:
            for name in ("one", "two", "fresh"):
                await submits.start(flow, {"name": name}, run_id=name)
        async with LocalEngine(journal, [flow]) as engine:
            while len(going) < 3:  # noqa: ASYNC110  # the engine loads them
                await asyncio.sleep(0)
            assert going[0] == "one"
            door.set()
            for name in ("one", "two", "fresh"):
                assert (await engine.result(name)).status == "done"

    within(60, go)


# ------------------------------------------------------------------------------------ beside others


def test_a_pending_result_is_resolved_when_another_process_ends_the_run():
    async def go() -> None:
        flow, journal = asking(), MemoryJournal()
        async with LocalEngine(journal, [flow]) as waits, LocalEngine(journal, [flow]) as works:
            run_id = await waits.start(flow)
            await waits.idle()
            result = asyncio.ensure_future(waits.result(run_id))
            await asyncio.sleep(0)
            await works.answer(run_id, {"a?n0": 7})
            assert (await works.result(run_id)).output == {"sum": 7}
            assert (await result).output == {"sum": 7}

    within(60, go)


def test_a_run_that_another_engine_ends_while_it_is_loaded_has_the_result_of_the_other():
    class Late(MemoryJournal):
        ended: Entry | None = None

        def open(self, run_id: str) -> Any:
            book = super().open(run_id)
            if self.ended is not None:  # another one ends the run first
                other, ended, self.ended = super().open(run_id), self.ended, None
                other.append(ended)
                other.close()
            return book

    async def go() -> None:
        journal, flow = Late(), asking()
        async with LocalEngine(journal, [flow]) as engine:
            run_id = await engine.start(flow)
            await engine.idle()
            results = [asyncio.ensure_future(engine.result(run_id)) for _ in range(2)]
            await asyncio.sleep(0)
            journal.ended = Entry("ended", data={"status": "cancelled", "error": "by the other"})
            results[0].cancel()
            await engine.resume(run_id)
            result = await results[1]
            assert (result.status, str(result.error)) == ("cancelled", "AX400 by the other")
            assert (await engine.result(run_id)).status == "cancelled"

    within(60, go)


async def until(holds: Callable[[], object]) -> None:
    while not holds():  # noqa: ASYNC110  # what is waited for has no event
        await asyncio.sleep(0)


def busy(goes_on: asyncio.Event, gone: list[str]) -> Workflow:
    """Return a workflow of a branch that asks, and one that works until it may end."""

    async def asks(task: Any, ctx: Any) -> Out:
        return Out({"n": await ctx.ask("how many?", name="n")})

    async def works(task: Any, ctx: Any) -> Out:
        gone.append("begun")
        try:
            await goes_on.wait()
        except asyncio.CancelledError:
            gone.append("cancelled")
            raise
        return Out({})

    nodes = [node("a", asks, mode="async"), node("b", works, mode="async")]
    return workflow(nodes, ["in a", "in b", "a out", "b out"], id="busy")


def test_an_answer_reaches_a_run_that_another_engine_holds():
    async def go() -> None:
        goes_on, gone = asyncio.Event(), list[str]()
        flow, journal = busy(goes_on, gone), MemoryJournal()
        async with LocalEngine(journal, [flow]) as works, LocalEngine(journal, loaded=0) as asks:
            run_id = await works.start(flow)
            await until(lambda: gone)
            await until(lambda: ReplayIndex(journal.entries(run_id)).asked)
            await asks.answer(run_id, {"a?n": 5})
            with pytest.raises(EngineError, match="AX541"):
                await asks.answer(run_id, {"a?n": 6})
            await until(lambda: ReplayIndex(journal.entries(run_id)).answers)
            goes_on.set()
            assert (await works.result(run_id)).output == {"n": 5}
        assert gone == ["begun"]

    within(60, go)


class FailingOnce(MemoryJournal):
    """A journal one method of which fails once."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.method, self.has_failed = method, False

    def armed(self) -> None:
        working = getattr(self, self.method)

        def fails(*given: Any) -> Any:
            if self.has_failed:
                return working(*given)
            self.has_failed = True
            raise JournalError("it cannot be reached.", id="AX512")

        setattr(self, self.method, fails)


@pytest.mark.parametrize("method", ["discard", "mail", "release"])
def test_a_run_that_could_not_be_loaded_is_released_though_the_journal_fails(method):
    async def go() -> None:
        flow, journal = asking(), FailingOnce(method)
        async with LocalEngine(journal, [flow]) as engine:
            run_id = await engine.start(flow)
            await engine.idle()
        journal.post(run_id, answer_entry("a?n0", 5))
        journal.armed()

        def find(header: Any) -> Workflow:
            if method == "release":
                raise LookupError("not here")
            return flow

        async with LocalEngine(journal, find=find, recheck_seconds=0.01):
            await until(lambda: journal.has_failed)
            async with LocalEngine(journal, [flow]) as another:
                assert (await another.result(run_id)).output == {"sum": 5}

    within(60, go)


def test_an_engine_is_closed_though_a_run_cannot_be_released():
    class Failing(MemoryJournal):
        def release(self, run_id: str) -> None:
            raise JournalError("it cannot be reached.", id="AX512")

    def find(header: Any) -> Workflow:
        raise EngineError("not here", id="AX542")

    async def go() -> None:
        journal = Failing()
        async with LocalEngine(journal, loaded=0) as engine:
            run_id = await engine.start(asking())
        engine = LocalEngine(journal, find=find)
        async with engine:
            waits = asyncio.ensure_future(engine.result(run_id))
            await until(lambda: journal.stored[run_id].is_held)
        with pytest.raises((EngineError, JournalError), match=r"AX540|AX512"):
            await waits

    within(60, go)


class Gated(Lost):
    """A journal that blocks where one run is opened, as long as the gate is shut."""

    blocking = True

    def __init__(self, slow: str) -> None:
        super().__init__(lost=("long", slow))
        self.slow, self.is_opening, self.gate = slow, threading.Event(), threading.Event()
        self.gate.set()

    def open(self, run_id: str) -> Any:
        if run_id == self.slow and not self.gate.is_set():
            self.is_opening.set()
            self.gate.wait()
        return super().open(run_id)


def test_a_run_that_is_being_loaded_when_its_engine_is_closed_is_released():
    async def go() -> None:
        journal, gone = Gated("suspect"), list[str]()
        flow = busy(asyncio.Event(), gone)
        async with LocalEngine(journal, loaded=0) as submits:
            for name in ("long", "suspect"):
                await submits.start(flow, run_id=name)
        writer = journal.open("suspect")
        for _ in range(3):  # it has to be alone
            writer.append(Entry("resumed"))
        writer.close()
        async with LocalEngine(journal, [flow], recheck_seconds=0.01) as engine:
            await until(lambda: gone)
            await until(lambda: "suspect" in engine._alone)
            journal.gate.clear()
            ends = Entry("ended", data={"status": "cancelled", "error": "enough"})
            journal.post("suspect", ends)
            await until(journal.is_opening.is_set)
            closing = asyncio.ensure_future(engine.close())
            try:
                await until(lambda: gone[-1] == "cancelled")
            finally:
                journal.gate.set()
            await closing
        assert not journal.stored["suspect"].is_held

    within(60, go)


def test_a_run_that_another_engine_holds_is_cancelled_from_outside():
    async def go() -> None:
        gone = list[str]()
        flow, journal = busy(asyncio.Event(), gone), MemoryJournal()
        async with LocalEngine(journal, [flow]) as works, LocalEngine(journal, loaded=0) as ends:
            run_id = await works.start(flow)
            await until(lambda: gone)
            waits = asyncio.ensure_future(works.result(run_id))
            await ends.cancel(run_id, "enough")
            assert gone == ["begun", "cancelled"]
            assert (await waits).status == "cancelled"
            assert ends.get(run_id).info.status == "cancelled"
            await works.resume(run_id)  # its mail was discarded: it is not cancelled again
            await until(lambda: len(gone) == 3)

    within(60, go)


def test_mail_is_read_when_a_run_is_loaded():
    async def go() -> None:
        journal, flow = MemoryJournal(), asking()
        async with LocalEngine(journal, [flow]) as engine:
            ids = [await engine.start(flow) for _ in range(2)]
            await engine.idle()
            results = [asyncio.ensure_future(engine.result(run_id)) for run_id in ids]
            held = [journal.open(run_id) for run_id in ids]
            for writer in held:
                writer.append(Entry("clock", (), "a", (), {"call": 9, "value": 0.0}))
            await engine.answer(ids[0], {"a?n0": 7})
            cancelling = asyncio.ensure_future(engine.cancel(ids[1], "enough"))
            await until(lambda: journal.mail(ids[1:]))
            for writer in held:
                writer.close()
            await cancelling
            assert (await results[0]).output == {"sum": 7}
            assert (await results[1]).status == "cancelled"
            assert not journal.mail(ids)

    within(60, go)


class _Far(MemoryJournal):
    """A journal whose reads wait for something outside the process."""

    blocking = True


def test_reads_that_are_asked_for_while_one_is_under_way_are_one_read():
    reads: list[list[str]] = []
    goes_on = threading.Event()

    def read(run_ids: Collection[str]) -> list[RunInfo]:
        reads.append(list(run_ids))
        assert goes_on.wait(60)
        return [RunInfo(run_id=run_id) for run_id in run_ids if run_id != "none"]

    async def go() -> None:
        gathered = Gathered(_Far(), read)
        first = asyncio.create_task(gathered.of("a"))
        await until(lambda: reads)
        names = [*(str(number) for number in range(20)), "none", "5"]
        rest = [asyncio.create_task(gathered.of(name)) for name in names]
        await asyncio.sleep(0)
        rest[3].cancel()
        goes_on.set()
        assert [info.run_id for info in await first] == ["a"]
        found = await asyncio.gather(*rest, return_exceptions=True)
        assert isinstance(found[3], asyncio.CancelledError)
        assert found[-2:] == [[], [RunInfo(run_id="5")]]

    within(60, go)
    assert reads == [["a"], [*(str(number) for number in range(20)), "none"]]


def test_a_read_whose_callers_are_cancelled_is_waited_for():
    reads: list[list[str]] = []
    goes_on = threading.Event()

    def read(run_ids: Collection[str]) -> list[RunInfo]:
        reads.append(list(run_ids))
        assert goes_on.wait(60)
        return []

    async def go() -> None:
        gathered = Gathered(_Far(), read)
        caller = asyncio.create_task(gathered.of("a"))
        await until(lambda: reads)
        caller.cancel()
        settling = asyncio.create_task(gathered.settle())
        await asyncio.wait({caller})
        assert not settling.done()
        goes_on.set()
        await settling
        assert asyncio.all_tasks() == {asyncio.current_task()}

    within(60, go)


def test_mail_that_comes_while_a_run_is_loaded_is_delivered_at_once():
    looked = threading.Event()

    class Far(MemoryJournal):
        blocking = True
        is_late = False

        def mail(self, run_ids: Collection[str]) -> Any:
            found = super().mail(run_ids)
            if list(run_ids) == ["late"] and not self.is_late:
                self.is_late = True
                self.post("late", Entry("ended", data={"status": "cancelled", "error": "no"}))
                assert looked.wait(60)  # the engine has looked for mail of the others
            elif self.is_late:
                looked.set()
            return found

    async def go() -> None:
        journal, flow = Far(), busy(asyncio.Event(), [])
        async with LocalEngine(journal, [flow], recheck_seconds=3600.0) as engine:
            await engine.start(flow, run_id="other")
            await until(lambda: engine.loaded)
            await engine.start(flow, run_id="late")
            assert (await engine.result("late")).status == "cancelled"

    within(30, go)


def test_go_on_executes_a_run_until_it_waits_or_ends():
    async def go() -> None:
        journal, flow, clock = MemoryJournal(), asking(), VirtualClock()
        async with LocalEngine(journal, loaded=0) as engine, flow:
            run_id = await engine.start(flow)
            assert await resume_run(journal, flow, run_id) == ResumedStatus("paused")
            await engine.answer(run_id, {"a?n0": 7})
            assert await resume_run(journal, flow, run_id) == ResumedStatus("done")
            nap = sleeping()
            run_id = await engine.start(nap)
            stand = await resume_run(journal, nap, run_id, clock=clock)
            assert stand == ResumedStatus("paused", DAY)
            assert journal.infos([run_id])[0].due == DAY

    within(60, go)


def test_a_run_that_is_queued_while_an_answer_to_it_is_refused_is_loaded():
    """The run is loaded when its lock is released, whatever happened."""
    written, goes_on = asyncio.Event(), asyncio.Event()

    class Slow(MemoryJournal):
        is_slow = False

        def open(self, run_id: str) -> Any:
            book = super().open(run_id)
            if self.is_slow:
                self.is_slow = False
                book.kept = refused  # type: ignore[method-assign]
            return book

    async def refused() -> None:
        written.set()
        await goes_on.wait()
        raise JournalError("the disk is full.", id="AX512")

    async def go() -> None:
        journal, flow = Slow(), asking()
        async with LocalEngine(journal, [flow]) as engine:
            run_id = await engine.start(flow)
            await engine.idle()
            journal.is_slow = True
            answer = asyncio.ensure_future(engine.answer(run_id, {"a?n0": 7}))
            await written.wait()
            await engine.resume(run_id)
            goes_on.set()
            with pytest.raises(JournalError, match="AX512"):
                await answer
            assert (await engine.result(run_id)).output == {"sum": 7}

    within(60, go)


def test_the_result_of_a_run_that_could_not_be_loaded_is_its_error_also_later():
    class Broken(MemoryJournal):
        is_broken = False

        def open(self, run_id: str) -> Any:
            if self.is_broken:
                raise OSError(5, "Input/output error")
            return super().open(run_id)

    async def go() -> None:
        journal, flow = Broken(), asking()
        async with LocalEngine(journal, [flow]) as engine:
            run_id = await engine.start(flow)
            journal.is_broken = True
            await engine.idle()
            for _ in range(2):
                with pytest.raises(OSError, match="Input/output"):
                    await engine.result(run_id)
            journal.is_broken = False
            await engine.resume(run_id)
            await engine.idle()
            assert engine.get(run_id).info.status == "paused"

    within(60, go)


# ------------------------------------------------------------------------------- at unlucky moments


class Slow(MemoryJournal):
    """A journal that stores entries of one kind only after it is released."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.reached, self.goes_on = kind, asyncio.Event(), asyncio.Event()

    def open(self, run_id: str) -> Any:
        return _SlowBook(super().open(run_id), self)


class _SlowBook:
    def __init__(self, book: Any, journal: Slow) -> None:
        self._book, self._journal = book, journal
        self._unsafe: list[Entry] = []
        self._is_closed, self.entries = False, book.entries

    def append(self, entry: Entry) -> None:
        is_slow = entry.kind == self._journal.kind and not self._journal.goes_on.is_set()
        if self._unsafe or is_slow:
            self._unsafe.append(entry)
        else:
            self._book.append(entry)

    def kept(self) -> Any:
        return self._waited() if self._unsafe else None

    async def _waited(self) -> None:
        self._journal.reached.set()
        await self._journal.goes_on.wait()
        while self._unsafe:
            self._book.append(self._unsafe.pop(0))
        if self._is_closed:
            self._book.close()

    def close(self) -> None:
        self._is_closed = True
        if not self._unsafe:
            self._book.close()


def test_a_run_that_is_cancelled_when_it_was_loaded_and_has_not_begun_is_cancelled():
    async def go() -> None:
        journal, flow = MemoryJournal(), asking()
        cancelling: list[asyncio.Task[None]] = []

        def find(header: Any) -> Any:
            # its first step comes between the run's loading and the run's own first step
            cancelling.append(asyncio.create_task(engine.cancel("r")))
            return flow

        async with LocalEngine(journal, loaded=0) as client:
            await client.start(flow, run_id="r")
        async with LocalEngine(journal, find=find) as engine:
            assert (await engine.result("r")).status == "cancelled"
            await asyncio.gather(*cancelling)
            await engine.idle()

    within(60, go)


def test_a_run_that_is_cancelled_while_it_waits_to_be_loaded_is_not_resumed():
    taken = asyncio.Event()

    class Taking(Slow):
        def take(self, *values: Any, **more: Any) -> Any:
            found = super().take(*values, **more)
            if found:
                taken.set()
            return found

    async def go() -> None:
        journal, flow = Taking("ended"), asking()
        async with LocalEngine(journal, loaded=0) as client:
            await client.start(flow, run_id="r")
        async with LocalEngine(journal, [flow]) as engine:
            cancelling = asyncio.create_task(engine.cancel("r"))
            await journal.reached.wait()
            await taken.wait()
            journal.goes_on.set()
            await cancelling
            await engine.idle()
            assert [entry.kind for entry in journal.entries("r")] == ["run", "ended"]

    within(60, go)


def test_a_run_that_is_cancelled_while_it_pauses_is_cancelled():
    async def go() -> None:
        journal = Slow("ended")
        async with LocalEngine(journal) as engine:
            run_id = await engine.start(asking())
            result = asyncio.create_task(engine.result(run_id))
            await journal.reached.wait()
            cancelling = asyncio.create_task(engine.cancel(run_id, "enough"))
            await asyncio.sleep(0)
            journal.goes_on.set()
            await cancelling
            assert engine.get(run_id).info.status == "cancelled"
            assert (await result).status == "cancelled"

    within(60, go)


def test_a_run_that_is_started_twice_at_once_under_one_id_runs_once():
    ran: list[str] = []

    def body(task: Any, ctx: Any) -> Out:
        ran.append("a")
        return Out({})

    async def go() -> None:
        flow = workflow([node("a", body)], ["in a", "a out"])
        journal = Slow("run")
        async with LocalEngine(journal) as engine:
            both = [asyncio.create_task(engine.start(flow, {"n": 1}, run_id="r")) for _ in range(2)]
            await journal.reached.wait()
            await asyncio.sleep(0)
            journal.goes_on.set()
            assert await asyncio.gather(*both) == ["r", "r"]
            assert (await engine.result("r")).status == "done"

    within(60, go)
    assert ran == ["a"]


def test_a_cancelled_close_is_finished_by_the_next_one():
    async def go() -> None:
        closing = asyncio.Event()

        async def body(task: Any, ctx: Any) -> Out:
            try:
                await asyncio.Event().wait()
            finally:
                closing.set()
                await asyncio.sleep(0)
            return Out({})

        async with LocalEngine() as engine:
            flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
            run_id = await engine.start(flow)
            result = asyncio.create_task(engine.result(run_id))
            await asyncio.sleep(0)
            first = asyncio.create_task(engine.close(grace_seconds=DAY))
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.wait([first])
        assert engine.loaded == 0
        assert closing.is_set()
        with pytest.raises(EngineError, match="AX540"):
            await result

    within(60, go)


def test_a_second_close_waits_until_the_engine_is_closed():
    async def go() -> None:
        cleaned = asyncio.Event()

        async def body(task: Any, ctx: Any) -> Out:
            try:
                await asyncio.Event().wait()
            finally:
                for _ in range(10):
                    await asyncio.sleep(0)
                cleaned.set()
            return Out({})

        engine = await LocalEngine().__aenter__()
        await engine.start(workflow([node("a", body, mode="async")], ["in a", "a out"]))
        for _ in range(10):
            await asyncio.sleep(0)
        first = asyncio.create_task(engine.close())
        await asyncio.sleep(0)
        await engine.close()
        assert cleaned.is_set()
        assert engine.loaded == 0
        await first

    within(60, go)


def test_an_engine_that_is_entered_again_provisions_again_and_recovers_its_runs():
    journal = MemoryJournal()

    class Held:
        is_ready = False

        async def provision(self) -> None:
            self.is_ready = True

        async def close(self) -> None:
            self.is_ready = False

    held = Held()

    def body(task: Any, ctx: Any) -> Out:
        return Out({"ready": held.is_ready})

    flow = workflow([node("a", body)], ["in a", "a out"])
    object.__setattr__(flow.plan.graph, "components", (held,))

    async def go() -> None:
        async with LocalEngine(journal, [flow], loaded=0) as before:
            left = await before.start(flow)
        engine = LocalEngine(journal, [flow], loaded=0)
        async with engine:
            assert engine.get(left).info.status == "queued"  # and there is no room
            engine.max_loaded = 1
            assert (await engine.result(await engine.start(flow))).output == {"ready": True}
            await engine.idle()
            engine.max_loaded = 0
            queued = await engine.start(flow)
        engine.max_loaded = 1
        async with engine:
            for run_id in (left, queued):
                assert (await engine.result(run_id)).output == {"ready": True}

    within(60, go)


def test_a_run_for_which_find_raises_is_not_recovered():
    journal = MemoryJournal()
    flow = workflow(["a"], ["in a", "a out"])

    async def go() -> None:
        async with LocalEngine(journal, loaded=0) as engine:
            run_id = await engine.start(flow)

        def find(header: Any) -> Workflow:
            raise FileNotFoundError("its file is gone")

        async with LocalEngine(journal, find=find) as engine:
            await engine.idle()
            assert engine.get(run_id).info.status == "open"
            other = await engine.start(workflow(["b"], ["in b", "b out"]))
            assert (await engine.result(other)).status == "done"

    within(60, go)


def test_a_run_that_waits_for_its_components_can_be_cancelled():
    class Never:
        async def provision(self) -> None:
            reached.set()
            await asyncio.Event().wait()

    reached = asyncio.Event()
    flow = workflow(["a"], ["in a", "a out"])
    object.__setattr__(flow.plan.graph, "components", (Never(),))

    async def go() -> None:
        async with LocalEngine() as engine:
            run_id = await engine.start(flow)
            result = asyncio.create_task(engine.result(run_id))
            await reached.wait()
            await engine.cancel(run_id, "enough")
            assert (engine.get(run_id).info.status, engine.loaded) == ("cancelled", 0)
            assert (await result).status == "cancelled"

    within(60, go)


# --------------------------------------------------------------------------------------- components


def test_runs_that_start_together_wait_for_the_components_of_the_first():
    flow, log = with_parts(x="")

    async def go():
        async with LocalEngine() as engine:
            ids = [await engine.start(flow, {}) for _ in range(3)]
            return [(await engine.result(run_id)).status for run_id in ids]

    assert asyncio.run(asyncio.wait_for(go(), 60)) == ["done"] * 3
    assert log == ["provision x", "run x", "run x", "run x", "close x"]


def test_components_that_could_not_be_provisioned_are_provisioned_for_the_next_run():
    flow, log = with_parts(x="provision")

    async def go():
        async with LocalEngine() as engine:
            for _ in range(2):
                with pytest.raises(OSError, match="x"):
                    await engine.result(await engine.start(flow, {}))

    asyncio.run(asyncio.wait_for(go(), 60))
    assert log == ["provision x", "close x"] * 2


def test_an_executor_lasts_as_long_as_its_engine():
    class Counting(LocalExecutor):
        """One that executes here, and counts."""

        checked, executed, closed = 0, 0, 0

        def check(self, plan: Any) -> None:
            self.checked += 1

        async def execute(self, body: Any, task: Any, ctx: Any) -> Any:
            self.executed += 1
            return await super().execute(body, task, ctx)

        async def close(self) -> None:
            assert self.executed == 3
            self.closed += 1

    async def go() -> None:
        graph, executor = RootGraph("t"), Counting(1, "t")

        async def body(inputs: Any) -> dict[str, Any]:
            return {"n": inputs["n"]}

        graph.create_node(body, name="a")
        graph.edge_from_entry("a", {"n": ""})
        graph.edge_to_exit("a", {"n": ""})
        graph.build()
        async with LocalEngine(workflows=[graph], executor=executor) as engine:
            for n in range(3):
                await engine.result(await engine.start(graph, {"n": n}))
        assert (executor.executed, executor.closed) == (3, 1)
        assert executor.checked >= 3

    asyncio.run(go())


def test_leave_of_a_run_is_its_own_and_reaches_no_other():
    """Also where the journal says more, and where both runs are of one graph."""
    journal, found = MemoryJournal(), list[set[str]]()

    def body(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return {"may": [ctx.allows(word) for word in ("network", "read")]}

    def made() -> Workflow:
        graph = RootGraph("asking")
        graph.create_node(body, name="a")
        graph.edge_from_entry("a", {})
        graph.edge_to_exit("a", {"may": ""})
        return graph.build()

    def find(header: Any) -> Workflow:
        found.append(set(header["allow"]))
        return made()

    def leave(origin: Any, given: frozenset[str]) -> frozenset[str]:
        return given | frozenset({"network"} if origin.get("trusted") else ())

    async def main() -> list[Any]:
        async with LocalEngine(journal, loaded=0) as engine:
            for run_id, trusted in (("one", True), ("two", False), ("three", True)):
                origin = {"trusted": trusted, "allow": ["network"]}
                await engine.start(made(), {}, run_id=run_id, origin=origin)
        given = frozenset({"read"})
        async with LocalEngine(journal, find=find, leave=leave, allow=given) as engine:
            return [(await engine.result(run_id)).output for run_id in ("one", "two", "three")]

    one, two, three = asyncio.run(main())
    assert one == three == {"may": [True, True]}
    assert two == {"may": [False, True]}
    assert sorted(map(sorted, found)) == [["network", "read"], ["read"]]


def test_graphs_that_a_journal_cannot_tell_apart_are_refused_unless_they_are_the_same():
    one, other = asking(1), asking(2)  # their bodies are made in Python
    with pytest.raises(EngineError, match=r"AX978.*two graphs"):
        LocalEngine(MemoryJournal(), [one, other])
    LocalEngine(MemoryJournal(), [one, Workflow(one.spec, one.setting)])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("limts", 'LocalEngine takes no "limts". Did you mean "limits"?'),
        ("patience", 'LocalEngine takes no "patience". Did you mean "patience_seconds"?'),
        ("run_id", 'LocalEngine takes no "run_id".'),
        ("answers", 'LocalEngine takes no "answers".'),
    ],
)
def test_an_option_that_there_is_not_is_refused_before_a_run(name, says):
    with pytest.raises(ConfigError) as refused:
        LocalEngine(**{name: None})
    [problem] = refused.value.problems
    assert problem.id == "AX130"
    assert says in str(refused.value)


def test_an_option_with_a_wrong_value_is_refused_before_a_run():
    with pytest.raises(TypeError, match="limits: expected Limits, found a mapping"):
        LocalEngine(limits={"firings": 3})
    with pytest.raises(ConfigError, match=r'AX136.*Did you mean "code"'):
        LocalEngine(allow=["cod"])
