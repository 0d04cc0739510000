"""Hooks that decide: what starts when, what becomes of a failure, what becomes of a limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from axil import Limits, RootGraph, hookimpl
from axil.compiler.nodes import FunctionNode
from axil.compiler.planner import CompileOptions
from axil.contract.decisions import Fail, Firing, Replace, Retry, Skip
from axil.contract.hooks import hook_manager
from axil.errors import HookFailed, LimitReached
from axil.kernel.plan import CycleLimit
from axil.kernel.tokens import Out
from axil.runtime.run import run_sync
from axil.spec.graph import NodeSpec
from axil_journals import MemoryJournal
from axil_testing import VirtualClock
from axil_testing.specs import edge, node, workflow


class Admits:
    def __init__(self, decide: Callable[[Firing], Any]) -> None:
        self.decide = decide

    @hookimpl
    def admit_firing(self, firing: Firing) -> Any:
        return self.decide(firing)


class Chooses:
    @hookimpl
    def choose_firing(self, due: Sequence[Firing]) -> Firing:
        return max(due, key=lambda firing: firing.activation.node)


class Mends:
    def __init__(self, decide: Callable[[Firing, Exception], Any]) -> None:
        self.decide = decide

    @hookimpl
    def firing_failure(self, firing: Firing, error: Exception) -> Any:
        return self.decide(firing, error)


class Lifts:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    @hookimpl
    def limit_reached(self, limit: LimitReached, of: str) -> Any:
        self.asked.append((of, limit.id))
        return self.answer


def run(flow: Any, plugin: Any, given: Any = None, **options: Any) -> Any:
    plugins = plugin if isinstance(plugin, list) else [plugin]
    options = {"clock": VirtualClock(), **options}
    return run_sync(flow.start(given or {}, hooks=hook_manager(plugins), **options).result())


def fan(log: list[tuple[str, float]], seconds: float = 1.0, names: str = "abc") -> Any:
    async def body(task: Any, ctx: Any) -> Out:
        log.append((task.node.name, ctx.now()))
        await ctx.sleep(seconds)
        return Out({"by": 1})

    edges = [word for name in names for word in (f"in {name}", f"{name} out")]
    return workflow([node(name, body, mode="async", ctx=True) for name in names], edges)


def broken(times: int, log: list[int] | None = None) -> Any:
    left = [times]

    def body(task: Any, ctx: Any) -> Out:
        if log is not None:
            log.append(left[0])
        if left[0]:
            left[0] -= 1
            raise ConnectionError("no line")
        return Out({"x": 1})

    return workflow([node("a", body), "b"], ["in a", "a b", "b out"])


# ------------------------------------------------------------------------------------------- admit


def test_a_firing_that_is_held_back_for_seconds_starts_after_them():
    log: list[tuple[str, float]] = []
    waits = {"b": 5.0}
    result = run(fan(log), Admits(lambda f: waits.pop(f.activation.node, True)))
    assert result.status == "done"
    assert log == [("a", 0), ("c", 0), ("b", 5)]


def test_a_firing_that_is_held_back_starts_when_nothing_else_is_at_work():
    log: list[tuple[str, float]] = []
    assert run(fan(log), Admits(lambda f: f.activation.node == "c")).status == "done"
    assert [name for name, _ in log] == ["c", "a", "b"]
    assert [at for _, at in log] == [0, 1, 2]


def test_a_firing_that_is_not_let_start_has_the_outcome_that_the_plugin_gives():
    flow = workflow(["a", "b"], ["in a", "a b", "b out"])

    def replaces(firing: Firing) -> Any:
        return Replace({"by": "plugin"}, {"n": 1}) if firing.activation.node == "b" else None

    result = run(flow, Admits(replaces))
    assert (result.output, result.attributes) == ({"by": "plugin"}, {"n": 1})
    assert run(flow, Admits(lambda f: Skip())).output == {}
    failed = run(flow, Admits(lambda f: Fail(ValueError("no"))))
    assert (failed.status, failed.error.path) == ("failed", "a")


def test_a_body_that_waits_for_a_sub_run_does_not_hold_it_back():
    inner = workflow(["x"], ["in x", "x out"]).plan

    async def outer(task: Any, ctx: Any) -> Out:
        return Out((await ctx.run(inner, {}, name="s")).output)

    flow = workflow([node("a", outer, mode="async", ctx=True)], ["in a", "a out"])
    assert run(flow, Admits(lambda f: False)).output == {"by": "x"}


def test_an_abandoned_call_holds_nothing_back():
    @dataclass
    class First:
        early: bool = True
        per_token: bool = False
        rest: Any = "cancel"

        def fires(self, live: int, dead: int, total: int) -> bool | None:
            return True if live else None

    async def slow(task: Any, ctx: Any) -> Out:
        await ctx.sleep(1)
        return Out({"by": "a"})

    joined = NodeSpec(id="q", body=node("q").body, join=First())
    nodes = [node("a", slow, mode="async", ctx=True), "b", joined, "c"]
    flow = workflow(nodes, ["in a", "in b", "a q", "b q", "q c", "c out"])
    clock = VirtualClock()
    answers = {"a": True, "b": 1000.0, "q": True, "c": False}
    result = run(flow, Admits(lambda f: answers[f.activation.node]), clock=clock)
    assert (result.status, result.output) == ("done", {"by": "c"})
    assert clock.now() == 1


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_an_object_that_cannot_be_awaited_fails_the_firing(seconds: float):
    held = run(workflow(["a"], ["in a", "a out"]), Admits(lambda f: seconds))
    tried = run(broken(1), Mends(lambda f, e: Retry(after=seconds)))
    assert [str(each.error.__cause__).count("AX419") for each in (held, tried)] == [1, 1]


def test_a_firing_says_what_its_node_is_made_of():
    class Shout:
        def run(self, inputs: Any) -> Any:
            return inputs

    def whisper(inputs: Any) -> Any:
        return inputs

    graph = RootGraph("types")
    for name, body in (("a", Shout()), ("b", whisper), ("c", FunctionNode(whisper))):
        graph.edge_from_entry(graph.create_node(body, name=name), {})
        graph.edge_to_exit(name, {})
    asked: dict[str, str] = {}

    def decide(firing: Firing) -> Any:
        asked[firing.activation.node] = firing.type

    assert run(graph.build(), Admits(decide)).status == "done"
    assert asked == {"a": "Shout", "b": "whisper", "c": "whisper"}


def test_a_firing_says_when_it_is_asked_about_by_the_runs_clock():
    asked: list[float] = []

    def decide(firing: Firing) -> Any:
        asked.append(firing.now)
        return True if firing.now >= 8 else 4.0

    assert run(workflow(["a"], ["in a", "a out"]), Admits(decide)).status == "done"
    assert asked == [0, 4, 8]


def test_long_chains_of_refused_firings_cost_no_depth():
    names = [f"n{i}" for i in range(3000)]
    edges = [f"{a} {b}" for a, b in pairwise(names)]
    flow = workflow(names, ["in n0", *edges, "n2999 out"])
    assert run(flow, Admits(lambda f: Replace({"x": 1}))).output == {"x": 1}


@pytest.mark.parametrize("answer", ["yes", Retry()])
def test_an_answer_that_is_none_fails_the_firing(answer: Any):
    result = run(workflow(["a"], ["in a", "a out"]), Admits(lambda f: answer))
    assert isinstance(result.error.__cause__, HookFailed)
    assert "AX419" in str(result.error.__cause__)


def test_a_plugin_that_raises_fails_the_firing():
    def raises(firing: Firing) -> Any:
        raise KeyError("x")

    result = run(workflow(["a"], ["in a", "a out"]), Admits(raises))
    assert "admit_firing raised KeyError" in str(result.error)


# ------------------------------------------------------------------------------------------ choose


def test_a_plugin_chooses_which_firing_starts_next():
    log: list[tuple[str, float]] = []
    assert run(fan(log), Chooses(), limits=Limits(concurrency=1)).status == "done"
    assert [name for name, _ in log] == ["c", "b", "a"]


def test_a_plugin_hears_of_each_start_also_where_there_is_nothing_to_choose():
    seen: list[list[str]] = []

    class Notes:
        @hookimpl(wrapper=True)
        def choose_firing(self, due: Sequence[Firing]) -> Any:
            chosen = yield
            assert chosen is None
            seen.append([firing.activation.node for firing in due])
            return due[-1]

    assert run(fan([]), Notes()).status == "done"
    assert sorted(due[-1] for due in seen) == ["a", "b", "c"]
    assert len(seen[-1]) == 1  # how many are due before depends on how fast they are found


def test_what_starts_when_changes_nothing_that_a_run_comes_to():
    plain = run(fan([]), [])
    chosen = run(fan([]), Chooses(), limits=Limits(concurrency=1))
    assert (plain.output, plain.state, plain.exits) == (chosen.output, chosen.state, chosen.exits)


# ----------------------------------------------------------------------------------------- failure


def test_a_body_that_raised_is_started_again_after_a_while():
    clock, log = VirtualClock(), list[int]()
    seen: list[int] = []

    def mend(firing: Firing, error: Exception) -> Any:
        seen.append(firing.tries)
        return Retry(after=10) if isinstance(error, ConnectionError) else None

    result = run(broken(2, log), Mends(mend), clock=clock)
    assert (result.status, log, seen, clock.now()) == ("done", [2, 1, 0], [0, 1], 20)
    assert result.usage.firings == 2


def test_a_failure_is_replaced_or_skipped_or_stays_one():
    assert run(broken(1), Mends(lambda f, e: Replace({"x": 2}))).output == {"by": "b"}
    assert run(broken(1), Mends(lambda f, e: Skip())).output == {}
    assert run(broken(1), Mends(lambda f, e: None)).status == "failed"
    other = run(broken(1), Mends(lambda f, e: Fail(ValueError("other"))))
    assert isinstance(other.error.__cause__, ValueError)


def test_the_first_answer_wins_and_the_last_registered_is_asked_first():
    mends = [Mends(lambda f, e: Fail(ValueError())), Mends(lambda f, e: Replace({"x": 2}))]
    assert run(broken(1), mends).status == "done"


def test_what_was_decided_is_recorded_and_not_decided_again():
    asked: list[str] = []

    def mend(firing: Firing, error: Exception) -> Any:
        asked.append(firing.activation.node)
        return Replace({"x": 2})

    async def asks(task: Any, ctx: Any) -> Out:
        return Out({"said": await ctx.ask("go on?"), **task.tokens[0].payload})

    def raises(task: Any, ctx: Any) -> Out:
        raise ConnectionError

    nodes = [node("a", raises), node("b", asks, mode="async", ctx=True)]
    flow = workflow(nodes, ["in a", "a b", "b out"])
    journal = MemoryJournal()
    paused = run(flow, Mends(mend), journal=journal, run_id="r")
    answers = {paused.questions[0].id: "yes"}
    result = run(flow, [], journal=journal, run_id="r", resuming=True, answers=answers)
    assert (result.output, asked) == ({"said": "yes", "x": 2}, ["a"])


def test_hooks_of_the_compile_options_decide_too():
    flow = broken(1)
    hooks = hook_manager([Mends(lambda f, e: Replace({"x": 2}))])
    flow = type(flow)(flow.spec, CompileOptions(hooks=hooks))
    assert run_sync(flow.start({}).result()).status == "done"


# ------------------------------------------------------------------------------------------- limit


def turning() -> Any:
    def counts(task: Any, ctx: Any) -> Out:
        return Out({"n": task.tokens[0].payload.get("n", 0) + 1})

    edges = [
        "in a",
        edge("a", "a", condition=lambda payload: payload["n"] < 9),
        edge("a", "out", condition=lambda payload: payload["n"] >= 9),
    ]
    return workflow([node("a", counts)], edges, cycle_limits={"": CycleLimit(rounds=3)})


@pytest.mark.parametrize("journal", [None, MemoryJournal])
def test_a_cycles_limit_ends_the_cycle_where_a_plugin_says_so(journal: Any):
    lifts = Lifts("exit")
    result = run(turning(), lifts, journal=journal and journal())
    assert (result.status, lifts.asked) == ("done", [("cycle", "AX411")])
    assert result.cycles["cycle(a)"].ends == {"limit": 1}
    assert run(turning(), Lifts(None)).status == "limited"


def test_a_limit_of_firings_is_raised_where_a_plugin_says_so():
    flow = workflow(["a", "b", "c"], ["in a", "a b", "b c", "c out"])
    lifts = Lifts(1)
    assert run(flow, lifts, limits=Limits(firings=1)).status == "done"
    assert lifts.asked == [("firings", "AX412")] * 2
    assert run(flow, Lifts(None), limits=Limits(firings=1)).status == "limited"


def test_a_strange_answer_about_a_limit_ends_the_run():
    result = run(turning(), Lifts("more"))
    assert "AX419" in str(result.error)


def test_a_run_without_deciding_hooks_has_no_gate():
    class Listens:
        @hookimpl
        def firing_started(self, activation: Any) -> None:
            pass

    flow = workflow(["a"], ["in a", "a out"])
    started = flow.start({}, hooks=hook_manager([Listens()]))
    assert started._loop.pool.decisions is None
    assert run_sync(started.result()).status == "done"
