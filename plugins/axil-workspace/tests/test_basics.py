"""Laws of time and people, of the README, and of the tools in an agent."""

from __future__ import annotations

import asyncio
import datetime
import importlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from axil import RootGraph
from axil_agent import Agent, Scripted
from axil_models import tool_of
from axil_workspace.basics import Basics
from axil_workspace.code import Code
from axil_workspace.files import Files

HOME = Path(__file__).parents[1]
README = (HOME / "README.md").read_text("utf-8")
OWN = README.partition("## Tools of DevAll files")[0]
TOOLS = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"][
    "axil.tools"
]


def loaded(value: str) -> Any:
    module, _, name = value.partition(":")
    return getattr(importlib.import_module(module), name)


def test_time_passes_by_the_runs_clock(use, firing):
    assert use(Basics, "sleep", seconds=5) == "Waited 5 seconds."
    assert use(Basics(Basics.Config(sleep_seconds=1)), "sleep", seconds=500) == "Waited 1 seconds."
    assert firing.slept == [5, 1]
    reported = json.loads(use(Basics, "current_time"))
    assert reported["seconds_since_start"] == 6
    assert datetime.datetime.fromisoformat(reported["now"]).tzinfo is not None


def test_a_person_is_asked_through_the_run(use, firing):
    firing.answers = ["blue"]
    assert use(Basics, "ask_user", instruction="Which colour?") == "blue"


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_component_gives_its_tools_and_is_in_the_readme(name):
    kind = loaded(TOOLS[name])
    assert kind.Config.model_config["extra"] == "forbid"
    assert [key for key, info in kind.Config.model_fields.items() if not info.description] == []
    tools = [tool_of(each) for each in asyncio.run(kind().tools())]
    if len(tools) == 1:
        assert tools[0].name == name
    for tool in tools:
        assert f"`{tool.name}`" in README
        described = re.search(rf"^\| `{tool.name}` \|([^|]*)\|", OWN, re.MULTILINE)
        assert described, f"no row for {tool.name}"
        assert set(re.findall(r"`(\w+)`", described[1])) == set(tool.parameters["properties"])
    for key in kind.Config.model_fields:
        assert re.search(rf"^\| `{key}` \|", README, re.MULTILINE), key


def test_the_examples_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL))
    (tmp_path / "workspace_readme.py").write_text(program, "utf-8")
    importlib.import_module("workspace_readme")


def test_an_agent_writes_a_program_runs_it_and_learns_what_went_wrong(tmp_path):
    model = Scripted(
        [
            {
                "tool_calls": [
                    {
                        "name": "write_file",
                        "arguments": {"path": "../main.py", "content": "print(6 * 7)"},
                    }
                ]
            },
            {
                "tool_calls": [
                    {
                        "name": "write_file",
                        "arguments": {"path": "main.py", "content": "print(6 * 7)"},
                    }
                ]
            },
            {"tool_calls": [{"name": "run_code", "arguments": {"code": "import main"}}]},
            '{"answer": "42"}',
        ]
    )
    graph = RootGraph("g")
    node = graph.create_node(Agent, name="w", model=model, tools=[Files(), Code()])
    graph.edge_from_entry(node)
    graph.edge_to_exit(node, ["answer"])
    output, _ = graph.build().invoke({"message": "x"}, workspace=tmp_path / "run", allow={"code"})
    said = [m["content"] for m in model.requests[-1].messages if m["role"] == "tool"]
    assert said[0].startswith('Error: PathRefused: AX870 the path "../main.py" contains')
    assert json.loads(said[2]) == {"exit_code": 0, "stdout": "42\n"}
    assert output == {"answer": "42"}
    assert [each.name for each in tmp_path.iterdir()] == ["run"]
