"""Prompts with places for fields: ``"Write about {topic}."``

``{name}`` is the place of a field, ``{{name}}`` is the text ``{name}``. All other braces are text:
``{"a": 1}``, ``x^{2}``, ``\\frac{a+b}{c d}``. What is put in is never read as a template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from axil.plugin import bounded_text, did_you_mean, format_names
from axil_agent.errors import PromptError
from axil_models import as_text

_PLACE = re.compile(r"\{\{(\w+)\}\}|\{([^\W\d]\w*|\d+)\}")


class Verbatim(str):
    """A text without places: what looks like one is text."""

    __slots__ = ()


def joined(template: Any) -> str:
    """Return a template's text: itself, or its lines."""
    if isinstance(template, str):
        return template
    return "\n".join(str(line) for line in cast("Sequence[object]", template or ()))


def places(template: str) -> set[str]:
    """Return the fields that a template has places for."""
    return {match[2] for match in _PLACE.finditer(template) if match[2]}


def rendered(template: str, fields: Mapping[str, object], where: str = "") -> str:
    """Return the template with the fields put in; what is not text as JSON, indented as its place.

    >>> rendered('{a} and {{a}}, {"b": 1}, x^{2}', {"a": 1})
    '1 and {a}, {"b": 1}, x^{2}'

    Raises: PromptError (AX650): a field is not there; InvalidValue (AX639): it would be too long.
    """
    if isinstance(template, Verbatim):
        return str(template)
    missing = [
        name
        for name in dict.fromkeys(m[2] for m in _PLACE.finditer(template))
        if name and not name.isdigit() and name not in fields
    ]
    if missing:
        has = format_names(sorted(fields)) or "no fields"
        message = f"the prompt asks for {format_names(missing)}; there is {has}."
        text = f"for the text itself write {{{{{missing[0]}}}}}"
        hint = did_you_mean(missing[0], fields) or f"Bring it on an edge or pull it; {text}."
        raise PromptError("AX650", message, hint, where)
    return bounded_text(_pieces(template, _filling(fields)))


def _pieces(template: str, fill: Callable[[re.Match[str]], str]) -> Iterator[str]:
    """Yield the text between places, and what is put into them."""
    end = 0
    for place in _PLACE.finditer(template):
        yield template[end : place.start()]
        yield fill(place)
        end = place.end()
    yield template[end:]


def _filling(fields: Mapping[str, object]) -> Callable[[re.Match[str]], str]:
    def fill(match: re.Match[str]) -> str:
        if match[1] is not None:
            return f"{{{match[1]}}}"
        if match[2] not in fields:  # digits: an exponent, not a place
            return match[0]
        value = fields[match[2]]
        if isinstance(value, str):
            return value
        column = match.start() - (match.string.rfind("\n", 0, match.start()) + 1)
        return as_text(value).replace("\n", "\n" + " " * max(2, column))

    return fill
