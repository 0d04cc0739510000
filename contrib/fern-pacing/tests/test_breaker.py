"""A circuit opens, refuses, lets one try, and closes; over runs, threads and resumptions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import axil
from axil.plugin import Replace, Retry, Skip, hook_manager
from axil_sqlite import SqliteJournal
from axil_testing import VirtualClock
from axil_testing.kit import HookKit
from fern_pacing import CircuitBreaker, CircuitOpen, PriorityAndRate


class TestCircuitBreaker(HookKit):
    component = CircuitBreaker


class Service:
    """A node type that fails as long as its service is down."""

    def __init__(self) -> None:
        self.is_down = True
        self.asked = 0
        self.seconds = 0.0
        self.is_asked: asyncio.Event | None = None

    async def ask(self, inputs: dict[str, Any], ctx: axil.Context) -> dict[str, Any]:
        self.asked += 1
        if self.is_asked is not None:
            self.is_asked.set()
        await ctx.sleep(self.seconds)
        if self.is_down:
            raise ConnectionError("nobody answers")
        return {"said": "yes"}


def calling(service: Service, **more: Any) -> axil.Workflow:
    graph = axil.RootGraph("call")
    node = graph.create_node(service.ask, name="ask", **more)
    graph.edge_from_entry(node, {})
    graph.edge_to_exit(node, ["said"])
    return graph.build()


def come_to(flow: axil.Workflow, clock: VirtualClock, *plugins: Any, **options: Any) -> Any:
    async def run() -> axil.Result:
        hooks = hook_manager(plugins)
        return await flow.start({}, **{"clock": clock, "hooks": hooks, **options}).result()

    return asyncio.run(run())


def cause(result: axil.Result) -> str:
    return type(None if result.error is None else result.error.__cause__).__name__


def test_a_circuit_opens_refuses_lets_one_try_and_closes():
    service, clock, breaker = Service(), VirtualClock(), CircuitBreaker(failures=3, seconds=30)
    flow = calling(service)
    assert [cause(come_to(flow, clock, breaker)) for _ in range(3)] == ["ConnectionError"] * 3
    assert breaker.open == ("ask",)
    refused = come_to(flow, clock, breaker)
    assert (cause(refused), service.asked) == ("CircuitOpen", 3)
    clock.advance(29)
    assert cause(come_to(flow, clock, breaker)) == "CircuitOpen"
    clock.advance(1)
    assert cause(come_to(flow, clock, breaker)) == "ConnectionError"  # it may try, and fails
    assert (cause(come_to(flow, clock, breaker)), service.asked) == ("CircuitOpen", 4)
    clock.advance(30)
    service.is_down = False
    assert come_to(flow, clock, breaker).output == {"said": "yes"}
    assert breaker.open == ()
    service.is_down = True
    assert [cause(come_to(flow, clock, breaker)) for _ in range(4)] == [
        *["ConnectionError"] * 3,
        "CircuitOpen",
    ]


def test_a_refusal_says_what_failed_and_when_one_may_try():
    service, clock, breaker = Service(), VirtualClock(), CircuitBreaker(failures=1, seconds=30)
    flow = calling(service)
    come_to(flow, clock, breaker)
    clock.advance(10)
    error = come_to(flow, clock, breaker).error.__cause__
    assert isinstance(error, CircuitOpen)
    assert error.seconds == 20
    assert str(error) == (
        'AX400 the circuit of the type "ask" is open: 1 firings in a row failed, the last with '
        "ConnectionError: nobody answers. One may try in 20 seconds."
    )


def test_a_success_between_failures_begins_the_count_anew():
    service, clock, breaker = Service(), VirtualClock(), CircuitBreaker(failures=2)
    flow = calling(service)
    for is_down in (True, False, True, False, True):
        service.is_down = is_down
        come_to(flow, clock, breaker)
    assert (breaker.open, service.asked) == ((), 5)
    service.is_down = True
    come_to(flow, clock, breaker)
    assert breaker.open == ("ask",)


def test_one_firing_may_try_and_the_others_are_refused():
    service, clock, breaker = Service(), VirtualClock(), CircuitBreaker(failures=1, seconds=5)
    flow = calling(service)
    come_to(flow, clock, breaker)
    clock.advance(5)
    service.is_down, service.seconds = False, 3.0
    hooks = hook_manager([breaker])

    async def several() -> list[Any]:
        runs = [flow.start({}, clock=clock, hooks=hooks) for _ in range(4)]
        return list(await asyncio.gather(*(run.result() for run in runs)))

    results = asyncio.run(several())
    assert sorted(cause(each) for each in results) == [*["CircuitOpen"] * 3, "NoneType"]
    assert service.asked == 2
    assert "Another one is trying" in str(next(r.error for r in results if r.error))


def test_where_the_one_that_tries_is_cancelled_another_one_may():
    service, clock, breaker = Service(), VirtualClock(), CircuitBreaker(failures=1, seconds=5)
    flow = calling(service)
    come_to(flow, clock, breaker)
    clock.advance(5)
    service.is_down, service.seconds = False, 100.0

    async def cancelled() -> str:
        service.is_asked = asyncio.Event()
        run = flow.start({}, clock=VirtualClock(clock.now()), hooks=hook_manager([breaker]))
        job = asyncio.ensure_future(run.result())
        await service.is_asked.wait()
        run.cancel("the test cancels it")
        return (await job).status

    assert asyncio.run(cancelled()) == "cancelled"
    assert come_to(flow, clock, breaker).status == "done"
    assert breaker.open == ()


@pytest.mark.parametrize(
    ("instead", "output"), [(Replace({"said": "later"}), {"said": "later"}), (Skip(), {})]
)
def test_a_refused_firing_may_have_another_outcome(instead: Any, output: Any):
    service, clock = Service(), VirtualClock()
    breaker = CircuitBreaker(failures=1, instead=instead)
    flow = calling(service)
    come_to(flow, clock, breaker)
    result = come_to(flow, clock, breaker)
    assert (result.status, result.output, service.asked) == ("done", output, 1)
    assert breaker.open == ("ask",)


def test_lanes_are_distinguished_and_what_has_none_is_let_through():
    service, clock = Service(), VirtualClock()
    breaker = CircuitBreaker(failures=1, by="lane")
    one, other, none = (calling(service, lane=lane) for lane in ("one", "other", None))
    assert [cause(come_to(flow, clock, breaker)) for flow in (one, one, other, none, none)] == [
        "ConnectionError",
        "CircuitOpen",
        "ConnectionError",
        "ConnectionError",
        "ConnectionError",
    ]
    assert breaker.open == ("one", "other")


def test_each_try_counts_and_the_next_one_is_refused():
    class Again:
        @axil.hookimpl
        def firing_failure(self, error: Exception) -> Any:
            return Retry(after=1) if isinstance(error, ConnectionError) else None

    service, clock, breaker = Service(), VirtualClock(), CircuitBreaker(failures=3, seconds=30)
    result = come_to(calling(service), clock, Again(), breaker)
    assert (cause(result), service.asked, clock.now()) == ("CircuitOpen", 3, 3)


def test_it_works_beside_a_pace_in_either_order():
    for turn in (1, -1):
        service, clock = Service(), VirtualClock()
        breaker = CircuitBreaker(failures=2)
        plugins = [breaker, PriorityAndRate(rate=1)][::turn]
        flow = calling(service)
        causes = [cause(come_to(flow, clock, *plugins)) for _ in range(3)]
        assert causes == ["ConnectionError", "ConnectionError", "CircuitOpen"]


def test_another_run_with_the_same_names_is_distinguished():
    down, clock, breaker = Service(), VirtualClock(), CircuitBreaker(failures=2)

    class Other(Service):
        async def answer(self, inputs: dict[str, Any], ctx: axil.Context) -> dict[str, Any]:
            return await self.ask(inputs, ctx)

    other = Other()
    other.is_down = False
    graph = axil.RootGraph("call")
    node = graph.create_node(other.answer, name="ask")
    graph.edge_from_entry(node, {})
    graph.edge_to_exit(node, ["said"])
    fine = graph.build()
    for _ in range(2):
        come_to(calling(down), clock, breaker)
        come_to(fine, clock, breaker)
    assert breaker.open == ("ask",)
    assert come_to(fine, clock, breaker).status == "done"


def test_threads_open_a_circuit_together():
    service, breaker = Service(), CircuitBreaker(failures=8, seconds=60)
    hooks = hook_manager([breaker])

    def several() -> None:
        for _ in range(4):
            with pytest.raises(axil.NodeFailed):
                calling(service).invoke(hooks=hooks)

    threads = [Thread(target=several) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert breaker.open == ("ask",)
    assert 8 <= service.asked <= 8 + len(threads)


def test_a_run_that_goes_on_applies_what_was_recorded(tmp_path: Path):
    service, clock = Service(), VirtualClock()
    breaker = CircuitBreaker(failures=1, instead=Replace({"said": "later"}))
    come_to(calling(service), clock, breaker)
    graph = axil.RootGraph("call")

    async def sign(inputs: dict[str, Any], ctx: axil.Context) -> dict[str, Any]:
        return {"said": inputs["said"], "by": await ctx.ask("Who?")}

    asking = graph.create_node(service.ask, name="ask")
    signing = graph.create_node(sign, name="sign")
    graph.edge_from_entry(asking, {})
    graph.create_edge(asking, signing, ["said"])
    graph.edge_to_exit(signing, ["said", "by"])
    flow = graph.build()
    journal = SqliteJournal(tmp_path)
    try:
        paused = come_to(flow, clock, breaker, journal=journal, run_id="r")
    finally:
        journal.close()
    assert (paused.status, service.asked) == ("paused", 1)
    service.is_down = False
    journal = SqliteJournal(tmp_path)
    try:
        answers = {paused.questions[0].id: "B."}
        result = come_to(
            flow,
            clock,
            CircuitBreaker(),
            journal=journal,
            run_id="r",
            resuming=True,
            answers=answers,
        )
    finally:
        journal.close()
    assert (result.output, service.asked) == ({"said": "later", "by": "B."}, 1)


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"failures": 0}, "failures is 0"),
        ({"seconds": -1}, "seconds is -1"),
        ({"by": "node"}, 'by is node|by is "node"|by is .node.'),
    ],
)
def test_what_is_no_setting_is_refused(given: dict[str, Any], reported: str):
    with pytest.raises(ValueError, match=reported):
        CircuitBreaker(**given)
