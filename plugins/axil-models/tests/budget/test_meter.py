"""Limits of tokens and money in runs: reached, refused, recorded, resumed."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

import pytest

from axil import GraphSpec, Limits, Result, SpecError
from axil.plugin import RunUsage
from axil_journals import MemoryJournal
from axil_models import Budget, Estimator, Price, Pricing
from axil_models.budget.meter import BudgetMeter
from axil_testing.specs import chain

PRICING = Pricing(
    models={"a": Price(input=1, output=2), "b": Price(input=1, output=2, cached=0.5)},
    unknown=Price(input=3, output=4),
)


def run(graph, **options):
    return asyncio.run(graph.start({}, **options).result())


@pytest.mark.parametrize(
    ("limits", "id"), [(Limits(tokens=10), "AX413"), (Limits(cost=0.5), "AX414")]
)
def test_the_limits_of_tokens_and_money_end_the_run_when_they_are_passed(limits, id):
    async def spend(ctx):
        ctx.spend(input_tokens=6, output_tokens=4, cost=0.5)
        return {}

    within = run(chain({"a": spend}), limits=limits)
    assert (within.status, within.usage.tokens, within.usage.cost) == (
        "done",
        {"input_tokens": 6, "output_tokens": 4},
        0.5,
    )
    result = run(chain({"a": spend, "b": spend}), limits=limits)
    assert (result.status, result.error.id) == ("limited", id)
    assert result.usage.tokens == {"input_tokens": 12, "output_tokens": 8}


def test_usage_reported_from_a_thread_is_counted():
    def body(ctx):
        ctx.spend(input_tokens=3)
        return {}

    assert run(chain({"a": body})).usage.tokens == {"input_tokens": 3}


def test_what_a_body_spends_after_the_end_is_counted_and_stops_nothing():
    held = []

    async def keeps(ctx):
        held.append(ctx)
        return {}

    async def main():
        started = chain({"a": keeps}).start({}, limits=Limits(tokens=10))
        result = await started.result()
        held[0].spend(input_tokens=100)
        started.cancel()
        return result

    result = asyncio.run(main())
    assert (result.status, result.usage.tokens) == ("done", {"input_tokens": 100})


def test_what_was_used_before_a_pause_counts_after_it():
    async def body(ctx):
        ctx.spend(cost=0.6)
        await ctx.ask("sure?")
        return {}

    graph = chain({"a": body})
    options = {"journal": MemoryJournal(), "run_id": "r", "limits": Limits(cost=1.0)}
    paused = run(graph, **options)
    answers = {question.id: "yes" for question in paused.questions}
    assert (paused.status, paused.usage.cost) == ("paused", 0.6)
    assert run(graph, **options, answers=answers).status == "limited"


def test_the_usage_of_a_run_has_these_fields_also_where_nothing_is_limited():
    async def nothing(ctx):
        return {}

    usage = run(chain({"a": nothing})).usage
    assert isinstance(usage, RunUsage)
    assert asdict(usage) == {"firings": 1, "seconds": usage.seconds, "tokens": {}, "cost": 0.0}
    assert Result(status="failed", run_id="").usage == RunUsage()


def test_a_body_that_asks_for_the_ledger_gets_one_that_counts_on():
    async def body(ctx):
        ctx.spend(cost=1.0)
        assert ctx.ledger.usage.cost >= 1.0
        ctx.spend(cost=1.0)
        return {}

    assert run(chain({"a": body, "b": body})).usage.cost == 4.0


def test_a_ledger_that_a_body_asked_for_can_stop_a_run_without_limits():
    async def body(ctx):
        ctx.ledger.open(ctx.activation.path, Budget(tokens=10))
        ctx.spend(input_tokens=11)
        return {}

    result = run(chain({"a": body}))
    assert (result.status, result.error.id, result.usage.firings) == ("limited", "AX416", 1)


def test_journals_receive_the_same_records_as_before():
    async def body(ctx):
        ctx.spend(cost=0.5, input_tokens=3)
        return {}

    journal = MemoryJournal()
    run(chain({"a": body}), journal=journal, run_id="r")
    begun, done, *_ = [entry.data["used"] for entry in journal.entries("r")]
    assert begun == {"firings": 0, "tokens": {}, "cost": 0.0, "cycles": {}}
    assert done == {"firings": 1, "tokens": {"input_tokens": 3}, "cost": 0.5}


def test_what_a_run_counted_that_was_recorded_without_this_meter_counts():
    meter = BudgetMeter(RunUsage(), Limits(), lambda limit: None)
    meter.restore({"tokens": {"a": 1}, "cost": 0.25, "amounts": {"a": 2, "b": 3, "cost": 0.5}})
    assert meter.as_data() == {"tokens": {"a": 3, "b": 3}, "cost": 0.75}


@pytest.mark.parametrize(
    ("wrong", "data"),
    [
        ({"tokens": "5"}, r"limits\.tokens: expected a number ≥ 0, found '5'"),
        ({"pricing": {}}, r"limits\.pricing: expected a Pricing, found {}"),
        ({"pricing": {"models": {"m": 3}}}, r"limits\.pricing: expected a Pricing, found {"),
        ({"pricing": {"modles": {}}}, r"limits\.pricing: expected a Pricing, found {"),
        ({"estimate": 3}, r"limits\.estimate: expected an Estimator, found 3"),
    ],
)
def test_a_limit_of_another_type_is_refused(wrong, data):
    async def body(ctx):
        return {}

    with pytest.raises(SpecError, match=data):
        run(chain({"a": body}), limits=Limits(**wrong))


@pytest.mark.parametrize(
    ("limits", "digest"),
    [
        (
            Limits(tokens=5, cost=0.5, pricing=PRICING, estimate=Estimator(output_tokens=3)),
            "acdbf4a7293ded37",
        ),
        (Limits(estimate=Estimator()), "20b133e7feaa2842"),
        (Limits(pricing=PRICING, lanes={"x": 1, "a": 3}), "086ee616f1834f58"),
    ],
)
def test_digests_are_those_of_runs_that_were_recorded_before(limits, digest):
    assert GraphSpec(id="g", limits=limits).digest()[:16] == digest
