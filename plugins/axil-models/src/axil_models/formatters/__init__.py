"""Formatters: fields as text for a model, and a model's text as fields."""

from __future__ import annotations

from axil_formatters.json import Json, LenientJson
from axil_formatters.markdown import Markdown
from axil_formatters.paragraph import Paragraph
from axil_formatters.tagged import Tagged
from axil_formatters.text import FormatError
from axil_formatters.twins import Twins

__all__ = ["FormatError", "Json", "LenientJson", "Markdown", "Paragraph", "Tagged", "Twins"]
