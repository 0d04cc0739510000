"""The adapter keeps the laws of models."""

from __future__ import annotations

from axil_anthropic import AnthropicModel
from axil_testing.kit import ModelKit


class TestAnthropic(ModelKit):
    dialect, sdk, seals, config = "messages", "anthropic", True, {"name": "m"}

    def make(self, server):
        return AnthropicModel("m", server.key, server.url)
