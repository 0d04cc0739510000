"""``LegacyOpenAIModel``: OpenAI by Chat Completions."""

from __future__ import annotations

from typing import Any, ClassVar

from masfactory.adapters.model.base import Provided


class LegacyOpenAIModel(Provided):
    """OpenAI, and servers that are compatible with it, by Chat Completions."""

    extra: ClassVar[str] = "axil-openai"

    def adapter(self) -> Any:
        import axil_openai

        return axil_openai.OpenAIModel
