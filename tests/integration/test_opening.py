"""Commands that open workflows: each opens them in the same way, with the same options."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.house import programs

OPENING = (
    ["run"],
    ["check"],
    ["show"],
    ["batch"],
    ["eval", "run"],
    ["tune"],
    ["serve"],
    ["worker"],
    ["submit"],
    ["lock"],
    ["build"],
    ["plugins", "why"],
    ["plugins", "freeze"],
    ["mcp", "serve"],
    ["runs", "resume"],
    ["runs", "answer"],
    ["runs", "fork"],
    ["runs", "show"],
)
OPTIONS = ("--set", "--allow", "--allow-code", "--functions", "--model-script")
FLOW = """
graph:
  id: loud
  nodes:
    - {id: say, type: passthrough}
    - {id: end, type: passthrough}
  edges:
    - {from: say, to: end, process: {type: shout}}
  start: [say]
  end: [end]
"""
SHOUT = '''
def shout(text: str) -> str:
    """Return the text in capitals."""
    return text.upper()
'''


def axil(folder: Path, *words: str, code: int = 0) -> str:
    ended, out, err = programs.axil(words, folder)
    assert ended == code, out + err
    return out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/processors.py").write_text(SHOUT, "utf-8")
    (tmp_path / "flow.yaml").write_text(FLOW, "utf-8")
    return tmp_path


@pytest.mark.parametrize("words", OPENING, ids=" ".join)
def test_a_command_that_opens_workflows_has_the_options_that_all_have(words, tmp_path):
    text = axil(tmp_path, *words, "--help")
    assert [option for option in OPTIONS if f"{option} " not in text] == []
    first = re.search(r"positional arguments:\n +(\S+)", text)
    assert first is not None
    assert first[1] in ("WORKFLOW", "RUN")


def test_functions_of_ones_own_are_known_to_every_command(folder):
    own = ("--functions", "own", "--allow", "code")
    assert axil(folder, "run", "flow.yaml", "--input", "hello", *own).strip() == "HELLO"
    assert "AX301" in axil(folder, "check", "flow.yaml", code=2)
    axil(folder, "check", "flow.yaml", *own)
    assert "say" in axil(folder, "show", "flow.yaml", *own)
    (folder / "rows.csv").write_text("text\nhello\nthere\n", "utf-8")
    axil(folder, "batch", "flow.yaml", "rows.csv", *own)
    assert (folder / "rows.results.csv").read_text("utf-8").count("HELLO") == 1
    cases = '{"inputs": "hello", "expected": "HELLO"}\n'
    (folder / "cases.jsonl").write_text(cases, "utf-8")
    scored = axil(
        folder, "eval", "run", "flow.yaml", "cases.jsonl", "--scorer", "exact", *own,
        "--format", "json",
    )  # fmt: skip
    assert json.loads(scored)
    axil(folder, "lock", "flow.yaml", *own)
    axil(folder, "plugins", "why", "flow.yaml", *own)
    assert "axil-control" in axil(folder, "plugins", "freeze", "flow.yaml", *own)
    built = axil(folder, "build", "flow.yaml", *own, "--until", "plan", "--format", "json")
    assert json.loads(built)["plan"]["functions"] == "own"


def test_a_run_that_is_submitted_is_executed_with_the_functions_that_it_was_submitted_with(folder):
    own = ("--functions", "own", "--allow", "code")
    place = ("--queue", "mail", "--key", "acme", "--deadline", "600")
    run_id = axil(folder, "submit", "flow.yaml", "--input", "hello", *own, *place).strip()
    (folder / "queues.toml").write_text("[mail]\nconcurrency = 1\n", "utf-8")
    # the worker is given leave for code, and finds the folder in the record
    axil(folder, "worker", "--drain", "--allow", "code", "--queues", "queues.toml")
    shown = json.loads(axil(folder, "runs", "show", run_id, "--json"))
    assert shown["run"]["status"] == "done"
    record = axil(folder, "runs", "export", run_id)
    assert "HELLO" in record
    kept = json.loads(record.splitlines()[0])["data"]["place"]
    assert (kept["queue"], kept["key"]) == ("mail", "acme")


def test_a_fork_and_a_migrated_run_keep_the_functions_of_their_run(folder):
    own = ("--functions", "own", "--allow", "code")
    axil(folder, "run", "flow.yaml", "--input", "hello", "--run-id", "first", *own)
    axil(folder, "runs", "fork", "first", "--as", "second", "--input", "bye", "--allow", "code")
    resumed = ("runs", "resume", "second", "--migrate", "--allow", "code")
    assert axil(folder, *resumed).strip() == "BYE"
    first, second = (
        json.loads(axil(folder, "runs", "export", run).splitlines()[0])["data"]["origin"]
        for run in ("first", "second")
    )
    assert second["functions"] == first["functions"] == str((folder / "own").resolve())


def test_functions_are_code_that_needs_leave_in_every_command(folder):
    for words in (["run", "flow.yaml"], ["submit", "flow.yaml"], ["lock", "flow.yaml"]):
        code, out, err = programs.axil([*words, "--functions", "own"], folder)
        assert code == 2
        assert "Add --allow code, if you trust them." in out + err
    said = axil(folder, "run", "flow.yaml", "--functions", "own", "--format", "json", code=2)
    assert "AX700" in json.dumps(json.loads(said))
