"""``TaggedFieldMessageFormatter``: ``axil_formatters.Tagged``."""

from __future__ import annotations

from typing import ClassVar

import axil_formatters
from masfactory.core.message.base import Mapped


class TaggedFieldMessageFormatter(Mapped):
    """The name of each field in angle brackets, and its value behind it."""

    core: ClassVar = axil_formatters.Tagged
