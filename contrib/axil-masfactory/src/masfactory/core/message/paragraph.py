"""``ParagraphMessageFormatter``: ``axil_models.Paragraph``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import axil_models
from masfactory.core.message.base import Mapped


class ParagraphMessageFormatter(Mapped):
    """A line with the name of a field, and its value below it."""

    core: ClassVar = axil_models.Paragraph

    def dump(self, message: Mapping[str, Any]) -> str:
        """Write fields: texts as they are, other values as JSON, set in by one space."""
        lines: list[str] = []
        for name, value in message.items():
            lines.append(f"{name}:")
            if isinstance(value, str):
                lines.append(value)
            elif value is not None:
                lines += [f" {line}" for line in self.render_value(value).splitlines()]
        return "\n".join(lines).strip()
