"""``python``: runs a program in a process of its own, with a time limit, an output limit and an
environment without secrets.

A process is not a sandbox: the program can do what the user who runs it can do. So it runs only
where the caller of the run allowed code. It is killed, with all that it started, when it ends, its
time is up or the run is cancelled.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from pydantic import BaseModel, Field

from axil import Context
from axil.plugin import ComponentBlocked, Message, message, text_of
from axil_control.conditions import FAILED
from axil_process import Place, Wanted, run_program, sandboxed

_BLOCK = re.compile(r"```[\w+-]*[ \t]*\r?\n(.*?)```", re.DOTALL)
_MARGIN: Final = 30.0
"""Seconds after its time is up at which the sandbox ends a program by itself."""
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
"""Variables that a program may need and that hold no secrets; it sees no others."""


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
        """The code that runs, and its limits."""

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
            default_factory=dict[str, str], description="Additional environment variables."
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
        sandbox: Wanted = Field(
            default="auto",
            description="auto: in a sandbox where one works; required: an error where none does; "
            "off: none.",
        )

    wants = ("code",)

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
    """The end of a program."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    error: str | None = None
    """The reason why there is no exit code."""


def program(text: str) -> str:
    """Return the program in a text: its first fenced block, or all of it.

    >>> program("Try this:\\n```python\\nprint(1)\\n```")
    'print(1)'
    """
    block = _BLOCK.search(text)
    return textwrap.dedent(block[1] if block else text).strip()


def failure(error: str, exit_code: int | None = None, stderr: str = "") -> Message:
    """Return the message of a program that failed."""
    lines = [FAILED, error]
    if exit_code is not None:
        lines.append(f"exit_code={exit_code}")
    if stderr:
        lines.append(f"stderr:\n{stderr}")
    return message("\n".join(lines), "assistant")


def environment(
    config: Python.Config, workspace: Path, around: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the variables that the program sees."""
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
    """Run ``code`` in ``workspace``, with ``given`` as its input, until it ends or its time is
    up.
    """
    interpreter = config.interpreter or sys.executable
    making = asyncio.ensure_future(
        asyncio.to_thread(_files, code, workspace, (given, config.encoding))
    )
    try:
        script, stdin = await asyncio.shield(making)
    except asyncio.CancelledError:
        # the thread cannot be stopped: what it makes goes when it has made it
        making.add_done_callback(_remove)
        await asyncio.wait([making])
        raise
    try:
        place = Place(
            folder=workspace,
            variables=environment(config, workspace),
            seconds=config.timeout_seconds + _MARGIN,
        )
        launch = await sandboxed([interpreter, *config.args, str(script)], place, config.sandbox)
        ended = await run_program(
            launch.command,
            timeout_seconds=config.timeout_seconds,
            output_bytes=config.output_limit,
            cwd=workspace,
            env=launch.variables,
            stdin=stdin,
            ends=launch.ends,
        )
    except (FileNotFoundError, PermissionError):
        return Ended(error=f"Interpreter {interpreter} not found")
    finally:
        stdin.close()
        await asyncio.to_thread(script.unlink, missing_ok=True)
    stdout = _text(ended.stdout, config, is_cut=ended.is_stdout_cut)
    stderr = _text(ended.stderr, config, is_cut=ended.is_stderr_cut)
    if ended.exit_code is None:
        error = f"Script did not finish within {config.timeout_seconds}s"
        return Ended(stderr=stderr or stdout, error=error)
    return Ended(stdout=stdout, stderr=stderr, exit_code=ended.exit_code)


def _files(code: str, workspace: Path, given: tuple[str, str]) -> tuple[Path, IO[bytes]]:
    """Return the program's file, and the one that it reads as its input."""
    stdin = _readable(*given)
    try:
        return _written(code, workspace), stdin
    except BaseException:
        stdin.close()
        raise


def _remove(made: asyncio.Future[tuple[Path, IO[bytes]]]) -> None:
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
    """Return the text as a file without a name: a program that does not read need not be fed."""
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


def _text(raw: bytes, config: Python.Config, *, is_cut: bool) -> str:
    text = raw.decode(config.encoding, errors="replace").replace("\r\n", "\n")
    return f"{text}\n[output cut after {config.output_limit} bytes]" if is_cut else text
