"""The sandbox: what a program in it finds, and what its callers do with and without it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from axil.plugin import ComponentBlocked, Policy, Registry, use_registry
from axil_control.code import Python
from axil_sandbox import Bubblewrap
from axil_subprocess import Place, find_sandbox, run, sandboxed
from axil_workspace.code import Code
from axil_workspace.errors import ProgramFault
from axil_workspace.process import Bounds, run as run_bounded

WHY_NOT = Bubblewrap().problem()
needs_it = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it works")


def options(command: list[str]) -> list[tuple[str, ...]]:
    """Return the options of bwrap, each with its values."""
    found: list[tuple[str, ...]] = []
    for word in command[1 : command.index("--")]:
        if word.startswith("--"):
            found.append((word,))
        else:
            found[-1] = (*found[-1], word)
    return found


def test_the_command_gives_a_program_its_folder_and_nothing_else_to_write(tmp_path):
    place = Place(folder=tmp_path / "w", reads=[Path("/some/file")], writes=[tmp_path / "t"])
    command = Bubblewrap().command(["prog", "--bind", "/", "/"], place)
    given = options(command)
    assert [each[1:] for each in given if each[0] == "--bind"] == [
        (str(tmp_path / "w"),) * 2,
        (str(tmp_path / "t"),) * 2,
    ]
    assert {("--unshare-all",), ("--die-with-parent",), ("--cap-drop", "ALL")} <= set(given)
    assert ("--ro-bind-try", "/some/file", "/some/file") in given
    assert ("--chdir", str(tmp_path / "w")) in given
    assert given[-2] == ("--remount-ro", "/")
    assert command[-4:] == ["prog", "--bind", "/", "/"]
    bound = {each[-1] for each in given if each[0].startswith("--ro-bind")}
    assert not {"/", "/etc", "/home", "/root", "/var", str(Path.home())} & bound


def test_the_python_that_runs_axil_stays_as_it_is_where_it_lies_in_the_folder(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    given = options(Bubblewrap().command(["prog"], Place(folder=tmp_path)))
    wrote = given.index(("--bind", str(tmp_path), str(tmp_path)))
    venv = ("--ro-bind-try", str(tmp_path / "venv"), str(tmp_path / "venv"))
    assert given.index(venv) > wrote


def test_a_script_of_a_version_manager_that_stands_for_python_is_replaced(monkeypatch, tmp_path):
    script = tmp_path / "shims" / "python3"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nexec manager exec python3\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    for name in ("python3", str(script)):
        command = Bubblewrap().command([name, "program.py"], Place(folder=tmp_path / "w"))
        assert command[-2:] == [sys.executable, "program.py"]


# ------------------------------------------------------------------------------ where it works

_LOOK = """
import json, os, pathlib, socket, sys
found = {"uid": os.getuid(), "home": os.path.exists(sys.argv[1]), "env": "SECRET" in os.environ}
for name, act in {
    "network": lambda: socket.create_connection(("1.1.1.1", 53), timeout=2),
    "own": lambda: pathlib.Path("made.txt").write_text("made"),
    "system": lambda: pathlib.Path("/usr/made.txt").write_text("made"),
    "root": lambda: pathlib.Path("/made.txt").write_text("made"),
    "temporary": lambda: pathlib.Path("/tmp/made.txt").write_text("made"),
    "passwords": lambda: pathlib.Path("/etc/passwd").read_text(),
    "memory": lambda: bytearray(4 << 30),
}.items():
    try:
        act()
        found[name] = True
    except (OSError, MemoryError):
        found[name] = False
found["processes"] = len([name for name in os.listdir("/proc") if name.isdecimal()])
found["interfaces"] = [name for _, name in socket.if_nameindex()]
print(json.dumps(found))
"""


@needs_it
def test_a_program_in_it_has_no_network_no_files_of_the_user_and_a_system_that_is_read_only(
    tmp_path,
):
    secret = tmp_path / "secret"
    secret.write_text("key")
    folder = tmp_path / "w"
    folder.mkdir()
    command = [sys.executable, "-c", _LOOK, str(secret)]

    async def go() -> Any:
        started = await sandboxed(command, Place(folder=folder), "required")
        return await run(started, timeout_seconds=60, output_bytes=10_000, cwd=folder, env={})

    ended = asyncio.run(go())
    assert ended.exit_code == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found.pop("processes") <= 3
    assert found.pop("interfaces") == ["lo"]
    assert found == {
        "uid": 65534,
        "home": False,
        "env": False,
        "network": False,
        "own": True,
        "system": False,
        "root": False,
        "temporary": True,
        "passwords": False,
        "memory": False,
    }
    assert (folder / "made.txt").read_text() == "made"
    assert (folder / "made.txt").stat().st_uid == os.getuid()


@needs_it
def test_what_runs_too_long_is_killed_with_all_that_it_started(tmp_path):
    code = "import os, time\nos.fork()\nos.fork()\nprint('on', flush=True)\ntime.sleep(600)"
    bounds = Bounds(timeout_seconds=1)
    command = [sys.executable, "-c", f"# {tmp_path}\n{code}"]
    ended = asyncio.run(run_bounded(command, tmp_path, bounds, sandbox="required"))
    assert ended.stopped == "time"
    assert "on" in ended.stdout
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [line for line in lines if f"# {tmp_path}\n".encode() in line]


class _Ctx:
    """The context of a firing, as tools need it."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace

    def allows(self, what: str) -> bool:
        return what.partition(":")[0] in ("code", "program")


@needs_it
def test_the_node_and_the_tools_run_in_it_without_being_asked_to(tmp_path):
    code = "import os\nprint(os.getuid(), open('given.txt').read())"
    (tmp_path / "given.txt").write_text("here")
    node = Python(Python.Config(code=code, sandbox="required"))

    async def go() -> None:
        outcome = await node.run([], _Ctx(tmp_path))  # type: ignore[arg-type]
        assert outcome[0]["content"] == "65534 here\n"
        tools = Code(Code.Config())
        assert (await tools.run_code(_Ctx(tmp_path), code))["stdout"] == "65534 here\n"
        reported = await tools.run_command(_Ctx(tmp_path), ["cat", "given.txt", "/etc/passwd"])
        assert reported["stdout"] == "here"
        assert reported["exit_code"] == 1
        killed = await tools.run_code(_Ctx(tmp_path), "import os; os.kill(os.getpid(), 9)")
        assert killed["exit_code"] == -9
        with pytest.raises(ProgramFault, match="AX879"):
            await tools.run_command(_Ctx(tmp_path), ["no-such-program"])

    asyncio.run(go())


# -------------------------------------------------------------------------- where it does not


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bubblewrap, "problem", lambda self: "bwrap does not work here (reasons)")


def test_one_that_is_required_and_does_not_work_is_an_error_that_says_why(without, tmp_path):
    tools = Code(Code.Config(sandbox="required"))
    with pytest.raises(ComponentBlocked, match=r"AX621.*does not work here \(reasons\)"):
        asyncio.run(tools.run_code(_Ctx(tmp_path), "print(1)"))


def test_without_it_programs_run_as_before_and_the_log_says_why(without, tmp_path, caplog):
    caplog.set_level(logging.INFO, "axil.sandbox")
    from axil_subprocess.sandbox import _say

    _say.cache_clear()
    tools = Code(Code.Config())
    reported = asyncio.run(tools.run_code(_Ctx(tmp_path), "import os; print(os.getuid())"))
    assert reported["stdout"] == f"{os.getuid()}\n"
    assert "without a sandbox: bwrap does not work here (reasons)" in caplog.text


def test_one_that_a_policy_blocks_is_not_used(tmp_path):
    registry = Registry(Policy(block=["axil-sandbox"]))
    with use_registry(registry):
        assert find_sandbox() == (None, "axil-sandbox is not installed")
