"""Databases of every schema version there has been: each opens, is brought up to date, and its runs
go on.
"""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from axil.plugin import JournalError
from axil_cli.main import main
from axil_journals import ReplayIndex, fork, steps
from axil_sqlite import SqliteJournal, store

GOLDEN = Path(__file__).parent / "golden"
VERSIONS = sorted(GOLDEN.glob("version-*.db"))
CODE = frozenset({"code"})


def letters() -> Any:
    spec = importlib.util.spec_from_file_location("axil_sqlite_golden", GOLDEN / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.letters()


@pytest.fixture(params=VERSIONS, ids=lambda path: path.stem)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    shutil.copy(request.param, tmp_path / "runs.db")
    journal = SqliteJournal(tmp_path)
    yield journal
    journal.close()


def test_there_is_a_golden_database_of_every_version():
    assert [path.stem for path in VERSIONS] == [
        f"version-{number}" for number in range(1, store.VERSION + 1)
    ]


def test_its_runs_are_listed_and_sound(kept):
    assert {info.run_id: info.status for info in kept.runs()} == {
        "done": "done",
        "paused": "paused",
        "failed": "failed",
        "forked": "open",
    }
    assert kept.thread("t") == ["done"]
    assert kept.examine() == []
    assert kept.query("pragma user_version") == [(store.VERSION,)]
    [fetched] = [
        step.output["fetch"] for step in steps(kept.entries("done")) if step.kind == "step"
    ]
    assert (str(fetched["nan"]), fetched["huge"], fetched["set"]) == ("nan", 2**70, {1, 2})


def test_its_runs_go_on_and_nothing_that_was_done_is_done_again(kept):
    graph = letters()
    for run_id, answers in (
        ("paused", {"asks?n": 7}),
        ("failed", {"asks?n": 7}),
        ("forked", {"asks?n": 7}),
    ):
        done = {str(who) for who in ReplayIndex(kept.entries(run_id)).done}
        fired: list[str] = []

        class Watch:
            def firing_started(self, activation: Any, kind: str, fired: list[str] = fired) -> None:
                fired.append(str(activation))

        result = asyncio.run(
            graph.resume(run_id, journal=kept, answers=answers, observers=[Watch()], allow=CODE)
        )
        assert (result.output, result.attributes["turns"]) == ({"answer": 7, "huge": 2**70}, 2)
        assert done.isdisjoint(fired)
    assert {info.status for info in kept.runs()} == {"done"}


def test_its_runs_are_forked_and_its_threads_go_on(kept):
    graph = letters()
    asyncio.run(fork(kept, "done", "again", at=3))
    assert (
        asyncio.run(graph.resume("again", journal=kept, answers={"asks?n": 1}, allow=CODE)).output[
            "answer"
        ]
        == 1
    )
    result = asyncio.run(
        graph.start(
            {}, journal=kept, run_id="next", thread="t", answers={"asks?n": 2}, allow=CODE
        ).result()
    )
    assert (result.output["answer"], result.attributes["turns"]) == (2, 4)
    assert kept.thread("t") == ["done", "next"]


def test_the_way_back_makes_the_tables_of_the_version_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are those of its fixture, and its runs go on when they are brought up again."""

    def shape(path: Path) -> set[Any]:
        with closing(sqlite3.connect(path)) as connection:
            sql = "select m.name, c.name, c.type, c.dflt_value, c.pk from sqlite_master m "
            sql += "join pragma_table_info(m.name) c where m.type = 'table'"
            return set(connection.execute(sql).fetchall())

    shutil.copy(VERSIONS[-1], tmp_path / "runs.db")
    assert main(["migrate", "--journal", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"format {store.VERSION}\n"
    assert main(["migrate", "--back", "--journal", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"format {store.VERSION - 1}\n"
    assert shape(tmp_path / "runs.db") == shape(VERSIONS[-2])
    journal = SqliteJournal(tmp_path)
    test_its_runs_go_on_and_nothing_that_was_done_is_done_again(journal)
    assert journal.format == store.VERSION
    journal.close()


# ------------------------------------------------------------------------------------------------ t


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A database of today, and a version of tomorrow."""
    shutil.copy(VERSIONS[-1], tmp_path / "runs.db")
    monkeypatch.setattr(store, "VERSION", store.VERSION + 1)

    def to(statements: str) -> SqliteJournal:
        monkeypatch.setattr(store, "_MIGRATIONS", {**store._MIGRATIONS, store.VERSION: statements})
        return SqliteJournal(tmp_path)

    return to


def test_a_database_is_brought_up_and_what_it_was_is_kept_beside_it(newer):
    journal = newer("alter table runs add column colour text not null default 'green'")
    assert journal.query("select distinct colour from runs") == [("green",)]
    assert len(journal.runs()) == 4
    journal.close()
    before = sqlite3.connect(journal.config.folder / f"runs.before-{store.VERSION}")
    assert before.execute("pragma user_version").fetchone() == (store.VERSION - 1,)
    assert before.execute("select count(*) from runs").fetchone() == (4,)
    before.close()


def test_a_way_up_that_breaks_off_leaves_the_database_as_it_was(newer):
    journal = newer("alter table runs add column colour text; select no_such_thing(1)")
    with pytest.raises(JournalError, match="AX510"):
        journal.runs()
    connection = sqlite3.connect(journal.config.folder / "runs.db")
    assert connection.execute("pragma user_version").fetchone() == (store.VERSION - 1,)
    assert "colour" not in [
        column for _, column, *_ in connection.execute("pragma table_info(runs)")
    ]
    connection.close()
    again = newer("alter table runs add column colour text not null default 'green'")
    assert len(again.runs()) == 4
    again.close()
