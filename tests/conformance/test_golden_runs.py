"""The sentences about cycles that carry messages, determinism, time, pause, stop, limits and the
journal. A docstring is the sentence.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from axil import (
    Activation,
    CustomNode,
    Graph,
    LimitReached,
    Limits,
    NodeFailed,
    RootGraph,
    RunCancelled,
    RunPaused,
    SpecError,
    Workflow,
    run_sync,
)
from axil.plugin import JournalError
from axil_control import Loop
from axil_journals import MemoryJournal
from axil_testing import JumpingClock

from .masfactory_graphs import custom, giving
from .recorded import Watch


class Log(BaseModel):
    log: Annotated[list[str], "append"] = []
    total: Annotated[int, "sum"] = 0


class Answers:
    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers

    async def ask(self, question: Any) -> Any:
        return self.answers[question.text]


def typed(*edges: str, **bodies: Any) -> RootGraph:
    g = RootGraph("g", state=Log, cycles="allow")
    for name, body in bodies.items():
        g.create_node(body, name=name, inline=True)
    for edge in edges:
        g.create_edge(*edge.split("->"))
    return g.build()


def says(name: str) -> Any:
    return lambda: {"log": [name]}


# ------------------------------------------------------------------------------------------------ c


def test_a_data_edge_upward_is_waited_for_and_another_brings_its_payload_in_the_next_round():
    """In a cycle's body it waits only where the source's trigger level is below its own; otherwise
    the payload (without state) reaches it in the next round."""
    g = RootGraph("g", cycles="allow")
    seen: list[Any] = []

    def look(inputs: Any) -> Any:
        seen.append(dict(inputs))
        return {"n": inputs["n"]}

    a = custom(g, "a", lambda inputs: {"n": inputs["n"] + 1})
    low = custom(g, "low", lambda inputs: {"low": f"low {inputs['n']}"})
    beside = custom(g, "beside", lambda inputs: {"beside": f"beside {inputs['n']}"})
    target = custom(g, "target", look)
    last = custom(g, "last", lambda inputs: {"n": inputs["n"]})
    g.edge_from_entry(a, ["n"])
    for node in (low, beside):
        g.create_edge(a, node, ["n"])
        g.create_edge(node, last, {})
    g.create_edge(a, target, ["n"])
    g.create_edge(a, target, ["n"], trigger=False, group="unused")
    g.create_edge(beside, target, ["beside"], trigger=False)
    g.create_edge(a, last, ["n"])
    g.create_edge(target, last, {})
    g.create_edge(low, last, ["low"], trigger=False, group="data")
    g.create_edge(last, a, ["n"], when=lambda payload: payload["n"] < 3)
    g.edge_to_exit(last, {}, trigger=False)
    g.build().invoke({"n": 0})
    assert [row.get("beside") for row in seen] == [None, "beside 1", "beside 2"]


def test_what_nodes_keep_for_themselves_outlasts_rounds_and_entries_of_their_cycle():
    """Cycles keep the inner nodes' local state between rounds and entries."""
    g = RootGraph("g", cycles="allow", attributes={"n": 0})

    def count(local: Any) -> Any:
        local["n"] = local.get("n", 0) + 1
        return {"n": local["n"]}

    outer = custom(g, "outer", lambda attributes: {"n": attributes["n"]})
    inner = custom(g, "inner", count)
    g.edge_from_entry(outer, {})
    g.create_edge(outer, inner, {})
    g.create_edge(inner, inner, {}, when=lambda state: state["n"] % 3)
    g.create_edge(inner, outer, {}, when=lambda state: state["n"] in (3, 6))
    g.edge_to_exit(inner, ["n"], when=lambda state: state["n"] == 9)
    assert g.build().invoke({}) == ({"n": 9}, {"n": 9})


def test_the_result_says_how_each_cycle_ended():
    """Else it ends naturally. The result says which."""
    g = typed("entry->a", "a->b", "b->a", a=says("a"), b=lambda state: {"log": ["b"]})
    g = RootGraph("g", state=Log, cycles="allow")
    for name in "ab":
        g.create_node(says(name), name=name, inline=True)
    g.edge_from_entry("a")
    g.create_edge("a", "b")
    g.create_edge("b", "a", when=lambda state: len(state.log) < 6)
    result = run_sync(g.build().run({}))
    (tally,) = result.cycles.values()
    assert (tally.entries, tally.rounds, tally.ends) == (1, 3, {"natural": 1})


def test_a_cycle_that_met_its_limit_gives_what_its_rounds_wrote():
    """Reaching it is the status limited with the partial result."""
    g = typed("entry->a", "a->b", "b->a", a=says("a"), b=says("b"))
    result = run_sync(g.run({}))
    assert result.status == "limited"
    assert list(result.state.log) == ["a", "b"] * 100


def test_a_run_that_failed_inside_a_subgraph_gives_what_was_written_there():
    """An error's result holds what there is."""
    g = RootGraph("g", state=Log)
    sub = g.create_node(Graph, name="sub", state=Log)
    sub.create_node(says("inner"), name="inner", inline=True)
    sub.create_node(lambda: 1 // 0, name="broken", inline=True)
    sub.edge_from_entry("inner")
    sub.create_edge("inner", "broken")
    g.create_node(says("outer"), name="outer", inline=True)
    g.edge_from_entry("outer")
    g.create_edge("outer", sub)
    with pytest.raises(NodeFailed) as caught:
        g.build().invoke({})
    assert list(caught.value.result.state.log) == ["outer", "inner"]


def test_a_cycle_where_cycles_are_forbidden_is_an_error_that_names_the_path():
    """cycles="forbid": an edge that closes a cycle is an error that names the path."""
    g = RootGraph("g")
    for name in "abc":
        g.create_node(CustomNode, name=name)
    g.create_edges([("a", "b"), ("b", "c")])
    with pytest.raises(SpecError, match="c -> a -> b -> c"):
        g.create_edge("c", "a")


# --------------------------------------------------------------------------------------------------


def test_activations_are_named_by_frame_node_and_ordinal():
    """Activation ids are names and integers: (frame, node, ordinal), with the frame holding cycle
    rounds and subgraph names.
    """
    g = RootGraph("g", state=Log)
    sub = g.create_node(Graph, name="sub", state=Log, cycles="allow")
    sub.create_node(says("a"), name="a", inline=True)
    sub.edge_from_entry("a")
    sub.create_edge("a", "a", when=lambda state: len(state.log) < 2)
    g.create_node(says("e"), name="e", inline=True, join="each")
    g.edge_from_entry(sub)
    g.edge_from_entry("e")
    g.create_edge(sub, "e")
    watch = Watch()
    run_sync(g.build().run({}, observers=[watch]))
    reported = [activation for activation, kind in watch.started if kind == "node"]
    assert set(reported) == {
        Activation(("sub", "cycle(a)", 0), "a"),
        Activation(("sub", "cycle(a)", 1), "a"),
        Activation((), "e", (0,)),
        Activation((), "e", (1,)),
    }
    assert {activation.path for activation in reported} == {"sub/a", "e"}


def test_of_failures_that_happened_the_first_in_plan_order_is_reported():
    """First failure in plan order wins; which failure is reported does not depend on the clock,
    among those that happened.
    """
    g = RootGraph("g")
    both = asyncio.Event()

    async def late(inputs: Any) -> Any:
        await both.wait()
        raise ValueError("late")

    async def early(inputs: Any) -> Any:
        both.set()
        raise ValueError("early")

    for name, body in (("first", late), ("second", early)):
        g.create_node(CustomNode, name=name, forward=body)
        g.edge_from_entry(name, {})
        g.edge_to_exit(name, {})
    with pytest.raises(NodeFailed) as caught:
        g.build().invoke({})
    named = [caught.value.path, *(other.path for other in caught.value.others)]
    assert named in (["second"], ["first", "second"])
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_node_starts_when_its_own_in_edges_are_decided():
    """Ready nodes run concurrently: nothing waits for the slowest of a batch."""
    after_quick = asyncio.Event()

    async def slow(inputs: Any) -> Any:
        await after_quick.wait()
        return {"slow": 1}

    async def after(inputs: Any) -> Any:
        after_quick.set()
        return {"after": 1}

    g = RootGraph("g")
    g.create_node(CustomNode, name="slow", forward=slow)
    custom(g, "quick", giving({}))
    g.create_node(CustomNode, name="after", forward=after)
    g.edge_from_entry("slow", {})
    g.edge_from_entry("quick", {})
    g.create_edge("quick", "after", {})
    g.edge_to_exit("slow", ["slow"])
    g.edge_to_exit("after", ["after"])
    assert g.build().invoke({})[0] == {"slow": 1, "after": 1}


@pytest.mark.parametrize("backwards", [False, True])
def test_a_chain_of_thousands_of_nodes_needs_no_stack(backwards):
    """Strongly connected components (iterative Tarjan)."""
    g = RootGraph("g")
    names = [f"n{number}" for number in range(2000)]
    for name in names:
        custom(g, name, lambda inputs: {"n": inputs["n"] + 1})
    pairs = list(pairwise(names))
    for source, target in reversed(pairs) if backwards else pairs:
        g.create_edge(source, target, ["n"])
    g.edge_from_entry(names[0], ["n"])
    g.edge_to_exit(names[-1], ["n"])
    assert g.build().invoke({"n": 0})[0] == {"n": 2000}


# --------------------------------------------------------------------------------------------------


def test_now_and_sleep_are_the_runs_clock():
    """Bodies reach the world through ctx: now, sleep."""

    async def wait(ctx: Any) -> Any:
        before = ctx.now()
        await ctx.sleep(3600)
        return {"hours": (ctx.now() - before) / 3600}

    g = RootGraph("g")
    g.create_node(CustomNode, name="n", forward=wait)
    g.edge_from_entry("n", {})
    g.edge_to_exit("n", ["hours"])
    assert g.build().invoke({}, clock=JumpingClock())[0] == {"hours": 1.0}


def test_a_chunk_is_seen_by_who_watches_and_moves_no_token():
    """emit: stream a chunk; never moves tokens."""

    def talk(ctx: Any) -> Any:
        ctx.emit("one")
        ctx.emit("two")
        return {"x": 1}

    g = RootGraph("g")
    custom(g, "n", talk)
    g.edge_from_entry("n", {})
    g.edge_to_exit("n", ["x"])
    g.build()

    async def watched() -> list[Any]:
        return [event async for event in g.stream({})]

    events = asyncio.run(watched())
    assert [event.data for event in events if event.kind == "chunk"] == ["one", "two"]
    assert events[-1].kind == "run_finished"
    assert events[-1].data.output == {"x": 1}


def asking(runs: list[str]) -> RootGraph:
    async def ask(ctx: Any) -> Any:
        runs.append("asks")
        return {"answer": await ctx.ask("Go on?")}

    g = RootGraph("g")
    g.create_node(CustomNode, name="asks", forward=ask)
    custom(g, "beside", lambda: runs.append("beside") or {"b": 1})
    custom(g, "after", lambda: runs.append("after") or {"c": 2})
    g.edge_from_entry("asks", {})
    g.edge_from_entry("beside", {})
    g.create_edge("beside", "after", {})
    g.edge_to_exit("asks", ["answer"])
    g.edge_to_exit("after", ["c"])
    return g.build()


def test_with_a_channel_a_question_waits_for_its_answer():
    """ask: if a channel is attached it waits."""
    assert asking([]).invoke({}, channel=Answers({"Go on?": "yes"}))[0] == {"answer": "yes", "c": 2}


def test_without_anybody_the_run_pauses_with_the_question_as_data_other_branches_having_run_on():
    """Else the run ends paused with the question as data, other branches having run on."""
    runs: list[str] = []
    result = run_sync(asking(runs).run({}))
    assert result.status == "paused"
    (question,) = result.questions
    assert (question.text, question.node) == ("Go on?", "asks")
    assert sorted(runs) == ["after", "asks", "beside"]
    with pytest.raises(RunPaused):
        asking([]).invoke({})


def test_a_paused_run_is_resumed_with_its_answer_and_repeats_nothing_that_finished():
    """Resume finishes what is unfinished; nothing journaled runs twice."""
    runs: list[str] = []
    journal = MemoryJournal()
    g = asking(runs)
    paused = run_sync(g.run({}, journal=journal, run_id="r"))
    result = run_sync(g.resume("r", journal=journal, answers={paused.questions[0].id: "yes"}))
    assert result.status == "done"
    assert result.output == {"answer": "yes", "c": 2}
    assert sorted(runs) == ["after", "asks", "asks", "beside"]


# --------------------------------------------------------------------------------------------------


def test_a_cancelled_run_says_so_and_a_cancelled_activation_leaves_no_trace():
    """Cancelling a run cancels leaves first; a cancelled activation leaves no trace."""
    g = RootGraph("g", attributes={"done": 0})
    started = asyncio.Event()

    async def slow(inputs: Any) -> Any:
        started.set()
        await asyncio.Event().wait()
        return {"done": 1}

    g.create_node(CustomNode, name="n", forward=slow)
    g.edge_from_entry("n", {})
    g.build()

    async def cancelled() -> Any:
        run = g.start({})
        job = asyncio.ensure_future(run.result())
        await started.wait()
        run.cancel("enough")
        return await job

    result = asyncio.run(cancelled())
    assert result.status == "cancelled"
    assert isinstance(result.error, RunCancelled)
    assert result.attributes == {"done": 0}


@pytest.mark.parametrize(
    ("limits", "says_so"),
    [
        (Limits(firings=2), "2 times"),
        (Limits(tokens=5), "tokens"),
        (Limits(cost=0.5), "cost|money|spent"),
        (Limits(seconds=5), "5 seconds"),
    ],
    ids=["firings", "tokens", "cost", "seconds"],
)
def test_reaching_a_limit_is_a_status_and_a_named_error(limits, says_so):
    """Reaching one is a status and a named error, never a silent partial result."""

    async def work(ctx: Any) -> Any:
        ctx.spend(cost=0.3, output_tokens=3)
        await ctx.sleep(3)
        return {}

    g = RootGraph("g")
    for name in "abc":
        g.create_node(CustomNode, name=name, forward=work)
    g.edge_from_entry("a", {})
    g.create_edges([("a", "b", {}), ("b", "c", {})])
    g.edge_to_exit("c", {})
    result = run_sync(g.build().run({}, limits=limits, clock=JumpingClock()))
    assert result.status == "limited"
    assert isinstance(result.error, LimitReached)
    with pytest.raises(LimitReached, match=says_so):
        raise result.error


def test_a_lane_admits_as_many_as_it_says_and_the_run_as_many_as_it_says():
    """Limits: concurrency, per-lane concurrency."""

    def most(limits: Limits) -> int:
        at_work: list[int] = [0, 0]

        async def work(inputs: Any) -> Any:
            at_work[0] += 1
            at_work[1] = max(at_work)
            for _ in range(5):
                await asyncio.sleep(0)
            at_work[0] -= 1
            return {}

        g = RootGraph("g")
        for name in "abcdef":
            g.create_node(CustomNode, name=name, forward=work, lane="human")
            g.edge_from_entry(name, {})
            g.edge_to_exit(name, {})
        run_sync(g.build().run({}, limits=limits))
        return at_work[1]

    assert most(Limits()) == 1
    assert most(Limits(lanes={"human": 3})) == 3
    assert most(Limits(lanes={"human": 5}, concurrency=2)) == 2


# --------------------------------------------------------------------------------------------------


def flaky(runs: list[str], broken: list[bool]) -> RootGraph:
    g = RootGraph("g", attributes={"n": 0})

    def work(name: str) -> Any:
        def body(attributes: Any) -> Any:
            runs.append(name)
            if name == "b" and broken[0]:
                raise RuntimeError("crash")
            return {"n": attributes["n"] + 1}

        return body

    for name in "abc":
        custom(g, name, work(name))
    g.edge_from_entry("a", {})
    g.create_edges([("a", "b", {}), ("b", "c", {})])
    g.edge_to_exit("c", ["n"])
    return g.build()


def test_after_a_crash_what_is_recorded_is_not_run_again():
    """Exactly-once recording, at-least-once execution."""
    runs: list[str] = []
    broken = [True]
    g, journal = flaky(runs, broken), MemoryJournal()
    with pytest.raises(NodeFailed):
        run_sync(g.run({}, journal=journal, run_id="r"))
    broken[0] = False
    result = run_sync(g.resume("r", journal=journal))
    assert result.output == {"n": 3}
    assert runs == ["a", "b", "b", "c"]


def test_a_resumed_run_takes_the_way_that_was_recorded():
    """It records the routed result of each edge (a resume survives a changed condition)."""
    open_left = [True]
    broken = [True]

    def fails(inputs: Any) -> Any:
        if broken[0]:
            raise RuntimeError("crash")
        return {"took": "left"}

    g = RootGraph("g")
    custom(g, "a", giving({"x": 1}))
    custom(g, "left", fails)
    custom(g, "right", giving({"took": "right"}))
    g.edge_from_entry("a", {})
    g.create_edge("a", "left", {}, when=lambda payload: open_left[0])
    g.create_edge("a", "right", {}, when=lambda payload: not open_left[0])
    for name in ("left", "right"):
        g.edge_to_exit(name, ["took"])
    g.build()
    journal = MemoryJournal()
    with pytest.raises(NodeFailed):
        run_sync(g.run({}, journal=journal, run_id="r"))
    open_left[0], broken[0] = False, False
    assert run_sync(g.resume("r", journal=journal)).output == {"took": "left"}


def test_a_loop_goes_on_in_the_round_in_which_it_stopped():
    """Per round one decision with the composed delta, which supersedes the round's entries."""
    runs: list[int] = []
    broken = [True]
    g = RootGraph("g")
    loop = g.create_node(Loop, name="loop", max_iterations=5)

    def step(inputs: Any) -> Any:
        if inputs["n"] == 3 and broken[0]:
            raise RuntimeError("crash")
        runs.append(inputs["n"])
        return {"n": inputs["n"] + 1}

    custom(loop, "step", step)
    loop.edge_from_controller("step", ["n"])
    loop.edge_to_controller("step", ["n"])
    g.edge_from_entry(loop, ["n"])
    g.edge_to_exit(loop, ["n"])
    g.build()
    journal = MemoryJournal()
    with pytest.raises(NodeFailed):
        run_sync(g.run({"n": 0}, journal=journal, run_id="r"))
    broken[0] = False
    result = run_sync(g.resume("r", journal=journal))
    assert result.output == {"n": 5}
    assert result.attributes == {"current_iteration": 5, "max_iterations": 5}
    assert runs == [0, 1, 2, 3, 4]


def test_a_value_that_the_journal_cannot_hold_is_refused_at_commit():
    """Recorded values are applied: a value that the journal cannot hold exactly is refused at
    commit.
    """
    g = RootGraph("g")
    custom(g, "n", giving({"x": object()}))
    g.edge_from_entry("n", {})
    g.edge_to_exit("n", ["x"])
    g.build()
    assert isinstance(g.invoke({})[0]["x"], object)
    with pytest.raises(NodeFailed) as caught:
        run_sync(g.run({}, journal=MemoryJournal()))
    assert isinstance(caught.value.__cause__, JournalError)


@pytest.mark.parametrize(
    "value", [float("inf"), 10**40, "\ud800", (1, 2), {1: "one"}, {"a"}, b"bytes"], ids=repr
)
def test_values_are_preserved_or_refused_never_changed(value):
    """Values are made canonical at this one edge: preserved or refused, never silently changed."""
    broken = [True]

    def fails(inputs: Any) -> Any:
        if broken[0]:
            raise RuntimeError("crash")
        return {"same": type(inputs["x"]) is type(value) and inputs["x"] == value}

    g = RootGraph("g")
    custom(g, "n", giving({"x": value}))
    custom(g, "m", fails)
    g.edge_from_entry("n", {})
    g.create_edge("n", "m", ["x"])
    g.edge_to_exit("m", ["same"])
    g.build()
    journal = MemoryJournal()
    with pytest.raises(NodeFailed) as caught:
        run_sync(g.run({}, journal=journal, run_id="r"))
    if isinstance(caught.value.__cause__, JournalError):
        return
    broken[0] = False
    assert run_sync(g.resume("r", journal=journal)).output == {"same": True}


def test_a_journal_of_another_graph_or_of_no_run_is_refused():
    journal = MemoryJournal()
    run_sync(flaky([], [False]).run({}, journal=journal, run_id="r"))
    other = RootGraph("other", edges=[("entry", "exit", ["x"])]).build()
    with pytest.raises(JournalError, match="AX504"):
        run_sync(other.resume("r", journal=journal))
    with pytest.raises(JournalError, match="AX503"):
        run_sync(other.resume("unknown", journal=journal))


def test_a_workflow_is_a_plan_and_not_a_session():
    """A built graph is immutable and may serve any number of concurrent runs: all run state lives
    in the run.
    """
    g = flaky([], [False])
    assert isinstance(g, Workflow)

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(g.run({}, {"n": n}) for n in range(30)))

    assert [result.output["n"] for result in asyncio.run(all_at_once())] == [
        n + 3 for n in range(30)
    ]
