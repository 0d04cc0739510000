"""Connections of the servers of commands: headers have a limited time, and name one host.

uvicorn ends connections that are idle between requests, but waits without end for the rest of the
headers once a byte of them has come; so their time is counted here.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final, cast

HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{0,5})?")
"""The form of a whole header ``Host``: behind a colon there is a port, and nothing else."""
HEADER_SECONDS: Final = 10.0
"""The time in which the headers of a request have to come, from its first byte or the connection's
beginning."""
_LATE: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def bounded_protocol(seconds: float = HEADER_SECONDS) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol of HTTP with a time limit for the headers of each request; behind
    it the answer is 408, or nothing where not a byte came, and the connection ends.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class Bounded(cast("Any", AutoHTTPProtocol)):
        """A connection; what it inherits is known at run time only, hence the ``ignore``."""

        _deadline: asyncio.TimerHandle | None = None
        _has_begun = False
        """True if a part of the awaited headers is there."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)  # pyright: ignore[reportUnknownMemberType]
            self._await_headers()

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)  # pyright: ignore[reportUnknownMemberType]
            is_elsewhere = self.transport.get_protocol() is not self  # a connection was upgraded
            if self.cycle is not before or is_elsewhere:
                self._forget()
            elif self.cycle is None or self.cycle.response_complete:
                self._has_begun = True
                self._await_headers()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)  # pyright: ignore[reportUnknownMemberType]

        def _await_headers(self) -> None:
            if self._deadline is None:
                self._deadline = self.loop.call_later(seconds, self._end)

        def _forget(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
            self._deadline, self._has_begun = None, False

        def _end(self) -> None:
            if self._has_begun and not self.transport.is_closing():
                self.transport.write(_LATE)
            self.transport.close()

    return cast("type[asyncio.Protocol]", Bounded)


__all__ = ["HEADER_SECONDS", "HOST", "bounded_protocol"]
