"""``OpenAIModel``: OpenAI, and servers that are compatible with it."""

from __future__ import annotations

import os
from typing import Any, ClassVar
from urllib.parse import urlsplit

from masfactory.adapters.model.base import Provided


class OpenAIModel(Provided):
    """OpenAI by its Responses API; a compatible server, which has a ``base_url`` of its own, by
    Chat Completions.
    """

    extra: ClassVar[str] = "axil-openai"

    def adapter(self) -> Any:
        import axil_openai

        host = urlsplit(self.base_url or os.environ.get("OPENAI_BASE_URL", "")).hostname
        is_openai = host is None or host.endswith("openai.com")
        return axil_openai.OpenAIResponsesModel if is_openai else axil_openai.OpenAIModel
