"""The context of agents outside a run: nothing is recorded, usage is counted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

from axil import Activation, RunPaused
from axil.plugin import RunUsage
from axil_models import Estimate, Ledger, Reservation

_ACTIVATION = Activation((), "agent")


class StandaloneContext:
    """The context of an agent that is called outside a run."""

    workspace: Path | None = None
    deps: Any = None
    """See ``Context.deps``."""

    def __init__(
        self,
        local: dict[str, object] | None = None,
        emit: Callable[[object], None] | None = None,
        state: dict[str, object] | None = None,
    ):
        self.local: dict[str, Any] = {} if local is None else local
        self.state: dict[str, Any] = {} if state is None else state
        self.thread = ""
        self._ledger = Ledger(RunUsage())
        self._emit = emit
        self._began = time.monotonic()

    @property
    def kept(self) -> dict[str, Any]:
        """The conversation that a thread continues."""
        return cast("dict[str, Any]", self.local.setdefault("@kept", {}))

    def emit(self, chunk: object, /) -> None:
        """Show ``chunk``."""
        if self._emit is not None:
            self._emit(chunk)

    async def step(
        self,
        name: str,
        call: Callable[[], Awaitable[object]],
        /,
        *,
        request: object = None,
        effects: str = "idempotent",
        kind: str = "",
    ) -> Any:
        """``await call()``."""
        return await call()

    def allows(self, what: str, /) -> bool:
        """Return False: outside a run nothing was allowed."""
        return False

    def now(self) -> float:
        """Return seconds since this began."""
        return time.monotonic() - self._began

    async def sleep(self, seconds: float, /) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def reserve(
        self,
        *,
        model: Sequence[str],
        characters: int | Callable[[], int] | None = None,
        output_tokens: int | None,
        audio_seconds: float = 0.0,
    ) -> Reservation:
        """Return a reservation that counts usage; outside a run nothing is limited."""
        estimate = Estimate(
            models=tuple(model),
            characters=characters,
            output_tokens=output_tokens,
            audio_seconds=audio_seconds,
        )
        return await self._ledger.reserve(_ACTIVATION, estimate)

    @property
    def usage(self) -> RunUsage:
        """The usage so far."""
        return self._ledger.usage

    async def ask(self, question: object, /, *, name: str = "") -> Any:
        """Raise RunPaused: outside a run there is no channel for questions."""
        message = "a question was asked outside a run, where there is no channel to answer it."
        raise RunPaused(message, hint="Put the agent into a graph.")
