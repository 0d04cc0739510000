"""Laws of ``write`` and ``collect``."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import pytest

from axil import RootGraph, SpecError
from axil_wrappers import Collect, Write


class Log(TypedDict):
    phase: str
    log: Annotated[list[str], "append"]


def test_a_node_writes_constants_beside_what_it_says():
    graph = RootGraph("g", attributes={"phase": "", "count": 0})
    wrappers = [Write(fields={"phase": "drafted", "count": 5})]
    graph.create_node(lambda: {"message": "hi", "count": 1}, name="a", wrappers=wrappers)
    graph.edge_from_entry("a")
    graph.edge_to_exit("a")
    result = graph.build().invoke({"message": ""})
    assert result.output == {"message": "hi"}
    assert result.attributes == {"phase": "drafted", "count": 1}


def typed(fields: Any) -> Any:
    graph = RootGraph("g", state=Log)
    wrapper = {"type": "write", "config": {"fields": fields}}
    for name in ("a", "b"):
        graph.create_node(lambda: None, name=name, wrappers=[wrapper])
        graph.create_edge("entry", name)
        graph.create_edge(name, "exit")
    return graph.build()


def test_constants_are_taken_as_the_fields_take_them():
    state = typed({"log": ["x"]}).invoke({"phase": "", "log": []}).state
    assert list(state["log"]) == ["x", "x"]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"phas": "x"}, r'AX836 node "a": the wrapper writes "phas".*Did you mean "phase"'),
        ({"phase": 3}, r'node "a".*phase'),
    ],
)
def test_a_constant_that_the_state_does_not_take_is_found_by_the_check(fields, found):
    with pytest.raises(SpecError, match=found):
        typed(fields)


def critics(count: int, wrapper: Any) -> Any:
    graph = RootGraph("g")
    solve = graph.create_node(lambda inputs: {"seen": inputs}, name="solve", wrappers=[wrapper])
    for n in range(count):
        critic = graph.create_node(lambda n=n: {"remark": f"r{n}", "task": "t"}, name=f"c{n}")
        graph.edge_from_entry(critic)
        graph.create_edge(critic, solve, ["remark", "task"] if not n else ["remark"])
    graph.edge_to_exit(solve, ["seen"])
    return graph.build().invoke({"message": ""}).output["seen"]


def test_a_collected_field_is_a_list_however_many_edges_bring_it():
    wrapper = Collect(fields=["remark"])
    assert critics(1, wrapper) == {"task": "t", "remark": ["r0"]}
    assert critics(2, wrapper) == {"task": "t", "remark": ["r0", "r1"]}
    assert critics(2, "collect") == {"task": ["t"], "remark": ["r0", "r1"]}


def test_a_node_collects_by_an_option_as_by_the_wrapper():
    def seen(collect):
        graph = RootGraph("g")
        graph.create_node(lambda inputs: {"seen": inputs}, name="solve", collect=collect)
        graph.edge_from_entry("solve", ["task"])
        graph.edge_to_exit("solve", ["seen"])
        return graph.build().invoke({"task": "t"}).output["seen"]

    assert seen("list") == {"task": ["t"]}
    assert seen(["task"]) == seen("task") == {"task": ["t"]}
    assert seen(()) == {"task": "t"}


def test_a_collected_field_that_no_live_edge_brought_is_an_empty_list():
    graph = RootGraph("g")
    graph.create_node(
        lambda inputs: {"seen": inputs}, name="solve", wrappers=[Collect(fields=["remark"])]
    )
    graph.create_node(lambda: {"remark": "r"}, name="critic")
    graph.edge_from_entry("solve", ["task"])
    graph.edge_from_entry("critic")
    graph.create_edge("critic", "solve", ["remark"], when=lambda payload: False)
    graph.edge_to_exit("solve", ["seen"])
    given = {"message": "", "task": "t"}
    assert graph.build().invoke(given).output == {"seen": {"task": "t", "remark": []}}


def test_a_collected_field_that_no_edge_brings_is_found_by_the_check():
    with pytest.raises(SpecError, match=r'AX836 node "solve".*"remarks".*Did you mean "remark"'):
        critics(1, Collect(fields=["remarks"]))
