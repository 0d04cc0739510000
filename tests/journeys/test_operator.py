"""An operator: workers on a database, a kill, a new version, a restart, a poison run, retention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.databases import postgres_server
from tests.journeys.person import LONG, Program, Terminal, eventually

WORK = """
import os, time
from axil import RootGraph

graph = RootGraph("work")


def step(name):
    def body(inputs):
        with open("log", "a") as log:
            log.write(f"{inputs['n']} {name}\\n")
        time.sleep(0.05)
        return {"n": inputs["n"]}

    return body


for name in ("read", "write", "check"):
    graph.create_node(step(name), name=name)
graph.edge_from_entry("read", {"n": ""})
graph.create_edge("read", "write", {"n": ""})
graph.create_edge("write", "check", {"n": ""})
graph.edge_to_exit("check", {"n": ""})
"""
LETTER = """
version: 1
graph:
  start: [approve]
  end: [sent]
  nodes:
    - {id: approve, type: human, config: {description: "Send it?"}}
    - {id: sent, type: literal, config: {content: "Sent by the first version."}}
  edges: [{from: approve, to: sent}]
"""
POISON = """
import os, signal
from axil import RootGraph

graph = RootGraph("poison")
graph.create_node(lambda inputs: os.kill(os.getpid(), signal.SIGKILL), name="kills")
graph.edge_from_entry("kills", {"n": ""})
graph.edge_to_exit("kills", {"n": ""})
"""


@pytest.fixture(scope="module")
def database() -> Iterator[Any]:
    """A PostgreSQL server, which can be started again."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def machines(database: Any, terminals: Callable[..., Terminal]) -> Callable[[], Terminal]:
    """Return what opens terminals on machines that share a database and a folder."""
    import psycopg

    with psycopg.connect(database.url, autocommit=True) as connection:
        name = f"journey{len(connection.execute('select oid from pg_database').fetchall())}"
        connection.execute(f"create database {name}")
    url = database.url.replace("/postgres", f"/{name}")
    return lambda: terminals("shared", AXIL_JOURNAL=url)


def statuses(terminal: Terminal) -> Counter[str]:
    runs = terminal.type("axil runs list --limit 0 --format json").data
    return Counter(each["status"] for each in runs)


def worker(terminal: Terminal, words: str) -> Program:
    program = terminal.start(f"axil worker {words}")
    program.find("The worker is ready")
    return program


def test_a_worker_is_killed_and_the_others_have_its_runs(machines: Callable[[], Terminal]) -> None:
    desk, one, two = machines(), machines(), machines()
    desk.write("work.py", WORK)
    for n in range(6):
        desk.type(f"axil submit work.py:graph --run-id run-{n} --input '{{\"n\": {n}}}'")
    killed = worker(one, "work.py:graph --concurrency 2")
    eventually(lambda: (desk.folder / "log").exists())
    worker(two, "work.py:graph --concurrency 2")
    killed.kill()
    eventually(lambda: statuses(desk) == {"done": 6})
    done = Counter((desk.folder / "log").read_text("utf-8").splitlines())
    assert len(done) == 18
    assert sum(done.values()) <= 18 + 2  # at most what was at work when it was killed
    desk.type("axil runs doctor").shows("Nothing is damaged.")


def test_a_new_version_is_deployed_and_old_runs_end_as_they_began(
    machines: Callable[[], Terminal],
) -> None:
    desk, old, new = machines(), machines(), machines()
    desk.write("letter.yaml", LETTER)
    desk.type("axil submit letter.yaml --run-id before --input x")
    first = worker(old, "letter.yaml")
    eventually(lambda: statuses(desk) == {"paused": 1})
    desk.write("letter.yaml", LETTER.replace("first", "second"))
    worker(new, "letter.yaml")
    first.stop(code=0)
    desk.type("axil submit letter.yaml --run-id after --input x")
    eventually(lambda: statuses(desk) == {"paused": 2})
    desk.type("axil runs answer before yes")
    desk.type("axil runs answer after yes")
    eventually(lambda: statuses(desk) == {"done": 2})
    desk.type("axil runs show before").shows("Sent by the first version.")
    desk.type("axil runs show after").shows("Sent by the second version.")


def test_a_restart_of_the_database_is_waited_for(
    machines: Callable[[], Terminal], database: Any
) -> None:
    desk, one = machines(), machines()
    desk.write("work.py", WORK)
    program = worker(one, "work.py:graph")
    database.end()
    if LONG:  # the client waits 30 seconds for the database
        desk.type("axil runs list", code=2).shows("error: AX5")
    database.begin()
    desk.type("axil submit work.py:graph --input '{\"n\": 2}'")
    eventually(lambda: statuses(desk) == {"done": 1})
    program.stop(code=0)


def test_a_poison_run_is_parked_and_its_neighbours_are_done(terminal: Terminal) -> None:
    terminal.write("work.py", WORK)
    terminal.write("poison.py", POISON)
    terminal.type("axil submit poison.py:graph --run-id poison --input '{\"n\": 0}'")
    terminal.type("axil submit work.py:graph --run-id good --input '{\"n\": 1}'")
    for _ in range(20):
        program = terminal.start("axil worker work.py:graph poison.py:graph --drain")
        if program.process.wait(60) == 0:
            break
    assert statuses(terminal) == {"parked": 1, "done": 1}
    shown = terminal.type("axil runs show poison")
    shown.shows("poison", "parked")


def test_runs_that_have_ended_are_forgotten_and_open_ones_are_kept(terminal: Terminal) -> None:
    terminal.write("letter.yaml", LETTER)
    terminal.type("axil run letter.yaml --run-id open --input x", code=3)
    terminal.type("axil run letter.yaml --run-id ended --input x", code=3)
    terminal.type("axil runs answer ended yes")
    terminal.type("axil runs prune --older-than 0 --dry-run").shows("ended")
    terminal.type("axil runs prune --older-than 0").shows("ended")
    assert statuses(terminal) == {"paused": 1}
    terminal.type("axil runs show ended", code=2).shows("ended")
    terminal.type("axil runs doctor").shows("Nothing is damaged.")
