"""The shared parts of formatters: the text of a value, the text around an answer, and the error."""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from collections.abc import Mapping, Sequence, Set as AnySet
from typing import Any, cast

from axil.plugin import ProblemError, thaw


class FormatError(ProblemError, ValueError):
    """A text is not in the format that was asked for.

    The message is for the author of the text, a model included.
    """


def plain(value: Any) -> Any:
    """Return a value as JSON has it: models and dataclasses become mappings, sets become sorted
    lists; keys are sorted.

    >>> plain({"b": {2, 1}, "a": (1,)})
    {'a': [1], 'b': [1, 2]}
    """
    value = thaw(value)
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return dict(
            sorted(((str(name), plain(each)) for name, each in items), key=lambda item: item[0])
        )
    if isinstance(value, AnySet):
        return sorted((plain(each) for each in cast("AnySet[Any]", value)), key=repr)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
        return [plain(each) for each in cast("Sequence[Any]", value)]
    return value


def text_of(value: Any) -> str:
    """Return a value as text for a prompt: text as it is, all else as indented JSON with sorted
    keys, so that equal values give equal text.

    >>> text_of("a: b"), text_of(None), text_of([1])
    ('a: b', 'null', '[\\n  1\\n]')
    """
    return (
        value
        if isinstance(value, str)
        else json.dumps(plain(value), ensure_ascii=False, indent=2, default=str)
    )


_THOUGHT = re.compile(r"<(think|thinking)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_REST_OF_THOUGHT = re.compile(r"\A.*?</(?:think|thinking)>", re.DOTALL | re.IGNORECASE)


def spoken(text: str) -> str:
    """Return a reply without what the model thought aloud: ``<think>`` blocks; also where only
    their end was sent.

    >>> (
    ...     spoken("<think>hm {}</think>{}"),
    ...     spoken("hm</think> yes"),
    ...     spoken('{"a": "<think>x</think>"}'),
    ... )
    ('{}', 'yes', '{"a": "<think>x</think>"}')
    """
    text = text.strip()
    while (thought := _THOUGHT.match(text)) is not None:
        text = text[thought.end() :].lstrip()
    opened = re.search(r"<think(?:ing)?>", text, re.IGNORECASE)
    if opened is None and (rest := _REST_OF_THOUGHT.match(text)) is not None:
        text = text[rest.end() :].lstrip()
    return text


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
