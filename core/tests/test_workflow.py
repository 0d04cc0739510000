"""A graph that can be run: the doors, the stream, the lifecycle of its components."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

from axil.builder.workflow import Workflow
from axil.compiler import planner
from axil.errors import JournalError, LimitReached, NodeFailed, RunCancelled, RunPaused, SpecError
from axil.kernel.plan import CycleLimit
from axil.kernel.tokens import Out
from axil.runtime.result import Event
from axil.runtime.run import run_sync
from axil.spec.graph import Limits
from axil_journals import MemoryJournal
from axil_testing.specs import edge, graph, node, says, with_parts, workflow


def echo(task, ctx) -> Out:
    return Out(dict(task.tokens[0].payload))


ECHO = workflow([node("a", echo)], ["in a", "a out"])


async def events(flow: Workflow, input: Any = None, **options: Any) -> list[Event]:
    return [event async for event in flow.stream(input, **options)]


# ------------------------------------------------------------------------------------------------ d


def test_a_plan_is_made_on_first_use_and_once():
    flow = workflow(["a"], ["in a"])
    assert flow.plan is flow.plan


def test_what_is_wrong_is_said_when_the_plan_is_made():
    with pytest.raises(SpecError, match="AX104"):
        workflow(["a"], ["in a", "a b"]).plan  # noqa: B018  # compiled when it is first asked for


def test_invoke_gives_output_and_attributes():
    flow = workflow([node("a", says({"m": 1}, x=2))], ["in a", "a out"], attributes={"x": 0})
    assert flow.invoke({}) == ({"m": 1}, {"x": 2})


def test_a_text_is_the_field_message():
    assert ECHO.invoke("hi")[0] == {"message": "hi"}


def test_attributes_given_to_a_run_lie_over_the_graphs_own():
    flow = workflow(
        [node("a", lambda task, ctx: Out(dict(task.state)))],
        ["in a", "a out"],
        attributes={"x": 0, "y": 0},
    )
    assert flow.invoke({}, {"y": 1, "z": 2})[0] == {"x": 0, "y": 1, "z": 2}


def test_a_result_unpacks_like_what_invoke_gives():
    output, attributes = asyncio.run(ECHO.run({"m": 1}))
    assert (output, attributes) == ({"m": 1}, {})


@pytest.mark.parametrize(
    ("flow", "options", "error"),
    [
        (workflow([node("a", lambda task, ctx: 1 / 0)], ["in a"]), {}, NodeFailed),
        (workflow(["a", "b"], ["in a", "a b"]), {"limits": Limits(firings=1)}, LimitReached),
        (
            workflow(["a"], ["in a", "a a"], cycle_limits={"": CycleLimit(rounds=2)}),
            {},
            LimitReached,
        ),
    ],
)
def test_invoke_raises_what_run_tells_and_the_error_holds_the_partial_result(flow, options, error):
    with pytest.raises(error) as raised:
        flow.invoke({}, **options)
    assert raised.value.result.status in ("failed", "limited")


def test_run_raises_for_a_failure_and_tells_every_other_end():
    with pytest.raises(NodeFailed):
        asyncio.run(workflow([node("a", lambda task, ctx: 1 / 0)], ["in a"]).run({}))
    assert (
        asyncio.run(workflow(["a"], ["in a"]).run({}, limits=Limits(firings=0))).status == "limited"
    )


def test_every_payload_that_left_is_named_by_its_source_node():
    flow = workflow(["a", "b"], ["in a", "in b", "a out", "b out"])
    assert asyncio.run(flow.run({})).exits == {"a": ({"by": "a"},), "b": ({"by": "b"},)}


def test_a_caller_may_keep_and_change_what_it_got():
    kept = {"deep": [1]}
    flow = workflow([node("a", says({"m": kept}))], ["in a", "a out"], attributes={"x": kept})
    output, attributes = flow.invoke({})
    output["m"]["deep"].append(2)
    attributes["x"]["deep"].append(3)
    assert flow.invoke({}) == ({"m": {"deep": [1]}}, {"x": {"deep": [1]}})


def test_one_workflow_serves_any_number_of_runs_at_once():
    async def slow(task, ctx):
        await asyncio.sleep(0)
        n = (task.state.get("@node/a") or {}).get("n", 0) + 1
        return Out({"i": task.tokens[0].payload["i"], "n": n}, {"@node/a": {"n": n}, "x": n})

    again, out = (
        edge("a", "a", condition=lambda p: p["n"] < 3),
        edge("a", "out", condition=lambda p: p["n"] == 3),
    )
    flow = workflow([node("a", slow, mode="async")], ["in a", again, out])

    async def go():
        return await asyncio.gather(*(flow.run({"i": i}) for i in range(10)))

    results = asyncio.run(go())
    assert [r.output for r in results] == [{"i": i, "n": 3} for i in range(10)]
    assert len({r.run_id for r in results}) == 10


# ------------------------------------------------------------------------------------------------ s


def test_a_stream_tells_everything_in_order_and_ends_with_the_result():
    async def body(task, ctx):
        ctx.emit("one")
        return Out({"m": 1})

    flow = workflow(
        [node("a", body, mode="async", ctx=True), "b"],
        ["in a", edge("a", "b", condition=lambda payload: False), "a out"],
    )
    seen = asyncio.run(events(flow))
    assert [event.kind for event in seen] == [
        "run_started",
        "firing_started",
        "chunk",
        "firing_finished",
        "firing_skipped",
        "run_finished",
    ]
    assert (str(seen[2].activation), seen[2].data) == ("a", "one")
    assert seen[-1].data.output == {"m": 1}


def test_a_stream_raises_a_failure_after_its_last_event():
    seen: list[str] = []

    async def go():
        async for event in workflow([node("a", lambda task, ctx: 1 / 0)], ["in a"]).stream({}):
            seen.append(event.kind)

    with pytest.raises(NodeFailed):
        asyncio.run(go())
    assert seen == ["run_started", "firing_started", "firing_failed", "run_finished"]


def test_leaving_a_stream_early_cancels_the_run():
    ended: list[str] = []

    async def wait(task, ctx):
        ctx.emit("here")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("a")

    async def go():
        stream = workflow([node("a", wait, mode="async")], ["in a"]).stream({})
        async for event in stream:
            if event.kind == "chunk":
                break
        await stream.aclose()

    asyncio.run(go())
    assert ended == ["a"]


def test_a_slow_reader_loses_the_oldest_chunks_and_gets_their_number():
    async def body(task, ctx):
        for i in range(10):
            ctx.emit(i)
        return Out({})

    flow = workflow([node("a", body, mode="async", ctx=True)], ["in a"])
    seen = asyncio.run(events(flow, buffer=4))
    assert [event.kind for event in seen if event.kind != "chunk"] == [
        "run_started",
        "firing_started",
        "firing_finished",
        "run_finished",
    ]
    chunks = [event.data for event in seen if event.kind == "chunk"]
    assert chunks == list(range(10 - len(chunks), 10))
    assert len(chunks) + sum(event.lost for event in seen) == 10


def test_the_event_after_a_gap_counts_what_was_lost():
    async def body(task, ctx):
        for i in range(10):
            ctx.emit(i)
        return Out({})

    seen = asyncio.run(
        events(workflow([node("a", body, mode="async", ctx=True)], ["in a"]), buffer=4)
    )
    first = next(event for event in seen if event.kind == "chunk")
    assert first.lost == first.data


def test_watching_does_not_change_a_run():
    flow = workflow(["a", "b"], ["in a", "a b", "b out"])
    assert asyncio.run(events(flow))[-1].data.output == flow.invoke({})[0]


# ------------------------------------------------------------------------------------------------ r


def test_resume_refuses_a_run_that_the_journal_does_not_know():
    journal = MemoryJournal()
    with pytest.raises(JournalError) as error:
        asyncio.run(ECHO.resume("nobody", journal=journal))
    assert error.value.id == "AX503"
    with pytest.raises(JournalError, match="AX503"):
        ECHO.invoke({}, journal=journal, run_id="nobody", resuming=True)
    assert journal.runs() == []


def test_resume_refuses_a_run_of_another_graph():
    journal = MemoryJournal()
    ECHO.invoke({}, run_id="r", journal=journal)
    with pytest.raises(JournalError) as error:
        asyncio.run(workflow(["a", "b"], ["in a", "a b"]).resume("r", journal=journal))
    assert error.value.id == "AX504"


def test_resume_continues_with_answers():
    async def ask(task, ctx):
        return Out({"m": await ctx.ask("?")})

    flow = workflow([node("a", ask, mode="async", ctx=True)], ["in a", "a out"])
    journal = MemoryJournal()
    with pytest.raises(RunPaused) as paused:
        flow.invoke({}, run_id="r", journal=journal)
    (question,) = paused.value.result.questions
    assert asyncio.run(flow.resume("r", journal=journal, answers={question.id: "yes"})).output == {
        "m": "yes"
    }


# ------------------------------------------------------------------------------------------------ l


def test_components_are_provisioned_before_a_run_and_closed_in_reverse_order_after_it():
    flow, log = with_parts(x="", y="")
    flow.invoke({})
    assert log[:2] == ["provision x", "provision y"]
    assert sorted(log[2:4]) == ["run x", "run y"]
    assert log[4:] == ["close y", "close x"]


def test_components_are_kept_while_the_workflow_is_held():
    flow, log = with_parts(x="")

    async def go():
        async with flow:
            for _ in range(3):
                await flow.run({})

    asyncio.run(go())
    assert log == ["provision x", "run x", "run x", "run x", "close x"]


def test_what_was_begun_is_closed_if_another_could_not_be_provisioned():
    flow, log = with_parts(x="", y="provision", z="")
    with pytest.raises(OSError, match="y"):
        flow.invoke({})
    assert log == ["provision x", "provision y", "close y", "close x"]


def test_every_component_is_closed_whatever_the_others_raise():
    flow, log = with_parts(x="close", y="", z="close")
    # what fails at the end takes nothing from the run
    assert asyncio.run(flow.run({})).status == "done"
    assert [line for line in log if line.startswith("close")] == ["close z", "close y", "close x"]


def test_components_are_closed_when_a_run_fails():
    flow, log = with_parts(x="")
    flow.spec.nodes  # noqa: B018  # the same graph with a node that fails beside it
    failing = Workflow(
        graph([*flow.spec.nodes, node("f", lambda task, ctx: 1 / 0)], ["in x", "in f"]),
        flow.setting,
    )
    with pytest.raises(NodeFailed):
        failing.invoke({})
    assert log[0] == "provision x"
    assert log[-1] == "close x"


def test_a_run_that_begins_while_another_provisions_waits_for_it():
    flow, log = with_parts(x="")

    async def go():
        await asyncio.gather(flow.run({}), flow.run({}))

    asyncio.run(go())
    assert log == ["provision x", "run x", "run x", "close x"]


def test_a_cancelled_run_raises_from_the_sync_door():
    async def cancel(task, ctx):
        ctx.deps.append(1)
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        await asyncio.sleep(0)

    with pytest.raises((RunCancelled, NodeFailed)):
        workflow([node("a", cancel, mode="async", ctx=True)], ["in a"]).invoke({}, deps=[])


# ------------------------------------------------------------------------------------------------ c


class SlowPart:
    """A component that waits where it is asked to."""

    def __init__(self, said: list[str], name: str, *, slow: str = "") -> None:
        self.said, self.name, self.slow = said, name, slow
        self.reached, self.goes_on = asyncio.Event(), asyncio.Event()

    async def provision(self) -> None:
        await self._does("provision")

    async def close(self) -> None:
        await self._does("close")

    async def _does(self, what: str) -> None:
        self.said.append(f"{what} {self.name}")
        if what == self.slow:
            self.reached.set()
            await self.goes_on.wait()


def having(*parts: SlowPart) -> Workflow:
    flow = workflow(["a"], ["in a", "a out"])
    object.__setattr__(flow.plan.graph, "components", parts)
    return flow


def test_all_components_are_closed_where_the_closing_of_one_is_cancelled():
    said: list[str] = []

    async def go() -> None:
        slow = SlowPart(said, "b", slow="close")
        job = asyncio.ensure_future(having(SlowPart(said, "a"), slow).run({}))
        await slow.reached.wait()
        job.cancel()
        await asyncio.wait([job])
        assert job.cancelled()

    run_sync(go())
    assert said == ["provision a", "provision b", "close b", "close a"]


def test_components_are_closed_though_one_who_leaves_is_cancelled_at_the_door():
    said: list[str] = []

    async def go() -> None:
        slow = SlowPart(said, "a", slow="provision")
        flow = having(slow)

        async def comes_and_goes() -> None:
            async with flow:
                asyncio.get_running_loop().call_soon(leaving.cancel)

        leaving = asyncio.ensure_future(comes_and_goes())
        await slow.reached.wait()
        other = asyncio.ensure_future(flow.run({}))
        await asyncio.sleep(0)
        slow.goes_on.set()
        await asyncio.wait([leaving, other])
        assert leaving.cancelled()
        await flow.run({})

    run_sync(go())
    assert said == ["provision a", "close a", "provision a", "close a"]


def test_components_are_provisioned_for_a_loop_that_has_the_number_of_one_that_is_gone():
    said: list[str] = []
    flow = having(SlowPart(said, "a"))
    for _ in range(10):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(flow.__aenter__())
        loop.close()  # in the middle: nobody leaves
        del loop
        gc.collect()
    assert said == ["provision a"] * 10


def test_threads_that_ask_for_the_plan_at_once_get_the_same_one(monkeypatch):
    """Its components are provisioned once: a plan of one's own would have others."""
    flow, plan = workflow(["a"], ["in a", "a out"]), planner.compile_spec
    both_are_in, first_has_it, plans = threading.Barrier(2), threading.Event(), dict[str, Any]()

    def compiled(*given: Any) -> Any:
        both_are_in.wait(60)
        if threading.current_thread().name == "second":
            assert first_has_it.wait(60)
        return plan(*given)

    def asks() -> None:
        plans[threading.current_thread().name] = flow.plan
        first_has_it.set()

    monkeypatch.setattr("axil.builder.workflow.compile_spec", compiled)
    flow._plan = None
    threads = [threading.Thread(target=asks, name=name) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert plans["first"] is plans["second"] is flow.plan


@pytest.mark.parametrize(
    ("options", "hint"),
    [({"limits": {"firings": 3}}, r"Limits\(firings=3\)"), ({"journal": "kept"}, "MemoryJournal")],
)
def test_an_option_of_another_kind_says_what_to_write(options: Any, hint: str):
    with pytest.raises(TypeError, match=hint):
        ECHO.invoke("x", **options)
