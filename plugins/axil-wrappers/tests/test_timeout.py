"""``timeout``: what is ended, what is said of it, and what is left behind."""

from __future__ import annotations

import asyncio
import threading

import pytest

from axil import Graph, RootGraph, SpecError
from axil.driver import RealClock
from axil_journals import MemoryJournal
from axil_wrappers import Retry, Timeout, TimeoutReached


def sleeper(seconds, log=None):
    async def body(ctx):
        try:
            await ctx.sleep(seconds)
        except asyncio.CancelledError:
            if log is not None:
                log.append("cancelled")
            raise
        return {"n": seconds}

    return body


def test_a_body_that_ends_in_time_is_left_alone(stage):
    assert stage.run(sleeper(29), Timeout(seconds=30)).output == {"n": 29}
    assert (stage.clock.now(), stage.clock.sleeping, stage.watch.chunks) == (29, 0, [])


def test_a_body_that_takes_too_long_is_cancelled_and_the_error_says_so(stage):
    log = []
    result = stage.run(sleeper(31, log), Timeout(seconds=30))
    assert (result.status, log, stage.clock.now()) == ("failed", ["cancelled"], 30)
    error = result.error.__cause__
    assert isinstance(error, TimeoutReached)
    assert isinstance(error, TimeoutError)
    assert (error.id, error.seconds) == ("AX831", 30)
    assert "its body was cancelled" in str(error)
    assert stage.watch.chunks == [
        {"kind": "timeout", "seconds": 30, "what": "its body was cancelled"}
    ]


def test_a_value_stands_in_for_what_took_too_long(stage):
    async def body(ctx):
        ctx.emit({"kind": "text", "text": "half an ans"})
        await ctx.sleep(99)

    result = stage.run(body, Timeout(seconds=1, value={"n": 0, "seen": 5}))
    assert (result.output, result.attributes["seen"]) == ({"n": 0}, 5)
    assert stage.watch.kinds() == ["text", "reset", "timeout"]


def test_a_value_that_no_node_of_the_graph_could_give_is_refused(stage):
    with pytest.raises(SpecError, match="AX830"):
        # compiling is what is tested
        stage.graph(sleeper(1), Timeout(seconds=1, value=[1])).plan  # noqa: B018


def test_a_body_that_does_not_go_is_left_behind_after_a_while(stage):
    async def stubborn(ctx):
        while ctx.clock.now() < 60:
            try:
                await ctx.clock.sleep(60)
            except asyncio.CancelledError:
                continue
        ctx.emit({"kind": "text", "text": "still here"})
        return {"n": 1}

    result = stage.run(stubborn, Timeout(seconds=10, grace_seconds=2, value={"n": 0}))
    assert result.output == {"n": 0}
    assert "has not ended yet" in stage.watch.chunks[0]["what"]
    assert stage.watch.kinds() == ["timeout"]


def test_a_function_in_a_thread_is_abandoned_and_the_error_says_so():
    entered, reported, done = threading.Event(), [], threading.Event()

    def body(ctx):
        entered.set()
        while not ctx.is_abandoned:
            entered.wait(0.01)
        reported.append(True)
        ctx.emit("nobody hears this")
        done.set()
        return {"n": 1}

    class Late(RealClock):
        async def sleep(self, seconds):  # the time is up as soon as the function is at work
            await (
                asyncio.to_thread(entered.wait, 60) if seconds == 500 else asyncio.sleep(seconds)
            )

    class Watch:
        chunks: list = []  # noqa: RUF012  # one test's

        def chunk(self, activation, chunk):
            self.chunks.append(chunk)

    graph = RootGraph("t")
    graph.create_node(body, name="work", wrappers=[Timeout(seconds=500)])
    graph.edge_from_entry("work", {})
    graph.edge_to_exit("work", ["n"])
    result = asyncio.run(graph.build().start({}, observers=[Watch()], clock=Late()).result())
    assert "its thread cannot be stopped" in str(result.error)
    assert done.wait(60)
    assert reported == [True]
    assert [chunk["kind"] for chunk in Watch.chunks] == ["timeout"]


def test_a_graph_that_takes_too_long_is_cancelled_as_a_whole(stage):
    log = []
    graph = RootGraph("outer")
    inner = graph.create_node(Graph, name="sub", wrappers=[Timeout(seconds=5, value={"a": 0})])
    for name in "xy":
        inner.create_node(sleeper(9, log), name=name)
        inner.edge_from_entry(name, {})
        inner.edge_to_exit(name, ["n"])
    graph.edge_from_entry(inner, {})
    graph.edge_to_exit(inner, ["a"])
    result = asyncio.run(
        graph.build().start({}, clock=stage.clock, observers=[stage.watch]).result()
    )
    assert (result.status, result.output, log) == ("done", {"a": 0}, ["cancelled", "cancelled"])
    assert stage.watch.kinds() == ["reset", "timeout"]


@pytest.mark.parametrize("outermost", ["retry", "timeout"])
def test_timeout_and_retry_compose_in_either_order(stage, outermost):
    retry, timeout = Retry(tries=3, wait_seconds=4, factor=1, jitter="none"), Timeout(seconds=10)
    stage.run(sleeper(20), *([retry, timeout] if outermost == "retry" else [timeout, retry]))
    kinds = (
        ["timeout", "retry", "timeout", "retry", "timeout"] if outermost == "retry" else ["timeout"]
    )
    assert stage.watch.kinds() == kinds
    assert stage.clock.now() == (38 if outermost == "retry" else 10)


def test_what_a_body_raises_goes_through(stage):
    async def body():
        raise ValueError("no")

    assert isinstance(stage.run(body, Timeout(seconds=1)).error.__cause__, ValueError)
    assert stage.clock.sleeping == 0


def test_a_pause_is_no_timeout_and_the_time_waited_for_a_person_does_not_count(stage):
    async def body(ctx):
        answer = await ctx.ask("how many?")
        await ctx.sleep(3)
        return {"n": answer}

    graph, journal = stage.graph(body, Timeout(seconds=5)), MemoryJournal()
    first = asyncio.run(stage.arun(graph, journal=journal, run_id="r"))
    assert (first.status, first.questions[0].id) == ("paused", "work?1")
    stage.clock.advance(1000)
    again = asyncio.run(stage.arun(graph, journal=journal, run_id="r", answers={"work?1": 7}))
    assert again.output == {"n": 7}


def test_cancelling_a_run_cancels_what_is_inside_first(stage):
    order, started = [], asyncio.Event()

    async def body(ctx):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            order.append("body")

    async def main():
        run = stage.graph(body, Timeout(seconds=60)).start({"n": 1})
        job = asyncio.ensure_future(run.result())
        await started.wait()
        run.cancel()
        order.append((await asyncio.wait_for(job, 60)).status)

    asyncio.run(main())
    assert order == ["body", "cancelled"]
