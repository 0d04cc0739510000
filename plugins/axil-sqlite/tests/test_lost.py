"""Runs whose process died: one that ends its process holds up no other run, and is parked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from axil_cli.main import main
from axil_journals import Entry, Queue
from axil_sqlite import SqliteJournal

HEALTHY = 20
DEATHS = 9
"""The first death, and those of trials beside others, if there are any; five alone; and one to
spare."""

GRAPH = """
import os
import time
from pathlib import Path

from axil import RootGraph

graph = RootGraph("trials")


def first(inputs):
    if inputs["run"] == "poison" and not Path("mended").exists():
        os._exit(9)
    time.sleep(0.05)
    return {"run": inputs["run"]}


def second(inputs):
    return {"run": inputs["run"]}


one, two = graph.create_node(first, name="one"), graph.create_node(second, name="two")
graph.edge_from_entry(one, {"run": ""})
graph.create_edge(one, two, {"run": ""})
graph.edge_to_exit(two, {"run": ""})
graph.build()
"""


def test_a_run_that_ends_its_process_is_parked_and_the_others_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("trials.py").write_text(GRAPH, "utf-8")
    healthy = [f"r{number}" for number in range(HEALTHY)]
    for run in (*healthy[:7], "poison", *healthy[7:]):
        words = ["submit", "trials.py:graph", "--input", json.dumps({"run": run}), "--run-id", run]
        assert main(words) == 0
    start = "import sys; from axil_cli.main import main; sys.exit(main(sys.argv[1:]))"
    worker = [sys.executable, "-c", start, "worker", "trials.py:graph", "--drain"]
    deaths = 0
    while code := subprocess.run(worker, env=os.environ, timeout=120, check=False).returncode:
        assert code == 9
        deaths += 1
        assert deaths <= DEATHS
    assert deaths >= 6

    journal = SqliteJournal(".axil")
    statuses = {info.run_id: info.status for info in journal.runs()}
    assert statuses == {**dict.fromkeys(healthy, "done"), "poison": "parked"}
    journal.close()
    capsys.readouterr()
    assert main(["runs", "list", "--status", "parked", "--format", "json"]) == 0
    assert [each["run_id"] for each in json.loads(capsys.readouterr().out)] == ["poison"]
    assert main(["runs", "show", "poison"]) == 0
    shown = capsys.readouterr().out
    assert "parked" in shown
    assert "AX543 the process died 5 times" in shown

    Path("mended").touch()
    assert main(["runs", "resume", "poison", "--allow", "code"]) == 0
    assert main(["runs", "show", "poison", "--format", "json"]) == 0
    assert '"status": "done"' in capsys.readouterr().out


def test_a_run_is_lost_until_it_is_written_again(tmp_path: Path) -> None:
    # also one that was only taken, and one that is released; not what broke off in order, or ended
    holder = """
import sys, os
from axil_journals import Entry
from axil_sqlite import SqliteJournal
journal = SqliteJournal(sys.argv[1], sync="normal")
writers = {}
for name in ("taken", "work", "broke off", "ended"):
    writer = journal.open(name)
    writer.append(Entry("run", data={"graph": "g", "digest": "d"}))
    if name == "ended":
        writer.append(Entry("ended", data={"status": "failed"}))
    writer.close()
assert list(journal.take(2, 1.0)) == ["taken", "work"]
writer = journal.open("work")
writer.append(Entry("resumed"))
writer._group.commit([writer])
os._exit(0)
"""
    words = [sys.executable, "-c", holder, str(tmp_path)]
    subprocess.run(words, env=os.environ, timeout=60, check=True)
    journal = SqliteJournal(tmp_path)
    assert list(journal.take(9, 1.0)) == ["broke off"]
    assert list(journal.take(9, 1.0, lost=True)) == ["taken", "work"]
    for run in ("taken", "work", "broke off"):
        journal.release(run)
    assert list(journal.take(1, 1.0, lost=True)) == ["taken"]
    writer = journal.open("taken")
    writer.append(Entry("resumed"))
    writer.close()
    assert list(journal.take(9, 1.0)) == ["broke off", "taken"]
    assert list(journal.take(9, 1.0, lost=True)) == ["work"]
    journal.close()


def test_the_runs_of_a_dead_worker_are_taken_over_by_the_rules_of_their_queue(
    tmp_path: Path,
) -> None:
    holder = """
import sys, os
from axil_journals import Entry
from axil_sqlite import SqliteJournal
journal = SqliteJournal(sys.argv[1], sync="normal")
for name in ("a", "b", "c"):
    writer = journal.open(name)
    header = {"graph": "g", "digest": "", "place": {"queue": "q"}}
    writer.append(Entry("run", data=header))
    writer.close()
assert sorted(journal.take(2, 1.0)) == ["a", "b"]
os._exit(0)
"""
    words = [sys.executable, "-c", holder, str(tmp_path)]
    subprocess.run(words, env=os.environ, timeout=60, check=True)
    journal = SqliteJournal(tmp_path)
    journal.set_queues([Queue(name="q", concurrency=1)])
    assert list(journal.take(9, 1.0, lost=True)) == ["a"]
    assert list(journal.take(9, 1.0, lost=True)) == []
    assert list(journal.take(9, 1.0)) == []
    journal.set_queues([Queue(name="q", calls=1, period_seconds=9.0)])
    assert list(journal.take(9, 1.0, lost=True)) == ["b"]
    assert list(journal.take(9, 9.0)) == []
    assert list(journal.take(9, 10.0)) == ["c"]
    journal.close()
