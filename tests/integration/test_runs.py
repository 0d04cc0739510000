"""Kept runs at the command line: durable by default, looked at, answered in another process,
forked, compared, forgotten.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from axil import run_sync
from axil.plugin import install_advice
from axil_cli.main import main
from axil_journals import Entry
from axil_sqlite import SqliteJournal
from axil_testing.members import command_runner

ASKING = """
graph:
  id: letters
  nodes:
    - {id: draft, type: literal, config: {content: Dear customer, role: user}}
    - {id: sign, type: human, config: {description: Sign as?}}
    - {id: close, type: literal, config: {content: Yours}}
  edges: [{from: draft, to: sign}, {from: sign, to: close}]
  start: [draft]
  end: [close]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AXIL_JOURNAL", raising=False)
    (tmp_path / "letters.yaml").write_text(ASKING)
    return tmp_path


@pytest.fixture
def axil(here, capsys):
    return command_runner(main, capsys)


def test_a_run_is_kept_by_default(axil, here, monkeypatch):
    assert axil("run", "letters.yaml", "--run-id", "one").code == 3
    assert [info["run_id"] for info in axil("runs", "list", "--format", "json").data] == ["one"]
    axil("run", "letters.yaml", "--journal", "off")
    monkeypatch.setenv("AXIL_JOURNAL", "off")
    axil("run", "letters.yaml")
    assert "kept nowhere" in axil("runs", "list").err
    monkeypatch.setenv("AXIL_JOURNAL", "elsewhere")
    axil("run", "letters.yaml", "--run-id", "two")
    assert [info["run_id"] for info in axil("runs", "list", "--format", "json").data] == ["two"]
    assert [
        info["run_id"]
        for info in axil("runs", "list", "--format", "json", "--journal", ".axil").data
    ] == ["one"]


def test_the_output_of_a_typed_graph_is_kept_where_its_edges_carry_it(axil, here):
    (here / "typed.yaml").write_text("""
graph:
  payload: fields
  state: {score: {type: int, default: 0}}
  nodes: [{id: a, type: passthrough}]
  edges: [{from: "@entry", to: a, keys: [message]}, {from: a, to: "@exit", keys: [message]}]
""")
    said = axil("run", "typed.yaml", "--input", "hi", "--run-id", "t", "--format", "json").data
    kept = axil("runs", "show", "t", "--format", "json").data
    assert kept["outline"]["output"] == said["output"] == {"message": "hi"}


def test_a_place_that_cannot_be_used_costs_a_warning_and_not_the_run(axil, here):
    (here / ".axil").write_text("in the way")
    done = axil("run", "letters.yaml", "--answers", answers(here, "Ada"))
    assert (done.code, done.out.strip()) == (0, "Yours")
    assert "warning: the journal in .axil cannot be used" in done.err
    assert axil("run", "letters.yaml", "--thread", "t").code == 2


def answers(here: Path, *given: str) -> Path:
    path = here / "answers.txt"
    path.write_text("\n".join(given))
    return path


def test_a_paused_run_is_answered_later_and_what_was_done_is_not_done_again(axil, here):
    paused = axil("run", "letters.yaml", "--run-id", "letter-1")
    assert "The run is kept: axil runs answer letter-1" in paused.err
    shown = axil("runs", "show", "letter", "--steps")
    assert "draft->sign: Dear customer" in shown.out
    assert "waits for an answer to sign?1" in shown.out
    events = axil("runs", "answer", "letter-1", "Ada", "--format", "events")
    started = [json.loads(line) for line in events.out.splitlines()]
    assert [event["node"] for event in started if event["event"] == "firing_started"] == [
        "sign",
        "close",
    ]
    assert axil("runs", "show", "letter-1", "--format", "json").data["run"]["status"] == "done"
    again = axil("runs", "answer", "letter-1", "Bob")
    assert (again.code, "no question" in again.err) == (2, True)


def test_answers_may_name_their_questions_and_too_many_are_refused(axil):
    axil("run", "letters.yaml", "--run-id", "r")
    refused = axil("runs", "answer", "r", "Ada", "Bob")
    assert (refused.code, "2 answers to 1 question" in refused.err) == (2, True)
    done = axil("runs", "answer", "r", "sign?1=Ada")
    assert (done.code, done.out.strip()) == (0, "Yours")


def timed(here: Path, **config: Any) -> None:
    config = {"description": "Sign as?", **config}
    (here / "letters.yaml").write_text(
        ASKING.replace("{description: Sign as?}", json.dumps(config))
    )


def test_a_question_says_when_it_is_due(axil, here):
    timed(here, within="3 days", default="Anonymous")
    axil("run", "letters.yaml", "--run-id", "r")
    assert "paused, due in 2d 23h" in axil("runs", "list").out
    shown = axil("runs", "show", "r").out
    assert "waits for an answer to sign?1, due in 2d 23h" in shown
    assert "then: Anonymous" in shown
    (question,) = axil("runs", "show", "r", "--format", "json").data["questions"]
    assert question["due"] == axil("runs", "list", "--format", "json").data[0]["due"]
    assert axil("runs", "answer", "r", "Ada").code == 0
    assert axil("runs", "list", "--format", "json").data[0]["due"] is None


def test_a_question_that_is_overdue_takes_no_answer_and_has_its_default(axil, here):
    timed(here, within=0.001, default="Anonymous")
    axil("run", "letters.yaml", "--run-id", "r")
    assert "overdue for" in axil("runs", "list").out
    refused = axil("runs", "answer", "r", "Ada")
    assert (refused.code, "AX522" in refused.err) == (2, True)
    assert axil("runs", "resume", "r").code == 0
    shown = axil("runs", "show", "r", "--steps").out
    assert "sign->close: Anonymous" in shown


def test_a_run_continues_with_the_file_that_it_began_with(axil, here):
    axil("run", "letters.yaml", "--run-id", "r")
    (here / "letters.yaml").write_text(ASKING.replace("Yours", "Cheers"))
    assert "changed since: letters.yaml" in axil("runs", "show", "r").out
    axil("runs", "fork", "r", "--as", "new", "--current", "--at", 2)
    old = axil("runs", "answer", "r", "Ada")
    assert old.out.strip() == "Yours"
    assert "letters.yaml changed since the run began" in old.err
    assert axil("runs", "resume", "new").code == 3
    assert axil("runs", "answer", "new", "Ada").out.strip() == "Cheers"
    differing = axil("runs", "diff", "r", "new")
    assert (differing.code, differing.out.splitlines()) == (
        1,
        ["close: output", "  - close->@exit: Yours", "  + close->@exit: Cheers"],
    )
    (here / "letters.yaml").unlink()
    assert axil("runs", "resume", "r").out.strip() == "Yours"


def test_a_run_of_a_changed_graph_is_not_resumed_by_default(axil, here):
    axil("run", "letters.yaml", "--run-id", "r")
    (here / "letters.yaml").write_text(ASKING.replace("Yours", "Cheers"))
    refused = axil("runs", "resume", "r", "--current")
    assert (refused.code, "AX504" in refused.err) == (2, True)


def test_changes_are_reported_with_the_possible_actions(axil, here):
    axil("run", "letters.yaml", "--run-id", "r")
    (here / "letters.yaml").write_text(ASKING.replace("Yours", "Cheers"))
    assert "    node close: config.content changed" in axil("runs", "show", "r").out.splitlines()
    refused = axil("runs", "resume", "r", "--current").err
    for way in (
        "axil runs resume r\n",
        "axil runs resume r --migrate",
        "axil runs fork r --current",
    ):
        assert way in refused
    noted = axil("runs", "resume", "r").err
    assert "node close: config.content changed" in noted
    (here / "letters.yaml").write_text("graph: [")
    assert "the graph as it is now cannot be read" in axil("runs", "show", "r").out


def test_a_migrated_run_continues_with_the_files_as_they_are_now(axil, here):
    axil("run", "letters.yaml", "--run-id", "r")
    (here / "letters.yaml").write_text(ASKING.replace("Yours", "Cheers"))
    assert axil("runs", "resume", "r", "--migrate").code == 3
    (here / "letters.yaml").write_text(ASKING.replace("Yours", "Bye"))
    # it is the second version's run now
    done = axil("runs", "answer", "r", "Ada", "--format", "events")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [event["node"] for event in events if event["event"] == "firing_started"] == [
        "sign",
        "close",
    ]
    assert events[-1]["output"] == "Cheers"
    # what came before is looked at as it was
    assert "next: sign" in axil("runs", "show", "r", "--at", 2).out
    assert (
        "over"
        in axil("runs", "show", "r", "--at", len(axil("runs", "export", "r").out.splitlines())).out
    )
    axil("runs", "fork", "r", "--at", 2, "--as", "old")
    assert axil("runs", "resume", "old").code == 3
    assert axil("runs", "answer", "old", "Ada").out.strip() == "Yours"
    axil("runs", "fork", "r", "--as", "new")
    assert axil("runs", "resume", "new").out.strip() == "Cheers"


MOVED = """
graph:
  id: letters
  state_version: 2
  state: {%s}
  migrations: {1: "moving:to_2"}
  nodes:
    - {id: sign, type: human, config: {description: Sign as?}}
    - {id: close, type: python}
  edges: [{from: sign, to: close}]
  start: [sign]
  end: [close]
"""


def test_a_file_says_how_an_old_state_becomes_a_new_one(axil, here, monkeypatch):
    old = MOVED.replace("  state_version: 2\n", "").replace(
        '  migrations: {1: "moving:to_2"}\n', ""
    )
    (here / "letters.yaml").write_text(
        (old % "topic: {type: str, default: seeds}").replace("type: python", "type: passthrough")
    )
    (here / "moving.py").write_text(
        "def to_2(values):\n    return {'title' if n == 'topic' else n: v.upper() for n, v in "
        "values.items()}\n"
    )
    monkeypatch.syspath_prepend(here)
    axil("run", "letters.yaml", "--run-id", "r", "--input", "{}")
    new = (MOVED % "title: {type: str}").replace("type: python", "type: passthrough")
    (here / "letters.yaml").write_text(new)
    assert "AX148" in axil("runs", "resume", "r", "--migrate").err  # naming code is code
    assert axil("runs", "resume", "r", "--migrate", "--allow", "code").code == 3
    assert axil("runs", "answer", "r", "Ada", "--allow", "code").out.strip() == "Ada"


def test_a_run_is_pinned_to_its_plugins_and_says_what_became_of_them(axil, monkeypatch):
    from axil import Workflow

    axil("run", "letters.yaml", "--run-id", "r")
    header = json.loads(axil("runs", "export", "r").out.splitlines()[0])["data"]
    assert header["pins"].keys() == {"axil-core", "axil-control"}
    newer = {**header["pins"], "axil-control": {"version": "7.0"}}
    monkeypatch.setattr(Workflow, "pins", newer)
    refused = axil("runs", "answer", "r", "Ada")
    version = header["pins"]["axil-control"]["version"]
    assert (refused.code, f"axil-control was {version}, and is 7.0" in refused.err) == (2, True)
    assert f"{install_advice(f'axil-control=={version}')}, then axil runs resume r" in refused.err
    assert axil("runs", "show", "r", "--at", 2).code == 0
    assert axil("runs", "answer", "r", "Ada", "--migrate").out.strip() == "Yours"
    assert axil("runs", "resume", "r").out.strip() == "Yours"


def test_a_fork_may_have_another_input_state_outcome_or_variable(axil, here):
    (here / "flow.yaml").write_text(
        "vars: {WORD: then}\ngraph:\n  id: flow\n  state: {mark: one}\n  nodes:\n    - {id: a, "
        "type: passthrough}\n"
        "    - {id: b, type: literal, config: {content: '${WORD}'}}\n    - {id: c, type: "
        "passthrough, config: {only_last_message: false}}\n"
        "  edges: [{from: a, to: c}, {from: a, to: b}, {from: b, to: c}]\n  start: [a]\n  end: "
        "[c]\n"
    )
    axil("run", "flow.yaml", "--input", "first", "--run-id", "r")

    def forked(*edits: object) -> Any:
        new = axil("runs", "fork", "r", *edits)
        assert new.code == 0, new.err
        return axil("runs", "resume", new.out.strip(), "--format", "json").data

    def said(result: Any) -> list[str]:
        return [message["content"] for message in result["messages"]]

    assert said(forked()) == ["first", "then"]
    assert said(forked("--input", "second")) == ["second", "then"]
    assert said(forked("--at", 2, "--set", "WORD=now")) == ["first", "now"]
    assert said(forked("--at", 2, "--output", '[{"role": "user", "content": "third"}]')) == [
        "third",
        "then",
    ]
    (here / "flow.yaml").write_text(
        (here / "flow.yaml")
        .read_text()
        .replace(
            "{from: a, to: b}",
            "{from: a, to: b, condition: {type: keyword, config: {any: [first]}}}",
        )
    )
    routed = ("--at", 2, "--current", "--route", "--output")
    assert said(forked(*routed, '"the first"')) == ["the first", "then"]
    assert said(forked(*routed, '"third"')) == ["third"]
    assert forked("--at", 2, "--state", "mark=two")["attributes"] == {"mark": "two"}
    refused = axil("runs", "fork", "r", "--output", "x")
    assert (refused.code, "AX528" in refused.err) == (2, True)


def test_a_run_is_stepped_through_node_by_node(axil):
    """A debugger: stop before each node, look, edit an outcome, go on."""
    axil("run", "letters.yaml", "--run-id", "r", "--break", "*")
    stops = [axil("runs", "show", "r", "--format", "json").data["questions"][0]["node"]]
    for answer in ("go", "go", "Ada", '{"output": [{"role": "user", "content": "Love"}]}'):
        done = axil("runs", "answer", "r", answer, "--break", "*")
        stops += [
            question["node"]
            for question in axil("runs", "show", "r", "--format", "json").data["questions"]
        ]
    assert (stops, done.out.strip()) == (["draft", "sign", "sign", "close"], "Love")


def test_where_a_run_stood_is_shown_for_each_of_its_steps(axil):
    axil("run", "letters.yaml", "--run-id", "r")
    before = axil("runs", "show", "r", "--at", 1, "--format", "json").data
    assert [due["activation"] for due in before["due"]] == ["draft"]
    later = axil("runs", "show", "r", "--at", 2)
    assert "next: sign" in later.out
    assert "Dear customer" in later.out
    assert axil("runs", "show", "r", "--at", 99).code == 2


def test_a_run_stops_before_a_node_and_takes_another_outcome(axil):
    stopped = axil(
        "run", "letters.yaml", "--run-id", "r", "--break", "close", "--answers", "/dev/null"
    )
    assert stopped.code == 3
    axil("runs", "answer", "r", "Ada", "--break", "close")
    edited = axil(
        "runs",
        "answer",
        "r",
        '{"output": [{"role": "assistant", "content": "Love"}]}',
        "--break",
        "close",
    )
    assert (edited.code, edited.out.strip()) == (0, "Love")


def test_a_conversation_goes_on(axil, here):
    (here / "count.yaml").write_text(
        "graph:\n  id: count\n  nodes:\n    - {id: a, type: literal, config: {content: hi}}\n  "
        "edges: []\n  start: [a]\n  end: [a]\n"
    )
    for _ in range(2):
        assert axil("run", "count.yaml", "--thread", "ada").code == 0
    axil("run", "count.yaml")
    assert len(axil("runs", "list", "--thread", "ada", "--format", "json").data) == 2
    axil("run", "letters.yaml", "--thread", "paused", "--run-id", "p")
    waiting = axil("run", "letters.yaml", "--thread", "paused")
    assert (waiting.code, "AX509" in waiting.err) == (2, True)
    assert axil("runs", "cancel", "p").code == 0
    assert axil("run", "letters.yaml", "--thread", "paused").code == 3


def test_what_is_cancelled_or_done_is_not_cancelled_again(axil, here):
    axil("run", "letters.yaml", "--run-id", "r", "--answers", answers(here, "Ada"))
    refused = axil("runs", "cancel", "r")
    assert (refused.code, "done already" in refused.err) == (2, True)


def test_runs_are_distinguished_by_their_beginnings(axil):
    for name in ("alpha", "alert", "beta"):
        axil("run", "letters.yaml", "--run-id", name)
    assert "several runs" in axil("runs", "show", "al").err
    assert "knows no run" in axil("runs", "show", "gamma").err
    assert axil("runs", "show", "b").code == 0


def test_old_runs_are_forgotten_and_those_that_wait_are_not(axil, here):
    axil("run", "letters.yaml", "--run-id", "done", "--answers", answers(here, "Ada"))
    axil("run", "letters.yaml", "--run-id", "waiting")
    assert axil("runs", "prune", "--format", "json").data == []
    assert axil("runs", "prune", "--older-than", 0, "--dry-run", "--format", "json").data == [
        "done"
    ]
    for name in ("done", "waiting"):
        (here / "axil-runs" / name).mkdir(parents=True)
    pruned = axil("runs", "prune", "--older-than", 0, "--files", "axil-runs", "--format", "json")
    assert pruned.data == ["done"]
    assert [folder.name for folder in (here / "axil-runs").iterdir()] == ["waiting"]
    assert [info["run_id"] for info in axil("runs", "list", "--format", "json").data] == ["waiting"]


def test_a_run_that_is_resumed_meanwhile_does_not_keep_others_from_being_forgotten(
    axil, here, monkeypatch
):
    for name in ("one", "two", "three"):
        axil("run", "letters.yaml", "--run-id", name, "--answers", answers(here, "Ada"))
    prune = SqliteJournal.prune

    async def claim(book: Any) -> None:
        book.append(Entry("resumed"))
        await book.kept()

    def busy(self: SqliteJournal, *given: Any, **settings: Any) -> Any:
        run_sync(claim(self.open("two")))
        return prune(self, *given, **settings)

    monkeypatch.setattr(SqliteJournal, "prune", busy)
    done = axil("runs", "prune", "--older-than", 0)
    assert (done.code, "2 run(s) are forgotten" in done.err) == (0, True)
    assert [info["run_id"] for info in axil("runs", "list", "--format", "json").data] == ["two"]


def test_the_whole_record_can_be_exported(axil):
    axil("run", "letters.yaml", "--run-id", "r")
    lines = [json.loads(line) for line in axil("runs", "export", "r").out.splitlines()]
    assert [(line["number"], line["kind"], line["node"]) for line in lines] == [
        (1, "run", ""),
        (2, "done", "draft"),
        (3, "asked", "sign"),
        (4, "ended", ""),
    ]


def test_damage_is_found_cut_away_and_gone_on_from(axil, here):
    axil("run", "letters.yaml", "--run-id", "r", "--answers", answers(here, "Ada"))
    assert axil("runs", "doctor").code == 0
    journal = SqliteJournal(here / ".axil")
    journal.writer.store.connection.execute(
        "update entries set body = replace(body, 'Yours', 'Yous') where kind = 'done'"
    )
    journal.close()
    sick = axil("runs", "doctor")
    assert (sick.code, sick.out.startswith("r: entry")) == (1, True)
    assert axil("runs", "doctor", "--cut", "r").code == 0
    assert axil("runs", "resume", "r").out.strip() == "Yours"


TURNING = """
graph:
  id: turning
  start: [begin]
  end: [over]
  cycle_limits: {work: {rounds: unlimited}}
  nodes:
    - {id: begin, type: literal, config: {content: go}}
    - {id: work, type: passthrough}
    - {id: count, type: loop_counter, config: {max_iterations: 1000, message: That will do.}}
    - {id: over, type: passthrough}
  edges:
    - {from: begin, to: work}
    - {from: work, to: count}
    - {from: work, to: work}
    - {from: count, to: work}
    - {from: count, to: over}
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_killed_process_leaves_a_run_that_goes_on(axil, here):
    (here / "turning.yaml").write_text(TURNING)
    command = [
        sys.executable,
        "-m",
        "axil_cli.main",
        "run",
        "turning.yaml",
        "--run-id",
        "r",
        "--format",
        "events",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=here) as child:
        assert child.stdout is not None
        turns = 0
        for line in child.stdout:
            # the pipe does not hold what is said in a thousand rounds: the end is not reached
            # before the kill
            turns += '"count"' in line
            if turns > 200:
                break
        child.kill()
    [info] = axil("runs", "list", "--format", "json").data
    assert info["status"] == "open"
    done = axil("runs", "resume", "r", "--format", "events")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 0
    assert "begin" not in [event["node"] for event in events if event["event"] == "firing_started"]
    assert events[-1]["cycles"]["cycle(work,count)"]["rounds"] >= 1000


TALKING = """
version: 1
graph:
  id: talking
  nodes:
    - {id: sign, type: human, config: {description: Sign as?}}
    - {id: writer, type: agent, config: {model: {type: openai, name: some}, instructions: Write.}}
  edges: [{from: sign, to: writer}]
  start: [sign]
  end: [writer]
"""


def test_a_run_continues_with_the_options_of_plugins_that_a_run_takes(axil, here):
    """A run that began with a script does not continue with a real model."""
    (here / "talking.yaml").write_text(TALKING)
    (here / "script.json").write_text('{"default": "Dear Ada"}')
    paused = axil(
        "run", "talking.yaml", "--run-id", "r", "--model-script", "script.json", "--allow-code"
    )
    assert (paused.code, "axil runs answer r ANSWER\n" in paused.err) == (3, True)
    done = axil("runs", "answer", "r", "Ada", "--model-script", "script.json", "--allow-code")
    assert (done.code, done.out.strip()) == (0, "Dear Ada")
    assert "--model-script" in axil("runs", "resume", "--help").out
    assert axil("runs", "list", "--model-script", "script.json").code == 2


JUDGED = """\
version: 1
graph:
  id: triage
  start: [judge]
  nodes:
    - id: judge
      type: agent
      config:
        output: {score: {type: integer}, why: Why.}
        model:
          type: scripted
          config: {rules: [{replies: ['Well: {"score": "high"}', '{"score": 3, "why": "so"}']}]}
"""


def test_a_repaired_reply_is_shown_once_and_its_fields_are_events(axil, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    (here / "judged.yaml").write_text(JUDGED)
    code, _, shown = axil("run", "judged.yaml", "--input", "x", "--progress", "--journal", "off")
    lines = [line for line in shown.splitlines() if "──" not in line]
    assert (code, lines[:3]) == (0, ["input  x", "judge  score: 3", "       why: so"])
    assert "high" not in shown
    code, out, _ = axil("run", "judged.yaml", "--input", "x", "--format", "events")
    chunks = [event["chunk"] for event in map(json.loads, out.splitlines()) if "chunk" in event]
    kinds = [chunk["kind"] for chunk in chunks]
    assert kinds.count("reset") == 1
    assert chunks[kinds.index("reset")]["chunks"] == kinds.index("reset")
    fields = [chunk["fields"] for chunk in chunks[kinds.index("reset") :] if "fields" in chunk]
    assert fields == [{}, {"score": 3}, {"score": 3, "why": "so"}]


PROGRAM = """\
version: 1
graph:
  id: program
  start: [a]
  nodes:
    - {id: a, type: python, config: {code: "raise ValueError('no')"}}
    - {id: b, type: literal, config: {content: so}}
  edges: [{from: a, to: b, condition: code_fail}]
  end: [b]
"""


def test_a_program_that_raises_is_shown_as_done_nowhere(axil, here, monkeypatch):
    """Its report is data for the next node all the same."""
    monkeypatch.setenv("COLUMNS", "200")  # whatever time is shown
    (here / "program.yaml").write_text(PROGRAM)
    begin = ("run", "program.yaml", "--allow-code", "--input", "x")
    reported = axil(*begin, "--run-id", "r", "--format", "json").data
    assert [(each["node"], each["status"]) for each in reported["activations"]] == [
        ("a", "failed"),
        ("b", "done"),
    ]
    lines = axil(*begin, "--format", "events").lines
    ended = [each for each in lines if each["event"] == "firing_finished"]
    assert [each["status"] for each in ended] == ["failed", "done"]
    # one that took long says how long
    assert re.search("a      ✗ ([0-9.]+ s  )?==CODE", axil(*begin, "--progress").err)
    assert "├ a  failed" in axil("runs", "show", "r").out
    page = axil("runs", "export", "r", "--html").out.replace(" ", "")
    assert page.count('"failed":true') == 1


TWO = """
import asyncio, subprocess, sys
from axil import RootGraph
from axil_sqlite import SqliteJournal

async def ask(inputs, ctx):
    return {"said": await ctx.ask("how much?")}

async def slow(inputs):
    journal = SqliteJournal(".axil")
    while not any(entry.kind == "asked" for entry in journal.entries("r")):
        await asyncio.sleep(0.01)
    journal.close()
    command = [sys.executable, "-m", "axil_cli.main", "runs", "answer", "r", "5"]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
    return {"told": done.stderr.strip()}

graph = RootGraph("two")
for body, key in ((ask, "said"), (slow, "told")):
    graph.create_node(body, name=body.__name__)
    graph.edge_from_entry(body.__name__, {})
    graph.edge_to_exit(body.__name__, {key: ""})
"""


def test_an_answer_reaches_a_run_that_is_at_work_in_another_process(axil, here, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (here / "two.py").write_text(TWO)
    done = axil("run", "two.py:graph", "--input", "{}", "--run-id", "r")
    assert (done.code, done.out) == (
        0,
        "said: 5\ntold: r is at work; the process that runs it goes on with the answer.\n",
    )
    [info] = axil("runs", "list", "--format", "json").data
    assert info["status"] == "done"
