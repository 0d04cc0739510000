"""The adapters keep the laws of models."""

from __future__ import annotations

from typing import Any, ClassVar

from axil_openai import OpenAIModel, OpenAIRealtimeModel, OpenAIResponsesModel
from axil_testing.kit import ModelKit, TalkKit


class TestChat(ModelKit):
    dialect, sdk, config = "chat", "openai", {"name": "m"}

    def make(self, server):
        return OpenAIModel("m", server.key, server.url)


class TestResponses(ModelKit):
    dialect, sdk, seals, config = "responses", "openai", True, {"name": "m"}

    def make(self, server):
        return OpenAIResponsesModel("m", server.key, server.url)


class TestRealtime(TalkKit):
    config: ClassVar[Any] = {"name": "m"}

    def make(self, server):
        retry = {"first_wait_seconds": 0.01, "longest_wait_seconds": 0.01}
        return OpenAIRealtimeModel("m", server.key, server.url, retry=retry)
