"""Faults of values and schemas of pydantic, in the form in which a model reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from pydantic import ValidationError


def validation_text(error: ValidationError) -> str:
    """Word a validation error for a model: ``a: Input should be an integer; b: Field required``."""
    parts: list[str] = []
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        where = ".".join(str(key) for key in each["loc"])
        parts.append(f"{where}: {each['msg']}" if where else str(each["msg"]))
    return "; ".join(parts)


Schema = TypeVar("Schema")


def without_titles(schema: Schema) -> Schema:
    """Return a JSON Schema without the titles that pydantic makes up."""
    return cast("Schema", _without_titles(schema))


def _without_titles(schema: object, *, names: bool = False) -> object:
    """``names``: the keys here are names of properties."""
    if isinstance(schema, Mapping):
        items = cast("Mapping[str, Any]", schema).items()
        return {
            key: _without_titles(value, names=not names and key in ("properties", "$defs"))
            for key, value in items
            if names or key != "title" or not isinstance(value, str)
        }
    if isinstance(schema, list):
        return [_without_titles(each) for each in cast("list[Any]", schema)]
    return schema
