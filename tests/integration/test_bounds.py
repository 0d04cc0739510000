"""Laws of what a run may use: no run uses more, and what recorded runs used is what they did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import pytest

from axil import (
    ComponentRef,
    CycleLimit,
    EdgeSpec,
    Graph,
    GraphSpec,
    NodeSpec,
    RootGraph,
    Workflow,
    run_sync,
)
from axil.plugin import ENTRY
from axil_agent import Agent, AgentSwitch, Reflection, Scripted
from axil_control import Loop
from axil_journals import MemoryJournal, bound_lines, bounds_of, estimate
from axil_sqlite import SqliteJournal
from axil_wrappers import Retry, Timeout


class Answer(TypedDict):
    text: str
    score: int


class Counted(Scripted):
    """A script that counts its calls in all its copies."""

    calls = 0

    async def reply(self, *args: Any, **more: Any) -> Any:
        Counted.calls += 1
        return await super().reply(*args, **more)


def repeat(text: str) -> str:
    """Say it again."""
    return text


CALL = {"tool_calls": [{"name": "repeat", "arguments": {"text": "a"}}]}


def agent(*replies: Any, **options: Any) -> Agent:
    return Agent(Counted(list(replies)), "Answer.", **options)


def wired(node: Any, fields: list[str] | None = None, **options: Any) -> RootGraph:
    graph = RootGraph("bounded")
    graph.create_node(node, name="a", **options)
    graph.edge_from_entry("a", ["text"])
    graph.edge_to_exit("a", fields or ["message"])
    return graph


def unreadable(**options: Any) -> Agent:
    return agent("no JSON", output_type=Answer, **options)


def repairs() -> RootGraph:
    return wired(unreadable(), ["text"])


def tools_and_repairs() -> RootGraph:
    replies = [CALL] * 10 + ["no JSON"]
    return wired(agent(*replies, output_type=Answer, tools=[repeat]), ["text"])


def tools_between_repairs() -> RootGraph:
    replies = ["no JSON", CALL, "no JSON", *[CALL] * 9, "no JSON"]
    return wired(agent(*replies, output_type=Answer, tools=[repeat]), ["text"])


def tried_again() -> RootGraph:
    return wired(unreadable(), ["text"], wrappers=[Retry(tries=3)])


def reflected() -> RootGraph:
    return wired(agent("x", thinking=Reflection(before="Think.", after="Again.")))


def loops_in_a_loop() -> RootGraph:
    graph = RootGraph("bounded")
    outer = graph.create_node(Loop, name="outer", max_iterations=3)
    inner = outer.create_node(Loop, name="inner", max_iterations=4)
    inner.create_node(agent("x"), name="a")
    inner.edge_from_controller("a", ["text"])
    inner.edge_to_controller("a", ["text"])
    outer.edge_from_controller(inner, ["text"])
    outer.edge_to_controller(inner, ["text"])
    graph.edge_from_entry(outer, ["text"])
    graph.edge_to_exit(outer, ["text"])
    return graph


def judged() -> RootGraph:
    graph = RootGraph("bounded")
    more: Any = {"model": Counted(["CONTINUE"]), "terminate_condition_prompt": "Is it done?"}
    loop = graph.create_node(Loop, name="loop", max_iterations=3, **more)
    loop.create_node(agent("x"), name="a")
    loop.edge_from_controller("a", ["text"])
    loop.edge_to_controller("a", ["text"])
    graph.edge_from_entry(loop, ["text"])
    graph.edge_to_exit(loop, ["text"])
    return graph


def asked_of_a_model() -> RootGraph:
    graph = RootGraph("bounded")
    switch = graph.create_node(AgentSwitch, name="s", model=Counted(["perhaps"]))
    for name in "bc":
        graph.create_node(agent("x"), name=name)
        switch.condition_binding(f"Is it {name}?", graph.create_edge(switch, name, ["text"]))
        graph.edge_to_exit(name, ["message"])
    graph.edge_from_entry(switch, ["text"])
    return graph


def items(inputs: dict[str, Any]) -> dict[str, Any]:
    return {"items": ["x", "y", "z"]}


def each_item(node: Any, fields: list[str], *wrappers: dict[str, Any]) -> RootGraph:
    graph = RootGraph("bounded")
    graph.create_node(items, name="items")
    graph.create_node(node, name="a", wrappers=[*wrappers])
    graph.edge_from_entry("items", ["text"])
    graph.create_edge("items", "a", ["items"])
    graph.edge_to_exit("a", fields)
    return graph


EACH = {"type": "map", "over": "items", "item": "text", "max_items": 3}
TWICE = {"type": "retry", "tries": 2}


def a_map() -> RootGraph:
    return each_item(agent("x"), ["message"], EACH)


def a_map_tried_again() -> RootGraph:
    return each_item(unreadable(), ["text"], TWICE, EACH)


def items_tried_again() -> RootGraph:
    return each_item(unreadable(), ["text"], EACH, TWICE)


def a_loop_for_each_item() -> RootGraph:
    inner = Graph()
    loop = inner.create_node(Loop, name="loop", max_iterations=2)
    loop.create_node(agent("x"), name="a")
    loop.edge_from_controller("a", ["text"])
    loop.edge_to_controller("a", ["text"])
    inner.edge_from_entry(loop, ["text"])
    inner.edge_to_exit(loop, ["text"])
    return each_item(inner, ["text"], EACH)


def an_agent_as_a_tool() -> RootGraph:
    ask = {"tool_calls": [{"name": "helper", "arguments": {"message": "a"}}]}
    helper = Agent(Counted(["y"]), "Help.", name="helper")
    return wired(agent(ask, ask, "x", tools=[helper]))


MADE = (
    repairs,
    tools_and_repairs,
    tools_between_repairs,
    tried_again,
    reflected,
    loops_in_a_loop,
    judged,
    asked_of_a_model,
    a_map,
    a_map_tried_again,
    items_tried_again,
    a_loop_for_each_item,
    an_agent_as_a_tool,
)


def used(workflow: Workflow, journal: Any = None) -> tuple[int, int, int]:
    """Return the firings, calls and tokens of a run."""
    before = Counted.calls
    result = run_sync(workflow.start({"text": "x"}, journal=journal).result())
    return result.usage.firings, Counted.calls - before, sum(result.usage.tokens.values())


def is_within(number: float, most: float | None) -> bool:
    return most is None or number <= most


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_no_run_uses_more_than_its_bounds(make: Callable[[], RootGraph]):
    workflow = make().build()
    bounds = bounds_of(workflow.plan)
    firings, calls, _ = used(workflow)
    assert calls
    assert is_within(firings, bounds.firings.most)
    assert is_within(calls, bounds.model_calls.most)


def test_bounds_are_what_limits_make_of_them():
    calls = {make.__name__: bounds_of(make().build().plan).model_calls.most for make in MADE}
    assert calls == {
        "repairs": 3,
        "tools_and_repairs": 13,  # ten turns, an answer, two repairs
        "tools_between_repairs": 13,
        "tried_again": 9,
        "reflected": 7,
        "loops_in_a_loop": 60,  # at most 4 rounds of 5, with 3 calls each
        "judged": 24,
        "asked_of_a_model": 12,
        "a_map": 9,
        "a_map_tried_again": 18,
        "items_tried_again": 18,
        "a_loop_for_each_item": 27,
        "an_agent_as_a_tool": None,
    }


def test_a_node_that_fires_others_has_no_bound_of_firings():
    firings = bounds_of(an_agent_as_a_tool().build().plan).firings
    assert firings.most is None
    assert "a: how often its model fires other nodes is not known" in firings.why


def two_ways_in() -> Workflow:
    """Return a cycle that turns more often from the one entry than from the other."""

    def use(type: str, **config: Any) -> ComponentRef:
        return ComponentRef(type=type, config=config)

    def edge(ends: str, text: str = "") -> EdgeSpec:
        source, target = ends.split()
        condition = use("expression", expression=text) if text else None
        return EdgeSpec(source=source, target=target, condition=condition)

    nodes = {name: use("passthrough") for name in "sab"}
    nodes["k"] = use("loop_counter", max_iterations=4)
    return Workflow(
        GraphSpec(
            id="ways",
            nodes=tuple(NodeSpec(id=name, use=each) for name, each in nodes.items()),
            edges=(
                EdgeSpec(source=ENTRY, target="s"),
                edge("s a", 'text == "a"'),
                edge("s b", 'text == "b"'),
                *map(edge, ("a a", "a k", "k a", "k b", "b a")),
            ),
            payload="messages",
            cycle_limits={"": CycleLimit(rounds=5, at_limit="exit")},
        )
    )


def test_each_way_into_a_cycle_is_counted():
    workflow = two_ways_in()
    most = bounds_of(workflow.plan).firings.most
    assert most is not None
    fired = [run_sync(workflow.start(text).result()).usage.firings for text in "ab"]
    assert fired == [12, 46]
    assert max(fired) <= most


def test_a_timeout_inside_of_retries_bounds_no_time():
    outside, inside = [Timeout(seconds=9), Retry(tries=3)], [Retry(tries=3), Timeout(seconds=9)]
    of_all, of_each = (
        bounds_of(wired(agent("x"), wrappers=wrappers).build().plan).seconds
        for wrappers in (outside, inside)
    )
    assert of_all.most is not None
    assert (of_each.most, of_each.why) == (None, "a: no timeout around its Retry")


DONE = (reflected, loops_in_a_loop, judged, a_map, a_loop_for_each_item, an_agent_as_a_tool)


@pytest.mark.parametrize("make", DONE, ids=lambda make: make.__name__)
def test_an_estimate_is_what_recorded_runs_used(make: Callable[[], RootGraph], tmp_path):
    workflow, journal = make().build(), SqliteJournal(tmp_path)
    firings, calls, tokens = used(workflow, journal)
    found = estimate(journal, workflow.plan)
    assert found is not None
    assert found.model_calls is not None
    numbers = (found.firings.median, found.model_calls.median, found.tokens.median)
    assert numbers == (firings, calls, tokens)


@pytest.mark.parametrize("is_small", [True, False])
def test_calls_that_a_journal_does_not_keep_are_not_counted_as_none(tmp_path, is_small):
    workflow = loops_in_a_loop().build()
    journal = SqliteJournal(tmp_path, detail=5) if is_small else MemoryJournal()
    used(workflow, journal)
    found = estimate(journal, workflow.plan)
    assert found is not None
    assert found.model_calls is None
    lines = "\n".join(bound_lines(bounds_of(workflow.plan), found))
    assert "how many are likely is not known: the journal does not keep all of them" in lines


def test_money_that_no_model_had_a_price_for_is_not_said_to_be_none(tmp_path):
    workflow, journal = reflected().build(), SqliteJournal(tmp_path)
    used(workflow, journal)
    lines = list(bound_lines(bounds_of(workflow.plan), estimate(journal, workflow.plan)))
    [money] = [line for line in lines if line.strip().startswith("money")]
    assert money.endswith("(no model had a price)")
