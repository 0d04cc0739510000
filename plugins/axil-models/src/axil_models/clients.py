"""Clients of adapters: one on each event loop, shared by all calls there.

A run *holds* the clients of its agents with ``async with``. While none holds a client, it lives as
long as calls are under way, so nothing is left open at the end of a loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from axil.plugin import LoopLocal
from axil_models.threads import in_thread

log = logging.getLogger("axil_models")

C = TypeVar("C")


@dataclass(slots=True)
class _Here(Generic[C]):
    """The clients on one event loop."""

    client: C | None = None
    busy: int = 0
    """Calls under way."""
    held: int = 0
    """The number of its holders."""
    making: asyncio.Lock = field(default_factory=asyncio.Lock)


class Clients(Generic[C]):
    """The clients of one component."""

    def __init__(self, make: Callable[[], C], close: Callable[[C], Awaitable[None]]) -> None:
        """``make`` is called in a thread, as it may have to import an SDK; ``close`` lets a
        client's connections go.
        """
        self._make, self._close = make, close
        self._loops: LoopLocal[_Here[C]] = LoopLocal(lambda: _Here[C]())

    @contextlib.asynccontextmanager
    async def lease(self) -> AsyncGenerator[C]:
        """Lend the client of this event loop for one call."""
        here = self._loops.get()
        here.busy += 1
        try:
            async with here.making:
                client = here.client
                if client is None:
                    client = here.client = await in_thread(self._make, "axil-client")
            yield client
        finally:
            here.busy -= 1
            await self._sweep(here)

    def hold(self) -> None:
        """Keep this event loop's client open between calls, until ``let_go``."""
        self._loops.get().held += 1

    async def let_go(self) -> None:
        """Hold it no longer; when no holder is left, it is closed."""
        here = self._loops.get()
        here.held = max(0, here.held - 1)
        await self._sweep(here)

    async def close(self) -> None:
        """Close this event loop's client, as soon as no call is under way; the next call opens
        another one.
        """
        here = self._loops.pop()
        if here is not None:
            if here.held:
                self._loops.get().held = here.held
            here.held = 0
            await self._sweep(here)

    async def _sweep(self, here: _Here[C]) -> None:
        if here.busy or here.held:
            return
        if self._loops.peek() is here:
            self._loops.pop()
        if here.client is not None:
            client, here.client = here.client, None
            try:
                await self._close(client)
            except Exception as error:  # noqa: BLE001
                # what was answered over it is there all the same
                log.warning("a connection could not be closed: %s", type(error).__name__)
