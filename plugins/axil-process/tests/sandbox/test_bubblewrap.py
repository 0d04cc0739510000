"""The sandbox of bubblewrap: its command, and what its callers do with and without it."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path

import pytest

from axil.plugin import ComponentBlocked, Policy, Registry, use_registry
from axil_control import Python
from axil_process import Bubblewrap, Docker, Place, Podman, find_sandbox
from axil_workspace import Code, ProgramFault

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
    command = Bubblewrap().launch(["prog", "--bind", "/", "/"], place).command
    given = options(command)
    assert [each[1:] for each in given if each[0] == "--bind"] == [
        (str(tmp_path / "w"),) * 2,
        (str(tmp_path / "t"),) * 2,
    ]
    assert {("--unshare-all",), ("--die-with-parent",), ("--cap-drop", "ALL")} <= set(given)
    assert ("--ro-bind-try", "/some/file", "/some/file") in given
    assert given[-2:] == [("--remount-ro", "/"), ("--chdir", str(tmp_path / "w"))]
    assert command[-4:] == ["prog", "--bind", "/", "/"]
    bound = {each[-1] for each in given if each[0].startswith("--ro-bind")}
    assert not {"/", "/etc", "/home", "/root", "/var", str(Path.home())} & bound


def test_the_python_that_runs_axil_stays_as_it_is_where_it_lies_in_the_folder(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    given = options(Bubblewrap().launch(["prog"], Place(folder=tmp_path)).command)
    wrote = given.index(("--bind", str(tmp_path), str(tmp_path)))
    venv = ("--ro-bind-try", str(tmp_path / "venv"), str(tmp_path / "venv"))
    assert given.index(venv) > wrote


def test_variables_that_load_code_are_the_programs_alone(tmp_path):
    variables = {"LD_PRELOAD": "./evil.so", "PLAIN": "x", "SECRET": "not in a list of processes"}
    launch = Bubblewrap().launch(["prog"], Place(folder=tmp_path, variables=variables))
    assert launch.variables == {"PLAIN": "x", "SECRET": "not in a list of processes"}
    assert ("--setenv", "LD_PRELOAD", "./evil.so") in options(launch.command)
    assert "not in a list of processes" not in launch.command


def test_a_script_of_a_version_manager_that_stands_for_python_is_replaced(monkeypatch, tmp_path):
    script = tmp_path / "shims" / "python3"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nexec manager exec python3\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    for name in ("python3", str(script)):
        command = Bubblewrap().launch([name, "program.py"], Place(folder=tmp_path / "w")).command
        assert command[-2:] == [sys.executable, "program.py"]


def test_a_python_that_can_be_started_and_not_be_read_is_started_as_it_is(monkeypatch, tmp_path):
    program = tmp_path / "python3"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o711)

    def refuse(path: object, *_: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("builtins.open", refuse)  # root may read everything
    command = Bubblewrap().launch([str(program), "program.py"], Place(folder=tmp_path)).command
    assert command[-2:] == [str(program), "program.py"]


# ------------------------------------------------------------------------------ where it works


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
        tools = Code(Code.Config(processes=10))
        assert (await tools.run_code(_Ctx(tmp_path), code))["stdout"] == "65534 here\n"
        reported = await tools.run_command(_Ctx(tmp_path), ["cat", "given.txt", "/etc/passwd"])
        assert reported["stdout"] == "here"
        assert reported["exit_code"] == 1
        killed = await tools.run_code(_Ctx(tmp_path), "import os; os.kill(os.getpid(), 9)")
        assert killed["exit_code"] == -9
        many = "import os, time\nfor _ in range(60): os.fork() or time.sleep(30)\ntime.sleep(30)"
        stopped = await tools.run_code(_Ctx(tmp_path), many)
        assert "processes" in stopped["stopped"]
        with pytest.raises(ProgramFault, match="AX879"):
            await tools.run_command(_Ctx(tmp_path), ["no-such-program"])

    asyncio.run(go())


# -------------------------------------------------------------------------- where it does not


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Bubblewrap, Docker, Podman):
        why = f"{kind.__name__.lower()} does not work here (reasons)"
        monkeypatch.setattr(kind, "problem", lambda self, why=why: why)


@pytest.mark.parametrize(("wanted", "why"), [("required", "bubblewrap"), ("docker", "docker")])
def test_one_that_is_wanted_and_does_not_work_is_an_error_that_says_why(
    without, tmp_path, wanted, why
):
    tools = Code(Code.Config(sandbox=wanted))
    with pytest.raises(ComponentBlocked, match=rf"AX621.*: {why} does not work here \(reasons\)"):
        asyncio.run(tools.run_code(_Ctx(tmp_path), "print(1)"))


def test_without_it_programs_run_as_before_and_the_log_says_why(without, tmp_path, caplog):
    caplog.set_level(logging.INFO, "axil.sandbox")
    from axil_process.programs.sandbox import _log_once

    _log_once.cache_clear()
    tools = Code(Code.Config())
    reported = asyncio.run(tools.run_code(_Ctx(tmp_path), "import os; print(os.getuid())"))
    assert reported["stdout"] == f"{os.getuid()}\n"
    for kind in ("bubblewrap", "docker", "podman"):
        assert f"{kind} does not work here (reasons)" in caplog.text


def test_one_that_a_policy_blocks_is_not_used(tmp_path):
    registry = Registry(Policy(block=["axil-process"]))
    with use_registry(registry):
        assert find_sandbox() == (None, "no sandbox is admitted")
