"""Dependencies of a workflow: found without an import, in inner graphs and in settings, with
defaults; written into the file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from axil.plugin import install_advice

AGENT = """
# a comment
version: "1.0"
vars: {topic: axils}
graph:
  id: talk  # another one
  nodes:
    - id: A
      type: agent
      config:
        provider: openai
        name: "${MODEL}"
        prompt_template: "about {message}"
        retrievers: [{type: acme.notes, config: {n: 1}}]
    - id: B
      type: switch
      config:
        routes: {C: {type: keyword, config: {any: [x]}}, D: "true"}
    - id: C
      type: map
      config: {body: {nodes: [{id: i, type: python}], edges: [], start: [i]}}
    - id: D
      type: subgraph
      config: {type: file, config: {path: inner.json}}
  edges:
    - {from: A, to: B}
    - {from: B, to: C}
    - {from: B, to: D, condition: {type: function, config: {name: code_pass}}}
  start: [A]
  end: [C]
"""
INNER = '{"graph": {"nodes": [{"id": "x", "type": "loop_timr"}], "edges": [], "start": ["x"]}}'


@pytest.fixture
def talk(flow):
    flow(INNER, "inner.json")
    return flow(AGENT)


def uses(done):
    return {
        (use["kind"], use["name"]): (each["distribution"], use)
        for each in done.data["distributions"]
        for use in each["uses"]
    }


def test_everything_that_a_workflow_names_is_found(axil, talk):
    done = axil("plugins", "why", talk, "--format", "json")
    found = uses(done)
    expected = {
        ("nodes", "agent"): "axil-agent",
        ("models", "openai"): "axil-openai",
        ("formatters", "paragraph"): "axil-models",
        ("formatters", "json"): "axil-models",
        ("context", "acme.notes"): "",
        ("conditions", "keyword"): "axil-control",
        ("conditions", "code_pass"): "axil-control",
        ("nodes", "python"): "axil-control",
        ("nodes", "loop_timr"): "",
        ("loaders", "yaml"): "axil-files",
    }
    assert {key: found[key][0] for key in expected} == expected
    assert found["formatters", "json"][1]["default"]
    assert "flow.yaml" in found["nodes", "python"][1]["where"]
    assert "inner.json" in found["nodes", "loop_timr"][1]["where"]
    assert done.code == 2
    assert not done.data["fine"]
    assert any(name.startswith("openai:") for name in done.data["models"])
    assert any(file.endswith("inner.json") for file in done.data["files"])


def test_the_answer_says_what_to_install(axil, talk):
    reported = axil("plugins", "why", talk).out
    assert (
        f"axil-openai  not installed: {install_advice('axil-openai')}" in reported
        or "axil-openai  0." in reported
    )
    assert 'Did you mean "loop_timer"' in reported
    assert "no known distribution provides it" in reported


def test_nothing_but_the_loader_is_imported(world, axil, flow):
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:T"}, plugin={"acme-a": "acme_a"})
    world.package(
        "acme_a",
        manifest={
            "manifest": 1,
            "distribution": "acme-a",
            "components": [{"kind": "nodes", "name": "acme.tick"}],
        },
    )
    file = flow(
        '{"graph": {"nodes": [{"id": "a", "type": "acme.tick"}], "edges": [], "start": ["a"]}}',
        "flow.json",
    )
    done = axil("plugins", "why", file, "--format", "json")
    assert (done.code, [each["distribution"] for each in done.data["distributions"]]) == (
        0,
        ["acme-a", "axil-files"],
    )
    assert "acme_a" not in sys.modules


def test_settings_that_cannot_be_looked_into_are_reported(world, axil, flow):
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:T"})
    file = flow(
        '{"graph": {"nodes": [{"id": "a", "type": "acme.tick"}], "edges": [], "start": ["a"]}}',
        "flow.json",
    )
    assert "the settings of nodes:acme.tick are not looked into" in axil("plugins", "why", file).err


def test_requirements_are_written_and_nothing_else_changes(axil, flow):
    text = (
        "# top\nversion: '1.0'\n\ngraph:  # the graph\n  nodes: [{id: a, type: "
        "passthrough}]\n  "
        "edges: []\n  start: [a]\n"
    )
    file = flow(text)
    plain = axil("plugins", "freeze", file)
    assert sorted(plain.out.split()) == sorted(
        f"{name}>=0.1.0" for name in ("axil-control", "axil-files")
    )
    assert Path(file).read_text() == text
    assert axil("plugins", "freeze", file, "--write").code == 0
    expected = text.replace(
        "graph:  #", 'requires:\n  axil-control: ">=0.1.0"\n  axil-files: ">=0.1.0"\ngraph:  #'
    )
    assert Path(file).read_text() == expected
    assert axil("plugins", "freeze", file, "--write").code == 0
    assert Path(file).read_text() == expected
    Path(file).write_bytes(text.replace("\n", "\r\n").encode())
    assert axil("plugins", "freeze", file, "--write").code == 0
    assert Path(file).read_bytes() == expected.replace("\n", "\r\n").encode()


def test_requirements_that_are_there_are_kept_and_stale_ones_leave(axil, flow):
    graph = "graph:\n  nodes: [{id: a, type: passthrough}]\n  edges: []\n  start: [a]\n"
    text = f"{graph}requires:\n  axil-control: '>=0.0.1'\n  gone: '>=1'\n\n# the end\nvars: {{}}\n"
    file = flow(text)
    axil("plugins", "freeze", file, "--write")
    written = Path(file).read_text()
    assert (
        'requires:\n  axil-control: ">=0.0.1"\n  axil-files: ">=0.1.0"\n\n# the end\nvars: {}\n'
        in written
    )
    assert "gone" not in written


@pytest.mark.parametrize("name", ["flow.json", "flow.toml"])
def test_other_formats_are_written_too(axil, flow, name):
    data = {
        "version": "1.0",
        "graph": {"nodes": [{"id": "a", "type": "passthrough"}], "edges": [], "start": ["a"]},
    }
    toml = (
        'version = "1.0"\n# c\n[graph]\nedges = []\nstart = ["a"]\n[[graph.nodes]]\nid = '
        '"a"\ntype = "passthrough"\n'
    )
    file = flow(json.dumps(data, indent=4) if name.endswith("json") else toml, name)
    requires = {"axil-control": ">=0.1.0", "axil-files": ">=0.1.0"}
    for _ in range(2):
        assert (
            axil("plugins", "freeze", file, "--write", "--format", "json").data["requires"]
            == requires
        )
    text = Path(file).read_text()
    assert text.count("axil-control") == 1
    if name.endswith("toml"):
        assert "# c" in text
    else:
        assert json.loads(text) == {**data, "requires": requires}


def test_a_file_that_needs_a_missing_component_is_not_frozen(axil, talk):
    before = Path(talk).read_text()
    done = axil("plugins", "freeze", talk, "--write")
    assert done.code == 2
    assert Path(talk).read_text() == before


def test_the_kernel_is_no_requirement(axil, flow):
    file = flow(
        '{"graph": {"nodes": [{"id": "a", "type": "custom"}], "edges": [], "start": ["a"]}}',
        "flow.json",
    )
    assert axil("plugins", "freeze", file).out == "axil-files>=0.1.0\n"
