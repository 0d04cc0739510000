"""Laws of leave that is kept with a run: whose it is, what it holds for, when it is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from axil_journals import Entry, ReplayIndex

journals = pytest.importorskip("axil_sqlite", reason="runs are kept by axil-sqlite")

FUNCTION = "def loud(text: str) -> str:\n    return text.upper()\n"
LEAVE = ("--allow", "code", "--functions", "own")


@pytest.fixture
def home(axil, tmp_path, monkeypatch):
    """Return a folder with functions; the key of leave is beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AXIL_JOURNAL", "kept")
    monkeypatch.setenv("AXIL_LEAVE_KEY_FILE", str(tmp_path / "key/leave.key"))
    (tmp_path / "own").mkdir()
    (tmp_path / "own/loud.py").write_text(FUNCTION)
    return tmp_path


@pytest.fixture
def begun(axil, flow, home):
    """Return what begins a run ``r`` that pauses, and then needs code; it gives the file."""

    def begin(*more: str, code: int = 3) -> Path:
        edge = {"from": "a", "to": "b", "process": "loud"}
        file = flow(["a askt", "b echo"], [edge], end=["b"], vars={"tone": "dry"})
        done = axil("run", file, "--input", "hi", "--run-id", "r", *LEAVE, *more)
        assert done.code == code, done.err
        return Path(file)

    return begin


def recorded(run_id: str = "r") -> list[Entry]:
    journal = journals.SqliteJournal("kept")
    try:
        return list(journal.entries(run_id))
    finally:
        journal.close()


def kept(run_id: str = "r") -> dict[str, Any]:
    return ReplayIndex(recorded(run_id)).origin


def store(run_id: str, header: Mapping[str, Any] | None = None, **origin: Any) -> None:
    """Store the record of ``r`` as another run, with another origin or header."""
    journal = journals.SqliteJournal("kept")
    writer = journal.open(run_id)
    for each in list(journal.entries("r")):
        data = dict(each.data)
        if "origin" in data:
            data = {**data, "origin": {**data["origin"], **origin}, **(header or {})}
        writer.append(Entry(each.kind, each.frame, each.node, each.ordinal, data))
    writer.close()
    journal.close()


def test_a_run_is_answered_with_the_leave_that_it_began_with(axil, begun):
    begun()
    done = axil("runs", "answer", "r", "5")
    assert (done.code, done.out) == (0, "THE ANSWER IS 5\n"), done.err


def test_a_paused_run_does_not_ask_for_leave_that_it_keeps(axil, begun):
    begun()
    done = axil("runs", "fork", "r", "--as", "s")
    assert done.err.strip() == "Resume it: axil runs resume s"
    assert "The run is kept: axil runs answer s ANSWER\n" in axil("runs", "resume", "s").err
    assert axil("runs", "answer", "s", "5").out == "THE ANSWER IS 5\n"


def test_the_same_command_again_without_leave_goes_on(axil, begun):
    file = begun()
    Path("answers").write_text("5\n")
    again = ("--run-id", "r", "--input", "hi", "--answers", "answers")
    assert axil("run", str(file), *again).out == "THE ANSWER IS 5\n"


CHANGES: dict[str, dict[str, Any]] = {
    "other-functions": {"functions": "/"},
    "no-digests": {"function_digests": {}},
    "another-text": {"texts": {"flow.json": "{}"}},
    "another-place": {"file": "/flow.json"},
    "other-variables": {"vars": {"tone": "loud"}},
    "another-word": {"allow": ["code", "network"]},
    "another-code": {"leave": "0" * 64},
    "no-code": {"leave": None},
}


def test_leave_in_a_record_that_others_changed_does_not_hold(axil, begun):
    begun()
    commands = [("answer", "no-code", "5"), ("show", "no-code", "--at", "1")]
    for name, change in CHANGES.items():
        store(name, **change)
        commands.append(("resume", name))
    for command in commands:
        refused = axil("runs", *command)
        assert refused.code == 2, refused
        assert "--allow code" in refused.err, command


def test_leave_of_another_user_does_not_hold(axil, begun, monkeypatch):
    begun()
    monkeypatch.setenv("AXIL_LEAVE_KEY_FILE", "elsewhere/leave.key")
    assert "--allow code" in axil("runs", "answer", "r", "5").err
    assert not Path("elsewhere").exists()


@pytest.mark.skipif(os.name == "nt", reason="files have other permissions there")
def test_a_key_that_others_can_read_is_none(axil, begun):
    begun()
    Path("key/leave.key").chmod(0o644)
    assert "--allow code" in axil("runs", "answer", "r", "5").err


def test_a_changed_file_has_no_leave_that_an_older_one_was_given(axil, begun):
    file = begun()
    file.write_text(file.read_text("utf-8").replace('"dry"', '"wet"'), "utf-8")
    for command in (("resume", "r", "--migrate"), ("fork", "r", "--as", "f", "--current")):
        refused = axil("runs", *command)
        assert refused.code == 2, refused
        assert "--allow code" in refused.err
    assert axil("runs", "answer", "r", "5").out == "THE ANSWER IS 5\n"


@pytest.mark.parametrize("change", ["changed", "added", "gone"])
def test_functions_that_changed_are_said_before_anything_is_called(axil, begun, change):
    begun()
    mark = "open('ran', 'w').close()\n" + FUNCTION
    place = Path("own/more.py" if change == "added" else "own/loud.py")
    if change == "gone":
        place.rename("own/other.py")
    else:
        place.write_text(mark)
    refused = axil("runs", "answer", "r", "5")
    assert refused.code == 2
    assert "since the run began, functions in" in refused.err
    assert place.name in refused.err
    assert not Path("ran").exists()


def test_functions_that_changed_are_used_with_leave_for_them(axil, begun):
    begun()
    Path("own/loud.py").write_text(FUNCTION.replace("upper", "title"))
    done = axil("runs", "answer", "r", "5", "--allow", "code")
    assert done.out == "The Answer Is 5\n"
    assert "note: since the run began, functions in" in done.err


def test_settings_and_leave_of_a_resumption_are_kept_for_the_next(axil, begun):
    begun()
    assert axil("runs", "resume", "r", "--set", "tone=loud", "--allow", "network").code == 3
    assert kept()["vars"] == {"tone": "loud"}
    assert kept()["allow"] == ["code", "network"]
    assert axil("runs", "resume", "r").code == 3  # nothing new, and nothing written of it
    assert len([each for each in recorded() if "now" in each.data]) == 1
    assert axil("runs", "answer", "r", "5").code == 0


def test_a_secret_of_a_resumption_is_kept_by_its_name(axil, begun):
    begun()
    assert axil("runs", "resume", "r", "--set", "API_KEY=sk-1234567890").code == 3
    assert kept()["secret_vars"] == ["API_KEY"]
    assert "sk-1234567890" not in str(recorded())
    refused = axil("runs", "answer", "r", "5")
    assert "AX700 API_KEY: the run was begun with this secret" in refused.err


def test_a_worker_executes_a_run_with_the_leave_that_it_was_submitted_with(
    axil, flow, home, caplog
):
    edge = {"from": "a", "to": "b", "process": "loud"}
    file = flow([{"id": "a", "type": "say", "config": {"text": "x"}}, "b echo"], [edge], end=["b"])
    assert axil("submit", file, "--input", "hi", "--run-id", "r", *LEAVE).code == 0
    store("q", {"allow": ["code"]}, leave=None)
    assert axil("worker", "--drain").code == 0
    assert ReplayIndex(recorded()).ended.data["status"] == "done"
    assert ReplayIndex(recorded("q")).ended is None
    assert "run q was interrupted: AX700 --allow-code" in caplog.text


def test_a_worker_warns_of_leave_that_it_lacks_and_executes_runs_that_bring_theirs(
    axil, flow, home
):
    file = flow([{"id": "a", "type": "python", "config": {"code": "print(1)"}}])
    assert axil("submit", file, "--input", "hi", "--run-id", "r", "--allow", "code").code == 0
    worked = axil("worker", file, "--drain")
    assert worked.code == 0
    assert "warning: AX138" in worked.err
    assert "--allow code" in worked.err
    assert ReplayIndex(recorded()).ended.data["status"] == "done"
    assert "warning" not in axil("worker", file, "--drain", "--allow", "code").err


def test_with_logs_as_json_each_line_of_a_worker_is_json(flow, home):
    file = flow([{"id": "a", "type": "python", "config": {"code": "print(1)"}}])
    start = "import sys; from axil_cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", start, "worker", file, "--drain", "--log", "json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    warned, ready = (json.loads(line) for line in done.stderr.splitlines())
    assert (warned["level"], ready["level"]) == ("warning", "info")
    assert "AX138" in warned["message"]


def test_a_status_that_no_run_has_is_refused(axil, begun):
    begun()
    for doing in ("list", "prune"):
        refused = axil("runs", doing, "--status", "faild")
        assert refused.code == 2
        assert "invalid choice: 'faild'" in refused.err
        assert axil("runs", doing, "--status", "failed", "--status", "parked").code == 0


def test_ways_to_continue_with_other_plugins_name_leave_where_files_have_changed(axil, begun):
    file = begun()
    run = next(each for each in recorded() if each.kind == "run").data
    pins = {name: {**pin, "version": "0.0.1"} for name, pin in run["pins"].items()}
    store("old", {"pins": pins})
    refused = axil("runs", "answer", "old", "5")
    assert "AX524" in refused.err
    assert "axil runs resume old --migrate\n" in refused.err
    assert "--allow" not in refused.err
    file.write_text(file.read_text("utf-8").replace('"dry"', '"wet"'), "utf-8")
    refused = axil("runs", "answer", "old", "5")
    assert "axil runs resume old --migrate --allow code\n" in refused.err


def test_a_run_whose_file_another_plugin_cannot_read_names_the_plugin_and_the_ways(axil, begun):
    begun()
    run = next(each for each in recorded() if each.kind == "run").data
    pins = {name: {**pin, "version": "0.0.1"} for name, pin in run["pins"].items()}
    texts = {name: text.replace("askt", "asks") for name, text in kept()["texts"].items()}
    store("old", {"pins": pins}, texts=texts)
    refused = axil("runs", "answer", "old", "5", "--allow", "code")
    assert "AX524 the run was begun with other plugins: " in refused.err
    assert 'unknown node type "asks"' in refused.err
    assert "axil runs resume old --migrate" in refused.err
