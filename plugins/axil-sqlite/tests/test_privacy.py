"""Laws of the folder: it is its user's alone, and no other process holds one up for ever."""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat

import pytest

from axil import RootGraph
from axil.plugin import JournalError
from axil_sqlite import SqliteJournal


def graph() -> RootGraph:
    made = RootGraph("g")
    made.create_node(lambda inputs: {"text": "x" * 200_000}, name="n")
    made.edge_from_entry("n", {})
    made.edge_to_exit("n", {"text": ""})
    return made.build()


def modes(folder):
    found = [folder, *folder.rglob("*")]
    return {
        (each.name if each.parent == folder else "…", each.is_dir()): stat.S_IMODE(
            each.stat().st_mode
        )
        for each in found
        if each.name != ".gitignore"
    }


def test_what_is_kept_is_readable_by_its_user_alone(tmp_path):
    before = os.umask(0)
    try:
        folder = tmp_path / "kept"
        journal = SqliteJournal(folder)
        asyncio.run(graph().run({}, journal=journal, run_id="r"))
        found = modes(folder)
    finally:
        os.umask(before)
    assert {"runs.db", "runs.db-wal", "runs.db-shm", "lock"} <= {name for name, _ in found}
    for (name, is_folder), mode in found.items():
        assert mode == (0o700 if is_folder else 0o600), name
    journal.close()


def test_a_folder_that_others_may_use_stays_so(tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    folder.chmod(0o750)
    SqliteJournal(folder).runs()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750


def test_a_lock_that_is_never_let_go_of_is_an_error_that_says_what_holds_it(tmp_path, monkeypatch):
    monkeypatch.setattr("axil_sqlite.store.PATIENCE", 0.05)
    SqliteJournal(tmp_path).runs()
    with (tmp_path / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(JournalError, match=rf"AX510.*process {os.getpid()}.*holds its lock"):
            SqliteJournal(tmp_path).runs()
    assert SqliteJournal(tmp_path).runs() == []


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_name_that_no_folder_can_have_is_said_so(tmp_path, name):
    with pytest.raises(JournalError, match=r"AX510.*no folder can have this name"):
        SqliteJournal(f"{tmp_path}/{name}").runs()
