"""Laws of ``subgraph``."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from pydantic import ValidationError

from axil import SpecError
from axil_control.subgraph import Subgraph
from axil_files import load


def inner(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    ids = [node["id"] for node in nodes]
    return {
        "nodes": list(nodes),
        "edges": [{"from": a, "to": b} for a, b in pairwise(ids)],
        "start": ids[:1],
        **more,
    }


def literal(id: str, content: str) -> dict[str, Any]:
    return {"id": id, "type": "literal", "config": {"content": content}}


def passing(id: str) -> dict[str, Any]:
    return {"id": id, "type": "passthrough", "config": {"only_last_message": False}}


def around(config: dict[str, Any]) -> dict[str, Any]:
    return inner(literal("A", "a"), {"id": "S", "type": "subgraph", "config": config}, passing("Z"))


def test_all_messages_enter_and_those_of_the_inner_end_come_out(run, texts, watch):
    config = {"type": "config", "config": inner(passing("P"), passing("Q"))}
    graph = around(config)
    graph["edges"].append({"from": "A", "to": "Z"})
    assert texts(run(graph, watch=watch).messages) == ["a", "a"]
    assert watch.fired == ["A", "S", "S/P", "S/Q", "Z"]


def test_what_came_keeps_its_source(run):
    ask = {"type": "config", "config": inner({"id": "H", "type": "human", "config": {}})}
    assert run(around(ask)).questions[0].text == "a"


def test_a_subgraph_starts_afresh_at_each_firing(run, watch):
    counter = {"id": "K", "type": "loop_counter", "config": {"max_iterations": 2}}
    graph = {
        "nodes": [
            {"id": "S", "type": "subgraph", "config": {"type": "config", "config": inner(counter)}},
            literal("L", "l"),
            {"id": "E", "type": "loop_counter", "config": {"max_iterations": 3}},
            passing("Z"),
        ],
        "edges": [
            {"from": "L", "to": "S"},
            {"from": "L", "to": "L"},
            {"from": "L", "to": "E"},
            {"from": "E", "to": "L"},
            {"from": "E", "to": "Z"},
            {"from": "S", "to": "L"},
        ],
        "start": ["L"],
        "end": ["Z"],
    }
    assert run(graph, watch=watch).output == "Loop limit reached (3)"
    assert watch.fired.count("S/K") >= 2


def test_a_subgraph_may_be_a_file_beside_the_one_that_mentions_it(run, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "one.json").write_text(
        json.dumps({"graph": inner(literal("X", "from the file"))})
    )
    assert (
        run(around({"type": "file", "config": {"path": "sub/one.json"}}), folder=tmp_path).output
        == "from the file"
    )


@pytest.mark.parametrize("path", ["../outside.json", "link.json", "/etc/hostname.json"])
def test_a_file_outside_the_folder_is_refused(run, tmp_path, path):
    folder = tmp_path / "flows"
    folder.mkdir()
    (tmp_path / "outside.json").write_text(json.dumps({"graph": inner(literal("X", "x"))}))
    (folder / "link.json").symlink_to(tmp_path / "outside.json")
    with pytest.raises(SpecError, match="outside"):
        run(around({"type": "file", "config": {"path": path}}), folder=folder)


@pytest.mark.parametrize(
    "config",
    [
        {"type": "file", "config": {}},
        {"type": "file", "config": {"path": "a.yaml", "more": 1}},
        {"type": "config", "config": {"path": "a.yaml"}},
        {"type": "url", "config": {}},
        {"type": "file"},
    ],
)
def test_a_config_that_is_no_graph_is_refused(config):
    with pytest.raises(ValidationError):
        Subgraph.Config(**config)


def test_an_included_file_sees_the_environment_that_was_given_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_X", "of the process")
    literal = {"id": "a", "type": "literal", "config": {"content": "${SECRET_X}"}}
    (tmp_path / "inner.json").write_text(json.dumps({"graph": {"start": "a", "nodes": [literal]}}))
    outer = {
        "id": "sub",
        "type": "subgraph",
        "config": {"type": "file", "config": {"path": "inner.json"}},
    }
    path = tmp_path / "outer.json"
    path.write_text(json.dumps({"graph": {"start": "sub", "nodes": [outer]}}))
    assert load(path, environment={"SECRET_X": "given"}).invoke("x")[0] == "given"
    with pytest.raises(SpecError, match="AX146"):
        load(path, environment={}).invoke("x")
