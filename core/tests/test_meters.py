"""Meters: limits that the runtime does not know, and what bodies say that they use."""

from __future__ import annotations

import asyncio
import copy
import pickle
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

import pytest

from axil import GraphSpec, LimitReached, Limits, RootGraph, SpecError
from axil.plugin import RunUsage
from axil.runtime.meters import Tally
from axil_journals import MemoryJournal


@dataclass(slots=True)
class Miles(RunUsage):
    """Firings, seconds, and miles."""

    miles: float = 0.0


class Odometer:
    """A meter of miles: no more than a run may go, and what was data before."""

    ledger = None

    def __init__(self, uses, stop):
        self.usage, self.most, self.stop, self.said = Miles(), uses.get("miles"), stop, []

    @property
    def has_spent(self):
        return bool(self.usage.miles)

    def spend(self, who, amounts):
        self.said.append((who.node, amounts))
        self.usage.miles += amounts["miles"]
        if self.most is not None and self.usage.miles > self.most:
            self.stop(LimitReached(f"the run went {self.usage.miles} miles."))

    async def reserve(self, who, wanted):
        self.said.append((who.node, wanted))
        return await Tally().reserve(who, wanted)

    def as_data(self):
        return {"miles": self.usage.miles}

    def restore(self, used):
        self.usage.miles = used.get("miles", 0.0)

    def close(self):
        self.said.append("closed")


def count_only(uses, stop):
    return Tally()


def chain(body, names="ab"):
    graph = RootGraph("g")
    for name in names:
        graph.create_node(body, name=name)
    graph.edge_from_entry(names[0], keys={})
    for source, target in pairwise(names):
        graph.create_edge(source, target, keys={})
    graph.edge_to_exit(names[-1], keys={})
    return graph.build()


async def goes(ctx):
    ctx.spend(miles=2.0)
    return {}


def run(graph, **options):
    return asyncio.run(graph.start({}, **options).result())


def test_limits_of_other_names_are_the_meters_and_end_the_run_when_it_says_so():
    result = run(chain(goes, "abc"), meter=Odometer, limits=Limits(miles=3.0))
    assert (result.status, str(result.error)) == ("limited", "AX403 the run went 4.0 miles.")
    assert asdict(result.usage) | {"seconds": 0} == {"firings": 2, "seconds": 0, "miles": 4.0}


def test_a_meter_receives_usage_requests_with_their_origin_and_the_end_of_the_run():
    async def body(ctx):
        ctx.spend(miles=1.0)
        await ctx.reserve(miles=5.0, by="bus")
        return {}

    async def main():
        started = chain(body, "a").start({}, meter=Odometer)
        await started.result()
        return started.meter.said

    data = [("a", {"miles": 1.0}), ("a", {"miles": 5.0, "by": "bus"}), "closed"]
    assert asyncio.run(main()) == data


@pytest.mark.parametrize(("meter", "field"), [(Odometer, "miles"), (count_only, "amounts")])
def test_a_resumed_run_counts_on_from_the_meters_record_in_the_journal(meter, field):
    fails = [True]

    async def second(ctx):
        ctx.spend(miles=2.0)
        if ctx.activation.node == "b" and fails.pop():
            raise ConnectionError
        return {}

    graph, options = chain(second), {"journal": MemoryJournal(), "run_id": "r", "meter": meter}
    assert run(graph, **options).status == "failed"
    fails.append(False)
    result = run(graph, **options)
    used = getattr(result.usage, field)
    assert (result.status, result.usage.firings) == ("done", 3)
    assert used == (6.0 if field == "miles" else {"miles": 6.0})


def test_a_tally_adds_up_by_name_whatever_is_spent_or_settled_also_in_threads():
    def in_a_thread(ctx):
        ctx.spend(miles=1)
        return {}

    async def settles(ctx):
        with await ctx.reserve(miles=9) as reservation:
            reservation.settle(miles=2, by="bus", feet=3)
        with await ctx.reserve(miles=9):
            pass
        return {}

    graph = RootGraph("g")
    for body, name in ((in_a_thread, "a"), (settles, "b")):
        graph.create_node(body, name=name)
        graph.edge_from_entry(name, keys={})
        graph.edge_to_exit(name, keys={})
    result = run(graph.build(), meter=count_only)
    assert result.usage.amounts == {"miles": 3, "feet": 3}
    with pytest.raises(AttributeError, match="no 'furlongs': its meter does not count it"):
        _ = result.usage.furlongs


def test_a_tally_keeps_the_record_of_another_meter():
    tally = Tally()
    tally.restore({"firings": 3, "cycles": {}, "miles": 2.0, "amounts": {"feet": 1}})
    assert tally.as_data() == {"miles": 2.0, "amounts": {"feet": 1}}


# ----------------------------------------------------------------------------------------- limits


def test_a_limit_of_any_name_is_read_by_name_and_none_is_none():
    limits = Limits(firings=3, miles=2.0, furlongs=None)
    assert (limits.miles, limits.furlongs, limits.uses) == (2.0, None, {"miles": 2.0})
    assert limits == Limits(firings=3, uses={"miles": 2.0}) != Limits(firings=3)
    assert replace(limits, firings=4) == Limits(firings=4, miles=2.0)
    assert copy.deepcopy(limits) == pickle.loads(pickle.dumps(limits)) == limits  # noqa: S301
    with pytest.raises(AttributeError):
        _ = limits._private


@pytest.mark.parametrize("wrong", [{"firings": -1}, {"concurrency": 0}, {"miles": -1}])
def test_a_limit_is_no_number_below_zero(wrong):
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
