"""The life of a server that tests start: a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Self


class Listener:
    """A context manager within which ``serve`` is at work."""

    def __init__(self, name: str) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self.serve()), name=name, daemon=True
        )

    async def serve(self) -> None:
        """Begin to listen, and stay until ``until_over`` has returned."""
        raise NotImplementedError

    async def until_over(self) -> None:
        """Let tests begin; return when they have ended."""
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await self._over.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(60):
            raise RuntimeError("the stub does not begin to listen.")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._loop is not None and self._over is not None:
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(60)


__all__ = ["Listener"]
