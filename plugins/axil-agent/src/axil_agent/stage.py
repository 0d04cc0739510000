"""The context in which a conversation is held."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from axil import Question
from axil.plugin import Effects, MeterReservation, StepKind


class Stage(Protocol):
    """The part of a firing's context that a conversation needs; ``axil.Context`` has it."""

    @property
    def local(self) -> dict[str, Any]: ...
    def emit(self, chunk: object, /) -> None: ...
    async def ask(self, question: Question | str, /, *, name: str = "") -> Any: ...
    async def step(
        self,
        name: str,
        call: Callable[[], Awaitable[object]],
        /,
        *,
        request: object = None,
        effects: Effects = "idempotent",
        kind: StepKind = "",
    ) -> Any: ...
    async def reserve(
        self,
        *,
        model: Sequence[str],
        characters: Callable[[], int] | None = None,
        output_tokens: int | None,
        audio_seconds: float = 0.0,
    ) -> MeterReservation: ...
