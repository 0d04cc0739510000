"""Flowise's texts, HTML with variables in double braces, as texts with places."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any, Final

from axil_importers.draft import Step, literal

_PLACE: Final = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
_BREAK: Final = re.compile(r"<br\s*/?>|</(?:p|li|h\d|div)>", re.I)
_TAG: Final = re.compile(r"</?(?:p|span|strong|em|b|i|u|s|ol|ul|li|h\d|div|code|pre|a|hr)\b[^>]*>")
Resolve = Callable[[str], str]
"""From a variable to the path of a field; empty: there is none."""


def plain(given: Any) -> str:
    """Return a text without the tags that the editor writes.

    >>> plain("<p>Hi <span class='v'>{{ question }}</span> &lt;x&gt;</p>")
    'Hi {{ question }} <x>'
    """
    text = str(given if given is not None else "")
    if "<" not in text:
        return text.strip()
    return html.unescape(_TAG.sub("", _BREAK.sub("\n", text))).strip()


def text_of(given: Any, resolve: Resolve, step: Step) -> str:
    """Return a text with places of axil."""
    text = plain(given)
    parts: list[str] = []
    end = 0
    for place in _PLACE.finditer(text):
        path = resolve(place[1])
        if not path:
            step.approximate(
                f"the variable {place[1]} is not known here, and left out",
                "Write the value into the text, or make it a field.",
            )
        parts += [literal(text[end : place.start()]), "{" + path + "}" if path else ""]
        end = place.end()
    return "".join(parts) + literal(text[end:])


def value_of(given: Any, resolve: Resolve, step: Step) -> Any:
    """Return a setting as a value of ``assign``: that of a field, if it is only that."""
    if not isinstance(given, str):
        return {"value": given}
    whole = _PLACE.fullmatch(plain(given))
    path = resolve(whole[1]) if whole else ""
    return {"path": path} if path else text_of(given, resolve, step)
