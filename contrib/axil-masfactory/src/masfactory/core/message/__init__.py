"""Formatters: fields as text, and text as fields."""

from __future__ import annotations

from masfactory.core.message.base import MessageFormatter, StatefulFormatter, StatelessFormatter
from masfactory.core.message.json import JsonMessageFormatter, LenientJsonMessageFormatter
from masfactory.core.message.markdown import MarkdownMessageFormatter
from masfactory.core.message.paragraph import ParagraphMessageFormatter
from masfactory.core.message.tagged import TaggedFieldMessageFormatter
from masfactory.core.message.twins import TwinsFieldTextFormatter

__all__ = [
    "JsonMessageFormatter",
    "LenientJsonMessageFormatter",
    "MarkdownMessageFormatter",
    "MessageFormatter",
    "ParagraphMessageFormatter",
    "StatefulFormatter",
    "StatelessFormatter",
    "TaggedFieldMessageFormatter",
    "TwinsFieldTextFormatter",
]
