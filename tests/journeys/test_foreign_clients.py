"""Front-end developers with clients that others wrote: each in its own language, at one server.

``make clients`` installs them in a folder of its own, which AXIL_CLIENTS names, and runs the
programs of ``clients/``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.person import ROOT, Server, Terminal, readme

PROGRAMS = Path(__file__).parent / "clients"
CLIENTS = Path(os.environ.get("AXIL_CLIENTS", ""))
BROKEN = """\
version: 1
graph:
  start: [clerk]
  end: [clerk]
  nodes:
    - id: clerk
      type: agent
      config: {model: {type: scripted, default: {status: 400}}, instructions: You fail.}
  edges: []
"""
pytestmark = pytest.mark.skipif(
    not os.environ.get("AXIL_CLIENTS"), reason="AXIL_CLIENTS names no clients: make clients"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("foreign")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    terminal = Terminal(folder)
    shutil.copy(ROOT / "examples/human.yaml", terminal.folder)
    terminal.write("brief.yaml", readme("yaml"))
    terminal.write("broken.yaml", BROKEN)
    yield Server(terminal, "axil serve human.yaml brief.yaml broken.yaml")
    terminal.close()


@pytest.mark.parametrize("name", sorted(each.name for each in PROGRAMS.glob("*.[mp][jy]*")))
def test_a_client_of_others_does_what_it_does_elsewhere(
    server: Server, folder: Path, name: str, tmp_path: Path
) -> None:
    is_python = name.endswith(".py")
    program = CLIENTS / "python/bin/python" if is_python else shutil.which("node")
    if program is None or not (is_python or (CLIENTS / "node_modules").is_dir()):
        pytest.skip("npm is not installed")
    # modules are looked for beside the program
    copy = Path(shutil.copy(PROGRAMS / name, CLIENTS / name))
    given = {"ADDRESS": server.address, "TOKEN": server.token, "LLM_USER_PATH": str(tmp_path)}
    given["AXIL"] = str(Path(sys.executable).with_name("axil"))
    done = subprocess.run(
        [program, copy],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=folder,
        env={**os.environ, **given, "NO_PROXY": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
