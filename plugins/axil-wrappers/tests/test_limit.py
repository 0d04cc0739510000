"""``limit``: how many at once, how many in a while, in what order, and that nothing is left
behind.
"""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest
from hypothesis import given, strategies as st

from axil import ConfigError, RootGraph
from axil.driver import RealClock
from axil_testing import VirtualClock
from axil_wrappers import Limit, LimiterConflict
from axil_wrappers.limiter import Limiter, Pace, limiter


def fan(width, body, **limit):
    graph = RootGraph("t")
    for n in range(width):
        graph.create_node(body, name=f"w{n}", wrappers=[Limit(**limit)])
        graph.edge_from_entry(f"w{n}", {})
        graph.edge_to_exit(f"w{n}", {})
    return graph.build()


def test_nodes_that_name_one_limiter_share_its_room(stage):
    at_work, most = 0, 0

    async def body(ctx):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await ctx.sleep(1)
        at_work -= 1
        return {}

    result = asyncio.run(
        fan(7, body, name="shared", concurrency=3).start({}, clock=stage.clock).result()
    )
    assert (result.status, most, stage.clock.now()) == ("done", 3, 3)


def test_runs_share_a_limiter_too(stage):
    at_work, most = 0, 0

    async def body(ctx):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await ctx.sleep(1)
        at_work -= 1
        return {"n": 1}

    graph = stage.graph(body, Limit(name="runs", concurrency=2))

    async def main():
        return await asyncio.gather(*(stage.arun(graph) for _ in range(6)))

    assert {result.status for result in asyncio.run(main())} == {"done"}
    assert (most, stage.clock.now()) == (2, 3)


def test_firings_begin_at_the_pace_that_is_said(stage):
    began = []

    async def body(ctx):
        began.append(ctx.clock.now())
        return {}

    asyncio.run(
        fan(7, body, name="pace", calls=2, period_seconds=10, burst=1)
        .start({}, clock=stage.clock)
        .result()
    )
    assert began == pytest.approx([0, 5, 10, 15, 20, 25, 30])


@given(
    calls=st.integers(1, 5), period=st.floats(0.1, 100), burst=st.none() | st.integers(1, 5),
    arrivals=st.lists(st.floats(0, 50), min_size=1, max_size=20),
)  # fmt: skip
def test_no_window_sees_more_than_the_burst_and_the_rate(calls, period, burst, arrivals):
    clock, passed = VirtualClock(), []
    gate = Limiter(Pace(calls=calls, period_seconds=period, burst=burst))

    async def come(at):
        await clock.sleep(at)
        await gate.enter(clock)
        passed.append(clock.now())
        gate.leave()

    async def main():
        await asyncio.gather(*(come(at) for at in arrivals))

    asyncio.run(main())
    most, rate = burst or calls, calls / period
    assert len(passed) == len(arrivals)
    for i, first in enumerate(passed):
        for j in range(i, len(passed)):
            assert j - i + 1 <= most + (passed[j] - first) * rate + 1e-6


@given(st.data())
def test_a_cancellation_anywhere_leaves_nothing_behind(data):
    clock = VirtualClock()
    gate = Limiter(
        Pace(
            concurrency=data.draw(st.integers(1, 3)),
            calls=data.draw(st.none() | st.integers(1, 3)),
            period_seconds=5,
        )
    )
    plans = data.draw(
        st.lists(
            st.tuples(st.floats(0, 5), st.floats(0, 5), st.none() | st.floats(0, 12)),
            min_size=1,
            max_size=12,
        )
    )
    inside, served = 0, []

    async def come(number, arrives, stays):
        nonlocal inside
        await clock.sleep(arrives)
        await gate.enter(clock)
        try:
            inside += 1
            assert inside <= gate.pace.concurrency
            served.append(number)
            await clock.sleep(stays)
        finally:
            inside -= 1
            gate.leave()

    async def main():
        jobs = [
            asyncio.ensure_future(come(i, arrives, stays))
            for i, (arrives, stays, _) in enumerate(plans)
        ]

        async def end(job, at):
            await clock.sleep(at)
            job.cancel()

        ends = [
            asyncio.ensure_future(end(job, at))
            for job, (_, _, at) in zip(jobs, plans, strict=True)
            if at is not None
        ]
        done = await asyncio.gather(*jobs, return_exceptions=True)
        await asyncio.gather(*ends)
        for (_, _, at), outcome in zip(plans, done, strict=True):
            assert outcome is None or (
                at is not None and isinstance(outcome, asyncio.CancelledError)
            )

    asyncio.run(main())
    assert (gate.inside, gate.waiting, clock.sleeping) == (0, 0, 0)


def test_first_come_first_served():
    clock, order = VirtualClock(), []
    gate = Limiter(Pace(concurrency=1))

    async def come(number):
        await gate.enter(clock)
        order.append(number)
        await clock.sleep(1 if number % 2 else 0)
        gate.leave()

    async def main():
        await asyncio.gather(*(come(n) for n in range(20)))

    asyncio.run(main())
    assert order == list(range(20))


def test_runs_in_several_threads_share_a_limiter():
    gate = Limiter(Pace(concurrency=1))
    inside, most, lock = 0, 0, threading.Lock()

    async def come():
        nonlocal inside, most
        for _ in range(20):
            await gate.enter(RealClock())
            with lock:
                inside += 1
                most = max(most, inside)
            await asyncio.sleep(0)
            with lock:
                inside -= 1
            gate.leave()

    threads = [threading.Thread(target=lambda: asyncio.run(come())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (most, gate.inside, gate.waiting) == (1, 0, 0)
    assert not any(thread.is_alive() for thread in threads)


def test_one_name_with_two_meanings_is_refused_as_long_as_the_first_is_held():
    held = limiter("two", Pace(concurrency=1))
    with pytest.raises(LimiterConflict, match="AX834"):
        limiter("two", Pace(concurrency=2))
    assert limiter("two", Pace(concurrency=1)) is held
    del held
    gc.collect()
    assert limiter("two", Pace(concurrency=2)).pace.concurrency == 2


def test_without_a_name_a_node_has_a_limiter_of_its_own():
    assert limiter("", Pace(concurrency=1)) is not limiter("", Pace(concurrency=1))


@pytest.mark.parametrize(
    "config",
    [{}, {"concurrency": 0}, {"calls": 0}, {"calls": 1, "period_seconds": 0}, {"name": "x"}],
)
def test_a_setting_without_meaning_is_refused(config):
    with pytest.raises(ConfigError):
        Limit(**config)
