"""Dependencies of workflow files: components, who provides them, and files that they read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from axil.plugin import Registry
from axil_files import dependencies_of, parse_json


def written(folder: Path, graph: dict[str, Any]) -> str:
    file = folder / "flow.json"
    file.write_text(json.dumps({"graph": {"id": "g", "edges": [], **graph}}), "utf-8")
    return str(file)


def test_a_file_needs_its_loader_its_nodes_and_the_strategies_of_its_state(tmp_path):
    state = {"notes": {"type": "list", "strategy": "append"}}
    nodes = [{"id": "a", "type": "custom"}]
    file = written(tmp_path, {"nodes": nodes, "start": ["a"], "end": ["a"], "state": state})
    found = dependencies_of([file])
    assert {(need.kind, need.name) for need in found.found} == {
        ("loaders", "json"),
        ("nodes", "custom"),
        ("reducers", "append"),
        ("reducers", "append_messages"),
    }
    assert set(found.distributions()) == {"axil-files"}
    assert [Path(file).name for file in found.files] == ["flow.json"]


def test_a_component_without_a_provider_is_reported_with_its_possible_providers(tmp_path):
    nodes = [{"id": "a", "type": "passthrough"}, {"id": "b", "type": "acme.tick"}]
    file = written(tmp_path, {"nodes": nodes, "start": ["a"], "end": ["b"]})
    seen = Registry(entry_points=())
    seen.register("loaders", "json", parse_json)
    needs = {need.name: need for need in dependencies_of([file], registry=seen).found}
    assert (needs["passthrough"].provider, needs["acme.tick"].provider) == ("axil-control", "")
    assert needs["acme.tick"].error is not None
