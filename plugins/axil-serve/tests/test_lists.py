"""Laws of lists in a journal with many runs: few are looked at, and questions are found."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from axil import Workflow
from axil_journals import MemoryJournal, RunInfo
from axil_serve import Caller, RunService

from .conftest import refund

BOSS = Caller(name="boss", sees_all=True, rights=frozenset(["look", "answer"]))
ENDED = 50_000


class Many(MemoryJournal):
    """A journal in which many runs ended after those that it keeps; it counts rows."""

    read = 0

    def runs(self, **given: Any) -> Sequence[RunInfo]:
        found: list[RunInfo] = []
        after, limit = str(given.get("after", "")), int(given["limit"])
        is_behind = after and not after.startswith("ended-")
        if not is_behind and (not given["status"] or "done" in given["status"]):
            first = int(after.removeprefix("ended-")) + 1 if after else 0
            numbers = range(first, min(first + limit, ENDED))
            found = [RunInfo(run_id=f"ended-{n}", graph="old", status="done") for n in numbers]
        if len(found) < limit:
            rest = {**given, "after": after if is_behind else "", "limit": limit - len(found)}
            found += super().runs(**rest)
        self.read += len(found)
        return found


@pytest.fixture
def service() -> RunService:
    journal, flow = Many(), refund()

    async def ask(workflow: Workflow) -> None:
        for number in range(3):
            run = workflow.start({"amount": number}, journal=journal, run_id=f"asks-{number}")
            await run.result()

    asyncio.run(ask(flow))
    return RunService(journal, {"refund": flow}, watch_only=True)


def test_the_questions_are_found_without_a_look_at_runs_that_ended(service):
    assert len(service.questions(BOSS)) == 3
    assert service.journal.read == 3


def test_runs_that_wait_are_listed_without_a_look_at_runs_that_ended(service):
    found, after = service.page(BOSS, limit=10, status="paused")
    assert (len(found), after, service.journal.read) == (3, "", 3)


def test_a_page_looks_at_some_runs_only_and_the_next_goes_on_there(service):
    found, after, read = [], "", []
    while not read or after:
        before = service.journal.read
        some, after = service.page(BOSS, after=after, limit=10, workflow="refund")
        found += [each["run_id"] for each in some]
        read.append(service.journal.read - before)
    assert sorted(found) == ["asks-0", "asks-1", "asks-2"]
    assert max(read) == 2_000


def test_a_list_among_the_last_runs_looks_at_no_others(service):
    assert list(service.list(BOSS, among=1_000, workflow="refund")) == []
    assert service.journal.read == 1_000
    assert len(list(service.list(BOSS, workflow="refund"))) == 3
