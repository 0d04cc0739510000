"""The socket: requests in, acts out, on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from axil_testing.stub.act import Act, strange
from axil_testing.stub.batches import Batches, uploaded
from axil_testing.stub.caching import PromptCache, front
from axil_testing.stub.dialects import DIALECTS
from axil_testing.stub.listener import Listener

KEY: Final = "canary-77c1-key"
"""The key that a client has to have; it must not be seen anywhere but in a request's headers."""

_TOGETHER_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a service, and its key."""

    url: str = "http://127.0.0.1:9"
    """Without anything else: an address without a listener."""
    key: str = KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request."""

    path: str
    headers: Mapping[str, str]
    body: Any
    """A file that was uploaded: its bytes."""
    method: str = "POST"

    @property
    def text(self) -> str:
        """The body as JSON."""
        return json.dumps(self.body, ensure_ascii=False)


@dataclass(slots=True)
class _Tally:
    """The counts of connections."""

    made: int = 0
    open: int = 0
    left: int = 0
    most: int = 0


class Stub(Listener):
    """A scripted service: a context manager; see the package."""

    def __init__(
        self, dialect: str = "chat", *, delay_seconds: float = 0.0, caches: bool = False
    ) -> None:
        """``dialect``: ``chat``, ``responses``, ``messages`` or ``generate``.

        ``delay_seconds``: before every answer. ``caches``: it counts the tokens of each request,
        and those that its prompt cache knows of earlier ones; ``messages`` caches what is marked.
        """
        self.dialect = DIALECTS[dialect]
        self.key = KEY
        self.url = ""
        """The base URL for a client."""
        self.requests: list[Asked] = []
        self._delay = delay_seconds
        self._cache = PromptCache(marked=dialect == "messages") if caches else None
        self.batches = Batches(self.dialect)
        """The batches that were submitted, and how they go."""
        self.refuses: Callable[[Any], str] | None = None
        """Given the body of a request: why it is refused with 400; empty: it is not."""
        self.counted: list[tuple[int, int]] = []
        """Of each request its tokens, and how many of them the prompt cache knew."""
        self._acts: list[Act] = []
        self._tally = _Tally()
        super().__init__("axil-stub")

    # -- for tests

    def say(self, *acts: Act | str | Mapping[str, Any]) -> None:
        """Do this with the next requests, in order; after that it answers ``OK``."""
        self._acts += [Act.of(each) for each in acts]

    @property
    def connections(self) -> int:
        """The number of connections so far."""
        return self._tally.made

    @property
    def most_at_once(self) -> int:
        """The greatest number of connections at the same time."""
        return self._tally.most

    @property
    def left_early(self) -> int:
        """The number of connections that the client closed before the answer was whole."""
        return self._tally.left

    def open_connections(self, patience_seconds: float = 30.0) -> int:
        """Return how many connections are open, after those that are closing have had time."""
        until = time.monotonic() + patience_seconds
        while self._tally.open and time.monotonic() < until:
            time.sleep(0.005)
        return self._tally.open

    # -- life

    async def serve(self) -> None:
        """See ``Listener``."""
        server = await asyncio.start_server(self._welcome, "127.0.0.1", 0, limit=2**26)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{self.dialect.base}"
        await self.until_over()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tally = self._tally
        tally.made += 1
        tally.open += 1
        tally.most = max(tally.most, tally.open)
        try:
            with contextlib.suppress(
                ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError
            ):
                while await self._exchange(reader, writer):
                    pass
        finally:
            tally.open -= 1
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection stays open."""
        asked = await _read(reader)
        if asked is None:
            return False
        self.requests.append(asked)
        line = _Line(reader, writer)
        if self.batches.takes(asked.path):
            return await self._batched(asked, line)
        act = self._next_act()
        if self._cache is not None:
            tokens, cached = self._cache.asked(front(asked.body))
            self.counted.append((tokens, cached))
            act = replace(act, usage={**act.usage, "input": tokens, "cached": cached})
        try:
            return await self._answer(act, asked, line)
        except _Left:
            self._tally.left += 1
            return False

    def _next_act(self) -> Act:
        return self._acts.pop(0) if self._acts else Act(text="OK")

    async def _batched(self, asked: Asked, line: _Line) -> bool:
        """Answer a request for files or batches; return whether the connection stays open."""
        given = self.batches.respond(asked.method, asked.path, asked.body, self._next_act)
        if given is None:
            return False
        try:
            await line.whole(*given)
        except _Left:
            self._tally.left += 1
            return False
        return True

    async def _answer(self, act: Act, asked: Asked, line: _Line) -> bool:
        await line.wait(self._delay + act.delay_seconds)
        until = time.monotonic() + _TOGETHER_SECONDS
        while self._tally.most < act.together and time.monotonic() < until:
            await line.wait(0.01)
        if self.refuses is not None and (fault := self.refuses(asked.body)):
            act = replace(act, status=400, message=fault)
        if act.status != 200:
            body = self.dialect.error(act) if act.body is None else act.body
            await line.whole(act.status, body, act.headers)
            return True
        if asked.path.partition("?")[0].endswith("/embeddings"):
            await line.whole(200, _embedded(asked.body), act.headers)
            return True
        if act.is_whole:
            await line.whole(200, self.dialect.whole(act, asked.body), act.headers)
            return True
        await line.begin(act.headers)
        pieces = list(self.dialect.stream(act, asked.body))
        if act.is_strange:
            pieces = [strange(piece) for piece in pieces]
        places = {
            name: None if share is None else round(share * len(pieces))
            for name, share in _shares(act).items()
        }
        for number, piece in enumerate([*pieces, b""]):
            if number == places["stall"]:
                await line.wait(60.0)
            if number == places["break"]:
                return False
            if number == places["fail"]:
                await line.piece(self.dialect.failed(act))
                break
            if number == places["end"]:
                break
            await line.piece(
                piece[: len(piece) * 2 // 3] + b"\n\n" if number == places["garble"] else piece
            )
            await line.wait(act.pause_seconds)
        await line.end()
        return True


def _shares(act: Act) -> dict[str, float | None]:
    return {
        "stall": act.stall_at,
        "break": act.break_at,
        "fail": act.fail_at,
        "end": act.end_at,
        "garble": act.garble_at,
    }


class _Left(Exception):
    """The other side has closed the connection."""


@dataclass(slots=True)
class _Line:
    """A connection while it is answered."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def is_left(self) -> bool:
        """True if the other side has closed or reset the connection."""
        return self.reader.at_eof() or self.reader.exception() is not None

    async def wait(self, seconds: float) -> None:
        """Wait. Raises: _Left: the other side went."""
        until = time.monotonic() + seconds
        while True:
            if self.is_left:
                raise _Left
            left = until - time.monotonic()
            if left <= 0:
                return
            await asyncio.sleep(min(left, 0.01))

    async def whole(self, status: int, body: Any, headers: Mapping[str, str]) -> None:
        """Send an answer in one piece."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: "
            f"{len(data)}\r\n{more}\r\n"
        )
        await self._write(head.encode() + data)

    async def begin(self, headers: Mapping[str, str]) -> None:
        """Send the head of an answer that comes in pieces."""
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        await self._write(
            (
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                f"transfer-encoding: chunked\r\n{more}\r\n"
            ).encode()
        )

    async def piece(self, data: bytes) -> None:
        """Send a piece."""
        if data:
            await self._write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def end(self) -> None:
        """Send the end."""
        await self._write(b"0\r\n\r\n")

    async def _write(self, data: bytes) -> None:
        if self.is_left:
            raise _Left
        self.writer.write(data)
        try:
            await self.writer.drain()
        except ConnectionError:
            raise _Left from None


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    """Return the next request; None: there is none."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    data = await reader.readexactly(int(headers.get("content-length", "0")))
    kind = headers.get("content-type", "")
    is_form = kind.startswith("multipart/form-data")
    body = uploaded(kind, data) if is_form else json.loads(data) if data else None
    method, path, _ = first.split(" ")
    return Asked(path=path, headers=headers, body=body, method=method)


def _embedded(body: Any) -> dict[str, Any]:
    """Make a vector for each text, always the same one; in reverse order, as services may."""
    size = int(body.get("dimensions") or 8)
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    data = [
        {"object": "embedding", "index": number, "embedding": _vector(text, size)}
        for number, text in enumerate(texts)
    ]
    return {
        "object": "list",
        "model": "stub-1",
        "data": data[::-1],
        "usage": {"prompt_tokens": len(texts), "total_tokens": len(texts)},
    }


def _vector(text: str, size: int) -> list[float]:
    digest = hashlib.sha256(text.encode()).digest()
    return [digest[number % len(digest)] / 255 for number in range(size)]
