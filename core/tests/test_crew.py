"""Bodies in the hands of the crew: together where they wait, apart in all that they leave
behind.
"""

from __future__ import annotations

import asyncio
import itertools
from contextvars import ContextVar
from typing import Any

import pytest

from axil import Out
from axil.errors import NodeFailed
from axil.runtime.result import Result
from axil.runtime.run import run_sync
from axil.spec.graph import Limits
from axil_journals import MemoryJournal
from axil_testing.specs import edge, node, workflow

LEFT: ContextVar[str] = ContextVar("LEFT", default="")


def run(flow: Any, **options: Any) -> Result:
    async def go() -> Result:
        async with asyncio.timeout(60):
            return await flow.start({}, **options)

    return run_sync(go())


def task(id: str, body: Any) -> Any:
    return node(id, body, mode="async", ctx=True)


def chain(*bodies: Any) -> Any:
    names = [f"n{i}" for i in range(len(bodies))]
    nodes = [task(name, body) for name, body in zip(names, bodies, strict=True)]
    return workflow(nodes, [f"in {names[0]}", *(edge(a, b) for a, b in itertools.pairwise(names))])


def fan(body: Any, many: int) -> Any:
    return workflow([task(f"n{i}", body) for i in range(many)], [f"in n{i}" for i in range(many)])


class Turns:
    """The turns of the event loop while something runs."""

    count = 0

    async def beside(self, running: Any) -> Any:
        async def tick() -> None:
            while True:
                await asyncio.sleep(0)
                self.count += 1

        ticking = asyncio.create_task(tick())
        try:
            return await running
        finally:
            ticking.cancel()


class Stopwatch:
    """The time that the crew measures slices by: it goes on where a test says so, and a busy
    machine does not show.
    """

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def stopwatch(monkeypatch: pytest.MonkeyPatch) -> Stopwatch:
    watch = Stopwatch()
    monkeypatch.setattr("axil.runtime.pool.time", watch)
    return watch


def tasks(made: list[Any], does_wait: bool = False) -> Any:
    async def body(task: Any, ctx: Any) -> Out:
        made.append(asyncio.current_task())
        if does_wait:
            await asyncio.sleep(0.001)
        return Out({})

    return body


@pytest.mark.parametrize("does_wait", [False, True])
def test_a_chain_of_bodies_is_done_by_one_task(stopwatch, does_wait):
    made: list[Any] = []
    assert run(chain(*[tasks(made, does_wait)] * 20)).status == "done"
    assert len(made) == 20
    assert len(set(made)) == 1


def test_bodies_of_a_fan_that_do_not_wait_are_done_by_one_task_and_those_that_wait_by_one_each(
    stopwatch,
):
    short: list[Any] = []
    assert run(fan(tasks(short), 100)).status == "done"
    assert (len(short), len(set(short))) == (100, 1)
    meeting, long = asyncio.Barrier(100), list[Any]()

    async def meets(task: Any, ctx: Any) -> Out:
        long.append(asyncio.current_task())
        await meeting.wait()
        return Out({})

    assert run(fan(meets, 100)).status == "done"
    assert len(set(long)) == 100


def test_a_thousand_bodies_have_all_begun_before_the_loop_has_turned_often():
    """Hands are called twice as many each time, not one by one."""
    turns, meeting = Turns(), asyncio.Barrier(1000)
    seen: list[int] = []

    async def body(task, ctx):
        seen.append(turns.count)
        await meeting.wait()
        return Out({})

    assert asyncio.run(turns.beside(fan(body, 1000).start({}))).status == "done"
    assert max(seen) - min(seen) < 40


def test_what_a_body_leaves_in_context_variables_no_other_body_finds():
    found: list[str] = []

    async def body(task, ctx):
        found.append(LEFT.get())
        LEFT.set(ctx.activation.node)
        return Out({})

    async def go() -> None:
        LEFT.set("the caller's")
        assert (await chain(body, body, body).start({}).result()).status == "done"
        assert (await fan(body, 5).start({}).result()).status == "done"
        assert LEFT.get() == "the caller's"

    asyncio.run(go())
    assert found == ["the caller's"] * 8


def test_a_body_that_ended_although_it_was_cancelled_cancels_no_other():
    async def stubborn(task, ctx):
        me = asyncio.current_task()
        assert me is not None
        me.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(1)
        me.cancel()  # for whatever it waits for next
        return Out({})

    async def after(task, ctx):
        await asyncio.sleep(0)
        me = asyncio.current_task()
        assert me is not None
        assert not me.cancelling()
        return Out({})

    assert run(chain(stubborn, after, after)).status == "done"
    assert run(workflow([task("a", stubborn), task("b", after)], ["in a", "in b"])).status == "done"


def test_a_time_limit_inside_a_body_ends_with_it():
    async def late(task, ctx):
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        except TimeoutError:
            pass
        return Out({})

    async def after(task, ctx):
        async with asyncio.timeout(60):
            await asyncio.sleep(0.002)
        return Out({})

    assert run(chain(late, after, late, after)).status == "done"


@pytest.mark.parametrize("journaled", [False, True])
@pytest.mark.parametrize(("seconds", "most"), [(0.001, 6), (0.01, 11)])
def test_bodies_that_never_wait_leave_the_loop_its_turns(stopwatch, journaled, seconds, most):
    """After a slice of time; where a body takes longer than that, after some of them."""
    turns = Turns()

    async def busy(task, ctx):
        stopwatch.seconds += seconds
        return Out({})

    going = chain(*[busy] * 100).start({}, journal=MemoryJournal() if journaled else None)
    assert asyncio.run(turns.beside(going)).status == "done"
    assert turns.count >= 100 // most


def test_an_interrupt_ends_the_process_and_no_other_body_begins():
    error = KeyboardInterrupt
    began: list[str] = []

    async def body(task, ctx):
        began.append(ctx.activation.node)
        if ctx.activation.node == "n1":
            raise error
        return Out({})

    with pytest.raises(error):
        asyncio.run(fan(body, 5).start({}).result())
    assert began == ["n0", "n1"]


def test_a_hand_that_is_cancelled_by_somebody_who_kept_it_leaves_the_rest_to_another(stopwatch):
    """It is cancelled at the loop's turn between two bodies, which comes once they have taken a
    slice of time.
    """
    hands: list[Any] = []

    async def body(task, ctx):
        hands.append(asyncio.current_task())
        if len(hands) == 1:
            asyncio.get_running_loop().call_soon(hands[0].cancel)
        stopwatch.seconds += 0.001
        return Out({})

    assert run(chain(*[body] * 20)).status == "done"
    assert len(hands) == 20
    assert hands[0].cancelling()
    assert hands[-1] is not hands[0]


@pytest.mark.parametrize("concurrency", [None, 1])
def test_of_a_part_that_was_given_up_nothing_more_begins(concurrency):
    began: list[str] = []

    async def body(task, ctx):
        began.append(ctx.activation.node)
        if ctx.activation.node == "n0":
            raise ValueError("no")
        return Out({})

    inner = fan(body, 5).plan

    async def outer(task, ctx):
        with pytest.raises(NodeFailed):
            await ctx.part("first").run(inner, {}, name="sub")
        await asyncio.sleep(0.01)
        return Out({})

    assert (
        run(
            workflow([task("outer", outer)], ["in outer"]), limits=Limits(concurrency=concurrency)
        ).status
        == "done"
    )
    assert began == ["n0"]
