"""Formats: how fields are written as text, and read from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Formatter(Protocol):
    """Fields to text, and text to fields. ``axil.formatters``."""

    @property
    def introduction(self) -> str:
        """Tells a model how to answer; empty: nothing has to be said."""
        ...

    def dump(self, fields: Mapping[str, object], /) -> str:
        """Return fields as text, in the order given."""
        ...

    def parse(self, text: str, fields: Sequence[str] = (), /) -> dict[str, Any]:
        """Return text as fields; ``fields`` are the names asked for.

        Raises: ValueError: in words for the text's author.
        """
        ...
