"""The process's end of the pipes: a thread reads, the main thread runs the body.

When the pipe ends the process does, even while a body runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import threading
import time
from collections.abc import Mapping
from typing import Any

from axil_process.host import BodyHost
from axil_process.wire import LENGTH, packed


class Worker:
    """One process's end of the pipes."""

    def __init__(self, source: Any, sink: int, grace: float | None = None) -> None:
        """Take ``grace``, the seconds to close what was opened; None: as long as it takes."""
        self._source, self._sink, self._grace = source, sink, grace
        self._tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._is_busy = False
        """True while a body runs: from the arrival of its firing until its result is known."""
        self._host = BodyHost(self._write)

    def serve(self) -> None:
        """Serve firings until the pipe ends."""
        threading.Thread(target=self._listen, name="axil-process", daemon=True).start()
        self._host.send({"ready": True})
        with asyncio.Runner() as runner:
            while (given := self._tasks.get()) is not None:
                answer = self._host.execute(given, runner)
                # before the message: the parent may end this process as soon as it has read it
                self._is_busy = False
                self._host.send(answer)
            self._host.close(runner)

    def _listen(self) -> None:
        while (message := self._received()) is not None and "close" not in message:
            if "job" in message:
                self._is_busy = True
                self._tasks.put(message)
            else:
                self._host.receive(message)
        if self._is_busy:  # the parent is gone, or has no use for us
            os._exit(0)
        self._tasks.put(None)
        if self._grace is not None:
            time.sleep(self._grace)
            os._exit(0)  # whatever cannot be closed, and threads that bodies left behind

    def forked(self) -> None:
        """Give up the pipes, in a process that a body forked: they would not end while it lives."""
        reads, writes = os.pipe()
        os.close(reads)  # who writes there ends
        for each in (self._source.fileno(), self._sink):
            os.dup2(writes, each, inheritable=False)
        os.close(writes)
        self._host.forked()

    def _received(self) -> dict[str, Any] | None:
        """Return the next message of the parent; None: the pipe has ended."""
        head = self._source.read(LENGTH.size)
        if len(head) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack(head)
        body = self._source.read(length)
        return json.loads(body) if len(body) == length else None

    def _write(self, message: Mapping[str, Any]) -> None:
        """Send a message; where the parent is gone, end."""
        data = memoryview(packed(message))
        while data:
            try:
                data = data[os.write(self._sink, data) :]
            except BrokenPipeError:
                os._exit(0)
