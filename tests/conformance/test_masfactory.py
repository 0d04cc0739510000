"""MASFactory's recorded runs, those that need no model: outputs, attributes and the partial order
of activations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from axil import CustomNode, NodeFailed, RootGraph
from axil_control import LogicSwitch, Loop

from . import masfactory_graphs as graphs
from .recorded import Watch, absent, assert_same_order, cases, dependent

pytestmark = absent

CASES = cases("masfactory")
TABLES = {"aggregation_same_key_table", "error_table", "pull_push_table"}
NEEDS_A_MODEL = {
    name
    for name, case in CASES.items()
    if "scripted_model_replies" in case or "expected_model_calls" in case
}
RUN = [name for name in CASES if name in graphs.GRAPHS]


def test_every_recorded_case_is_run_or_needs_a_model():
    assert set(CASES) - set(RUN) - TABLES - NEEDS_A_MODEL == set()


@pytest.mark.parametrize("name", RUN)
def test_a_run_gives_the_recorded_output_attributes_and_order(name):
    case = CASES[name]
    graph, noted = graphs.GRAPHS[name]()
    pairs = dependent(graph.spec)
    for reported in case.get("invocations", [case]):
        watch = Watch()
        output, attributes = graph.invoke(
            reported["input"], reported["attributes"], observers=[watch]
        )
        assert (output or {}) == reported["expected_output"]
        assert attributes == reported["expected_attributes"]
        internal = [
            node
            for node in reported["expected_order_with_internal"]
            if node.endswith("_controller") or node in reported["expected_order"]
        ]
        assert_same_order(watch.bodies, reported["expected_order"], pairs)
        assert_same_order(watch.order, internal, pairs)
    for what, value in noted.items():
        if f"expected_{what}" in case:
            assert value == case[f"expected_{what}"]


def test_every_send_is_observable_with_what_was_sent():
    case = CASES["edge_send_events"]
    graph, _ = graphs.edge_send_events()
    watch = Watch()
    graph.invoke({}, observers=[watch])
    recorded = {
        sender: output for sender, _, output in case["expected_send_events"] if sender != "g_entry"
    }
    assert {activation.node: output for activation, output in watch.finished} == recorded


ROWS = CASES.get("aggregation_same_key_table", {}).get("table", [])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["producers"]))
def test_fields_of_one_name_are_folded_in_edge_order(row):
    output, _ = graphs.aggregation(row["producers"]).invoke({})
    assert output == {"merged": row["merged"]}


SCOPES = CASES.get("pull_push_table", {}).get("table", [])


@pytest.mark.parametrize("row", SCOPES, ids=lambda row: f"pull={row['pull']} push={row['push']}")
def test_pull_and_push_rules_choose_what_is_seen_and_written(row):
    graph, noted = graphs.pull_push(row["pull"], row["push"])
    _, after = graph.invoke({})
    # a description is not data: the note of the case, and a divergence
    described = row["pull"] is not None and "zz" in row["pull"]
    assert noted["node_sees"] == ({} if described else row["node_sees"])
    expected = dict(row["graph_attributes_after"])
    if described:
        expected.pop("zz", None)
    assert after == expected


# --------------------------------------------------------------------------------------------------


def two() -> tuple[RootGraph, Any, Any]:
    g = RootGraph("g")
    return g, graphs.custom(g, "a", graphs.giving({})), graphs.custom(g, "b", graphs.giving({}))


def cycle() -> None:
    g, a, b = two()
    c = graphs.custom(g, "c", graphs.giving({}))
    g.create_edges([(a, b), (b, c), (c, a)])


def self_edge() -> None:
    g, a, _ = two()
    g.create_edge(a, a)


def duplicate_edge() -> None:
    g, a, b = two()
    g.create_edges([(a, b), (a, b)])


def foreign_receiver() -> None:
    g, a, _ = two()
    g.create_edge(a, graphs.custom(RootGraph("other"), "x", graphs.giving({})))


def foreign_same_name() -> None:
    g, a, _ = two()
    g.create_edge(a, graphs.custom(RootGraph("other"), "b", graphs.giving({})))


def invoke_before_build() -> None:
    g, a, _ = two()
    g.edge_from_entry(a, {})
    g.invoke({})


def missing_key_on_edge() -> None:
    g, a, b = two()
    g.edge_from_entry(a, ["zz"])
    g.create_edge(a, b, {})
    g.edge_to_exit(b, {})
    g.build().invoke({"x": 1})


def forward_not_dict() -> None:
    g = RootGraph("g")
    a = graphs.custom(g, "a", lambda inputs: "text")
    g.edge_from_entry(a, {})
    g.edge_to_exit(a, {})
    g.build().invoke({})


def switch(routes: dict[str, Any]) -> None:
    g, a, b = two()
    s = g.create_node(LogicSwitch, name="s", routes=routes)
    g.edge_from_entry(s, {})
    g.create_edges([(s, a, {}), (s, b, {})])
    g.edge_to_exit(a, {})
    g.edge_to_exit(b, {})
    g.build()


def always(message: Any, attributes: Any) -> bool:
    return True


MISTAKES: dict[str, Callable[[], Any]] = {
    "cycle": cycle,
    "self_edge": self_edge,
    "duplicate_edge": duplicate_edge,
    "foreign_receiver": foreign_receiver,
    "foreign_same_name": foreign_same_name,
    "invoke_before_build": invoke_before_build,
    "missing_key_on_edge": missing_key_on_edge,
    "forward_not_dict": forward_not_dict,
    "duplicate_node_name": lambda: [
        RootGraph("g").create_node(CustomNode, name="x"),
        two()[0].create_node(CustomNode, name="a"),
    ],
    "reserved_node_name": lambda: RootGraph("g").create_node(CustomNode, name="Entry"),
    "bad_node_name": lambda: RootGraph("g").create_node(CustomNode, name="has space"),
    "root_in_graph": lambda: RootGraph("g").create_node(RootGraph, name="inner"),
    "loop_without_limit": lambda: RootGraph("g").create_node(Loop, name="l", max_iterations=None),
    "switch_unknown_route": lambda: switch({"a": always, "b": always, "zz": always}),
    "switch_missing_route": lambda: switch({"a": always}),
}
ERRORS = CASES.get("error_table", {}).get("table", [])


@pytest.mark.parametrize("row", ERRORS, ids=lambda row: row["name"])
def test_a_mistake_raises_the_recorded_type_and_names_what_is_wrong(row):
    kind = {
        "ValueError": ValueError,
        "RuntimeError": RuntimeError,
        "KeyError": KeyError,
        "TypeError": TypeError,
    }[row["error"]]
    with pytest.raises(Exception, match=r"AX[0-9]{3} ") as caught:
        MISTAKES[row["name"]]()
    error = caught.value
    assert isinstance(error, kind) or (
        isinstance(error, NodeFailed) and isinstance(error.__cause__, kind)
    )
