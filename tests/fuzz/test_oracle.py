"""The oracle sees what it is for: each test plants a fault that it must find."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal as signals
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from axil.plugin import Policy

from ..internals import internal

sys.path.insert(0, str(Path(__file__).parent))
import damaged
import oracle

rows, lock = internal("rows"), internal("lock")
internal("sqlite_journal")  # what it imports is what is replaced below


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.setenv("WANTED", oracle.WANTED)
    monkeypatch.setenv("OPENAI_API_KEY", oracle.MAKERS)
    monkeypatch.chdir(tmp_path)


def found(text: str) -> dict[str, str]:
    """Return the faults of a workflow file, by the commands."""
    file = Path("flow.json")
    file.write_text(text)
    return dict(oracle.faults_of_workflow(file))


def said(content: str, more: str = "") -> str:
    node: dict[str, Any] = {"id": "a", "type": "literal", "config": {"content": content}}
    return json.dumps({"graph": {"id": "g", "nodes": [node], "start": ["a"]}, "vars": {"K": more}})


def test_a_file_that_is_fine_has_no_faults():
    assert found(said("hello ${API_KEY}")) == {}


@pytest.mark.parametrize("place", ["said", "kept"])
def test_a_secret_that_is_leaked_is_seen(monkeypatch, place):
    if place == "said":
        monkeypatch.setattr(internal("cli_main"), "stream_without_secrets", lambda stream: stream)
    else:
        monkeypatch.setattr(rows, "without_secrets", lambda value: value)
    assert ("left" if place == "kept" else "run") in found(said("hello ${API_KEY}"))


def test_a_variable_that_was_not_granted_is_seen(monkeypatch):
    monkeypatch.setattr(internal("grants").Grants, "allows", lambda *given: True)
    assert {"check", "run", "left"} & found(said("hello ${WANTED}")).keys()


def test_a_writer_that_changes_a_file_is_seen(monkeypatch):
    def changed(spec: Any) -> Any:
        data = written(spec)
        data["graph"]["nodes"][0]["config"]["content"] = "bye"
        return data

    written = oracle.dump_spec
    monkeypatch.setattr(oracle, "dump_spec", changed)
    assert list(found(said("hello"))) == ["canonical"]


def test_a_journal_that_says_something_else_is_seen(monkeypatch):
    read = rows.row_entries

    def changed(*given: Any) -> Any:
        return [
            (seq, entry._replace(data={**entry.data, "output": "bye"}))
            if entry.kind == "ended"
            else (seq, entry)
            for seq, entry in read(*given)
        ]

    for module in list(sys.modules.values()):
        if vars(module).get("row_entries") is read:  # attributes may be made when they are read
            monkeypatch.setattr(module, "row_entries", changed)
    assert "shown" in found(said("hello"))


def test_a_result_that_is_printed_differently_is_seen(monkeypatch):
    monkeypatch.setattr(oracle, "_again", lambda *given: {"status": "done", "output": "bye"})
    assert found(said("hello")) == {}  # the same file twice gives what differs: undecided


def test_check_and_run_that_disagree_are_seen(monkeypatch):
    done = oracle.ended

    def ended(arguments: Any) -> Any:
        return done(["--version"]) if arguments[0] == "check" else done(arguments)

    monkeypatch.setattr(oracle, "ended", ended)
    assert "agree" in found('{"graph": {"nodes": [{"id": "a", "type": "no_such"}]}}')


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Return a function that makes a file of a kind, changes it, and reads it."""
    monkeypatch.setattr(damaged, "_whole", {})

    def read(kind: str, change: Any) -> str:
        for name in dict.fromkeys([kind, "lock"]) if kind == "locked" else [kind]:
            made = tmp_path / name
            made.mkdir()
            os.chdir(made)
            damaged.KINDS[name].make(made)
        work = tmp_path / "at work"
        shutil.copytree(tmp_path / kind, work)
        os.chdir(work)
        file = work / damaged.KINDS[kind].file
        file.write_bytes(change(file.read_bytes()))
        return damaged.KINDS[kind].use(work) or oracle.left(work)

    return read


def test_a_journal_that_gives_what_was_not_written_is_seen(kept):
    def forged(data: bytes) -> bytes:
        """Change entries, and their checksums with them: no journal can see it."""
        Path("forged.db").write_bytes(data)
        with contextlib.closing(sqlite3.connect("forged.db")) as database:
            found = database.execute(
                "SELECT id, seq, kind, who, body FROM entries WHERE body LIKE '%ok ${API_KEY}%'"
            ).fetchall()
            for id, *row in found:
                row[3] = row[3].replace("ok ${API_KEY}", "no ${API_KEY}")
                given = (row[3], rows.EntryRow(*row).crc, id)
                database.execute("UPDATE entries SET body = ?, crc = ? WHERE id = ?", given)
            database.commit()
        return Path("forged.db").read_bytes()

    assert "it is read as" in kept("journal", forged)


def test_a_journal_with_an_entry_that_is_not_sound_is_fine_where_that_is_said(kept):
    def changed(data: bytes) -> bytes:
        assert b"ok ${API_KEY}" in data
        return data.replace(b"ok ${API_KEY}", b"no ${API_KEY}")

    assert kept("journal", changed) == ""


def test_a_recording_that_gives_what_was_not_said_is_seen(kept):
    def forged(data: bytes) -> bytes:
        exchange = json.loads(data)
        exchange.pop("checksum")
        exchange["reply"]["text"] = "no"
        return (
            json.dumps({**exchange, "checksum": internal("recording").digest(exchange)}).encode()
            + b"\n"
        )

    assert "it gives no" in kept("recording", forged)


@pytest.mark.parametrize("kind", ["lock", "locked"])
def test_a_lock_that_passes_with_another_digest_is_seen(kept, monkeypatch, kind):
    monkeypatch.setattr(lock, "_changes", lambda *given: ())

    def changed(data: bytes) -> bytes:
        found = json.loads(data)
        found["distributions"]["pydantic"]["digest"] = "sha256:" + "0" * 64
        return json.dumps(found).encode()

    assert "it is read as" in kept(kind, changed)


def test_a_cache_that_gives_what_was_not_kept_is_seen(kept, monkeypatch):
    monkeypatch.setattr(internal("cache_store"), "_checksum", lambda *given: "the same")
    assert kept("cache", lambda data: data.replace(b": 1}", b": 2}")) != ""


def test_a_policy_that_is_read_with_less_in_it_is_seen(kept, monkeypatch):
    monkeypatch.setattr(damaged.Policy, "from_file", lambda path: Policy())
    assert "it is read as" in kept("policy", lambda data: data)


def test_a_caller_that_has_more_rights_than_its_file_says_is_seen(kept, monkeypatch):
    monkeypatch.setattr(internal("access"), "RIGHTS", ("look", "run", "answer", "edit"))
    text = b'{"ada": {"sha256": "' + b"ab" * 32 + b'"}}'
    assert "it is read as" in kept("tokens", lambda data: text)


def test_a_batch_that_mixes_its_rows_is_seen(kept, monkeypatch):
    monkeypatch.setattr(damaged, "ECHO", damaged.FLOW)
    kind = damaged.KINDS["rows-lines"]
    made = damaged.written(kind.file, '{"message": "x"}\n', damaged.FLOW)
    monkeypatch.setitem(damaged.KINDS, "rows-lines", kind._replace(make=made))
    assert "it is read as" in kept("rows-lines", lambda data: data)


def test_components_of_others_that_a_manifest_takes_are_seen(kept, monkeypatch):
    def changed(data: bytes) -> bytes:
        damaged._whole["components"][0].pop()
        return data

    assert "AssertionError" in kept("manifest", changed)


CASE = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
import shares
shares.SECONDS, shares.WAITS = 0.3, 2
shares.limit()
shares.begin("case", 7)
{what}
"""


@pytest.mark.skipif(os.name == "nt", reason="a process has no limits there")
@pytest.mark.parametrize(
    ("what", "signal"),
    [
        ("while True: pass", "SIGPROF"),
        ("import re; re.match('(a+)+$', 'a' * 40 + 'b')", "SIGPROF"),
        ("threading.Event().wait()", "SIGABRT"),
        ("import os; os.read(os.pipe()[0], 1)", "SIGABRT"),
        ("time.sleep(0.5)", ""),
    ],
)
def test_a_case_that_computes_or_waits_for_ever_is_ended_and_says_where(what, signal):
    """``SIGABRT``: where the system tells of each thread whether it sleeps."""
    if signal == "SIGABRT" and not Path("/proc/self/stat").exists():
        pytest.skip("the system has no /proc")
    done = subprocess.run(
        [sys.executable, "-c", CASE.format(what=what), str(Path(oracle.__file__).parent)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == (-getattr(signals, signal) if signal else 0)
    assert done.stderr.startswith("case 7\n")
    assert ('File "<string>", line 8' in done.stderr) is bool(signal)


def test_a_secret_in_a_file_that_is_left_is_seen(kept):
    def changed(data: bytes) -> bytes:
        Path("left.txt").write_text(f"Bearer {oracle.GIVEN}")
        return data

    assert "a secret is in left.txt" in kept("memory", changed)
