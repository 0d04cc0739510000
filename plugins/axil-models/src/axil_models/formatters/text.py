"""The shared parts of formatters: the text around an answer, and the error."""

from __future__ import annotations

import re
from itertools import accumulate, islice
from typing import Final

from axil.plugin import ProblemError


class FormatError(ProblemError, ValueError):
    """A text is not in the format that was asked for.

    The message is for the author of the text, a model included.
    """


_FENCE = re.compile(r"^[ \t]*+(`{3,}+)([^`\n]*)$", re.MULTILINE)
_MOST_FENCES: Final = 10_000
MOST_BLOCKS: Final = 100
"""Code fences of a text that are looked at, the first: each is read as an answer several times."""


def fenced(text: str) -> list[str]:
    """Return the content of code fences, in order; of the first ``MOST_BLOCKS``.

    >>> fenced("So:\\n```json\\n{}\\n```\\nDone.")
    ['{}\\n']
    """
    lines = list(islice(_FENCE.finditer(text), _MOST_FENCES))
    ends = [0 if line[2].strip(" \t") else len(line[1]) for line in lines]
    # the longest end from each fence on: what opens and is not closed is not searched for
    longest = [*accumulate(reversed(ends), max)][::-1]
    found: list[str] = []
    at = 0
    while at < len(lines) - 1 and len(found) < MOST_BLOCKS:
        opened = lines[at]
        at += 1
        if longest[at] < (ticks := len(opened[1])):
            continue
        while ends[at] < ticks:
            at += 1
        found.append(text[opened.end() + 1 : lines[at].start()])
        at += 1
    return found


def excerpt(text: str) -> str:
    """Return the beginning of a text, for messages."""
    text = " ".join(text.split())
    return text if len(text) <= 120 else f"{text[:120]}…"
