"""A program that is run to its end, within limits of time and of output."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from axil_process.programs.child import KILL, Child
from axil_process.programs.output import Output

_LOOK: Final = 0.05
"""Seconds between two checks whether a program that writes nothing has ended."""
_GRACE: Final = 0.5
"""Seconds for what a program left behind to close its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a program."""

    exit_code: int | None
    """None: its time was up; negative: a signal ended it."""
    stdout: bytes
    stderr: bytes
    is_stdout_cut: bool
    is_stderr_cut: bool


async def run_program(
    command: Sequence[str],
    *,
    timeout_seconds: float | None,
    output_bytes: int,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = asyncio.subprocess.DEVNULL,
    ends: Sequence[str] = (),
) -> Ended:
    """Run a program to its end, or until its time is up or the waiting is cancelled; then nothing
    of its group is left.

    Args:
        timeout_seconds: None: it may take as long as it likes.
        output_bytes: how much of each output is kept.
        env: the whole environment; None: that of this process.
        ends: a command that ends the program, where killing its group is not enough.
    Raises: OSError, ValueError: it cannot be started.
    """
    child = await Child.start(command, cwd=cwd, env=env, stdin=stdin, ends=ends)
    stdout, stderr = child.process.stdout, child.process.stderr
    assert stdout is not None
    assert stderr is not None
    outputs = Output(stdout, output_bytes), Output(stderr, output_bytes)
    is_late = False
    try:
        async with asyncio.timeout(timeout_seconds):
            await _over(child, [output.reading for output in outputs])
    except TimeoutError:
        is_late = True
    finally:
        await settle(_gone(child, [output.reading for output in outputs]))
    out, err = outputs
    return Ended(
        exit_code=None if is_late else child.process.returncode,
        stdout=out.data,
        stderr=err.data,
        is_stdout_cut=out.is_cut,
        is_stderr_cut=err.is_cut,
    )


async def settle(doing: Coroutine[Any, Any, None]) -> None:
    """Await what must not be interrupted, however often the waiting is cancelled meanwhile.

    Raises: CancelledError: it was cancelled; ``doing`` is done then.
    """
    task, cancelled = asyncio.ensure_future(doing), None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    task.result()


async def _over(child: Child, readers: Sequence[asyncio.Task[None]]) -> None:
    """Wait for the program's own end, and shortly for the end of its output."""
    while child.is_alive:
        if all(reader.done() for reader in readers):
            await child.exited()
        else:
            await asyncio.wait(readers, timeout=_LOOK)
    await asyncio.wait(readers, timeout=_GRACE)


async def _gone(child: Child, readers: Sequence[asyncio.Task[None]]) -> None:
    """Kill what is left, and stop reading; what left the group is not waited for."""
    try:
        if not all(reader.done() for reader in readers):
            child.signal(KILL)
            await child.exited()
            await asyncio.wait(readers, timeout=_GRACE)
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        await child.kill()
