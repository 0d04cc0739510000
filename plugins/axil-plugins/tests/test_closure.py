"""Laws of closures: what a workflow's distributions require, their extras included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from axil.plugin import Registry
from axil_files import dependencies_of
from axil_plugins.closure import closure


@pytest.mark.parametrize(("guard", "needs"), [("pii", False), ("schema", True)])
def test_a_component_that_needs_an_extra_brings_what_the_extra_requires(
    tmp_path: Path, guard: str, needs: bool
):
    given = {"type": guard, **({"schema": {}} if guard == "schema" else {})}
    wrapper = {"type": "guard", "config": {"output": [given]}}
    node = {"id": "say", "type": "passthrough", "wrappers": [wrapper]}
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"graph": {"nodes": [node], "start": ["say"], "end": ["say"]}}))
    found = dependencies_of([file], registry=Registry())
    assert f"guards:{guard}" in {f"{need.kind}:{need.name}" for need in found.found}
    whole = closure(found.distributions(), found.extras())
    assert ("axil-agent" in whole, "jsonschema" in whole) == (needs, needs)
    if needs:
        assert found.extras() == {"axil-wrappers": frozenset({"guards"})}
