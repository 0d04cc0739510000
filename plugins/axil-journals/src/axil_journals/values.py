"""Values, and writes to state, as JSON data from which equal values are made.

What cannot be held exactly is refused, never changed. A write is decoded with the state that its
body began with. So in the fields of nodes (``@``) a log that grew since is written as what was
appended to it: a conversation of n turns takes space and time for n turns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Coroutine, Mapping
from types import MappingProxyType
from typing import Any, cast

from axil import MISSING, Question, Schema
from axil.driver import NO_RESET
from axil.plugin import FieldChange, JournalError, Log

_TAG = "@"
_GROWN = "grown"
"""The tag of a log that begins with the items of another one, of which only the number is kept."""
_CHANGE = "change"
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_DEEPEST = 200


def encode_value(value: Any, depth: int = 0) -> Any:
    """Return JSON data from which ``decode_value`` makes an equal value of the same type.

    Scalars (NaN, infinities, lone surrogates and huge integers too), bytes, lists, tuples, sets and
    dicts, nested up to 200 deep. Raises: JournalError (AX501): anything else.

    >>> encode_value({"a": (1, 2.5)})
    {'a': {'@': 'tuple', 'v': [1, 2.5]}}
    """
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]  # anything may come
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -(2**53) < value < 2**53 else {_TAG: "int", "v": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {_TAG: "float", "v": repr(value)}
    if depth >= _DEEPEST:
        message = f"a value is nested deeper than {_DEEPEST} levels."
        raise JournalError(message, id="AX502", hint="Keep large structures in files.")
    if kind is list:
        # most lists are of texts
        return [item if type(item) is str else encode_value(item, depth + 1) for item in value]
    if kind is Log:
        return {_TAG: "log", "v": [encode_value(item, depth + 1) for item in value.raw()]}
    if kind is dict:
        if _TAG not in value and set(map(type, value)) <= {str}:
            return {
                key: item if type(item) is str else encode_value(item, depth + 1)
                for key, item in value.items()
            }
        return {
            _TAG: "dict",
            "v": [
                [encode_value(k, depth + 1), encode_value(v, depth + 1)] for k, v in value.items()
            ],
        }
    if kind is tuple:
        return {_TAG: "tuple", "v": [encode_value(item, depth + 1) for item in value]}
    if kind is set or kind is frozenset:
        return {
            _TAG: kind.__name__,
            "v": sorted((encode_value(item, depth + 1) for item in value), key=repr),
        }
    if kind is bytes:
        import base64

        return {_TAG: "bytes", "v": base64.b64encode(value).decode()}
    if value is MISSING:
        return {_TAG: "missing"}
    hint = "Return plain data, declare the field in a typed schema, or pass the object as deps."
    if isinstance(value, Coroutine):
        hint = "Await it: a function that asks or waits is an `async def`."
    raise JournalError(
        f"a value of type {kind.__module__}.{kind.__qualname__} cannot be kept in a journal.",
        id="AX501",
        hint=hint,
    )


def decode_value(data: object) -> Any:
    """Return the value that ``encode`` was given."""
    if isinstance(data, list):
        return [decode_value(item) for item in cast("list[Any]", data)]
    if not isinstance(data, dict):
        return data
    table = cast("dict[str, Any]", data)
    if _TAG not in table:
        return {key: decode_value(item) for key, item in table.items()}
    inner: Any = table.get("v")
    tag = table[_TAG]
    if tag == "int":
        return int(inner, 16)
    if tag == "float":
        return float(inner)
    if tag == "bytes":
        import base64

        return base64.b64decode(inner)
    if tag == "missing":
        return MISSING
    if tag == "dict":
        return {decode_value(key): decode_value(item) for key, item in inner}
    return _OF_ITEMS[tag]([decode_value(item) for item in inner])


_OF_ITEMS: Mapping[str, Any] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "log": Log,
    _GROWN: Log,  # if its beginning is not known: what was appended
}


def _encode_since(value: Any, old: Any, depth: int = 0) -> Any:
    """Return ``value`` as JSON data, logs that grew since ``old`` as what was appended to them."""
    if type(value) is Log and type(old) is Log and value.extends(old):
        items = [encode_value(item, depth + 1) for item in value.after(len(old))]
        return {_TAG: _GROWN, "after": len(old), "v": items}
    if type(value) is dict and type(old) is dict and depth < _DEEPEST:
        fields, before = cast("dict[Any, Any]", value), cast("dict[Any, Any]", old)
        if _TAG not in fields and set(map(type, fields)) <= {str}:
            return {
                key: _encode_since(item, before.get(key), depth + 1) for key, item in fields.items()
            }
    return encode_value(value, depth)


def _decode_since(data: Any, old: Any) -> Any:
    """Return the value that ``_encode_since`` was given.

    Raises: JournalError (AX526): what it grew from is not there.
    """
    if type(data) is not dict:
        return decode_value(data)
    table = cast("dict[str, Any]", data)
    if _TAG not in table:
        if type(old) is not dict:
            return decode_value(table)
        before = cast("dict[str, Any]", old)
        return {name: _decode_since(item, before.get(name)) for name, item in table.items()}
    if table[_TAG] != _GROWN:
        return decode_value(table)
    if type(old) is not Log or len(old) != table["after"]:
        found = f"{len(old)} items" if type(old) is Log else "nothing of the kind"
        raise JournalError(
            f"a recorded value continues a list of {table['after']} items, and there is {found}.",
            id="AX526",
            hint="The graph may differ from that of the run: fork the run at an earlier entry.",
        )
    return old.extended([decode_value(item) for item in table["v"]])


def encode_delta(
    delta: Mapping[str, object], schema: Schema, since: Mapping[str, object] = _NOTHING
) -> dict[str, Any]:
    """Return a checked delta or a frame's changes as JSON data, each field by its schema.

    ``since``: the state with which it will be decoded. Raises: JournalError, naming the field.
    """

    def one(name: str, value: Any) -> Any:
        to_plain = schema.of(name).encode
        try:
            if to_plain is not None:
                return encode_value(value if value is MISSING else to_plain(value))
            # what migrations change is written whole
            if name[:1] == "@" and name in since:
                return _encode_since(value, since[name])
            return encode_value(value)
        except JournalError as error:
            raise JournalError(
                f'field "{name}": {error.message}', id=error.id, hint=error.hint
            ) from None

    plain: dict[str, Any] = {}
    for name, value in delta.items():
        if type(value) is FieldChange:
            plain[name] = {_TAG: _CHANGE, "v": [one(name, d) for d in value.deltas]}
            if value.reset is not NO_RESET:
                plain[name]["reset"] = one(name, value.reset)
        else:
            plain[name] = one(name, value)
    return plain


def decode_delta(
    plain: Mapping[str, object], schema: Schema, since: Mapping[str, object] = _NOTHING
) -> dict[str, Any]:
    """Return the delta that ``encode_delta`` was given, with the same ``since``.

    Raises: JournalError (AX526): ``since`` is another state.
    """

    def one(name: str, data: Any) -> Any:
        to_value = schema.of(name).decode
        is_own = name[:1] == "@" and name in since
        value = _decode_since(data, since[name]) if is_own else decode_value(data)
        return to_value(value) if to_value is not None and value is not MISSING else value

    delta: dict[str, Any] = {}
    for name, data in plain.items():
        if (change := change_of(data)) is not None:
            reset = one(name, change["reset"]) if "reset" in change else NO_RESET
            delta[name] = FieldChange(tuple(one(name, d) for d in change["v"]), reset)
        else:
            delta[name] = one(name, data)
    return delta


def change_of(data: object) -> Mapping[str, Any] | None:
    """Return the JSON data of a field's write if it stands for a ``FieldChange``."""
    if not isinstance(data, dict):
        return None
    table = cast("dict[str, Any]", data)
    return table if table.get(_TAG) == _CHANGE else None


def encode_question(question: Question) -> dict[str, Any]:
    """Return a question without its node as JSON data; other values as their ``repr``."""
    data: dict[str, Any] = {
        "id": question.id,
        "text": question.text,
        "kind": question.kind,
        "options": list(question.options),
    }
    if question.default is not None:
        data["default"] = json.loads(json.dumps(question.default, default=repr))
    if question.due is not None:
        data["due"] = question.due
    if question.data:
        data["data"] = json.loads(json.dumps(dict(question.data), default=repr))
    return data


def decode_question(data: Mapping[str, Any]) -> Question:
    """Return a recorded question, without its deadline."""
    return Question(
        text=str(data.get("text", "")),
        kind=str(data.get("kind", "text")),
        options=tuple(data.get("options", ())),
        default=data.get("default"),
        data=data.get("data", {}),
        id=str(data["id"]),
        node=str(data.get("node", "")),
    )
