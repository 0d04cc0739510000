"""Laws of ``axil draft``: with a scripted model, and with a service on a socket."""

from __future__ import annotations

import io
import json
import re
import sys
from importlib.resources import files
from typing import Any

import pytest

import axil_files
from axil.plugin import default_registry
from axil_agent import Scripted
from axil_cli import DraftError, draft_of
from axil_cli.draft import files as draft_files
from axil_cli.draft.command import model_of
from axil_cli.draft.record import DraftRecord
from axil_cli.draft.vocabulary import vocabulary
from axil_cli.main import main
from axil_testing.stub import Act, Stub

DEBATE = """Here it is:
```yaml
graph:
  start: [team]
  nodes:
    - id: team
      type: debate
      config:
        members:
          pro: {type: agent, config: {model: "${MODEL}", instructions: "You are for it."}}
          con: {type: agent, config: {model: "${MODEL}", instructions: "You are against it."}}
        judge: {type: agent, config: {model: "${MODEL}", instructions: "You decide."}}
```
"""
SLIP = DEBATE.replace("judge:", "jugde:")
STRICT = DEBATE.replace("You decide.", "You decide, and are strict.")
SENTENCE = "Two argue, one judges."


@pytest.fixture
def draft(tmp_path, monkeypatch, capsys):
    """Return a function that drafts ``team.yaml``: the exit code, what was printed, the model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def drafted(*arguments: str, replies: list[Any]) -> tuple[int, Any, Scripted]:
        rules = [
            {"match": {"system_contains": "You assign roles"}, "replies": ["- a judge"]},
            {"match": {"system_contains": "You plan a graph"}, "replies": ["A debate."]},
            {"match": {"system_contains": "You write workflow files"}, "replies": replies},
        ]
        model = Scripted({"rules": rules})
        with model.everywhere():
            code = main(["draft", *arguments, "-o", "team.yaml", "--model", "scripted"])
        return code, capsys.readouterr(), model

    return drafted


def prompts(model: Scripted, who: str = "You write") -> list[str]:
    """Return what an agent was sent, call by call."""
    asked = [r.messages for r in model.requests if who in str(r.messages[0]["content"])]
    return ["\n".join(str(m["content"]) for m in messages[1:]) for messages in asked]


class Typed(io.StringIO):
    """Standard input that is a terminal."""

    def isatty(self) -> bool:
        return True


# ------------------------------------------------------------------------ what is written


def test_a_draft_is_repaired_by_its_findings_drawn_written_and_runs(draft, tmp_path, capsys):
    code, said, model = draft(SENTENCE, "--yes", replies=[SLIP, DEBATE])
    assert code == 0, said.err
    assert 'Did you mean "judge"?' in prompts(model)[1]
    assert "  22          jugde:" in prompts(model)[1]
    assert all(SENTENCE in each and "# Node types" in each for each in prompts(model))
    assert "turns: 2 × (pro, con); judge" in said.out
    file = str(tmp_path / "team.yaml")
    assert main(["check", file]) == 0
    script = tmp_path / "replies.yaml"
    script.write_text(
        'rules: [{match: {system_contains: decide}, replies: ["Con was better."]}]', "utf-8"
    )
    capsys.readouterr()
    code = main(["run", file, "--journal", "off", "--model-script", str(script), "--input", "Buy?"])
    assert (code, capsys.readouterr().out.strip()) == (0, "Con was better.")


def test_a_service_drafts_within_a_budget(draft, tmp_path, monkeypatch, capsys):
    with Stub("chat") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        server.say("- a judge", "A debate.", Act(text=DEBATE))
        model = {"type": "openai", "name": "small", "prices": {"input": 1.0, "output": 1.0}}
        command = ["draft", SENTENCE, "-o", "team.yaml", "--yes", "--model", json.dumps(model)]
        assert main([*command, "--budget", "0.5"]) == 0, capsys.readouterr().err
        assert axil_files.load("team.yaml").spec.extras["vars"]["MODEL"] == model
        assert "cost 0.0" in capsys.readouterr().err
        poor = ["--budget", "0.000001", "--replace"]
        assert main([*command, *poor]) == 4
        assert len(server.requests) == 3  # nothing was asked that it could not pay


def test_drafting_again_goes_on_from_the_file_and_what_was_said(draft, tmp_path):
    (tmp_path / "sop.md").write_text("1. Hear both.\n2. Decide.\n", "utf-8")
    draft("--from", "sop.md", "--yes", replies=[DEBATE])
    file = tmp_path / "team.yaml"
    file.write_text(file.read_text("utf-8").replace("for it", "for it, always"), "utf-8")
    code, _, model = draft("Be stricter.", "--yes", "--replace", replies=[STRICT])
    assert code == 0
    [prompt] = prompts(model)
    assert "Be stricter." in prompt
    assert "- A team that does what the text describes." in prompt
    assert "2. Decide." in prompt
    assert "You are for it, always." in prompt  # what was changed by hand
    assert "You decide, and are strict." in file.read_text("utf-8")


def test_nothing_is_replaced_without_leave(draft, tmp_path, monkeypatch):
    (tmp_path / "team.yaml").write_text("mine", "utf-8")
    code, said, model = draft(SENTENCE, "--yes", replies=[DEBATE])
    assert (code, model.requests) == (2, [])
    assert "AX995" in said.err
    monkeypatch.setattr(sys, "stdin", Typed("\nno\n"))
    code, said, _ = draft(SENTENCE, replies=[DEBATE])
    assert "Replace it?" in said.err
    assert (tmp_path / "team.yaml").read_text("utf-8") == "mine"
    assert "judge" in (tmp_path / "team.draft/last.yaml").read_text("utf-8")


def test_what_a_draft_needs_leave_for_is_mended_or_granted_and_shown(draft):
    wants = DEBATE.replace('instructions: "You decide."', "tools: [run_command]")
    code, said, model = draft(SENTENCE, "--yes", replies=[wants, DEBATE])
    assert code == 0
    assert "--allow code" in prompts(model)[1]
    code, said, _ = draft(SENTENCE, "--yes", "--replace", "--allow", "code", replies=[wants])
    assert code == 0
    assert re.search(r"with leave:\n +code +team.yaml:\d+ ", said.out)


# ------------------------------------------------------------------------ people, ends, resumption


def test_a_person_remarks_at_the_terminal_until_an_empty_line(draft, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Typed("Be stricter.\n\n"))
    code, said, model = draft(SENTENCE, replies=[DEBATE, STRICT])
    assert code == 0, said.err
    assert "Be stricter." in prompts(model)[1]
    assert "You decide." in prompts(model)[1]
    assert "strict" in (tmp_path / "team.yaml").read_text("utf-8")
    kept = json.loads((tmp_path / "team.draft/draft.json").read_text("utf-8"))
    assert kept["said"] == [SENTENCE, "Be stricter."]


def test_without_a_terminal_a_later_command_answers_and_nothing_is_asked_twice(draft, tmp_path):
    code, said, _ = draft(SENTENCE, replies=[DEBATE])
    assert (code, (tmp_path / "team.yaml").exists()) == (3, False)
    assert "turns: 2 × (pro, con); judge" in said.out
    code, _, model = draft("Be stricter.", replies=[STRICT])
    assert (code, len(model.requests)) == (3, 1)
    code, _, model = draft("--yes", replies=["unused"])
    assert (code, model.requests) == (0, [])
    assert "strict" in (tmp_path / "team.yaml").read_text("utf-8")


def test_a_failure_is_resumed_behind_what_was_answered(draft):
    code, said, _ = draft(SENTENCE, "--yes", replies=[{"status": 400, "text": "no"}])
    assert code == 1, said.err
    code, _, model = draft("--yes", replies=[DEBATE])
    assert (code, len(model.requests)) == (0, 1)


def test_rounds_are_bounded_and_the_next_drafting_goes_on(draft, tmp_path):
    code, said, model = draft(SENTENCE, "--yes", "--rounds", "2", replies=[SLIP, SLIP])
    assert (code, len(prompts(model))) == (4, 2)
    assert "does not pass after 2 drafts" in said.err
    assert not (tmp_path / "team.yaml").exists()
    code, _, model = draft("Try again.", "--yes", replies=[DEBATE])
    assert code == 0
    assert "jugde" in prompts(model)[0]


# ------------------------------------------------------------------------ parts of it


@pytest.mark.parametrize(
    "reply",
    [
        "I cannot do that.",
        "```yaml\n- a\n- b\n```",
        "graph: &a {nodes: *a}",
        "graph: !!python/object/apply:os.system ['true']",
        "graph: {nodes: 3}",
        "",
    ],
)
def test_any_reply_is_data_with_findings(reply):
    found = draft_of(reply, name="team.yaml", model="scripted", registry=default_registry())
    assert not found.is_fine
    assert found.findings
    assert "send the whole file again" in found.repair()


def test_each_fence_of_a_reply_is_looked_at_once(monkeypatch):
    """A search from each fence that opens to the end would look at them ten thousand times."""

    class Counted:
        def __init__(self, fence: Any) -> None:
            self.fence = fence

        def finditer(self, text: str) -> Any:
            for match in self.fence.finditer(text):
                looked.append(match)
                yield match

    looked: list[Any] = []
    monkeypatch.setattr(draft_files, "_FENCE", Counted(draft_files._FENCE))
    assert draft_files._source("```a\n" * 10_000) == "```a\n" * 10_000
    assert len(looked) == 10_000
    assert draft_files._source("```a\n```b\nc\n```\n```\nd\n```") == "```b\nc\n"


def test_the_file_has_the_model_of_the_user_whatever_the_reply_says():
    reply = DEBATE.replace("graph:", "version: 9\nvars: {MODEL: theirs, WORD: now}\ngraph:", 1)
    found = draft_of(reply, name="team.yaml", model="scripted", registry=default_registry())
    assert found.is_fine
    assert found.text.startswith("version: 1\nvars:\n  MODEL: scripted\n  WORD: now\ngraph:")


def test_the_example_of_the_vocabulary_passes_and_it_has_what_is_installed():
    text = vocabulary(default_registry(), ["code"])
    example = draft_of(text.split("# Node types")[0], name="letters.yaml", model="scripted",
                       registry=default_registry())  # fmt: skip
    assert example.findings == []
    assert "Granted: code." in text
    for name in ("plan_and_execute", "switch", "human", "run_command", "keyword"):
        assert f"\n- {name}: " in text
    assert "Python" not in text.split("# Tools")[0].split("# Node types")[1]


def test_the_workflow_of_drafting_is_a_file_that_passes_its_check(capsys):
    assert main(["check", str(files("axil_cli.draft").joinpath("draft.yaml"))]) == 0
    assert "at most 6 rounds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], "nothing to draft from"),
        (["--from", "none.md"], "cannot be read"),
        ([SENTENCE, "-o", "team.txt"], "no YAML file"),
        ([SENTENCE, "--model", "{"], "no JSON"),
        ([SENTENCE, "--model", "small", "--budget", "1"], "what the model costs"),
        ([SENTENCE, "--model", '{"type": "openai", "api_key": "sk-1"}'], "is a secret"),
    ],
)
def test_what_cannot_be_drafted_is_refused(tmp_path, monkeypatch, capsys, arguments, found):
    monkeypatch.chdir(tmp_path)
    assert main(["draft", "-o", "team.yaml", "--model", "scripted", *arguments]) == 2
    assert found in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_record_is_named(draft, tmp_path):
    (tmp_path / "team.draft").mkdir()
    (tmp_path / "team.draft/draft.json").write_text('{"version": 1, "sad": []}', "utf-8")
    code, said, _ = draft(SENTENCE, "--yes", replies=[DEBATE])
    assert code == 2
    assert "AX996" in said.err


def test_a_model_is_an_adapter_a_name_or_json():
    assert model_of('{"type": "openai", "api_key": "${KEY}"}', []) == {
        "type": "openai",
        "api_key": "${KEY}",
    }
    with pytest.raises(DraftError):
        model_of('{"secret": "s"}', [])


def _checking(tmp_path, allow: list[str]) -> str:
    """Return the path of a file that checks a draft whose node is a program of this machine."""
    draft = json.dumps(
        {
            "graph": {
                "start": ["n"],
                "nodes": [
                    {
                        "id": "n",
                        "type": "subprocess:Popen",
                        "config": {"args": ["touch", str(tmp_path / "started")]},
                    }
                ],
            }
        }
    )
    graph = {
        "start": ["draft"],
        "nodes": [
            {"id": "draft", "type": "literal", "config": {"content": draft}},
            {"id": "check", "type": "draft_check", "config": {"allow": allow}},
        ],
        "edges": [{"from": "draft", "to": "check"}],
    }
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"version": 1, "graph": graph}), "utf-8")
    return str(file)


def test_a_file_may_not_grant_its_drafts_what_it_was_not_granted(tmp_path, capsys):
    file = _checking(tmp_path, ["code"])
    assert main(["run", file, "--input", "x", "--journal", "off"]) != 0
    assert not (tmp_path / "started").exists()
    assert "--allow code" in capsys.readouterr().err
    assert main(["check", file]) != 0  # and the check says so before
    assert "code" in capsys.readouterr().out


def test_a_draft_sees_no_folder_that_its_file_does_not_see(tmp_path, capsys, monkeypatch):
    (tmp_path / "flows").mkdir()
    monkeypatch.chdir(tmp_path)
    inner = {"nodes": [{"id": "TOLD", "type": "passthrough"}], "edges": []}
    (tmp_path / "private.json").write_text(json.dumps({"graph": inner}), "utf-8")
    file = {"type": "file", "config": {"path": "private.json"}}
    nodes = [{"id": "n", "type": "subgraph", "config": file}]
    draft = {"graph": {"start": ["n"], "nodes": nodes}}

    def run(name: str, *options: str) -> tuple[int, str]:
        graph = {
            "start": ["draft"],
            "nodes": [
                {"id": "draft", "type": "literal", "config": {"content": json.dumps(draft)}},
                {"id": "check", "type": "draft_check", "config": {"name": name}},
            ],
            "edges": [{"from": "draft", "to": "check"}],
        }
        (tmp_path / "flows/flow.json").write_text(json.dumps({"graph": graph}), "utf-8")
        code = main(["run", "flows/flow.json", "--input", "x", "--journal", "off", *options])
        out, err = capsys.readouterr()
        return code, out + err

    for name in ("../team.yaml", str(tmp_path / "team.yaml")):
        code, said = run(name)
        assert code != 0
        assert "AX137" in said
        assert "private.json:" not in said
    code, said = run("team.yaml")  # beside the file, wherever the command was typed
    assert code == 0
    assert "no file private.json" in said
    code, said = run("../team.yaml", "--allow", f"read:{tmp_path}")
    assert code == 0
    assert "private.json:" in said


def test_a_draft_starts_nothing_while_it_is_checked(tmp_path, capsys):
    assert main(["run", _checking(tmp_path, []), "--input", "x", "--journal", "off"]) == 0
    assert not (tmp_path / "started").exists()
    assert "import path" in capsys.readouterr().out


def test_half_of_a_character_in_a_reply_is_kept_with_the_record(tmp_path):
    record = DraftRecord(text="half \ud83d", said=["half \ud83d"])
    record.write(tmp_path)
    assert DraftRecord.read(tmp_path) == record
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".new"] == []
