"""Laws of ``loop_counter`` and ``loop_timer``."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from axil import (
    ComponentRef,
    CustomNode,
    GraphSpec,
    GraphWarning,
    NodeFailed,
    NodeSpec,
    Out,
    RootGraph,
    SpecError,
    Workflow,
)
from axil.plugin import message
from axil_control import LogicSwitch, Loop
from axil_control.loops import LoopCounter, LoopTimer

SILENT = Out([], to=frozenset())


class Clock:
    """A context whose time is set."""

    time = 0.0

    def now(self) -> float:
        return self.time


def counted(times: int, **config: Any) -> str:
    """Return which of the firings send, as 0 and 1."""
    node, local = LoopCounter(LoopCounter.Config(**config)), {}
    return "".join(str(int(node.run(local) != SILENT)) for _ in range(times))


def timed(moments: list[float], **config: Any) -> str:
    """Return which of the firings at these times send the message, as 0 and 1."""
    node, local, clock = LoopTimer(LoopTimer.Config(message="TIME", **config)), {}, Clock()
    sent = []
    for clock.time in moments:
        sent.append(node.run([[message("in")]], local, clock) == [message("TIME", "assistant")])
    return "".join(str(int(each)) for each in sent)


def test_a_counter_sends_at_the_limit_and_counts_again():
    assert counted(7, max_iterations=3) == "0010010"


def test_a_counter_that_is_not_reset_sends_at_every_firing_from_the_limit_on():
    assert counted(5, max_iterations=3, reset_on_emit=False) == "00111"


@pytest.mark.parametrize("text", [None, ""])
def test_a_counter_without_text_says_its_limit(text):
    node = LoopCounter(LoopCounter.Config(max_iterations=1, message=text))
    assert node.run({}) == [message("Loop limit reached (1)", "assistant")]


def test_a_counter_keeps_its_count_in_the_state_of_the_run():
    node, local, other = LoopCounter(LoopCounter.Config(max_iterations=2)), {}, {}
    node.run(local)
    assert node.run(other) == SILENT
    assert local == other == {"count": 1}


def test_a_limit_below_one_is_refused():
    with pytest.raises(ValidationError):
        LoopCounter.Config(max_iterations=0)


def test_a_timers_clock_starts_at_its_first_firing():
    assert timed([100.0, 100.2, 100.4, 100.6], max_duration=0.55) == "0001"


def test_a_timer_is_reset_every_time_it_sends():
    moments = [round(0.2 * i, 1) for i in range(13)]
    assert timed(moments, max_duration=0.55) == "0001001001001"


def test_a_timer_that_is_not_reset_sends_at_every_firing_past_the_limit():
    assert timed([0, 1, 2, 3], max_duration=2, reset_on_emit=False) == "0011"


@pytest.mark.parametrize(("unit", "seconds"), [("seconds", 2), ("minutes", 120), ("hours", 7200)])
def test_a_duration_has_a_unit(unit, seconds):
    assert timed([0, seconds - 1, seconds], max_duration=2, duration_unit=unit) == "001"


def test_a_timer_sends_exactly_at_its_limit():
    assert timed([0, 2], max_duration=2) == "01"


@pytest.mark.parametrize(("duration", "shown"), [(20, "20.0"), (60.0, "60.0")])
def test_a_timer_without_text_says_its_limit_as_a_decimal(duration, shown):
    node, local, clock = LoopTimer(LoopTimer.Config(max_duration=duration, message="")), {}, Clock()
    node.run([], local, clock)
    clock.time = 99
    assert node.run([], local, clock) == [
        message(f"Time limit reached ({shown} seconds)", "assistant")
    ]


@pytest.mark.parametrize("reset", [True, False])
def test_a_gate_forwards_sends_once_and_forwards_ever_after(reset):
    node, local, clock = (
        LoopTimer(
            LoopTimer.Config(max_duration=2, passthrough=True, reset_on_emit=reset, message="TIME")
        ),
        {},
        Clock(),
    )
    came = [[message("a", "assistant", keep=True), message("b")]]
    gave = []
    for clock.time in (0, 1, 2, 3, 9):
        gave.append(node.run(came, local, clock))
    assert gave == [
        Out(came[0]),
        Out(came[0]),
        [message("TIME", "assistant")],
        Out(came[0]),
        Out(came[0]),
    ]


def test_a_gate_forwards_fields_as_fields():
    node = LoopTimer(LoopTimer.Config(passthrough=True))
    assert node.run([{"a": 1}, {"b": 2}], {}, Clock()) == Out({"a": 1, "b": 2})
    assert node.run([{}], {}, Clock()) == Out({})


@pytest.mark.parametrize(
    "config",
    [
        {"max_duration": 0},
        {"max_duration": "2m"},
        {"duration_unit": "days"},
        {"max_duration": float("inf")},
    ],
)
def test_a_duration_that_is_none_is_refused(config):
    with pytest.raises(ValidationError):
        LoopTimer.Config(**config)


def test_a_counter_ends_a_cycle_by_the_edge_that_leaves_it(run, watch):
    graph = {
        "nodes": [
            {"id": "W", "type": "literal", "config": {"content": "w"}},
            {"id": "K", "type": "loop_counter", "config": {"max_iterations": 3, "message": "done"}},
            {"id": "Z", "type": "passthrough", "config": {}},
        ],
        "edges": [
            {"from": "W", "to": "K"},
            {"from": "W", "to": "W"},
            {"from": "K", "to": "W"},
            {"from": "K", "to": "Z"},
        ],
        "start": ["W"],
    }
    assert run(graph, watch=watch).output == "done"
    assert watch.fired.count("W") == 3


class Ticking:
    """A clock of the run that goes on by a fifth of a second whenever it is looked at."""

    time = 0.0

    def now(self) -> float:
        self.time += 0.2
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


def test_a_timer_ends_a_cycle_by_the_clock_of_the_run(run, watch):
    graph = {
        "nodes": [
            {"id": "C", "type": "literal", "config": {"content": "c"}},
            {"id": "T", "type": "loop_timer", "config": {"max_duration": 0.55, "message": "TIME"}},
            {"id": "Z", "type": "passthrough", "config": {}},
        ],
        "edges": [
            {"from": "C", "to": "C"},
            {"from": "C", "to": "T"},
            {"from": "T", "to": "C"},
            {"from": "T", "to": "Z"},
        ],
        "start": ["C"],
    }
    assert run(graph, watch=watch, clock=Ticking()).output == "TIME"
    assert watch.fired.count("T") == 4


def test_a_parameter_of_a_stop_function_with_a_default_is_left_alone():
    g = RootGraph("g")
    loop = g.create_node(
        Loop,
        name="l",
        max_iterations=9,
        terminate_condition_function=lambda m, stop=3: m["n"] >= stop,
    )
    body = loop.create_node(CustomNode, name="b", forward=lambda d: {"n": d["n"] + 1})
    loop.edge_from_controller(body, ["n"])
    loop.edge_to_controller(body, ["n"])
    g.edge_from_entry(loop, ["n"])
    g.edge_to_exit(loop, ["n"])
    assert g.build().invoke({"n": 0})[0] == {"n": 3}


@pytest.mark.parametrize("is_async", [False, True])
def test_an_attribute_that_the_body_has_not_pushed_yet_is_no_answer(is_async):
    asked: list[int] = []

    def score_of(m: Any, attributes: Any) -> bool:
        asked.append(attributes["current_iteration"])
        return attributes["score"] > 1

    async def awaited(m: Any, attributes: Any) -> bool:
        return score_of(m, attributes)

    def built(push_keys: Any) -> Any:
        g = RootGraph("g")
        stop = awaited if is_async else score_of
        loop = g.create_node(Loop, name="l", terminate_condition_function=stop)
        body = loop.create_node(lambda inputs: {"score": 2}, name="b", push_keys=push_keys)
        loop.edge_from_controller(body, {})
        loop.edge_to_controller(body, ["score"])
        g.edge_from_entry(loop, {})
        g.edge_to_exit(loop, ["score"])
        return g.build()

    assert built({"score": "points"}).invoke({})[0] == {"score": 2}
    assert asked == [1, 2]
    with pytest.raises(NodeFailed, match="KeyError: 'score'"):  # nothing pushes it
        built({}).invoke({})


def refused_by_a_switch(trigger: bool = True, **options: Any) -> Any:
    """Return a loop whose switch always says no to a node that the controller sends data to."""
    g = RootGraph("g")
    loop = g.create_node(Loop, name="loop", max_iterations=2)
    switch = loop.create_node(
        LogicSwitch({"mend": lambda m: False, "note": lambda m: True}), name="ask"
    )
    mend = loop.create_node(lambda inputs: {"log": inputs["log"] + "m"}, name="mend", **options)
    note = loop.create_node(lambda inputs: {"log": inputs["log"] + "n"}, name="note")
    for target in (switch, note):
        loop.edge_from_controller(target, ["log"])
    loop.edge_from_controller(mend, ["log"], trigger=trigger)
    loop.create_edge(switch, mend, {})
    loop.create_edge(switch, note, {})
    loop.edge_to_controller(mend, ["log"])
    loop.edge_to_controller(note, ["log"])
    g.edge_from_entry(loop, ["log"])
    g.edge_to_exit(loop, ["log"])
    return g.build()


def test_a_switch_that_the_controller_overrules_is_warned_of():
    with pytest.warns(GraphWarning) as caught:
        refused_by_a_switch()
    (first, second) = (str(each.message) for each in caught)
    assert 'AX173 graph "loop", node "mend": it fires in each round, also where the switch' in first
    assert 'node "note"' in second


@pytest.mark.filterwarnings("ignore:AX173.*note")
@pytest.mark.parametrize("way", [{"join": "all"}, {"trigger": False}])
def test_a_switch_decides_where_the_controller_only_brings_data(way):
    assert refused_by_a_switch(**way).invoke({"log": ""}).output == {"log": "nn"}


@pytest.mark.parametrize("config", [{}, {"max_iterations": 3, "graph": {"start": ["a"]}}])
def test_a_file_that_names_a_loop_is_answered_with_what_files_have(config):
    named = NodeSpec(id="turn", use=ComponentRef(type="loop", config=config))
    with pytest.raises(SpecError, match=r'AX121 .*"loop" gets its nodes in Python.*loop_counter'):
        assert Workflow(GraphSpec(id="g", nodes=(named,))).plan


def test_a_loop_ends_where_its_judge_says_so_whatever_its_stop_function_says():
    class Judge:
        async def decide(self, fields: Any, attributes: Any, ctx: Any) -> bool:
            return fields["n"] >= 2

    g = RootGraph("g")
    loop = g.create_node(
        Loop,
        name="l",
        max_iterations=9,
        judge=Judge(),
        terminate_condition_function=lambda m: m["n"] >= 5,
    )
    body = loop.create_node(CustomNode, name="b", forward=lambda d: {"n": d["n"] + 1})
    loop.edge_from_controller(body, ["n"])
    loop.edge_to_controller(body, ["n"])
    g.edge_from_entry(loop, ["n"])
    g.edge_to_exit(loop, ["n"])
    assert g.build().invoke({"n": 0})[0] == {"n": 2}
