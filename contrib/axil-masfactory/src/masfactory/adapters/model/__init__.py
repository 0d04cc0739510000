"""Models; no provider's SDK is imported here."""

from __future__ import annotations

from masfactory.adapters.model.anthropic import AnthropicModel
from masfactory.adapters.model.base import Model, ModelCapabilities, ModelResponseType
from masfactory.adapters.model.gemini import GeminiModel
from masfactory.adapters.model.legacy_openai import LegacyOpenAIModel
from masfactory.adapters.model.openai import OpenAIModel

__all__ = [
    "AnthropicModel",
    "GeminiModel",
    "LegacyOpenAIModel",
    "Model",
    "ModelCapabilities",
    "ModelResponseType",
    "OpenAIModel",
]
