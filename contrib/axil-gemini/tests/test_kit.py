"""The adapter keeps the laws of models."""

from __future__ import annotations

from axil_gemini import GeminiModel
from axil_testing.kit import ModelKit


class TestGemini(ModelKit):
    dialect, sdk, seals, config = "generate", "google.genai", True, {"name": "m"}
    textual_arguments = refuses = False

    def make(self, server):
        return GeminiModel("m", server.key, server.url)
