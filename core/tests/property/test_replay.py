"""A run that was cut off anywhere and goes on does what it would have done, and does nothing
twice.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from hypothesis import assume, given

from axil.builder.workflow import Workflow
from axil.runtime.result import Result
from axil_journals import MemoryJournal
from axil_testing.graphs import Call, RandomGraph, RandomNode, graphs
from axil_testing.specs import Raw, Tape, written

from .strategies import law, seeds
from .test_schedules import facts


def run(case: RandomGraph, choose: random.Random, journal: Any) -> tuple[list[str], Result]:
    """Run under the one id; gives the activations whose bodies ran."""
    ran: list[str] = []

    def wrap(fire: Call, node: RandomNode) -> Raw:
        async def body(task: Any, ctx: Any) -> Any:
            ran.append(str(ctx.activation))
            for _ in range(choose.randrange(4)):
                await asyncio.sleep(0)
            return fire(task, ctx)

        return Raw(body, "async", ctx=True)

    async def go() -> Result:
        return await Workflow(case.spec(wrap)).start({}, journal=journal, run_id="r")

    return ran, asyncio.run(go())


@law(20)
@given(case=graphs(cyclic=True), choose=seeds)
def test_a_run_goes_on_from_every_prefix_of_its_journal_and_nothing_runs_twice(
    case: RandomGraph, choose: random.Random
):
    tape = Tape()
    ran, result = run(case, choose, tape)
    assume(result.status == "done")
    entries = tape.lines
    cuts = range(1, len(entries) + 1)
    for cut in cuts if len(cuts) <= 8 else sorted(choose.sample(cuts, 8)):
        known = {str(entry.activation) for entry in entries[:cut] if entry.kind == "done"}
        for journal in (Tape(entries[:cut]), written(entries[:cut])):
            again, resumed = run(case, choose, journal)
            assert resumed.status == "done", resumed.error
            assert known.isdisjoint(again)
            assert len(again) == len(set(again))
            assert set(again) <= set(ran)
            assert set(again) | known >= set(ran)
            assert (resumed.output, resumed.attributes, resumed.exits) == (
                result.output,
                result.attributes,
                result.exits,
            )
            if isinstance(journal, Tape):
                assert facts(journal) == facts(tape)


@law(17)
@given(case=graphs(cyclic=True), choose=seeds)
def test_a_finished_run_is_shown_from_its_journal_without_running_anything(
    case: RandomGraph, choose: random.Random
):
    journal = MemoryJournal()
    ran, result = run(case, choose, journal)
    assume(result.status == "done" and ran)
    again, reported = run(case, choose, journal)
    assert again == []
    assert (reported.output, reported.attributes, reported.exits) == (
        result.output,
        result.attributes,
        result.exits,
    )
