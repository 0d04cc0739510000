"""Runs that are begun with a script of models: resumed, they ask no model, either."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.house import programs

PAID = "http://127.0.0.1:9/v1"  # nothing listens there: a call fails
FLOW = f"""
graph:
  id: letter
  nodes:
    - id: draft
      type: agent
      config: &asked
        model: {{type: openai, name: paid, api_key: none, base_url: "{PAID}"}}
        instructions: Write.
    - {{id: ask, type: human}}
    - {{id: send, type: agent, config: *asked}}
  edges: [{{from: draft, to: ask}}, {{from: ask, to: send}}]
  start: [draft]
  end: [send]
"""
SCRIPT = {"rules": [{"replies": ["first", "second"]}]}


def axil(folder: Path, *words: str, code: int = 0) -> str:
    ended, out, err = programs.axil(words, folder)
    assert ended == code, out + err
    return out + err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flow.yaml").write_text(FLOW, "utf-8")
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT), "utf-8")
    return tmp_path


def paused(folder: Path, *words: str) -> None:
    """Begin a run with the script, and take the script away."""
    given = ("--input", "hello", "--run-id", "r", "--model-script", "script.json", *words)
    axil(folder, "run", "flow.yaml", *given, code=3)
    (folder / "script.json").unlink()


def test_a_scripted_run_is_answered_from_its_script(folder):
    paused(folder)
    assert "second" in axil(folder, "runs", "answer", "r", "yes")


def test_another_script_replaces_that_of_a_run(folder):
    paused(folder)
    other = {"default": "other"}
    (folder / "other.json").write_text(json.dumps(other), "utf-8")
    answered = axil(folder, "runs", "answer", "r", "yes", "--model-script", "other.json")
    assert "other" in answered


def test_a_fork_of_a_scripted_run_is_scripted(folder):
    paused(folder)
    axil(folder, "runs", "fork", "r", "--as", "s")
    axil(folder, "runs", "resume", "s", code=3)
    assert "second" in axil(folder, "runs", "answer", "s", "yes")


def test_a_scripted_run_that_is_run_again_by_its_id_is_scripted(folder):
    paused(folder)
    (folder / "answers").write_text("yes\n", "utf-8")
    again = ("--run-id", "r", "--input", "hello", "--answers", "answers")
    assert "second" in axil(folder, "run", "flow.yaml", *again)


@pytest.mark.parametrize("named", [(), ("flow.yaml",)], ids=["kept", "named"])
def test_a_worker_executes_a_scripted_run_from_its_script(folder, named):
    axil(
        folder, "submit", "flow.yaml", "--input", "a", "--run-id", "r",
        "--model-script", "script.json",
    )  # fmt: skip
    (folder / "script.json").unlink()
    axil(folder, "worker", *named, "--drain")
    assert "first" in axil(folder, "runs", "show", "r", "--steps")
    assert "second" in axil(folder, "runs", "answer", "r", "yes")


def test_a_row_of_a_scripted_batch_continues_from_its_script(folder):
    (folder / "rows.csv").write_text("message\nhello\n", "utf-8")
    batch = ("batch", "flow.yaml", "rows.csv", "--name", "b")
    axil(folder, *batch, "--model-script", "script.json", code=1)
    (folder / "script.json").unlink()
    assert "127.0.0.1" not in axil(folder, *batch, code=1)
    assert "second" in axil(folder, "runs", "answer", "b-1", "yes")


def test_a_recording_that_is_gone_is_missed_before_a_model_is_asked(folder):
    script = ("--model-script", "script.json", "--input", "hello", "--journal", "off")
    axil(folder, "run", "flow.yaml", *script, code=3)
    (folder / "empty.jsonl").write_text("", "utf-8")
    begun = ("--input", "hello", "--run-id", "r", "--replay", "empty.jsonl")
    axil(folder, "run", "flow.yaml", *begun, code=1)
    (folder / "empty.jsonl").unlink()
    refused = axil(folder, "runs", "resume", "r", code=2)
    assert "empty.jsonl" in refused
    assert "127.0.0.1:9" not in refused
