"""The fixtures for agents and workflows, as a project that has only axil-testing and axil-agent
uses them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from axil import ConfigError
from axil_testing import agents

FLOW = {
    "graph": {
        "start": ["plan"],
        "nodes": [
            {
                "id": "plan",
                "type": "agent",
                "config": {"model": {"type": "counting", "name": "m"}, "instructions": "You plan."},
            },
            {
                "id": "write",
                "type": "agent",
                "config": {
                    "model": {"type": "counting", "name": "m"},
                    "instructions": "You write.",
                },
            },
        ],
        "edges": [{"from": "plan", "to": "write"}],
    }
}
CONFTEST = '''
import pytest
from axil.plugin import default_registry
from axil_models import Reply

pytest_plugins = ["axil_testing.fixtures"]


class Counting:
    """A real model: it costs, and never says the same."""

    count = 0

    def __init__(self, name):
        self.name = name

    async def reply(self, request, emit):
        Counting.count += 1
        return Reply(text=f"answer {Counting.count} of {self.name}")


default_registry().register("models", "counting", Counting)
'''


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project; calling it runs its tests and gives what pytest counted, and what it printed."""
    monkeypatch.delenv("AXIL_RECORD", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # plugins of others start slowly
    (tmp_path / "flow.json").write_text(json.dumps(FLOW))
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n"
    )

    def run(*arguments: str, **environment: str) -> tuple[dict[str, int], str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        counted = {
            word.rstrip("s"): int(n)
            for n, word in re.findall(
                r"(\d+) (passed|failed|errors?)", done.stdout.splitlines()[-1]
            )
        }
        return counted, done.stdout

    run.path = tmp_path  # type: ignore[attr-defined]
    return run


def test_a_script_answers_every_agent_and_what_fired_is_known(project):
    (project.path / "replies.json").write_text(
        json.dumps(
            {
                "rules": [{"match": {"system_contains": "plan"}, "replies": ["a plan"]}],
                "default": "?",
            }
        )
    )
    (project.path / "test_it.py").write_text("""
import pytest

def test_replies(model_script, workflow):
    script = model_script(["a plan", "a text"])
    result = workflow("flow.json", "axils")
    assert (result.status, result.output) == ("done", "a text")
    assert workflow.recorder.order() == ["plan", "write"]
    assert script.requests[0].messages[-1]["content"] == "axils"

def test_file(model_script, workflow):
    model_script("replies.json")
    assert workflow("flow.json").output == "?"
    assert workflow.recorder["plan"].payload[0]["content"] == "a plan"

def test_rules(model_script, workflow):
    rule = {"match": {"model": "m", "user_contains": "x"}, "replies": [{"status": 500}]}
    model_script({"rules": [rule]}, default="fine")
    assert workflow("flow.json", "y").output == "fine"
    with pytest.raises(Exception, match="AX660"):
        workflow("flow.json", "x")

def test_the_real_one(workflow):
    assert workflow("flow.json").output.startswith("answer ")
""")
    counted, reported = project()
    assert counted == {"passed": 4}, reported


TALES = """
import pytest

def test_a(cassette, workflow):
    assert workflow("flow.json", "axils").output.endswith("of m")

@pytest.mark.cassette("tapes/one.jsonl")
def test_b(cassette, workflow):
    assert cassette.path.name == "one.jsonl"
    assert workflow("flow.json", "stems").output.endswith("of m")
"""


def test_a_cassette_is_recorded_once_and_replayed_strictly(project):
    file: Path = project.path / "test_it.py"
    file.write_text(TALES)
    missing, reported = project()
    assert missing == {"error": 2}
    assert "AX663" in reported
    assert project("--axil-record=once")[0] == {"passed": 2}
    tapes = [project.path / "cassettes/test_it/test_a.jsonl", project.path / "tapes/one.jsonl"]
    before = tapes[1].read_text()
    assert project()[0] == {"passed": 2}
    file.write_text(TALES.replace('"axils"', '"axes"'))
    changed, reported = project()
    assert changed == {"failed": 1, "passed": 1}
    assert '-   "content": "axils"' in reported
    assert '+   "content": "axes"' in reported
    assert project("--axil-record")[0] == {"passed": 2}
    assert "axes" in tapes[0].read_text()
    assert "axils" not in tapes[0].read_text()
    assert tapes[1].read_text() != before
    file.write_text("def test_a(cassette):\n    assert cassette.is_recording\n")
    before = tapes[0].read_text()
    assert project("--axil-record")[0] == {"passed": 1}
    assert tapes[0].read_text() == before, "a recording in which nothing was asked replaces nothing"
    assert not list(project.path.rglob("*.new"))


@pytest.mark.parametrize(
    ("flag", "environment", "mode"),
    [(None, None, "none"), (None, "once", "once"), ("none", "all", "none"), ("all", "once", "all")],
)
def test_a_flag_says_how_to_record_louder_than_the_environment(
    pytestconfig, monkeypatch, flag, environment, mode
):
    monkeypatch.delenv("AXIL_RECORD", raising=False)
    if environment is not None:
        monkeypatch.setenv("AXIL_RECORD", environment)
    monkeypatch.setattr(pytestconfig.option, "axil_record", flag, raising=False)
    assert agents._mode(pytestconfig) == mode


def test_the_environment_has_to_mean_something(pytestconfig, monkeypatch):
    monkeypatch.setattr(pytestconfig.option, "axil_record", None, raising=False)
    monkeypatch.setenv("AXIL_RECORD", "sometimes")
    with pytest.raises(ConfigError, match=r'AX712 .*found "sometimes"'):
        agents._mode(pytestconfig)


def test_a_runner_answers_questions_reads_variables_and_runs_graphs(workflow, tmp_path):
    from axil import Question, RootGraph

    async def ask(inputs, ctx):
        return {"answer": await ctx.ask(Question(text="really?"))}

    graph = RootGraph("g")
    graph.edge_from_entry(graph.create_node(ask, name="ask"), {})
    graph.edge_to_exit("ask", ["answer"])
    graph.build()
    assert workflow(graph, answers=["yes"]).output == {"answer": "yes"}
    paused = workflow(graph, answers=[])
    assert (paused.status, [question.text for question in paused.questions]) == (
        "paused",
        ["really?"],
    )
    with pytest.raises(TypeError, match="only files"):
        workflow(graph, vars={"A": 1})
    workflow.folder = tmp_path
    (tmp_path / "flow.json").write_text(
        json.dumps(
            {
                "vars": {"N": "a"},
                "graph": {
                    "payload": "fields",
                    "nodes": [],
                    "edges": [{"from": "@entry", "to": "@exit", "keys": ["${N}"]}],
                },
            }
        )
    )
    assert workflow("flow.json", {"a": 1, "b": 2}).output == {"a": 1}
    assert workflow("flow.json", {"a": 1, "b": 2}, vars={"N": "b"}).output == {"b": 2}
