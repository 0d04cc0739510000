"""Programs, run in a folder: with limits on what they use, and without the environment's secrets.

Without a sandbox a program has the rights of the user who runs axil. What is promised, and what is
not, is in ``docs/how-to/run-code-safely.md``.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from axil.plugin import granted
from axil_process import (
    KILL,
    Child,
    Launch,
    Output,
    Place,
    Wanted,
    end_elsewhere,
    sandboxed,
    settle,
)
from axil_workspace.errors import ProgramFault

PASSED: Final = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"),
    *("LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""Variables that a program may need and that hold no secrets. All others stay behind."""
_CHUNK: Final = 1 << 16
_LOOK: Final = 0.05
"""Seconds between two looks whether a program that says nothing has ended."""
_GRACE: Final = 5.0
"""Seconds for the launcher to end what it started; it needs some hundredths."""
_MARGIN: Final = 30.0
_LOOSE: Final = 2
"""The delay of a sandbox's own limits after ours, which give the reason: seconds, and a factor."""
_REPORT: Final = "axil-process: stopped: "
"""The beginning of the line in which a sandbox says why it ended a program."""
_LAUNCHER: Final = str(Path(__file__).with_name("launcher.py"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of a program.

    Processor time, address space and file size hold for each of its processes, the rest for all
    together.
    """

    timeout_seconds: float = 60
    cpu_seconds: int = 60
    memory_bytes: int = 2 << 30
    file_bytes: int = 256 << 20
    """The size of a file that it writes."""
    processes: int = 64
    output_bytes: int = 100_000
    """Of each output what is kept; the rest is read and dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a program."""

    exit_code: int | None
    """None: it was stopped; negative: a signal ended it."""
    stdout: str
    stderr: str
    stopped: str = ""
    """The cause of a stop: ``time``, ``cpu``, ``memory``, ``processes``, ``gone`` (not awaited)."""

    def as_data(self, bounds: Bounds) -> dict[str, Any]:
        """Return the same for a model."""
        why = {
            "time": f"it ran longer than {bounds.timeout_seconds:g} seconds",
            "cpu": f"it used more than {bounds.cpu_seconds} seconds of processor time",
            "memory": f"it used more than {bounds.memory_bytes} bytes of memory",
            "processes": f"it started more than {bounds.processes} processes",
        }.get(self.stopped, self.stopped)
        data: dict[str, Any] = {"exit_code": self.exit_code, "stdout": self.stdout}
        more = {"stderr": self.stderr, "stopped": why}
        return data | {name: text for name, text in more.items() if text}


def environment(
    home: Path, temporary: str, more: Mapping[str, str], around: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return what a program sees of the environment: a few harmless variables and its config's."""
    outside = os.environ if around is None else around
    passed = {name: outside[name] for name in PASSED if name in outside}
    own = {"HOME": str(home), "TMPDIR": temporary, "PYTHONDONTWRITEBYTECODE": "1"}
    return {**passed, **own, **more}


async def run_bounded(
    command: Sequence[str],
    folder: Path,
    bounds: Bounds,
    *,
    env: Mapping[str, str] | None = None,
    given: str = "",
    sandbox: Wanted = "off",
    reads: Sequence[Path] = (),
) -> Ended:
    """Run a program in ``folder`` and wait for its end; with ``given`` as its standard input.

    ``reads``: what it reads beside the folder, where it runs in a sandbox.

    If the waiting is cancelled, the program is killed with all that it started before this returns.
    Raises: ProgramFault (AX879): it cannot be started. ComponentBlocked (AX621): there is no
    sandbox, and one is required.
    """
    if os.name != "posix" or not sys.executable:
        message = "programs cannot run here: this system cannot enforce their limits."
        raise ProgramFault("AX879", message, "Use Linux or macOS.")
    with granted(None):
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="axil-", ignore_cleanup_errors=True) as temporary,
        _file(given) as stdin,
        _pipe() as (status, report),
    ):
        settings: dict[str, Any] = {
            "status": report,
            "stdin": stdin.fileno(),
            "cpu_seconds": bounds.cpu_seconds,
            "memory_bytes": bounds.memory_bytes,
            "file_bytes": bounds.file_bytes,
            "processes": bounds.processes,
        }
        place = Place(
            folder=folder,
            writes=[Path(temporary)],
            reads=reads,
            variables=environment(folder, temporary, env or {}),
            seconds=bounds.timeout_seconds + _MARGIN,
            memory_bytes=_LOOSE * bounds.memory_bytes,
            processes=_LOOSE * bounds.processes,
            cpu_seconds=bounds.cpu_seconds,
            file_bytes=bounds.file_bytes,
        )
        try:
            launch = await sandboxed(command, place, sandbox)
            settings["is_sandboxed"] = launch.command != list(command)
            settings["ends"] = launch.ends
            launcher = await Child.start(
                [sys.executable, "-I", "-S", _LAUNCHER, json.dumps(settings), *launch.command],
                cwd=folder,
                env=launch.variables,
                pass_fds=(report, stdin.fileno()),
            )
        except (OSError, ValueError) as error:
            # too many files are open, an argument is too long, or holds a zero byte
            why = getattr(error, "strerror", None) or error
            message = f'"{command[0]}" cannot be started: {why}.'
            raise ProgramFault("AX879", message, "Pass long texts in a file.") from error
        stopped, outputs = await _watched(launcher, bounds, launch)
        return _ended(_reported(status), command[0], stopped, outputs)


@contextmanager
def _pipe() -> Generator[tuple[int, int]]:
    """Open the pipe by which the launcher reports the end, also if the program fills the disk.

    To read, and to write.
    """
    ends = os.pipe()
    try:
        os.set_blocking(ends[0], False)
        yield ends
    finally:
        for end in ends:
            os.close(end)


def _reported(status: int) -> list[str]:
    """Return the lines that are in the pipe."""
    try:
        return os.read(status, _CHUNK).decode().splitlines()
    except BlockingIOError:
        return []


def _ended(report: Sequence[str], program: str, stopped: str, outputs: tuple[str, str]) -> Ended:
    last: dict[str, Any] = {}
    for line in report:
        stated = json.loads(line)
        if "error" in stated:
            message = f'"{program}" cannot be started: {stated["error"]}.'
            hint = "Check the program's name, and that it is installed."
            raise ProgramFault("AX879", message, hint)
        last = stated
    stdout, stderr = outputs
    # without a report, the launcher itself was killed
    why = stopped or (last["stopped"] if last else "it killed its supervisor")
    if not why and last["code"] == -signal.SIGKILL:  # by its sandbox, which says so at the end
        why = stderr.rstrip().rpartition("\n")[2].partition(_REPORT)[2].rstrip(".")
    return Ended(exit_code=None if why else last["code"], stdout=stdout, stderr=stderr, stopped=why)


def _file(text: str) -> IO[bytes]:
    """Return a file without a name."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by its user
    file.write(text.encode("utf-8", errors="replace"))
    file.seek(0)
    return file


async def _watched(launcher: Child, bounds: Bounds, launch: Launch) -> tuple[str, tuple[str, str]]:
    """Wait for the end; return why the program was stopped, if it was, and its outputs."""
    streams = (launcher.process.stdout, launcher.process.stderr)
    outputs = [Output(stream, bounds.output_bytes) for stream in streams if stream is not None]
    stopped = ""
    try:
        async with asyncio.timeout(bounds.timeout_seconds):
            await launcher.exited()
    except TimeoutError:
        stopped = "time"
    finally:
        await settle(_gone(launcher, [output.reading for output in outputs], launch))
    stdout, stderr = (_text(output, bounds.output_bytes) for output in outputs)
    return stopped, (stdout, stderr)


async def _gone(launcher: Child, readers: Sequence[asyncio.Task[None]], launch: Launch) -> None:
    """Hang up, and wait until the launcher has ended what it started; if it does not, end it."""
    if launcher.process.stdin is not None:
        launcher.process.stdin.close()
    if not await launcher.exited(_GRACE):
        await asyncio.to_thread(_end, launcher)
        if launch.ends:
            await asyncio.to_thread(end_elsewhere, launch.ends, launch.variables)
        await launcher.exited()
    await asyncio.wait(readers, timeout=_GRACE / 10)
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    launcher.close()


def _end(launcher: Child) -> None:
    """Kill what the launcher started, and then itself, where it does not do so."""
    from axil_workspace.launcher import descendants

    until = time.monotonic() + _GRACE
    while time.monotonic() < until:
        left = [pid for pid in descendants(launcher.process.pid) if _is_alive(pid)]
        if not left:
            break
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK)
    launcher.signal(KILL)


def _is_alive(pid: int) -> bool:
    """Return whether a process is alive, rather than an ended one that was not yet waited for."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2]
        return facts.split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _text(output: Output, limit: int) -> str:
    decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
    # the last character may be cut in its middle
    text = decode(output.data, final=not output.is_cut).replace("\r\n", "\n")
    return f"{text}\n[output cut after {limit} bytes]" if output.is_cut else text
