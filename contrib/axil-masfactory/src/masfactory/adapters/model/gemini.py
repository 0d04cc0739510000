"""``GeminiModel``: Gemini."""

from __future__ import annotations

from typing import Any, ClassVar

from masfactory.adapters.model.base import Provided


class GeminiModel(Provided):
    """Google's Gemini."""

    extra: ClassVar[str] = "axil-gemini"

    def adapter(self) -> Any:
        import axil_gemini

        return axil_gemini.GeminiModel
