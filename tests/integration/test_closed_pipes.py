"""Readers that go: each command that prints ends quietly, as ``axil … | head`` wants it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FLOW = """
graph:
  id: hello
  nodes:
    - {id: say, type: literal, config: {content: hello}}
    - {id: ask, type: human}
  edges: [{from: say, to: ask}]
  start: [say]
  end: [ask]
"""
SAID = """
graph:
  id: said
  nodes: [{id: say, type: literal, config: {content: hello}}]
  start: [say]
  end: [say]
"""
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="commands run in forks")
COMMANDS = (
    "--help",
    "--version",
    "run --help",
    "runs show --help",
    "run said.yaml --input x",
    "run said.yaml --input x --format json",
    "run said.yaml --input x --format events",
    "check flow.yaml",
    "check flow.yaml --format json",
    "show flow.yaml",
    "show flow.yaml --format mermaid",
    "schema",
    "batch said.yaml rows.csv",
    "batch said.yaml rows.csv --format json",
    "submit said.yaml --input x",
    "runs list",
    "runs list --format json",
    "runs show r",
    "runs show r --steps",
    "runs show r --json",
    "runs show r --at 2",
    "runs answer r yes --format json",
    "runs resume s --format json",
    "runs fork r",
    "runs diff r s",
    "runs export r",
    "runs export r --html",
    "runs prune --dry-run --format json",
    "runs doctor --format json",
    "eval run said.yaml cases.jsonl --scorer exact",
    "eval run said.yaml cases.jsonl --scorer exact --format json",
    "eval compare report.json report.json",
    "lock said.yaml",
    "plugins list",
    "plugins doctor",
    "plugins why said.yaml",
    "plugins freeze said.yaml",
)
SHARED = (
    "asyncio",
    "axil_agent.nodes",
    "axil_cli.batch.command",
    "axil_cli.check",
    "axil_cli.draft.command",
    "axil_cli.progress",
    "axil_cli.run",
    "axil_cli.runs",
    "axil_cli.show",
    "axil_cli.worker",
    "axil_control",
    "axil_evals.command",
    "axil_files.loading",
    "axil_mcp.command",
    "axil_plugins.command",
    "axil_serve.command",
    "axil_sqlite.journal",
)
SCRIPT = """
import gc, importlib, json, os, sys
from axil.plugin import default_registry
from axil_cli.main import script

# once, and not in each fork
for name in json.loads(sys.argv.pop()):
    importlib.import_module(name)
default_registry().names("nodes")
gc.freeze()
for line in sys.stdin:
    words, both = json.loads(line)
    child = os.fork()
    if not child:
        sys.stdin = open(os.devnull)
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)
        os.dup2(writer if both else os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.argv[:] = ["axil", *words]
        script()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipes")
    files = {
        "flow.yaml": FLOW,
        "said.yaml": SAID,
        "rows.csv": "message\nx\n",
        "cases.jsonl": '{"inputs": "x", "expected": "hello"}\n',
    }
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def ended(folder: Path) -> Iterator[Callable[..., tuple[int, str]]]:
    """Execute a command whose reader has gone: its exit code, and its errors."""
    command = [sys.executable, "-c", SCRIPT, json.dumps(SHARED)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=folder, **pipes) as process:

        def end(words: str, *, both: bool = False) -> tuple[int, str]:
            process.stdin.write(json.dumps([words.split(), both]) + "\n")
            process.stdin.flush()
            code = int(process.stdout.readline())
            return code, "" if both else (folder / "said").read_text("utf-8")

        end("run flow.yaml --input x --run-id r")
        end("run flow.yaml --input x --run-id s")
        end("eval run said.yaml cases.jsonl --scorer exact --out report.json")
        yield end
        process.stdin.close()


@pytest.mark.third
@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_whose_reader_has_gone_ends_quietly(ended, words):
    code, said = ended(words)
    assert not [each for each in ("Traceback", "Broken", "Exception") if each in said], said
    assert code == (0 if words.endswith("--help") else 141)  # argparse ends as it would


@pytest.mark.third
@pytest.mark.parametrize("words", [each for each in COMMANDS if each.startswith(("run ", "batch"))])
def test_nothing_breaks_where_errors_cannot_be_said_either(ended, words):
    code, _ = ended(words, both=True)
    assert code == (0 if words.endswith("--help") else 141)
