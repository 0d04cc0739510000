"""Laws of running programs: within limits, without secrets, and gone when they are to be gone."""

from __future__ import annotations

import asyncio
import io
import json
import os
import stat
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from axil_workspace import process
from axil_workspace.code import Code
from axil_workspace.errors import NotAllowed, ProgramFault, TextFault, WorkspaceError
from axil_workspace.process import environment
from axil_workspace.python_env import PythonEnv
from axil_workspace.video import Video


@pytest.fixture(autouse=True)
def without_a_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """These are about programs as they run without one; axil-process has tests of its own."""
    monkeypatch.setattr(
        "axil_process.programs.sandbox.find_sandbox", lambda name, **_: (None, name)
    )


pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="programs run only where limits can be enforced"
)
on_linux = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="only Linux says who descends from whom"
)


@pytest.fixture
def code(use):
    def call(program: str, **config: Any) -> Any:
        return json.loads(use(Code(Code.Config(**config)), "run_code", code=program))

    return call


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def all_gone(place: Any) -> bool:
    """Return whether the processes that wrote their numbers into ``pids`` are gone, or go by
    themselves long before their time.
    """
    pids = [int(word) for word in place.read("pids").split()]
    assert len(pids) > 1
    until = time.monotonic() + 60
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.01)
    return not any(map(alive, pids))


PATIENT = Code(Code.Config(timeout_seconds=500))


async def late(call: Coroutine[Any, Any, str], place: Any) -> str:
    """Return what a call gives whose time is up when its program has made the file ``said``: the
    event loop's clock is put forward then.
    """
    reported = asyncio.ensure_future(call)
    # it is another process that makes it
    while place.stat("said") is None and not reported.done():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    loop: Any = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + 500
    return await reported


FAMILY = """
import os, subprocess, sys, time
child = '''import os, time
if {away}:
    os.setsid()
open('pids', 'a').write(str(os.getpid()) + ' ')
time.sleep(600)'''
open("pids", "a").write(str(os.getpid()) + " ")
for away in (False, True):
    subprocess.Popen([sys.executable, "-c", child.format(away=away)])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("pids", "a").write(str(os.getpid()) + " ")
        time.sleep(600)
    os._exit(0)
while len(open("pids").read().split()) < 4:
    time.sleep(0.01)
open("ready", "w").close()
"""
"""A program with children, one of which leaves its group, and one that goes to the background as a
daemon does.
"""


def test_a_program_works_in_the_workspace_and_says_what_it_says(code, place):
    place.write("helper.py", b"def twice(n): return 2 * n\n")
    program = (
        "import helper, sys\nprint(helper.twice(21))\nopen('out.txt', "
        "'w').write('made')\nsys.exit('oh')"
    )
    reported = code(program)
    assert reported == {"exit_code": 1, "stdout": "42\n", "stderr": "oh\n"}
    assert place.read("out.txt") == b"made"
    assert sorted(each.path for each in place.entries()) == ["helper.py", "out.txt"]


def test_a_program_that_is_allowed_is_the_only_one(tmp_path, called, firing_of, monkeypatch):
    for name in ("echo", "other"):
        (tmp_path / name).write_text("#!/bin/sh\necho planted\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    firing = firing_of(tmp_path, "program:echo", "program:other", "program:./echo")

    def said(command, **config):
        arguments = {"command": command}
        kind = Code(Code.Config(**config))
        return asyncio.run(called(kind, "run_command", arguments, firing))

    assert json.loads(said(["echo", "real"]))["stdout"] == "real\n"
    for command in (["cat", "x"], [f"{tmp_path}/echo"], ["/bin/echo"]):
        with pytest.raises(NotAllowed, match="AX876"):
            said(command)
    for command in (["./echo"], ["other"]):
        with pytest.raises(ProgramFault, match="AX879"):
            said(command)
    for name in ("PATH", "LD_PRELOAD"):
        with pytest.raises(NotAllowed, match=name):
            said(["echo"], env={name: str(tmp_path)})
    with pytest.raises(NotAllowed, match="AX876"):
        asyncio.run(called(Code, "run_code", {"code": "print(1)"}, firing))


def test_code_runs_only_where_it_is_allowed(tmp_path, called, firing_of):
    firing = firing_of(tmp_path)
    for kind, name, arguments in (
        (Code, "run_code", {"code": "open('x', 'w')"}),
        (Code, "run_command", {"command": ["touch", "x"]}),
        (PythonEnv, "init_python_env", {}),
        (PythonEnv, "uv_run", {"module": "x"}),
        (Video, "concat_videos", {"video_paths": ["x"]}),
        (Video, "render_manim", {"script_path": "x"}),
    ):
        with pytest.raises(NotAllowed, match=r"AX876.*--allow (code|program:\w+)\."):
            asyncio.run(called(kind, name, arguments, firing))
    assert list(tmp_path.iterdir()) == []


def test_programs_see_no_secrets(code, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    monkeypatch.setenv("PYTHONSTARTUP", "canary")
    reported = code("import os; print(dict(os.environ))")
    assert "canary" not in reported["stdout"]
    assert (
        "'GREETING': 'hi'"
        in code("import os; print(dict(os.environ))", env={"GREETING": "hi"})["stdout"]
    )


@on_linux
def test_no_ancestor_that_belongs_to_the_program_holds_secrets(code, monkeypatch):
    """The supervisor between axil and the program could be read by the program: it has no secrets
    either.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    assert (
        "canary"
        not in code("import os; print(open(f'/proc/{os.getppid()}/environ').read())")["stdout"]
    )


def test_what_is_passed_on_is_a_short_list(tmp_path):
    seen = environment(
        tmp_path,
        "/tmp/t",
        {"MORE": "1"},
        {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "canary", "HTTP_PROXY": "canary"},
    )
    assert seen == {
        "PATH": "/bin",
        "HOME": str(tmp_path),
        "TMPDIR": "/tmp/t",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MORE": "1",
    }


@on_linux
def test_a_program_that_takes_too_long_is_killed_with_all_that_it_started(firing, place, called):
    program = FAMILY + "print('so far', flush=True)\nopen('said', 'w').close()\ntime.sleep(600)"
    reported = asyncio.run(
        late(called(PATIENT, "run_code", {"code": program, "timeout_seconds": 500}, firing), place)
    )
    assert json.loads(reported) == {
        "exit_code": None,
        "stdout": "so far\n",
        "stopped": "it ran longer than 500 seconds",
    }
    assert all_gone(place)


@on_linux
def test_a_program_that_stops_its_supervisor_is_killed_with_all_that_it_started(
    firing, place, called, monkeypatch
):
    monkeypatch.setattr(process, "_GRACE", 0.2)
    program = FAMILY + (
        "import signal\nos.kill(os.getppid(), signal.SIGSTOP)\nopen('said', "
        "'w').close()\ntime.sleep(600)"
    )
    reported = asyncio.run(
        late(called(PATIENT, "run_code", {"code": program, "timeout_seconds": 500}, firing), place)
    )
    assert json.loads(reported)["stopped"] == "it ran longer than 500 seconds"
    assert all_gone(place)


@on_linux
def test_what_a_program_leaves_behind_is_killed(code, place):
    assert code(FAMILY + "print('done')")["stdout"] == "done\n"
    assert all_gone(place)


@on_linux
def test_cancelling_kills_the_program_and_all_that_it_started(firing, place, called):
    async def run() -> None:
        task = asyncio.create_task(
            called(Code, "run_code", {"code": FAMILY + "time.sleep(600)"}, firing)
        )
        # it is another process that gets ready
        while place.stat("ready") is None and not task.done():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert all_gone(place)


@on_linux
def test_however_often_it_is_cancelled_nothing_is_left_when_it_returns(firing, place, called):
    async def run() -> None:
        task = asyncio.create_task(
            called(Code, "run_code", {"code": FAMILY + "time.sleep(600)"}, firing)
        )
        # it is another process that gets ready
        while place.stat("ready") is None and not task.done():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not any(alive(int(word)) for word in place.read("pids").split())

    asyncio.run(run())


@on_linux
def test_a_program_that_fills_the_disk_is_reported_as_any_other(code, monkeypatch):
    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            return super().write(data) if data else 0

        def read(self, size: int = -1) -> bytes:
            return b""

    monkeypatch.setattr(process.tempfile, "TemporaryFile", lambda: Full("/dev/full", "r+"))
    assert code("print('full'); raise SystemExit(3)") == {"exit_code": 3, "stdout": "full\n"}


@pytest.mark.parametrize(
    ("argument", "why"), [("x" * 300_000, "Argument list too long"), ("a\0b", "null byte")]
)
def test_an_argument_that_no_program_can_take_is_reported(use, argument, why):
    with pytest.raises(ProgramFault, match=f'AX879 "printf" cannot be started: .*{why}'):
        use(Code, "run_command", command=["printf", argument])


@on_linux
def test_a_memory_hog_is_stopped(code):
    alone = code("x = bytearray(1 << 30)", memory_bytes=256 << 20)
    assert alone["exit_code"] == 1
    assert "MemoryError" in alone["stderr"]
    hog = "import os, time\nfor _ in range(3): os.fork()\nx = b'x' * (64 << 20)\ntime.sleep(600)"
    assert (
        code(hog, memory_bytes=256 << 20)["stopped"]
        == f"it used more than {256 << 20} bytes of memory"
    )


@on_linux
def test_a_fork_bomb_is_stopped(code):
    assert (
        code("import os\nwhile True: os.fork()", processes=10)["stopped"]
        == "it started more than 10 processes"
    )


def test_processor_time_is_bounded(code):
    assert (
        code("while True: pass", cpu_seconds=1)["stopped"]
        == "it used more than 1 seconds of processor time"
    )


def test_files_and_outputs_are_bounded(code, place):
    reported = code("with open('big', 'wb') as f: f.write(b'x' * 5000)", file_bytes=1000)
    assert reported["exit_code"] != 0
    assert place.stat("big").size <= 1000
    reported = code("print('x' * 5000)", output_bytes=100)
    assert reported["stdout"] == "x" * 100 + "\n[output cut after 100 bytes]"
    reported = code("print('é' * 5000)", output_bytes=101)
    assert reported["stdout"] == "é" * 50 + "\n[output cut after 101 bytes]"


def test_a_wish_for_more_time_than_there_is_is_not_heard(use):
    slow = Code(Code.Config(timeout_seconds=0.3))
    reported = json.loads(
        use(slow, "run_code", code="import time; time.sleep(600)", timeout_seconds=600)
    )
    assert reported["stopped"] == "it ran longer than 0.3 seconds"


def test_a_command_is_a_list_and_no_shell_reads_it(use, place):
    reported = json.loads(
        use(Code, "run_command", command=["printf", "%s|", "$HOME", "; touch x", "*"])
    )
    assert reported == {"exit_code": 0, "stdout": "$HOME|; touch x|*|"}
    assert json.loads(use(Code, "run_command", command=["cat"], stdin="given"))["stdout"] == "given"
    assert list(place.entries()) == []
    with pytest.raises(ProgramFault, match='AX879 "no-such-program" cannot be started'):
        use(Code, "run_command", command=["no-such-program"])
    with pytest.raises(NotAllowed, match="AX876"):
        use(Code(Code.Config(programs=("cat",))), "run_command", command=["printf", "x"])


def test_a_program_that_kills_its_supervisor_is_reported(code):
    reported = code(
        "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(0.2)"
    )
    assert (reported["exit_code"], reported["stopped"]) == (None, "it killed its supervisor")


def test_code_needs_a_workspace(called, firing_of):
    with pytest.raises(WorkspaceError, match="AX874"):
        asyncio.run(called(Code, "run_code", {"code": "1"}, firing_of(None, "code")))


# ---------------------------------------------------------------------- programs that may not be in


@pytest.fixture
def plays(tmp_path, monkeypatch):
    """``plays("uv", "…")``: a program of that name is on the path; each call's arguments are added
    to ``calls`` in the workspace.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    def make(name: str, body: str = "") -> None:
        file = folder / name
        file.write_text(
            f"#!{sys.executable} -I\nimport sys, os\nopen('calls', 'a').write(repr(sys.argv[1:]) "
            f"+ '\\n')\n{body}\n"
        )
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    return make


def lines(place: Any) -> list[str]:
    return place.read("calls").decode().splitlines()


@pytest.mark.parametrize("part", ["!1", "=1", " ", "1", ",", "-", "[a]"])
def test_what_is_no_package_is_seen_in_one_pass(use, part):
    with pytest.raises(TextFault, match="AX888"):
        use(PythonEnv, "install_python_packages", packages=[f"a>1{part * 1000}@"])


def test_a_python_environment_is_made_once_and_packages_are_added(use, place, plays):
    plays("uv", "open({'init': 'pyproject.toml', 'venv': '.venv'}.get(sys.argv[1], 'other'), 'w')")
    reported = json.loads(use(PythonEnv, "init_python_env", python_version="3.12"))
    assert [each["step"] for each in reported["steps"]] == [
        "uv init --bare --no-workspace",
        "uv venv --python 3.12",
    ]
    assert json.loads(use(PythonEnv, "init_python_env")) == {"ok": True, "steps": []}
    use(
        PythonEnv,
        "install_python_packages",
        packages=["numpy", "pandas[excel]>=2,<3"],
        upgrade=True,
    )
    assert lines(place)[-1] == "['add', '--upgrade', '--', 'numpy', 'pandas[excel]>=2,<3']"


@pytest.mark.parametrize(
    "package", ["--editable", "git+https://x.test/y", "../x", "a; rm", "", "a b"]
)
def test_what_is_no_package_is_not_installed(use, plays, package):
    plays("uv")
    with pytest.raises(TextFault, match="AX888"):
        use(PythonEnv, "install_python_packages", packages=[package])


def test_a_step_that_fails_is_the_last(use, plays):
    plays("uv", "sys.exit('no')")
    reported = json.loads(use(PythonEnv, "install_python_packages", packages=["numpy"]))
    assert (reported["ok"], len(reported["steps"]), reported["steps"][0]["stderr"]) == (
        False,
        1,
        "no\n",
    )


def test_a_script_runs_in_the_environment(use, place, plays):
    plays("uv", "print('ran')")
    place.write("main.py", b"")
    reported = json.loads(use(PythonEnv, "uv_run", script="main.py", args=["a"], env={"X": "1"}))
    assert reported == {"exit_code": 0, "stdout": "ran\n"}
    assert lines(place) == [
        repr(["run", "--", "env", "X=1", "python", str(place.root / "main.py"), "a"])
    ]
    for wrong in ({}, {"module": "m", "script": "s"}):
        with pytest.raises(TextFault, match="AX888"):
            use(PythonEnv, "uv_run", **wrong)


def test_a_program_that_is_not_installed_is_named(use, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProgramFault, match=r"AX879.*needs the program uv, which is not installed"):
        use(PythonEnv, "uv_run", module="m")


def test_a_scene_is_rendered_beside_its_script(use, place, plays):
    made = (
        "folder = sys.argv[sys.argv.index('--media_dir') + 1] + '/videos/x'; "
        "os.makedirs(folder); open(folder + '/Intro.mp4', 'w')"
    )
    plays("manim", made)
    place.write("scenes/intro.py", b"class Intro: ...\nclass Other: ...\n")
    assert json.loads(use(Video, "render_manim", script_path="scenes/intro.py", quality="l")) == {
        "path": "scenes/Intro.mp4"
    }
    assert sorted(each.path for each in place.entries(depth=9)) == [
        "calls",
        "scenes",
        "scenes/Intro.mp4",
        "scenes/intro.py",
    ]
    place.write("empty.py", b"x = 1\n")
    with pytest.raises(TextFault, match=r"AX888.*no scene"):
        use(Video, "render_manim", script_path="empty.py")
    plays("manim", "sys.exit('cannot')")
    with pytest.raises(ProgramFault, match=r"AX889.*cannot"):
        use(Video, "render_manim", script_path="scenes/intro.py")


def test_videos_are_put_together_beside_the_first(use, place, plays):
    plays(
        "ffmpeg",
        "print(open(sys.argv[sys.argv.index('-i') + 1]).read(), file=open('listing', 'w')); "
        "open(sys.argv[-1], 'w')",
    )
    place.write("v/it's.mp4", b"")
    place.write("b.mp4", b"")
    assert json.loads(use(Video, "concat_videos", video_paths=["v/it's.mp4", "b.mp4"])) == {
        "path": "v/combined_video.mp4"
    }
    assert place.read("listing").decode().split("\n")[:2] == [
        f"file '{place.root}/v/it'\\''s.mp4'",
        f"file '{place.root}/b.mp4'",
    ]
    with pytest.raises(WorkspaceError, match="AX875"):
        use(Video, "concat_videos", video_paths=["none.mp4"])
