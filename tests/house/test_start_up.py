"""Costs of the start of a process, by what it imports and opens; never by times."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

WATCHED = """
import json, os, sys
before, opened = set(sys.modules), set()
def note(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        opened.add(os.path.realpath(arguments[0]))
sys.addaudithook(note)
sys.argv[:] = ["axil", *sys.argv[1:]]
{act}
print("\\n" + json.dumps([sorted(set(sys.modules) - before), sorted(opened)]))
"""
COMMAND = "from axil_cli.main import main\nassert main(sys.argv[1:]) == 0"
FIRST = """
from axil import RootGraph
graph = RootGraph("two")
graph.create_node(lambda inputs: {"n": inputs["n"] + 1}, name="a", inline=True)
graph.create_node(lambda inputs: {"n": inputs["n"] + 1}, name="b", inline=True)
graph.edge_from_entry("a", ["n"])
graph.create_edge("a", "b", ["n"])
graph.edge_to_exit("b", ["n"])
assert graph.build().invoke({"n": 0})[0] == {"n": 2}
"""
COMPILED = """
import sys
from axil_cli.main import main
lines = 0
def note(frame, event, _):
    global lines
    if frame.f_globals.get("__name__") == "re._compiler":
        lines += 1
        return note
sys.settrace(note)
code = main(sys.argv[1:])
sys.settrace(None)
print("\\n" + str(lines))
sys.exit(code)
"""
ENDED = """
import atexit, gc, sys
from axil_cli.main import script
atexit.register(lambda: print("\\n" + str(gc.get_freeze_count() > 10_000)))
sys.argv[:] = ["axil", *sys.argv[1:]]
script()
"""
FILE = {
    "graph": {
        "id": "small",
        "start": ["say"],
        "end": ["pass"],
        "nodes": [
            {"id": "say", "type": "literal", "config": {"content": "hello"}},
            {"id": "pass", "type": "passthrough"},
        ],
        "edges": [{"from": "say", "to": "pass"}],
    }
}
HEAVY = {"asyncio", "email", "pydantic", "regex", "sqlite3", "yaml", "zipfile"}
"""Packages that take milliseconds to import."""


def watched(act: str, *arguments: str, folder: Path) -> tuple[set[str], list[Path]]:
    """Return the modules that a process imports, and the files that it opens."""
    done = subprocess.run(
        [sys.executable, "-c", WATCHED.replace("{act}", act), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        cwd=folder,
    )
    modules, opened = json.loads(done.stdout.rpartition("\n{")[0] or done.stdout.splitlines()[-1])
    return set(modules), [Path(each) for each in opened]


def members_of(modules: set[str]) -> set[str]:
    """Return the packages of members among modules."""
    return {name.partition(".")[0] for name in modules if name.startswith("axil_")}


def test_help_imports_no_member_but_the_command_and_nothing_heavy(tmp_path):
    modules, _ = watched(
        "try:\n    main = __import__('axil_cli.main').main.main\n"
        "    main(['--help'])\nexcept SystemExit: pass",
        folder=tmp_path,
    )
    assert members_of(modules) == {"axil_cli"}
    assert not modules & (HEAVY | {"importlib.metadata", "axil.spec.graph"})
    assert len(modules) <= 100


def test_the_first_result_needs_few_modules(tmp_path):
    modules, _ = watched(FIRST, folder=tmp_path)
    assert members_of(modules) == set()
    assert not modules & (HEAVY - {"asyncio"})
    assert "axil.contract.decisions" not in modules
    assert sum(name.partition(".")[0] == "axil" for name in modules) <= 56


@pytest.mark.parametrize("journal", [".axil", "off"])
def test_a_small_run_imports_and_opens_no_member_that_it_does_not_name(tmp_path, root, journal):
    (tmp_path / "small.json").write_text(json.dumps(FILE))
    arguments = ("run", "small.json", "--input", "x", "--journal", journal)
    modules, opened = watched(COMMAND, *arguments, folder=tmp_path)
    needed = {"axil_cli", "axil_control", "axil_files"}
    if journal == ".axil":
        needed |= {"axil_journals", "axil_sqlite"}
    assert members_of(modules) <= needed
    assert not modules & {"regex", "yaml", "http.client", "mimetypes", "urllib.request"}
    folders = {each.name for each in root.glob("plugins/axil-*")}
    used = {part for each in opened for part in each.parts if part in folders}
    assert {name.replace("-", "_") for name in used} <= needed


def last_line(code: str, *arguments: str, folder: Path) -> str:
    """Return the last line that a process prints, which has to end well."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        cwd=folder,
    )
    return done.stdout.splitlines()[-1]


def test_regular_expressions_of_a_run_of_agents_are_cheap_to_compile(tmp_path, root):
    """A class of most characters takes tens of thousands of lines of Python's compiler."""
    examples = root / "examples"
    script = ("--model-script", str(examples / "replies/newsroom.yaml"), "--journal", "off")
    arguments = ("run", str(examples / "newsroom.yaml"), "--input", "plants", *script)
    assert int(last_line(COMPILED, *arguments, folder=tmp_path)) <= 370_000


def test_the_command_leaves_nothing_to_the_collector_at_its_end(tmp_path):
    (tmp_path / "small.json").write_text(json.dumps(FILE))
    arguments = ("run", "small.json", "--input", "x", "--journal", "off")
    assert last_line(ENDED, *arguments, folder=tmp_path) == "True"
