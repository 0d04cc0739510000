"""``ParagraphMessageFormatter``: ``axil_models.Paragraph``."""

from __future__ import annotations

from typing import ClassVar

import axil_models
from masfactory.core.message.base import Mapped


class ParagraphMessageFormatter(Mapped):
    """A line with the name of a field, and its value below it."""

    core: ClassVar = axil_models.Paragraph
