"""The output of a program on one pipe, kept up to a limit."""

from __future__ import annotations

import asyncio
from typing import Final

_CHUNK: Final = 1 << 16


class Output:
    """The first bytes of a pipe. The rest is read and dropped: the program never has to wait."""

    __slots__ = ("_kept", "is_cut", "reading")

    def __init__(self, stream: asyncio.StreamReader, most_bytes: int) -> None:
        self._kept = bytearray()
        self.is_cut = False
        """True if there was more than is kept."""
        self.reading = asyncio.create_task(self._read(stream, most_bytes))
        """The task that reads; done when the pipe is closed by all that hold it."""

    @property
    def data(self) -> bytes:
        """The bytes that are kept so far."""
        return bytes(self._kept)

    async def _read(self, stream: asyncio.StreamReader, most_bytes: int) -> None:
        while chunk := await stream.read(_CHUNK):
            room = most_bytes - len(self._kept)
            self._kept += chunk[: max(0, room)]
            self.is_cut = self.is_cut or len(chunk) > room
