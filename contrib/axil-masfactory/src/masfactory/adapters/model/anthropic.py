"""``AnthropicModel``: Claude."""

from __future__ import annotations

from typing import Any, ClassVar

from masfactory.adapters.model.base import Provided


class AnthropicModel(Provided):
    """Anthropic's Claude."""

    extra: ClassVar[str] = "axil-anthropic"

    def adapter(self) -> Any:
        import axil_anthropic

        return axil_anthropic.AnthropicModel
