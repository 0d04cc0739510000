"""Faults that an editor finds in workflow files by the JSON Schema: none in the examples, and those
that were planted.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from axil_files import workflow_schema

ROOT = Path(__file__).parents[2]
FILES = [*ROOT.glob("examples/*.yaml"), *ROOT.glob("examples/teams/*.yaml")]
NODE = {"id": "n", "type": "loop_counter", "config": {"max_iterations": 3}}


@cache
def validator() -> Any:
    schema = workflow_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_an_editor_finds_no_fault_in_the_examples():
    found = {
        file.name: [each.message for each in validator().iter_errors(document)]
        for file in FILES
        if "graph" in (document := yaml.safe_load(file.read_text("utf-8")))
    }
    assert len(found) > 20
    assert {name: faults for name, faults in found.items() if faults} == {}


@pytest.mark.parametrize(
    "change",
    [
        {"typ": "agent"},
        {"config": {"max_iterations": "three"}},
        {"config": {"max_iteration": 3}},
    ],
)
def test_an_editor_marks_an_unknown_key_and_a_wrong_value(change: dict[str, Any]):
    graph = {"start": ["n"], "end": ["n"], "nodes": [{**NODE, **change}], "edges": []}
    assert not validator().is_valid({"version": 1, "graph": graph})
    graph["nodes"] = [NODE]
    assert validator().is_valid({"version": 1, "graph": graph})
