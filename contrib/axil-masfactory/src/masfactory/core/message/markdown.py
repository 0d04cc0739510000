"""``MarkdownMessageFormatter``: ``axil_formatters.Markdown``."""

from __future__ import annotations

from typing import ClassVar

import axil_formatters
from masfactory.core.message.base import Mapped


class MarkdownMessageFormatter(Mapped):
    """Headings and what is below them."""

    core: ClassVar = axil_formatters.Markdown
