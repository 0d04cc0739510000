"""``python``: runs a program in a process of its own, with a time limit, an output limit and an
environment without secrets.

A process is not a sandbox: the program can do what the user who runs it can do. So it runs only
where the caller of the run allowed code. It starts in the run's workspace, sees a handful of
harmless variables, and is killed with all that it started when its time is up or the run is
cancelled.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from pydantic import BaseModel, Field

from axil import Context
from axil.plugin import ComponentBlocked, Message, message, text_of
from axil_control.conditions import FAILED

_BLOCK = re.compile(r"```[\w+-]*[ \t]*\r?\n(.*?)```", re.DOTALL)
_PASSED: Final = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SYSTEMROOT",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
)
"""Variables that a program may need and that hold no secrets. All others stay behind."""
_CHUNK: Final = 1 << 16
_LOOK: Final = 0.05
"""Seconds between two looks whether a program that says nothing has ended."""
_GRACE: Final = 0.5
"""Seconds for what a program left behind to close its output."""


class Python:
    """``python``: runs ``config.code``, or the first fenced block of the last message, or the whole
    of it.

    A program in ``config.code`` finds the text of what came on its standard input. What it prints
    is the output. A program that fails or takes too long is data too: a text that begins with
    ``==CODE EXECUTION FAILED==``, for the conditions ``code_pass`` and ``code_fail``.
    """

    capabilities = ("runs_code", "varies")

    lane = "python"

    class Config(BaseModel, extra="forbid", frozen=True):
        """What runs, and within which limits."""

        code: str | None = Field(
            default=None, description="The program; without it, it is taken from the last message."
        )
        interpreter: str = Field(
            default="", description="The interpreter; empty: the one that runs axil."
        )
        args: tuple[str, ...] = Field(
            default=(), description="Arguments of the interpreter, before the program."
        )
        env: dict[str, str] = Field(
            default_factory=dict[str, str], description="Further environment variables."
        )
        timeout_seconds: int | float = Field(
            default=60, gt=0, allow_inf_nan=False, description="How long it may run."
        )
        encoding: str = Field(default="utf-8", description="The encoding of its output.")
        output_limit: int = Field(
            default=1_000_000,
            ge=1,
            description="Bytes of each output that are kept; the rest is read and dropped.",
        )

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()

    async def run(self, messages: list[Message], ctx: Context) -> list[Message]:
        if not ctx.allows("code"):
            raise ComponentBlocked(
                "a python node runs code, which this run does not allow.",
                id="AX620",
                hint="Allow it if you trust the workflow and what reaches the node: "
                'allow={"code"}, or --allow-code.',
            )
        code = program(
            text_of(messages[-1])
            if self.config.code is None and messages
            else self.config.code or ""
        )
        if not code:
            return [failure("No executable code segment found")]
        with tempfile.TemporaryDirectory(prefix="axil-") as temporary:
            ended = await execute(
                code,
                self.config,
                ctx.workspace or Path(temporary),
                text_of(messages) if self.config.code else "",
            )
        if ended.error is None and ended.exit_code == 0:
            return [message(ended.stdout, "assistant")]
        return [failure(ended.error or "Script execution failed", ended.exit_code, ended.stderr)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    error: str | None = None
    """Why there is no exit code."""


def program(text: str) -> str:
    """The program in a text: its first fenced block, or all of it.

    >>> program("Try this:\\n```python\\nprint(1)\\n```")
    'print(1)'
    """
    block = _BLOCK.search(text)
    return textwrap.dedent(block[1] if block else text).strip()


def failure(error: str, exit_code: int | None = None, stderr: str = "") -> Message:
    """The message of a program that failed."""
    lines = [FAILED, error]
    if exit_code is not None:
        lines.append(f"exit_code={exit_code}")
    if stderr:
        lines.append(f"stderr:\n{stderr}")
    return message("\n".join(lines), "assistant")


def environment(
    config: Python.Config, workspace: Path, around: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return what the program sees of the environment: what it needs, and what its config says."""
    outside = os.environ if around is None else around
    passed = {name: outside[name] for name in _PASSED if name in outside}
    return {
        **passed,
        "HOME": str(workspace),
        "PYTHONIOENCODING": config.encoding,
        "PYTHONDONTWRITEBYTECODE": "1",
        **config.env,
    }


async def execute(code: str, config: Python.Config, workspace: Path, given: str = "") -> Ended:
    """Run ``code`` in ``workspace``, with ``given`` as its input, and wait for its end, or for that
    of its time.
    """
    interpreter = config.interpreter or sys.executable
    making = asyncio.ensure_future(
        asyncio.to_thread(_files, code, workspace, (given, config.encoding))
    )
    try:
        script, stdin = await asyncio.shield(making)
    except asyncio.CancelledError:
        # the thread cannot be stopped: what it makes goes when it has made it
        making.add_done_callback(_let_go)
        await asyncio.wait([making])
        raise
    try:
        # A group of its own, so that what the program starts can be killed with it.
        process = await asyncio.create_subprocess_exec(
            interpreter,
            *config.args,
            str(script),
            cwd=workspace,
            env=environment(config, workspace),
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError):
        return Ended(error=f"Interpreter {interpreter} not found")
    else:
        return await _watched(process, config)
    finally:
        stdin.close()
        await asyncio.to_thread(script.unlink, missing_ok=True)


def _files(code: str, workspace: Path, given: tuple[str, str]) -> tuple[Path, IO[bytes]]:
    """The program's file, and the one that it reads as its input."""
    stdin = _readable(*given)
    try:
        return _written(code, workspace), stdin
    except BaseException:
        stdin.close()
        raise


def _let_go(made: asyncio.Future[tuple[Path, IO[bytes]]]) -> None:
    if not made.cancelled() and made.exception() is None:
        script, stdin = made.result()
        stdin.close()
        script.unlink(missing_ok=True)


def _written(code: str, workspace: Path) -> Path:
    workspace.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix="script_", suffix=".py", dir=workspace)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(code + "\n")
    except BaseException:
        os.unlink(name)
        raise
    return Path(name)


def _readable(text: str, encoding: str) -> IO[bytes]:
    """The text as a file without a name: nobody has to feed a program that does not read."""
    data = text.encode(encoding, errors="replace")
    # closed by its user, after the program has ended
    file = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        file.write(data)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


async def _watched(process: asyncio.subprocess.Process, config: Python.Config) -> Ended:
    kept = [bytearray(), bytearray()]
    readers = [
        asyncio.create_task(_read(stream, into, config.output_limit))
        for stream, into in zip((process.stdout, process.stderr), kept, strict=True)
    ]
    error = None
    try:
        await asyncio.wait_for(_ended(process, readers), config.timeout_seconds)
    except TimeoutError:
        error = f"Script did not finish within {config.timeout_seconds}s"
    finally:
        if process.returncode is None or not all(reader.done() for reader in readers):
            _kill(process)
            await asyncio.shield(_gone(process, readers))
    cut = [not reader.cancelled() and reader.result() for reader in readers]
    stdout, stderr = (_text(raw, config, too_much) for raw, too_much in zip(kept, cut, strict=True))
    if error is not None:
        return Ended(stderr=stderr or stdout, error=error)
    return Ended(stdout=stdout, stderr=stderr, exit_code=process.returncode)


async def _ended(process: asyncio.subprocess.Process, readers: list[asyncio.Task[bool]]) -> None:
    """Wait for the program's own end.

    ``process.wait`` alone would wait for all that hold its output open as well.
    """
    while process.returncode is None and not all(reader.done() for reader in readers):
        await asyncio.wait(readers, timeout=_LOOK)
    if all(reader.done() for reader in readers):
        await process.wait()
    else:
        await asyncio.wait(readers, timeout=_GRACE)


async def _read(stream: asyncio.StreamReader | None, into: bytearray, limit: int) -> bool:
    """Read to the end, keep ``limit`` bytes; whether more came.

    What is not kept is read too, so that nobody waits for room.
    """
    too_much = False
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        room = limit - len(into)
        into += chunk[:room]
        too_much = too_much or len(chunk) > room
    return too_much


async def _gone(process: asyncio.subprocess.Process, readers: list[asyncio.Task[bool]]) -> None:
    """Wait until a killed program is gone; what left its group and still holds its output is not
    waited for.
    """
    while process.returncode is None:
        await asyncio.wait(readers, timeout=_LOOK) if not all(
            reader.done() for reader in readers
        ) else await process.wait()
    await asyncio.wait(readers, timeout=_GRACE)
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    transport: Any = getattr(process, "_transport", None)  # the only way to close its pipes
    if transport is not None:
        transport.close()


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()


def _text(raw: bytearray, config: Python.Config, too_much: Any) -> str:
    text = raw.decode(config.encoding, errors="replace").replace("\r\n", "\n")
    return f"{text}\n[output cut after {config.output_limit} bytes]" if too_much else text
