"""A server at an address: streamable HTTP, with headers and a token of its own and answers of
bounded size.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from axil_mcp.addresses import LOOPBACK, strange_address
from axil_mcp.config import MCPServer, secrets_of

log = logging.getLogger("axil_mcp")


def headers_of(server: MCPServer) -> dict[str, str]:
    """Return the headers of each request, their values among them.

    Raises: ConfigError (AX134): a secret is not set.
    """
    headers = secrets_of(server.headers, f"{server.place}, headers")
    if server.token is not None:
        headers["Authorization"] = (
            "Bearer " + secrets_of({"token": server.token}, server.place)["token"]
        )
    if (
        headers
        and urlsplit(server.url).scheme == "http"
        and urlsplit(server.url).hostname not in LOOPBACK
    ):
        log.warning("%s: headers go over the network unencrypted; use https.", server.place)
    return headers


@asynccontextmanager
async def http(
    server: MCPServer,
    headers: dict[str, str],
    refused: Callable[[int], None],
    login: Callable[[str], None] | None = None,
) -> AsyncGenerator[Any]:
    """Open the streams of messages from and to the server.

    ``refused`` receives the status of each answer that is an error; ``login`` shows a person the
    address to log in at, None: there is none.
    """
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    class Bounded(httpx2.AsyncHTTPTransport):
        """Gives up on an answer that is too long; a stream of events is bounded event by event."""

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if fault := strange_address(server.url, str(request.url)):
                raise httpx2.UnsupportedProtocol(fault, request=request)
            response = await super().handle_async_request(request)
            if response.status_code >= 400:
                refused(response.status_code)
            encoding = response.headers.get("content-encoding", "").strip().lower()
            if encoding not in ("", "identity"):
                # what is unpacked later cannot be counted here, and a few kB may become many GB
                await response.aclose()
                message = f"an answer was compressed as {encoding[:40]!r}, which was not asked for"
                raise httpx2.DecodingError(message, request=request)
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                response.stream = _Short(response.stream, server.max_message_bytes)
            return response

    class _Short(httpx2.AsyncByteStream):
        def __init__(self, stream: Any, limit: int) -> None:
            self._stream, self._limit = stream, limit

        async def __aiter__(self) -> AsyncIterator[bytes]:
            seen = 0
            async for part in self._stream:
                seen += len(part)
                if seen > self._limit:
                    raise httpx2.StreamError(f"an answer was longer than {self._limit} bytes")
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    # How long an answer may take is each call's business: a stream that waits for a person says
    # nothing for hours.
    auth = None
    if server.oauth is not None:
        from axil_mcp.oauth import auth_of

        auth = auth_of(server.url, server.oauth, server.place, login)
    plain = {**headers, "Accept-Encoding": "identity"}
    timeout = httpx2.Timeout(server.connect_timeout_seconds, read=None)
    async with (
        httpx2.AsyncClient(
            headers=plain, timeout=timeout, transport=Bounded(), auth=auth
        ) as client,
        streamable_http_client(
            server.url, http_client=client, max_sse_event_size=server.max_message_bytes
        ) as streams,
    ):
        yield streams
