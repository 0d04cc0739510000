"""Accidents: Ctrl-C, a kill, a damaged journal, a body that raises."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from tests.journeys.person import Program, Terminal, eventually

SLOW = """
import os, time
from axil import RootGraph

graph = RootGraph("slow")


def first(inputs):
    with open("log", "a") as log:
        log.write("first\\n")
    return {"n": 1}


def second(inputs):
    open("began", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.02)
    return {"n": 2}


graph.create_node(first, name="first")
graph.create_node(second, name="second")
graph.edge_from_entry("first")
graph.create_edge("first", "second", {"n": ""})
graph.edge_to_exit("second", {"n": ""})
"""


def begun(terminal: Terminal) -> Program:
    """Start a run that hangs in its second node."""
    terminal.write("slow.py", SLOW)
    program = terminal.start("axil run slow.py:graph --input x --run-id r")
    eventually((terminal.folder / "began").exists)
    return program


def gone_on(terminal: Terminal, line: str) -> None:
    """Type what continues the run; what was done is not done again."""
    (terminal.folder / "go").touch()
    assert terminal.type(line).out == "n: 2\n"
    assert (terminal.folder / "log").read_text("utf-8") == "first\n"


def test_ctrl_c_says_how_the_run_goes_on_and_it_goes_on(terminal: Terminal) -> None:
    program = begun(terminal)
    shown = program.stop(code=130)
    assert "interrupted" in shown
    terminal.type("axil runs list").shows("r cancelled")
    gone_on(terminal, shown.partition("The run is kept: ")[2].strip())


def test_a_killed_run_is_found_and_goes_on(terminal: Terminal) -> None:
    begun(terminal).kill()
    terminal.type("axil runs show r").shows("slow", "first")
    gone_on(terminal, "axil runs resume r --allow code")


def test_a_run_that_is_at_work_is_cancelled_from_another_terminal(terminal: Terminal) -> None:
    program = begun(terminal)
    terminal.type("axil runs cancel r").shows("at work", "ends it")
    assert program.process.wait(60) == 130, program.text
    terminal.type("axil runs list").shows("cancelled")


def test_a_body_that_raises_says_where_and_is_repeated_when_it_is_mended(
    terminal: Terminal,
) -> None:
    (terminal.folder / "go").touch()
    terminal.write("slow.py", SLOW.replace('return {"n": 2}', 'return {"n": inputs["m"]}'))
    shown = terminal.type("axil run slow.py:graph --input x", code=1)
    shown.shows('node "second"', "KeyError: 'm'")
    terminal.write("slow.py", SLOW)
    gone_on(terminal, shown.find(r"The run is kept: (.*)"))


@pytest.mark.parametrize("damage", ["overwritten", "another file"])
def test_a_damaged_journal_is_named_and_rescued_or_begun_anew_as_it_says(
    terminal: Terminal, damage: str
) -> None:
    (terminal.folder / "go").touch()
    terminal.write("slow.py", SLOW)
    terminal.type("axil run slow.py:graph --input x --run-id one")
    file = terminal.folder / ".axil/runs.db"
    if damage == "overwritten":
        data = file.read_bytes()
        file.write_bytes(data[:100] + b"x" * 4000 + data[4100:])
    else:
        file.write_bytes(b"not a database " * 300)
    shown = terminal.type("axil runs list", code=2).shows("AX510", "damaged")
    shown = terminal.type("axil runs doctor", code=2)
    if damage == "overwritten":
        terminal.paste(shown.find(r"(axil runs doctor --repair .*) rescues")).shows("1 run(s)")
        [kept] = terminal.type("axil runs list --format json").data
        assert (kept["run_id"], kept["status"]) == ("one", "done")
        return
    terminal.paste(shown.find(r"begin anew: (.*)"))
    terminal.type("axil run slow.py:graph --input x --run-id two")
    listed = terminal.type("axil runs list --format json").data
    assert [each["run_id"] for each in listed] == ["two"]


def test_a_second_run_of_one_name_is_the_first_one(terminal: Terminal) -> None:
    (terminal.folder / "go").touch()
    terminal.write("slow.py", SLOW)
    for _ in range(2):
        assert terminal.type("axil run slow.py:graph --input x --run-id r").out == "n: 2\n"
    assert (terminal.folder / "log").read_text("utf-8") == "first\n"
    shutil.rmtree(terminal.folder / ".axil")
    terminal.type("axil runs list").shows("No runs are kept here")


def test_a_closed_terminal_ends_the_run_and_keeps_it(terminal: Terminal) -> None:
    program = begun(terminal)
    os.killpg(program.process.pid, signal.SIGTERM)
    assert program.process.wait(60) == 130, program.text
    gone_on(terminal, "axil runs resume r --allow code")
