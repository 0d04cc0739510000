"""Every pair once: front ends, journals, bodies, happenings and graphs, each with each.

A row is one workflow, begun by one front end; what becomes of it has to be the outcome that
`expected` states, by the front end's own words (its exit code, its reply, its table), and by those
of a server on the same journal.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.databases import postgres_server
from tests.journeys.pairs import Row, covering, pairs_of
from tests.journeys.person import Server, Terminal, eventually

FACTORS = {
    "front": ("run", "python", "serve", "openai", "batch", "worker"),
    "journal": ("off", "memory", "sqlite", "postgres"),
    "body": ("inline", "async", "thread", "process"),
    "happening": ("done", "failed", "paused", "limited", "large", "killed"),
    "graph": ("fields", "messages", "devall", "team"),
}
CODES = {"done": 0, "failed": 1, "paused": 3, "limited": 4}
LARGE = 100_000
KILLED = "flows/.axil/killed"
PARTS = '''
"""Nodes whose bodies are executed in each way."""

import os
import signal
from typing import Literal

from pydantic import BaseModel

from axil import Out
from axil.plugin import text_of


KILLED = "flows/.axil/killed"


class Config(BaseModel, extra="forbid"):
    happening: Literal["done", "failed", "paused", "limited", "large", "killed"]


class Step:
    Config = Config

    def __init__(self, config):
        self.config = config

    def answer(self, payloads):
        [given] = payloads
        is_fields = isinstance(given, dict) and "role" not in given
        text = given["message"] if is_fields else text_of(given[-1])
        if self.config.happening == "failed":
            raise ValueError("it broke")
        if self.config.happening == "killed" and not os.path.exists(KILLED):
            os.makedirs(os.path.dirname(KILLED), exist_ok=True)
            open(KILLED, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        said = text.upper() * (100_000 if self.config.happening == "large" else 1)
        return Out({"message": said}) if is_fields else said


class Inline(Step):
    inline = True

    def run(self, payloads):
        return self.answer(payloads)


class Thread(Step):
    def run(self, payloads):
        return self.answer(payloads)


class Async(Step):
    async def run(self, payloads, ctx):
        if self.config.happening == "paused":
            assert await ctx.ask("Go on?") == "yes"
        return self.answer(payloads)
'''
METADATA = "Metadata-Version: 2.1\nName: pair-parts\nVersion: 1\n"
ENTRY_POINTS = """[axil.nodes]
pair.inline = pair_parts:Inline
pair.thread = pair_parts:Thread
pair.async = pair_parts:Async
pair.process = pair_parts:Thread
"""


def allowed(row: Row) -> bool:
    """Return whether a row can be: the rest is refused, or makes no sense."""
    front, journal, happening = row["front"], row["journal"], row["happening"]
    if journal == "memory" and front != "python":
        return False  # a journal of one process
    if journal == "off" and front != "run":
        return False  # servers, batches and workers keep their runs
    if journal == "off" and happening in ("paused", "killed"):
        return False  # nothing is left to go on with
    if happening == "paused" and row["body"] != "async":
        return False  # only a body that waits may ask
    is_process = front in ("run", "batch", "worker") and row["body"] != "process"
    return happening != "killed" or is_process  # the front end is what is killed


ROWS, NEVER = covering(FACTORS, allowed)


def workflow(row: Row) -> str:
    """Return the workflow file of a row, as JSON, which is YAML, too."""
    config = {"happening": row["happening"]}
    wrappers = [{"type": "process", "config": {"workers": 1}}] if row["body"] == "process" else []
    step = {"type": f"pair.{row['body']}", "config": config, "wrappers": wrappers}
    plain = {"type": "pair.inline", "config": {"happening": "done"}}
    if row["graph"] == "team":
        step = {"type": "horizontal", "config": {"members": {"one": {**step}}}}
    graph: dict[str, Any] = {"nodes": [{"id": "step", **step}, {"id": "last", **plain}]}
    if row["graph"] == "fields":
        graph |= {
            "payload": "fields",
            "edges": [
                {"from": "@entry", "to": "step", "keys": ["message"]},
                {"from": "step", "to": "last", "keys": ["message"]},
                {"from": "last", "to": "@exit", "keys": ["message"]},
            ],
        }
    else:
        graph |= {"start": ["step"], "end": ["last"], "edges": [{"from": "step", "to": "last"}]}
    if row["happening"] == "limited":
        graph["limits"] = {"firings": 1}
    return json.dumps({"version": "0.4.0" if row["graph"] == "devall" else 1, "graph": graph})


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The end of a run, in the words that all front ends share."""

    status: str
    output: str = ""


def expected(row: Row) -> Outcome:
    """State the outcome of a row."""
    happening = row["happening"]
    if happening in ("failed", "limited"):
        return Outcome(status=happening)
    return Outcome(status="done", output="HI" * (LARGE if happening == "large" else 1))


def text(output: Any) -> str:
    """Return an output as a text, whatever the graph carries."""
    if isinstance(output, list):
        output = output[-1]["content"]
    return str(output["message"] if isinstance(output, dict) else output or "")


@dataclass
class Place:
    """A terminal and a view of its journal, and a server of the same files on another one: a server
    is a worker, and would execute what is submitted.
    """

    terminal: Terminal
    view: Server
    server: Server


def place(folder: Path, journal: str, served: str) -> Place:
    terminal = Terminal(folder, AXIL_JOURNAL=journal, PYTHONPATH=".")
    terminal.write("pair_parts.py", PARTS)
    terminal.write("pair_parts-1.dist-info/METADATA", METADATA)
    terminal.write("pair_parts-1.dist-info/entry_points.txt", ENTRY_POINTS)
    for number, row in enumerate(ROWS):
        terminal.write(f"flows/row{number}.yaml", workflow(row))
    server = Server(terminal, f"axil serve flows --journal {served}")
    (folder / ".axil").mkdir()
    return Place(terminal, Server(terminal, f"axil view --journal {journal}"), server)


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = place(tmp_path_factory.mktemp("sqlite"), ".axil", ".served")
    yield made
    made.terminal.close()


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    psycopg = pytest.importorskip("psycopg")
    with postgres_server() as server:
        url = server.url
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create database served")
        served = url.replace("/postgres", "/served")
        made = place(tmp_path_factory.mktemp("postgres"), url, served)
        yield made
        made.terminal.close()


def by_run(here: Place, row: Row, name: str) -> Outcome:
    terminal, outcome = here.terminal, expected(row)
    kept = "--journal off" if row["journal"] == "off" else f"--run-id {name}"
    line = f"axil run flows/{name}.yaml --input hi --format json {kept}"
    if row["happening"] == "killed":  # the same command goes on with what was recorded of it
        terminal.type(line, code=-9)
    if row["happening"] == "paused":
        terminal.type(line, code=3)
        line = f"axil runs answer {name} yes --format json"
    told = terminal.type(line, code=CODES[outcome.status], tracebacks=True).data
    return Outcome(status=told["status"], output=text(told["output"]))


def by_python(here: Place, row: Row, name: str) -> Outcome:
    made = {
        "memory": "from axil_journals import MemoryJournal\njournal = MemoryJournal()",
        "sqlite": "from axil_sqlite import SqliteJournal\njournal = SqliteJournal('.axil')",
        "postgres": "import os\nfrom axil_postgres import PostgresJournal\n"
        "journal = PostgresJournal(os.environ['AXIL_JOURNAL'])",
    }[row["journal"]]
    given = {"message": "hi"} if row["graph"] == "fields" else "hi"
    here.terminal.write(
        f"{name}.py",
        f"""
import asyncio, json
{made}
from axil import AxilError
from axil_files import load

async def main():
    flow = load("flows/{name}.yaml")
    try:
        result = await flow.run({given!r}, journal=journal, run_id={name!r})
        if result.status == "paused":
            answers = {{result.questions[0].id: "yes"}}
            result = await flow.resume({name!r}, journal=journal, answers=answers)
    except AxilError as error:
        result = error.result
    print(json.dumps({{"status": result.status, "output": result.output}}, default=str))

asyncio.run(main())
journal.close() if hasattr(journal, "close") else None
""",
    )
    told = here.terminal.type(f"python {name}.py").data
    return Outcome(status=told["status"], output=text(told["output"]))


def by_serve(here: Place, row: Row, name: str) -> Outcome:
    given = {"message": "hi"} if row["graph"] == "fields" else "hi"
    run = here.server.post("/v1/runs", {"workflow": name, "input": given})["run_id"]
    if row["happening"] == "paused":
        [question] = here.server.ended(run, status="paused")["questions"]
        here.server.post(f"/v1/runs/{run}/answers", {"answers": {question["id"]: "yes"}})
    told = here.server.ended(run, status=expected(row).status)
    return Outcome(status=told["status"], output=text(told["output"]))


def by_openai(here: Place, row: Row, name: str) -> Outcome:
    message = {"role": "user", "content": "hi"}
    answer = here.server.http.post(
        "/v1/chat/completions", json={"model": name, "messages": [message]}
    )
    if row["happening"] == "paused":
        run = answer.json()["id"]
        message = {"role": "user", "content": "yes"}
        body = {"model": name, "messages": [message], "metadata": {"run_id": run}}
        answer = here.server.http.post("/v1/chat/completions", json=body)
    if answer.status_code != 200:
        return Outcome(status=expected(row).status if "AX4" in answer.text else answer.text)
    [choice] = answer.json()["choices"]
    return Outcome(status="done", output=choice["message"]["content"])


def by_batch(here: Place, row: Row, name: str) -> Outcome:
    terminal, outcome = here.terminal, expected(row)
    terminal.write(f"{name}.csv", "message\nhi\n")
    line = f"axil batch flows/{name}.yaml {name}.csv --name {name}"
    if row["happening"] == "killed":
        terminal.type(line, code=-9)
    if row["happening"] == "paused":
        terminal.type(line, code=1)
        terminal.type(f"axil runs answer {name}-1 yes")
    terminal.type(line, code=0 if outcome.status == "done" else 1, tracebacks=True)
    csv.field_size_limit(10 * LARGE)
    with (terminal.folder / f"{name}.results.csv").open(encoding="utf-8", newline="") as file:
        [told] = csv.DictReader(file)
    return Outcome(
        status=told["run.status"], output=told.get("output.message") or told.get("output") or ""
    )


def by_worker(here: Place, row: Row, name: str) -> Outcome:
    terminal = here.terminal
    given = json.dumps({"message": "hi"}) if row["graph"] == "fields" else "hi"
    terminal.type(f"axil submit flows/{name}.yaml --run-id {name} --input '{given}'")
    line = f"axil worker flows/{name}.yaml --drain"
    if row["happening"] == "killed":
        terminal.type(line, code=-9)
        eventually(lambda: terminal.type(line) and at_rest(here, name))
    else:
        terminal.type(line)
    if row["happening"] == "paused":
        terminal.type(f"axil runs answer {name} yes")
    told = here.view.get(f"/v1/runs/{name}")
    return Outcome(status=told["status"], output=text(told["output"]))


def at_rest(here: Place, run: str) -> bool:
    return here.view.get(f"/v1/runs/{run}")["status"] in ("done", "failed", "limited")


@pytest.mark.third
@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda n: "-".join(ROWS[n].values()))
def test_a_row_ends_as_it_has_to_by_the_words_of_all(
    number: int, request: pytest.FixtureRequest
) -> None:
    row, name = ROWS[number], f"row{number}"
    database = "postgresql" if row["journal"] == "postgres" else "sqlite"
    here: Place = request.getfixturevalue(database)
    (here.terminal.folder / KILLED).unlink(missing_ok=True)
    fronts = {
        "run": by_run,
        "python": by_python,
        "serve": by_serve,
        "openai": by_openai,
        "batch": by_batch,
        "worker": by_worker,
    }
    assert fronts[row["front"]](here, row, name) == expected(row)
    if row["front"] in ("run", "batch", "worker", "python") and row["journal"] not in (
        "off",
        "memory",
    ):
        run = f"{name}-1" if row["front"] == "batch" else name
        told = here.view.get(f"/v1/runs/{run}")
        assert Outcome(status=told["status"], output=text(told["output"])) == expected(row)


def test_every_pair_that_may_be_is_in_a_row() -> None:
    covered = {pair for row in ROWS for pair in pairs_of(row)}
    assert not covered & NEVER
    assert all(allowed(row) for row in ROWS)
