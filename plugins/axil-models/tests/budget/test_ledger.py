"""Tokens and money: what is reserved, what is refused, who waits, and what is left when somebody
goes.
"""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given, strategies as st

from axil import Activation, Graph, LimitReached, Limits, RootGraph, SpecError
from axil.plugin import RunUsage
from axil_journals import MemoryJournal
from axil_models import (
    Budget,
    Estimate,
    Estimator,
    Ledger,
    OverBudget,
    Price,
    Pricing,
    UnknownPrice,
)

A, B = Activation((), "a"), Activation((), "b")
SMALL = Pricing(
    models={"small": Price(input=1, output=10, cached=0.5), "large": Price(input=100, output=100)}
)


def tokens(count):
    return Estimate(input_tokens=count, output_tokens=0)


def failing(tokens=None, cost=None, **more):
    return Budget(tokens=tokens, cost=cost, at_limit="fail_node", **more)


def test_what_is_reserved_counts_until_it_is_settled_or_released():
    async def main():
        ledger = Ledger(RunUsage(), failing(100))
        with await ledger.reserve(A, tokens(60)) as reservation:
            assert ledger.held == 1
            with pytest.raises(OverBudget, match="60 reserved"), reservation:
                await ledger.reserve(A, tokens(41))
            reservation.settle(input_tokens=10, output_tokens=5)
        assert (ledger.held, ledger.usage.tokens) == (0, {"input_tokens": 10, "output_tokens": 5})
        (await ledger.reserve(A, tokens(85))).release()

    asyncio.run(main())


def test_a_call_that_fits_only_when_another_used_less_waits_for_it():
    async def main():
        ledger, log = Ledger(RunUsage(), failing(100)), []

        async def call(who, held, used):
            with await ledger.reserve(who, tokens(held)) as reservation:
                log.append((who.node, "begins"))
                await asyncio.sleep(0)
                reservation.settle(input_tokens=used)
                log.append((who.node, "ends"))

        await asyncio.gather(call(A, 70, 20), call(B, 70, 30))
        assert log == [("a", "begins"), ("a", "ends"), ("b", "begins"), ("b", "ends")]
        assert ledger.usage.tokens == {"input_tokens": 50}

    asyncio.run(main())


def test_a_call_that_waited_in_vain_is_refused():
    async def main():
        ledger = Ledger(RunUsage(), failing(100))
        reservation = await ledger.reserve(A, tokens(70))
        other = asyncio.ensure_future(ledger.reserve(B, tokens(70)))
        await asyncio.sleep(0)
        assert ledger.waiting == 1
        reservation.settle(input_tokens=40)
        with pytest.raises(OverBudget, match="40 used, and a call may need 70 more"):
            await other
        assert (ledger.held, ledger.waiting) == (0, 0)

    asyncio.run(main())


def test_a_later_call_does_not_overtake_where_the_budget_is_scarce():
    async def main():
        ledger, order = Ledger(RunUsage(), failing(100)), []
        reservation = await ledger.reserve(A, tokens(70))

        async def call(name, count):
            with await ledger.reserve(Activation((), name), tokens(count)):
                order.append(name)

        jobs = [asyncio.ensure_future(call("large", 90)), asyncio.ensure_future(call("little", 10))]
        await asyncio.sleep(0)
        assert order == []
        reservation.release()
        await asyncio.gather(*jobs)
        assert order == ["large", "little"]

    asyncio.run(main())


def test_a_call_cancelled_as_it_is_granted_leaves_no_hold():
    async def main():
        ledger = Ledger(RunUsage(), failing(100))
        reservation = await ledger.reserve(A, tokens(70))
        other = asyncio.ensure_future(ledger.reserve(B, tokens(70)))
        await asyncio.sleep(0)
        reservation.release()
        assert ledger.held == 1
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
        assert (other.cancelled(), ledger.held, ledger.waiting) == (True, 0, 0)

    asyncio.run(main())


def test_a_call_cancelled_as_it_waits_lets_the_next_one_go():
    async def main():
        ledger = Ledger(RunUsage(), failing(100))
        await ledger.reserve(A, tokens(70))
        large = asyncio.ensure_future(ledger.reserve(B, tokens(90)))
        little = asyncio.ensure_future(ledger.reserve(Activation((), "c"), tokens(20)))
        await asyncio.sleep(0)
        assert ledger.waiting == 2
        large.cancel()
        await asyncio.gather(large, return_exceptions=True)
        await asyncio.wait_for(little, 60)
        assert (ledger.held, ledger.waiting) == (2, 0)

    asyncio.run(main())


def test_a_holder_is_refused_and_not_made_to_wait():
    async def main():
        ledger = Ledger(RunUsage(), failing(100))
        inside = Activation(("a", 0), "x")
        with await ledger.reserve(A, tokens(60)), pytest.raises(OverBudget):
            await ledger.reserve(inside, tokens(60))
        assert ledger.waiting == 0

    asyncio.run(main())


def test_a_hold_is_taken_from_all_accounts_or_from_none():
    async def main():
        ledger = Ledger(RunUsage(), failing(1000))
        sub = ledger.open("sub", failing(100))
        node = ledger.open("sub/x", failing(500))
        inside, beside = Activation(("sub",), "x"), Activation(("sub",), "y")
        with pytest.raises(OverBudget, match='"sub"'):
            await ledger.reserve(inside, tokens(101))
        assert (ledger.held, len(sub.reservations), len(node.reservations)) == (0, 0, 0)
        with await ledger.reserve(inside, tokens(80)):
            assert (ledger.held, len(sub.reservations), len(node.reservations)) == (1, 1, 1)
        with await ledger.reserve(beside, tokens(100)) as reservation:
            assert (ledger.held, len(sub.reservations), len(node.reservations)) == (1, 1, 0)
            reservation.settle(input_tokens=7)
        assert [sum(usage.tokens.values()) for usage in (ledger.usage, sub.usage, node.usage)] == [
            7,
            7,
            0,
        ]
        assert ledger.as_data() == {"sub": [{"input_tokens": 7}, 0.0], "sub/x": [{}, 0.0]}

    asyncio.run(main())


def test_accounts_count_for_what_is_inside_whatever_the_round_or_the_item():
    ledger = Ledger(RunUsage())
    sub = ledger.open("sub", Budget(tokens=1))
    for who in (Activation((), "sub"), Activation(("cycle(a,b)", 3, "sub", "#1.0", 7), "x")):
        assert ledger.accounts(who)[1:] == (sub,)
    for who in (Activation((), "x"), Activation((), "subway"), Activation(("x",), "sub")):
        assert ledger.accounts(who)[1:] == ()


@given(st.data())
def test_no_account_is_ever_over_its_limit_and_what_was_settled_is_what_was_spent(data):
    limits = {place: data.draw(st.integers(0, 60), place) for place in ("", "s", "s/a", "s/b", "c")}
    nodes = [
        Activation(("s",), "a"),
        Activation(("s",), "b"),
        Activation((), "c"),
        Activation((), "d"),
    ]
    turns = st.integers(0, 4)
    calls = data.draw(
        st.lists(
            st.tuples(st.sampled_from(nodes), st.integers(0, 40), st.floats(0, 1), turns, turns,
            st.none() | st.integers(0, 9)),
            min_size=1,
            max_size=14,
        ),
        "node, tokens, share that is used, turns before, turns at work, cancelled at",
    )  # fmt: skip
    ledger = Ledger(RunUsage(), failing(limits[""]))
    accounts = {
        "": ledger.accounts(nodes[3])[0],
        **{place: ledger.open(place, failing(limit)) for place, limit in limits.items() if place},
    }
    spent = dict.fromkeys(limits, 0)

    def hold_true():
        for place, account in accounts.items():
            assert (
                sum(account.usage.tokens.values())
                + sum(reservation.tokens for reservation in account.reservations)
                <= limits[place]
            )

    async def call(who, held, share, before, at_work):
        for _ in range(before):
            await asyncio.sleep(0)
        with await ledger.reserve(who, tokens(held)) as reservation:
            hold_true()
            for _ in range(at_work):
                await asyncio.sleep(0)
            used = int(held * share)
            reservation.settle(input_tokens=used)
            for account in reservation.accounts:
                spent[account.place] += used
        hold_true()

    async def main():
        jobs = [asyncio.ensure_future(call(*rest)) for *rest, _ in calls]
        for turn in range(10):
            for job, (*_, at) in zip(jobs, calls, strict=True):
                if at == turn:
                    job.cancel()
            await asyncio.sleep(0)
        outcomes = await asyncio.gather(*jobs, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} <= {
            type(None),
            OverBudget,
            asyncio.CancelledError,
        }

    asyncio.run(asyncio.wait_for(main(), 60))
    assert spent == {
        place: sum(account.usage.tokens.values()) for place, account in accounts.items()
    }
    assert (
        ledger.held,
        ledger.waiting,
        [len(account.reservations) for account in accounts.values()],
    ) == (
        0,
        0,
        [0] * 5,
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)), max_size=30
    )
)
def test_money_that_is_settled_adds_up(calls):
    async def main():
        ledger = Ledger(RunUsage(), Budget(pricing=SMALL))
        for given_, wanted, cached in calls:
            with await ledger.reserve(
                A, Estimate(models=("small",), input_tokens=given_, output_tokens=wanted)
            ) as reservation:
                reservation.settle(input_tokens=given_, output_tokens=wanted, cached_tokens=cached)
        return ledger.usage.cost

    expected = math.fsum(Price(input=1, output=10, cached=0.5).of(*call) for call in calls)
    assert asyncio.run(main()) == pytest.approx(expected)


# --------------------------------------------------------------------------------------------------


def test_a_call_is_held_at_its_dearest_and_settled_at_its_price():
    async def main():
        ledger = Ledger(RunUsage(), failing(cost=1.0, pricing=SMALL))
        either = Estimate(models=("small", "large"), input_tokens=1000, output_tokens=1000)
        with await ledger.reserve(A, either) as reservation:
            assert reservation.cost == pytest.approx(0.2)
            reservation.settle(
                model="small", input_tokens=1000, output_tokens=500, cached_tokens=400
            )
        assert ledger.usage.cost == pytest.approx(0.0058)
        with await ledger.reserve(A, either) as reservation:
            reservation.settle(model="large", input_tokens=1, cost=0.5)
        assert ledger.usage.cost == pytest.approx(0.5058), "what the provider says counts"
        with pytest.raises(OverBudget, match=r"a call may need 0\.6"):
            await ledger.reserve(A, Estimate(models=("large",), input_tokens=6000, output_tokens=0))

    asyncio.run(main())


def test_a_limit_is_not_passed_by_a_rounding():
    async def main():
        ledger = Ledger(RunUsage(), failing(cost=0.3))
        for _ in range(3):
            with await ledger.reserve(A, Estimate()) as reservation:
                reservation.settle(cost=0.1)
        (await ledger.reserve(A, Estimate())).release()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("unknown", "held"), [("ignore", 0.0), (Price(input=50, output=0), 0.05), ("refuse", None)]
)  # fmt: skip
def test_a_model_without_a_price(unknown, held):
    async def main():
        ledger = Ledger(
            RunUsage(), Budget(cost=1.0, pricing=Pricing(models=SMALL.models, unknown=unknown))
        )
        reservation = await ledger.reserve(
            A, Estimate(models=("smal",), input_tokens=1000, output_tokens=0)
        )
        return reservation.cost

    if held is None:
        with pytest.raises(UnknownPrice, match=r'"smal" has no price.*"small"'):
            asyncio.run(main())
    else:
        assert asyncio.run(main()) == pytest.approx(held)


def test_prices_that_are_not_needed_are_not_asked_for():
    async def main():
        ledger = Ledger(RunUsage(), Budget(tokens=5000, pricing=SMALL))
        with await ledger.reserve(A, Estimate(models=("?",), characters=10)) as reservation:
            assert (reservation.tokens, reservation.cost) == (3 + 1000, 0.0)
            reservation.settle(input_tokens=3)

    asyncio.run(main())


def test_the_pricing_of_the_innermost_place_counts():
    async def main():
        ledger = Ledger(RunUsage(), Budget(pricing=SMALL))
        ledger.open(
            "a", Budget(cost=9.0, pricing=Pricing(models={"small": Price(input=7, output=7)}))
        )
        with await ledger.reserve(
            A, Estimate(models=("small",), input_tokens=10**6, output_tokens=0)
        ) as reservation:
            reservation.settle(input_tokens=10**6)
        return ledger.usage.cost

    assert asyncio.run(main()) == 7


@pytest.mark.parametrize(
    "wrong",
    [
        {"input": -1, "output": 0},
        {"input": None, "output": 0},
        {"input": math.nan, "output": 0},
        {"input": True, "output": 1},
    ],
)
def test_a_price_is_a_number(wrong):
    with pytest.raises(SpecError, match="AX128"):
        Price(**wrong)


@pytest.mark.parametrize("said", [math.nan, math.inf, -1.0])
def test_a_cost_that_is_none_is_counted_as_the_prices_say(said):
    async def go():
        ledger = Ledger(RunUsage(), Budget(cost=10.0, pricing=SMALL))
        with await ledger.reserve(A, Estimate(models=("small",), input_tokens=1)) as reservation:
            reservation.settle(cost=said, input_tokens=1_000_000)
        return ledger.usage.cost

    assert asyncio.run(go()) == 1.0


def test_an_estimator_has_sound_figures():
    assert Estimate(characters=10).tokens(Estimator(characters_per_token=3, output_tokens=7)) == (
        4,
        7,
    )
    assert Estimate(characters=10, output_tokens=2).tokens(Estimator()) == (3, 2)
    assert Estimate().tokens(Estimator()) == (0, 0)
    for wrong in (0, math.nan, math.inf):
        with pytest.raises(SpecError, match="AX128"):
            Estimator(characters_per_token=wrong)


# --------------------------------------------------------------------------------------------------


def graph_of(body, width=1):
    graph = RootGraph("t")
    for n in range(width):
        graph.create_node(body, name=f"w{n}")
        graph.edge_from_entry(f"w{n}", {})
        graph.edge_to_exit(f"w{n}", ["n"])
    return graph.build()


def test_parallel_calls_that_pass_the_limit_only_together_do_not_both_start():
    begun = []

    async def body(ctx):
        with await ctx.reserve(input_tokens=30, output_tokens=30) as reservation:
            begun.append(ctx.activation.node)
            await asyncio.sleep(0)
            reservation.settle(input_tokens=30, output_tokens=30)
        return {"n": 1}

    async def main():
        return await graph_of(body, 2).start({}, limits=Limits(tokens=100)).result()

    result = asyncio.run(main())
    assert (result.status, result.error.id, begun) == ("limited", "AX413", ["w0"])
    assert result.usage.tokens == {"input_tokens": 30, "output_tokens": 30}
    assert "60 used, and a call may need 60 more" in str(result.error)


def test_a_limit_that_is_reached_cancels_the_caller_and_leaves_a_partial_result():
    cleaned = []

    async def body(ctx):
        try:
            await ctx.reserve(input_tokens=101)
        finally:
            cleaned.append(True)

    result = asyncio.run(graph_of(body).start({}, limits=Limits(tokens=100)).result())
    assert (result.status, cleaned) == ("limited", [True])
    assert isinstance(result.error, LimitReached)


def test_a_model_without_a_price_fails_its_node_where_money_is_limited():
    async def body(ctx):
        await ctx.reserve(model="new", characters=4)

    result = asyncio.run(graph_of(body).start({}, limits=Limits(cost=1.0, pricing=SMALL)).result())
    assert result.status == "failed"
    assert isinstance(result.error.__cause__, UnknownPrice)


def test_a_resumed_run_counts_on_from_what_the_journal_says():
    class Spender:
        """Opens an account, spends, and fails the first time."""

        fails = True

        async def __call__(self, ctx):
            ctx.ledger.open("w0", Budget(tokens=100))
            with await ctx.reserve(input_tokens=60) as reservation:
                reservation.settle(input_tokens=60)
            await ctx.step("data", self.nothing)
            if self.fails:
                raise ConnectionError
            return {"n": 1}

        async def nothing(self):
            return 1

    body, journal = Spender(), MemoryJournal()
    graph = graph_of(body)

    async def go():
        return await graph.start({}, journal=journal, run_id="r").result()

    assert asyncio.run(go()).status == "failed"
    body.fails = False
    result = asyncio.run(go())
    assert (result.status, result.error.id, result.error.where) == ("limited", "AX416", 'node "w0"')
    assert result.usage.tokens == {"input_tokens": 60}


@pytest.mark.parametrize("nested", [False, True])
def test_what_a_step_used_is_not_lost_when_its_entry_is_superseded(nested):
    """The firing's own entry says all of it again, and that of a graph around it."""
    fails = [True]

    async def spend(ctx):
        async def call():
            with await ctx.reserve(input_tokens=60) as reservation:
                reservation.settle(input_tokens=60)

        await ctx.step("call", call)
        return {"n": 1}

    async def broken():
        if fails.pop():
            raise ConnectionError
        return {"n": 2}

    graph = RootGraph("t")
    inner = graph.create_node(Graph, name="spend") if nested else graph
    inner.create_node(spend, name="x" if nested else "spend")
    if nested:
        inner.edge_from_entry("x", {})
        inner.edge_to_exit("x", ["n"])
    graph.create_node(broken, name="broken")
    graph.edge_from_entry("spend", {})
    graph.create_edge("spend", "broken", {})
    graph.edge_to_exit("broken", ["n"])
    graph.build()
    journal = MemoryJournal()

    async def go():
        return await graph.start({}, journal=journal, run_id="r").result()

    assert asyncio.run(go()).status == "failed"
    fails.append(False)
    result = asyncio.run(go())
    assert (result.output, result.usage.tokens) == ({"n": 2}, {"input_tokens": 60})


def test_a_failure_inside_a_part_is_raised_to_it_and_the_run_goes_on():
    """The seam that wrappers stand on: ``Context.part``."""
    seen = []

    class Twice:
        """Runs a graph twice in parts of its own."""

        def wrap(self, body, node):
            plan = node.single()

            class Body:
                mode = "async"
                wants_ctx = True

                async def __call__(self, task, ctx):
                    from axil import Out

                    for name in ("one", "two"):
                        try:
                            await ctx.part(name).run(plan, {}, name="x")
                        except Exception as error:  # noqa: BLE001
                            # whatever it is, it is what is tested
                            seen.append((type(error).__name__, type(error.__cause__).__name__))
                    return Out({"n": 1})

            return Body()

    def fail():
        raise ValueError("inside")

    graph = RootGraph("t")
    inner = graph.create_node(Graph, name="sub", wrappers=[Twice()])
    inner.create_node(fail, name="bad", inline=True)
    inner.edge_from_entry("bad", {})
    inner.edge_to_exit("bad", {})
    graph.edge_from_entry(inner, {})
    graph.edge_to_exit(inner, ["n"])
    result = asyncio.run(graph.build().start({}).result())
    assert (result.status, result.output) == ("done", {"n": 1})
    assert seen == [("NodeFailed", "ValueError")] * 2
