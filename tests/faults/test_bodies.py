"""Bodies that raise, hang, talk nonsense, or are cancelled wherever they wait; observers that
raise.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import pytest
from tests.internals import internal

from axil import (
    AxilError,
    EdgeSpec,
    Limits,
    NodeFailed,
    Out,
    Result,
    RootGraph,
    Workflow,
    run_sync,
)
from axil.plugin import BodyError
from axil_journals import MemoryJournal
from axil_testing import JumpingClock, VirtualClock

from .tools import finish, flow, node

# ------------------------------------------------------------------------------------------------ r


def sync(task, ctx):
    raise LookupError("no")


async def waiting(task, ctx):
    await asyncio.sleep(0)
    raise LookupError("no")


@pytest.mark.parametrize(
    ("call", "mode"),
    [(sync, "inline"), (sync, "thread"), (sync, "async"), (waiting, "async"), (waiting, "inline")],
)
def test_a_body_that_raises_fails_its_node_whatever_kind_it_is(call, mode):
    result = finish(flow([node("a", call, mode), node("b")], "in>a", "a>b"))
    assert result.status == "failed"
    assert isinstance(result.error, NodeFailed)
    assert result.error.path == "a"
    assert isinstance(result.error.__cause__, LookupError)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("I cannot be told")


@pytest.mark.parametrize(
    "error",
    [
        StopIteration(),
        StopAsyncIteration(),
        AssertionError(),
        RecursionError("deep"),
        MemoryError(),
        TimeoutError(),
        asyncio.CancelledError(),
        Unspeakable(),
        ExceptionGroup("two", [ValueError("a"), ValueError("b")]),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("mode", ["inline", "thread", "async"])
def test_whatever_a_body_raises_is_the_failure_of_its_node(error, mode):
    if mode == "inline" and isinstance(error, asyncio.CancelledError):
        pytest.skip("an inline body is the run itself: cancelling it cancels the run")

    def call(task, ctx):
        raise error

    result = finish(flow([node("a", call, mode)], "in>a"))
    assert result.status == "failed"
    assert isinstance(result.error, NodeFailed)
    assert result.error.path == "a"


def test_a_run_that_failed_leaves_its_workflow_as_it_was():
    fail = True

    def call(task, ctx):
        if fail:
            raise ValueError("once")
        return Out({"m": 1})

    workflow = flow([node("a", call)], "in>a", "a>out")
    assert finish(workflow).status == "failed"
    fail = False
    assert finish(workflow).output == {"m": 1}


# ------------------------------------------------------------------------------------------------ h


async def forever(task, ctx):
    await asyncio.Event().wait()


def test_a_body_that_hangs_is_ended_by_the_limit_of_seconds():
    clock = VirtualClock()
    result = finish(
        flow([node("a", forever, "async"), node("b")], "in>a", "in>b", "b>out"),
        limits=Limits(seconds=30),
        clock=clock,
    )
    assert result.status == "limited"
    assert result.error.id == "AX415"
    assert clock.now() == 30


def test_a_body_that_hangs_in_a_sub_run_is_ended_too():
    inner = flow([node("w", forever, "async")], "in>w")

    async def outer(task, ctx):
        await ctx.run(inner.plan, {}, name="sub")

    result = finish(
        flow([node("a", outer, "async")], "in>a"), limits=Limits(seconds=30), clock=VirtualClock()
    )
    assert result.status == "limited"


def test_a_body_that_sleeps_past_the_limit_is_ended_at_the_limit():
    async def nap(task, ctx):
        await ctx.sleep(100)

    clock = VirtualClock()
    assert (
        finish(
            flow([node("a", nap, "async")], "in>a"), limits=Limits(seconds=30), clock=clock
        ).status
        == "limited"
    )
    assert clock.now() == 30


def test_a_body_that_takes_its_time_to_go_is_waited_for():
    gone = False

    async def slow(task, ctx):
        nonlocal gone
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(50):
                await asyncio.sleep(0)
            gone = True

    finish(flow([node("a", slow, "async")], "in>a"), limits=Limits(seconds=1), clock=VirtualClock())
    assert gone


# ------------------------------------------------------------------------------------------------ n

NONSENSE = [
    None,
    1,
    "text",
    b"bytes",
    [1],
    (),
    {1},
    object(),
    len,
    Exception("x"),
    Out,
    float("nan"),
    iter(()),
]


@pytest.mark.parametrize("value", NONSENSE, ids=lambda value: type(value).__name__)
def test_a_result_that_is_no_mapping_fails_its_node_and_says_what_it_was(value):
    g = RootGraph("g")
    g.edge_from_entry(g.create_node(lambda inputs: value, name="a", inline=True), {})
    g.edge_to_exit("a", {})
    with pytest.raises(NodeFailed) as error:
        g.build().invoke({})
    assert isinstance(error.value.__cause__, BodyError)
    assert type(value).__name__ in str(error.value)


def test_a_function_that_returns_an_awaitable_is_reported():
    made: list[Any] = []

    async def later():
        return {"m": 1}

    def call(inputs):
        made.append(later())
        return made[0]

    g = RootGraph("g")
    g.edge_from_entry(g.create_node(call, name="a", inline=True), {})
    g.edge_to_exit("a", {})
    with pytest.raises(NodeFailed, match="await it"):
        g.build().invoke({})
    made[0].close()


@pytest.mark.parametrize(
    "out",
    [
        Out({}, {1: 2}),
        Out({}, "text"),
        Out({}, to=frozenset({"nobody"})),
        Out({}, to=frozenset({1})),
    ],
)  # type: ignore[arg-type]
def test_an_outcome_that_means_nothing_fails_its_node(out):
    result = finish(flow([node("a", lambda task, ctx: out)], "in>a", "a>out"))
    assert isinstance(result.error, NodeFailed)
    assert isinstance(result.error.__cause__, AxilError)


class Hostile(dict):
    """A mapping that breaks when it is looked at."""

    def __iter__(self):
        raise RuntimeError("do not look")

    def items(self):
        raise RuntimeError("do not look")

    keys = items


def test_a_result_that_breaks_when_it_is_looked_at_fails_its_node():
    g = RootGraph("g")
    a = g.create_node(lambda inputs: Hostile(x=1), name="a", inline=True)
    g.edge_from_entry(a, {})
    g.edge_to_exit(a, ["x"])
    with pytest.raises(NodeFailed):
        g.build().invoke({})


class Unequal:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("cannot be compared")

    __hash__ = object.__hash__


def test_values_that_cannot_be_compared_travel_like_any_other():
    thing = Unequal()
    edges = ["in>a", EdgeSpec(source="a", target="b", filter=lambda state: dict(state)), "b>out"]
    workflow = flow(
        [node("a", lambda task, ctx: Out({}, {"x": thing})), node("b")], *edges, attributes={"x": 0}
    )
    assert finish(workflow).attributes["x"] is thing


# ------------------------------------------------------------------------------------------------ c


def machinery(ran: list[str]) -> Workflow:
    """Async bodies, a cycle, a sub-run, steps, sleeps and a thread-free join: something of
    everything that waits.
    """

    async def fetch():
        await asyncio.sleep(0)
        return {"page": 1}

    def noted(name: str, awaits: int = 2):
        async def call(task, ctx):
            for _ in range(awaits):
                await asyncio.sleep(0)
            ran.append(str(ctx.activation))
            n = (task.state.get(f"@node/{name}") or {}).get("n", 0) + 1
            return Out({"by": name, "n": n}, {f"@node/{name}": {"n": n}, "x": task.state["x"] + 1})

        return call

    inner = flow([node("w", noted("w"), "async")], "in>w", "w>out")

    async def outer(task, ctx):
        page = await ctx.step("fetch", fetch)
        await ctx.sleep(5)
        parts = await asyncio.gather(*(ctx.run(inner.plan, {}, name=i) for i in range(2)))
        ran.append(str(ctx.activation))
        return Out({"parts": len(parts), **page}, parts[-1].changes)

    nodes = [
        node("a", noted("a"), "async"),
        node("b", noted("b"), "async"),
        node("m", outer, "async"),
        node("t", noted("t"), "async"),
    ]
    again = EdgeSpec(source="b", target="a", condition=lambda payload: payload["n"] < 3)
    leave = EdgeSpec(source="b", target="t", condition=lambda payload: payload["n"] >= 3)
    return flow(nodes, "in>a", "in>m", "a>b", again, leave, "m>t", "t>out", attributes={"x": 0})


def test_a_run_cancelled_at_every_await_goes_on_from_its_journal_and_repeats_nothing_recorded():
    whole_ran: list[str] = []
    whole = finish(machinery(whole_ran), clock=VirtualClock(), journal=MemoryJournal())
    assert whole.status == "done"
    for turns in range(500):
        journal = MemoryJournal()
        ran: list[str] = []
        workflow = machinery(ran)
        first = run_sync(_cut(workflow, journal, turns))
        known = {str(entry.activation) for entry in journal.entries("r") if entry.kind == "done"}
        ran.clear()
        result = finish(workflow, run_id="r", journal=journal, clock=VirtualClock())
        assert (result.status, result.output, result.attributes) == (
            "done",
            whole.output,
            whole.attributes,
        ), turns
        assert known.isdisjoint(ran), turns
        if first is not None and first.status == "done":
            break
    assert 12 < turns < 499  # it was cut in many places, and in the end in none


async def _cut(workflow: Workflow, journal: MemoryJournal, turns: int) -> Result | None:
    """Cancel the task that runs the workflow after so many turns of the loop."""
    job = asyncio.ensure_future(
        workflow.start({}, run_id="r", journal=journal, clock=JumpingClock()).result()
    )
    for _ in range(turns):
        await asyncio.sleep(0)
    job.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return await job
    return None


# ------------------------------------------------------------------------------------------------ o


@pytest.mark.parametrize("hook", internal("OBSERVER_HOOKS"))
def test_an_observer_that_raises_changes_nothing(hook, caplog):
    def broken(self, **given: Any) -> None:
        raise RuntimeError(f"{hook} broke")

    # every observer may take fewer arguments; this one takes none
    observer = type("Observer", (), {hook: lambda self: broken(self)})()
    ran: list[str] = []
    with caplog.at_level(logging.ERROR, "axil.hooks"):
        result = finish(machinery(ran), clock=VirtualClock(), observers=[observer])
    assert result.status == "done"
    if hook not in ("chunk", "firing_failed", "firing_skipped") and "step" not in hook:
        assert f"{hook} broke" in caplog.text
