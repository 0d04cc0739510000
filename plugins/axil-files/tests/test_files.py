"""Workflow files: what they say, what is wrong with them and where, and that they can be written
out again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st
from pydantic import BaseModel

from axil import (
    ComponentRef,
    ConfigError,
    CycleLimit,
    EdgeSpec,
    GraphSpec,
    Limits,
    NodeSpec,
    RootGraph,
    SpecError,
    Workflow,
)
from axil.plugin import (
    ENTRY,
    EXIT,
    CompileOptions,
    FromEnvironment,
    PluginContract,
    Policy,
    Registry,
    RouterSpec,
    UnknownComponent,
    install_advice,
    use_registry,
)
from axil_files import load
from axil_files.documents import Document, check_document, parse_json, parse_toml
from axil_files.format import workflow_schema
from axil_files.loading import (
    LoadOptions,
    include_spec,
    inline_spec,
    load_spec,
    spec_from_document,
)
from axil_files.writer import dump_spec
from axil_testing.specs import without_places

pytestmark = pytest.mark.usefixtures("every_component")


def registry() -> Registry:
    made = Registry(Policy(), [])
    made.register("loaders", "json", parse_json)
    made.register("loaders", "toml", parse_toml)
    return made


def nodes(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"id": name, "type": "literal", "config": {"content": name}, **more} for name in names]


def graph(*edges: str | dict[str, Any], names: str = "ABC", **more: Any) -> dict[str, Any]:
    """Return a graph of literals; edges as "AB" or mappings; start A."""
    made = [{"from": edge[0], "to": edge[1]} if isinstance(edge, str) else edge for edge in edges]
    return {"id": "g", "nodes": nodes(*names), "edges": made, "start": ["A"], **more}


def read(data: dict[str, Any], **root: Any) -> GraphSpec:
    """Return the spec of a graph; through text, so that lines are known."""
    text = json.dumps({"graph": data, **root}, indent=1)
    return spec_from_document(
        parse_json(text, "flow.json"),
        LoadOptions(environment={"KEY": "sk-canary", "HOST": "example.org"}),
    )


def reported(data: Any, **root: Any) -> list[str]:
    """Return the problems of a graph, without line numbers; each is checked to be the line of the
    last key of the problem's path.
    """
    with pytest.raises(SpecError) as caught:
        read(data, **root)
    lines = json.dumps({"graph": data, **root}, indent=1).splitlines()
    problems: list[str] = []
    for problem in caught.value.problems:
        place = re.fullmatch(r"flow\.json:(\d+) (?:.*\.)?(\w+)(?:\[\d+\])?", problem.where)
        assert place, problem
        assert problem.where.endswith("]") or f'"{place[2]}"' in lines[int(place[1]) - 1], problem
        problems.append(re.sub(r"flow\.json:\d+", "flow.json", str(problem)))
    return problems


def arrows(spec: GraphSpec) -> list[str]:
    return [f"{edge.source}{'->' if edge.trigger else '.>'}{edge.target}" for edge in spec.edges]


# --------------------------------------------------------------------------------------------------


def test_start_comes_first_and_end_does_not_trigger():
    spec = read(graph("AB", "BC", start=["A", "B", "A"], end="C"))
    assert arrows(spec) == ["@entry->A", "@entry->B", "A->B", "B->C", "C.>@exit"]
    assert (spec.end, spec.payload) == (("C",), "messages")


def test_the_only_node_without_out_edges_is_the_end():
    assert read(graph("AB", "BC")).end == ("C",)


def test_the_first_node_without_out_edges_stands_behind_the_ends():
    spec = read(graph("AB", "AC", end=["C", "A"]))
    assert spec.end == ("C", "A", "B")
    assert arrows(spec)[-3:] == ["C.>@exit", "A.>@exit", "B.>@exit"]


def test_without_a_unique_end_one_has_to_be_named():
    assert reported(graph("AB", "AC")) == [
        "AX115 flow.json graph: graph lacks a unique natural end; specify end: 2 nodes have no "
        "out-edge (B, C). "
        "Write end: [B], or several in order of preference."
    ]
    assert "every node has an out-edge" in reported(graph("AB", "BA", names="AB"))[0]


def test_an_end_that_is_left_open_is_a_warning():
    spec = read(graph("AB", "AC", end=[]))
    assert spec.end == ("B",)
    assert [(problem.id, problem.severity) for problem in spec.extras["warnings"]] == [
        ("AX115", "warning")
    ]
    assert read(graph("AB", "BA", names="AB", end=[])).end == ()


def test_without_a_start_nothing_receives_the_input():
    data = graph("AB", "BC")
    del data["start"]
    assert reported(data) == [
        "AX114 flow.json graph: no start: it is not given which nodes receive the input. Write "
        "start: [A]."
    ]


def test_entry_and_exit_can_be_written_as_edges():
    data = graph(
        {"from": "@entry", "to": "A", "keys": ["x"]},
        "AB",
        {"from": "B", "to": "@exit", "trigger": True},
        names="AB",
    )
    del data["start"]
    spec = read(data)
    assert arrows(spec) == ["@entry->A", "A->B", "B->@exit"]
    assert spec.edges[0].keys == {"x": ""}


# --------------------------------------------------------------------------------------------------


def test_everything_wrong_is_said_at_once_with_line_and_path():
    data = graph(
        "AB",
        {"from": "B", "to": "reveiwer"},
        {"from": "A", "to": "C", "colour": 1, "trigger": "no"},
        {"from": 5, "to": "D"},
    )
    data["nodes"].append({"id": "reviewer"})
    data["nodes"][1]["context_window"] = "all"
    assert reported(data, vrsion=1) == [
        'AX103 flow.json nodes[1].context_window: expected a whole number, found "all".',
        'AX142 flow.json nodes[3]: the key "type" is missing. The node type.',
        'AX103 flow.json edges[2].trigger: expected true or false, found "no".',
        'AX141 flow.json edges[2].colour: unknown key "colour". Known here: carry_data, '
        "clear_context, clear_kept_context, condition, "
        "description, dynamic, from, group, keep_message, keys, process, to, trigger.",
        'AX103 flow.json edges[3].from: expected text, found 5. Write "5".',
        'AX141 flow.json vrsion: unknown key "vrsion". Did you mean "version"?',
        'AX104 flow.json edges[1].to: no node "reveiwer". Did you mean "reviewer"?',
        'AX104 flow.json edges[3].to: no node "D". Nodes: A, B, C, reviewer.',
    ]


def test_settings_beside_a_variable_that_is_not_known_are_checked_too():
    class Posts:
        class Config(BaseModel, extra="forbid"):
            key: str
            tries: int
            every: int = 1

        def __init__(self, config: Config) -> None:
            """Nothing is made of it."""

        def run(self, messages: object) -> object:
            return messages

    made = Registry(Policy(), [])
    made.register("nodes", "posts", Posts)
    config = {"key": "${KEY}", "every": "${EVERY}", "tries": "many", "keyy": 1}
    data = graph(nodes=[{"id": "A", "type": "posts", "config": config}])
    with use_registry(made):
        found = reported(data)
    assert [each for each in found if "AX146" not in each] == [
        'AX131 flow.json nodes[0].config.tries: expected a whole number, found "many".',
        'AX130 flow.json nodes[0].config.keyy: unknown key "keyy". Did you mean "key"?',
    ]


WHOLE = "Write graph, with nodes and start; axil schema prints the format."


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ([], f"AX103 flow.json: expected a mapping, found a list. {WHOLE}"),
        (None, f"AX103 flow.json: expected a mapping, found nothing. {WHOLE}"),
        ({}, 'AX142 flow.json: the key "graph" is missing.'),
        ({"graph": None}, "AX103 flow.json graph: expected a mapping, found nothing."),
        (
            {"graph": {"nodes": [7]}},
            "AX103 flow.json nodes[0]: expected a mapping, found 7. "
            "Write a list of them: - {id: plan, type: agent, config: {…}}.",
        ),
    ],
)
def test_what_is_no_workflow_at_all_is_said(data, problem):
    with pytest.raises(SpecError) as caught:
        spec_from_document(Document(data=data, name="flow.json"))
    assert problem in str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"start": ["Z"]}, 'AX104 flow.json start[0]: no node "Z".'),
        ({"end": "Bb"}, 'AX104 flow.json end: no node "Bb".'),
        ({"vars": {"a": 1}}, 'unknown key "vars". "vars" belongs to the top of the file.'),
        ({"join": "all"}, 'unknown key "join". "join" belongs to the node.'),
        ({"limits": {"seconds": 0}}, "limits.seconds: expected a number > 0, found 0."),
        ({"limits": {"firings": 1.5}}, "limits.firings: expected a whole number, found 1.5."),
        ({"limits": {"type": "x"}}, 'limits.type: unknown key "type". "type" belongs to the node.'),
        (
            {"limits": {"lanes": {"human": True}}},
            "limits.lanes.human: expected a whole number, found true.",
        ),
        ({"loop": "Z"}, 'AX104 flow.json loop: no node "Z".'),
        ({"cycle_limits": {"Z": {}}}, 'AX105 flow.json cycle_limits.Z: no node "Z".'),
        (
            {"cycle_limits": {"A": {"rounds": "many"}}},
            'cycle_limits.A.rounds: expected a whole number or unlimited, found "many".',
        ),
        (
            {"log_level": "TRACE"},
            'log_level: expected one of DEBUG, INFO, WARNING, ERROR, CRITICAL, found "TRACE".',
        ),
        (
            {"cycles": "alow"},
            'cycles: expected one of allow, forbid, found "alow". Did you mean "allow"?',
        ),
        (
            {"memory": [{"name": "m", "type": "t"}]},
            'AX142 flow.json memory[0]: the key "config" is missing.',
        ),
        (
            {"memory": [{"name": "m", "type": "t", "config": {}}] * 2},
            'AX143 flow.json memory[1].name: the memory "m" exists already.',
        ),
    ],
)
def test_a_wrong_graph_is_a_named_problem(change, problem):
    assert any(problem in each for each in reported(graph("AB", "BC", **change)))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": "A"}, 'AX101 flow.json nodes[1].id: the node "A" exists already (line 5).'),
        ({"id": "@x"}, "AX102"),
        ({"id": 3}, "nodes[1].id: expected text, found 3."),
        ({"id": False}, "found false. Put it in quotes: in YAML no, off, yes and on are"),
        (
            {"model": 3},
            'nodes[1].model: unknown key "model". Settings of its type are under config',
        ),
        ({"id": ""}, 'nodes[1].id: expected text that is not empty, found "".'),
        ({"join": 3}, "nodes[1].join: expected"),
        ({"join": {"type": "quorum", "conf": {}}}, 'nodes[1].join.conf: unknown key "conf".'),
        ({"merge": {}}, 'unknown key "merge". It is a function, and can be given in Python only.'),
        (
            {"type": "os:system"},
            "AX148 flow.json nodes[1].type: import paths are not allowed in files, found "
            '"os:system".',
        ),
        ({"wrappers": ["os:system"]}, "AX148"),
        (
            {"context_window": -2},
            "nodes[1].context_window: expected a number ≥ -1, found -2.",
        ),
        (
            {"pull": ["a"], "pull_keys": ["b"]},
            "AX141 flow.json nodes[1].pull_keys: pull and pull_keys say the same.",
        ),
    ],
)
def test_a_wrong_node_is_a_named_problem(change, problem):
    data = graph("AC")
    data["nodes"][1].update(change)
    assert any(problem in each for each in reported(data))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"from": "@exit"}, "AX104 flow.json edges[0].from: no edge starts at @exit."),
        ({"to": "@entry"}, "AX104 flow.json edges[0].to: no edge leads to @entry."),
        ({"to": "end"}, 'AX104 flow.json edges[0].to: no node "end". Write "@exit".'),
        ({"when": "ok"}, 'AX141 flow.json edges[0].when: unknown key "when". Write "condition".'),
        (
            {"condition": 3},
            "edges[0].condition: expected true or false or text or a mapping, found 3.",
        ),
        ({"condition": {"typ": "keyword"}}, 'unknown key "typ". Did you mean "type"?'),
        ({"condition": "subprocess:run"}, "AX148"),
        ({"process": {"type": "a:b"}}, "AX148 flow.json edges[0].process.type"),
        ({"dynamic": {"typ": "map"}}, 'edges[0].dynamic.typ: unknown key "typ".'),
        ({"dynamic": {"type": "map", "config": {"groups": 3}}}, "AX141"),
        (
            {"dynamic": {"type": "tree", "config": {"group_size": 1}}},
            "expected a number ≥ 2, found 1.",
        ),
        ({"keys": [1]}, "edges[0].keys[0]: expected text, found 1."),
    ],
)
def test_a_wrong_edge_is_a_named_problem(change, problem):
    assert any(
        problem in each for each in reported(graph({"from": "A", "to": "B", **change}, "BC"))
    )


@pytest.mark.parametrize(
    ("part", "given", "problem"),
    [
        ("nodes", {"a": {}}, "expected a list, found a mapping. Write a list of them: - {id: plan"),
        ("edges", ["A -> B"], 'found "A -> B". Write a list of them: - {from: plan, to: write}.'),
    ],
)
def test_a_part_in_another_shape_is_answered_with_the_one_it_has(part, given, problem):
    data = graph("AB")
    data[part] = given
    assert any(problem in each for each in reported(data))


def test_what_is_no_path_is_refused_in_words():
    with pytest.raises(TypeError, match=r"path: expected that of a file, found a mapping\."):
        load_spec({"nodes": []})  # type: ignore[arg-type]  # the point of the test


def test_import_paths_need_leave():
    data = graph("AB", names="AB")
    data["nodes"][0]["type"] = "my.nodes:Tick"
    document = Document(data={"graph": data})
    assert spec_from_document(document, LoadOptions(allow_code=True)).nodes[0].use == ComponentRef(
        type="my.nodes:Tick", config={"content": "A"}
    )


# -------------------------------------------------------------------------------------------------


def test_edges_say_conditions_processors_and_marks():
    keyword = {"type": "keyword", "config": {"any": ["x"]}}
    conditions = [
        True,
        "true",
        None,
        {"type": "function", "config": {"name": "true"}},
        False,
        "false",
        "code_pass",
        keyword,
    ]
    conditions.append({"type": "function", "config": {"name": "code_pass"}})
    data = graph(
        *(
            {"from": "A", "to": "B", "condition": c, "description": str(i)}
            for i, c in enumerate(conditions)
        ),
        names="AB",
    )
    spec = read(data)
    never, passed = ComponentRef(type="false"), ComponentRef(type="code_pass")
    assert [edge.condition for edge in spec.edges[1:-1]] == [
        None, None, None, None, never, never, passed, ComponentRef(type="keyword",
        config=keyword["config"]), passed,
    ]  # fmt: skip
    full = {
        "process": {"type": "regex_extract", "config": {"pattern": "x"}},
        "group": "g",
        "carry_data": False,
        "trigger": False,
    }
    edge = read(
        graph(
            {
                "from": "A",
                "to": "B",
                "keys": {"k": "what"},
                "keep_message": True,
                "clear_context": True,
                **full,
            },
            "BC",
        )
    ).edges[1]
    assert (edge.process, edge.group, edge.carry_data, edge.trigger) == (
        ComponentRef(type="regex_extract", config={"pattern": "x"}), "g", False, False,
    )  # fmt: skip
    assert (edge.keys, edge.marks) == ({"k": "what"}, {"keep": True, "clear": "context"})
    assert read(graph({"from": "A", "to": "B", "clear_kept_context": True}, "BC")).edges[
        1
    ].marks == {"clear": "kept"}
    both = {"clear_context": True, "clear_kept_context": True}
    assert read(graph({"from": "A", "to": "B", **both}, "BC")).edges[1].marks == {"clear": "all"}


def test_marks_and_windows_give_a_node_an_inbox():
    data = graph("AB", {"from": "B", "to": "C", "keep_message": True})
    data["nodes"][0]["context_window"] = -1
    data["nodes"][1]["context_window"] = 0
    assert [node.wrappers for node in read(data).nodes] == [
        (ComponentRef(type="inbox", config={"window": -1}),),
        (),
        (ComponentRef(type="inbox", config={"window": 0}),),
    ]  # fmt: skip


def test_dynamic_edges_wrap_their_target_between_its_inbox_and_its_own_wrappers():
    tree = {
        "type": "tree",
        "split": {"type": "regex", "config": {"pattern": "x"}},
        "config": {"group_size": 2},
    }
    data = graph(
        "AB",
        {"from": "A", "to": "C", "dynamic": tree, "keep_message": True},
        {"from": "B", "to": "C", "dynamic": tree},
    )
    data["nodes"][2]["wrappers"] = ["retry", {"type": "timeout", "config": {"seconds": 3}}]
    asked = {"split": tree["split"], "group_size": 2, "edges": ["A", "B"]}
    assert read(data).nodes[2].wrappers == (
        ComponentRef(type="inbox", config={"window": 0}), ComponentRef(type="tree", config=asked),
        ComponentRef(type="retry"), ComponentRef(type="timeout", config={"seconds": 3}),
    )  # fmt: skip
    wrapper = (
        read(graph({"from": "A", "to": "B", "dynamic": {"type": "map", "split": None}}, "BC"))
        .nodes[1]
        .wrappers[0]
    )
    assert wrapper == ComponentRef(type="map", config={"edges": ["A"]})


def test_a_graph_puts_usual_wrappers_around_its_nodes_by_type_unless_they_have_one_of_that_type():
    usual = {
        "*": ["timeout", {"type": "retry", "config": {"tries": 2}}],
        "literal": ["cache"],
    }
    data = graph("AB", {"from": "B", "to": "C", "keep_message": True}, node_wrappers=usual)
    data["nodes"][0]["wrappers"] = [{"type": "retry", "config": {"tries": 9}}]
    assert [
        [(use.type, *use.config.values()) for use in node.wrappers] for node in read(data).nodes
    ] == [
        [("timeout",), ("cache",), ("retry", 9)],
        [("timeout",), ("retry", 2), ("cache",)],
        [("inbox", 0), ("timeout",), ("retry", 2), ("cache",)],
    ]


@pytest.mark.parametrize(
    ("usual", "problem"),
    [
        (["retry"], "node_wrappers: expected a mapping"),
        ({"literal": "retry"}, "node_wrappers.literal: expected a list"),
        ({"litteral": ["retry"]}, 'fits none of its nodes. Did you mean "literal"?'),
        ({"literal": [{"typ": "retry"}]}, 'unknown key "typ"'),
        ({"literal": ["os:system"]}, "AX148"),
    ],
)
def test_wrong_usual_wrappers_are_named_problems(usual, problem):
    assert any(problem in each for each in reported(graph("AC", node_wrappers=usual)))


def test_prices_and_estimates_are_read_and_written_again():
    small, large = {"input": 0.15, "output": 0.6, "cached": 0.075}, {"input": 2, "output": 8}
    limits = {
        "cost": 2.5,
        "pricing": {"models": {"small": small}, "unknown": large},
        "estimate": {"characters_per_token": 3, "output_tokens": 200},
    }
    spec = read(graph("AB", "BC", limits=limits))
    assert spec.limits.pricing.models["small"].cached == 0.075
    assert spec.limits.pricing.unknown.output == 8
    assert (spec.limits.estimate.characters_per_token, spec.limits.estimate.output_tokens) == (
        3,
        200,
    )
    assert dump_spec(spec)["graph"]["limits"] == limits
    assert read(dump_spec(spec)["graph"]).limits == spec.limits


def test_only_limits_that_name_prices_or_estimates_need_the_distribution_of_models():
    code = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "axil_models":
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
import json
from axil.plugin import UnknownComponent
from axil_files import dump_spec, parse_json, spec_from_document
def read(limits):
    node = {"id": "a", "type": "custom"}
    graph = {"id": "g", "nodes": [node], "start": ["a"], "end": ["a"], "limits": limits}
    flow = {"graph": graph}
    return spec_from_document(parse_json(json.dumps(flow), "flow.json"))
print(dump_spec(read({"tokens": 5}))["graph"]["limits"])
try:
    read({"estimate": {"output_tokens": 3}})
except UnknownComponent as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout.splitlines() == [
        "{'tokens': 5}",
        "AX301 flow.json:1 limits: prices and estimates need axil-models, which is not installed. "
        + install_advice("axil-files[prices]"),
    ], done.stderr


@pytest.mark.parametrize(
    ("pricing", "problem"),
    [
        ({"models": {"small": {"input": 1}}}, 'the key "output" is missing'),
        (
            {"models": {"small": {"input": 1, "output": -2}}},
            "expected a number ≥ 0, found -2",
        ),
        ({"unknown": "guess"}, 'expected one of refuse, ignore or a mapping, found "guess"'),
        ({"unknown": {"input": 1}}, 'the key "output" is missing'),
        ({"prices": {}}, 'unknown key "prices"'),
    ],
)
def test_a_wrong_price_is_a_named_problem(pricing, problem):
    assert any(
        problem in each for each in reported(graph("AC", limits={"cost": 1, "pricing": pricing}))
    )


def test_dynamic_edges_to_one_node_agree():
    other = {"from": "B", "to": "C", "dynamic": {"type": "map", "config": {"max_parallel": 2}}}
    data = graph("AB", {"from": "A", "to": "C", "dynamic": {"type": "map"}}, other)
    assert reported(data) == [
        'AX116 flow.json edges[2].dynamic: edges[1] wants another max_parallel for the node "C". '
        "Make them agree."
    ]
    other["dynamic"] = {"type": "tree"}
    assert 'another type for the node "C": map there, tree here.' in reported(data)[0]


def test_the_same_edge_twice_is_one_edge_and_a_warning():
    spec = read(
        graph(
            "AB",
            {"from": "A", "to": "B", "trigger": True, "condition": "true", "process": None},
            "BC",
        )
    )
    assert arrows(spec) == ["@entry->A", "A->B", "B->C", "C.>@exit"]
    assert [str(problem) for problem in spec.extras["warnings"]] == [
        "AX106 flow.json:32 edges[1]: the same edge exists already: edges[0]. Remove one."
    ]


def test_dynamic_on_a_node_is_ignored_aloud():
    data = graph("AB", names="AB")
    data["nodes"][0]["dynamic"] = None
    assert "warnings" not in read(data).extras
    data["nodes"][0]["dynamic"] = {"type": "map"}
    assert [problem.id for problem in read(data).extras["warnings"]] == ["AX118"]


def test_majority_voting_asks_all_nodes_and_adds_one_that_counts():
    data = graph("AB", names="AB", is_majority_voting=True, end="B")
    data["nodes"].append({"id": "vote", "type": "agent"})
    spec = read(data)
    assert arrows(spec) == [
        "@entry->A",
        "@entry->B",
        "@entry->vote",
        "A->vote_2",
        "B->vote_2",
        "vote->vote_2",
        "vote_2.>@exit",
    ]
    assert (spec.nodes[-1].use, spec.end) == (ComponentRef(type="vote"), ("vote_2",))


def test_everything_else_of_a_graph_arrives():
    memory = [{"name": "m", "type": "simple", "config": {}}]
    spec = read(
        graph(
            "AB",
            "BA",
            names="AB",
            end="B",
            description="d",
            attributes={"tone": "dry"},
            state={"topic": "axils"},
            cycles="allow",
            loop="A",
            cycle_limits={"A": {"rounds": 3, "at_limit": "exit"}, "*": {"rounds": "unlimited"}},
            limits={"firings": 9, "seconds": 2.5, "lanes": {"human": 2}, "cost": None},
            memory=memory,
            log_level="INFO",
            initial_instruction="hello",
        ),
        version=0.4,
        requires=["axil-agent>=0.1", "axil-files"],
    )
    assert spec.attributes == {"tone": "dry", "topic": "axils"}
    assert spec.cycle_limits == {
        "A": CycleLimit(rounds=3, at_limit="exit"),
        "": CycleLimit(rounds=None),
    }
    assert spec.limits == Limits(firings=9, seconds=2.5, lanes={"human": 2})
    assert spec.requires == {"axil-agent": ">=0.1", "axil-files": ""}
    assert (spec.description, spec.schema, spec.loop) == ("d", None, "A")
    assert {key: spec.extras[key] for key in ("memory", "log_level", "initial_instruction",
    "version")} == {
        "memory": memory, "log_level": "INFO", "initial_instruction": "hello", "version": 0.4,
    }  # fmt: skip


def test_everything_else_of_a_node_arrives():
    data = graph("AB", names="AB")
    own = {
        "join": "all",
        "lane": "human",
        "pull_keys": {"a": "x"},
        "push": [],
        "attributes": {"n": 1},
        "description": "d",
    }
    data["nodes"][0].update(
        {**own, "log_output": False, "input": [{"role": "user", "content": "hi"}], "output": []}
    )
    node = read(data).nodes[0]
    assert (node.join, node.lane, node.pull, node.push, node.attributes, node.description) == (
        "all",
        "human",
        {"a": "x"},
        {},
        {"n": 1},
        "d",
    )
    assert node.extras == {"log_output": False, "input": [{"role": "user", "content": "hi"}]}
    assert str(node.place.at("config", "content")) == "flow.json:9 nodes[0].config.content"


def test_declared_fields_make_a_closed_state():
    state = {
        "topic": {"type": "str"},
        "notes": {"type": "list[str]", "strategy": "append", "default": ["a"]},
    }
    schema = read(graph("AB", names="AB", state=state)).schema
    assert schema is not None
    assert schema.closed
    assert list(schema.start()["notes"]) == ["a"]
    assert {"topic", "notes"} <= set(schema.fields)


def test_strategies_of_fields_come_from_the_registry_that_is_given():
    known = registry()
    known.register("reducers", "longest", lambda old, new: max(old or "", new, key=len))
    state = {"word": {"type": "str", "strategy": "longest"}}
    document = Document(data={"graph": graph("AB", names="AB", state=state)})
    assert (
        spec_from_document(document, LoadOptions(registry=known))
        .schema.fields["word"]
        .reducer.fold("ab", ["c", "def"])
        == "def"
    )
    with pytest.raises(SpecError, match="AX150"):
        spec_from_document(document, LoadOptions(registry=registry()))


NAMED_3 = {"type": "function", "config": {"name": 3}}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"migrations": ["x"]},
            "AX103 flow.json migrations: expected a mapping, found a list.",
        ),
        (
            {"nodes": [{"id": {}, "type": "passthrough"}]},
            "AX103 flow.json nodes[0].id: expected text, found a mapping.",
        ),
        (
            {"edges": [{"from": [], "to": {}}]},
            "AX103 flow.json edges[0].from: expected text, found a list.",
        ),
        (
            {"edges": [{"from": "A", "to": "B", "condition": NAMED_3}]},
            "AX103 flow.json edges[0].condition.config.name: expected text, found 3.",
        ),
        (
            {"edges": [{"from": "A", "to": "B", "process": NAMED_3}]},
            "AX103 flow.json edges[0].process.config.name: expected text, found 3.",
        ),
        (
            {"start": [{"a": 1}]},
            "AX103 flow.json start[0]: expected text, found a mapping.",
        ),
    ],
)
def test_a_value_of_another_type_is_a_problem_wherever_it_stands(change, problem):
    assert problem in "\n".join(reported({**graph("AB", names="AB"), **change}))


def test_a_wrong_field_is_reported_with_its_line():
    state = {
        "topic": {"type": "strr"},
        "notes": {"type": "list", "strategy": "apend"},
        "n": {"type": "int", "default": 1},
    }
    problems = reported(graph("AB", names="AB", state=state))
    assert [
        "flow.json state.topic" in problems[0],
        "flow.json state.notes" in problems[1],
        len(problems),
    ] == [True, True, 2]
    assert 'Did you mean "append"' in problems[1]
    assert reported(graph("AB", names="AB", state={"n": {"type": "int", "default": "x"}}))[
        0
    ].startswith('AX103 flow.json state.n.default: "x" does not fit the field:')
    assert (
        'unknown key "strateg"'
        in reported(graph("AB", names="AB", state={"n": {"type": "int", "strateg": "sum"}}))[0]
    )


# --------------------------------------------------------------------------------------------------


def test_a_placeholder_takes_the_value_and_its_type():
    data = graph("AB", names="AB")
    data["nodes"][0]["config"] = {
        "n": "${N}",
        "list": "${LIST}",
        "text": "n=${N} l=${LIST} k=${KEY}",
        "plain": "${not a name} $N {N}",
    }
    spec = read(data, vars={"N": 3, "LIST": ["${N}", "x"]})
    assert spec.nodes[0].use.config == {
        "n": 3, "list": [3, "x"], "text": 'n=3 l=[3, "x"] k=sk-canary',
        "plain": "${not a name} $N {N}",
    }  # fmt: skip


def test_given_variables_are_stronger_than_the_files_then_come_outer_ones_and_the_environment():
    data = {
        "graph": {**graph("AB", names="AB"), "description": "${A} ${B} ${C} ${D}"},
        "vars": {"A": "file", "B": "file"},
    }
    outer = dict.fromkeys("ABC", "outer")
    reading = LoadOptions(
        vars={"A": "given"}, outer=outer, environment=dict.fromkeys("ABCD", "environment")
    )
    spec = spec_from_document(Document(data=data), reading)
    assert spec.description == "given file outer environment"
    assert spec.extras["vars"] == {"A": "given", "B": "file", "C": "outer"}
    assert spec.extras["environment"] == ("D",)


def test_what_comes_from_the_environment_is_marked_hidden_and_not_searched():
    data = graph("AB", names="AB")
    data["nodes"][0]["config"] = {"api_key": "${KEY}", "url": "https://${HOST}/v1"}
    spec = read(data)
    key, url = spec.nodes[0].use.config["api_key"], spec.nodes[0].use.config["url"]
    assert (key, url, type(key)) == ("sk-canary", "https://example.org/v1", FromEnvironment)
    assert spec.extras["environment"] == ("HOST", "KEY")
    assert "sk-canary" not in repr(spec)
    assert "sk-canary" not in json.dumps(dump_spec(spec))
    assert dump_spec(spec)["graph"]["nodes"][0]["config"] == {
        "api_key": "${KEY}",
        "url": "https://${HOST}/v1",
    }
    again = spec_from_document(
        Document(data={"graph": data}),
        LoadOptions(environment={"KEY": "sk-renewed", "HOST": "${KEY}"}),
    )
    assert again.nodes[0].use.config["url"] == "https://${KEY}/v1"
    assert again.digest() == spec.digest()


def test_unknown_variables_and_circles_are_named():
    data = graph("AB", names="AB", description="${ZZ} ${A} ${NOTE}")
    problems = reported(data, vars={"A": "${B}", "B": "x${A}", "NOTES": 1})
    assert problems == [
        "AX147 flow.json vars.B: the variable A needs itself: A → B → A. Give one of them a "
        "plain value.",
        "AX146 flow.json description: there is no value for ${ZZ}. "
        "Add it to vars, give it with --set ZZ=…, or set the environment variable ZZ.",
        'AX146 flow.json description: there is no value for ${NOTE}. Did you mean "NOTES"?',
    ]


def test_a_missing_variable_is_reported_once_with_all_its_places():
    data = graph("AB", names="AB", description="${ZZ}")
    for node in data["nodes"]:
        node["config"] = {"a": "${ZZ}", "b": "${ZZ} ${NOTE}"}
    text = json.dumps({"graph": data}, indent=1)
    with pytest.raises(SpecError) as caught:
        spec_from_document(parse_json(text, "flow.json"), LoadOptions(environment={}))
    first, second = map(str, caught.value.problems)
    assert re.match(
        r"AX146 flow\.json:\d+ nodes\[0\]\.config\.a: there is no value for \$\{ZZ\}, nor at(,? "
        r"line \d+){4}\. Add",
        first,
    )
    assert re.match(
        r"AX146 flow\.json:\d+ nodes\[0\]\.config\.b: there is no value for \$\{NOTE\}, nor at "
        r"line \d+\. Add",
        second,
    )


def test_variables_that_double_are_refused_before_they_cost_anything():
    texts = {"V0": "x" * 1000, **{f"V{i}": f"${{V{i - 1}}}${{V{i - 1}}}" for i in range(1, 60)}}
    lists = {"V0": [1], **{f"V{i}": [f"${{V{i - 1}}}"] * 2 for i in range(1, 60)}}
    for variables in (texts, lists):  # read to the end, each would fill more than any memory
        with pytest.raises(SpecError, match=r"AX144|AX110"):
            read(graph("AB", names="AB", attributes={"a": "${V59}"}), vars=variables)


def test_variables_that_nest_are_refused_before_the_stack_ends():
    def nested(value: Any) -> Any:
        for _ in range(50):
            value = [value]
        return value

    variables = {"V0": 1, **{f"V{i}": nested(f"${{V{i - 1}}}") for i in range(1, 60)}}
    with pytest.raises(SpecError, match="AX110"):
        read(graph("AB", names="AB", attributes={"a": "${V59}"}), vars=variables)


# --------------------------------------------------------------------------------------------------


def test_a_file_is_loaded_by_its_suffix(tmp_path: Path):
    json_file, toml_file = tmp_path / "flow.json", tmp_path / "flow.toml"
    json_file.write_text(
        "\ufeff" + json.dumps({"graph": {**graph("AB", names="AB"), "id": None}}), "utf-8"
    )
    toml_file.write_text(
        '[graph]\nstart = "A"\n[[graph.nodes]]\nid = "A"\ntype = "literal"\n[[graph.nodes]]\nid '
        '= "B"\ntype = 3\n'
    )
    spec = load_spec(json_file, registry=registry())
    assert (spec.id, spec.extras["folder"], spec.extras["trail"]) == (
        "flow",
        str(tmp_path),
        (str(json_file),),
    )
    with pytest.raises(SpecError) as caught:
        load_spec(toml_file, registry=registry())
    assert (
        str(caught.value).splitlines()[0]
        == f'AX103 {toml_file}:8 nodes[1].type: expected text, found 3. Write "3".'
    )


def test_a_suffix_without_a_loader_says_what_to_install(tmp_path: Path):
    (tmp_path / "flow.yaml").write_text("a: 1")
    with pytest.raises(UnknownComponent, match=re.escape(install_advice("axil-files"))):
        load_spec(tmp_path / "flow.yaml", registry=registry())


def test_what_cannot_be_read_is_said(tmp_path: Path):
    (tmp_path / "flow.json").write_bytes(b'{"graph":\n "\xff"}')
    (tmp_path / "large.json").write_text('"' + "x" * (1 << 23) + '"')
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    for name, problem in (
        ("flwo.json", 'no such file. Did you mean "flow.json"?'),
        ("flow", "known by its suffix"),
        ("flow.json", ":2: this is not text in UTF-8."),
        ("large.json", "AX144"),
        ("pipe.json", "this is not a file."),
        ("folder.json", "AX100"),
    ):
        with pytest.raises(SpecError) as caught:
            load_spec(tmp_path / name, registry=registry())
        assert problem in str(caught.value)


def test_a_loader_gives_a_document():
    known = registry()
    with pytest.raises(SpecError, match=r"AX100 .*this is Python.*axil run .*:graph"):
        load_spec(__file__, registry=known)
    known.register("loaders", "py", lambda text, name: {"graph": {}})
    with pytest.raises(PluginContract, match="gave dict instead of a Document"):
        load_spec(__file__, registry=known)


# --------------------------------------------------------------------------------------------------


def write(folder: Path, name: str, **more: Any) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"graph": graph("AB", names="AB", **more)}))
    return file


def test_a_file_includes_others_in_its_folder_with_weaker_variables(tmp_path: Path):
    main = write(tmp_path, "main.json")
    write(tmp_path, "sub/one.json", description="${V}")
    outer = load_spec(main, registry=registry(), vars={"V": "outer"})
    one = include_spec("sub/one.json", outer.extras, registry=registry())
    assert (one.description, one.extras["root"], one.extras["folder"]) == (
        "outer",
        str(tmp_path),
        str(tmp_path / "sub"),
    )
    assert one.place.file == os.path.join("sub", "one.json")
    # from the including file's folder, then from the first one's
    for name in ("one.json", "sub/two.json"):
        write(tmp_path, "sub/two.json")
        assert (
            include_spec(
                name,
                one.extras if name != "one.json" else {**one.extras, "trail": ()},
                registry=registry(),
            ).id
            == "g"
        )


def test_circles_of_files_are_refused(tmp_path: Path):
    first = load_spec(write(tmp_path, "a.json"), registry=registry())
    write(tmp_path, "b.json")
    with pytest.raises(
        SpecError, match=r"AX117 here: \./a\.json includes itself: a\.json → a\.json"
    ):
        include_spec("./a.json", first.extras, where="here", registry=registry())
    second = include_spec("b.json", first.extras, registry=registry())
    with pytest.raises(SpecError, match=r"a\.json → b\.json → a\.json"):
        include_spec("a.json", second.extras, registry=registry())


def test_a_workflow_can_be_read_again_from_its_texts_whatever_became_of_the_files(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    main, inner = tmp_path / "main.json", tmp_path / "sub/inner.json"
    main.write_text(
        '{"graph": {"id": "main", "nodes": [{"id": "a", "type": "echo"}], "start": ["a"]}}'
    )
    inner.write_text(
        '{"graph": {"id": "inner", "nodes": [{"id": "b", "type": "echo"}], "start": ["b"]}}'
    )
    texts: dict[str, str] = {}
    first = load_spec(main, registry=registry(), texts=texts)
    include_spec("sub/inner.json", first.extras, registry=registry())
    assert set(texts) == {"main.json", "sub/inner.json"}
    main.unlink()
    inner.write_text("something else")
    again = load_spec(main, registry=registry(), texts=dict(texts))
    assert again == first
    assert include_spec("sub/inner.json", again.extras, registry=registry()).id == "inner"
    inner.unlink()
    assert include_spec("sub/inner.json", again.extras, registry=registry()).id == "inner"
    with pytest.raises(SpecError, match="AX100"):
        include_spec("sub/other.json", again.extras, registry=registry())


def test_files_are_included_sixteen_deep_at_most(tmp_path: Path):
    spec = load_spec(write(tmp_path, "0.json"), registry=registry())
    for i in range(1, 16):
        write(tmp_path, f"{i}.json")
        spec = include_spec(f"{i}.json", spec.extras, registry=registry())
    write(tmp_path, "16.json")
    with pytest.raises(SpecError, match=r"AX117 .*more than 16"):
        include_spec("16.json", spec.extras, registry=registry())


def test_nothing_outside_the_first_files_folder_is_included(tmp_path: Path):
    outside = write(tmp_path, "outside/secret.json")
    spec = load_spec(write(tmp_path, "inside/main.json"), registry=registry())
    (tmp_path / "inside/link.json").symlink_to(outside)
    (tmp_path / "inside/linked").symlink_to(tmp_path / "outside")
    for name in (
        "../outside/secret.json",
        str(outside),
        "link.json",
        "linked/secret.json",
        "http://x/y.json",
        "a\0.json",
    ):
        with pytest.raises(SpecError, match="AX117"):
            include_spec(name, spec.extras, registry=registry())
    with pytest.raises(
        SpecError,
        match='AX100 no file mian.json. Did you mean "main.json"?'.replace(".", r"\.").replace(
            "?", r"\?"
        ),
    ):
        include_spec("mian.json", spec.extras, registry=registry())
    (tmp_path / "inside/folder.json").mkdir()
    with pytest.raises(SpecError, match="AX100"):
        include_spec("folder.json", spec.extras, registry=registry())


@pytest.fixture
def nesting(every_component, tmp_path, monkeypatch):
    """A node type whose manifest says that its setting ``config`` holds a graph."""
    (tmp_path / "kit_nesting").mkdir()
    (tmp_path / "kit_nesting" / "__init__.py").write_text("")
    described = {
        "kind": "nodes",
        "name": "nested",
        "refs": [{"path": "/config", "kind": "graph"}],
    }
    manifest = {"manifest": 1, "distribution": "kit-nesting", "components": [described]}
    (tmp_path / "kit_nesting" / "axil-plugin.json").write_text(json.dumps(manifest))
    monkeypatch.syspath_prepend(str(tmp_path))
    dist = SimpleNamespace(name="kit-nesting", version="1.0", requires=[])
    points = [
        ("axil.nodes", "nested", "kit_nesting:x"),
        ("axil.plugin", "kit-nesting", "kit_nesting"),
    ]
    made = Registry(
        Policy(),
        [SimpleNamespace(group=g, name=n, value=v, dist=dist) for g, n, v in points],
    )
    with use_registry(made):
        yield


@pytest.mark.usefixtures("nesting")
def test_a_graph_in_a_config_is_checked_with_its_lines_and_can_be_read():
    inner = graph("AB", names="AB")
    data = graph("AB", names="AB")
    data["nodes"][0] = {
        "id": "A",
        "type": "nested",
        "config": {"type": "config", "config": inner},
    }
    spec = read(data, vars={"V": "v"})
    assert arrows(inline_spec(inner, spec.extras)) == ["@entry->A", "A->B", "B.>@exit"]
    inner["edges"].append({"from": "A", "to": "Bb"})
    assert reported(data)[0].startswith(
        'AX104 flow.json nodes[0].config.config.edges[1].to: no node "Bb".'
    )
    with pytest.raises(SpecError, match=r'AX104 flow\.json:5 edges\[1\]\.to: no node "Bb"'):
        inline_spec(inner, spec.extras, place=spec.nodes[0].place)


# --------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["A", "B", "C", "D e", "Ü", "-1"])
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(-2, 2)
    | st.text("ab {}$é", max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab", min_size=1, max_size=2), inner, max_size=3)
    ),
    max_leaves=5,
)
USES = st.builds(lambda t, c: t if c is None else {"type": t, "config": c}, st.sampled_from(["x",
"y", "inbox"]),
                 st.none() | st.dictionaries(st.text("ab", min_size=1), PLAIN,
                 max_size=2))  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    some = st.sampled_from(names)
    optional: dict[str, st.SearchStrategy[Any]] = {
        "join": st.sampled_from(["gate", "all", "each"]), "wrappers": st.lists(USES, max_size=2),
        "pull": st.just(["a"]),
        "push_keys": st.just({}), "context_window": st.integers(-1, 3),
        "log_output": st.booleans(), "lane": st.just("l"),
    }  # fmt: skip
    config = st.dictionaries(st.text("ab", min_size=1), PLAIN, max_size=3)
    made = [
        {
            "id": name,
            "type": "t",
            **draw(st.fixed_dictionaries({}, optional={**optional, "config": config})),
        }
        for name in names
    ]
    edges = draw(
        st.lists(
            st.fixed_dictionaries(
                {"from": some, "to": some},
                optional={
                    "trigger": st.booleans(), "condition": st.booleans() | USES,
                    "process": st.none() | USES, "carry_data": st.booleans(),
                    "keep_message": st.booleans(), "clear_context": st.booleans(),
                    "clear_kept_context": st.booleans(),
                    "keys": st.just({"k": "v"}), "group": st.sampled_from(["", "g"]),
                    "description": st.just("d"),
                    "dynamic": st.just({"type": "map"}),
                },
            ),
            max_size=6,
        )
    )  # fmt: skip
    more = st.fixed_dictionaries(
        {"start": st.lists(some, min_size=1, max_size=2), "end": st.lists(some, max_size=2)},
        optional={
            "is_majority_voting": st.booleans(), "attributes": config,
            "limits": st.just({"firings": 3}), "loop": some,
            "cycle_limits": st.just({"*": {"rounds": 2}}), "log_level": st.just("INFO"),
            "description": st.just("d"),
        },
    )  # fmt: skip
    return {
        "graph": {"id": "g", "nodes": made, "edges": edges, **draw(more)},
        "requires": {"x": ">=1"},
    }


@given(graphs())
def test_what_is_dumped_reads_back_as_the_same_spec(data: dict[str, Any]):
    assume("${" not in json.dumps(data))  # a text that asks for a variable is no plain text
    spec = spec_from_document(Document(data=data), LoadOptions(environment={}))
    text = json.dumps(dump_spec(spec))
    again = spec_from_document(parse_json(text, "again.json"), LoadOptions(environment={}))
    assert without_places(again) == without_places(spec)
    assert again.digest() == spec.digest()


def test_a_typed_state_survives_the_round_trip():
    state = {"notes": {"type": "list[str]", "strategy": "append", "default": ["a"]}}
    spec = read(graph("AB", names="AB", state=state))
    assert dump_spec(spec)["graph"]["state"] == state
    assert read(dump_spec(spec)["graph"]).schema.start() == spec.schema.start()


# ------------------------------------------------------------------------------------------- joins


class Quorum:
    """Fires as soon as ``of`` edges are live."""

    early, per_token, rest = True, False, "ignore"

    class Config(BaseModel, extra="forbid"):
        of: int

    def __init__(self, config: Config) -> None:
        self.of = config.of

    def fires(self, live: int, dead: int, total: int) -> bool | None:
        if live >= self.of:
            return True
        return None if total - dead >= self.of else False


def joined(join: Any) -> dict[str, Any]:
    data = graph("AB", "AC", "BD", "CD", names="ABCD")
    data["nodes"][3]["join"] = join
    return data


@pytest.mark.parametrize(
    "join", ["gate", "all", "each", "quorum", {"type": "quorum", "config": {"of": 2}}]
)
def test_a_join_is_read_and_written_back_the_same(join: Any):
    spec = read(joined(join))
    [node] = [node for node in spec.nodes if node.id == "D"]
    if join in ("gate", "all", "each"):
        assert node.join == join
    else:
        assert node.join == ComponentRef.of(join)
    written = dump_spec(spec)
    assert written["graph"]["nodes"][3]["join"] == join
    again = read(written["graph"], **{k: v for k, v in written.items() if k != "graph"})
    assert again.nodes == spec.nodes


class Says:
    class Config(BaseModel, extra="forbid"):
        content: str

    def __init__(self, config: Config) -> None:
        self.content = config.content

    def run(self, messages: Any) -> str:
        return self.content


def made_with_quorum(join: Any) -> Workflow:
    known = registry()
    known.register("joins", "quorum", Quorum)
    known.register("nodes", "literal", Says)
    return Workflow(read(joined(join)), CompileOptions(registry=known))


def test_a_join_of_a_file_is_made_of_its_settings():
    plan = made_with_quorum({"type": "quorum", "config": {"of": 2}}).plan
    join = plan.nodes[plan.index["D"]].vertex.join
    assert (type(join), join.of) == (Quorum, 2)


@pytest.mark.parametrize(
    ("join", "reported"),
    [
        ("quorom", r'AX301 flow.json:\d+ nodes\[3\].join: .*join "quorom".* mean "quorum"'),
        ("al", r'AX301 flow.json:\d+ nodes\[3\].join: .*join "al".* mean "all"'),
        ({"type": "quorum", "config": {"k": 2}}, r'nodes\[3\].join.config.k: unknown key "k"'),
    ],
)
def test_an_unknown_join_is_reported_with_its_place(join: Any, reported: str):
    with pytest.raises((SpecError, ConfigError, UnknownComponent), match=reported):
        _ = made_with_quorum(join).plan


def test_a_join_made_in_python_cannot_be_written():
    spec = read(joined("gate"))
    made = Quorum(Quorum.Config(of=2))
    spec = replace(spec, nodes=(*spec.nodes[:3], replace(spec.nodes[3], join=made)))
    with pytest.raises(SpecError, match="a join made in Python"):
        dump_spec(spec)


def test_a_graph_of_python_can_be_written_and_read_back():
    spec = GraphSpec(
        id="py",
        nodes=(
            NodeSpec(
                id="a",
                use=ComponentRef(type="literal", config={"content": "x", "items": (1, 2)}),
                extras={"resources": {"gpus": 1.0}},
            ),
        ),
        edges=(
            EdgeSpec(source=ENTRY, target="a", keys={"message": ""}),
            EdgeSpec(source="a", target=EXIT, condition="code_pass"),
        ),
        payload="fields",
        cycles="forbid",
    )
    again = spec_from_document(Document(data=dump_spec(spec)), LoadOptions(environment={}))
    assert [edge.keys for edge in again.edges] == [{"message": ""}, None]
    assert again.nodes[0].extras["resources"] == {"gpus": 1.0}
    assert (again.payload, again.cycles, arrows(again)) == (
        "fields",
        "forbid",
        ["@entry->a", "a->@exit"],
    )


def test_live_objects_are_refused_by_name():
    spec = GraphSpec(
        id="py",
        nodes=(
            NodeSpec(id="a", body=print),
            NodeSpec(
                id="b", use=ComponentRef(type="t", config={"model": object()}), merge={"": dict}
            ),
            NodeSpec(id="c", use=ComponentRef(type="t", config={"text": "say ${NAME}"})),
        ),
        edges=(EdgeSpec(source="a", target="b", condition=bool, filter=dict),),
        routers={"r": RouterSpec(source="a", targets=("b",), ask=print)},
    )
    with pytest.raises(SpecError) as caught:
        dump_spec(spec)
    assert [str(problem).partition(". ")[0] for problem in caught.value.problems] == [
        'AX149 graph "py": cannot be written to a file: routers (r)',
        'AX149 node "a": cannot be written to a file: a body made in Python',
        'AX149 node "b": cannot be written to a file: a merge',
        'AX149 node "b": cannot be written to a file: a value of type object',
        'AX149 node "c": cannot be written to a file: text that would be read as a placeholder',
        "AX149 edge a->b: cannot be written to a file: a filter",
        "AX149 edge a->b, condition: cannot be written to a file: a function",
    ]


# --------------------------------------------------------------------------------------------------


@given(PLAIN)
def test_json_is_read_as_the_standard_library_reads_it(data: Any):
    for text in (json.dumps(data), json.dumps(data, indent=2, ensure_ascii=False)):
        assert parse_json(text, "x").data == json.loads(text)


@given(st.text('{}[]":,tfn0123-.eE \n\\u', max_size=30))
def test_what_the_standard_library_refuses_is_refused_with_a_line(text: str):
    try:
        expected = json.loads(text, parse_constant=lambda name: pytest.skip(name))
    except ValueError:
        with pytest.raises(SpecError) as caught:
            parse_json(text, "x")
        assert caught.value.problems[0].where.startswith("x:")
        return
    try:
        found = parse_json(text, "x").data
    except SpecError as error:
        refused = error.id
    else:
        refused = None if found == expected else f"read as {found}"
    assert refused in (None, "AX145")  # a duplicate key


def test_lines_of_json_are_those_of_keys_and_items():
    lines = parse_json('{\n"a": {"b":\n1},\n"c": [1,\n2]}', "x").lines
    assert lines == {("a",): 2, ("a", "b"): 2, ("c",): 4, ("c", 0): 4, ("c", 1): 5}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1,\n "a": 2}', 'AX145 x:2: the key "a" occurs twice.'),
        ("[" * 10_000, "AX110 x:1: nested deeper than 64 levels."),
        ('{"a":' * 10_000, "AX110"),
        ("9" * 5_000, "AX140 x:1: a number of more than 400 digits."),
        ("[NaN]", "AX140"),
        ("[" + "0," * 600_000 + "0]", "AX144"),
        ('{"a": 1,}', "AX140 x:1: "),
        ('{"a" 1}', "AX140 x:1: expected ':' delimiter, found \"1\"."),
        ('["a\n"]', "AX140 x:1: Invalid control character"),
        ("", "AX140 x:1: expected value, found the end of the file."),
        ("1 2", 'AX140 x:1: Extra data, found "2".'),
    ],
)
def test_json_that_is_too_much_or_not_json_is_refused_at_its_line(text, problem):
    with pytest.raises(SpecError) as caught:
        parse_json(text, "x")
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"a": float("inf")}, "AX103 x a: expected a number that is finite."),
        ({"a": {3: 1}}, "AX103 x a: expected text as key, found 3."),
        ({"a": "\ud800"}, "AX103"),
        ({"a": {1, 2}}, "AX103 x a: expected plain data, found a set."),
        ([[0] * 3_000] * 300, "AX144"),
        (["x" * 100_000] * 100, "AX144"),
    ],
)
def test_data_that_is_not_plain_or_too_much_is_refused(data, problem):
    with pytest.raises(SpecError) as caught:
        check_document(Document(data=data, name="x"))
    assert str(caught.value).startswith(problem)


def test_data_that_contains_itself_is_refused():
    data: list[Any] = []
    data.append(data)
    with pytest.raises(SpecError, match="AX110"):
        check_document(Document(data=data))


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 20_000) + " = 1",
        "[" + " . ".join(["'a'"] * 20_000) + "]",
        "x = {" + ".".join("a" * 20_000) + " = 1}",
        "x = " + "[" * 20_000 + "]" * 20_000,
        "\n\n\n" * 10_000 + ".".join("a" * 65) + "=1",
    ],
)
def test_toml_whose_keys_or_values_are_nested_too_deeply_is_refused_before_it_is_read(
    text, monkeypatch
):
    monkeypatch.setattr(tomllib, "loads", lambda text: pytest.fail("it was read"))
    with pytest.raises(SpecError, match=rf"AX110 x:{1 + text.count(chr(10))}: .* 64 "):
        parse_toml(text, "x")


@pytest.mark.parametrize(
    "text",
    [
        'x = """\n[' + " " * 5_000 + '\n"""',
        "x = '''\n" + "\n[".join(["[ " * 300] * 300) + "\n'''",
        'x = "' + "." * 5_000 + '"  # ' + "." * 5_000,
        'x = """' + '\\"""' * 20_000 + '"""',
    ],
)
def test_toml_strings_and_comments_are_no_keys_however_they_look(text):
    assert parse_toml(text, "x").lines == {("x",): 1}


@pytest.mark.parametrize(
    "text", ["[" + " " * 5_000, "[" + " \n[" * 100, '"""' + '\\"""' * 20_000, "x = [" + "[" * 60]
)
def test_what_is_not_toml_is_refused_at_its_line(text):
    with pytest.raises(SpecError, match="AX140 x:1: "):
        parse_toml(text, "x")


def test_toml_values_over_several_lines_hide_no_key_behind_them():
    text = "a = [ # ]\n  1,\n  { b = ']' },\n]\n\nc.d = {e = 1}\n"
    text += 'f = """\n"""""\n \'g\' . h = 2'
    assert parse_toml(text, "x").lines == {("a",): 1, ("c", "d"): 6, ("f",): 7, ("g", "h"): 9}


def test_toml_has_the_lines_of_tables_and_keys():
    text = (
        'version = "1"\n[graph]\nid = "g"\nlong = """\n[not.a.table]\nx = '
        '1\n"""\n\n[[graph.nodes]]\nid = "A"\n'
    )
    text += '[graph.nodes.config]\nn.m = 1\n[[graph.nodes]]\n"odd key" = 2\n'
    document = parse_toml(text, "x")
    assert document.data["graph"]["nodes"][1] == {"odd key": 2}
    assert document.lines == {
        ("version",): 1, ("graph",): 2, ("graph", "id"): 3, ("graph", "long"): 4, ("graph",
        "nodes"): 9, ("graph", "nodes", 0): 9, ("graph", "nodes", 0, "id"): 10,
        ("graph", "nodes", 0, "config"): 11, ("graph", "nodes", 0, "config", "n", "m"): 12,
        ("graph", "nodes", 1): 13,
        ("graph", "nodes", 1, "odd key"): 14,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = 1\na = 2", "AX140 x:2: "),
        ("a =", "AX140 x:1: "),
        ("a = [plan]", "AX140 x:1: Invalid value. Put texts into quotes."),
        ("a = [" + "[" * 20_000, "AX1"),
        ("a = " + "9" * 5_000, "AX144"),
    ],
)
def test_toml_that_is_too_much_or_not_toml_is_refused(text, problem):
    with pytest.raises(SpecError) as caught:
        parse_toml(text, "x")
    assert str(caught.value).startswith(problem)


def test_dates_of_toml_are_not_plain_data():
    with pytest.raises(
        SpecError,
        match=r"AX103 x:1 a: expected plain data, found a date\. Write it as text, in quotes\.",
    ):
        check_document(parse_toml("a = 2026-01-01", "x"))


# --------------------------------------------------------------------------------------------------


class Inner(BaseModel):
    n: int = 1


class Tick:
    class Config(BaseModel):
        every: float
        inner: Inner = Inner()


class Broken:
    class Config(BaseModel):
        lock: type[int]


def test_the_json_schema_holds_the_config_of_what_is_installed():
    known = Registry(Policy(), [])
    known.register("nodes", "tick", Tick)
    known.register("nodes", "broken", Broken)
    known.register("conditions", "keyword", Tick)
    schema = workflow_schema(known)
    tick = next(
        rule
        for rule in schema["$defs"]["nodes"]["allOf"]
        if rule["if"]["properties"]["type"]["const"] == "tick"
    )
    settings = tick["then"]["properties"]["config"]["properties"]
    variable = {"$ref": "#/$defs/variable"}
    assert settings["every"]["anyOf"] == [{"title": "Every", "type": "number"}, variable]
    assert settings["inner"]["anyOf"] == [{"$ref": "#/$defs/nodes.tick.Inner"}, variable]
    assert "nodes.tick.Inner" in schema["$defs"]
    references = set(_references(schema))
    assert {
        "#/$defs/nodes",
        "#/$defs/conditions",
        "#/$defs/wrappers",
        "#/$defs/processors",
    } <= references
    assert {reference.removeprefix("#/$defs/") for reference in references} <= set(schema["$defs"])
    json.dumps(schema)


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for item in value.values() for found in _references(item)]
    return (
        [found for item in value for found in _references(item)] if isinstance(value, list) else []
    )


# -------------------------------------------------------------------------------------------------


def error_of(text):
    with pytest.raises(SpecError) as caught:
        spec_from_document(
            parse_json(text, "flow.json"),
            LoadOptions(environment={}, registry=_registry_of_settings()),
        )
    return [str(problem) for problem in caught.value.problems]


def _registry_of_settings():
    class Counts:
        def __init__(self, n):
            self.n = n

        def run(self):
            return {}

    known = Registry(Policy(), entry_points=[])
    known.register("nodes", "counts", Counts)
    known.register(
        "shorthands",
        "condition",
        lambda said: ComponentRef(type="expression", config={"expression": said["condition"]}),
    )
    return known


def test_a_problem_of_the_graph_does_not_hide_those_of_settings():
    nodes = (
        '{"id": "a", "type": "counts", "config": {"m": 1}}, {"id": "b", "type": "counts", '
        '"config": {"n": "${NO}"}}'
    )
    problems = error_of(
        '{"graph": {"nodes": ['
        + nodes
        + '], "edges": [{"from": "a", "to": "b"}], "start": "a", "cycle_limits": {"q": {}}}}'
    )
    assert [problem[:5] for problem in problems] == ["AX146", "AX105", "AX130", "AX132"]


def test_a_condition_that_is_a_statement_gets_a_hint_how_to_write_it():
    nodes = '{"id": "a", "type": "counts", "config": {"n": 1}}'
    problems = error_of(
        '{"graph": {"nodes": ['
        + nodes
        + '], "edges": [{"from": "a", "to": "a", "condition": "text == 1"}], "start": "a"}}'
    )
    assert any(
        'Write {type: expression, config: {expression: "text == 1"}}.' in problem
        for problem in problems
    )


@pytest.mark.parametrize(("version", "ids"), [("1", []), ('"0.4.0"', []), ("99", ["AX175"])])
def test_a_version_that_is_not_known_is_a_warning(version: str, ids: list[str]):
    text = '{"version": %s, "graph": {"nodes": [{"id": "a", "type": "x"}], "start": "a"}}'
    spec = spec_from_document(parse_json(text % version, "flow.json"), LoadOptions(environment={}))
    assert [warning.id for warning in spec.extras.get("warnings", ())] == ids


@pytest.mark.parametrize(
    "requires",
    [
        {"--find-links=https://evil.example.org": ""},
        {"-e": ""},
        ["acme @ https://evil.example.org/x.whl"],
        {"acme": "; touch x"},
        {"acme": "$(touch x)"},
        {"acme\nRUN": ""},
        {"../acme": ""},
        {"https://evil.example.org/acme.whl": ""},
    ],
)
def test_what_a_file_requires_is_a_distribution_and_no_word_of_a_command(requires):
    text = json.dumps(
        {
            "requires": requires,
            "graph": {"nodes": [{"id": "a", "type": "passthrough"}], "start": ["a"]},
        }
    )
    with pytest.raises(SpecError, match=r"AX103.*expected a distribution and its versions"):
        spec_from_document(parse_json(text, "f.json"), LoadOptions(environment={}))


def test_what_a_file_requires_and_lacks_is_a_warning():
    text = (
        '{"requires": {"axil-nobody": "", "axil-core": ">=99.1", "pytest": ">=1"}, "graph": '
        '{"nodes": '
        '[{"id": "a", "type": "x"}], "start": "a"}}'
    )
    warnings = spec_from_document(
        parse_json(text, "flow.json"), LoadOptions(environment={})
    ).extras["warnings"]
    assert [(w.id, w.message.split(", ")[0]) for w in warnings] == [
        ("AX119", "the file requires axil-nobody"),
        ("AX119", "the file requires axil-core >=99.1"),
    ]


def test_text_that_is_not_json_names_the_column():
    with pytest.raises(SpecError, match="It is in column 10"):
        parse_json('{"a": 1,\n "b": [1 2]}', "x.json")


def test_a_missing_include_of_a_node_is_reported_at_the_nodes_line(tmp_path):
    class Part:
        def scope(self, node, setting):
            return include_spec("parts.json", setting.extras, where=f'node "{node}"')

    (tmp_path / "partz.json").write_text("{}")
    (tmp_path / "flow.json").write_text(
        '{"graph": {"start": "a",\n "nodes": [\n{"id": "a", "type": "part"}]}}'
    )
    known = Registry(Policy())
    known.register("nodes", "part", Part)
    with pytest.raises(
        SpecError, match=r'flow.json:3 nodes\[0\]: no file parts.json. Did you mean "partz.json"'
    ):
        _ = load(tmp_path / "flow.json", registry=known).plan


def test_a_wrapper_made_in_python_is_no_text_for_a_file():
    class Around:
        def wrap(self, body: Any, node: Any) -> Any:
            return body

    made = RootGraph("t")
    made.create_node("literal", name="f", content="x", wrappers=[Around()])
    made.edge_from_entry("f", {})
    made.edge_to_exit("f", {})
    with pytest.raises(SpecError, match="AX149"):
        dump_spec(made.to_spec())


def test_reading_imports_no_pydantic():
    code = (
        "import sys, axil_files.loading; assert not {'pydantic', 'importlib_metadata', "
        "'yaml'} & "
        "set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


@pytest.mark.parametrize("name", ["a\0b.json", "a\ud800b.json"])
def test_a_name_that_no_file_can_have_is_said_so(name):
    with pytest.raises(SpecError, match=r"AX100.*no file can have this name"):
        load_spec(name)
