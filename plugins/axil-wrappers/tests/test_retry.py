"""``retry``: how often, how long between, what is retried, and what is left of a failed try."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, strategies as st

from axil import ConfigError, Graph, LimitReached, Limits, NodeFailed, RootGraph
from axil.plugin import KernelBug, Uncertain
from axil_journals import MemoryJournal
from axil_wrappers import Retry
from axil_wrappers.retry import RetryConfig


class Flaky:
    """Fails so many times, then answers how often it was called."""

    def __init__(self, failures, error=None):
        self.failures, self.error, self.calls = (
            failures,
            error or ConnectionError("nobody there"),
            0,
        )

    async def __call__(self, ctx):
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return {"n": self.calls}


@given(tries=st.integers(1, 8), failures=st.integers(0, 10))
def test_a_node_is_tried_until_it_ends_well_and_at_most_tries_times(new_stage, tries, failures):
    stage, body = new_stage(), Flaky(failures)
    result = stage.run(body, Retry(tries=tries))
    assert body.calls == min(tries, failures + 1)
    assert result.status == ("done" if failures < tries else "failed")
    assert stage.watch.kinds() == ["retry"] * (body.calls - 1)


def test_nested_retries_multiply(stage):
    body = Flaky(99)
    assert stage.run(body, Retry(tries=3), Retry(tries=4)).status == "failed"
    assert body.calls == 12


@given(
    wait=st.floats(0, 10), factor=st.floats(1, 10), least=st.floats(0, 5), most=st.floats(5, 100),
    failed=st.integers(1, 2000),
    jitter=st.sampled_from(["full", "none"]),
)  # fmt: skip
def test_a_wait_is_within_its_bounds(wait, factor, least, most, failed, jitter):
    config = RetryConfig(
        wait_seconds=wait,
        factor=factor,
        min_wait_seconds=least,
        max_wait_seconds=most,
        jitter=jitter,
    )
    assert least <= config.wait(failed, "a") <= most


def test_waits_grow_and_are_slept_by_the_clock_of_the_run(stage):
    result = stage.run(
        Flaky(4), Retry(tries=5, wait_seconds=1, factor=3, max_wait_seconds=20, jitter="none")
    )
    assert [chunk["wait_seconds"] for chunk in stage.watch.chunks] == [1, 3, 9, 20]
    assert result.usage.seconds == stage.clock.now() == 33


def test_a_seed_makes_the_jitter_the_same_in_every_run(new_stage):
    def waits(seed):
        stage = new_stage()
        stage.run(Flaky(4), Retry(tries=5, seed=seed))
        return [chunk["wait_seconds"] for chunk in stage.watch.chunks]

    assert waits(1) == waits(1) != waits(2)
    assert len(set(waits(1))) == 4


class Busy(Exception):
    """As an adapter raises it."""

    def __init__(self, status=None, retry_after=None, transient=None):
        super().__init__("Busy, come back later")
        self.status, self.retry_after_seconds = status, retry_after
        if transient is not None:
            self.transient = transient


def test_an_error_that_asks_to_wait_is_waited_for(stage):
    assert stage.run(Flaky(1, Busy(429, 120)), Retry(max_wait_seconds=2)).status == "done"
    assert stage.clock.now() == 120


def test_an_error_that_asks_to_wait_too_long_is_final(stage):
    body = Flaky(1, Busy(429, 301))
    assert stage.run(body, Retry()).status == "failed"
    assert (body.calls, stage.clock.now()) == (1, 0)


def test_no_try_begins_after_the_deadline(stage):
    body = Flaky(99)
    result = stage.run(
        body, Retry(tries=99, wait_seconds=4, factor=1, jitter="none", deadline_seconds=10)
    )
    assert (body.calls, stage.clock.now()) == (3, 8)
    assert "deadline of 10 seconds" in str(result.error)


@pytest.mark.parametrize(
    ("error", "config", "calls"),
    [
        (ValueError("x"), {}, 3),
        (TypeError("x"), {}, 1),
        (KeyError("x"), {}, 1),
        (Busy(), {}, 3),
        (Busy(503), {}, 3),
        (Busy(400), {}, 1),
        (Busy(400, transient=True), {}, 3),
        (Busy(503, transient=False), {}, 1),
        (TypeError("x"), {"on": "Exception"}, 3),
        (ConnectionResetError("x"), {"on": ["OSError"]}, 3),
        (ValueError("x"), {"on": ["OSError"]}, 1),
        (ConnectionResetError("x"), {"not_on": ["OSError"]}, 1),
        (ConnectionResetError("x"), {"on": ["OSError"], "not_on": ["ConnectionError"]}, 1),
        (Busy(), {"on": ["*.Busy"]}, 3),
        (Busy(), {"on": [f"{Busy.__module__}.Busy"]}, 3),
        (Busy(), {"on": ["elsewhere.Busy"]}, 1),
        (Busy(), {"on": [Busy]}, 3),
        (Busy(418), {"on_status": [418]}, 3),
        (Busy(503), {"on_status": [418]}, 1),
        (Busy(), {"on_text": ["LATER"]}, 3),
        (Busy(), {"on_text": ["never"], "on_status": [1]}, 1),
        (Busy(), {"when": lambda error: error.status is None}, 3),
        (Busy(1), {"when": lambda error: error.status is None}, 1),
        (TypeError("x"), {"when": lambda error: True}, 3),
        (KernelBug("x"), {"on": ["Exception"]}, 1),
        (LimitReached("x"), {"on": ["Exception"]}, 1),
        (Uncertain("x"), {"on": ["Exception"]}, 1),
    ],
)
def test_what_is_tried_again(stage, error, config, calls):
    body = Flaky(99, error)
    assert stage.run(body, Retry(wait_seconds=0, **config)).status == "failed"
    assert body.calls == calls


def test_an_error_counts_with_what_it_was_raised_from(stage):
    tries = []

    async def body(ctx):
        tries.append(1)
        try:
            raise Busy(503)
        except Busy as error:
            raise RuntimeError("the adapter failed") from error

    stage.run(body, Retry(on_status=[503]))
    assert len(tries) == 3


@pytest.mark.parametrize(
    "config",
    [{"on": ["ValuError"]}, {"on": "CancelledError"}, {"on": [KeyboardInterrupt]}, {"tries": 0},
    {"trys": 3}, {"jitter": "some"},
     {"min_wait_seconds": 9, "max_wait_seconds": 8}, {"on": [""]}],
)  # fmt: skip
def test_a_setting_without_meaning_is_refused(config):
    with pytest.raises(ConfigError):
        Retry(**config)


def test_what_a_failed_try_kept_and_wrote_is_gone(stage):
    async def body(ctx, local, attributes):
        local["tries"] = local.get("tries", 0) + 1
        attributes["seen"] = attributes["seen"] + 1
        if ctx.now() < 1:
            await ctx.sleep(1)
            raise ConnectionError
        return {"n": local["tries"]}

    result = stage.run(body, Retry(jitter="none"))
    assert (result.output, result.attributes["seen"]) == ({"n": 1}, 1)


def test_a_try_that_had_shown_something_is_reset(stage):
    calls = []

    async def body(ctx):
        calls.append(1)
        if len(calls) > 1:
            ctx.emit({"kind": "text", "text": "b"})
        if len(calls) < 3:
            raise ConnectionError
        return {"n": 3}

    stage.run(body, Retry())
    assert stage.watch.kinds() == ["retry", "text", "reset", "retry", "text"]


def test_a_function_in_a_thread_is_tried_again_with_its_waits_on_the_loop(stage):
    calls = []

    def body(ctx):
        calls.append(1)
        ctx.emit({"kind": "text"})
        if len(calls) < 3:
            raise ConnectionError
        return {"n": 3}

    graph = stage.graph(body, Retry(wait_seconds=0))
    assert graph.invoke({"n": 1})[0] == {"n": 3}


def test_a_graph_is_tried_again_as_a_whole(stage):
    calls = {"first": 0, "second": 0}
    cancelled = []

    async def slow(ctx):
        calls["first"] += 1
        try:
            await ctx.sleep(5)
        except asyncio.CancelledError:
            cancelled.append(calls["first"])
            raise
        return {"a": 1}

    async def second(ctx, attributes):
        calls["second"] += 1
        attributes["log"] = attributes["log"] + "x"
        if calls["second"] < 3:
            raise ConnectionError("inside")
        return {"b": 2}

    graph = RootGraph("outer", attributes={"log": ""})
    inner = graph.create_node(Graph, name="sub", wrappers=[Retry()])
    inner.create_node(slow, name="slow")
    inner.create_node(second, name="second")
    inner.edge_from_entry("slow", {})
    inner.edge_from_entry("second", {})
    inner.edge_to_exit("slow", ["a"])
    inner.edge_to_exit("second", ["b"])
    graph.edge_from_entry(inner, {})
    graph.edge_to_exit(inner, ["a", "b"])
    result = asyncio.run(
        graph.build().start({}, clock=stage.clock, observers=[stage.watch]).result()
    )
    assert (result.status, result.output) == ("done", {"a": 1, "b": 2})
    assert result.attributes["log"] == "x"
    assert calls == {"first": 3, "second": 3}
    assert cancelled == [1, 2]
    assert stage.watch.kinds() == ["reset", "retry"] * 2
    assert stage.watch.chunks[0] == {"kind": "reset", "chunks": 0, "inside": True}
    assert [path.split("/")[-1] for path in stage.watch.failed] == ["second", "second"]


def test_the_last_failure_inside_a_graph_names_its_node(stage):
    def fail():
        raise ConnectionError("inside")

    graph = RootGraph("outer")
    inner = graph.create_node(Graph, name="sub", wrappers=[Retry(tries=2, wait_seconds=0)])
    inner.create_node(fail, name="bad", inline=True)
    inner.edge_from_entry("bad", {})
    inner.edge_to_exit("bad", {})
    graph.edge_from_entry(inner, {})
    graph.edge_to_exit(inner, {})
    result = asyncio.run(graph.build().start({}, clock=stage.clock).result())
    assert result.status == "failed"
    assert result.error.path.endswith("sub/bad")
    assert isinstance(result.error.__cause__, ConnectionError)


def test_cancelling_a_run_in_its_wait_ends_it(stage):
    failed, calls = asyncio.Event(), []

    async def body(ctx):
        calls.append(1)
        failed.set()
        raise ConnectionError

    async def main():
        run = stage.graph(body, Retry(tries=99, wait_seconds=60, jitter="none")).start({"n": 1})
        job = asyncio.ensure_future(run.result())
        await failed.wait()
        run.cancel()
        return await asyncio.wait_for(job, 60)

    assert asyncio.run(main()).status == "cancelled"
    assert calls == [1]


def test_a_limit_of_the_run_is_not_tried_again(stage):
    async def body(ctx):
        ctx.spend(output_tokens=9)
        await ctx.sleep(1)
        return {"n": 1}

    result = stage.run(body, Retry(), limits=Limits(tokens=5))
    assert (result.status, result.error.id) == ("limited", "AX413")
    assert stage.watch.kinds() == []


def test_a_question_goes_through_and_is_answered_once(stage):
    calls = []

    async def body(ctx):
        calls.append(1)
        answer = await ctx.ask("how many?")
        if len(calls) == 2:
            raise ConnectionError
        return {"n": answer}

    graph, journal = stage.graph(body, Retry(wait_seconds=0)), MemoryJournal()
    first = asyncio.run(stage.arun(graph, journal=journal, run_id="r"))
    assert first.status == "paused"
    second = asyncio.run(
        stage.arun(graph, journal=journal, run_id="r", answers={first.questions[0].id: 7})
    )
    assert second.status == "paused", "the second try asks anew"
    last = asyncio.run(
        stage.arun(graph, journal=journal, run_id="r", answers={second.questions[0].id: 8})
    )
    assert last.output == {"n": 8}


def test_a_resumed_run_continues_with_the_try_at_which_it_stood(new_stage):
    journal, body = MemoryJournal(), Flaky(2)
    first = new_stage()
    graph = first.graph(body, Retry(tries=3, wait_seconds=60, factor=1, jitter="none"))

    async def broken_off():
        run = graph.start(
            {"n": 1}, clock=first.clock, journal=journal, run_id="r", limits=Limits(seconds=90)
        )
        return await run.result()

    assert asyncio.run(broken_off()).status == "limited"
    assert body.calls == 2
    again = new_stage()
    result = asyncio.run(again.arun(graph, journal=journal, run_id="r", limits=Limits()))
    assert (result.output, body.calls) == ({"n": 3}, 3)
    assert again.clock.now() == 30, "only the rest of the second wait"


def test_a_run_that_is_resumed_after_its_end_repeats_nothing(stage):
    journal, body = MemoryJournal(), Flaky(1)
    graph = stage.graph(body, Retry())
    one = asyncio.run(stage.arun(graph, journal=journal, run_id="r"))
    two = asyncio.run(stage.arun(graph, journal=journal, run_id="r"))
    assert one.output == two.output
    assert body.calls == 2


def test_the_error_says_how_often_it_was_tried(stage):
    result = stage.run(Flaky(9), Retry(tries=2))
    assert isinstance(result.error, NodeFailed)
    assert "tried 2 times" in str(result.error)
