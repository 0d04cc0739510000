"""Laws of ``axil batch --batch-api``: one batch of all rows, continued by another process."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from axil_cli.main import main
from axil_models import BatchFile, ModelBatches
from axil_testing.stub import Act, Stub

APP = """
import os
from axil import RootGraph
from axil_agent import Agent
from axil_openai import OpenAIModel
from axil_models import Prices

model = OpenAIModel(
    "m",
    base_url=os.environ["STUB_URL"],
    profile=os.environ.get("STUB_PROFILE"),
    prices=Prices(input=1_000_000),
    retry={"first_wait_seconds": 0, "max_tries": 2},
)
graph = RootGraph("letters")
graph.create_node(Agent, name="write", model=model, instructions="Write.")
graph.create_node(Agent, name="check", model=model, instructions="Check.")
graph.edge_from_entry("write", {"name": ""})
graph.create_edge("write", "check", {"letter": ""})
graph.edge_to_exit("check", {"text": ""})
graph.build()
"""
SCRIPT = "from axil_cli.main import script; script()"
BATCH = ["batch", "app.py:graph", "people.csv", "--batch-api"]


def answer(body):
    """Return the reply to a letter's writer, or to its checker."""
    system, user = body["messages"][0]["content"], body["messages"][-1]["content"]
    name = next(name for name in ("Ada", "Ben", "Cy") if name in user)
    return json.dumps({"letter": f"Dear {name}"} if "Write." in system else {"text": f"ok {name}"})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(APP, "utf-8")
    (tmp_path / "people.csv").write_text("name\nAda\nBen\nCy\n", "utf-8")
    return tmp_path


@pytest.fixture
def server(monkeypatch):
    with Stub("chat") as stub:
        monkeypatch.setenv("STUB_URL", stub.url)
        monkeypatch.setenv("STUB_PROFILE", "openai")
        monkeypatch.setenv("OPENAI_API_KEY", stub.key)
        stub.batches.answer = answer
        yield stub


@contextmanager
def begun():
    """Give another process that is at work on the batch."""
    command = [sys.executable, "-c", SCRIPT, *BATCH]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def batch(folder, monkeypatch, capsys):
    """Return a function that gives the exit code of the command, and what it wrote."""
    for name in ("quiet_seconds", "first_wait_seconds"):
        monkeypatch.setitem(ModelBatches.__init__.__kwdefaults__, name, 0.05)

    def whole(*more):
        sys.modules.pop("app", None)
        code = main([*BATCH, *more])
        said = capsys.readouterr()
        return code, said.out, said.err

    return whole


def until(is_so):
    """Wait for a state of another process."""
    patience = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < patience
        time.sleep(0.01)


def texts(folder):
    with (folder / "people.results.csv").open(encoding="utf-8", newline="") as file:
        return [(row["run.status"], row["output.text"]) for row in csv.DictReader(file)]


def test_a_killed_process_is_continued_and_no_request_is_submitted_twice(folder, server, batch):
    server.batches.held = True
    with begun() as process:
        until(lambda: server.batches.made and server.batches.made[0].polls)
        process.kill()
    kept = next((folder / ".axil").glob("*.batches")).read_bytes()
    assert server.key.encode() not in kept
    assert b"Dear" not in kept
    server.batches.held = False
    code, out, err = batch()
    assert (code, err) == (0, "")
    assert texts(folder) == [("done", "ok Ada"), ("done", "ok Ben"), ("done", "ok Cy")]
    ids = server.batches.requests
    assert len(ids) == len(set(ids)) == 6
    assert [len(batch.lines) for batch in server.batches.made] == [3, 3]
    assert "cost     33.0000 (50% of the usual price)" in out
    assert not list((folder / ".axil").glob("*.batches"))


def test_an_interrupt_leaves_the_batch_and_says_how_to_go_on(folder, server, batch):
    server.batches.held = True

    def interrupt():
        until(lambda: server.batches.made and server.batches.made[0].polls)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    code, _, err = batch()
    thread.join()
    assert code == 130
    assert "batch_1" in err
    assert "The same command again" in err
    server.batches.held = False
    found = json.loads(batch("--format", "json")[1])
    assert found["statuses"] == {"done": 3}
    assert (found["discount"], found["batches"]) == (0.5, 1)
    assert len(server.batches.made) == 2


def test_a_request_that_fails_is_its_rows_error_and_is_asked_again_next_time(folder, server, batch):
    def refusing(body):
        text = answer(body)
        return Act(status=400, message="no letters to Ben") if "Dear Ben" in text else text

    server.batches.answer = refusing
    code, _, err = batch()
    assert code == 1
    assert "no letters to Ben" in err
    server.batches.answer = answer
    assert batch()[0] == 0
    assert texts(folder)[1] == ("done", "ok Ben")
    assert [len(batch.lines) for batch in server.batches.made] == [3, 2, 1, 1]


def test_a_model_without_a_batch_api_is_refused_and_nothing_is_sent(server, batch, monkeypatch):
    monkeypatch.delenv("STUB_PROFILE")
    code, _, err = batch()
    assert code == 2
    assert "AX981" in err
    assert "127.0.0.1" in err
    assert server.requests == []


def test_a_later_models_lack_of_a_batch_api_is_said_before_the_first_is_asked(
    folder, server, batch
):
    app = (folder / "app.py").read_text("utf-8")
    other = 'check", model=OpenAIModel("n", base_url="http://127.0.0.1:9/v1")'
    (folder / "app.py").write_text(app.replace('check", model=model', other), "utf-8")
    code, _, err = batch()
    assert (code, "AX981" in err, "127.0.0.1:9" in err) == (2, True, True)
    assert server.requests == []


def test_two_processes_do_not_work_on_one_batch(folder, server, batch):
    held = BatchFile(folder / ".axil" / "app-graph-people.batches")
    code, _, err = batch()
    held.close()
    assert code == 2
    assert "AX982" in err
    assert server.requests == []
