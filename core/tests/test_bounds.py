"""Laws of what one run may compute and keep."""

from __future__ import annotations

import time

import pytest
from pydantic import BaseModel

from axil import ConfigError, LimitReached, Limits, NodeFailed, RootGraph
from axil.plugin import JsonSchema, PatternText, check_time, decode_config, seconds_left


def test_without_a_run_time_is_not_limited():
    check_time()
    assert seconds_left(2.5) == 2.5


def test_work_that_looks_at_the_time_ends_with_its_run():
    def busy() -> None:
        assert seconds_left(1e9) < 1
        while True:
            check_time()

    graph = RootGraph("g", limits=Limits(seconds=0.05))
    graph.create_node(busy, name="a")
    graph.edge_from_entry("a", {})
    graph.edge_to_exit("a", {})
    begun = time.thread_time()
    with pytest.raises(LimitReached, match="AX415"):
        graph.build().invoke({})
    assert time.thread_time() - begun < 1
    check_time()  # the time of the run is not that of its caller


def test_all_states_of_a_run_together_are_bounded():
    graph = RootGraph("g")
    for number in range(14):
        graph.create_node(
            lambda number=number: {f"f{number}": f"{number}" + "x" * 8_000_000},
            name=f"n{number}",
            push_keys=[f"f{number}"],
        )
    graph.edge_from_entry("n0", {})
    for number in range(13):
        graph.create_edge(f"n{number}", f"n{number + 1}", {})
    graph.edge_to_exit("n13", {})
    with pytest.raises(NodeFailed, match="AX639"):
        graph.build().invoke({})


class Settings(BaseModel, extra="forbid"):
    patterns: list[PatternText] = []
    form: JsonSchema = {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"patterns": ["("]}, "regular expression"),
        ({"patterns": ["((a{99}){99}){99}"]}, "counted repetitions"),
        ({"form": {"type": "strange"}}, "JSON Schema"),
        ({"form": {"properties": {"a": {"$schema": "x"}}}}, "names a draft"),
    ],
)
def test_a_setting_that_is_a_pattern_or_a_schema_is_read_when_it_is_decoded(given, said):
    assert decode_config(Settings, {"patterns": ["a+"], "form": {"type": "string"}})
    with pytest.raises(ConfigError, match=said):
        decode_config(Settings, given)
