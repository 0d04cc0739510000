"""Meters: what bodies say that they use, counted in runs without limits on it."""

from __future__ import annotations

import asyncio
import copy
import pickle
from dataclasses import replace

import pytest

from axil import GraphSpec, Limits, RootGraph, SpecError
from axil.plugin import RunUsage
from axil.runtime.meters import Tally
from axil_journals import MemoryJournal
from axil_testing.specs import chain


async def goes(ctx):
    ctx.spend(cost=2.0)
    return {}


def run(graph, **options):
    return asyncio.run(graph.start({}, **options).result())


def test_a_resumed_run_counts_on_from_its_record():
    fails = [True]

    async def second(ctx):
        ctx.spend(cost=2.0, input_tokens=3)
        if ctx.activation.node == "b" and fails.pop():
            raise ConnectionError
        return {}

    graph, options = chain({"a": second, "b": second}), {"journal": MemoryJournal(), "run_id": "r"}
    assert run(graph, **options).status == "failed"
    fails.append(False)
    result = run(graph, **options)
    assert (result.status, result.usage.firings) == ("done", 3)
    assert (result.usage.cost, result.usage.tokens) == (6.0, {"input_tokens": 9})


def test_a_tally_adds_up_by_name_whatever_is_spent_or_settled_also_in_threads():
    def in_a_thread(ctx):
        ctx.spend(input_tokens=1)
        return {}

    async def settles(ctx):
        with await ctx.reserve(input_tokens=9) as reservation:
            reservation.settle(input_tokens=2, model="small", cached_tokens=1, output_tokens=3)
        with await ctx.reserve(input_tokens=9):
            pass
        return {}

    graph = RootGraph("g")
    for body, name in ((in_a_thread, "a"), (settles, "b")):
        graph.create_node(body, name=name)
        graph.edge_from_entry(name, keys={})
        graph.edge_to_exit(name, keys={})
    assert run(graph.build()).usage.tokens == {"input_tokens": 3, "output_tokens": 3}


def test_a_tally_counts_on_from_amounts_that_an_older_meter_recorded():
    tally = Tally(RunUsage(), lambda limit: None)
    tally.restore({"firings": 3, "cycles": {}, "amounts": {"cost": 0.5, "input_tokens": 1}})
    assert tally.as_data() == {"tokens": {"input_tokens": 1}, "cost": 0.5}


# ----------------------------------------------------------------------------------------- limits


def test_limits_are_copied_and_changed_like_other_data():
    limits = Limits(firings=3, cost=2.0)
    assert replace(limits, firings=4) == Limits(firings=4, cost=2.0)
    assert copy.deepcopy(limits) == pickle.loads(pickle.dumps(limits)) == limits  # noqa: S301
    assert limits.within(1.5).cost == 1.5
    assert Limits().within(-1.0).cost == 0.0


@pytest.mark.parametrize(
    ("least", "wrong"),
    [
        ({"firings": 0}, {"firings": -1}),
        ({"concurrency": 1}, {"concurrency": 0}),
        ({"cost": 0}, {"cost": -1}),
        ({"lanes": {"x": 1}}, {"lanes": {"x": 0}}),
    ],
)
def test_a_limit_is_no_number_below_its_least(least, wrong):
    assert Limits(**least) != Limits()
    with pytest.raises(SpecError, match=rf"AX128 limits\.{next(iter(wrong))}"):
        Limits(**wrong)


@pytest.mark.parametrize(
    ("limits", "digest"),
    [
        (Limits(), "20b133e7feaa2842"),
        (Limits(firings=3, seconds=2.5, concurrency=4, lanes={"human": 2}), "d39871637f4441b5"),
        (Limits(tokens=5), "f5bfeff9755d4e8a"),
        (Limits(cost=0.5), "ddd90fbeda4232d1"),
    ],
)
def test_digests_are_those_of_runs_that_were_recorded_when_limits_were_fields(limits, digest):
    assert GraphSpec(id="g", limits=limits).digest()[:16] == digest
