"""``TaggedFieldMessageFormatter``: ``axil_models.Tagged``."""

from __future__ import annotations

from typing import ClassVar

import axil_models
from masfactory.core.message.base import Mapped


class TaggedFieldMessageFormatter(Mapped):
    """The name of each field in angle brackets, and its value behind it."""

    core: ClassVar = axil_models.Tagged
