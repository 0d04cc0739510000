"""``JsonMessageFormatter``: ``axil_models.Json``."""

from __future__ import annotations

from typing import ClassVar

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

    @property
    def agent_introducer(self) -> str:
        return _INTRODUCER


class LenientJsonMessageFormatter(Mapped):
    """JSON, found in whatever is around it."""

    core: ClassVar = axil_models.LenientJson

    @property
    def agent_introducer(self) -> str:
        return _INTRODUCER
