"""``TwinsFieldTextFormatter``: ``axil_models.Twins``."""

from __future__ import annotations

from typing import ClassVar

import axil_models
from masfactory.core.message.base import Mapped


class TwinsFieldTextFormatter(Mapped):
    """The whole text as the value of each field."""

    core: ClassVar = axil_models.Twins

    @property
    def agent_introducer(self) -> str:
        return "Output strictly what the message asks for."
