"""HTTP server for the machines that watch a worker: is it alive, is it ready, what does it count.

It answers ``GET`` for four paths and nothing else, without a token: a client sees names of
queues and workflows, and numbers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from axil import ConfigError, Problem
from axil.plugin import JournalError
from axil_journals import journal_metrics, process_metrics

_SECONDS: Final = 5.0
"""For a request, and for the journal to answer."""
_LONGEST: Final = 8192
_BEAT_SECONDS: Final = 1.0
_TEXT: Final = "text/plain; charset=utf-8"


def address_of(given: str) -> tuple[str, int]:
    """Return host and port. Raises: ConfigError (AX700).

    >>> address_of("9464"), address_of("0.0.0.0:9464")
    (('127.0.0.1', 9464), ('0.0.0.0', 9464))
    """
    host, _, port = given.rpartition(":")
    if not (port.isdecimal() and port.isascii() and int(port) < 65536):
        message = f'"{given}" is no address.'
        hint = "Write a port, or host:port."
        raise ConfigError(Problem("AX700", "--status", message, hint))
    return host.strip("[]") or "127.0.0.1", int(port)


class Probes:
    """The answers about one engine."""

    def __init__(self, engine: Any) -> None:
        self._engine, self._journal = engine, engine.journal

    async def answer(self, path: str) -> tuple[int, str]:
        """Return the status and the text for a path."""
        if path == "/healthz":
            return 200, "ok\n"
        if path == "/metrics":
            writer: Any = getattr(self._journal, "writer", None)
            commits = getattr(writer, "commits", 0)
            tally = self._engine.tally
            return 200, process_metrics(tally, loaded=self._engine.loaded, commits=commits)
        if path not in ("/readyz", "/metrics/journal"):
            return 404, "not found\n"
        try:
            now = time.time()
            call = self._journal.next_due if path == "/readyz" else self._journal.counts
            found = await asyncio.wait_for(asyncio.to_thread(call, now), _SECONDS)
        except (JournalError, TimeoutError) as error:
            why = error.message if isinstance(error, JournalError) else "it does not answer"
            return 503, f"the journal cannot be used: {why}\n"
        return 200, "ok\n" if path == "/readyz" else journal_metrics(found, now)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        with suppress(OSError, TimeoutError, EOFError, asyncio.LimitOverrunError):
            async with asyncio.timeout(2 * _SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                method, _, rest = head.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
                path = rest.partition(" ")[0].partition("?")[0]
                status, text = await self.answer(path) if method == "GET" else (405, "GET only\n")
                body = text.encode()
                writer.write(
                    f"HTTP/1.1 {status} {'OK' if status == 200 else 'Refused'}\r\n"
                    f"content-type: {_TEXT}\r\ncontent-length: {len(body)}\r\n"
                    "connection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        writer.close()

    async def watch(self) -> None:
        """Measure how late the event loop is."""
        while True:
            began = time.monotonic()
            await asyncio.sleep(_BEAT_SECONDS)
            self._engine.tally.lag = max(0.0, time.monotonic() - began - _BEAT_SECONDS)


@asynccontextmanager
async def answered_probes(engine: object, address: str) -> AsyncGenerator[int]:
    """Answer about an engine at an address while it is entered; yields the port. Empty: nowhere.

    Raises: ConfigError (AX700): it is no address, or cannot be listened at.
    """
    if not address:
        yield 0
        return
    given, (host, port) = Probes(engine), address_of(address)
    try:
        server = await asyncio.start_server(given.serve, host, port, limit=_LONGEST)
    except OSError as error:
        message = f"the address {address} cannot be listened at: {error.strerror}."
        hint = "Choose another port."
        raise ConfigError(Problem("AX700", "--status", message, hint)) from None
    watching = asyncio.create_task(given.watch())
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        watching.cancel()
        server.close()
