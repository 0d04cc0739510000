"""Servers to talk to, and what must not be left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from axil_process import Child

from .kit import SDK, VARIOUS, Http, Note, children


@pytest.fixture
def note(tmp_path: Path) -> Note:
    return Note(tmp_path / "note.txt")


@pytest.fixture
def various(note: Note) -> dict[str, Any]:
    """Settings of the server with a tool for everything."""
    return {
        "name": "v",
        "command": VARIOUS,
        "env": {"NOTE_FILE": str(note.path)},
        "connect_timeout_seconds": 120,
    }


@pytest.fixture
def sdk(various: dict[str, Any]) -> dict[str, Any]:
    """Settings of the same server as the SDK makes it."""
    return {**various, "command": SDK}


@pytest.fixture
def web(note: Note) -> Iterator[Http]:
    server = Http(note)
    server.start()
    yield server
    server.stop()


def open_files() -> int:
    """Return how many files are open, but for libraries: libffi keeps its own open."""
    opened = (os.path.realpath(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd"))
    return sum(".so" not in name for name in opened)


@pytest.fixture(scope="session")
def watchdog() -> None:
    """Start the process that is started once, with the first server, and stays."""

    async def once() -> None:
        child = await Child.start([sys.executable, "-c", ""], ends_with_parent=True)
        await child.kill()

    asyncio.run(once())


@pytest.fixture
def tidy(watchdog: None) -> Iterator[None]:
    """Fails a test that leaves processes or open files behind."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("there is no /proc to look into")
    asyncio.run(asyncio.sleep(0))
    gc.collect()  # what tests before have left is not this one's
    files, processes = open_files(), children()
    yield
    gc.collect()
    until = time.monotonic() + 60
    while (open_files() > files or children() - processes) and time.monotonic() < until:
        time.sleep(0.05)
    assert open_files() <= files
    assert children() <= processes
