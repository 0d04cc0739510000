"""Schemas of an OpenAPI document as JSON Schemas that stand alone.

What they refer to in the document is gathered under ``$defs``, so that circles stay circles. What
OpenAPI 3.0 says otherwise than JSON Schema is translated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

_LEFT_OUT: Final = frozenset(
    {
        "example", "examples", "xml", "externalDocs", "discriminator", "deprecated", "nullable",
        "readOnly", "writeOnly", "title",
    }
)  # fmt: skip
_BY_NAME: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE: Final = frozenset(
    {
        "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
        "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
_UNKNOWN: Final = frozenset({"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef"})
_DEEPEST: Final = 60
"""Levels of one schema."""


class Unclear(ValueError):
    """A part of a document that is not understood; the message is the reason."""


def as_object(value: Any) -> Mapping[str, Any] | None:
    """Return an object of a document; None: it is none."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def at(document: Mapping[str, Any], pointer: Any) -> Any:
    """Return what a reference names.

    >>> at({"a": {"b/c": [5]}}, "#/a/b~1c/0")
    5

    Raises: Unclear: it leads out of the document, or to nothing.
    """
    if not isinstance(pointer, str) or not pointer.startswith("#/"):
        raise Unclear(f"the reference {pointer!r:.100} leads out of the document")
    found: Any = document
    for step in pointer[2:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and key in found:
            found = cast("Mapping[str, Any]", found)[key]
        elif isinstance(found, list) and key.isdecimal():
            found = dict(enumerate(cast("list[Any]", found))).get(int(key))
        else:
            raise Unclear(f"the reference {pointer!r:.100} leads to nothing")
    return found


def followed(document: Mapping[str, Any], given: Any, what: str) -> Mapping[str, Any]:
    """Return an object of a document, behind references. Raises: Unclear: it is none."""
    for _ in range(10):
        if not isinstance(given, Mapping):
            raise Unclear(f"{what} is no object")
        found = cast("Mapping[str, Any]", given)
        if "$ref" not in found:
            return found
        given = at(document, found["$ref"])
    raise Unclear(f"{what} refers in circles")


class Schemas:
    """The schemas of the arguments of one operation."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._names: dict[str, str] = {}
        self._waiting: list[str] = []

    def read(self, given: Any) -> Any:
        """Return a schema that refers to ``definitions``. Raises: Unclear."""
        return self._read(given, 0)

    def definitions(self) -> dict[str, Any]:
        """Return what the schemas that were read refer to, by name. Raises: Unclear."""
        made: dict[str, Any] = {}
        while self._waiting:
            pointer = self._waiting.pop()
            made[self._names[pointer]] = self._read(at(self._document, pointer), 0)
        return made

    def _named(self, pointer: Any) -> str:
        if not isinstance(pointer, str) or pointer not in self._names:
            at(self._document, pointer)
            last = re.sub(r"\W+", "_", str(pointer).rpartition("/")[2]) or "schema"
            name, number = last, 1
            while name in self._names.values():
                number += 1
                name = f"{last}_{number}"
            self._names[pointer] = name
            self._waiting.append(pointer)
        return self._names[pointer]

    def _read(self, given: Any, depth: int) -> Any:
        if isinstance(given, bool):
            return given
        if not isinstance(given, Mapping) or depth > _DEEPEST:
            raise Unclear("a schema is no object, or nested too deeply")
        schema = cast("Mapping[str, Any]", given)
        if unknown := sorted(_UNKNOWN & schema.keys()):
            raise Unclear(f"a schema has {unknown[0]}")
        made: dict[str, Any] = {}
        for key, value in schema.items():
            if key == "$ref":
                made["$ref"] = f"#/$defs/{self._named(value)}"
            elif key in _BY_NAME:
                inner = _mapping(value, key)
                made[key] = {name: self._read(each, depth + 1) for name, each in inner.items()}
            elif key in _LISTS:
                made[key] = [self._read(each, depth + 1) for each in _sequence(value, key)]
            elif key in _SINGLE:
                made[key] = self._read(value, depth + 1)
            elif key not in _LEFT_OUT and not key.startswith("x-"):
                made[key] = value
        _drop_read_only(schema, made)
        return _nullable(schema, _bounded(made))


def _drop_read_only(schema: Mapping[str, Any], made: dict[str, Any]) -> None:
    """Take out properties that only answers have."""
    given: Any = schema.get("properties") or {}
    for name, each in cast("Mapping[str, Any]", given).items():
        if isinstance(each, Mapping) and cast("Mapping[str, Any]", each).get("readOnly") is True:
            del made["properties"][name]
            if name in (made.get("required") or ()):
                made["required"] = [other for other in made["required"] if other != name]


def _bounded(made: dict[str, Any]) -> dict[str, Any]:
    """Translate bounds of OpenAPI 3.0, which are exclusive by a flag."""
    for bound, flag in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(made.get(flag), bool) and made.pop(flag) and bound in made:
            made[flag] = made.pop(bound)
    return made


def _nullable(schema: Mapping[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    if schema.get("nullable") is not True:
        return made
    if isinstance(made.get("type"), str) and "enum" not in made:
        return {**made, "type": [made["type"], "null"]}
    return {"anyOf": [made, {"type": "null"}]}


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Unclear(f"{key} of a schema is no object")
    return cast("Mapping[str, Any]", value)


def _sequence(value: Any, key: str) -> Sequence[Any]:
    if not isinstance(value, list) or not value:
        raise Unclear(f"{key} of a schema is no list")
    return cast("list[Any]", value)
