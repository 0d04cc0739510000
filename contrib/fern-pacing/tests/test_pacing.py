"""It starts what matters most first, holds its rates, and changes nothing that a run comes to."""

from __future__ import annotations

import asyncio
import runpy
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import axil
import axil_journals
from axil.plugin import Firing, hook_manager
from axil_testing import VirtualClock
from axil_testing.kit import HookKit
from fern_pacing import PriorityAndRate

EXAMPLE = Path(__file__).parent.parent / "examples" / "paced.py"
Starts = list[tuple[str, float]]


class TestPriorityAndRate(HookKit):
    changes_timing_only = True

    def make(self) -> Any:
        return PriorityAndRate(priorities={"counts": 2, "waits": 1}, rate=4)


def fan(log: Starts, names: str, seconds: float = 1.0, lane: str | None = None) -> axil.Workflow:
    """Return a workflow of nodes beside one another, which note when they start."""
    graph = axil.RootGraph("fan")

    def body(name: str) -> Any:
        async def run(inputs: dict[str, Any], ctx: axil.Context) -> dict[str, Any]:
            log.append((name, ctx.now()))
            await ctx.sleep(seconds)
            return {name: "done"}

        return run

    for name in names:
        node = graph.create_node(body(name), name=name, lane=lane)
        graph.edge_from_entry(node, {})
        graph.edge_to_exit(node, [name])
    return graph.build()


def come_to(flow: axil.Workflow, *plugins: Any, **options: Any) -> axil.Result:
    async def run() -> axil.Result:
        given = {"clock": VirtualClock(), "hooks": hook_manager(plugins), **options}
        return await flow.start({}, **given).result()

    return asyncio.run(run())


def test_what_matters_most_starts_first():
    log: Starts = []
    pace = PriorityAndRate(priorities={"c": 2, "d": 1, "a": -1})
    assert come_to(fan(log, "abcd"), pace, limits=axil.Limits(concurrency=1)).status == "done"
    assert log == [("c", 0), ("d", 1), ("b", 2), ("a", 3)]


@pytest.mark.parametrize("lane", [None, "slow"])
def test_a_rate_is_held(lane: str | None):
    log: Starts = []
    name = lane or "run"
    pace = PriorityAndRate(rate={name: 2, "unused": 1})
    flow = fan(log, "abcdef", seconds=5, lane=lane)
    come_to(flow, pace, limits=axil.Limits(lanes={"slow": 6}))
    assert log == [(each, n / 2) for n, each in enumerate("abcdef")]


def test_a_rate_is_held_by_the_starts_and_not_by_when_there_was_room():
    log: Starts = []
    come_to(fan(log, "abcd", 3), PriorityAndRate(rate=1), limits=axil.Limits(concurrency=2))
    assert log == [("a", 0), ("b", 1), ("c", 3), ("d", 4)]


def test_priorities_are_obeyed_at_a_rate():
    log: Starts = []
    pace = PriorityAndRate(priorities={"e": 3, "c": 2, "d": 1}, rate=2)
    come_to(fan(log, "abcde", seconds=9), pace)
    assert log == [("e", 0), ("c", 0.5), ("d", 1), ("a", 1.5), ("b", 2)]


def test_the_starts_of_several_runs_are_counted_together():
    log: Starts = []
    flow, clock = fan(log, "abc"), VirtualClock()
    hooks = hook_manager([PriorityAndRate(rate=4)])

    async def both() -> None:
        runs = [flow.start({}, clock=clock, hooks=hooks) for _ in range(2)]
        await asyncio.gather(*(run.result() for run in runs))

    asyncio.run(both())
    assert [at for _, at in log] == [0, 0.25, 0.5, 0.75, 1, 1.25]


def test_another_plugin_may_choose_and_its_choice_is_counted():
    class Last:
        @axil.hookimpl
        def choose_firing(self, due: list[Firing]) -> Firing:
            return due[-1]

    log: Starts = []
    come_to(fan(log, "abc"), PriorityAndRate(priorities={"a": 1}, rate=1), Last())
    assert log == [("c", 0), ("b", 1), ("a", 2)]


def test_runs_in_threads_hold_a_rate_together():
    log: Starts = []
    flow = fan(log, "abcd", seconds=0)
    hooks = hook_manager([PriorityAndRate(rate=200)])
    threads = [Thread(target=lambda: flow.invoke(hooks=hooks)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = sorted(at for _, at in log)
    assert len(times) == 16
    assert times[-1] - times[0] >= 15 / 200 - 4 / 200  # each thread may start one at once


@pytest.mark.parametrize(
    ("rate", "reported"),
    [(0, "rate is 0"), (-1, "rate is -1"), ({"api": float("nan")}, "api is nan")],
)
def test_what_is_no_rate_is_refused(rate: Any, reported: str):
    with pytest.raises(ValueError, match=reported):
        PriorityAndRate(rate=rate)


def test_without_settings_everything_starts_as_it_comes():
    plain, paced = list[Any](), list[Any]()
    come_to(fan(plain, "abc"))
    come_to(fan(paced, "abc"), PriorityAndRate())
    assert plain == paced


def reported(result: axil.Result) -> Mapping[str, Any]:
    return {"status": result.status, "output": result.output, "state": result.attributes}


def test_a_run_has_the_same_result_with_it_and_without():
    plain = reported(come_to(fan([], "abcdef")))
    pace = PriorityAndRate(priorities={"f": 1, "c": -1}, rate=3)
    for limits in (axil.Limits(), axil.Limits(concurrency=1), axil.Limits(concurrency=3)):
        assert reported(come_to(fan([], "abcdef"), pace, limits=limits)) == plain


def test_a_run_that_was_cut_off_continues_with_what_was_recorded():
    log: Starts = []
    journal = axil_journals.MemoryJournal()
    flow = fan(log, "abc")
    pace = PriorityAndRate(priorities={"c": 1}, rate=1)
    whole = come_to(flow, pace, journal=journal, run_id="r", limits=axil.Limits(concurrency=1))
    entries = list(journal.entries("r"))
    [first] = [n for n, each in enumerate(entries) if each.kind == "done" and each.node == "c"]
    part = axil_journals.MemoryJournal()
    book = part.open("r")
    for entry in entries[: first + 1]:
        book.append(entry)
    book.close()
    log.clear()
    other = PriorityAndRate(priorities={"b": 1}, rate=1)
    again = come_to(flow, other, journal=part, run_id="r", resuming=True)
    assert reported(again) == reported(whole)
    assert [name for name, _ in log] == ["b", "a"]


def test_the_example_runs():
    names = runpy.run_path(str(EXAMPLE))
    flow, log = names["paced"]()
    result = asyncio.run(
        flow.start(
            {},
            clock=VirtualClock(),
            hooks=names["hooks"](),
            limits=axil.Limits(lanes={"errands": 1}),
        ).result()
    )
    assert log[:3] == [("doctor", 0), ("letters", 0.5), ("parcels", 1)]
    assert [name for name, _ in log[3:]] == ["broken"] * 3
    assert result.output["broken"] == "not asked any more"
