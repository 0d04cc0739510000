"""The first hour: the demo, a question and a file of one's own, the first mistakes, a program.

A clone with its own ``make demo``, which installs from a package index, is part of
``make thorough``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.journeys.person import LONG, README, ROOT, Terminal, readme


def demo(terminal: Terminal, checkout: Path, *words: str) -> str:
    """Type ``make demo``; where it is this checkout, what it installs is taken as installed."""
    made = [] if checkout != ROOT else ["-o", f"{sys.prefix}/usual", f"VENV={sys.prefix}"]
    journal = {"AXIL_JOURNAL": str(terminal.folder / ".axil")}
    done = subprocess.run(
        ["make", "demo", *made, *words],
        cwd=checkout,
        env=terminal.environment | journal,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_demo_shows_what_the_readme_shows(terminal: Terminal) -> None:
    terminal.environment["COLUMNS"] = "80"
    shown = demo(terminal, ROOT)
    assert readme("console").removeprefix("$ make demo\n").removesuffix("…\n") in shown
    assert "── done: 11 firings" in shown
    assert "2 rounds (exit)" in shown
    terminal.type("axil runs list").shows("done", "newsroom")


def test_a_file_of_the_readme_answers_as_it_says(terminal: Terminal) -> None:
    terminal.write("brief.yaml", readme("yaml"))
    line = re.search(r"As a file, `(axil run [^`]+)`", README)
    assert line
    assert terminal.type(line[1]).out == "a text\n"
    terminal.type("axil check brief.yaml").shows("fine", "2 nodes, 1 edge")
    terminal.type("axil show brief.yaml").shows("plan  agent  → write")
    listed = terminal.type("axil runs list")
    run = listed.find(r"(?m)^(\w{8}) +done")
    terminal.type(f"axil runs show {run}").shows("input: axils", "output: a text", "2 firings")


def test_a_mistake_is_shown_with_its_place_and_is_mended_as_it_says(terminal: Terminal) -> None:
    text = readme("yaml")
    terminal.write("brief.yaml", text.replace("to: write", "to: wriet"))
    shown = terminal.type('axil run brief.yaml --input "axils"', code=2)
    meant = shown.find(r'brief.yaml:9 edges\[0\].to: no node "wriet". Did you mean "(\w+)"')
    terminal.write("brief.yaml", text.replace("to: write", f"to: {meant}"))
    assert terminal.type('axil run brief.yaml --input "axils"').out == "a text\n"


def test_all_mistakes_of_a_file_are_shown_at_once(terminal: Terminal) -> None:
    text = readme("yaml").replace("type: agent", "type: agnet", 1)
    terminal.write("brief.yaml", text.replace("instructions: You write", "instrutions: You write"))
    terminal.type("axil run brief.yaml --input x", code=2).shows(
        'unknown node type "agnet". Did you mean "agent"',
        'unknown key "instrutions". Did you mean "instructions"?',
    )


def test_a_forgotten_input_is_asked_for_before_an_agent_is(terminal: Terminal) -> None:
    terminal.write("brief.yaml", readme("yaml"))
    terminal.type("axil run brief.yaml", code=2).shows("--input")
    assert "brief" not in terminal.type("axil runs list").text


def test_a_python_program_of_the_readme_runs_as_a_program_and_as_a_workflow(
    terminal: Terminal,
) -> None:
    terminal.write("flow.py", readme("python"))
    said = "Every leaf keeps a bud in reserve."
    assert terminal.type("python flow.py").out == f"{said}\n"
    graph, _ = readme("python").split("print(")
    terminal.write("flow.py", graph)  # and now the command gives the input
    terminal.type("axil check flow.py:graph").shows("fine")
    shown = terminal.type('axil run flow.py:graph --input \'{"topic": "axils"}\'')
    assert shown.out == f"text: {said}\n"


def test_a_person_is_asked_on_the_terminal_and_types_the_answer(terminal: Terminal) -> None:
    shutil.copy(ROOT / "examples/human.yaml", terminal.folder)
    shown = terminal.sit("axil run human.yaml --input x", {"May this be sent?": "yes\n"})
    shown.shows("Dear customer, we are sorry.", "Sent.")


def test_output_goes_into_a_pipe_alone_and_a_closed_pipe_ends_quietly(terminal: Terminal) -> None:
    terminal.write("brief.yaml", readme("yaml"))
    shown = terminal.paste("axil run brief.yaml --input x --progress 2>seen | cat")
    assert (shown.out, shown.err) == ("a text\n", "")
    assert "── done" in (terminal.folder / "seen").read_text("utf-8")
    shown = terminal.paste("axil schema | head -n 1")
    assert (shown.out, shown.err) == ("{\n", "")


@pytest.mark.skipif(not LONG, reason="installs from a package index: make thorough")
def test_a_clone_needs_nothing_but_make_demo(terminals: Callable[..., Terminal]) -> None:
    terminal = terminals("somewhere")
    terminal.type(f"git clone --quiet {ROOT} axil")
    terminal.environment["PATH"] = os.defpath + os.pathsep + os.environ["PATH"]
    shown = demo(terminal, terminal.folder / "axil", f"PYTHON={sys.executable}")
    assert "── done: 11 firings" in shown
