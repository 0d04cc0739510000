"""Runs of all kinds, whose workers and database die again and again, end once and rightly."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from axil_journals import LocalEngine, ReplayIndex
from axil_sqlite import SqliteJournal

from .cluster import LOG, Crew, Step, database, log_file, timed_steps_in
from .soak import (
    HERE,
    PAUSES,
    VERSIONS,
    Outcome,
    Takeover,
    first_version,
    recorded_in,
    second_version,
    soak,
)

LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"


@pytest.mark.skipif(not LONG, reason="twenty minutes: make thorough")
def test_nothing_is_lost_stuck_or_done_again_whatever_dies(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with database() as server:
        if server is None:
            pytest.skip("there is no PostgreSQL server to start")
        made = asyncio.run(soak(server, tmp_path, runs=2000, kills=100, stops=5, restarts=4))
    record_property("soak", f"{made}")
    assert (made.lost, made.wrong, made.doubled, made.strange) == ([], [], [], []), made
    assert made.is_whole, made.doctor
    assert made.recorded > 0
    assert made.takeovers
    assert (made.kills, made.stops, made.restarts) == (100, 5, 4)


async def _run_again(
    journal: SqliteJournal, log: Path, lost: int
) -> tuple[Outcome, dict[str, set[str]]]:
    """Run a workflow once for each entry of its record, note what is recorded up to this entry,
    drop the rest and so many entries before, and run on.
    """
    flow, recorded, words = first_version(), dict[tuple[str, str], float](), dict[str, set[str]]()
    async with LocalEngine(journal, [flow]) as engine:
        await engine.start(flow, {"run": "r1"}, run_id="r1")
        await engine.result("r1")
        count = len(journal.entries("r1"))
        runs = [f"r{10 * number + 1}" for number in range(2, count + 1)]
        for run in runs:
            await engine.start(flow, {"run": run}, run_id=run)
        await asyncio.gather(*map(engine.result, runs))
    os.truncate(log, 0)
    for number, run in enumerate(runs, 2):
        found = set(recorded_in(ReplayIndex(list(journal.entries(run))[:number])))
        recorded.update(((run, word), time.time()) for word in found)
        words[run] = found
        journal.cut(run, number - lost)
    async with LocalEngine(journal, [flow]) as engine:
        await asyncio.gather(*map(engine.resume, runs))
        await asyncio.gather(*map(engine.result, runs))
    made = Outcome(len(runs))
    made.judge(timed_steps_in(log), recorded, {})
    for run, word, *_ in timed_steps_in(log):
        words[run].add(word)
    return made, words


@pytest.mark.parametrize("lost", [0, 1], ids=["whole", "an entry is lost"])
def test_a_step_counts_as_recorded_where_it_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    monkeypatch.setenv(LOG, str(tmp_path / "log"))
    monkeypatch.setenv(PAUSES, "0.001")
    log_file.cache_clear()
    journal = SqliteJournal(tmp_path / "journal", sync="normal")
    made, words = asyncio.run(_run_again(journal, tmp_path / "log", lost))
    journal.close()
    log_file.cache_clear()
    every = {"effect", "first", "item0", "item1", "item2", "item3", "inner", "ask", "tool"}
    assert all(found == every for found in words.values()), words
    assert (made.again, made.strange) == (0, [])
    if lost:  # what was recorded and then lost is seen when it is done again
        assert {word.split()[0] for word in made.doubled} == every
    else:
        assert made.doubled == []


def test_a_step_that_ends_late_is_no_step_that_began_again() -> None:
    made = Outcome(1)
    asleep, dead, third = 1, 2, 3
    words = [
        Step("r1", "first", dead, at=9.0, begun=8.0),
        # it was stopped within the step from 2.0 to 12.0
        Step("r1", "first", asleep, at=12.1, begun=1.0),
        Step("r1", "first", third, at=12.2, begun=10.1),
    ]
    made.judge(words, {("r1", "first"): 10.0}, {asleep: 12.5, dead: 9.9})
    assert (made.late, made.doubled) == (["first of r1 in 1"], ["first of r1 in 3"])
    assert not made.is_whole


def test_a_takeover_is_measured_until_the_run_goes_on() -> None:
    seen = [
        (7, 4, 1.0),  # a commit of the dead worker that was under way
        (0, 4, 6.0),
        (8, 4, 6.1),  # a worker takes it,
        (0, 4, 6.2),  # and releases it
        (9, 4, 8.0),
        (9, 5, 9.0),
    ]
    takeover = Takeover("r1", 7, 3, [0.0])
    for look in seen:
        takeover.look(*look)
    assert takeover.seconds == (6.0, 2.0, 1.0)
    between_looks = Takeover("r1", 7, 3, [0.0])
    between_looks.look(0, 9, 6.5)  # taken, and ended
    assert between_looks.seconds == (6.5, 0.0, 0.0)


@pytest.mark.skipif(not LONG, reason="it starts a process: make thorough")
def test_a_worker_takes_runs_of_both_versions_of_one_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PAUSES, "0.001")

    async def versions() -> list[int]:
        place, flows = tmp_path / "journal", [first_version(), second_version()]
        journal = SqliteJournal(place)
        crew = Crew(str(place), tmp_path, seconds=0, targets=[[f"{HERE}:{v}" for v in VERSIONS]])
        try:
            crew.add()
            async with asyncio.timeout(60), LocalEngine(journal, loaded=0) as engine:
                for run, flow in zip(("r1", "r2"), flows, strict=True):
                    await engine.start(flow, {"run": run}, run_id=run)
                return [(await engine.result(run)).output["version"] for run in ("r1", "r2")]
        finally:
            crew.close()
            journal.close()

    assert asyncio.run(versions()) == [1, 2]
