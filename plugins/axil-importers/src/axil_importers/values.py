"""Values made of fields: texts with places, paths, lists cut to size."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from pydantic import BaseModel, Field

from axil.plugin import render

_PLACE: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_MISSING: Final = object()


class Value(BaseModel, extra="forbid", frozen=True):
    """A value that is no text with places: of a path, of the first path that has one, or fixed."""

    path: str | None = Field(default=None, description="Where it is: a field, or field.name.0.")
    first: tuple[str, ...] = Field(
        default=(), description="Instead: paths, of which the first that leads to a value counts."
    )
    value: Any = Field(default=None, description="Instead: the value itself.")
    object: dict[str, Any] = Field(
        default_factory=dict[str, Any],
        description="Instead: a mapping of values, each written as any value of assign.",
    )
    merge: tuple[str, ...] = Field(
        default=(), description="Instead: paths of mappings, which are joined; later ones win."
    )
    parse: bool = Field(default=False, description="Read a text as JSON.")
    as_list: bool = Field(
        default=False, description="Make a list of it, of one item if it is none."
    )
    drop: int = Field(default=0, ge=0, description="Leave out the first so many items of a list.")
    take: int | None = Field(
        default=None, description="Of a list the first so many items; negative: the last."
    )
    plus: str | int | float | None = Field(
        default=None, description="The path of what is added, or a number: a list grows by it."
    )
    at: int | None = Field(default=None, description="Of a list this item; -1: the last.")


Written = str | Value
"""A value as a file writes it: a text with places in braces, or a `Value`."""


def value_of(written: Written, fields: Mapping[str, Any]) -> Any:
    """Return the value of what was written; what is not there is an empty text.

    >>> value_of("Dear {user.name}: {{x}}", {"user": {"name": "Ann"}})
    'Dear Ann: {x}'
    >>> value_of(Value(first=("a", "b")), {"a": "", "b": [1, 2]})
    [1, 2]
    >>> value_of(Value(path="b", take=-1), {"b": [1, 2]})
    [2]
    """
    if isinstance(written, str):
        return _PLACE.sub(lambda place: _placed(place, fields), written)
    paths = written.first or ((written.path,) if written.path is not None else ())
    value = written.value
    if paths:
        found = (follow(fields, path) for path in paths)
        value = next(
            (each for each in found if each is not _MISSING and each not in ("", None)), ""
        )
    if written.object:
        value = {name: value_of(as_written(each), fields) for name, each in written.object.items()}
    if written.merge:
        value = _joined(follow(fields, path) for path in written.merge)
    if written.parse and isinstance(value, str):
        value = _parsed(value)
    if written.plus is not None:
        more = follow(fields, written.plus) if isinstance(written.plus, str) else written.plus
        value = _sum(value, "" if more is _MISSING else more)
    if written.as_list and not isinstance(value, list | tuple):
        value = [] if value == "" else [value]
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = list(cast("Sequence[Any]", value))[written.drop :]
        value = items
        if written.take is not None:
            value = items[: written.take] if written.take >= 0 else items[written.take :]
        if written.at is not None:
            value = items[written.at] if -len(items) <= written.at < len(items) else ""
    return value


def as_written(given: Any) -> Written:
    """Return a value as a file writes it: a text, or a mapping with the keys of ``Value``."""
    return given if isinstance(given, str) else Value.model_validate(given)


def _joined(found: Iterable[Any]) -> Any:
    values = [each for each in found if each is not _MISSING and each not in ("", None)]
    if all(isinstance(each, Mapping) for each in values):
        return {k: v for each in cast("list[dict[str, Any]]", values) for k, v in each.items()}
    return values[0] if len(values) == 1 else values


def _sum(value: Any, more: Any) -> Any:
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [*items, *cast("list[Any]", more)] if isinstance(more, list) else [*items, more]
    if isinstance(value, int | float) and isinstance(more, int | float):
        return value + more
    return more if value == "" else f"{render(value)}{render(more)}"


def follow(value: Any, path: str) -> Any:
    """Return what a path leads to, through mappings, lists and JSON texts; else ``_MISSING``."""
    for key in path.split("."):
        if isinstance(value, str) and value[:1] in ("{", "["):
            value = _parsed(value)
        if isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", value).get(key, _MISSING)
        elif isinstance(value, Sequence) and not isinstance(value, str) and _is_index(key):
            items = cast("Sequence[Any]", value)
            value = items[int(key)] if -len(items) <= int(key) < len(items) else _MISSING
        else:
            return _MISSING
    return value


def _is_index(key: str) -> bool:
    return key.removeprefix("-").isdecimal()


def _placed(place: re.Match[str], fields: Mapping[str, Any]) -> str:
    if place[1] is None:
        return place[0][0]
    found = follow(fields, place[1].strip())
    return "" if found is _MISSING or found is None else render(found)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
