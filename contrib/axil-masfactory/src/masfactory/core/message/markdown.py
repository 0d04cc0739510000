"""``MarkdownMessageFormatter``: ``axil_models.Markdown``."""

from __future__ import annotations

from typing import ClassVar

import axil_models
from masfactory.core.message.base import Mapped


class MarkdownMessageFormatter(Mapped):
    """Headings and what is below them."""

    core: ClassVar = axil_models.Markdown
