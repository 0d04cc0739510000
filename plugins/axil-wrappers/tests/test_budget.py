"""``budget``: what a node may use, what happens when it is used up, and that all of it is one
ledger.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, strategies as st

from axil import ConfigError, Graph, Limits, RootGraph
from axil_journals import MemoryJournal
from axil_models import OverBudget, Price, Pricing
from axil_wrappers import Budget, Cache, Fallback, Limit, Retry, Timeout
from axil_wrappers.cache import _flights


def caller(needs, uses=None, log=None, seconds=1.0):
    """Return a body that makes one call."""

    async def body(ctx):
        with await ctx.reserve(model="small", input_tokens=needs, output_tokens=0) as reservation:
            if log is not None:
                log.append(ctx.activation.node)
            await ctx.sleep(seconds)
            reservation.settle(model="small", input_tokens=needs if uses is None else uses)
        return {"n": 1}

    return body


def test_a_budget_needs_the_meter_that_it_is_an_account_of(stage, registry):
    class Other:
        """A meter that counts nothing."""

        ledger, has_spent = None, False

        def __init__(self, usage, limits, stop):
            self.usage = usage

        def close(self):
            pass

    registry.register("meters", "budget", Other, instead=True)
    result = stage.run(caller(1), Budget(tokens=100))
    assert "AX128" in str(result.error)
    assert "the run has another" in str(result.error)


def test_a_node_that_stays_within_its_budget_is_left_alone(stage):
    result = stage.run(caller(100), Budget(tokens=100))
    assert (result.status, result.usage.tokens) == ("done", {"input_tokens": 100})


def test_a_budget_that_is_used_up_ends_the_run_with_a_partial_result_and_a_name(stage):
    result = stage.run(caller(101), Budget(tokens=100))
    assert (result.status, result.error.id, result.error.where) == (
        "limited",
        "AX416",
        'node "work"',
    )
    assert 'the budget of "work" is 100 tokens: 0 used, and a call may need 101 more' in str(
        result.error
    )


def test_or_it_fails_its_node_and_others_may_stand_in(stage):
    result = stage.run(caller(101), Budget(tokens=100, on_limit="fail_node"))
    assert (result.status, type(result.error.__cause__)) == ("failed", OverBudget)
    result = stage.run(
        caller(101), Fallback(value={"n": 0}), Budget(tokens=100, on_limit="fail_node")
    )
    assert (result.status, result.output) == ("done", {"n": 0})


@pytest.mark.parametrize("inside", [True, False])
def test_a_budget_that_is_used_up_is_not_tried_again(stage, inside):
    log, budget, retry = (
        [],
        Budget(tokens=150, on_limit="fail_node"),
        Retry(on="Exception", wait_seconds=0),
    )

    async def body(ctx):
        log.append(1)
        await caller(100)(ctx)
        raise ConnectionError

    stage.run(body, *([retry, budget] if inside else [budget, retry]))
    assert len(log) == 2, "once for the error, and once until the budget"


def subgraph(body, *wrappers, width=2, **options):
    graph = RootGraph("outer", **options)
    inner = graph.create_node(Graph, name="sub", wrappers=wrappers)
    for n in range(width):
        inner.create_node(body, name=f"w{n}")
        inner.edge_from_entry(f"w{n}", {})
        inner.edge_to_exit(f"w{n}", ["n"])
    graph.edge_from_entry(inner, {})
    graph.edge_to_exit(inner, ["n"])
    return graph.build()


def test_the_budget_of_a_graph_is_shared_by_all_that_is_in_it(stage):
    log = []
    graph = subgraph(caller(60, log=log), Budget(tokens=100), width=3)
    result = asyncio.run(graph.start({}, clock=stage.clock).result())
    assert (result.status, result.error.where, len(log)) == ("limited", 'node "sub"', 1)
    assert result.usage.tokens == {"input_tokens": 60}


def test_parallel_calls_wait_for_what_others_may_leave_over(stage):
    log = []
    graph = subgraph(caller(60, 20, log), Budget(tokens=100), width=3)
    result = asyncio.run(graph.start({}, clock=stage.clock).result())
    assert (result.status, len(log), stage.clock.now()) == ("done", 3, 3)
    assert result.usage.tokens == {"input_tokens": 60}


def test_a_graph_that_fails_for_want_of_its_budget_is_the_node_that_failed(stage):
    graph = subgraph(caller(60), Budget(tokens=50, on_limit="fail_node"))
    result = asyncio.run(graph.start({}, clock=stage.clock).result())
    assert (result.status, result.error.path) == ("failed", "sub")
    assert result.error.__cause__.where == 'node "sub"'


def test_a_graph_inside_a_graph_counts_for_both(stage):
    graph = subgraph(caller(60, 10), Budget(tokens=1000), limits=Limits(tokens=65))
    result = asyncio.run(graph.start({}, clock=stage.clock).result())
    assert (result.status, result.error.id, result.usage.tokens) == (
        "limited",
        "AX413",
        {"input_tokens": 10},
    )


def test_a_budget_is_for_all_firings_of_a_run(stage):
    graph = RootGraph("t", cycles="allow")
    graph.create_node(caller(40), name="work", wrappers=[Budget(tokens=100)])
    graph.edge_from_entry("work", {})
    graph.create_edge("work", "work", {})
    graph.edge_to_exit("work", {}, trigger=False)
    graph.set_cycle_limit("work", 9)
    result = asyncio.run(graph.build().start({}, clock=stage.clock).result())
    assert (result.status, result.error.id, result.usage.tokens) == (
        "limited",
        "AX416",
        {"input_tokens": 80},
    )


def test_what_is_reported_afterwards_counts_too(stage):
    async def body(ctx):
        ctx.spend(input_tokens=200)
        return {"n": 1}

    assert stage.run(body, Budget(tokens=100)).error.id == "AX416"
    result = stage.run(body, Budget(tokens=100, on_limit="fail_node"))
    assert (result.status, type(result.error.__cause__)) == ("failed", OverBudget)


PRICES = {"models": {"small": {"input": 2, "output": 8}}}


@pytest.mark.parametrize(
    ("pricing", "status"),
    [(PRICES, "limited"), ({"unknown": "refuse"}, "failed"), ({"unknown": "ignore"}, "done"),
     ({"unknown": {"input": 2, "output": 8}}, "limited")],
)  # fmt: skip
def test_money_by_the_prices_that_are_given(stage, pricing, status):
    assert stage.run(caller(600_000), Budget(cost=1, pricing=pricing)).status == status


def test_money_by_the_prices_of_the_run(stage):
    limits = Limits(pricing=Pricing(models={"small": Price(input=2, output=8)}))
    result = stage.run(caller(400_000), Budget(cost=1), limits=limits)
    assert (result.status, result.usage.cost) == ("done", pytest.approx(0.8))
    assert stage.run(caller(600_000), Budget(cost=1), limits=limits).status == "limited"


@pytest.mark.parametrize(
    "config",
    [{}, {"tokens": 0}, {"cost": -1}, {"tokens": 1, "on_limit": "ignore"}, {"cost": 1,
    "pricing": {"small": 3}},
     {"cost": 1, "pricing": {"models": {"small": 3}}}, {"cost": 1, "pricing": {"unknown": "guess"}},
     {"cost": 1, "pricing": {"models": {"small": {"input": -1, "output": 1}}}}],
)  # fmt: skip
def test_a_setting_without_meaning_is_refused(config):
    with pytest.raises(ConfigError):
        Budget(**config)


def test_a_resumed_run_counts_on(stage):
    calls = []

    async def body(ctx):
        await ctx.step("call", lambda: caller(60)(ctx))
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError
        await ctx.step("another", lambda: caller(60)(ctx))
        return {"n": 1}

    graph, journal = stage.graph(body, Budget(tokens=100)), MemoryJournal()
    assert asyncio.run(stage.arun(graph, journal=journal, run_id="r")).status == "failed"
    result = asyncio.run(stage.arun(graph, journal=journal, run_id="r"))
    assert (result.status, result.usage.tokens) == ("limited", {"input_tokens": 60}), (
        "once for the recorded step, and no room for another"
    )


WRAPPERS = {
    "retry": lambda: Retry(tries=3, seed=1, deadline_seconds=1000),
    "timeout": lambda: Timeout(seconds=4),
    "cache": lambda: Cache(version="x"),
    "fallback": lambda: Fallback(value={"n": -1}),
    "limit": lambda: Limit(concurrency=2, calls=3, period_seconds=2),
    "budget": lambda: Budget(tokens=400, on_limit="fail_node"),
}


@given(
    order=st.lists(st.sampled_from(sorted(WRAPPERS)), max_size=5),
    fates=st.lists(
        st.sampled_from(["ends well", "fails", "is slow", "spends too much"]),
        min_size=1,
        max_size=8,
    ),
    cancelled=st.none() | st.floats(0, 12),
    shape=st.sampled_from(["async", "graph"]),
)
def test_wrappers_compose_in_every_order_and_leave_nothing_behind(
    new_stage, order, fates, cancelled, shape
):
    Cache.memory.clear()
    stage, made, fate = new_stage(), [], iter(fates)
    at_work = 0

    async def body(ctx):
        nonlocal at_work
        doing = next(fate, "ends well")
        at_work += 1
        try:
            with await ctx.reserve(
                input_tokens=350 if doing == "spends too much" else 60
            ) as reservation:
                await ctx.sleep(9 if doing == "is slow" else 1)
                if doing == "fails":
                    raise ConnectionError
                reservation.settle(input_tokens=50)
        finally:
            at_work -= 1
        return {"n": 1}

    def wrappers():
        made.append([WRAPPERS[name]() for name in order])
        return made[-1]

    graph = RootGraph("t")
    for n in range(3):
        if shape == "async":
            graph.create_node(body, name=f"w{n}", wrappers=wrappers())
        else:
            inner = graph.create_node(Graph, name=f"w{n}", wrappers=wrappers())
            inner.create_node(body, name="x")
            inner.edge_from_entry("x", {})
            inner.edge_to_exit("x", ["n"])
        graph.edge_from_entry(f"w{n}", {})
        graph.edge_to_exit(f"w{n}", ["n"])
    graph.build()

    async def main():
        run = graph.start({}, clock=stage.clock, limits=Limits(tokens=2000))
        job = asyncio.ensure_future(run.result())
        if cancelled is not None:
            await stage.clock.sleep(cancelled)
            run.cancel()
        return run, await job, _flights.get()

    run, result, flights = asyncio.run(asyncio.wait_for(main(), 60))
    assert result.status in ("done", "failed", "limited", "cancelled")
    ledger = run.meter.ledger
    assert (ledger.held, ledger.waiting, at_work, stage.clock.sleeping) == (0, 0, 0, 0)
    for limit in (each for some in bodies(run.plan) for each in some):
        assert (limit.inside, limit.waiting) == (0, 0)
    assert sum(result.usage.tokens.values()) <= 2000
    assert flights == {}


def bodies(plan):
    """Yield the limiters of all nodes, however deep inside other wrappers."""
    for vertex in plan.graph.vertices:
        found, body = [], vertex.body
        while body is not None:
            if hasattr(body, "limiter"):
                found.append(body.limiter)
            inside = getattr(body, "inside", None)
            body = getattr(inside, "_body", None)
        yield found
