"""JSON Schemas as strict structured output takes them.

Every property is required, objects take no others, alternatives are ``anyOf``. What only narrows
values and is not understood there is left out: the reader of the reply validates it anyway. What
cannot be said at all (open mappings, values of any kind) is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

_KEPT: Final = frozenset(
    {
        "$ref", "type", "description", "enum", "const", "pattern", "minItems", "maxItems",
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    }
)  # fmt: skip
_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema, made strict.

    >>> strict({"type": "object", "properties": {"a": {"type": "integer",
    ...     "default": 1}}})["required"]
    ['a']

    Raises: ValueError: it cannot be; where, and why.
    """
    made = _strict(schema, "the schema")
    if made.get("type") != "object":
        raise ValueError("the schema is no object")
    definitions = cast("Mapping[str, Any]", schema.get("$defs") or {})
    if definitions:
        made["$defs"] = {name: _strict(each, name) for name, each in definitions.items()}
    return made


def _strict(schema: Any, where: str) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise ValueError(f"{where} takes anything")
    given = dict(cast("Mapping[str, Any]", schema))
    together = given.pop("allOf", None)
    if together is not None:
        if len(together) != 1:
            raise ValueError(f"{where} is several schemas at once")
        given = {**together[0], **given}
    made = {key: value for key, value in given.items() if key in _KEPT}
    if given.get("format") in _FORMATS:
        made["format"] = given["format"]
    if "$ref" in made:  # nothing may stand beside a reference
        return {"$ref": made["$ref"]}
    either = cast("Sequence[Any] | None", given.get("anyOf") or given.get("oneOf"))
    if either:
        made["anyOf"] = [
            _strict(each, f"{where}, alternative {number}") for number, each in enumerate(either, 1)
        ]
    elif "prefixItems" in given:
        raise ValueError(f"{where} is a tuple")
    elif given.get("type") == "object" or "properties" in given:
        made |= _object(given, where)
    elif given.get("type") == "array":
        made["items"] = _strict(given.get("items"), f"the items of {where}")
    elif not made.keys() & {"type", "enum", "const"}:
        raise ValueError(f"{where} takes anything")
    return made


def _object(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    is_open = given.get("additionalProperties") or given.get("patternProperties")
    if is_open or "properties" not in given:
        raise ValueError(f"{where} takes properties of any name")
    properties = cast("Mapping[str, Any]", given["properties"])
    return {
        "type": "object",
        "properties": {name: _strict(each, name) for name, each in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }
