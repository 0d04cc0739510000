"""Google's Gemini as a model of axil agents. The SDK is imported by the first call."""

from __future__ import annotations

from axil_gemini.model import GeminiModel

__all__ = ["GeminiModel"]
