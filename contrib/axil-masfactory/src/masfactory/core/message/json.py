"""``JsonMessageFormatter``: ``axil_formatters.Json``."""

from __future__ import annotations

from typing import ClassVar

import axil_formatters
from masfactory.core.message.base import Mapped


class JsonMessageFormatter(Mapped):
    """JSON."""

    core: ClassVar = axil_formatters.Json


class LenientJsonMessageFormatter(Mapped):
    """JSON, found in whatever is around it."""

    core: ClassVar = axil_formatters.LenientJson
