"""Programs of the pages and of tests, and commands of axil, each in a process of its own that has
already imported the members.

The processes are forks of one that did nothing but import; where there is no fork, each imports
for itself.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import reduction
from multiprocessing.context import BaseContext
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import IO, Any, cast

from tests.house.checkout import ROOT, all_modules

from axil_command import script

AXIL = str(Path(sys.executable).with_name("axil"))
"""The command of the environment of the tests."""
LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
_OF_TESTS = ("", str(ROOT))
"""The parts of the path of modules that a command does not have."""


@cache
def context() -> BaseContext:
    """Return what starts processes: forks of one that has imported every module of the members."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    chosen = multiprocessing.get_context("forkserver")
    chosen.set_forkserver_preload([__name__, *all_modules()])
    return chosen


def run(code: str, folder: Path, *, timeout_seconds: float) -> tuple[int | None, str]:
    """Run a program in a folder with warnings as errors; return its exit code and its errors."""
    output = folder.with_suffix(".txt")
    child = context().Process(target=_run, args=(code, folder, output))
    child.start()
    child.join(timeout_seconds)
    child.kill()
    child.join()
    return child.exitcode, output.read_text("utf-8")


def command(
    words: list[str],
    folder: Path,
    environment: dict[str, str],
    *,
    stdin: str,
    timeout_seconds: float,
) -> tuple[int | None, str, str]:
    """Run ``axil`` with words in a folder; return its exit code, its output and its errors."""
    with TemporaryDirectory() as place:
        files = [Path(place, name) for name in ("in", "out", "err")]
        for file, text in zip(files, (stdin, "", ""), strict=True):
            file.write_text(text, "utf-8")
        child = context().Process(target=_command, args=(words, folder, environment, files))
        child.start()
        child.join(timeout_seconds)
        child.kill()
        child.join()
        return child.exitcode, *(file.read_text("utf-8") for file in files[1:])


def axil(words: Sequence[str], folder: Path) -> tuple[int | None, str, str]:
    """Run ``axil`` with words in a folder, with the variables of the tests and no input."""
    environment, seconds = dict(os.environ), 300.0
    return command([AXIL, *words], folder, environment, stdin="", timeout_seconds=seconds)


class Forked:
    """A process of ``axil``, or of ``python`` with a file or ``-c``, maybe behind ``-W``.

    It has a part of the face of ``subprocess.Popen``.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int | IO[Any] | None = None,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
        text: bool = False,
        start_new_session: bool = False,
    ) -> None:
        own: list[IO[Any] | None] = []
        given: list[int] = []
        for number, stream in enumerate((stdin, stdout, stderr)):
            pipe = None
            if stream == subprocess.PIPE:
                ends = os.pipe()
                given.append(ends[1 if number else 0])
                mode = ("r" if number else "w") + ("" if text else "b")
                pipe = open(ends[0 if number else 1], mode)  # noqa: SIM115
            elif stream == subprocess.STDOUT:
                given.append(os.dup(given[1]))
            elif stream == subprocess.DEVNULL:
                given.append(os.open(os.devnull, os.O_RDWR))
            else:
                given.append(os.dup(number if stream is None else stream.fileno()))
            own.append(pipe)
        self.stdin, self.stdout, self.stderr = own
        files = [_Given(number) for number in given]
        place, environment = Path(cwd or Path.cwd()), dict(os.environ if env is None else env)
        arguments = ([str(each) for each in words], place, environment, files, start_new_session)
        self._process = context().Process(target=_program, args=arguments)
        self._process.start()
        for number in given:
            os.close(number)
        self.pid = self._process.pid or 0

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        """Return the exit code, None while the process lives."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code when there is one. Raises: subprocess.TimeoutExpired."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, if it lives."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[Any, None]:
        """Return what is left of the output, when the process has ended."""
        if self.stdin is not None:
            self.stdin.close()
        assert self.stdout is not None
        with self.stdout:
            said = self.stdout.read()
        self.wait(timeout)
        return said, None

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *error: object) -> None:
        for each in (self.stdin, self.stdout, self.stderr):
            if each is not None:
                each.close()
        self.wait()


Popen: Any = Forked if not LONG and hasattr(os, "fork") else subprocess.Popen
"""The start of a program of a test: a fork in the usual run, from nothing in the thorough one."""


class _Given:
    """A file that a process is given when it is forked."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        return _number, (reduction.DupFd(self.number),)


def _number(given: Any) -> int:
    return given.detach()


def _enter(folder: Path, environment: Mapping[str, str], files: Sequence[int], first: str) -> None:
    """Have the folder, the variables, the files and the path of a program begun from nothing."""
    os.chdir(folder)
    for number, file in enumerate(files):
        os.dup2(file, number)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
        for number in range(len(files))
    )
    os.environ.clear()
    os.environ.update(environment)
    own = [
        str(folder / each) for each in environment.get("PYTHONPATH", "").split(os.pathsep) if each
    ]
    sys.path[:] = [first, *own, *(each for each in sys.path if each not in _OF_TESTS)]


def _command(
    words: list[str], folder: Path, environment: dict[str, str], files: list[Path]
) -> None:
    kinds = (os.O_RDONLY, os.O_APPEND | os.O_WRONLY, os.O_APPEND | os.O_WRONLY)
    opened = [os.open(folder / file, kind) for file, kind in zip(files, kinds, strict=True)]
    _enter(folder, environment, opened, str(Path(words[0]).parent))
    sys.argv[:] = words
    script()


def _program(
    words: list[str],
    folder: Path,
    environment: dict[str, str],
    files: list[int],
    is_leader: bool,
) -> None:
    """Run what a command line says, as a process of its own would."""
    if is_leader:
        os.setsid()
    if words[0] == AXIL:
        _enter(folder, environment, files, str(Path(AXIL).parent))
        sys.argv[:] = words
        return script()
    _, *words = words
    if words[0] == "-W":
        _, action, *words = words
        warnings.resetwarnings()
        warnings.simplefilter(cast("Any", action))
    if words[0] == "-c":
        _, code, *words = words
        name, first, words = "<string>", "", ["-c", *words]
    else:
        name, first = words[0], str(Path(words[0]).parent)
        code = Path(folder, name).read_text("utf-8")
    _enter(folder, environment, files, first)
    sys.argv[:] = words
    sys.modules["__main__"] = main = ModuleType("__main__")
    main.__file__ = name
    try:
        exec(compile(code, name, "exec"), main.__dict__)  # noqa: S102 (a program of a test)
    finally:
        atexit._run_exitfuncs()


def _run(code: str, folder: Path, output: Path) -> None:
    os.chdir(folder)
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    warnings.resetwarnings()
    warnings.simplefilter("error")
    known = "'asyncio.iscoroutinefunction' is deprecated"  # of chromadb's telemetry, on 3.14
    warnings.filterwarnings("ignore", known, DeprecationWarning, "chromadb")
    sys.path[0:0] = [""]
    sys.modules["__main__"] = main = ModuleType("__main__")
    try:
        exec(compile(code, "<page>", "exec"), main.__dict__)  # noqa: S102 (a page of ours)
    except BaseException:  # noqa: BLE001 (whatever it is, the test shows it)
        traceback.print_exc()
        sys.exit(1)
