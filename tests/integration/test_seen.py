"""Output of a run at the command line: what they approve, what it used, where it ended."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from axil import RunPaused, SpecError
from axil_agent import Scripted
from axil_cli.main import main
from axil_files import load
from axil_testing.agents import Runner
from axil_testing.members import command_runner

SEND = """
def send(to: str, text: str) -> str:
    \"\"\"Send a letter.\"\"\"
    return "sent"

send.effects = "external"
"""
CALL = {"name": "send", "arguments": {"to": "ada@example.org", "text": "Dear Ada,\nhello."}}
SCRIPT = {"rules": [{"replies": [{"tool_calls": [CALL]}, "It is sent."]}]}
ACT = {
    "graph": {
        "id": "letters",
        "nodes": [
            {
                "id": "act",
                "type": "agent",
                "config": {"model": {"type": "scripted"}, "tools": ["send"], "approve": ["send"]},
            }
        ],
        "start": ["act"],
        "end": ["act"],
    }
}
WAYS = ("--allow", "code", "--model-script", "script.json")
SHOWN = """\
    May the tool send be called with these arguments?
        to: ada@example.org
        text: Dear Ada,
              hello.
    does: Send a letter.
    changes: It changes something outside, and again with each call.
    one of: allow, deny, edit
"""


@pytest.fixture
def axil(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AXIL_JOURNAL", raising=False)
    Path("own").mkdir()
    Path("own/tools.py").write_text(SEND)
    Path("script.json").write_text(json.dumps(SCRIPT))
    Path("act.json").write_text(json.dumps(ACT))

    return command_runner(main, capsys)


@pytest.fixture
def paused(axil):
    ways = ("--functions", "own", "--input", "go", "--run-id", "r")
    done = axil("run", "act.json", *WAYS, *ways)
    assert done.code == 3
    return done


def test_a_question_shows_the_tool_its_arguments_and_what_it_changes(axil, paused):
    assert paused.err.startswith(f"act asks:\n{SHOWN}")
    shown = axil("runs", "show", "r").out
    assert shown.endswith(f"waits for an answer to act?approve:tool:1:0:send:0\n{SHOWN}")
    (question,) = axil("runs", "show", "r", "--json").data["questions"]
    assert question["data"] == {
        "tool": "send",
        "arguments": CALL["arguments"],
        "does": "Send a letter.",
        "changes": "It changes something outside, and again with each call.",
    }
    assert "It changes something outside" in question["text"]


def test_a_script_goes_on_where_the_run_left_it(axil, paused):
    assert axil("runs", "answer", "r", "allow", *WAYS).out == "It is sent.\n"


def test_an_answer_to_no_question_names_the_open_ones_and_is_not_kept(axil, paused):
    before = axil("runs", "export", "r").out
    done = axil("runs", "answer", "r", "act?other=allow", *WAYS)
    assert (done.code, done.err) == (
        2,
        'error: AX700 ANSWER: the run waits for no answer to "act?other". '
        "Open: act?approve:tool:1:0:send:0.\n",
    )
    assert axil("runs", "export", "r").out == before


def test_a_run_is_shown_in_short_and_step_by_step_on_demand(axil, paused):
    axil("runs", "answer", "r", "allow", *WAYS)
    lines = axil("runs", "show", "r").out.splitlines()
    assert lines[0] == "r  letters  done"
    assert [line.split()[0] for line in lines[3:]] == ["input:", "└", "output:"]
    assert "1 firing" in lines[2]
    assert "output tokens" in lines[2]
    assert not any("model:1" in line for line in lines)
    assert "model:1: ⚙ send(" in axil("runs", "show", "r", "--steps").out
    outline = axil("runs", "show", "r", "--json").data["outline"]
    (node,) = outline["nodes"]
    assert (node["path"], node["times"], node["waits"]) == (["act"], 1, 0)
    assert sum(node["tokens"].values()) == sum(outline["used"]["tokens"].values()) > 0


def test_a_workflow_that_begins_with_a_model_says_that_it_lacks_an_input(axil):
    done = axil("run", "act.json", *WAYS, "--functions", "own")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith('error: AX120 --input: the workflow begins with "act", which asks')
    assert axil("run", "act.json", *WAYS, "--functions", "own", "--input", "").code == 3


def test_a_run_without_an_output_names_the_edges_that_carried_nothing(axil):
    Path("none.yaml").write_text(
        """graph:
  nodes:
    - {id: a, type: literal, config: {content: hello}}
    - {id: b, type: passthrough}
    - {id: c, type: passthrough}
  edges:
    - {from: a, to: b, condition: {type: regex, config: {pattern: "^spam"}}}
    - {from: b, to: c}
  start: [a]
  end: [c]
"""
    )
    assert axil("run", "none.yaml", "--journal", "off").err == (
        "The run is done, and nothing reached its exit.\n"
        "    nothing went along a -> b [regex: ^spam]  (none.yaml:7 edges[0])\n"
    )


@pytest.mark.parametrize("name", ["", "sned", "act/sned/more"])
def test_a_break_at_no_node_is_an_error(axil, name):
    Path("two.json").write_text(
        json.dumps({"graph": {"nodes": [{"id": "send", "type": "passthrough"}], "start": ["send"]}})
    )
    done = axil("run", "two.json", "--input", "x", "--break", name)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f'error: AX700 --break: there is no node "{name}".')


def test_a_misspelt_break_gets_a_suggestion(axil):
    Path("two.json").write_text(
        json.dumps({"graph": {"nodes": [{"id": "send", "type": "passthrough"}], "start": ["send"]}})
    )
    assert axil("run", "two.json", "--break", "sned").err.endswith('Did you mean "send"?\n')


def test_functions_of_ones_own_are_loaded_in_python(axil):
    with Scripted(SCRIPT).everywhere(), pytest.raises(RunPaused) as caught:
        load("act.json", functions="own").invoke("go")
    (question,) = caught.value.result.questions
    assert question.data["tool"] == "send"


def test_functions_of_ones_own_are_loaded_in_tests(axil):
    with Scripted(SCRIPT).everywhere():
        result = Runner(Path.cwd())("act.json", "go", functions="own", answers=["allow"])
    assert result.output == "It is sent."


def test_a_function_that_is_not_found_says_how_to_bring_it(axil):
    reported = (
        "A function of your own: axil … --functions DIR --allow code, or load(…, functions=DIR)."
    )
    with pytest.raises(SpecError) as caught:
        load("act.json").plan  # noqa: B018  # it is compiled
    assert reported in str(caught.value)
    assert reported in axil("check", "act.json").out
    why = axil("plugins", "why", "act.json", "--functions", "own", "--allow", "code")
    assert (why.code, "axil-agent" in why.out) == (0, True)
    assert axil("plugins", "why", "act.json", "--functions", "own").code == 2


@pytest.mark.parametrize(
    ("name", "text"), [("a.yaml", ""), ("b.yaml", "# later\n"), ("c.json", " ")]
)
def test_a_file_with_nothing_in_it_says_so(axil, name, text):
    Path(name).write_text(text)
    done = axil("check", name)
    assert done.out.startswith(f"error: AX103 {name}: the file is empty. Write graph")


def test_a_graph_in_python_is_locked_with_the_files_that_it_imports(axil, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("locked_words.py").write_text("WORD = 'hello'\n")
    Path("locked_flow.py").write_text(
        "from axil import RootGraph\nfrom locked_words import WORD\n\n"
        "graph = RootGraph('one')\n"
        "node = graph.create_node(lambda inputs: {'message': WORD}, name='a')\n"
        "graph.edge_from_entry(node)\ngraph.edge_to_exit(node)\n"
    )
    target, run = "locked_flow.py:graph", ("--input", "x", "--locked", "--journal", "off")
    try:
        assert axil("lock", target).out == "locked_flow.py.graph.lock: written\n"
        assert axil("run", target, *run).out == "hello\n"
        Path("locked_words.py").write_text("WORD = 'other'\n")
        done = axil("run", target, *run)
        assert (done.code, "the file locked_words.py has changed" in done.err) == (2, True)
    finally:
        for name in ("locked_flow", "locked_words"):
            sys.modules.pop(name, None)
