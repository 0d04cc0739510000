"""The shared parts of formatters: the text around an answer, and the error."""

from __future__ import annotations

import re
from itertools import accumulate

from axil.plugin import ProblemError


class FormatError(ProblemError, ValueError):
    """A text is not in the format that was asked for.

    The message is for the author of the text, a model included.
    """


_OPENS = re.compile(r"[ \t]*(`{3,})[^`]*")
_CLOSES = re.compile(r"[ \t]*(`{3,})[ \t]*")


def fenced(text: str) -> list[str]:
    """Return the content of code fences, in order.

    >>> fenced("So:\\n```json\\n{}\\n```\\nDone.")
    ['{}\\n']
    """
    lines = text.split("\n")
    ends = [len(m[1]) if (m := _CLOSES.fullmatch(line)) else 0 for line in lines]
    # the longest end from each line on: what opens and is not closed is not searched for
    longest = [*accumulate(reversed(ends), max)][::-1]
    found: list[str] = []
    at = 0
    while at < len(lines) - 1:
        opened = _OPENS.fullmatch(lines[at])
        at += 1
        if opened is None or longest[at] < (ticks := len(opened[1])):
            continue
        first = at
        while ends[at] < ticks:
            at += 1
        found.append("".join(f"{line}\n" for line in lines[first:at]))
        at += 1
    return found


def excerpt(text: str, most: int = 120) -> str:
    """Return the beginning of a text, for messages."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[:most]}…"
