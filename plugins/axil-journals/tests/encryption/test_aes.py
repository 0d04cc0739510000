"""Encrypted journals: nothing is readable on the disk, and all of it with the key."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from axil import RootGraph
from axil.plugin import JournalError, NotInstalled
from axil_cli.main import main
from axil_journals import Aes, Entry, fork, steps
from axil_sqlite import SqliteJournal
from axil_testing.kit import JournalKit

PLANTED = "the-heron-nests-at-midnight"
ONE, TWO = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AXIL_JOURNAL_KEY", ONE)
    monkeypatch.delenv("AXIL_JOURNAL_KEY_FILE", raising=False)


class TestEncrypted(JournalKit):
    shared = True
    """An encrypted journal passes the laws of every journal."""

    component = SqliteJournal
    durable = True
    number = itertools.count()

    def make(self) -> Any:
        return SqliteJournal(self.folder / str(next(self.number)), cipher=Aes())

    def reopen(self, journal: Any) -> Any:
        return SqliteJournal(journal.config.folder, cipher=Aes())


def letters() -> RootGraph:
    """Return a graph of a step, outputs and a question, with the planted text in all of them."""

    async def write(inputs: Any, ctx: Any) -> dict[str, Any]:
        async def read() -> str:
            return f"{PLANTED} read"

        await ctx.step("read", read)
        said = await ctx.ask(f"{PLANTED}, yes?", name="q")
        long = [f"{number} {PLANTED}" for number in range(2_000)]
        return {"short": f"{PLANTED} {said} {inputs['x']}", "long": long}

    graph = RootGraph("letters")
    node = graph.create_node(write, name="write")
    graph.edge_from_entry(node, keys={"x": ""})
    graph.edge_to_exit(node, keys={"short": "", "long": ""})
    graph.build()
    return graph


def written(folder: Path) -> SqliteJournal:
    """Return a journal with a paused run, and one that is done."""
    journal, graph = SqliteJournal(folder, cipher=Aes()), letters()

    async def go() -> None:
        for run_id in ("waits", "done"):
            await graph.run({"x": f"{PLANTED} in"}, journal=journal, run_id=run_id, thread=run_id)
        result = await graph.resume("done", journal=journal, answers={"write?q": PLANTED})
        assert result.status == "done"

    asyncio.run(go())
    return journal


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_nothing_is_in_clear_on_the_disk_and_all_of_it_is_read_with_the_key(tmp_path):
    journal = written(tmp_path)
    before = bytes_of(tmp_path)  # the log of the database is there
    journal.close()
    for found in (before, bytes_of(tmp_path)):
        assert len(found) > 60_000
        assert PLANTED.encode() not in found
        assert b"heron" not in found
    again = SqliteJournal(tmp_path, cipher=Aes())
    assert {run.run_id: run.status for run in again.runs()} == {"waits": "paused", "done": "done"}
    assert any(PLANTED in str(step.output) for step in steps(again.entries("done")))
    assert list(again.examine()) == []
    asyncio.run(fork(again, "done", "forked", at=2))
    result = asyncio.run(letters().resume("waits", journal=again, answers={"write?q": "yes"}))
    assert result.output["short"] == f"{PLANTED} yes {PLANTED} in"
    again.close()
    assert b"heron" not in bytes_of(tmp_path)


@pytest.mark.parametrize(
    ("cipher", "id"),
    [(None, "AX515"), (Aes(variable="OTHER"), "AX514"), (Aes(variable="NONE"), "AX513")],
)
def test_without_the_key_nothing_is_read_and_nothing_written(tmp_path, monkeypatch, cipher, id):
    first = written(tmp_path)
    before = {run.run_id: first.entries(run.run_id) for run in first.runs()}
    first.close()
    monkeypatch.setenv("OTHER", TWO)
    journal = SqliteJournal(tmp_path, cipher=cipher)
    for use in (journal.runs, lambda: journal.entries("done"), lambda: journal.open("new")):
        with pytest.raises(JournalError, match=id):
            use()
    journal.close()
    again = SqliteJournal(tmp_path, cipher=Aes())
    assert {run.run_id: again.entries(run.run_id) for run in again.runs()} == before
    again.close()


def test_a_new_key_encrypts_and_the_old_one_still_decrypts(tmp_path, monkeypatch):
    written(tmp_path).close()
    monkeypatch.setenv("AXIL_JOURNAL_KEY", f"{TWO} {ONE}")
    journal = SqliteJournal(tmp_path, cipher=Aes())
    assert len(journal.entries("done")) > 2
    asyncio.run(letters().run({"x": "y"}, journal=journal, run_id="later"))
    journal.forget("done")
    journal.forget("waits")
    journal.close()
    monkeypatch.setenv("AXIL_JOURNAL_KEY", TWO)
    journal = SqliteJournal(tmp_path, cipher=Aes())
    assert [run.run_id for run in journal.runs()] == ["later"]
    assert list(journal.examine()) == []
    journal.close()


def test_an_entry_that_was_moved_or_changed_is_noticed(tmp_path):
    journal = written(tmp_path)
    with journal.writer.lock, journal.writer.store.writing() as connection:
        connection.execute("update entries set seq = seq + 100 where kind = 'step'")
    with pytest.raises(JournalError, match="AX514"):
        journal.entries("done")
    journal.close()


def test_a_key_in_a_file_is_its_users_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("AXIL_JOURNAL_KEY")
    file = tmp_path / "key"
    file.write_text(f"{ONE}\n")
    file.chmod(0o600)
    monkeypatch.setenv("AXIL_JOURNAL_KEY_FILE", str(file))
    sealed = Aes().seal(b"text", b"about")
    assert Aes(file=file).open(sealed, b"about") == b"text"
    if os.name != "nt":
        file.chmod(0o640)
        with pytest.raises(JournalError, match=r"AX513.*0640.*chmod 600"):
            Aes().seal(b"text", b"about")
    file.write_text("c2hvcnQ=")
    file.chmod(0o600)
    with pytest.raises(JournalError, match=r"AX513.*32 bytes") as caught:
        Aes().seal(b"text", b"about")
    assert "c2hvcnQ" not in str(caught.value)


def test_a_sealed_text_opens_only_for_what_it_belongs_to():
    cipher = Aes()
    sealed = cipher.seal(b"text", b"here")
    assert sealed != cipher.seal(b"text", b"here")
    with pytest.raises(JournalError, match="AX514"):
        cipher.open(sealed, b"there")
    with pytest.raises(JournalError, match="AX514"):
        cipher.open(sealed[:-1], b"here")


def test_the_command_reads_and_writes_with_the_key(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    nodes = [{"id": "n", "type": "passthrough"}]
    flow = {"graph": {"id": "g", "start": ["n"], "end": ["n"], "nodes": nodes, "edges": []}}
    Path("flow.json").write_text(json.dumps(flow))
    assert main(["run", "flow.json", "--input", PLANTED, "--run-id", "r"]) == 0
    assert main(["runs", "show", "r", "--format", "json"]) == 0
    assert PLANTED in capsys.readouterr().out
    assert b"heron" not in bytes_of(tmp_path / ".axil")
    monkeypatch.delenv("AXIL_JOURNAL_KEY")
    assert main(["runs", "list"]) != 0
    assert "AX515" in capsys.readouterr().err


def test_runs_that_were_recorded_before_there_was_a_key_are_read(tmp_path):
    plain = SqliteJournal(tmp_path)

    async def go() -> None:
        writer = plain.open("r")
        writer.append(Entry("run", data={"long": ["x" * number for number in range(200)]}))
        writer.close()

    asyncio.run(go())
    entries = plain.entries("r")
    plain.close()
    journal = SqliteJournal(tmp_path, cipher=Aes())
    assert journal.entries("r") == entries
    journal.close()


def test_a_missing_library_is_named_with_the_extra_that_brings_it(monkeypatch):
    for name in [each for each in sys.modules if each.startswith("cryptography")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for act in (
        Aes().digest,
        lambda text: Aes().open(text, b""),
        lambda text: Aes().seal(text, b""),
    ):
        with pytest.raises(
            NotInstalled, match=r"(?s)AX306 .*cryptography.*journals.*\[encryption\]"
        ):
            act(b"text")
