"""The usage of a run with model tokens and money."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from axil.plugin import RunUsage


@dataclass(slots=True)
class Usage(RunUsage):
    """The usage: firings, seconds, model tokens and money."""

    tokens: dict[str, int] = field(default_factory=dict[str, int])
    """Model tokens by kind, as bodies reported them."""
    cost: float = 0.0

    def add(self, tokens: Mapping[str, int], cost: float) -> None:
        """Count more."""
        for kind, count in tokens.items():
            self.tokens[kind] = self.tokens.get(kind, 0) + count
        self.cost += cost
