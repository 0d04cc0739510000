"""Laws of ``axil batch``."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys

import pytest

from axil_cli.batch.command import _name
from axil_cli.main import main

GRAPH = """
import asyncio
from axil import RootGraph

graph = RootGraph("greeting")


async def greet(inputs):
    if inputs["name"] == "slow":
        print("slow", flush=True)
        await asyncio.sleep(600)
    if inputs["name"] == "bad":
        raise ValueError("bad name")
    return {"text": "Hello " + inputs["name"]}


graph.create_node(greet, name="greet")
graph.edge_from_entry("greet", {"name": ""})
graph.edge_to_exit("greet", {"text": ""})
graph.build()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(GRAPH, "utf-8")
    return tmp_path


def results(folder, name="people.results.csv"):
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_each_row_is_run_and_the_same_command_goes_on_where_it_stopped(folder, capsys):
    (folder / "people.csv").write_text("name,age\nAda,36\nbad,1\n", "utf-8")
    command = ["batch", "app.py:graph", "people.csv"]
    assert main(command) == 1
    said = capsys.readouterr()
    assert "done   1" in said.out
    assert "failed 1" in said.out
    assert "app-graph-people-2" in said.err
    assert "bad name" in said.err
    first, second = results(folder)
    assert first["output.text"] == "Hello Ada"
    assert (first["age"], first["run.status"], second["run.status"]) == ("36", "done", "failed")
    source = (folder / "app.py").read_text("utf-8")
    (folder / "app.py").write_text(source.replace('== "bad"', '== "worse"'), "utf-8")
    sys.modules.pop("app", None)
    assert main([*command, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["statuses"] == {"done": 2}
    assert results(folder)[1]["output.text"] == "Hello bad"
    assert main(["runs", "list"]) == 0
    assert "app-graph-people-1" in capsys.readouterr().out


def test_the_table_is_not_overwritten_by_its_results(folder, capsys):
    (folder / "people.csv").write_text("name\nAda\n", "utf-8")
    assert main(["batch", "app.py:graph", "people.csv", "-o", "./people.csv"]) == 2
    assert "AX991" in capsys.readouterr().err


def test_a_workflow_of_messages_is_given_one_column(folder, capsys):
    flow = {
        "graph": {
            "id": "echo",
            "nodes": [{"id": "echo", "type": "passthrough"}],
            "start": ["echo"],
            "end": ["echo"],
            "edges": [],
        }
    }
    (folder / "echo.json").write_text(json.dumps(flow), "utf-8")
    (folder / "r.jsonl").write_text('{"q": "one", "n": 1}\n', "utf-8")
    assert main(["batch", "echo.json", "r.jsonl"]) == 2
    assert "--column NAME" in capsys.readouterr().err
    assert main(["batch", "echo.json", "r.jsonl", "--column", "qq"]) == 2
    assert 'Did you mean "q"' in capsys.readouterr().err
    assert main(["batch", "echo.json", "r.jsonl", "--column", "q", "-o", "o.jsonl"]) == 0
    assert json.loads((folder / "o.jsonl").read_text("utf-8"))["output"] == "one"


def test_an_interrupt_writes_what_there_is(folder):
    (folder / "people.csv").write_text("name\nAda\nslow\n", "utf-8")
    code = "from axil_cli.main import script; script()"
    command = [sys.executable, "-c", code, "batch", "app.py:graph", "people.csv", "--parallel", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"slow\n"
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert [row["run.status"] for row in results(folder)] == ["done", "open"]


@pytest.mark.parametrize(
    ("workflow", "table", "name"),
    [
        ("flows/letter.yaml", "data/people 2.csv", "letter-people-2"),
        ("app.py:graph", "r.jsonl", "app-graph-r"),
        ("módulo.yaml", "ü.csv", "m-dulo"),
    ],
)
def test_a_batch_is_named_after_its_files(workflow, table, name):
    assert _name(workflow, table) == name


def test_a_workflow_whose_state_is_a_conversation_takes_the_text_of_a_column(axil, flow, folder):
    (folder / "people.csv").write_text("name\nAda\n", "utf-8")
    file = flow(["a echo"], start="a", end="a", payload="state")
    assert axil("batch", file, "people.csv", "--journal", ".axil").code == 0
    [row] = results(folder)
    assert json.loads(row["output.messages"])[0]["content"] == "Ada"
