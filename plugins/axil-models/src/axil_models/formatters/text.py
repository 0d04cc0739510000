"""The shared parts of formatters: the text around an answer, and the error."""

from __future__ import annotations

import re

from axil.plugin import ProblemError


class FormatError(ProblemError, ValueError):
    """A text is not in the format that was asked for.

    The message is for the author of the text, a model included.
    """


_FENCE = re.compile(
    r"^[ \t]*(?P<ticks>`{3,})[^\n`]*\n(?P<body>.*?)^[ \t]*(?P=ticks)`*[ \t]*$",
    re.DOTALL | re.MULTILINE,
)


def fenced(text: str) -> list[str]:
    """Return the content of code fences, in order.

    >>> fenced("So:\\n```json\\n{}\\n```\\nDone.")
    ['{}\\n']
    """
    return [match["body"] for match in _FENCE.finditer(text)]


def excerpt(text: str, most: int = 120) -> str:
    """Return the beginning of a text, for messages."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[:most]}…"
