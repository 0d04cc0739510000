"""The adapters keep the laws of models."""

from __future__ import annotations

from axil_openai import OpenAIModel, OpenAIResponsesModel
from axil_testing.kit import ModelKit


class TestChat(ModelKit):
    dialect, sdk, config = "chat", "openai", {"name": "m"}

    def make(self, server):
        return OpenAIModel("m", server.key, server.url)


class TestResponses(ModelKit):
    dialect, sdk, seals, config = "responses", "openai", True, {"name": "m"}

    def make(self, server):
        return OpenAIResponsesModel("m", server.key, server.url)
