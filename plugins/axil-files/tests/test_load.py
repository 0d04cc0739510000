"""Laws of ``axil_files.load``: a file is a workflow like any other."""

from __future__ import annotations

import json
import re

import pytest

import axil
import axil_files
from axil import Out, SpecError
from axil.plugin import Compiler, Registry
from axil_files import load_spec, parse_duration
from axil_files.documents import parse_json


class Shout:
    """Says what came, louder."""

    inline = True

    def run(self, messages):
        return Out([{**m, "content": m["content"].upper()} for m in messages])


class Inner:
    """A graph in a node; remembers with what it was asked for."""

    reported: dict = {}  # noqa: RUF012  # the test reads it

    def scope(self, node, setting):
        from axil.plugin import SubgraphSpec
        from axil_files.loading import inline_spec

        Inner.reported = dict(setting.extras)
        return SubgraphSpec(
            spec=inline_spec(
                {"start": ["w"], "nodes": [{"id": "w", "type": "${KIND}"}]}, setting.extras
            )
        )


@pytest.fixture
def registry():
    made = Registry(entry_points=[])
    made.register("loaders", "json", parse_json)
    made.register("nodes", "shout", Shout)
    made.register("nodes", "inner", Inner)
    return made


@pytest.fixture
def flow(tmp_path):
    def write(*nodes, **more):
        graph = {"nodes": list(nodes), "start": [nodes[0]["id"]]}
        (tmp_path / "flow.json").write_text(json.dumps({"graph": graph, **more}))
        return tmp_path / "flow.json"

    return write


class Twice:
    """A wrapper with a setting."""

    def __init__(self, times=2):
        self.times = times

    def wrap(self, body, info):
        return body


def test_what_is_wrong_with_a_named_component_is_reported_where_it_is_named(flow, registry):
    registry.register("wrappers", "twice", Twice)
    registry.register("conditions", "odd", Twice)
    registry.register("nodes", "half", Twice)
    wrong = {"wrappers": ["thrice", {"type": "twice", "config": {"tims": 3}}]}
    edge = {
        "from": "a",
        "to": "b",
        "condition": {"type": "odd", "config": {"tims": 3}},
        "process": "nothing",
    }
    nodes = [
        {"id": "a", "type": "shout", **wrong},
        {"id": "b", "type": "shot"},
        {"id": "c", "type": "half"},
    ]
    graph = {"nodes": nodes, "edges": [edge], "start": ["a", "c"], "end": ["b"]}
    file = flow({"id": "a"})
    file.write_text(json.dumps({"graph": graph}, indent=1))

    def reported():
        workflow = axil_files.load(file, registry=registry)
        planner = Compiler(workflow.setting)
        with pytest.raises(SpecError):
            planner.compile(workflow.spec)
        return [
            re.sub(r"\S+(flow.json):\d+", r"\1", f"{problem.id} {problem.where}")
            for problem in planner.problems
        ]

    assert reported() == [
        "AX301 flow.json nodes[1]",
        "AX305 flow.json nodes[2]",
        "AX130 flow.json edges[0].condition.config.tims",
        "AX301 flow.json edges[0].process",
    ]
    nodes[1]["type"], nodes[2]["type"] = "shout", "shout"
    del edge["process"], edge["condition"]
    file.write_text(json.dumps({"graph": graph}, indent=1))
    assert reported() == [
        "AX130 flow.json nodes[0].wrappers[1].config.tims",
        "AX301 flow.json nodes[0].wrappers[0]",
    ]


def test_a_file_can_be_run(flow, registry):
    workflow = axil_files.load(flow({"id": "a", "type": "shout"}), registry=registry)
    assert workflow.invoke("hello") == ("HELLO", {})
    assert workflow.spec.id == "flow"


def test_options_are_those_of_reading_files(flow, registry):
    file = flow({"id": "a", "type": "${KIND}"}, vars={"KIND": "none"})
    assert axil_files.load(file, registry=registry, vars={"KIND": "shout"}).invoke("x")[0] == "X"
    with pytest.raises(axil.SpecError, match="AX100"):
        axil_files.load(file.with_name("other.json"), registry=registry)


def test_a_graph_in_a_node_knows_where_it_was_read_and_with_what(flow, registry):
    file = flow({"id": "a", "type": "inner"}, vars={"KIND": "shout"})
    assert axil_files.load(file, registry=registry).invoke("x")[0] == "X"
    assert Inner.reported["folder"] == str(file.parent.resolve())
    assert Inner.reported["vars"] == {"KIND": "shout"}


def test_a_workflow_of_a_file_is_no_root_graph(flow, registry):
    file = flow({"id": "a", "type": "shout"})
    assert type(axil_files.load(file, registry=registry)) is axil.Workflow


def test_what_a_file_says_of_memories_and_of_its_version_is_counted_as_it_always_was(tmp_path):
    """Digests of older versions of the reader: recorded runs have them."""
    memory = [{"name": "board", "type": "blackboard", "config": {}}]
    nodes = [{"id": "a", "type": "custom"}]
    graph = {
        "id": "g", "memory": memory, "nodes": nodes, "edges": [], "start": ["a"], "end": ["a"],
    }  # fmt: skip
    specs = []
    for version in ({"version": "0.4.0"}, {}):
        file = tmp_path / "flow.json"
        file.write_text(json.dumps({**version, "graph": graph}), "utf-8")
        specs.append(load_spec(file))
    assert [spec.digest() for spec in specs] == [
        "6eb442191172891ee9f951a60fa5db0f79ed3dc0c13f3291c3fd9d1b95f4c9fd",
        "db04cf0d93f082dbf6584fa9e12f96cb7d23b2b6efbe7ef700cb4c4875980a4c",
    ]
    assert [spec.extras["growing"] for spec in specs] == [("memory/board",)] * 2
    assert [spec.extras.get("lenient") for spec in specs] == [True, None]


@pytest.mark.parametrize("given", [10**400, -(10**400), "9" * 400])
def test_a_number_that_is_too_large_is_no_duration(given):
    with pytest.raises(ValueError, match="expected a duration above zero"):
        parse_duration(given)
