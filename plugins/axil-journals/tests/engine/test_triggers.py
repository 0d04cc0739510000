"""Laws of triggers: each occurrence starts one run, whichever workers are there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from axil import ConfigError, run_sync
from axil.plugin import JournalError
from axil_journals import LocalEngine, MemoryJournal
from axil_journals.engine.triggers import (
    Cron,
    Folder,
    Interval,
    Schedule,
    Trigger,
    TriggeredRuns,
    read_triggers,
)
from axil_testing import VirtualClock
from axil_testing.specs import workflow

FLOW = workflow(["a"], ["in a", "a out"])


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def shown(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="minutes")


async def worked(
    journal: MemoryJournal, triggers: Sequence[Trigger], clock: VirtualClock, seconds: float
) -> None:
    """Have a worker for each trigger watch for so long, by its clock."""
    engines = [LocalEngine(journal, [FLOW], clock=clock) for _ in triggers]
    for engine in engines:
        await engine.__aenter__()
    tasks = [
        asyncio.ensure_future(
            TriggeredRuns(
                trigger=trigger,
                engine=engine,
                journal=journal,
                workflow=FLOW,
                input={"day": "{time}"},
                clock=clock,
            ).watch()
        )
        for trigger, engine in zip(triggers, engines, strict=True)
    ]
    await clock.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for engine in engines:
        await engine.idle()
        await engine.close()


def runs(journal: MemoryJournal) -> list[str]:
    assert {info.status for info in journal.runs()} <= {"done"}
    return sorted(info.run_id for info in journal.runs())


def test_each_time_starts_one_run_however_many_workers_there_are():
    journal, clock = MemoryJournal(), VirtualClock(start=at("2026-03-01T00:00:30"))
    triggers = [Schedule("tick", Interval(60), late_seconds=60) for _ in range(3)]
    run_sync(worked(journal, triggers, clock, 200.0))
    assert runs(journal) == [f"tick-20260301T000{n}00Z" for n in range(4)]
    header = next(iter(journal.entries("tick-20260301T000100Z")))
    assert "2026-03-01T00:01:00+00:00" in str(header.data)


@pytest.mark.parametrize("seconds", [1.0, 1.1, 7.7, 59.9, 86_400.0])
def test_the_time_after_a_time_of_an_interval_is_later(seconds: float):
    times, time = Interval(seconds), at("2026-03-01T00:00")
    for _ in range(1000):
        later = times.after(time)
        assert time < later < time + 1.01 * seconds
        time = later


def test_of_occurrences_that_no_worker_was_there_for_the_last_one_is_made_up_for():
    journal = MemoryJournal()

    def work(begins: str, seconds: float) -> None:
        clock = VirtualClock(start=at(begins))
        trigger = Schedule("hourly", Interval(3600), late_seconds=7200)
        run_sync(worked(journal, [trigger], clock, seconds))

    work("2026-03-01T00:30", 1.0)  # the one of midnight
    work("2026-03-01T00:40", 1.0)  # it has been
    work("2026-03-01T05:20", 1.0)  # those of 1 to 5 were missed
    assert runs(journal) == ["hourly-20260301T000000Z", "hourly-20260301T050000Z"]


def test_a_line_of_cron_keeps_to_its_time_zone_where_clocks_change():
    nightly = Cron("30 2 * * *", ZoneInfo("Europe/Berlin"))
    begins = at("2026-03-28T12:00", "Europe/Berlin")
    forward = nightly.after(begins)  # 2:30 does not exist on the 29th
    assert shown(forward) == "2026-03-29T01:00+00:00"
    assert shown(nightly.after(forward)) == "2026-03-30T00:30+00:00"
    back = nightly.after(at("2026-10-24T12:00", "Europe/Berlin"))  # 2:30 is there twice
    assert shown(back) == "2026-10-25T00:30+00:00"
    assert shown(nightly.after(back)) == "2026-10-26T01:30+00:00"


def test_a_file_starts_a_run_once_for_each_content(tmp_path: Path):
    inbox = tmp_path / "in"
    inbox.mkdir()
    (inbox / "a.txt").write_text("one")
    first, second = Folder("in", inbox, files="*.txt"), Folder("in", inbox, files="*.txt")
    assert list(first.occurrences(0, 0)) == []  # it may be growing
    (occurrence,) = first.occurrences(0, 1)
    assert (occurrence.values["name"], occurrence.values["text"]) == ("a.txt", "one")
    assert [each.run_id for each in first.occurrences(0, 2)] == [
        occurrence.run_id
    ]  # until it has its run
    first.done(occurrence)
    assert list(first.occurrences(0, 3)) == []
    second.occurrences(0, 0)
    assert [each.run_id for each in second.occurrences(0, 1)] == [occurrence.run_id]
    (inbox / "a.txt").write_text("two")
    (inbox / "b.md").write_text("other")
    assert list(first.occurrences(0, 4)) == []
    (changed,) = first.occurrences(0, 5)
    assert (changed.run_id != occurrence.run_id, changed.values["text"]) == (True, "two")


def test_a_occurrence_is_tried_again_when_the_journal_was_away():
    clock = VirtualClock(start=at("2026-03-01T00:00:30"))

    class Away(MemoryJournal):
        left = 2

        def infos(self, run_ids: Any) -> Any:
            self.left -= 1
            if self.left >= 0:
                raise JournalError("the database cannot be used.", id="AX510")
            return super().infos(run_ids)

    journal = Away()
    run_sync(worked(journal, [Schedule("tick", Interval(60), late_seconds=60)], clock, 60.0))
    assert runs(journal) == ["tick-20260301T000000Z", "tick-20260301T000100Z"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[a]\nworkflow = "f.yaml"', "one of cron, every_seconds and folder"),
        ('[a]\nworkflow = "f.yaml"\ncron = "0 0 30 2 *"', "no line of cron"),
        ('[a]\nworkflow = "f.yaml"\ncron = "61 * * * *"', "no line of cron"),
        ('[a]\nworkflow = "f.yaml"\ncron = "@daily"\ntimezone = "Mars/Sea"', "no time zone"),
        ('[a]\nworkflow = "f.yaml"\nevery = 5', 'unknown key "every"'),
        ("[a", "cannot be read"),
        ('a = "b"', "expected a table"),
    ],
)
def test_a_file_of_triggers_that_says_something_else_is_refused(
    tmp_path: Path, text: str, problem: str
):
    path = tmp_path / "triggers.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_triggers(path)
