"""Time stands still while anything can run, then jumps."""

from __future__ import annotations

import asyncio
import time

import pytest

from axil import Limits, RootGraph
from axil_testing import VirtualClock


def test_no_real_time_passes():
    clock = VirtualClock()
    before = time.monotonic()
    asyncio.run(clock.sleep(10_000_000))
    assert time.monotonic() - before < 60
    assert clock.now() == 10_000_000


def test_time_stands_still_while_anything_is_ready():
    clock = VirtualClock()
    seen: list[float] = []

    async def busy():
        for _ in range(500):
            await asyncio.sleep(0)
        seen.append(clock.now())

    async def go():
        await asyncio.gather(clock.sleep(5), busy())

    asyncio.run(go())
    assert seen == [0.0]
    assert clock.now() == 5.0


def test_sleepers_wake_by_deadline_and_then_in_the_order_in_which_they_lay_down():
    clock = VirtualClock()
    woke: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float):
        await clock.sleep(seconds)
        woke.append((name, clock.now()))

    async def go():
        await asyncio.gather(
            sleeper("late", 3),
            sleeper("a", 1),
            sleeper("b", 1),
            sleeper("now", 0),
            sleeper("past", -1),
        )

    asyncio.run(go())
    assert woke == [("now", 0.0), ("past", 0.0), ("a", 1.0), ("b", 1.0), ("late", 3.0)]


def test_what_one_sleeper_starts_is_done_before_the_next_one_wakes():
    clock = VirtualClock()
    order: list[str] = []

    async def first():
        await clock.sleep(1)
        for _ in range(20):
            await asyncio.sleep(0)
        order.append("done with the first")

    async def second():
        await clock.sleep(2)
        order.append("second")

    async def go():
        await asyncio.gather(second(), first())

    asyncio.run(go())
    assert order == ["done with the first", "second"]


def test_a_sleeper_who_is_cancelled_is_not_waited_for():
    clock = VirtualClock()

    async def go():
        job = asyncio.ensure_future(clock.sleep(100))
        await asyncio.sleep(0)
        job.cancel()
        await clock.sleep(1)

    asyncio.run(go())
    assert clock.now() == 1.0
    assert clock.sleeping == 0


def test_time_can_be_moved_by_hand_and_never_back():
    clock = VirtualClock(start=10)

    async def go():
        job = asyncio.ensure_future(clock.sleep(5))
        await asyncio.sleep(0)
        clock.advance(7)
        await job

    asyncio.run(go())
    assert clock.now() == 17
    with pytest.raises(ValueError, match="back"):
        clock.advance(-1)


def test_a_loop_that_does_not_say_what_is_ready_is_given_some_turns(monkeypatch):
    monkeypatch.setattr(
        VirtualClock,
        "_is_idle",
        lambda self, loop, asked=VirtualClock._is_idle: asked(self, object()),
    )
    clock = VirtualClock()
    asyncio.run(clock.sleep(60))
    assert clock.now() == 60


def test_one_clock_serves_one_loop_after_another():
    clock = VirtualClock()
    for _ in range(3):
        asyncio.run(clock.sleep(1))
    assert clock.now() == 3


def test_one_loop_has_several_clocks():
    clocks = [VirtualClock(), VirtualClock()]

    async def go():
        async with asyncio.timeout(60):
            await asyncio.gather(*(clock.sleep(seconds) for clock in clocks for seconds in (5, 3)))

    asyncio.run(go())
    assert [clock.now() for clock in clocks] == [5.0, 5.0]


def test_a_clock_is_not_held_up_by_one_whose_sleepers_were_cancelled_when_the_loop_stopped():
    with asyncio.Runner() as runner:
        with pytest.raises(TimeoutError):
            runner.run(_cut_short(VirtualClock()))
        runner.run(asyncio.wait_for(VirtualClock().sleep(5), 60))


async def _cut_short(clock: VirtualClock) -> None:
    async with asyncio.timeout(0):
        await clock.sleep(5)


def test_a_run_sleeps_on_it_and_its_limits_are_measured_by_it():
    async def nap(ctx):
        await ctx.sleep(3600)
        return {"message": f"{ctx.now():.0f}"}

    g = RootGraph("g")
    a = g.create_node(nap, name="a")
    g.edge_from_entry(a, {})
    g.edge_to_exit(a)
    g.build()
    assert g.invoke({}, clock=VirtualClock())[0] == {"message": "3600"}
    clock = VirtualClock()
    result = asyncio.run(g.run({}, clock=clock, limits=Limits(seconds=60)))
    assert (result.status, clock.now()) == ("limited", 60)
