"""Values as text and as plain data, always the same way: equal values give equal bytes."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Mapping, Sequence, Set as AnySet
from typing import Any, cast

from axil.plugin import thaw

_PLAIN = frozenset({str, int, float, bool, type(None)})


def plain_data(value: Any) -> Any:
    """Turn a value into plain data: models and dataclasses to mappings, sets to sorted lists.

    >>> plain_data({"b": {2, 1}, "a": (1,)})
    {'b': [1, 2], 'a': [1]}
    """
    if type(value) in _PLAIN:
        return value
    value = thaw(value)
    if isinstance(value, enum.Enum):
        return plain_data(value.value)
    if hasattr(value, "model_dump"):
        return plain_data(value.model_dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain_data(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {
            str(name): plain_data(each) for name, each in cast("Mapping[Any, Any]", value).items()
        }
    if isinstance(value, AnySet):
        return sorted((plain_data(each) for each in cast("AnySet[Any]", value)), key=repr)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
        return [plain_data(each) for each in cast("Sequence[Any]", value)]
    return value


def as_text(value: object) -> str:
    """Return text as it is, all else as indented JSON with sorted keys.

    >>> as_text("a"), as_text({"b": 1, "a": None})
    ('a', '{\\n  "a": null,\\n  "b": 1\\n}')
    """
    if isinstance(value, str):
        return value
    plain = plain_data(value)
    indent = 2 if isinstance(plain, (dict, list)) else None  # with one it is slower
    return json.dumps(plain, ensure_ascii=False, indent=indent, sort_keys=True, default=str)
