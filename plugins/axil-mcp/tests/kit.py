"""Servers to talk to, and firings to talk from."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axil import Result, RootGraph
from axil_testing.members import free_port

SERVERS = Path(__file__).parent / "servers"
SDK = [sys.executable, "-W", "ignore", str(SERVERS / "various.py")]
"""The server with a tool for everything, as the SDK makes it; its import takes over a second."""
PLAIN = [sys.executable, "-I", "-S", str(SERVERS / "plain.py")]
"""The same without the SDK: test_servers.py compares the two."""
VARIOUS = SDK if os.environ.get("AXIL_HYPOTHESIS") == "thorough" else PLAIN


@dataclass
class Watch:
    """The events that a run shows."""

    chunks: list[Any] = field(default_factory=list)

    def chunk(self, activation: Any, chunk: Any) -> None:
        self.chunks.append(chunk)

    def of(self, kind: str) -> list[Any]:
        return [chunk for chunk in self.chunks if chunk["kind"] == kind]


def graph_of(body: Callable[..., Awaitable[Any]]) -> RootGraph:
    """Return one node that gives what ``body(ctx)`` gives."""

    async def node(ctx: Any) -> dict[str, Any]:
        return {"out": await body(ctx)}

    graph = RootGraph("firing")
    graph.create_node(node, name="n")
    graph.edge_from_entry("n", {})
    graph.edge_to_exit("n", ["out"])
    return graph.build()


async def firing(body: Callable[..., Awaitable[Any]], **options: Any) -> Result:
    """Return the run of a node, on the running event loop."""
    return await graph_of(body).start({}, **options).result()


def fired(body: Callable[..., Awaitable[Any]], **options: Any) -> Any:
    """Return what ``body(ctx)`` gives in a firing, on an event loop of its own; errors as the body
    raised them.
    """
    result = asyncio.run(firing(body, **options))
    if result.error is not None:
        raise result.error.__cause__ or result.error
    return result.output["out"]


@dataclass(frozen=True)
class Note:
    """The notes of a server about itself."""

    path: Path

    @property
    def lines(self) -> list[str]:
        return self.path.read_text("utf-8").splitlines() if self.path.exists() else []

    def count(self, beginning: str) -> int:
        return sum(line.startswith(beginning) for line in self.lines)

    @property
    def pids(self) -> list[int]:
        return [int(line.split()[1]) for line in self.lines if line.startswith("started")]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until(holds: Callable[[], Any]) -> None:
    """Wait for what another process does. Raises: TimeoutError: it does not."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110  # it is another process that sets it
            await asyncio.sleep(0.01)


def put_forward(seconds: float) -> None:
    """Let time pass at once on the running event loop: what waits for it has waited.

    So a limit can be large, and a test quick.
    """
    loop: Any = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds


def wait_for(port: int, process: subprocess.Popen[Any]) -> None:
    """Until somebody listens. Raises: RuntimeError: the process ended, or takes too long."""
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("the server did not start")


@dataclass
class Http:
    """The same server over HTTP; it can be ended and started again at its address."""

    note: Note
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[Any] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def start(self) -> None:
        environment = {**os.environ, "NOTE_FILE": str(self.note.path)}
        self.process = subprocess.Popen([*SDK, "http", str(self.port)], env=environment)
        wait_for(self.port, self.process)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def children() -> set[str]:
    """Processes that this one has started and that are still there."""
    found = set[str]()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            found.update((task / "children").read_text().split())
    return found


def metadata_of(base: str) -> dict[str, Any]:
    """Return what an authorization server at an address says of itself."""
    return {
        "issuer": base,
        "authorization_endpoint": f"{base}/authorize",
        "token_endpoint": f"{base}/token",
        "registration_endpoint": f"{base}/register",
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
    }
