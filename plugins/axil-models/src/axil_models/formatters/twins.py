"""``twins``: the whole text, as it is, in every field that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axil_models.thoughts import without_thoughts
from axil_models.values import as_text


class Twins:
    """``twins``: nothing is asked of the model's form; each field that was asked for holds the
    whole reply, ``message`` if none was.
    """

    capabilities = ("one_way",)

    introduction = ""

    def dump(self, fields: Any) -> str:
        """Return the fields as ``name:`` with the value below, blank lines between; the field named
        ``""`` has no title.
        """
        return "\n\n".join(
            f"{name}:\n{as_text(value)}" if name else as_text(value)
            for name, value in fields.items()
        )

    def parse(self, text: str, fields: Sequence[str] = ()) -> dict[str, object]:
        """``text`` without thoughts, once for each field."""
        return dict.fromkeys(fields or ("message",), without_thoughts(text))
