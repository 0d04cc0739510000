"""A service that repeats what it was asked, on this machine."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 16


class Echo(BaseHTTPRequestHandler):
    """Answers with the method, the address, the headers and the body."""

    def log_message(self, format: str, *args: Any) -> None: ...

    def _answer(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(size).decode("latin-1")
        headers = {name.lower(): value for name, value in self.headers.items()}
        said = {"method": self.command, "path": self.path, "headers": headers, "body": body}
        status, media, data = 200, "application/json", json.dumps(said).encode()
        extra: dict[str, str] = {}
        if "/late" in self.path:
            time.sleep(0.5)
        if "/cut" in self.path:
            self.close_connection = True
            return
        if "/fail" in self.path:
            status, media, data = 409, "text/plain", b"no such shelf"
        elif "/moved" in self.path:
            status, data, extra = 302, b"", {"location": "http://elsewhere.example.org/"}
        elif "/picture" in self.path:
            media, data = "image/png", PNG
        elif "/packed" in self.path:
            extra = {"content-encoding": "gzip"}
        elif "/long" in self.path:
            media, data = "text/plain", b"x" * 5_000
        elif "/nothing" in self.path:
            status, data = 204, b""
        self.send_response(status)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(data)))
        for name, value in extra.items():
            self.send_header(name, value)
        with contextlib.suppress(ConnectionError):  # it was not waited for
            self.end_headers()
            self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _answer


@pytest.fixture(scope="session")
def service() -> Iterator[str]:
    """The address of the service."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()
