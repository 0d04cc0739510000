"""Texts as people are shown them: nothing in them is hidden, or changes how the rest is shown."""

from __future__ import annotations

import unicodedata
from typing import Final

_HIDING: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories: control, format (zero width, bidirectional, tags), lone surrogates, private,
unassigned, separators of lines.
"""
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that show nothing."""


def is_hidden(character: str) -> bool:
    """Return whether a character shows nothing, or changes how its neighbours are shown."""
    return (
        (character not in "\n\t" and unicodedata.category(character) in _HIDING)
        or character in _BLANK
        or "\ufe00" <= character <= "\ufe0f"  # variation selectors can carry a message of their own
        or "\U000e0100" <= character <= "\U000e01ef"
    )


def legible(text: str) -> str:
    r"""Return a text with its hidden characters written as JSON writes them.

    A JSON text means the same afterwards; a terminal or a page obeys nothing in it.

    >>> legible("pay\u202e 5\x1b[2J")
    'pay\\u202e 5\\u001b[2J'
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(_escaped(each) if is_hidden(each) else each for each in text)


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
