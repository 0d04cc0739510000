"""Laws of batches: each row is a run, what is done is not done again, money is limited for all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from axil import Context, RootGraph
from axil_cli import Batch, BatchError, Row, Statistics
from axil_journals import MemoryJournal


def rows(*names: str) -> list[Row]:
    return [Row(number, {"name": name}) for number, name in enumerate(names, 1)]


def greeting(body: Any) -> Any:
    graph = RootGraph("greeting")
    graph.create_node(body, name="greet")
    graph.edge_from_entry("greet", {"name": "whom"})
    graph.edge_to_exit("greet", {"text": ""})
    return graph.build()


def batch(body: Any, *names: str, **more: Any) -> Batch:
    options = {"name": "b", "journal": MemoryJournal(), **more}
    return Batch(workflow=greeting(body), rows=rows(*names), **options)


async def greet(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"text": f"Hello {inputs['name']}"}


def test_the_results_are_in_order_of_the_rows_whatever_ends_first():
    gate = asyncio.Event()

    async def slow_first(inputs: dict[str, Any]) -> dict[str, Any]:
        await gate.wait() if inputs["name"] == "Ada" else gate.set()
        return {"text": inputs["name"]}

    found = asyncio.run(batch(slow_first, "Ada", "Ben").run())
    assert [result.as_fields()["output.text"] for result in found] == ["Ada", "Ben"]
    assert [result.run_id for result in found] == ["b-1", "b-2"]


def test_no_more_runs_are_at_work_than_asked_for():
    most, now = 0, 0

    async def counted(inputs: dict[str, Any]) -> dict[str, Any]:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        return {"text": ""}

    asyncio.run(batch(counted, *"abcdefgh", parallel=3).run())
    assert most == 3


def test_a_batch_that_is_run_again_continues_with_the_rows_that_are_not_done():
    ran: list[str] = []
    broken = True

    async def fails_once(inputs: dict[str, Any]) -> dict[str, Any]:
        ran.append(inputs["name"])
        if inputs["name"] == "Ben" and broken:
            raise ValueError("no Ben today")
        return {"text": inputs["name"]}

    first = batch(fails_once, "Ada", "Ben", parallel=1)
    found = asyncio.run(first.run())
    assert [result.status for result in found] == ["done", "failed"]
    assert "no Ben today" in found[1].error
    broken = False
    again = Batch(workflow=first.workflow, rows=first.rows, name="b", journal=first.journal)
    found = asyncio.run(again.run())
    assert [result.output for result in found] == [{"text": "Ada"}, {"text": "Ben"}]
    assert ran == ["Ada", "Ben", "Ben"]


def test_an_interrupted_batch_keeps_what_it_has():
    begun = asyncio.Event()

    async def waits(inputs: dict[str, Any]) -> dict[str, Any]:
        if inputs["name"] == "Ben":
            begun.set()
            await asyncio.Event().wait()
        return {"text": inputs["name"]}

    interrupted = batch(waits, "Ada", "Ben", "Cleo", parallel=1)

    async def go() -> None:
        job = asyncio.ensure_future(interrupted.run())
        await begun.wait()
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job

    asyncio.run(go())
    assert [r.status for r in interrupted.all_results()] == ["done", "open", "waiting"]
    # the journal has the run as one that goes on
    last = Batch(
        workflow=greeting(greet),
        rows=interrupted.rows[2:],
        name="b",
        journal=interrupted.journal,
    )
    assert asyncio.run(last.run())[0].output == {"text": "Hello Cleo"}


def test_the_budget_is_that_of_all_runs_together():
    async def dear(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        ctx.spend(cost=1.0)
        return {"text": inputs["name"]}

    limited = batch(dear, *"abcdef", parallel=1, budget=2.5)
    found = asyncio.run(limited.run())
    assert [result.status for result in found].count("waiting") == 3
    assert limited.cost == 3.0
    assert limited.is_over_budget
    assert [result.status for result in found[:3]] == ["done", "done", "limited"]


def test_a_budget_that_is_no_number_is_refused():
    with pytest.raises(BatchError, match=r"AX992.*no number"):
        batch(lambda inputs: inputs, "a", budget=float("nan"))


def test_a_batch_that_goes_on_counts_what_all_its_rows_have_spent_before():
    paid: list[str] = []
    is_patient = True

    async def dear(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        for number in range(3):
            if is_patient and number == {"long": 0, "late": 1}.get(inputs["name"]):
                await asyncio.Event().wait()
            paid.append(f"{inputs['name']} {number}")
            await ctx.step(f"pay {number}", lambda: spent(ctx))
            await asyncio.sleep(0)  # where the limit takes hold
        return {"text": inputs["name"]}

    async def spent(ctx: Context) -> None:
        ctx.spend(cost=1.0)

    first = batch(dear, "long", "short", "late", parallel=2, budget=5.0)

    async def broken_off() -> None:
        job = asyncio.ensure_future(first.run())
        while len(paid) < 4:  # noqa: ASYNC110  # the bodies say so
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)

    names = ("long", "short", "late")
    asyncio.run(broken_off())
    assert first.results[2].status == "done"
    is_patient = False
    again = batch(dear, *names, parallel=1, budget=5.0, journal=first.journal)
    found = asyncio.run(again.run())
    assert [each.status for each in found] == ["limited", "done", "waiting"]
    assert len(paid) <= 6  # the call that passes it is paid
    assert again.cost == len(paid)
    last = batch(dear, *names, parallel=1, budget=5.0, journal=first.journal)
    assert [each.status for each in asyncio.run(last.run())] == ["waiting", "done", "waiting"]
    assert (last.cost, last.is_over_budget) == (again.cost, True)


def test_a_budget_says_where_it_limits_nothing_because_nothing_has_a_price():
    async def used(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        ctx.spend(input=10, cost=0.1 if inputs["name"] == "priced" else 0)
        return {"text": inputs["name"]}

    for name, budget, is_unpriced in (("x", 1.0, True), ("x", None, False), ("priced", 1.0, False)):
        one = batch(used, name, budget=budget)
        asyncio.run(one.run())
        assert one.is_unpriced is is_unpriced


def test_runs_at_work_are_cancelled_when_another_one_uses_the_budget_up():
    async def dear(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        if inputs["name"] == "patient":
            await asyncio.Event().wait()
        ctx.spend(cost=5.0)
        return {"text": ""}

    found = asyncio.run(batch(dear, "patient", "dear", parallel=2, budget=1.0).run())
    assert found[0].status == "cancelled"
    assert "the batch's budget of 1 is used up" in found[0].error


def test_a_question_pauses_its_row_alone():
    async def asks(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"text": await ctx.ask("Is it Ada?") if inputs["name"] == "Ada" else "no"}

    found = asyncio.run(batch(asks, "Ada", "Ben").run())
    assert [result.status for result in found] == ["paused", "done"]
    assert found[0].as_fields()["run.error"] == "Is it Ada?"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"name": "a/b"}, "cannot be the name of a batch"),
        ({"parallel": 0}, "at least one run at a time, found 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(more, message):
    with pytest.raises(BatchError, match=message):
        batch(greet, "Ada", **more)


def test_a_table_without_a_column_of_the_workflow_is_refused_before_anything_runs():
    wrong = Batch(
        workflow=greeting(greet),
        rows=[Row(1, {"name": "Ada"}), Row(2, {"nome": "Ben"})],
        name="b",
        journal=MemoryJournal(),
    )
    with pytest.raises(BatchError, match=r'AX992.*row 2 lacks.*"?name"?'):
        asyncio.run(wrong.run())
    assert wrong.journal.runs() == []


def test_statistics_count_rows_and_sum_what_they_used():
    async def dear(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        ctx.spend(cost=0.5, input=10)
        return {"text": ""}

    found = Statistics.of(asyncio.run(batch(dear, *"abcd").run()), seconds=1.0)
    assert (found.statuses, found.tokens, found.cost) == ({"done": 4}, 40, 2.0)
    assert "cost     2.0000" in found.lines()
    assert found.as_data()["rows"] == 4


def test_a_batch_without_a_budget_frees_rows_that_had_one():
    async def dear(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        for number in range(3):
            await ctx.step(f"pay {number}", lambda: spent(ctx))
            await asyncio.sleep(0)  # where the limit takes hold
        return {"text": inputs["name"]}

    async def spent(ctx: Context) -> None:
        ctx.spend(cost=1.0)

    first = batch(dear, "Ada", budget=0.5)
    assert [each.status for each in asyncio.run(first.run())] == ["limited"]
    again = batch(dear, "Ada", journal=first.journal)
    assert [each.status for each in asyncio.run(again.run())] == ["done"]
