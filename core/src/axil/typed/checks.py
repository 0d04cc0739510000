"""The check of a typed field's values, and their form as data, by pydantic.

A value is checked in lax mode. Values of growing fields stay ``Log``s; what a journal keeps is read
back before it is accepted, so one that would come back different is refused while it can still be
named.
"""

from __future__ import annotations

import functools
import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, cast

from axil.errors import InvalidValue, JournalError, format_names
from axil.kernel.values import Log, same_value


def adapter(kind: object, config: Mapping[str, object]) -> Any:
    """Return pydantic's ``TypeAdapter`` of a type, under the model's configuration where the type
    has none.

    Raises: whatever pydantic raises for a type that it cannot validate.
    """
    # by identity: int | float equals float | int
    shared = not config and type(kind) is type and kind.__module__ == "builtins"
    return _shared(kind) if shared else _made(kind, config)


@functools.cache
def _shared(kind: object) -> object:
    return _made(kind, {})


def _made(kind: Any, config: Mapping[str, Any]) -> object:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    # Bytes are kept as base64 where we may say so: as text they would have to be UTF-8.
    settings: Any = {
        "arbitrary_types_allowed": True,
        **config,
        "ser_json_bytes": "base64",
        "val_json_bytes": "base64",
    }
    try:
        return TypeAdapter(kind, config=settings)
    except PydanticUserError as error:
        if error.code != "type-adapter-config-unused":
            raise
        return TypeAdapter(kind)


class Checks:
    """The check of one field's values, and their form as data."""

    __slots__ = ("_full", "_loose", "_name", "_read", "_stays", "log")

    def __init__(
        self,
        name: str,
        full: Any,
        loose: Any,
        log: bool,
        stays: bool,
        read: Callable[[Any], object] | None = None,
    ) -> None:
        """Args:
        full, loose: pydantic's validator with the field's constraints, and without.
        log: lists become logs. stays: logs stay logs.
        read: makes the field's type of other forms of its values.
        """
        self._name, self._full, self._loose, self.log, self._stays = name, full, loose, log, stays
        self._read = read

    def __call__(self, value: object) -> object:
        return self._checked(self._full, value)

    def delta(self, value: object) -> object:
        """Return a delta as the field's type, constraints aside. Raises: InvalidValue."""
        try:
            return self._checked(self._loose, value)
        except ValueError as error:
            raise InvalidValue(f'field "{self._name}" does not take this: {error}') from error

    def _checked(self, adapter: object, value: object) -> object:
        if type(value) is not Log:
            if self._read is not None:
                value = self._read(value)
            return self.as_log(_validated(adapter, value))
        items: list[object] = list(value.raw())
        checked = _validated(adapter, items)
        if not self._stays or not isinstance(checked, (list, tuple)):
            return checked
        own = cast("Sequence[Any]", checked)
        if len(own) == len(items) and all(
            same_value(a, b) for a, b in zip(own, items, strict=True)
        ):
            return value  # the very object, so that a replacement sees that nothing changed
        return Log(own)

    def as_log(self, value: object) -> object:
        return (
            Log(cast("Iterable[Any]", value))
            if self.log and isinstance(value, (list, tuple))
            else value
        )

    def as_list(self, value: object) -> Any:
        return list(value.raw()) if type(value) is Log else value

    def json_schema(self) -> dict[str, Any]:
        """Return a JSON Schema of the field. Raises: PydanticUserError: there is none."""
        return cast("dict[str, Any]", self._full.json_schema())

    def encode(self, value: object) -> object:
        """Return plain data from which ``decode`` makes an equal value. Raises: JournalError."""
        items = self.as_list(value)
        try:
            data = self._loose.dump_python(
                items, mode="json", by_alias=True, round_trip=True, warnings="error"
            )
            back = self.as_list(self.decode(data))
        except (ValueError, TypeError, RecursionError) as error:
            raise self._unwritable(value, str(error).splitlines()[0]) from error
        # repr: NaN is not equal to itself
        if not (
            same_value(back, items) or (type(back) is type(items) and repr(back) == repr(items))
        ):
            raise self._unwritable(value, "it would come back different.")
        return data

    def decode(self, data: object) -> object:
        return self.as_log(self._loose.validate_json(json.dumps(data)))

    def encode_delta(self, value: object) -> object:
        """Do as ``encode`` for a delta, and mark whether it was of the field's type."""
        try:
            return ["typed", self.encode(value)]
        except JournalError:
            return ["plain", self.as_list(value)]  # the journal judges

    def decode_delta(self, data: Any) -> object:
        form, value = data
        return self.decode(value) if form == "typed" else value

    def _unwritable(self, value: object, text: str) -> JournalError:
        hint = "Write plain data, or declare the field as the exact type."
        return JournalError(
            f"a value of type {type(value).__name__} cannot be kept in a journal: {text}",
            id="AX501",
            hint=hint,
        )


def _validated(adapter: Any, value: Any) -> object:
    try:
        return adapter.validate_python(value)
    except Exception as error:
        from pydantic import ValidationError

        if not isinstance(error, ValidationError):
            raise
        found = error.errors(include_url=False, include_context=False, include_input=False)
        lines = [
            ": ".join(part for part in (".".join(map(str, each["loc"])), each["msg"]) if part)
            for each in found
        ]
        raise ValueError(format_names(lines, most=3)) from error


_ATOMS: Final = (str, int, float, bool, bytes, type(None), None, Any)
_CONTAINERS: Final = (list, tuple, set, frozenset, dict)


def is_plain(kind: object) -> bool:
    """Return whether the journal keeps all values of the type as they are."""
    if any(kind is each for each in (*_ATOMS, *_CONTAINERS)):
        return True
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return all(type(value) in _ATOMS for value in args)
    return origin in (*_CONTAINERS, typing.Union, types.UnionType) and all(
        arg is ... or is_plain(arg) for arg in args
    )
