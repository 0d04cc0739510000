"""Laws of ``axil run``."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any, ClassVar

import pytest

from axil import MISSING
from axil.plugin import JournalError, Policy, Registry
from axil_cli import job
from axil_cli.command import Exit
from axil_cli.main import main
from axil_cli.run import Run
from axil_files import parse_json
from axil_journals import Entry, RunMail

SAY = {"id": "say", "type": "say", "config": {"text": "hi ${NAME}"}}


def test_the_output_goes_to_standard_output_and_nothing_else_does(axil, flow):
    assert axil("run", flow(["a echo"]), "--input", "hello") == (0, "hello\n", "")


def test_a_graph_without_input_begins_with_an_empty_text(axil, flow):
    assert axil("run", flow(["a echo", SAY], ["a say"], vars={"NAME": "you"})).out == "hi you\n"


def test_all_messages_of_the_output_are_shown(axil, flow):
    file = flow(["a echo", "b echo", "c echo"], ["a c", "b c"], start=["a", "b"])
    assert axil("run", file, "--input", "x").out == "x\nx\n"


def test_the_input_may_come_from_a_file_or_from_standard_input(axil, flow, tmp_path, monkeypatch):
    (tmp_path / "in.txt").write_text("from a file")
    assert axil("run", flow(["a echo"]), "--input-file", tmp_path / "in.txt").out == "from a file\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("from a pipe"))
    assert axil("run", flow(["a echo"]), "--input-file", "-").out == "from a pipe\n"


def test_a_field_graph_takes_an_object_or_a_text(axil, flow):
    file = flow(
        ["a echo"], [{"from": "@entry", "to": "a"}, {"from": "a", "to": "@exit"}], payload="fields"
    )
    assert axil("run", file, "--input", '{"n": 1, "s": "x"}').out == "n: 1\ns: x\n"
    assert axil("run", file, "--input", "just text").out == "just text\n"
    assert axil("run", file, "--input", '{"n": [1, 2]}', "--format", "json").data["output"] == {
        "n": [1, 2]
    }


def test_an_output_of_nothing_says_so(axil, flow):
    file = flow(["a echo", "b echo"], [{"from": "a", "to": "b", "condition": "yes"}])
    done = axil("run", file, "--input", "no")
    assert (done.code, done.out) == (0, "")
    assert "nothing reached" in done.err


# --------------------------------------------------------------------------------------------------


def test_set_is_stronger_than_the_file(axil, flow):
    file = flow([SAY], vars={"NAME": "file"})
    assert axil("run", file).out == "hi file\n"
    assert axil("run", file, "--set", "NAME=line").out == "hi line\n"
    assert axil("run", file, "--set", "NAME=a=b").out == "hi a=b\n"


def test_a_value_that_is_set_is_json_where_it_is_json(axil, flow):
    file = flow([{"id": "s", "type": "say", "config": {"text": "${V}"}}], vars={"V": ""})
    assert axil("run", file, "--set", 'V="3"').out == "3\n"
    assert "AX131" in axil("run", file, "--set", "V=3").err


def test_a_variable_that_nothing_uses_is_a_warning(axil, flow):
    done = axil("run", flow([SAY], vars={"NAME": "x"}), "--set", "NAEM=y")
    assert (done.code, done.out) == (0, "hi x\n")
    assert "NAEM" in done.err


@pytest.mark.parametrize("given", ["NAME", "=x", " = "])
def test_a_set_without_a_name_is_refused(axil, flow, given):
    done = axil("run", flow(["a echo"]), "--set", given)
    assert done.code == Exit.MISUSE
    assert done.err.startswith("error: AX700 --set: expected name=value")


# --------------------------------------------------------------------------------------------------


def test_a_failure_is_exit_code_1_with_the_node_and_without_a_traceback(axil, flow):
    done = axil("run", flow(["bad fail"]))
    assert done.code == Exit.FAILED
    said, place = done.err.splitlines()
    assert said == 'error: AX401 node "bad": ValueError: it broke\\x1b[2J'
    assert re.fullmatch(r"    at \S+conftest.py:\d+ in run: raise ValueError.*it broke.*", place)


def test_debugging_shows_the_traceback(axil, flow, monkeypatch):
    monkeypatch.setenv("AXIL_DEBUG", "1")
    assert 'raise ValueError("it broke' in axil("run", flow(["bad fail"])).err


def test_a_file_that_is_not_there_is_exit_code_2(axil, tmp_path):
    done = axil("run", tmp_path / "none.json")
    assert (done.code, done.out) == (Exit.MISUSE, "")
    assert done.err.startswith("error: AX100 ")


def test_all_problems_of_a_file_are_said(axil, flow):
    done = axil("run", flow(["a eco", "b echo"], ["a b", "b c"]))
    assert done.code == Exit.MISUSE
    assert "AX104" in done.err or "AX301" in done.err


def test_an_open_question_is_exit_code_3(axil, flow):
    done = axil("run", flow(["a askt"]))
    assert (done.code, done.out) == (Exit.PAUSED, "")
    assert done.err.startswith("a asks:\n    how much?\n")
    data = axil("run", flow(["a askt"]), "--format", "json").data
    assert data["status"] == "paused"
    assert [(q["node"], q["text"]) for q in data["questions"]] == [("a", "how much?")]


@pytest.mark.parametrize(
    ("text", "answer"), [("much\n", "much"), ('["more"]', "more"), ("[3]", "3"), ("", None)]
)
def test_answers_come_from_a_file(axil, flow, tmp_path, text, answer):
    (tmp_path / "answers").write_text(text)
    done = axil("run", flow(["a askt"]), "--answers", tmp_path / "answers")
    assert done.code == (Exit.PAUSED if answer is None else Exit.DONE)
    assert done.out == ("" if answer is None else f"the answer is {answer}\n")


def test_an_answer_without_a_question_is_warned_of(axil, flow, tmp_path):
    (tmp_path / "answers").write_text("much\nmore\n")
    done = axil("run", flow(["a askt"]), "--answers", tmp_path / "answers")
    assert done.code == Exit.DONE
    assert "warning: 1 of the answers in " in done.err


def test_a_limit_is_exit_code_4(axil, flow):
    done = axil(
        "run",
        flow(["a echo", "b echo"], ["a b", "b a"], end=["a"], cycle_limits={"a": {"rounds": 3}}),
        "--input",
        "x",
    )
    assert (done.code, done.out) == (Exit.LIMITED, "")
    assert "3 times, which is its limit" in done.err


def test_an_interrupted_run_ends_in_order_and_has_a_result(axil, flow):
    done = axil("run", flow(["a echo", "h hang"], ["a h"]), "--input", "x", "--format", "json")
    assert done.code == Exit.INTERRUPTED
    assert done.data["status"] == "cancelled"
    assert done.data["error"]["id"] == "AX405"
    assert [(each["node"], each["status"]) for each in done.data["activations"]] == [("a", "done")]


# --------------------------------------------------------------------------------------------------


def test_json_is_one_object_with_everything(axil, flow):
    data = axil("run", flow(["a echo"]), "--input", "x", "--format", "json").data
    assert {key: data[key] for key in ("status", "output", "attributes", "questions", "error")} == {
        "status": "done",
        "output": "x",
        "attributes": {},
        "questions": [],
        "error": None,
    }
    assert data["messages"][-1]["content"] == "x"
    assert data["usage"]["firings"] == 1
    assert data["activations"] == [
        {"node": "a", "path": "a", "kind": "node", "frame": [], "ordinal": 0, "status": "done"}
    ]


def test_activations_come_in_the_order_they_finished_and_name_rounds(axil, flow):
    edges = [
        "a b",
        {"from": "b", "to": "a", "condition": "yes"},
        "b c",
        {"from": "a", "to": "d", "condition": "yes"},
    ]
    file = flow(["a echo", "b echo", "c echo", "d echo"], edges, end=["c"])
    reported = axil("run", file, "--input", "no", "--format", "json").data["activations"]
    cycle = "cycle(a,b)"
    assert [(each["path"], each["kind"], each["frame"], each["status"]) for each in reported] == [
        ("a", "node", [cycle, 0], "done"),
        ("b", "node", [cycle, 0], "done"),
        (cycle, "cycle", [], "done"),
        ("d", "node", [], "skipped"),
        ("c", "node", [], "done"),
    ]


def test_a_node_that_fires_for_each_token_has_ordinals(axil, flow):
    each = {"id": "c", "type": "echo", "join": "each"}
    reported = axil(
        "run",
        flow(["a echo", "b echo", each], ["a c", "b c"], start=["a", "b"]),
        "--input",
        "x",
        "--format",
        "json",
    ).data
    assert sorted(a["ordinal"] for a in reported["activations"] if a["node"] == "c") == [[0], [1]]


def test_failed_activations_and_the_error_are_reported(axil, flow):
    data = axil(
        "run", flow(["a echo", "bad fail"], ["a bad"]), "--input", "x", "--format", "json"
    ).data
    assert [(each["node"], each["status"]) for each in data["activations"]] == [
        ("a", "done"),
        ("bad", "failed"),
    ]
    assert (data["status"], data["output"]) == ("failed", None)
    assert (data["error"]["id"], data["error"]["where"]) == ("AX401", 'node "bad"')


def test_values_that_json_lacks_are_shown_in_words(axil, flow):
    output = axil("run", flow(["o odd"]), "--format", "json").data["output"]
    assert output == {
        "nan": "nan",
        "set": [1],
        "bytes": "<3 bytes>",
        "object": "<object>",
        "half": "\ud800",
        "3": "key",
    }
    assert axil("run", flow(["o odd"])).code == 0


def test_events_are_one_object_a_line_and_end_with_the_result(axil, flow):
    lines = axil("run", flow(["t talk", "b fail"], ["t b"]), "--format", "events").lines
    assert [line["event"] for line in lines] == [
        "run_started",
        "firing_started",
        "chunk",
        "chunk",
        "firing_finished",
        "firing_started",
        "firing_failed",
        "run_finished",
    ]
    assert [line["chunk"] for line in lines if line["event"] == "chunk"] == ["one ", "two"]
    assert lines[4]["output"][0]["content"] == "said"
    assert lines[-1]["status"] == "failed"


def test_what_bodies_print_does_not_spoil_the_output(axil, flow):
    done = axil("run", flow(["t talk"]), "--format", "json")
    assert done.data["output"] == "said"
    assert done.err == "printed by a body\n"


# --------------------------------------------------------------------------------------------------


def test_progress_shows_firings_rounds_and_chunks(axil, flow, monkeypatch):
    # on no machine does anything here take so long
    monkeypatch.setattr("axil_cli.progress._NOTICE_SECONDS", 1000)
    edges = [
        "a b",
        {"from": "b", "to": "a", "condition": "yes"},
        "b t",
        {"from": "a", "to": "d", "condition": "yes"},
    ]
    done = axil(
        "run",
        flow(["a echo", "b echo", "t talk", "d echo"], edges, end=["t"]),
        "--input",
        "no",
        "--progress",
    )
    assert done.out == "said\n"
    reported = [
        re.sub(r"\d+\.\d s", "0.0 s", line.split(" ─")[0].rstrip())
        for line in done.err.splitlines()
    ]
    assert reported == [
        "── flow",
        "input  no",
        "── round 1",
        "a      no",
        "b      (passed on)",
        "── flow",
        "d      · skipped",
        "printed by a body",
        "t      one two",
        "── output",
        "── done: 3 firings · 0.0 s · cycle(a,b): 1 round (exit)",
    ]


def test_progress_of_a_failure_names_it(axil, flow):
    done = axil("run", flow(["bad fail"]), "--progress")
    assert "bad    ✗ ValueError: it broke\\x1b[2J" in done.err
    assert done.err.count("ValueError: it broke") == 2  # once by progress, once as the error
    assert "── failed: 1 firing ·" in done.err


# --------------------------------------------------------------------------------------------------


class Typed(io.StringIO):
    """Standard input that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_person_is_asked_on_a_terminal(axil, flow, registry, monkeypatch):
    if "terminal" not in registry.names("channels"):

        class Terminal:
            async def ask(self, question):
                sys.stdout.write(question.text)
                return sys.stdin.readline().strip()

        registry.register("channels", "terminal", Terminal)
    monkeypatch.setattr(sys, "stdin", Typed("plenty\n"))
    done = axil("run", flow(["a askt"]))
    assert (done.code, done.out) == (0, "the answer is plenty\n")
    assert "how much?" in done.err


def test_options_that_cannot_be_used_are_exit_code_2(axil, flow, tmp_path):
    (tmp_path / "answers").write_text("[1,")
    file = flow(["a echo"])
    assert "AX700 --answers" in axil("run", file, "--answers", tmp_path / "answers").err
    assert "AX700 --input-file" in axil("run", file, "--input-file", tmp_path / "none").err
    assert axil("run", file, "--format", "xml").code == Exit.MISUSE
    assert axil("run").code == Exit.MISUSE
    assert axil("run", file, "--input", "a", "--input-file", "b").code == Exit.MISUSE


def test_a_typed_graph_takes_fields_or_the_text_of_a_conversation(axil, flow):
    state = {"n": {"type": "int", "default": 1}}
    file = flow(
        ["a echo"],
        [{"from": "@entry", "to": "a"}, {"from": "a", "to": "@exit"}],
        payload="state",
        state=state,
    )
    done = axil("run", file, "--input", "text", "--format", "json")
    assert done.data["attributes"]["messages"] == [{"role": "user", "content": "text"}]
    done = axil("run", file, "--input", json.dumps({"n": 5}), "--format", "json")
    assert done.data["attributes"]["n"] == 5


def test_a_file_that_cannot_be_used_is_reported_as_data_too(tmp_path, capsys):
    path = tmp_path / "bad.json"
    path.write_text(
        '{"graph": {"start": "A", "nodes": [{"id": "A", "type": "literl", "config": {}}], '
        '"edges": [{"from": "A", "to": "B"}]}}'
    )
    assert main(["run", str(path), "--format", "json"]) == 2
    reported = json.loads(capsys.readouterr().out)
    assert (reported["status"], reported["output"], reported["activations"]) == ("failed", None, [])
    assert reported["error"]["id"] == reported["problems"][0]["id"]
    assert {problem["id"] for problem in reported["problems"]} == {"AX104", "AX301"}


# --------------------------------------------------------------------------------------------------


FIELDS = [{"from": "@entry", "to": "a", "keys": ["name"]}, {"from": "a", "to": "@exit"}]


def test_an_input_that_lacks_a_field_is_exit_code_2_and_says_which(axil, flow):
    file = flow(["a echo"], FIELDS, payload="fields")
    done = axil("run", file, "--input", '{"nam": "Ada"}')
    assert (done.code, done.out, done.err) == (
        2,
        "",
        'error: AX120 --input: the input lacks "name"; it has "nam".\n',
    )
    assert 'Write --input \'{"name": "…"}\'.' in axil("run", file).err
    reported = axil("run", file, "--input", '{"nam": 1}', "--format", "json").data
    assert (reported["status"], reported["error"]["id"]) == ("failed", "AX120")


def test_a_field_that_a_node_lacks_is_the_nodes_failure(axil, flow):
    edges = [{"from": "@entry", "to": "a"}, {"from": "a", "to": "@exit", "keys": ["name"]}]
    done = axil("run", flow(["a echo"], edges, payload="fields"), "--input", '{"nam": 1}')
    assert done.code == 1
    assert 'The payload has "nam"; the edge wants "name".' in done.err


def test_an_output_that_is_the_empty_text_is_an_output(axil, flow):
    assert axil("run", flow(["a echo"]), "--input", "") == (0, "\n", "")


def test_seconds_are_shown_to_the_microsecond(axil, flow):
    seconds = axil("run", flow(["a echo"]), "--format", "json").data["usage"]["seconds"]
    assert seconds == round(seconds, 6)


def test_a_folder_is_no_file(axil, tmp_path):
    assert axil("run", tmp_path) == (
        2,
        "",
        f"error: AX100 {tmp_path}: this is a folder. Name a workflow file in it.\n",
    )


def test_a_graph_without_nodes_is_an_error(axil, flow, tmp_path):
    (tmp_path / "none.json").write_text('{"graph": {"nodes": []}}')
    done = axil("check", tmp_path / "none.json")
    assert done.code == 2
    assert "error: AX142" in done.out


class Deaf:
    """A channel on which the person thinks for a thousand seconds, and then goes away: the event
    loop's clock is put forward.
    """

    async def ask(self, question):
        sys.stdout.write(f"{question.text} > ")
        loop = asyncio.get_running_loop()
        now = loop.time
        loop.time = lambda: now() + 1000
        await asyncio.sleep(0.01)
        return MISSING


def test_progress_is_quiet_while_a_question_is_open_and_a_question_is_shown_once(
    flow, registry, capsys, monkeypatch
):
    known = Registry(Policy(), entry_points=[])
    known.register("nodes", "askt", registry.resolve("nodes", "askt"))
    known.register("channels", "terminal", Deaf)
    known.register("commands", "run", Run)
    known.register("loaders", "json", parse_json)
    monkeypatch.setattr(sys, "stdin", Typed(""))
    monkeypatch.setattr("axil_cli.main._registry", lambda options: known)
    monkeypatch.setattr("axil_cli.progress._NOTICE_SECONDS", 500)
    assert main(["run", flow(["a askt"]), "--progress"]) == Exit.PAUSED
    reported = capsys.readouterr().err
    assert reported.count("how much?") == 1
    assert "…" not in reported
    assert "The run is paused:" in reported


# --------------------------------------------------------------------------------------------------


def test_a_signal_that_comes_while_components_are_provisioned_ends_the_run(axil, flow, registry):
    ran: list[str] = []

    class Opened:
        async def provision(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            for _ in range(50):  # until the event loop has heard of it
                await asyncio.sleep(0)

        def run(self, messages: list[Any]) -> str:
            ran.append("ran")
            return "ran"

    registry.register("nodes", "opened", Opened)
    done = axil("run", flow(["a opened"]), "--input", "x")
    assert (done.code, ran) == (130, [])


UNRULY = """
import asyncio, sys, time
from axil.plugin import Registry, use_registry
from axil_cli import main
class Deaf:
    async def run(self) -> str:
        while True:
            try:
                print("at work", file=sys.stderr, flush=True)
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                continue
class Blocking:
    async def run(self) -> str:
        print("at work", file=sys.stderr, flush=True)
        while True:
            try:
                time.sleep(0.01)
            except BaseException:
                continue
class Thread:
    def run(self) -> str:
        print("at work", file=sys.stderr, flush=True)
        time.sleep(600)
class Elsewhere:
    async def run(self) -> str:
        await asyncio.to_thread(time.sleep, 600)
registry = Registry()
for kind in (Deaf, Blocking, Thread, Elsewhere):
    registry.register("nodes", kind.__name__.lower(), kind)
with use_registry(registry):
    main.script()
"""


STOPS_AT = """
import sys
class Stops:
    def find_spec(self, name, path=None, target=None):
        if name == stop:
            print("here", file=sys.stderr, flush=True)
            sys.stdin.read()
stop = sys.argv.pop(1)
sys.meta_path.insert(0, Stops())
from axil_command import script
script()
"""


@pytest.mark.parametrize("module", ["axil", "axil.registry", "axil_cli.launch", "axil_cli.schema"])
def test_an_interrupt_while_the_command_is_imported_is_quiet(module):
    command = [sys.executable, "-c", STOPS_AT, module, "schema"]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        try:
            assert process.stderr.readline() == "here\n"
            process.send_signal(signal.SIGINT)
            assert (process.wait(60), process.stderr.read()) == (130, "")
        finally:
            process.kill()


@pytest.mark.parametrize("kind", ["deaf", "blocking", "thread"])
def test_a_second_interrupt_ends_the_command_whatever_a_body_does(flow, kind):
    command = [sys.executable, "-c", UNRULY, "run", flow([f"a {kind}"]), "--input", "x"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr:
                if "at work" in line:
                    break
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):  # two that come at once may be one
                process.wait(1)
            process.send_signal(signal.SIGINT)
            # the second may find Python at its end, where no handler is left; a shell says 130, too
            assert process.wait(60) in (130, -signal.SIGINT)
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_interrupt_ends_the_command_though_a_body_holds_up_the_event_loop(flow, number):
    script = "import axil_cli.signals; axil_cli.signals._ANSWER_SECONDS = 0.1\n" + UNRULY
    command = [sys.executable, "-c", script, "run", flow(["a blocking"]), "--input", "x"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr:
                if "at work" in line:
                    break
            process.send_signal(number)
            assert process.wait(60) == 130
        finally:
            process.kill()


@pytest.mark.parametrize("kind", ["thread", "elsewhere"])
def test_a_thread_that_does_not_end_does_not_hold_up_the_end_of_the_command(flow, kind):
    made = flow([f"a {kind}"], limits={"seconds": 1})
    command = [sys.executable, "-c", UNRULY, "run", made, "--input", "x"]
    done = subprocess.run(command, capture_output=True, timeout=300)
    assert done.returncode == Exit.LIMITED


WITH_A_NODE = """
import sys
from axil.plugin import Registry, use_registry
from axil_cli.main import main
class Said:
    def run(self) -> str:
        return "said"
registry = Registry()
registry.register("nodes", "said", Said)
with use_registry(registry):
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no disk that is always full")
@pytest.mark.parametrize("format", ["text", "events"])
def test_a_full_disk_behind_the_output_is_reported_and_is_no_success(flow, format, monkeypatch):
    monkeypatch.setenv("AXIL_JOURNAL", "off")
    command = [
        sys.executable,
        "-c",
        WITH_A_NODE,
        "run",
        flow(["a said"]),
        "--input",
        "x",
        "--format",
        format,
    ]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        141,
        "error: the output cannot be written: No space left on device.\n",
    )


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\xff", b"%PDF-1.4 of letters alone"])
def test_an_input_that_is_no_text_is_refused_with_the_way_to_give_it(axil, tmp_path, data):
    (tmp_path / "seen.bin").write_bytes(data)
    nodes = "nodes: [{id: a, type: passthrough}], start: [a], end: [a]"
    (tmp_path / "flow.yaml").write_text(f"graph: {{id: g, {nodes}}}", "utf-8")
    file = str(tmp_path / "seen.bin")
    refused = axil("run", str(tmp_path / "flow.yaml"), "--journal", "off", "--input-file", file)
    assert refused.code == 2
    assert f"--attach {file}" in refused.err


def test_a_run_is_cancelled_though_its_journal_was_away_for_a_while(monkeypatch):
    letter = RunMail(1, "r", Entry("ended", data={"status": "cancelled", "error": "enough"}))

    class Away:
        found: ClassVar[list[Any]] = [JournalError("it is away.", id="AX502"), [], [letter]]

        def mail(self, run_ids: Any) -> Any:
            found = self.found.pop(0)
            if isinstance(found, JournalError):
                raise found
            return found

        def discard(self, numbers: Any) -> None:
            pass

    class Running:
        id = "r"

        def cancel(self, reason: str) -> None:
            raise EOFError(reason)

    monkeypatch.setattr(job, "_LOOK", 0)
    with pytest.raises(EOFError, match="enough"):
        asyncio.run(job._obey(Running(), Away()))
