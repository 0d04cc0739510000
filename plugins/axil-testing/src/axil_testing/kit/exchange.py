"""The result of one call of a model, on a clock that jumps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from axil_models import ModelError, Reply
from axil_testing.kit.base import require


@dataclass
class Exchange:
    """The result of a call."""

    reply: Reply | None = None
    error: Exception | None = None
    chunks: list[Any] = field(default_factory=list[Any])
    waits: list[float] = field(default_factory=list[float])

    @property
    def answer(self) -> Reply:
        """The reply. Raises: AssertionError: there is none."""
        if self.reply is None:
            raise AssertionError(f"it raised {self.error!r}")
        return self.reply

    @property
    def failure(self) -> ModelError:
        """The failure. Raises: AssertionError: there is none, or it is none of a model."""
        require(
            isinstance(self.error, ModelError),
            f"expected a ModelError, found {self.error or self.reply!r}",
        )
        assert isinstance(self.error, ModelError)
        return self.error

    def of(self, kind: str) -> list[Any]:
        """Return the chunks of a kind."""
        return [chunk for chunk in self.chunks if chunk.get("kind") == kind]

    @property
    def shown(self) -> str:
        """The text as somebody sees it who watches: what was taken back does not count."""
        seen: list[Any] = []
        for chunk in self.chunks:
            if chunk.get("kind") == "reset":
                del seen[-chunk["chunks"] or len(seen) :]
            elif chunk.get("kind") != "retry":
                seen.append(chunk)
        return "".join(chunk["text"] for chunk in seen if chunk.get("kind") == "text")
