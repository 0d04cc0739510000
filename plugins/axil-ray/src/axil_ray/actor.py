"""A process of the cluster that runs bodies.

Its messages are those of ``docs/reference/conversations.md``, as JSON in bytes.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import queue
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from axil_process import BodyHost


class BodyActor:
    """A process that executes one body at a time.

    Ray calls its methods in threads: one call of ``exchange`` at a time, and any of ``tell``.
    """

    def __init__(self, path: Sequence[str]) -> None:
        """``path``: the import path of the run's process."""
        sys.path += [each for each in path if each not in sys.path and os.path.isdir(each)]
        self._sent: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self._firings: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self._host = BodyHost(self._sent.put)
        threading.Thread(target=self._work, name="axil-ray", daemon=True).start()

    def where(self) -> tuple[str, int, str]:
        """Return the name of the machine, the number of the process, and the id of the node."""
        ray: Any = importlib.import_module("ray")
        return socket.gethostname(), os.getpid(), ray.get_runtime_context().get_node_id()

    def exchange(self, messages: bytes) -> bytes:
        """Deliver messages of the run, and wait for those of the body."""
        self.tell(messages)
        found = [self._sent.get()]
        while not self._sent.empty():
            found.append(self._sent.get())
        return json.dumps(found).encode()

    def tell(self, messages: bytes) -> None:
        """Deliver messages of the run."""
        for message in json.loads(messages):
            if "job" in message:
                self._firings.put(message)
            else:
                self._host.receive(message)

    def _work(self) -> None:
        with asyncio.Runner() as runner:
            while True:
                self._host.send(self._host.execute(self._firings.get(), runner))
