"""Joins that the kernel does not have: early ones, and others that are asked once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from axil import NodeFailed
from axil.errors import PluginContract
from axil.kernel.joins import ALL, EACH, GATE
from axil.kernel.tokens import Out
from axil.runtime.run import run_sync
from axil.spec.graph import NodeSpec
from axil_journals import MemoryJournal
from axil_testing import VirtualClock
from axil_testing.specs import edge, node, workflow


@dataclass
class AtLeast:
    """Fires as soon as ``k`` edges are live."""

    k: int
    early: bool = True
    rest: Any = "ignore"
    per_token: bool = False

    def fires(self, live: int, dead: int, total: int) -> bool | None:
        if live >= self.k:
            return True
        return False if dead > total - self.k else None


def slow(seconds: float, log: list[str] | None = None) -> Any:
    async def body(task: Any, ctx: Any) -> Out:
        name = task.node.name
        try:
            await ctx.sleep(seconds)
        except asyncio.CancelledError:
            if log is not None:
                log.append(f"{name} cancelled")
            raise
        if log is not None:
            log.append(name)
        return Out({"by": name}, {name: True})

    return body


def gathered(task: Any, ctx: Any) -> Out:
    return Out({"from": sorted(token.payload["by"] for token in task.tokens)})


def vote(join: Any, *seconds: float, log: list[str] | None = None, more: Any = ()) -> Any:
    """Return a workflow of voters, who take their time, and a node that joins them."""
    names = "abcdef"[: len(seconds)]
    voters = [
        node(name, slow(s, log), mode="async", ctx=True)
        for name, s in zip(names, seconds, strict=True)
    ]
    last = NodeSpec(id="q", body=node("q", gathered).body, join=join)
    edges = ["in " + name for name in names] + [f"{name} q" for name in names] + ["q out", *more]
    return workflow([*voters, last], edges)


def run(flow: Any, **options: Any) -> Any:
    return run_sync(flow.start({}, **{"clock": VirtualClock(), **options}).result())


def test_an_early_join_fires_with_what_came_first():
    log: list[str] = []
    result = run(vote(AtLeast(2), 3, 1, 2, log=log))
    assert result.output == {"from": ["b", "c"]}
    assert log == ["b", "c", "a"]


def test_what_the_others_wrote_is_kept_where_they_are_ignored():
    assert run(vote(AtLeast(2), 3, 1, 2)).attributes == {"a": True, "b": True, "c": True}


def test_the_others_are_cancelled_where_the_join_says_so():
    log: list[str] = []
    result = run(vote(AtLeast(2, rest="cancel"), 300, 1, 2, log=log))
    assert result.output == {"from": ["b", "c"]}
    assert result.attributes == {"b": True, "c": True}
    assert log == ["b", "c", "a cancelled"]


def test_who_leads_elsewhere_too_is_not_cancelled():
    log: list[str] = []
    flow = vote(AtLeast(1, rest="cancel"), 3, 1, log=log, more=["a out"])
    assert run(flow).attributes == {"a": True, "b": True}
    assert log == ["b", "a"]


def test_what_is_cancelled_includes_what_it_would_have_led_to():
    log: list[str] = []
    fast, late = slow(1, log), slow(100, log)
    nodes = [
        node("a", fast, mode="async", ctx=True),
        node("b", late, mode="async", ctx=True),
        node("c", late, mode="async", ctx=True),
        NodeSpec(id="q", body=node("q", gathered).body, join=AtLeast(1, rest="cancel")),
    ]
    result = run(workflow(nodes, ["in a", "in b", "b c", "a q", "c q", "q out"]))
    assert result.status == "done"
    assert log == ["a", "b cancelled"]


def test_who_is_cancelled_may_take_longer_to_end_than_the_frame_around_it():
    async def clings(body: Any, ctx: Any) -> Out:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()
        return Out({})

    last = NodeSpec(id="q", body=node("q", gathered).body, join=AtLeast(1, rest="cancel"))
    voters = [node("a", clings, mode="async"), "b", last]
    inner = workflow(voters, ["in a", "in b", "a q", "b q", "q out"])

    async def outer(body: Any, ctx: Any) -> Out:
        return Out((await ctx.run(inner.plan, {}, name="sub")).output)

    flow = workflow([node("o", outer, mode="async", ctx=True)], ["in o", "o out"])
    assert run(flow).output == {"from": ["b"]}


def test_a_question_of_who_is_cancelled_is_not_waited_for():
    async def asks(task: Any, ctx: Any) -> Out:
        return Out({"by": await ctx.ask("who?")})

    nodes = [
        node("a", slow(5), mode="async", ctx=True),
        node("b", asks, mode="async", ctx=True),
        NodeSpec(id="q", body=node("q", gathered).body, join=AtLeast(1, rest="cancel")),
    ]
    result = run(workflow(nodes, ["in a", "in b", "a q", "b q", "q out"]))
    assert (result.status, result.output) == ("done", {"from": ["a"]})


def never(payload: Any) -> bool:
    return False


def test_an_early_join_never_fires_once_too_many_are_dead():
    flow = vote(AtLeast(3), 1, 1, 1)
    spec = flow.spec
    edges = tuple(edge("a", "q", condition=never) if e.source == "a" else e for e in spec.edges)
    result = run(workflow(spec.nodes, edges))
    assert (result.status, result.output) == ("done", {})


def test_a_run_that_goes_on_fires_with_the_same_edges():
    taken: list[Any] = []

    def notes(task: Any, ctx: Any) -> Out:
        taken.append(sorted(token.payload["by"] for token in task.tokens))
        return Out({"from": taken[-1]})

    async def asks(task: Any, ctx: Any) -> Out:
        return Out({"said": await ctx.ask("go on?"), "from": task.tokens[0].payload["from"]})

    names = ("a", "b", "c")
    voters = [
        node(name, slow(s), mode="async", ctx=True)
        for name, s in zip(names, (3, 1, 2), strict=True)
    ]
    last = NodeSpec(id="q", body=node("q", notes).body, join=AtLeast(2))
    edges = ["in a", "in b", "in c", "a q", "b q", "c q", "q z", "z out"]
    flow = workflow([*voters, last, node("z", asks, mode="async", ctx=True)], edges)
    journal = MemoryJournal()
    paused = run(flow, journal=journal, run_id="r")
    assert paused.status == "paused"
    [entry] = [each for each in journal.entries("r") if each.kind == "done" and each.node == "q"]
    assert sorted(entry.data["took"]) == ["b->q", "c->q"]
    answers = {paused.questions[0].id: "yes"}
    result = run(flow, journal=journal, run_id="r", resuming=True, answers=answers)
    assert result.output == {"said": "yes", "from": ["b", "c"]}
    assert taken == [["b", "c"]]


@dataclass
class Odd:
    """A join that is asked once: an odd number of live edges."""

    early: bool = False
    rest: Any = "ignore"
    per_token: bool = False

    def fires(self, live: int, dead: int, total: int) -> bool:
        assert live + dead == total
        return live % 2 == 1


def test_a_usual_join_is_asked_when_all_edges_are_decided():
    assert run(vote(Odd(), 1, 2, 3)).output == {"from": ["a", "b", "c"]}
    assert run(vote(Odd(), 1, 2)).output == {}


class Broken(Odd):
    def fires(self, live: int, dead: int, total: int) -> bool:
        raise ZeroDivisionError


@pytest.mark.parametrize("early", [False, True])
def test_a_join_that_raises_fails_its_node(early: bool):
    result = run(vote(Broken(early=early), 1, 2))
    assert result.status == "failed"
    assert isinstance(result.error, NodeFailed)
    assert isinstance(result.error.__cause__, ZeroDivisionError)
    assert result.error.path == "q"


def test_what_is_no_join_is_refused():
    with pytest.raises(PluginContract, match="is no join"):
        _ = vote(3.5, 1).plan


def test_a_join_of_the_kernel_is_known_by_its_name():
    plan = vote("all", 1, 1).plan
    assert plan.nodes[plan.index["q"]].vertex.join is ALL
    assert (GATE.fires(0, 2, 2), ALL.fires(1, 1, 2), EACH.per_token) == (False, False, True)


def test_early_joins_in_cycles_are_asked_in_each_round():
    def counts(task: Any, ctx: Any) -> Out:
        return Out({"n": task.tokens[0].payload.get("n", 0) + 1, "by": "s"})

    async def late(task: Any, ctx: Any) -> Out:
        await ctx.sleep(5)
        return Out({"n": 100, "by": "b"})

    def first(task: Any, ctx: Any) -> Out:
        return Out({"n": task.tokens[0].payload["n"], "by": "q"})

    nodes = [
        node("s", counts),
        node("a", first),
        node("b", late, mode="async", ctx=True),
        NodeSpec(id="q", body=node("q", first).body, join=AtLeast(1, rest="cancel")),
    ]
    edges = [
        "in s",
        "s a",
        "s b",
        "a q",
        "b q",
        edge("q", "s", condition=lambda payload: payload["n"] < 3),
        edge("q", "out", condition=lambda payload: payload["n"] >= 3),
    ]
    result = run(workflow(nodes, edges))
    assert (result.status, result.output["n"]) == ("done", 3)
