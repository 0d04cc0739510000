"""Misfits: what pydantic found wrong with plain data, in the words of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from axil.errors import did_you_mean, format_names
from axil.settings.excerpts import format_value
from axil.settings.redaction import is_private

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

Keys = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """One thing in plain data that does not fit a pydantic model."""

    kind: Literal["unknown", "missing", "value"]
    """An unknown key, a key that is missing, or a value that does not fit."""
    keys: Keys
    """The place in the data; of a missing key, the place that lacks it."""
    message: str
    hint: str = ""
    key: str = ""
    """The unknown or missing key."""
    known: tuple[str, ...] = ()
    """The keys that could stand in place of an unknown one."""
    description: str = ""
    """The description of a missing key in the model."""


def misfits(model: type[BaseModel], raw: object, error: ValidationError) -> Iterator[Misfit]:
    """Yield what pydantic found wrong with ``raw``, in the words of messages, in the order found.

    There is one for each place: what the members of a union expect is said in one sentence, and
    where one of them fits the value but not what is in it, only of what is in it. Values of secret
    fields are never shown.
    """
    by_keys: dict[Keys, list[dict[str, object]]] = {}
    for each in cast("list[dict[str, Any]]", error.errors(include_url=False)):
        by_keys.setdefault(_keys(raw, each), []).append(each)
    around = {keys[:length] for keys in by_keys for length in range(len(keys))}
    for keys, found in by_keys.items():
        first = found[0]
        if first["type"] == "extra_forbidden":
            key = str(keys[-1])
            known = tuple(_names(_field(model, keys[:-1])[0]))
            hint = did_you_mean(key, known) or (
                f"Known here: {format_names(sorted(known), 12)}." if known else ""
            )
            message = f'unknown key "{key}".'
            yield Misfit(
                kind="unknown", keys=keys, message=message, hint=hint, key=key, known=known
            )
        elif first["type"] == "missing" and keys and isinstance(keys[-1], int):
            message = f"expected more than {keys[-1]} items."
            yield Misfit(kind="value", keys=keys[:-1], message=message)
        elif first["type"] == "missing" and keys:
            yield Misfit(
                kind="missing",
                keys=keys[:-1],
                message=f'the key "{keys[-1]}" is missing.',
                key=str(keys[-1]),
                description=getattr(_field(model, keys)[1], "description", None) or "",
            )
        elif keys not in around:
            yield _misfit(model, found, keys)


def _misfit(model: type[BaseModel], found: list[dict[str, object]], keys: Keys) -> Misfit:
    kind, info = _field(model, keys)
    first = found[0]
    if first["type"] in ("value_error", "assertion_error"):
        text = str(first["msg"]).split(", ", 1)[-1].rstrip(".")
        return Misfit(kind="value", keys=keys, message=f"{text}.")
    expected = " or ".join(dict.fromkeys(_expected(error, info) for error in found))
    value = first.get("input")
    if _is_secret(kind, keys):
        return Misfit(kind="value", keys=keys, message=f"expected {expected}.")
    contexts = [cast("dict[str, Any]", error.get("ctx") or {}) for error in found]
    allowed = re.findall(r"'([^']*)'", " ".join(str(each.get("expected", "")) for each in contexts))
    hint = did_you_mean(value, allowed) if isinstance(value, str) else ""
    if "text" in expected and isinstance(value, (int, float)):
        hint = f'Write "{format_value(value)}".'
        if isinstance(value, bool):
            hint = "Put it in quotes: in YAML no, off, yes and on are true or false without them."
    message = f"expected {expected}, found {format_value(value)}."
    return Misfit(kind="value", keys=keys, message=message, hint=hint)


_TYPES = (
    ("int", "a whole number"),
    ("float", "a number"),
    ("decimal", "a number"),
    ("bool", "true or false"),
    ("string", "text"),
    ("list", "a list"),
    ("tuple", "a list"),
    ("set", "a list"),
    ("frozen_set", "a list"),
    ("dict", "a mapping"),
    ("mapping", "a mapping"),
    ("model", "a mapping"),
    ("none_required", "nothing"),
)
_BOUNDS = (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤"))


def _expected(error: Mapping[str, object], info: object) -> str:
    kind = str(error["type"])
    context = cast("Mapping[str, Any]", error.get("ctx") or {})
    if kind in ("literal_error", "enum"):
        words = str(context.get("expected", "")).replace("'", "").replace(" or ", ", ")
        return f"one of {words}" if "," in words else words
    if kind == "string_too_short" and context.get("min_length") == 1:
        return "text that is not empty"
    bounds = [
        f"{sign} {_number(_bound(info, name))}"
        for name, sign in _BOUNDS
        if _bound(info, name) is not None
    ]
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal") or (
        bounds and kind.startswith(("int", "float"))
    ):
        if not bounds:
            bounds = [
                f"{sign} {_number(context[name])}" for name, sign in _BOUNDS if name in context
            ]
        number = "a whole number" if kind.startswith("int") else "a number"
        return f"{_unit(info) or number} {' and '.join(bounds)}"
    if kind == "string_pattern_mismatch":
        return f"text that matches {context.get('pattern', '')}"
    for name, words in _TYPES:
        if kind in (
            f"{name}_type",
            f"{name}_parsing",
            f"{name}_from_float",
            f"{name}_attributes_type",
            name,
        ):
            return words
    text = str(error["msg"]).rstrip(".")
    return re.sub(r"^(?:Input|Value|String|List|\w+) should (?:be |have )?", "", text)


def _number(bound: object) -> str:
    return f"{bound:g}" if isinstance(bound, float) else str(bound)


def _bound(info: object, name: str) -> object:
    return next(
        (
            getattr(m, name)
            for m in getattr(info, "metadata", ())
            if getattr(m, name, None) is not None
        ),
        None,
    )


def _unit(info: object) -> str:
    extra = getattr(info, "json_schema_extra", None)
    return (
        str(cast("Mapping[str, Any]", extra).get("unit", "")) if isinstance(extra, Mapping) else ""
    )


def _keys(raw: object, error: Mapping[str, object]) -> Keys:
    """Return the part of an error's location that is in the data; pydantic adds the names of union
    members and validators.
    """
    keys: list[str | int] = []
    location = cast("Sequence[str | int]", error["loc"])
    for i, key in enumerate(location):
        if (isinstance(raw, Mapping) and key in raw) or (
            isinstance(raw, (list, tuple))
            and isinstance(key, int)
            and key < len(cast("list[Any]", raw))
        ):
            raw = cast("Any", raw)[key]
        elif error["type"] == "missing" and i == len(location) - 1:
            return (*keys, key)
        else:
            continue
        keys.append(key)
    return tuple(keys)


def _names(kind: object) -> list[str]:
    names: list[str] = []
    for name, info in model_fields_of(kind).items():
        names.append(str(info.validation_alias or info.alias or name))
    return names


def model_fields_of(kind: object) -> Mapping[str, Any]:
    """Return the fields of the first model in an annotation; empty: there is none."""
    fields = getattr(kind, "model_fields", None) if isinstance(kind, type) else None
    if fields is not None:
        return cast("Mapping[str, Any]", fields)
    inner = (model_fields_of(part) for part in getattr(kind, "__args__", ()))
    return next((found for found in inner if found), dict[str, Any]())


def _field(model: object, keys: Keys) -> tuple[object, object]:
    """Return the annotation and the field that keys lead to, as far as models go."""
    kind, info = model, None
    for key in keys:
        if isinstance(key, int):
            continue
        fields = model_fields_of(kind)
        info = next((i for n, i in fields.items() if key in (n, i.alias, i.validation_alias)), None)
        if info is None:
            return (kind if fields else Any), None
        kind = info.annotation
    return kind, info


def _is_secret(kind: object, keys: Keys) -> bool:
    return "Secret" in str(kind) or any(is_private(key) for key in keys if isinstance(key, str))
