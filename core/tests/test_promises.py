"""Promises that span several modules: isolation, sub-runs, resumption, and runs side by side."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, NamedTuple

import pytest
from pydantic import BaseModel

from axil import CustomNode, Graph, Limits, NodeFailed, Question, RootGraph, SpecError, run_sync
from axil.compiler.planner import compile_spec
from axil.errors import JournalError
from axil.spec.graph import EdgeSpec, GraphSpec, NodeSpec
from axil_journals import MemoryJournal


class Pair(BaseModel):
    x: int = 0
    y: int = 0
    log: Annotated[list[str], "append"] = []


def chain(*functions: Any, **options: Any) -> RootGraph:
    """Return a builder graph of functions in a row, carrying ``message``."""
    graph = RootGraph("g", **options)
    nodes = [
        graph.create_node(function, name=name)
        for name, function in zip("abcdef", functions, strict=False)
    ]
    graph.edge_from_entry(nodes[0])
    for one, next_one in itertools.pairwise(nodes):
        graph.create_edge(one, next_one)
    graph.edge_to_exit(nodes[-1])
    return graph.build()


def sub_plan(body: Any, lane: str | None = None) -> Any:
    """Return a plan of one node, for ``ctx.run``."""
    edges = (EdgeSpec(source="@entry", target="n"), EdgeSpec(source="n", target="@exit"))
    return compile_spec(
        GraphSpec(id="sub", nodes=(NodeSpec(id="n", body=body, lane=lane),), edges=edges)
    )


# --------------------------------------------------------------------------------------------------


def test_a_filter_on_one_of_two_edges_is_still_known_where_they_meet():
    graph = RootGraph("g", state=Pair)
    for name in "abcd":
        graph.create_node(lambda state: None, name=name)
    graph.edge_from_entry("a")
    graph.create_edge("a", "b")
    graph.create_edge("a", "c", state_filter=lambda state: {"x": 7, "log": state.log})
    graph.create_edges([("b", "d"), ("c", "d")])
    assert graph.build().invoke({"x": 1, "y": 1})[1] == {"x": 7, "y": 0, "log": []}


def test_runs_of_one_graph_do_not_share_what_they_append():
    graph = RootGraph("g", state=Pair)
    graph.create_node(lambda state: {"log": [threading.current_thread().name]}, name="a")
    graph.edge_from_entry("a")
    graph.build()
    first, second = graph.invoke({})[1]["log"], graph.invoke({})[1]["log"]
    assert (len(first), len(second)) == (1, 1)
    assert list(graph.plan.graph.schema.start()["log"]) == []


def test_what_a_body_does_to_ctx_state_has_no_effect():
    def body(ctx):
        ctx.state["items"].append(1)
        return {"message": "done"}

    graph = chain(body, attributes={"items": []})
    assert [graph.invoke({"message": ""})[1] for _ in range(2)] == [{"items": []}, {"items": []}]


def test_what_a_watcher_does_to_an_output_changes_nothing():
    class Meddler:
        def firing_finished(self, output: Any) -> None:
            output["message"].append("from the watcher")

    graph = chain(lambda inputs: {"message": ["a"]}, lambda inputs: inputs)
    assert graph.invoke({"message": ""}, observers=[Meddler()])[0] == {"message": ["a"]}


def test_what_an_edge_does_to_its_payload_is_not_carried_by_another():
    graph = RootGraph("g")
    source = graph.create_node(lambda inputs: {"message": ["a"]}, name="source")
    graph.edge_from_entry(source)

    def meddle(payload: Any) -> Any:
        payload["message"].append("only here")
        return payload

    for name, process in (("b", meddle), ("c", None)):
        node = graph.create_node(lambda inputs: inputs, name=name)
        graph.create_edge(source, node, process=process)
        graph.edge_to_exit(node)
    result = run_sync(graph.build().run({"message": ""}))
    assert result.exits == {"b": ({"message": ["a", "only here"]},), "c": ({"message": ["a"]},)}


class Point(NamedTuple):
    parts: list[int]


def test_containers_inside_named_tuples_and_deques_are_isolated_too():
    def body(attributes):
        attributes["point"].parts.append(1)
        attributes["queue"][0].append(1)
        return {"message": ""}

    graph = chain(body, attributes={"point": Point([]), "queue": deque([[]])})
    for _ in range(2):
        assert graph.invoke({"message": ""})[1] == {"point": Point([]), "queue": deque([[]])}


def test_setting_attributes_counts_in_every_way_a_dict_can_be_set():
    def body(attributes):
        attributes.update({"a": 1})
        attributes |= {"b": 2}
        return {"message": ""}

    assert chain(body, attributes={"a": 0, "b": 0}).invoke({"message": ""})[1] == {"a": 1, "b": 2}


# --------------------------------------------------------------------------------------------------


def test_a_sub_run_without_a_waiting_caller_is_cancelled():
    log: list[str] = []

    async def slow(inputs):
        try:
            await asyncio.sleep(60)
        finally:
            log.append("gone")

    plan = sub_plan(slow)

    async def body(ctx):
        try:
            async with asyncio.timeout(0.01):
                await ctx.run(plan, {}, name="slow")
        except TimeoutError:
            return {"message": "gave up"}

    assert chain(body).invoke({"message": ""})[0] == {"message": "gave up"}
    assert log == ["gone"]


def test_a_body_leaves_its_lane_to_its_sub_run():
    async def inner(inputs):
        return {"message": "inner"}

    plan = sub_plan(inner, lane="human")

    async def body(ctx):
        return (await ctx.run(plan, {}, name="sub")).output

    graph = RootGraph("g")
    node = graph.create_node(body, name="a", lane="human")
    graph.edge_from_entry(node)
    graph.edge_to_exit(node)
    result = run_sync(asyncio.wait_for(graph.build().run({"message": ""}), 60))
    assert result.output == {"message": "inner"}


def test_no_more_bodies_are_at_work_than_are_admitted_also_after_sub_runs():
    at_work, most = 0, 0

    async def inner(inputs):
        await asyncio.sleep(0)
        return {"message": ""}

    plan = sub_plan(inner)

    async def body(ctx):
        nonlocal at_work, most
        await ctx.run(plan, {}, name="sub")
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.002)
        at_work -= 1
        return {"message": ""}

    graph = RootGraph("g", limits=Limits(concurrency=1))
    for name in "abc":
        graph.edge_to_exit(graph.create_node(body, name=name))
        graph.edge_from_entry(name)
    graph.build().invoke({"message": ""})
    assert most == 1


# --------------------------------------------------------------------------------------------------


def twice(graph: RootGraph, **options: Any) -> tuple[Any, Any]:
    """Return the paused result, and what the run comes to when its question is answered."""
    journal = MemoryJournal()
    paused = run_sync(graph.run({"message": ""}, journal=journal, run_id="r", **options))
    assert paused.status == "paused"
    answers = {question.id: "yes" for question in paused.questions}
    return paused, run_sync(graph.resume("r", journal=journal, answers=answers, **options))


def test_steps_and_sub_runs_of_one_name_are_distinguished_on_resume():
    async def echo(inputs):
        return {"message": inputs["message"]}

    plan = sub_plan(echo)

    async def body(ctx):
        async def number(i: int) -> int:
            return i

        steps = [await ctx.step("fetch", lambda i=i: number(i)) for i in range(3)]
        runs = [
            (await ctx.run(plan, {"message": i}, name="try")).output["message"] for i in range(3)
        ]
        await ctx.ask("sure?")
        return {"message": [steps, runs]}

    assert twice(chain(body))[1].output == {"message": [[0, 1, 2], [0, 1, 2]]}


def test_a_sleep_that_is_over_is_not_slept_again():
    slept: list[float] = []

    class Clock:
        time = 0.0

        def now(self) -> float:
            return self.time

        async def sleep(self, seconds: float) -> None:
            slept.append(seconds)
            self.time += seconds

    async def body(ctx):
        await ctx.sleep(3600)
        await ctx.ask("sure?")
        return {"message": ""}

    assert twice(chain(body), clock=Clock())[1].status == "done"
    assert slept == [3600.0, 0.0]


def test_only_a_text_or_a_question_can_be_asked():
    async def body(ctx):
        return {"message": await ctx.ask({"draft": "Dear Ada"})}

    with pytest.raises(NodeFailed, match=r"expected a text or Question.* found {'draft'"):
        chain(body).invoke({"message": ""})


def test_an_answer_that_is_not_awaited_is_said_to_be_awaited():
    class Asked(BaseModel):
        n: int = 0

    never = asyncio.sleep(0)
    graph = RootGraph("g", state=Asked, nodes=[("a", lambda state: {"n": never})])
    graph.edge_from_entry("a")
    graph.edge_to_exit("a")
    with pytest.raises(NodeFailed, match="Await it"):
        graph.build().invoke({})
    never.close()


def test_all_questions_that_a_body_asks_side_by_side_are_open():
    async def body(ctx):
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(ctx.ask(Question(text=text))) for text in ("one?", "two?")]
        return {"message": [task.result() for task in asked]}

    paused, resumed = twice(chain(body))
    assert [question.text for question in paused.questions] == ["one?", "two?"]
    assert resumed.output == {"message": ["yes", "yes"]}


def test_a_journal_knows_graphs_inside_a_graph():
    def nested(names: str) -> RootGraph:
        inner = Graph("inner")
        nodes = [inner.create_node(CustomNode, name=name) for name in names]
        inner.edge_from_entry(nodes[0])
        for one, other in itertools.pairwise(nodes):
            inner.create_edge(one, other)
        inner.edge_to_exit(nodes[-1])
        graph = RootGraph("g")
        graph.edge_from_entry(graph.create_node(inner, name="inner"))
        graph.edge_to_exit("inner")
        return graph.build()

    assert nested("a").spec.digest() == nested("a").spec.digest() != nested("ab").spec.digest()
    journal = MemoryJournal()
    run_sync(nested("a").run({"message": ""}, journal=journal, run_id="r"))
    with pytest.raises(JournalError, match="AX504"):
        run_sync(nested("ab").resume("r", journal=journal))


# --------------------------------------------------------------------------------------------------


def test_a_run_may_be_cancelled_from_another_thread():
    async def body(inputs):
        begun.set()
        await asyncio.Event().wait()

    begun = threading.Event()
    run = chain(body).start({"message": ""})

    def cancels() -> None:
        begun.wait(60)
        run.cancel()

    threading.Thread(target=cancels).start()
    assert run_sync(asyncio.wait_for(run.result(), 60)).status == "cancelled"


def test_a_cancellation_from_another_thread_just_too_late_changes_nothing():
    async def body(inputs):
        return {"message": "done"}

    run = chain(body).start({"message": ""})
    result = run_sync(run.result())
    with ThreadPoolExecutor(1) as threads:
        threads.submit(run.cancel).result(60)
    assert result.status == "done"


def test_a_failure_beside_a_busy_branch_is_seen_soon():
    graph = RootGraph("g", cycles="allow", limits=Limits(firings=1_000_000))

    async def fails(inputs):
        raise ValueError("soon")

    bad = graph.create_node(fails, name="bad")
    spin = graph.create_node(lambda inputs: {"message": ""}, name="spin", inline=True)
    graph.edge_from_entry(bad)
    graph.edge_from_entry(spin)
    graph.edge_to_exit(bad)
    graph.create_edge(spin, spin)
    graph.set_cycle_limit(spin, None)
    with pytest.raises(NodeFailed, match="soon") as error:
        graph.build().invoke({"message": ""})
    assert error.value.result.usage.firings < 500_000


def test_a_thread_body_that_raises_stop_iteration_fails_its_node():
    with pytest.raises(NodeFailed, match="StopIteration"):
        chain(lambda inputs: next(iter([]))).invoke({"message": ""})


@pytest.mark.parametrize(
    ("make", "id"),
    [
        (lambda: Limits(concurrency=0), "AX128"),
        (lambda: chain(lambda inputs: inputs).invoke(5), "AX120"),
    ],
)
def test_settings_and_inputs_without_meaning_are_refused(make, id):
    with pytest.raises(SpecError, match=id):
        make()


def test_one_object_is_not_two_nodes():
    graph, node = RootGraph("g"), CustomNode()
    graph.create_node(node, name="a")
    with pytest.raises(SpecError, match="AX167"):
        graph.create_node(node, name="b")


def test_a_wait_on_the_clock_itself_inside_a_step_does_not_rename_what_is_asked_after_it():
    """A resumed body skips the step with its waits, so they may not count among the calls that are
    numbered.
    """

    async def careful(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        async def wait() -> float:
            before = ctx.clock.now()
            await ctx.clock.sleep(0)
            return float(ctx.clock.now() >= before)

        moved = await ctx.step("wait", wait)
        return {"message": (await ctx.ask("sure?"), moved)}

    graph, journal = chain(careful), MemoryJournal()
    paused = run_sync(graph.run({"message": ""}, journal=journal, run_id="r"))
    answers = {paused.questions[0].id: "yes"}
    assert run_sync(graph.resume("r", journal=journal, answers=answers)).output == {
        "message": ("yes", 1.0)
    }
