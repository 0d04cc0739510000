"""``JsonMessageFormatter``: ``axil_models.Json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import axil_models
from masfactory.core.message.base import Mapped

_INTRODUCER = (
    "\n        !IMPORTANT!:Your response must strictly and only contain a "
    "single JSON object that conforms to the description below. Do not add any extra explanations, "
    "comments, or any non-JSON text before or after the JSON code block.\n"
    "        Your response must be strictly valid JSON. "
    "Do not include any Markdown code block markers (e.g., ```json ... ```) or any "
    "explanatory text. Ensure all brackets and braces are correctly balanced and matched.\n        "
)
"""MASFactory's words, byte for byte: caches and recordings made with it stay valid."""


class JsonMessageFormatter(Mapped):
    """JSON."""

    core: ClassVar = axil_models.Json

    def dump(self, message: Mapping[str, Any]) -> str:
        return json.dumps(message, default=self.render_value)

    @property
    def agent_introducer(self) -> str:
        return _INTRODUCER


class LenientJsonMessageFormatter(Mapped):
    """JSON, found in whatever is around it."""

    core: ClassVar = axil_models.LenientJson

    def dump(self, message: Mapping[str, Any]) -> str:
        return json.dumps(message, ensure_ascii=False, default=self.render_value)

    @property
    def agent_introducer(self) -> str:
        return _INTRODUCER
