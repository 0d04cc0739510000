"""Server-sent events: those of runs, as the answer to a request."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from axil import AxilError
from axil_serve.errors import error_data
from axil_serve.failures import public_message, status_of
from axil_serve.streams import StreamEvent, StreamPermit

_IDLE_EVENTS: Final = 15
"""Looks at a silent run between two comments in a stream, which keep the connection open."""
SILENCE: Final = b": nothing happens\n\n"
log = logging.getLogger("axil_serve")


def frame(kind: str, data: Any, *, id: str = "") -> bytes:
    """Return a server-sent event; without ``kind`` it has its data alone."""
    lines = [f"id: {id}"] if id else []
    lines += [f"event: {kind}"] if kind else []
    # JSON has no line breaks of its own, so one line of data is enough; surrogates are escaped
    return "\n".join([*lines, f"data: {json.dumps(data)}", "", ""]).encode()


async def frames_of(
    batches: AsyncGenerator[Sequence[StreamEvent]], show: Callable[[StreamEvent], Iterable[bytes]]
) -> AsyncGenerator[bytes]:
    """Yield what ``show`` gives for events, that of a batch together, and comments meanwhile."""
    idle = 0
    async with aclosing(batches):
        async for batch in batches:
            found: list[bytes] = []
            for event in batch:
                if not event.kind and (idle := idle + 1) % _IDLE_EVENTS == 0:
                    found.append(SILENCE)
                found += show(event)
            if found:
                yield b"".join(found)


def event_stream(
    frames: AsyncGenerator[bytes],
    permit: StreamPermit,
    failed: Callable[[Mapping[str, Any]], bytes] = lambda data: frame("error", data),
) -> Response:
    """Return a response of server-sent events, which gives the permit back at its end.

    ``failed``: returns the last event of a stream that fails, of the data of the error.
    """
    return _EventStream(_whole(frames, failed), permit)


async def _whole(
    frames: AsyncGenerator[bytes], failed: Callable[[Mapping[str, Any]], bytes]
) -> AsyncGenerator[bytes]:
    async with aclosing(frames):
        try:
            async for each in frames:
                yield each
        except AxilError as error:  # the status is sent already
            if status_of(error) == 500:
                log.error("a stream failed: %s", error)
            yield failed(error_data(error.id, public_message(error)))


class _EventStream(StreamingResponse):
    def __init__(self, frames: AsyncIterator[bytes], permit: StreamPermit) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(frames, media_type="text/event-stream", headers=headers)
        permit.is_handed_over, self._permit = True, permit

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:  # also of a client that was gone before the first byte
            self._permit.close()
