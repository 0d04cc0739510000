"""A Temporal server for these tests, where its program is installed; they are skipped elsewhere.

It is the development server of Temporal's own command line, on a port and a database of its own.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.client import Client


def program() -> str | None:
    """Return the path of the program ``temporal``; None: it is not installed."""
    beside = Path(sys.executable).with_name("temporal")
    return shutil.which("temporal") or (str(beside) if beside.exists() else None)


class Server:
    """A server with a database in a file, so that it can be killed and started again."""

    def __init__(self, path: str, folder: Path) -> None:
        self._path, self._folder = path, folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.begin()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def begin(self) -> None:
        """Start the server, and wait until it answers."""
        words = ["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "never"]
        place = ["--port", str(self.port), "--db-filename", str(self._folder / "temporal.db")]
        self._process = subprocess.Popen(
            [self._path, *words, *place],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(self._folder)},
        )
        asyncio.run(self._answers())

    async def _answers(self) -> None:
        async with asyncio.timeout(60):
            while True:
                try:
                    await Client.connect(self.address)
                    return
                except RuntimeError:
                    assert self._process.poll() is None, "the server ended"
                    await asyncio.sleep(0.05)

    def kill(self) -> None:
        """Kill the server, as a crash would."""
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = program()
    if found is None:
        pytest.skip("there is no Temporal server to start: the program `temporal` is not installed")
    given = Server(found, tmp_path_factory.mktemp("temporal"))
    yield given
    given.kill()
