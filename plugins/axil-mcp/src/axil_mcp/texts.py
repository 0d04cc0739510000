"""The texts of servers, made fit to be shown: bounded, and without characters that hide or steer
text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from axil.plugin import is_hidden

_SAID: Final = ("description", "title", "$comment")
_LOOKS: Final = str.maketrans(
    "\u0430\u0501\u0435\u04bb\u0456\u0458\u04cf\u043e"
    "\u0440\u051b\u0455\u051d\u0443\u0445\u0441\u044c"
    "\u03bd\u03bf\u03b9\u03ba\u03c1\u03c4\u03c5\u03b1"
    "\u03c3\u0578\u057d\u0585\u0251\u0261\u0131\u0185",
    "adehijlopqswyxcbvoikptuaonuoagib",
)
"""Letters of other scripts that look like Latin ones."""


def clean(text: str, limit: int) -> str:
    r"""``text`` without hidden characters, at most ``limit`` characters of it.

    >>> clean("add\u200b num\u202ebers\U000e0041\r\n", 100), clean("abcdef", 3)
    ('add numbers\n', 'abc… (cut: 6 characters)')
    """
    # a flood of hidden characters costs no waiting
    kept = "".join(c for c in text[: 8 * limit + 64] if not is_hidden(c))
    return (
        kept
        if len(kept) <= limit and len(text) <= 8 * limit + 64
        else f"{kept[:limit]}… (cut: {len(text)} characters)"
    )


def cleaned(schema: Any, *, names: bool = False) -> Any:
    """Return a JSON Schema, whole, but for hidden characters in what it says to people.

    ``names``: the keys here are names of properties.
    """
    if isinstance(schema, Mapping):
        items = cast("Mapping[str, Any]", schema).items()
        return {
            key: "".join(c for c in value if not is_hidden(c))
            if not names and key in _SAID and isinstance(value, str)
            else cleaned(
                value,
                names=not names
                and key in ("properties", "$defs", "definitions", "patternProperties"),
            )
            for key, value in items
        }
    return (
        [cleaned(each) for each in cast("list[Any]", schema)]
        if isinstance(schema, list)
        else schema
    )


def without(text: str, secrets: Iterable[str]) -> str:
    """``text`` without the secrets that somebody echoed into it.

    >>> without("Bearer s3cret-token", ["s3cret-token", ""])
    'Bearer ***'
    """
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def look_of(name: str) -> str:
    """Return one text for all names that look the same, or nearly.

    >>> look_of("Read") == look_of("rе\u200bad") == look_of("\\uff52ead")
    True
    """
    seen = "".join(c for c in unicodedata.normalize("NFKC", name) if not is_hidden(c))
    return seen.casefold().translate(_LOOKS)


class Tail:
    """The last of what a server said on its standard error: ``room`` bytes."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._kept = b""
        self._lost = False

    def add(self, output: bytes) -> None:
        """More of it."""
        self._lost = self._lost or len(self._kept) + len(output) > self._room
        # twice the room: a secret that is cut there is not among what is shown
        self._kept = (self._kept + output)[-2 * self._room :]

    def text(self, secrets: Iterable[str] = ()) -> str:
        """Return the allowed part of a text, fit to be shown."""
        text = without(self._kept.decode("utf-8", "replace"), secrets)[-self._room :].strip()
        return ("… " if self._lost and text else "") + clean(text, self._room)
