"""A child process that leads a session and a process group of its own.

A signal to the group reaches all that the program started, but for what calls ``setsid`` itself. A
program that a service of the machine runs, such as a container, is ended by a command of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

from axil.plugin import granted

PIPE: Final = asyncio.subprocess.PIPE
_LOOK: Final = 0.05
"""Seconds between two checks whether a program whose output others hold open has ended."""
_WATCHDOG: Final = str(Path(__file__).with_name("watchdog.py"))
_END_SECONDS: Final = 30
"""Seconds for a command that ends a program."""
KILL: Final[int] = getattr(signal, "SIGKILL", signal.SIGTERM)
"""The signal that no program can ignore."""


class Child:
    """A program that was started; its pipes are those of ``process``."""

    __slots__ = ("_ends", "_is_watched", "_variables", "process")

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        ends: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.process = process
        self._ends, self._variables, self._is_watched = ends, variables, False

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int | IO[bytes] | None = PIPE,
        stdout: int | IO[bytes] | None = PIPE,
        stderr: int | IO[bytes] | None = PIPE,
        line_bytes: int = 1 << 16,
        pass_fds: Sequence[int] = (),
        ends: Sequence[str] = (),
        ends_with_parent: bool = False,
    ) -> Child:
        """Start a program.

        Args:
            env: the whole environment; None: that of this process.
            stdin, stdout, stderr: as for ``subprocess.Popen``.
            line_bytes: the longest line that ``stdout.readline`` returns.
            ends: a command that ends the program, where killing the group is not enough.
            ends_with_parent: its group is killed when this process is gone, however it ended; one
                watchdog, a process of its own, sees to it for all programs.
        Raises: OSError, ValueError: it cannot be started.
        """
        with granted(None):  # callers have asked for it by name
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env=None if env is None else dict(env),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                limit=line_bytes,
                pass_fds=tuple(pass_fds),
                start_new_session=True,
            )
            self = cls(process, ends, env)
            if ends_with_parent and hasattr(os, "killpg"):
                self._is_watched = True
                tell_watchdog(process.pid)
        return self

    @property
    def is_alive(self) -> bool:
        """True if the program itself runs."""
        return self.process.returncode is None

    def signal(self, number: int) -> None:
        """Send a signal to the whole group; nothing happens where none of it is left."""
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, number)
            elif self.is_alive:
                self.process.send_signal(number)

    async def exited(self, seconds: float | None = None) -> bool:
        """Wait until the program has ended, or so many seconds, and return whether it has.

        ``process.wait`` may wait for all that hold its output open as well.
        """
        now = asyncio.get_running_loop().time
        until = None if seconds is None else now() + seconds
        waiting = asyncio.ensure_future(self.process.wait())
        try:
            while self.is_alive and (until is None or now() < until):
                await asyncio.wait([waiting], timeout=_LOOK)
        finally:
            waiting.cancel()
        return not self.is_alive

    async def end(self, grace_seconds: float) -> None:
        """Close the program's input and wait, ask its group to terminate and wait, then kill it."""
        if self.process.stdin is not None:
            with suppress(ConnectionError, RuntimeError):
                self.process.stdin.close()
        if not await self.exited(grace_seconds):
            self.signal(signal.SIGTERM)
            await self.exited(grace_seconds)
        await self.kill()

    async def kill(self) -> None:
        """Kill the group, wait until the program is gone, and close its pipes; may be repeated."""
        ends, self._ends = self._ends, ()
        self.signal(KILL)
        ending: asyncio.Future[None] | None = None
        if ends and (self.is_alive or (self.process.returncode or 0) < 0):  # it did not end itself
            loop = asyncio.get_running_loop()
            ending = loop.run_in_executor(None, end_elsewhere, ends, self._variables)
        try:
            await self.exited()
            if ending is not None:
                await ending
        finally:
            self.close()

    def close(self) -> None:
        """Close the pipes on this side; a program that still runs is killed."""
        if self._is_watched:
            self._is_watched = False
            tell_watchdog(-self.process.pid)
        transport: Any = getattr(self.process, "_transport", None)  # asyncio has no other way
        if transport is not None:
            transport.close()


def tell_watchdog(group: int) -> None:
    """Have a process group killed when this process is gone; a negative number: it has ended."""
    with suppress(OSError):  # somebody has killed the watchdog
        os.write(_line_to_watchdog(), b"%d\n" % group)


@cache
def _line_to_watchdog() -> int:
    """Start the watchdog of this process; return the file that closes when this process is gone."""
    read, write = os.pipe()
    with open(read, "rb") as line:
        watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", _WATCHDOG],
            cwd="/",
            stdin=line,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what is sent to the group of this process does not reach it
        )

    def end() -> None:
        os.close(write)
        with suppress(subprocess.TimeoutExpired):  # a fork of this process may hold the line
            watchdog.wait(1)

    atexit.register(end)
    return write


def end_elsewhere(command: Sequence[str], variables: Mapping[str, str] | None) -> None:
    """Run a command that ends a program, and wait for it; it need not succeed."""
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            command,
            env=None if variables is None else dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_END_SECONDS,
            check=False,
        )
