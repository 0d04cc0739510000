"""Streams and answers of servers without the secrets of the process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TextIO, cast

from axil.secrecy import has_secrets, without_secrets

Send = Callable[[Any], Awaitable[None]]
_TEXTS: Final = (
    b"text/",
    b"application/json",
    b"application/problem+json",
    b"application/x-ndjson",
)
"""The beginnings of media types that are texts."""


def stream_without_secrets(stream: TextIO) -> TextIO:
    """Return a stream that writes to another one without the secrets of this process.

    A secret is found within one call of ``write``.
    """
    return stream if isinstance(stream, _Stream) else cast("TextIO", _Stream(stream))


class _Stream:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Write a text without secrets; the number is that of the characters that were given."""
        self._stream.write(without_secrets(text) if has_secrets() else text)
        return len(text)

    def writelines(self, lines: Iterable[str], /) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def __iter__(self) -> Any:
        return iter(self._stream)


def answer_without_secrets(send: Send) -> Send:
    """Return the ``send`` of an ASGI application whose answers are texts without the secrets of
    this process.

    A secret is found within one message. An answer with a length is sent when it is whole; what is
    a file to be kept (``Content-Disposition: attachment``) is sent as it is.
    """
    return _Answer(send).sent


class _Answer:
    """One answer of an application."""

    __slots__ = ("_body", "_is_text", "_send", "_start")

    def __init__(self, send: Send) -> None:
        self._send, self._is_text = send, False
        self._start: dict[str, Any] | None = None
        """The head of an answer that has a length, until its body is known."""
        self._body = b""

    async def sent(self, message: Any) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            headers = _headers(message)
            self._is_text = (
                has_secrets()
                and headers.get(b"content-type", b"").lower().startswith(_TEXTS)
                and not headers.get(b"content-disposition", b"").startswith(b"attachment")
                and b"content-encoding" not in headers
            )
            if self._is_text and b"content-length" in headers:
                self._start = dict(message)
                return
        elif kind == "http.response.body" and self._is_text:
            await self._sent_body(message)
            return
        await self._send(message)

    async def _sent_body(self, message: Any) -> None:
        if self._start is None:
            await self._send({**message, "body": _clean(message.get("body", b""))})
            return
        self._body += message.get("body", b"")
        if message.get("more_body"):
            return
        start, body = self._start, _clean(self._body)
        if body != self._body:
            kept = [each for each in start["headers"] if each[0].lower() != b"content-length"]
            start["headers"] = [*kept, (b"content-length", str(len(body)).encode())]
        await self._send(start)
        await self._send({**message, "body": body})


def _headers(message: Any) -> dict[bytes, bytes]:
    return {bytes(name).lower(): bytes(value) for name, value in message.get("headers", ())}


def _clean(body: bytes) -> bytes:
    return without_secrets(body.decode("utf-8", "surrogateescape")).encode(
        "utf-8", "surrogateescape"
    )


__all__ = ["answer_without_secrets", "stream_without_secrets"]
