"""HTTP client that reads event streams to their end, whichever version of the SDK reads them.

The SDK stops reading at ``data: [DONE]``. Before its release 3.50 it then closed the response in
the middle of the body, so that no connection was used twice, and left its generators suspended.
Without that line it reads to the end of the body, where everything closes by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from openai import DefaultAsyncHttpxClient

_END: Final = b"data:[DONE]"
_LEFT: Final = 1.0
"""Seconds in which the rest of the body has to arrive after the last event."""


def whole_client() -> DefaultAsyncHttpxClient:
    """Return a client for the SDK. Its HTTP library is the one that the SDK uses."""
    from openai import DefaultAsyncHttpxClient

    bases = [base.__module__.partition(".")[0] for base in DefaultAsyncHttpxClient.__mro__]
    library: Any = import_module(next(name for name in bases if name != "openai"))

    class Whole(library.AsyncByteStream):  # type: ignore[misc]  # known at run time only
        """A body without the line that ends its events."""

        def __init__(self, body: Any) -> None:
            self.body = body

        def __aiter__(self) -> AsyncIterator[bytes]:
            return without_end(self.body)

        async def aclose(self) -> None:
            await self.body.aclose()

    class Client(DefaultAsyncHttpxClient):
        """The SDK's own client, but for the bodies of event streams."""

        async def send(self, *given: Any, **named: Any) -> Any:
            response: Any = await super().send(*given, **named)
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                response.stream = Whole(response.stream)
            return response

    return Client()


async def without_end(body: Any) -> AsyncIterator[bytes]:
    """Yield the parts of an event stream up to its line ``data: [DONE]``, and read the rest.

    What may be the beginning of that line is kept back until more of it has arrived.
    """
    held, begins = b"", True
    parts = aiter(body)
    async for part in parts:
        if not held and part.endswith(b"\n") and b"[DONE]" not in part:  # nearly always
            begins = True
            yield part
            continue
        lines = (held + part).splitlines(keepends=True)
        for number, line in enumerate(lines):
            if (number or begins) and _bare(line).startswith(_END):
                yield b"".join(lines[:number])
                await _read(parts)
                return
        last = lines[-1] if lines else b""
        is_ended = last.endswith((b"\r", b"\n"))
        may_end = (len(lines) > 1 or begins) and not is_ended and _END.startswith(_bare(last))
        held = lines.pop() if may_end and lines else b""
        begins = is_ended or may_end
        if lines:
            yield b"".join(lines)
    if held:
        yield held


def _bare(line: bytes) -> bytes:
    return line[: len(_END) + 8].replace(b" ", b"")


async def _read(parts: AsyncIterator[bytes]) -> None:
    """Read what is left; a server that does not end the body loses the connection."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LEFT):
            async for _ in parts:
                pass
