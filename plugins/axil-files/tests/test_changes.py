"""Versions of a graph in files: what changed between two, and migrations of the state."""

from __future__ import annotations

from typing import Any

import pytest

from axil import GraphSpec, SpecError, Workflow
from axil.plugin import CompileOptions
from axil_files.changes import spec_changes
from axil_files.documents import Document
from axil_files.loading import spec_from_document


def to_paper(values: dict[str, Any]) -> dict[str, Any]:
    return values


def test_a_file_names_its_migrations_under_the_same_leave_as_code():
    data = {
        "graph": {
            "nodes": [],
            "edges": [{"from": "@entry", "to": "@exit"}],
            "state_version": 2,
            "migrations": {"1": f"{__name__}:to_paper"},
        }
    }
    spec = spec_from_document(Document(data=data, name="flow.json"))
    assert (spec.state_version, dict(spec.migrations)) == (2, {1: f"{__name__}:to_paper"})
    with pytest.raises(SpecError, match=r"AX148.*is an import path"):
        _ = Workflow(spec).plan
    assert Workflow(spec, CompileOptions(allow_code=True)).plan.graph.spec.migrations == {
        1: to_paper
    }
    with pytest.raises(SpecError, match="AX527"):
        spec_from_document(
            Document(
                data={"graph": {**data["graph"], "migrations": {"first": "a:b"}}}, name="flow.json"
            )
        )


def test_what_changed_between_two_graphs_is_said_line_by_line():
    def spec(**more: Any) -> GraphSpec:
        nodes = more.pop(
            "nodes",
            [
                {"id": "a", "type": "literal", "config": {"content": "x", "role": "user"}},
                {"id": "b", "type": "human"},
            ],
        )
        edges = more.pop("edges", [{"from": "a", "to": "b"}])
        return spec_from_document(
            Document(
                data={
                    "graph": {"nodes": nodes, "edges": edges, "start": ["a"], "end": ["a"], **more}
                },
                name="flow.json",
            )
        )

    nodes = [
        {"id": "a", "type": "literal", "config": {"content": "y", "role": "user"}, "lane": "l"},
        {"id": "c", "type": "human"},
    ]
    now = spec(
        nodes=nodes,
        edges=[{"from": "a", "to": "c"}],
        state_version=2,
        state={"n": {"type": "int"}},
        limits={"firings": 3},
    )
    assert spec_changes(spec(), spec()) == []
    assert spec_changes(spec(), now) == [
        "node a: config.content changed",
        "node a: lane changed",
        "node b is gone",
        "node c is new",
        "edge a->b is gone",
        "edge b->@exit is gone",
        "edge a->c is new",
        "edge c->@exit is new",
        "state: n is new",
        "state: messages is new",
        "end changed",
        "limits changed",
        "state_version changed",
    ]
    asked = spec(edges=[{"from": "a", "to": "b", "condition": "false"}])
    assert spec_changes(spec(), asked) == ["edge a->b: its condition changed"]
