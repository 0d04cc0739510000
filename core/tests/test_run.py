"""The shell: how bodies run, wait, fail, pause and resume."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from axil import RootGraph
from axil.builder.workflow import Workflow
from axil.contract.context import Question
from axil.errors import (
    BodyError,
    JournalError,
    KernelBug,
    LimitReached,
    MissingKeys,
    NodeFailed,
    Overdue,
    RunCancelled,
    RunPaused,
    UndeclaredField,
)
from axil.kernel.state import APPEND, Field, Reducer, Schema
from axil.kernel.tokens import Out
from axil.kernel.values import MISSING, Log
from axil.runtime.result import Result
from axil.runtime.run import run_sync
from axil.spec.graph import Limits
from axil_journals import Entry, MemoryJournal
from axil_testing import Recorder, VirtualClock
from axil_testing.specs import Tape, edge, never, node, says, workflow

LOG = Schema("log", {"log": Field("log", APPEND, default=Log)}, closed=True)


def run(flow: Workflow, input: Any = None, **options: Any) -> Result:
    async def go() -> Result:
        async with asyncio.timeout(60):
            return await flow.start(input, **options)

    return run_sync(go())


def task(id: str, call: Any, **more: Any):
    """Return an async node whose body gets the context."""
    return node(id, call, mode="async", ctx=True, **more)


def one(call: Any, **more: Any) -> Workflow:
    return workflow([task("a", call)], ["in a", "a out"], **more)


# ------------------------------------------------------------------------------------------------ b


def body_of(function: Any, **settings: Any) -> Workflow:
    g = RootGraph("g")
    a = g.create_node(function, name="a", **settings)
    g.edge_from_entry(a, {})
    g.edge_to_exit(a, ["thread"])
    return g.build()


def test_a_sync_body_runs_in_a_thread_of_its_own():
    output = run(body_of(lambda inputs: {"thread": threading.get_ident()})).output
    assert output["thread"] != threading.get_ident()


def test_an_inline_body_runs_where_the_loop_runs():
    assert (
        run(body_of(lambda inputs: {"thread": threading.get_ident()}, inline=True)).output["thread"]
        == threading.get_ident()
    )


def test_an_async_body_is_awaited_on_the_loop():
    async def body(inputs):
        await asyncio.sleep(0)
        return {"thread": threading.get_ident()}

    assert run(body_of(body)).output["thread"] == threading.get_ident()


def test_a_generator_streams_its_items_and_the_last_one_is_its_result():
    async def body(inputs):
        yield "one"
        yield "two"
        yield {"thread": 3}

    watcher = Recorder()
    assert run(body_of(body), observers=[watcher]).output == {"thread": 3}
    assert watcher["a"].chunks == ("one", "two")


def test_a_chunk_never_moves_a_token():
    async def body(task, ctx):
        ctx.emit({"by": "nobody"})
        return Out({"by": "a"})

    assert run(one(body)).output == {"by": "a"}


def test_a_chunk_from_a_thread_reaches_observers_on_the_loop_before_the_end():
    threads: list[int] = []

    class Observer:
        def chunk(self, chunk):
            threads.append(threading.get_ident())

        def firing_finished(self, output):
            threads.append(-1)

    def body(ctx):
        ctx.emit("from afar")
        return {"thread": 0}

    async def at_once(ctx):
        thread = threading.Thread(target=ctx.emit, args=["from afar"])
        thread.start()
        thread.join()  # its outcome is there before the loop runs anything else
        return {"thread": 0}

    for each in (body, at_once):
        threads.clear()
        run(body_of(each), observers=[Observer()])
        assert threads == [threading.get_ident(), -1]


def test_context_variables_reach_a_body_in_a_thread():
    import contextvars

    who = contextvars.ContextVar("who", default="nobody")
    flow = body_of(lambda inputs: {"thread": who.get()})

    async def go():
        who.set("me")
        return await flow.start({})

    assert run_sync(go()).output == {"thread": "me"}


def test_what_a_body_gives_must_be_an_outcome():
    result = run(workflow([node("a", lambda task, ctx: {"by": "a"})], ["in a", "a out"]))
    assert isinstance(result.error, NodeFailed)
    assert isinstance(result.error.__cause__, BodyError)


def test_ready_bodies_run_side_by_side():
    names = [f"n{i}" for i in range(6)]
    meeting = asyncio.Barrier(len(names))

    async def body(task, ctx):
        await meeting.wait()
        return Out({})

    flow = workflow([task(n, body) for n in names], [f"in {n}" for n in names])
    assert run(flow).status == "done"


def test_no_more_bodies_are_at_work_than_are_allowed():
    at_work = most = 0

    async def body(task, ctx):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.001)
        at_work -= 1
        return Out({})

    names = [f"n{i}" for i in range(6)]
    flow = workflow([task(n, body) for n in names], [f"in {n}" for n in names])
    assert run(flow, limits=Limits(concurrency=2)).status == "done"
    assert most == 2


def test_a_lane_admits_one_at_a_time_by_default():
    for limits, expected in ((Limits(), 1), (Limits(lanes={"human": 3}), 3)):
        at_work: dict[str, int] = {"human": 0, "": 0}
        most = dict(at_work)

        def body(lane: str, at_work=at_work, most=most):
            async def call(task, ctx):
                at_work[lane] += 1
                most[lane] = max(most[lane], at_work[lane])
                await asyncio.sleep(0.001)
                at_work[lane] -= 1
                return Out({})

            return call

        nodes = [task(f"h{i}", body("human"), lane="human") for i in range(4)] + [
            task(f"n{i}", body("")) for i in range(4)
        ]
        assert run(workflow(nodes, [f"in {n.id}" for n in nodes]), limits=limits).status == "done"
        assert most == {"human": expected, "": 4}


def test_a_lane_is_served_in_plan_order():
    order: list[str] = []

    async def body(task, ctx):
        order.append(ctx.activation.node)
        await asyncio.sleep(0)
        return Out({})

    run(workflow([task(f"h{i}", body, lane="x") for i in range(5)], [f"in h{i}" for i in range(5)]))
    assert order == ["h0", "h1", "h2", "h3", "h4"]


def test_an_inline_body_in_a_lane_waits_for_its_turn():
    acts: list[str] = []

    async def slow(task, ctx):
        acts.append("a begins")
        await asyncio.sleep(0)
        acts.append("a ends")
        return Out({})

    def quick(task, ctx):
        acts.append("b")
        return Out({})

    nodes = [task("a", slow, lane="x"), node("b", quick, lane="x")]
    run(workflow(nodes, ["in a", "in b"]))
    assert acts == ["a begins", "a ends", "b"]


# ------------------------------------------------------------------------------------------------ l


def test_a_firing_that_waits_for_an_answer_counts_once_however_often_it_is_begun():
    async def two(task, ctx):
        return Out({"n": [await ctx.ask(Question(text=text)) for text in ("a?", "b?")]})

    flow, journal = one(two), MemoryJournal()
    result = run(flow, run_id="r", journal=journal)
    assert result.usage.firings == 0
    while result.status == "paused":
        answers = {question.id: question.text for question in result.questions}
        options = {"run_id": "r", "journal": journal, "limits": Limits(firings=1)}
        result = run(flow, resuming=True, answers=answers, **options)
    assert (result.output, result.usage.firings) == ({"n": ["a?", "b?"]}, 1)


def test_the_limit_of_firings_ends_the_run_before_the_next_one():
    result = run(
        workflow(["a", "b", "c"], ["in a", "a b", "b c", "c out"]), limits=Limits(firings=2)
    )
    assert (result.status, result.usage.firings) == ("limited", 2)
    assert isinstance(result.error, LimitReached)
    assert result.error.id == "AX412"
    assert result.error.result is result


def test_the_limit_of_seconds_ends_a_body_that_hangs():
    async def hang(task, ctx):
        await asyncio.Event().wait()

    clock = VirtualClock()
    result = run(one(hang), limits=Limits(seconds=60), clock=clock)
    assert result.status == "limited"
    assert result.error is not None
    assert result.error.id == "AX415"
    assert clock.now() == 60


# ------------------------------------------------------------------------------------------------ f


def test_a_failure_names_the_node_and_keeps_the_original():
    result = run(workflow([node("a", lambda task, ctx: 1 / 0)], ["in a", "a out"]))
    assert result.status == "failed"
    assert isinstance(result.error, NodeFailed)
    assert result.error.path == "a"
    assert isinstance(result.error.__cause__, ZeroDivisionError)
    assert result.error.result is result


def test_of_the_failures_that_happened_the_first_in_plan_order_is_reported():
    async def slow(task, ctx):
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("a, while it was cancelled")

    async def fast(task, ctx):
        raise ValueError("b")

    result = run(workflow([task("a", slow), task("b", fast)], ["in a", "in b"]))
    assert isinstance(result.error, NodeFailed)
    assert result.error.path == "a"
    assert [other.path for other in result.error.others] == ["b"]


def test_a_failure_cancels_the_others():
    cancelled: list[str] = []

    async def wait(task, ctx):
        await meeting.wait()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(ctx.activation.node)
            raise

    meeting = asyncio.Barrier(3)

    async def fail(task, ctx):
        await meeting.wait()
        raise ValueError("b")

    result = run(
        workflow([task("a", wait), task("b", fail), task("c", wait)], ["in a", "in b", "in c"])
    )
    assert result.status == "failed"
    assert sorted(cancelled) == ["a", "c"]


def test_an_edge_that_fails_fails_its_source():
    def broken(payload):
        raise LookupError("no")

    result = run(workflow(["a", "b"], ["in a", edge("a", "b", condition=broken)]))
    assert isinstance(result.error, NodeFailed)
    assert result.error.path == "a"


def test_an_edge_that_fails_behind_a_join_of_what_two_wrote_fails_its_source():
    def broken(payload):
        raise LookupError("no")

    nodes = ["s", node("a", says(x=1)), node("b", says(y=1)), "t"]
    last = edge("t", "out", condition=broken)
    result = run(workflow(nodes, ["in s", "s a", "s b", "a t", "b t", last]))
    assert isinstance(result.error, NodeFailed)
    assert result.error.path == "t"
    assert result.attributes == {"x": 1, "y": 1}


def test_an_input_that_the_entry_edges_do_not_accept_fails_the_entry():
    result = run(workflow(["a"], [edge("in", "a", keys={"topic": ""})]), {"topik": 1})
    assert isinstance(result.error, NodeFailed)
    assert result.error.path == "@entry"
    assert isinstance(result.error.__cause__, MissingKeys)


def test_an_undeclared_write_fails_its_node_and_commits_nothing():
    result = run(workflow([node("a", says({}, lug=[1])), "b"], ["in a", "a b"], schema=LOG))
    assert isinstance(result.error.__cause__, UndeclaredField)
    assert result.attributes == {"log": []}


def test_states_that_cannot_be_joined_fail_the_node_where_they_meet():
    edges = ["in a", "in b", edge("a", "t", filter=lambda state: {"log": ["x"]}), "b t"]
    result = run(
        workflow(
            [node("a", says({}, log=[1])), node("b", says({}, log=[2])), "t"], edges, schema=LOG
        )
    )
    assert isinstance(result.error, NodeFailed)
    assert result.error.path == "t"
    assert result.error.__cause__.id == "AX213"


def test_states_that_cannot_be_joined_at_the_end_fail_the_exit():
    edges = ["in a", "in b", edge("a", "t", filter=lambda state: {"log": ["x"]}), "b out", "t out"]
    result = run(
        workflow(
            [node("a", says({}, log=[1])), node("b", says({}, log=[2])), "t"], edges, schema=LOG
        )
    )
    assert isinstance(result.error, NodeFailed)
    assert result.error.path == "@exit"


def _fails(task, ctx):
    raise LookupError("no")


@pytest.mark.parametrize("others", [[], [node("c", _fails)]], ids=["at_the_exit", "elsewhere"])
def test_a_run_that_failed_ends_also_where_a_reducer_refuses_to_join_its_paths(others):
    def once(old: object, new: object) -> object:
        if old is not MISSING:
            raise LookupError("written before")
        return new

    schema = Schema("once", {"x": Field("x", Reducer("once", once))}, closed=True)
    nodes = [node("a", says({}, x=1)), node("b", says({}, x=2)), *others]
    journal = MemoryJournal()
    edges = [f"in {each.id}" for each in nodes]
    result = run(workflow(nodes, edges, schema=schema), journal=journal, run_id="r")
    assert result.status == "failed"
    assert isinstance(result.error, NodeFailed)
    assert [info.status for info in journal.runs()] == ["failed"]


def test_cancelling_ends_bodies_innermost_first_and_leaves_no_trace():
    order: list[str] = []
    started = asyncio.Event()

    async def inner(task, ctx):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            order.append("inner")

    deep = one(inner)

    async def outer(task, ctx):
        try:
            await ctx.run(deep.plan, {}, name="deep")
        finally:
            order.append("outer")

    tape = Tape()

    async def go():
        run = one(outer).start({}, journal=tape)
        job = asyncio.ensure_future(run.result())
        await started.wait()
        run.cancel("enough")
        return await job

    result = run_sync(go())
    assert order == ["inner", "outer"]
    assert result.status == "cancelled"
    assert isinstance(result.error, RunCancelled)
    assert "enough" in str(result.error)
    assert [entry.kind for entry in tape.lines] == ["run", "ended"]


def test_cancelling_the_task_that_runs_it_cancels_the_run():
    gone = False

    async def wait(task, ctx):
        nonlocal gone
        try:
            await asyncio.Event().wait()
        finally:
            gone = True

    async def go():
        run = one(wait).start({})
        job = asyncio.ensure_future(run.result())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        return await run.result()

    assert run_sync(go()).status == "cancelled"
    assert gone


def test_a_run_cancelled_before_it_began_runs_nothing():
    ran: list[str] = []

    async def go():
        run = workflow([node("a", lambda task, ctx: ran.append("a"))], ["in a"]).start({})
        run.cancel()
        return await run

    assert run_sync(go()).status == "cancelled"
    assert ran == []


def test_a_result_is_made_once_and_given_to_all_who_ask_later():
    async def go():
        run = workflow(["a"], ["in a", "a out"]).start({})
        first = await run
        assert await run is first
        return first

    assert run_sync(go()).output == {"by": "a"}


def test_a_run_awaited_twice_at_once_is_refused():
    async def wait(task, ctx):
        await asyncio.sleep(0)
        return Out({})

    async def go():
        run = one(wait).start({})
        first = asyncio.ensure_future(run.result())
        await asyncio.sleep(0)
        with pytest.raises(KernelBug):
            await run.result()
        return await first

    assert run_sync(go()).status == "done"


def test_the_loop_gets_a_turn_during_much_inline_work():
    turns = 0

    async def go():
        nonlocal turns

        async def other():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        job = asyncio.ensure_future(other())
        n = 12_000
        flow = workflow(
            [f"n{i}" for i in range(n)], ["in n0", *(f"n{i} n{i + 1}" for i in range(n - 1))]
        )
        await flow.start({})
        job.cancel()

    run_sync(go())
    assert turns > 1


def test_a_journal_that_fails_ends_the_run_with_its_own_error():
    class Full(Tape):
        def append(self, entry: Entry) -> None:
            if entry.kind == "done":
                raise OSError("disk full")
            super().append(entry)

    with pytest.raises(OSError, match="disk full"):
        run(workflow(["a"], ["in a", "a out"]), journal=Full())


def test_a_journal_that_refuses_a_round_fails_the_cycle_whatever_its_paths_wrote():
    class Full(Tape):
        def append(self, entry: Entry) -> None:
            if entry.kind == "round":
                raise JournalError("a value cannot be kept.", id="AX501")
            super().append(entry)

    nodes = ["s", node("a", says(x=1)), node("b", says(y=1))]
    back = [edge(name, "s", condition=never) for name in "ab"]
    result = run(workflow(nodes, ["in s", "s a", "s b", *back]), journal=Full())
    assert isinstance(result.error, NodeFailed)
    assert isinstance(result.error.__cause__, JournalError)
    assert result.attributes == {"x": 1, "y": 1}


def test_a_value_that_the_journal_refuses_fails_its_node_and_has_no_effect():
    ran: list[str] = []
    nodes = [node("a", says({"o": object()})), node("b", lambda task, ctx: ran.append("b"))]
    result = run(workflow(nodes, ["in a", "a b"]), journal=MemoryJournal())
    assert isinstance(result.error.__cause__, JournalError)
    assert ran == []


def test_without_a_journal_any_value_may_travel():
    thing = object()
    assert run(workflow([node("a", says({"o": thing}))], ["in a", "a out"])).output == {"o": thing}


def test_a_journal_that_takes_its_time_is_waited_for_before_effects():
    safe: list[str] = []

    class Slow(Tape):
        async def _kept(self) -> None:
            await asyncio.sleep(0)
            safe.extend(entry.node for entry in self.lines[len(safe) :])

        def kept(self) -> Any:
            return self._kept() if len(safe) < len(self.lines) else None

    async def b(task, ctx):
        assert safe == ["", "a"]
        return Out({})

    assert (
        run(workflow(["a", node("b", b, mode="async")], ["in a", "a b"]), journal=Slow()).status
        == "done"
    )
    assert safe == ["", "a", "b", ""]


def test_bodies_that_are_at_work_together_wait_for_the_journal_together():
    waits: list[int] = []

    class Slow(Tape):
        async def _kept(self) -> None:
            waits.append(len(self.lines))
            await asyncio.sleep(0)

        def kept(self) -> Any:
            return self._kept() if not waits or waits[-1] < len(self.lines) else None

    async def body(task, ctx):
        await asyncio.sleep(0)
        return Out({})

    nodes = [node(f"n{i}", body, mode="async") for i in range(50)]
    assert run(workflow(nodes, [f"in n{i}" for i in range(50)]), journal=Slow()).status == "done"
    assert len(waits) < 6


# ------------------------------------------------------------------------------------------------ w


def test_questions_that_are_asked_together_are_all_open_however_slowly_they_are_journaled():
    class Slow(Tape):
        async def _kept(self, seconds: float) -> None:
            await asyncio.sleep(seconds)

        def kept(self) -> Any:
            asked = sum(entry.kind == "asked" for entry in self.lines)
            return self._kept(0.02 * asked) if self.lines[-1].kind == "asked" else None

    async def body(task, ctx):
        await asyncio.gather(ctx.ask("a?", name="a"), ctx.ask("b?", name="b"))
        return Out({})

    result = run(one(body), journal=Slow())
    assert {question.text for question in result.questions} == {"a?", "b?"}


def test_deps_are_handed_to_bodies_and_never_journaled():
    client = object()

    async def body(task, ctx):
        assert ctx.deps is client
        return Out({})

    assert run(one(body), deps=client, journal=MemoryJournal()).status == "done"


def test_a_body_may_ask_what_was_allowed_and_where_it_may_work(tmp_path):
    async def body(task, ctx):
        return Out({"code": ctx.allows("code"), "here": ctx.workspace == tmp_path})

    assert run(one(body), allow=frozenset({"code"}), workspace=tmp_path).output == {
        "code": True,
        "here": True,
    }
    assert run(one(body)).output == {"code": False, "here": False}


def test_a_workspace_may_be_given_as_text_and_what_is_no_path_is_refused_at_once():
    seen = []

    async def body(task, ctx):
        seen.append(ctx.workspace)
        return Out({})

    flow = one(body)
    assert run(flow, workspace="some/folder").status == "done"
    assert seen == [Path("some/folder")]
    with pytest.raises(TypeError, match="workspace: expected an object with joinpath, found 5"):
        run(flow, workspace=5)
    assert len(seen) == 1


def test_what_a_node_keeps_is_its_own_and_gone_with_the_run():
    def body(local):
        local["n"] = local.get("n", 0) + 1
        return {"n": local["n"]}

    g = RootGraph("g", cycles="allow")
    a = g.create_node(body, name="a", inline=True)
    g.edge_from_entry(a, {})
    g.create_edge(a, a, ["n"], when=lambda payload: payload["n"] < 3)
    g.edge_to_exit(a, ["n"], when=lambda payload: payload["n"] >= 3)
    g.build()
    for _ in range(2):
        assert g.invoke({}) == ({"n": 3}, {})


def test_a_body_reads_time_since_the_run_began_and_sleeps_on_the_runs_clock():
    async def body(task, ctx):
        before = ctx.now()
        await ctx.sleep(3600)
        return Out({"before": before, "after": ctx.now()})

    clock = VirtualClock(1000.0)
    assert run(one(body), clock=clock).output == {"before": 0.0, "after": 3600.0}


def test_time_can_be_read_and_recorded_from_a_thread():
    def body(ctx):
        return {"thread": ctx.now() >= 0}

    tape = Tape()
    assert run(body_of(body), journal=tape).output == {"thread": True}
    assert [entry.kind for entry in tape.lines] == ["run", "clock", "done", "ended"]


def test_a_resumed_body_reads_the_same_time_sleeps_the_rest_and_repeats_no_step():
    calls = 0
    tape = Tape()
    clock = VirtualClock()
    cut = True

    async def fetch():
        nonlocal calls
        calls += 1
        return {"page": calls}

    async def body(task, ctx):
        read = ctx.now()
        page = await ctx.step("fetch", fetch)
        await ctx.sleep(100)
        if cut:
            clock.advance(40)
            raise RuntimeError("power cut")
        return Out({"read": read, "page": page})

    flow = one(body)
    assert run(flow, run_id="r", journal=tape, clock=clock).status == "failed"
    cut = False
    again = VirtualClock()
    result = run(flow, run_id="r", journal=tape, clock=again)
    assert result.output == {"read": 0.0, "page": {"page": 1}}
    assert calls == 1
    assert again.now() == 0  # it had slept enough when the power was cut


def test_a_sub_run_has_a_frame_of_its_own_and_gives_back_output_and_changes():
    inner = workflow(
        [node("w", lambda task, ctx: Out({"m": 2}, {"x": task.state["x"] + 1}))], ["in w", "w out"]
    )

    async def body(task, ctx):
        parts = [await ctx.run(inner.plan, {}, name=i) for i in range(2)]
        assert [part.fired for part in parts] == [True, True]
        return Out({"m": [part.output["m"] for part in parts]}, parts[-1].changes)

    watcher = Recorder()
    result = run(one(body, attributes={"x": 1}), observers=[watcher])
    assert (result.output, result.attributes) == ({"m": [2, 2]}, {"x": 2})
    assert watcher.names() == ["a/0/w", "a/1/w", "a"]


def test_sub_runs_side_by_side_do_not_mix():
    async def inner_body(task, ctx):
        await asyncio.sleep(0)
        return Out({"i": task.tokens[0].payload["i"]})

    inner = workflow([task("w", inner_body)], ["in w", "w out"])

    async def body(task, ctx):
        parts = await asyncio.gather(*(ctx.run(inner.plan, {"i": i}, name=i) for i in range(20)))
        return Out({"i": [part.output["i"] for part in parts]})

    assert run(one(body)).output == {"i": list(range(20))}


def test_a_body_that_waits_for_its_sub_run_leaves_its_room_to_it():
    async def leaf(task, ctx):
        return Out({})

    inner = workflow([task("w", leaf)], ["in w", "w out"])

    async def body(task, ctx):
        await ctx.run(inner.plan, {}, name="sub")
        return Out({})

    assert run(one(body), limits=Limits(concurrency=1)).status == "done"


def test_a_body_that_waits_for_its_sub_run_needs_no_room_to_end_with_a_run_that_is_cancelled():
    async def leaf(task, ctx):
        return Out({})

    inner = workflow([task("w", leaf)], ["in w", "w out"])

    async def waits(task, ctx):
        await ctx.run(inner.plan, {}, name="sub")
        return Out({})

    async def holds_the_room(task, ctx):
        going[0].cancel("enough")
        await asyncio.Event().wait()
        return Out({})

    nodes = [task("a", waits), task("b", holds_the_room)]
    going = [workflow(nodes, ["in a", "in b"]).start(limits=Limits(concurrency=1))]

    async def go() -> Result:
        async with asyncio.timeout(60):
            return await going[0]

    assert run_sync(go()).status == "cancelled"


def while_it_waits_for_room(act: Any) -> Result:
    """Run, with room for one body, a body whose sub-run has ended while another body had the room.

    That one calls ``act(sub, jobs)``: ``sub(name)`` runs another sub-run in the first body, which
    waits for all tasks in ``jobs``; the first of them waits for room.
    """
    inner = workflow([task("w", _leaf)], ["in w", "w out"])
    jobs: list[asyncio.Task[Any]] = []

    async def waits(body, ctx):
        def sub(name: str) -> Any:
            return ctx.run(inner.plan, {}, name=name)

        jobs.append(asyncio.ensure_future(sub("first")))
        acts.append(lambda: act(sub, jobs))
        while left := [job for job in jobs if not job.done()]:
            await asyncio.wait(left)
        return Out({})

    async def has_the_room(body, ctx):
        await asyncio.sleep(0)  # the sub-run that has ended finds no room
        await acts[0]()
        return Out({})

    acts: list[Any] = []
    nodes = [task("a", waits), task("b", _leaf), task("c", has_the_room)]
    return run(workflow(nodes, ["in a", "in b", "b c"]), limits=Limits(concurrency=1))


async def _leaf(task, ctx):
    return Out({})


def test_a_body_that_waits_for_room_leaves_it_when_it_begins_another_sub_run():
    async def act(sub, jobs):
        jobs.append(asyncio.ensure_future(sub("second")))
        await asyncio.sleep(0)

    result = while_it_waits_for_room(act)
    assert (result.status, result.usage.firings) == ("done", 5)


def test_a_wait_for_room_may_be_cancelled_in_the_moment_in_which_there_is_room():
    async def act(sub, jobs):
        jobs[0].cancel()

    assert while_it_waits_for_room(act).status == "done"


def test_a_body_that_ends_before_its_sub_run_leaves_no_room_behind():
    inner = workflow([task("w", _leaf)], ["in w", "w out"])
    left: list[asyncio.Task[Any]] = []
    at_work = most = 0

    async def hurries(body, ctx):
        left.append(asyncio.ensure_future(ctx.run(inner.plan, {}, name="sub")))
        await asyncio.sleep(0)
        return Out({})

    async def counts(body, ctx):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0)
        left[0].cancel()
        await asyncio.sleep(0)
        at_work -= 1
        return Out({})

    nodes = [task("a", hurries), *(task(each, counts) for each in "bcd")]
    arrows = ["in a", "a b", "a c", "a d"]
    result = run(workflow(nodes, arrows), limits=Limits(concurrency=1))
    assert (result.status, most) == ("done", 1)


def test_a_sub_run_may_begin_with_a_state_of_its_own_even_an_empty_one():
    inner = workflow(
        [node("w", lambda task, ctx: Out({"saw": dict(task.state)}))], ["in w", "w out"]
    )

    async def body(task, ctx):
        part = await ctx.run(inner.plan, {}, name="sub", state=Schema().start())
        return Out(part.output)

    assert run(one(body, attributes={"x": 1})).output == {"saw": {}}


# ------------------------------------------------------------------------------------------------ q


async def ask(task: Any, ctx: Any) -> Out:
    return Out({"answer": await ctx.ask("really?")})


def test_a_question_without_a_channel_pauses_the_run_and_is_in_the_result():
    result = run(one(ask))
    assert result.status == "paused"
    assert isinstance(result.error, RunPaused)
    (question,) = result.questions
    assert (question.text, question.node, question.id) == ("really?", "a", "a?1")


def test_other_branches_run_on_while_a_question_is_open():
    watcher = Recorder()
    result = run(
        workflow([task("a", ask), "b", "c", "t"], ["in a", "in b", "b c", "a t", "c t"]),
        observers=[watcher],
    )
    assert result.status == "paused"
    assert watcher.names() == ["b", "c"]


def test_all_open_questions_are_in_the_result_those_of_inner_frames_too():
    inner = workflow([task("w", ask)], ["in w", "w out"])

    async def outer(task, ctx):
        await ctx.run(inner.plan, {}, name=0)
        return Out({})

    result = run(workflow([task("a", ask), task("b", outer)], ["in a", "in b"]))
    assert [q.id for q in result.questions] == ["a?1", "b/0/w?1"]


def test_an_answer_that_is_at_hand_is_given_at_once():
    assert run(one(ask), answers={"a?1": "yes"}).output == {"answer": "yes"}


def test_a_channel_is_asked_and_waited_for():
    class Channel:
        async def ask(self, question: Question) -> Any:
            await asyncio.sleep(0)
            return f"{question.node} says yes"

    assert run(one(ask), channel=Channel()).output == {"answer": "a says yes"}


class Slow:
    """A channel that answers after so many seconds of a clock."""

    def __init__(self, clock: VirtualClock, seconds: float) -> None:
        self.clock, self.seconds, self.due = clock, seconds, list[float | None]()

    async def ask(self, question: Question) -> Any:
        self.due.append(question.due)
        await self.clock.sleep(self.seconds)
        return "yes"


def asking_within(seconds: float, default: Any = None) -> Workflow:
    question = Question(text="now?", within_seconds=seconds, default=default)

    async def body(task, ctx):
        return Out({"answer": await ctx.ask(question)})

    return one(body)


def test_the_first_of_answer_and_deadline_counts():
    for seconds, default, expected in ((4.0, "no", "yes"), (6.0, "no", "no"), (4.0, None, "yes")):
        channel = Slow(VirtualClock(100.0), seconds)
        result = run(asking_within(5.0, default), channel=channel, clock=channel.clock)
        assert (result.output, channel.due) == ({"answer": expected}, [105.0])
    clock = VirtualClock()
    result = run(asking_within(5.0), channel=Slow(clock, 6.0), clock=clock)
    assert result.status == "failed"
    assert isinstance(result.error.__cause__, Overdue)
    assert clock.now() == 5.0


def test_a_resumed_run_asks_until_the_deadline_that_its_question_had():
    for later, expected in ((1.0, "yes"), (3.0, "no"), (9.0, "no")):
        clock, kept = VirtualClock(), {"journal": MemoryJournal(), "run_id": "r"}
        assert run(asking_within(5.0, "no"), clock=clock, **kept).questions[0].due == 5.0
        clock.advance(later)
        channel = Slow(clock, 3.0)
        assert run(asking_within(5.0, "no"), channel=channel, clock=clock, **kept).output == {
            "answer": expected
        }
        assert channel.due == ([5.0] if later < 5.0 else [])


# what the loop was to do and never will
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_thread_that_reads_the_clock_while_the_run_ends_is_not_held():
    called, returned = threading.Event(), threading.Event()

    async def go() -> None:
        loop: Any = asyncio.get_running_loop()

        def body(ctx: Any) -> dict[str, Any]:
            loop.call_soon_threadsafe = lambda *_, **__: None  # it will not come to that any more
            called.set()
            ctx.now()
            returned.set()
            return {"thread": ""}

        job = asyncio.ensure_future(body_of(body).run(journal=MemoryJournal()))
        while not called.is_set():  # noqa: ASYNC110  # it is set in a thread
            await asyncio.sleep(0.001)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
        del loop.call_soon_threadsafe

    asyncio.run(go())
    assert returned.wait(30)


def test_a_channel_that_cannot_answer_now_pauses_the_run():
    class Away:
        async def ask(self, question: Question) -> Any:
            return MISSING

    assert run(one(ask), channel=Away()).status == "paused"


def test_a_paused_run_continues_with_the_answer_and_runs_nothing_twice():
    ran: list[str] = []

    def note(task, ctx):
        ran.append("b")
        return Out({"by": "b"})

    flow = workflow(
        [task("a", ask), node("b", note), "t"], ["in a", "in b", "a t", "b t", edge("a", "out")]
    )
    journal = MemoryJournal()
    paused = run(flow, run_id="r", journal=journal)
    assert paused.status == "paused"
    result = run(flow, run_id="r", journal=journal, answers={paused.questions[0].id: "yes"})
    assert (result.status, result.output) == ("done", {"answer": "yes"})
    assert ran == ["b"]
    # the answer is in the journal now
    assert run(flow, run_id="r", journal=journal).output == {"answer": "yes"}


def test_an_answer_of_a_channel_is_recorded_and_not_asked_for_again():
    asked = 0
    broken = True

    class Channel:
        async def ask(self, question: Question) -> Any:
            nonlocal asked
            asked += 1
            return "yes"

    async def body(task, ctx):
        answer = await ctx.ask("really?")
        if broken:
            raise RuntimeError("power cut")
        return Out({"answer": answer})

    journal = MemoryJournal()
    assert run(one(body), run_id="r", journal=journal, channel=Channel()).status == "failed"
    broken = False
    assert run(one(body), run_id="r", journal=journal, channel=Channel()).output == {
        "answer": "yes"
    }
    assert asked == 1


def test_an_answer_goes_to_the_step_that_asked_for_it():
    """A step that was recorded asks no more; what the next one asks is not taken for it."""

    async def body(task, ctx):
        async def asking(text: str) -> Any:
            return await ctx.ask(text)

        first = await ctx.step("a", lambda: asking("a?"))
        second = await ctx.step("b", lambda: asking("b?"))
        return Out({"said": [first, second, await ctx.ask("c?")]})

    journal = MemoryJournal()
    answers: dict[str, str] = {}
    for text in ("a?", "b?", "c?"):
        result = run(one(body), run_id="r", journal=journal, answers=answers)
        assert [question.text for question in result.questions] == [text]
        answers[result.questions[0].id] = f"to {text}"
    assert run(one(body), run_id="r", journal=journal, answers=answers).output == {
        "said": ["to a?", "to b?", "to c?"]
    }
    assert list(answers) == ["a?a.1", "a?b.1", "a?1"]


def test_steps_side_by_side_ask_under_their_own_names():
    async def body(task, ctx):
        async def asking(name: str, turns: int) -> Any:
            for _ in range(turns):
                await asyncio.sleep(0)
            return await ctx.ask(f"{name}?")

        turns = (3, 0) if hasty else (0, 3)
        async with asyncio.TaskGroup() as group:
            jobs = [
                group.create_task(ctx.step(n, lambda n=n, t=t: asking(n, t)))
                for n, t in zip("xy", turns, strict=True)
            ]
        return Out({"said": [job.result() for job in jobs]})

    hasty = True
    answers: dict[str, Any] = {}
    journal = MemoryJournal()
    while (
        result := run(one(body), run_id="r", journal=journal, answers=answers)
    ).status == "paused":
        answers.update({question.id: question.text for question in result.questions})
        hasty = not hasty
    assert result.output == {"said": ["x?", "y?"]}
    assert set(answers) == {"a?x.1", "a?y.1"}


def test_what_a_recorded_step_read_from_the_clock_moves_no_other_reading():
    broken = True

    async def body(task, ctx):
        async def look() -> float:
            return ctx.now()

        await ctx.step("look", look)
        now = ctx.now()
        if broken:
            raise RuntimeError("power cut")
        return Out({"now": now})

    journal = MemoryJournal()
    run(one(body), run_id="r", journal=journal)
    read = [
        entry.data["value"]
        for entry in journal.entries("r")
        if entry.kind == "clock" and entry.data["call"] == 1
    ]
    broken = False
    assert [run(one(body), run_id="r", journal=journal).output["now"]] == read


def test_a_node_in_a_cycle_may_ask_in_every_round():
    async def body(task, ctx):
        return Out({"n": await ctx.ask("n?")})

    edges = [
        "in a",
        edge("a", "a", condition=lambda payload: payload["n"] < 2),
        edge("a", "out", condition=lambda payload: payload["n"] >= 2),
    ]
    flow = workflow([task("a", body)], edges)
    journal = MemoryJournal()
    answers: dict[str, int] = {}
    for n in range(3):
        result = run(flow, run_id="r", journal=journal, answers=answers)
        assert result.status == "paused"
        answers[result.questions[0].id] = n
    assert run(flow, run_id="r", journal=journal, answers=answers).output == {"n": 2}
    assert list(answers) == ["cycle(a)/0/a?1", "cycle(a)/1/a?1", "cycle(a)/2/a?1"]


# ------------------------------------------------------------------------------------------------ j


def test_a_resumed_run_takes_the_recorded_routes_even_if_a_condition_has_changed():
    open_now = True
    edges = ["in a", edge("a", "b", condition=lambda payload: open_now), "b c", "c out"]
    fail = True

    def c(task, ctx):
        if fail:
            raise RuntimeError("power cut")
        return Out({"by": "c"})

    flow = workflow(["a", "b", node("c", c)], edges)
    journal = MemoryJournal()
    assert run(flow, run_id="r", journal=journal).status == "failed"
    open_now = fail = False
    assert run(flow, run_id="r", journal=journal).output == {"by": "c"}


def test_a_run_id_that_is_taken_by_another_input_is_an_error():
    flow = workflow(
        [node("a", lambda task, ctx: Out(dict(task.tokens[0].payload)))], ["in a", "a out"]
    )
    journal = MemoryJournal()
    run(flow, {"x": 1}, run_id="r", journal=journal)
    with pytest.raises(JournalError, match="AX505"):
        run(flow, {"x": 2}, run_id="r", journal=journal)


def test_a_resumed_run_uses_the_inputs_it_began_with():
    flow = workflow(
        [node("a", lambda task, ctx: Out(dict(task.tokens[0].payload)))], ["in a", "a out"]
    )
    journal = MemoryJournal()
    run(flow, {"x": 1}, run_id="r", journal=journal)
    assert run(flow, {"x": 2}, run_id="r", journal=journal, resuming=True).output == {"x": 1}


def test_a_round_that_ended_the_cycle_is_not_turned_again():
    ran: list[str] = []

    def call(task, ctx):
        ran.append(str(task.frame))
        return Out({})

    flow = workflow(
        [node("a", call), node("b", call)],
        ["in a", "a b", edge("b", "a", condition=never), "b out"],
    )
    tape = Tape()
    assert run(flow, run_id="r", journal=tape).status == "done"
    last = max(i for i, entry in enumerate(tape.lines) if entry.kind == "round")
    ran.clear()
    assert run(flow, run_id="r", journal=Tape(tape.lines[: last + 1])).status == "done"
    assert ran == []


# ------------------------------------------------------------------------------------------------ t


def stepping(body):
    graph = RootGraph("one")
    node = graph.create_node(body, name="a")
    graph.edge_from_entry(node)
    graph.edge_to_exit(node)
    return graph.build()


def test_the_sync_door_opens_where_an_event_loop_is_running():
    graph = stepping(lambda inputs: {"message": inputs["message"].upper()})

    async def go():
        result = graph.invoke("hello")
        output, attributes = result
        assert (output, attributes) == ({"message": "HELLO"}, {})
        assert (result.status, result.usage.firings) == ("done", 1)

    asyncio.run(go())


def test_an_error_of_a_run_is_raised_where_an_event_loop_is_running():
    def fail(inputs):
        raise ValueError("no")

    async def go():
        with pytest.raises(NodeFailed, match="ValueError: no"):
            stepping(fail).invoke("hello")

    asyncio.run(go())


def test_a_run_that_pauses_hands_its_questions_to_the_caller_of_the_sync_door():
    async def ask(inputs, ctx):
        return {"message": await ctx.ask("May it?")}

    with pytest.raises(RunPaused) as caught:
        stepping(ask).invoke("hello")
    assert [question.text for question in caught.value.result.questions] == ["May it?"]


# ------------------------------------------------------------------------------------------------ e


def test_a_run_that_is_cancelled_twice_lets_go_of_its_journal_and_says_that_it_is_over():
    reported: list[str] = []

    class Watch:
        def run_finished(self, run_id: str, result: Any) -> None:
            reported.append(result.status)

    async def go() -> None:
        begun, cleaning = asyncio.Event(), asyncio.Event()

        async def body(task: Any, ctx: Any) -> Out:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cleaning.set()
                await asyncio.sleep(0)
                await asyncio.Event().wait()  # it takes its time
            return Out({})

        journal = MemoryJournal()
        flow = workflow([node("a", body, mode="async")], ["in a", "a out"])
        job = asyncio.ensure_future(flow.run(run_id="r", journal=journal, observers=[Watch()]))
        await begun.wait()
        job.cancel()
        await cleaning.wait()
        job.cancel()
        await asyncio.wait([job])
        assert job.cancelled()
        assert [info.status for info in journal.runs()] == ["open"]
        assert reported == ["cancelled"]

    run_sync(go())


@pytest.mark.parametrize("error", [OSError("gone"), asyncio.CancelledError()])
def test_an_executor_that_cannot_be_closed_keeps_no_run_from_its_end(error):
    class Stuck:
        async def execute(self, body: Any, task: Any, ctx: Any) -> Any:
            return body(task, ctx)

        async def close(self) -> None:
            raise error

    async def go() -> None:
        journal, flow = MemoryJournal(), workflow(["a"], ["in a", "a out"])
        with pytest.raises(type(error)):
            await flow.run(run_id="r", journal=journal, executor=Stuck())
        assert [info.status for info in journal.runs()] == ["done"]
        journal.forget("r")

    run_sync(go())
