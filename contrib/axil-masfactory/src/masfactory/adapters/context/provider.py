"""The bases of what gives context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axil_models import ContextBlock, ContextQuery


class ContextProvider:
    """A provider of blocks of context.

    ``passive``: they are put into prompts; ``active``: the model may ask for them.
    """

    supports_passive = True
    supports_active = True

    def __init__(
        self, context_label: str = "", *, passive: bool = True, active: bool = False
    ) -> None:
        self._context_label = context_label
        self.passive, self.active = passive, active

    @property
    def context_label(self) -> str:
        """Its name in prompts."""
        return self._context_label or type(self).__name__

    def get_blocks(self, query: ContextQuery, *, top_k: int = 8) -> Sequence[ContextBlock]:
        """Give the best blocks for a query; subclasses say how."""
        raise NotImplementedError


class HistoryProvider:
    """A provider of messages of earlier turns."""

    def get_messages(
        self, query: ContextQuery | None = None, *, top_k: int = -1
    ) -> list[dict[str, Any]]:
        """Give the messages; subclasses say how."""
        raise NotImplementedError


def limited(blocks: Sequence[ContextBlock], top_k: int) -> list[ContextBlock]:
    """Give the first ``top_k`` blocks; 0: all, less: none."""
    return list(blocks) if top_k == 0 else list(blocks[: max(top_k, 0)])
