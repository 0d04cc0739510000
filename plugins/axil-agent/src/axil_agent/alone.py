"""A stage for agents outside a graph: nothing is recorded, chunks go to whoever listens, usage is counted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

from axil.errors import RunPaused


class Alone:
    """What an agent asks of a firing's context, where there is none."""

    workspace: Path | None = None

    def __init__(self, local: dict[str, Any] | None = None, emit: Callable[[Any], None] | None = None, state: dict[str, Any] | None = None):
        self.local: dict[str, Any] = {} if local is None else local
        self.state: dict[str, Any] = {} if state is None else state
        self.thread = ""
        self.tokens: dict[str, int] = {}
        self.cost = 0.0
        self._emit = emit
        self._began = time.monotonic()

    @property
    def kept(self) -> dict[str, Any]:
        """What a thread goes on with."""
        return cast("dict[str, Any]", self.local.setdefault("@kept", {}))

    def emit(self, chunk: Any, /) -> None:
        """Show ``chunk``."""
        if self._emit is not None:
            self._emit(chunk)

    async def step(self, name: str, call: Callable[[], Awaitable[Any]], /, *, request: Any = None, effects: str = "idempotent") -> Any:
        """``await call()``."""
        return await call()

    def allows(self, what: str, /) -> bool:
        """Nobody allowed anything."""
        return False

    def now(self) -> float:
        """Seconds since this began."""
        return time.monotonic() - self._began

    async def sleep(self, seconds: float, /) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    def spend(self, *, cost: float = 0.0, **tokens: int) -> None:
        """Count usage."""
        self.cost += cost
        for kind, count in tokens.items():
            self.tokens[kind] = self.tokens.get(kind, 0) + count

    async def ask(self, question: Any, /, *, name: str = "") -> Any:
        """Nobody can be asked here. Raises: RunPaused."""
        raise RunPaused("a question was asked outside a run, where nobody can answer.", hint="Put the agent into a graph.")
