"""Laws of the rescue of damaged databases: nothing that is not so is rescued, and all that is lost
is said.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from axil.plugin import JournalError
from axil_journals import Entry, Queue
from axil_sqlite import SqliteJournal

PAGE = 4096


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> tuple[Path, dict[str, list[Entry]]]:
    """Return a folder with a journal of several runs, and their entries."""
    folder = tmp_path_factory.mktemp("sound")
    journal, texts = SqliteJournal(folder, sync="normal"), random.Random(7)
    for run in range(8):
        writer = journal.open(f"run-{run}")
        writer.append(Entry("run", data={"graph": "g", "inputs": {"x": run}}))
        for at in range(6):
            text = texts.randbytes(900 if at < 5 else 9_000).hex()  # the last one is kept in parts
            writer.append(Entry("done", (), "n", (at,), {"text": text}))
        writer.close()
    kept = {f"run-{run}": list(journal.entries(f"run-{run}")) for run in range(8)}
    journal.close()
    return folder, kept


def check(folder: Path, kept: dict[str, list[Entry]]) -> int:
    """Check what was rescued; return how many runs are whole."""
    before = {path.name for path in folder.iterdir()}
    journal = SqliteJournal(folder, sync="normal")
    found = journal.repair()
    assert list(journal.examine()) == []
    named, whole = {damage.run_id for damage in found.lost}, 0
    there = {info.run_id for info in journal.runs()}
    for run_id, entries in kept.items():
        read = list(journal.entries(run_id)) if run_id in there else []
        assert read == entries[: len(read)]
        whole += read == entries
        assert read == entries or {run_id, ""} & named, f"{run_id} is cut, and nobody says so"
    assert {path.name for path in folder.iterdir()} - before <= {
        *(f"runs.db-damaged-1{ending}" for ending in ("", "-wal")),
        ".gitignore",
        "lock",
        "runs.db-wal",
        "runs.db-shm",
    }
    writer = journal.open("new")  # it goes on
    writer.append(Entry("run", data={"graph": "g", "inputs": {}}))
    writer.close()
    journal.close()
    return whole


def damaged(sound: Path, folder: Path, place: int, data: bytes) -> Path:
    shutil.copytree(sound, folder)
    with (folder / "runs.db").open("r+b") as file:
        file.seek(place)
        file.write(data)
    return folder


@pytest.mark.parametrize("data", [bytes(PAGE), b"x" * PAGE], ids=["zeros", "letters"])
def test_of_each_page_that_is_lost_the_rest_is_rescued(sound, tmp_path, data):
    folder, kept = sound
    pages = os.path.getsize(folder / "runs.db") // PAGE
    step = 1 if os.environ.get("AXIL_HYPOTHESIS") == "thorough" else max(1, pages // 5)
    wholes = [
        check(damaged(folder, tmp_path / str(page), page * PAGE, data), kept)
        for page in range(0, pages, step)
    ]
    assert sum(wholes) >= len(wholes) * 5


@pytest.mark.parametrize("place", [0, 100], ids=["header", "schema"])
def test_a_database_whose_first_page_is_lost_is_rescued_whole(sound, tmp_path, place):
    folder, kept = sound
    data = b"no database " * 8 if not place else b"x" * (PAGE - 100)
    assert check(damaged(folder, tmp_path / "d", place, data), kept) == len(kept)


def test_the_damaged_database_is_kept_as_it_was(sound, tmp_path):
    folder = damaged(sound[0], tmp_path / "d", 5 * PAGE, bytes(PAGE))
    before = (folder / "runs.db").read_bytes()
    journal = SqliteJournal(folder, sync="normal")
    assert journal.repair().old.read_bytes() == before
    journal.close()


def test_of_what_is_no_database_nothing_is_rescued_and_that_is_said(tmp_path):
    (tmp_path / "runs.db").write_bytes(b"nothing of it " * 1000)
    journal = SqliteJournal(tmp_path)
    found = journal.repair()
    assert (found.runs, found.lost[0].problem) == (0, "nothing of it can be read")
    assert list(journal.runs()) == []
    journal.close()


def test_where_there_is_no_database_none_is_repaired(tmp_path):
    with pytest.raises(JournalError, match=r"AX510.*no database"):
        SqliteJournal(tmp_path / "none").repair()


def test_rescued_runs_stay_in_their_queues_with_the_rules_and_the_names_of_these(tmp_path):
    journal = SqliteJournal(tmp_path, sync="normal")
    journal.set_queues([Queue(name="q", concurrency=1)])
    for run_id, more in (("a", {"once": "one"}), ("b", {})):
        writer = journal.open(run_id)
        place = {"queue": "q", "key": "k", **more}
        writer.append(Entry("run", data={"graph": "g", "place": place}))
        writer.close()
    asked = [
        "select run, queue, key from runs order by id",
        "select name, concurrency from queues",
        "select * from once",
    ]
    before = [journal.query(sql) for sql in asked]
    assert journal.repair().lost == []
    assert [journal.query(sql) for sql in asked] == before
    assert list(journal.take(9, 1e12)) == ["a"]
    journal.close()
