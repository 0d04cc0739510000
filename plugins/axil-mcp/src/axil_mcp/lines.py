"""The standard input of a server that is a program: lines of bounded length."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, BinaryIO, Final

log = logging.getLogger("axil_mcp")
LONGEST: Final = 8_000_000
"""Bytes of a message of a client; a longer one ends the input."""


class Lines:
    """A text file of lines that have a longest length, as ``anyio.wrap_file`` takes it."""

    def __init__(self, file: BinaryIO, longest: int = LONGEST) -> None:
        self._file, self._longest = file, longest

    def readline(self) -> str:
        """Return the next line; empty: there is none, or it is too long."""
        line = self._file.readline(self._longest + 1)
        if len(line) > self._longest:
            log.error("a message of the client was longer than %d bytes.", self._longest)
            return ""
        return line.decode("utf-8", "replace")


@asynccontextmanager
async def bounded_input() -> AsyncGenerator[Any]:
    """Give the standard input to a server alone: what it runs meanwhile reads nothing from it.

    None where the process has no such input, and on Windows, where the SDK has its own way with it.
    """
    import anyio

    if sys.platform == "win32":
        yield None
        return
    try:
        fd = sys.stdin.buffer.fileno()
        own = os.dup(fd)
    except (AttributeError, OSError, ValueError):
        yield None
        return
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, fd)
        # a thread may still read from it when the server has ended, so it is not closed
        file = os.fdopen(own, "rb", closefd=False)
        yield anyio.wrap_file(Lines(file))  # pyright: ignore[reportArgumentType]  # it reads lines
    finally:
        os.dup2(own, fd)
        os.close(nothing)
