"""Laws of connections: a client that does not say what it asks for loses its connection."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from functools import partial

import pytest

from axil_cli import bounded_protocol
from axil_serve import command

SECONDS = 0.2
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        with contextlib.suppress(asyncio.CancelledError):
            await receive()
        return
    if scope["path"] == "/slow":
        await asyncio.sleep(3 * SECONDS)
    head = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port(monkeypatch) -> Iterator[int]:
    """The port of a server as ``axil serve`` starts it, with a shorter time."""
    monkeypatch.setattr(command, "bounded_protocol", partial(bounded_protocol, SECONDS))
    urls: list[str] = []
    begun = threading.Event()
    ends: list[object] = []

    def listening(url: str) -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        ends.append(lambda: loop.call_soon_threadsafe(task.cancel))
        urls.append(url)
        begun.set()

    def serve() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            command._serve(app, Namespace(host="127.0.0.1", port=0), listening)

    thread = threading.Thread(target=serve)
    thread.start()
    assert begun.wait(60)
    yield int(urls[0].rpartition(":")[2])
    ends[0]()
    thread.join(60)


def answer(connection: socket.socket) -> bytes:
    """Return all that a server sends until it ends the connection."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(4096):
            parts.append(part)
    return b"".join(parts)


def is_answered(connection: socket.socket) -> bool:
    got = b""
    while not got.endswith(b"ok"):
        got += connection.recv(4096)
    return got.startswith(b"HTTP/1.1 200")


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


@pytest.mark.parametrize("before", [b"", REQUEST])
def test_headers_that_come_a_byte_at_a_time_are_not_waited_for(port, before):
    with connected(port) as client:
        client.sendall(before)
        if before:
            assert is_answered(client)
        begun, sent = time.monotonic(), iter(REQUEST[:-2] + b"X: " + b"x" * 10_000)
        with contextlib.suppress(ConnectionError):
            client.settimeout(SECONDS / 10)
            while time.monotonic() < begun + 10:
                client.sendall(bytes([next(sent)]))
                with contextlib.suppress(TimeoutError):
                    assert (got := client.recv(4096)) == b"" or got.startswith(b"HTTP/1.1 408")
                    break
        assert time.monotonic() < begun + 10


def test_a_connection_on_which_nothing_comes_ends(port):
    with connected(port) as client:
        assert answer(client) == b""


def test_an_answer_may_take_longer_than_the_headers(port):
    with connected(port) as client:
        client.sendall(REQUEST.replace(b"/ ", b"/slow ", 1))
        assert is_answered(client)


def test_a_request_in_two_parts_is_answered(port):
    with connected(port) as client:
        for _ in range(2):
            client.sendall(REQUEST[:20])
            client.sendall(REQUEST[20:])
            assert is_answered(client)
