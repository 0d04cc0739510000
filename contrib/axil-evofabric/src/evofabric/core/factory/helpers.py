"""Access to models, mappings and their types alike."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import is_dataclass as _is_dataclass
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel


def is_typeddict(tp: Any) -> bool:
    """Say whether a type is a TypedDict."""
    return isinstance(tp, type) and hasattr(tp, "__total__") and hasattr(tp, "__required_keys__")


def is_basemodel(typ: Any) -> bool:
    """Say whether a type is a class of pydantic models."""
    return isinstance(typ, type) and issubclass(typ, BaseModel)


def is_dataclass(typ: Any) -> bool:
    """Say whether a type is a dataclass."""
    return isinstance(typ, type) and _is_dataclass(typ)


def strip_annotated(tp: Any) -> Any:
    """Give the type within ``Annotated``."""
    return get_args(tp)[0] if get_origin(tp) is Annotated else tp


def deep_dump(obj: Any) -> Any:
    """Give models at any depth as dicts."""
    if isinstance(obj, BaseModel):
        return deep_dump(obj.model_dump())
    if isinstance(obj, Mapping):
        return {key: deep_dump(value) for key, value in cast("Mapping[Any, Any]", obj).items()}
    if isinstance(obj, (list, tuple)):
        return [deep_dump(each) for each in cast("list[Any]", obj)]
    return obj


def _empty(tp: Any) -> Any:
    kind = get_origin(strip_annotated(tp)) or strip_annotated(tp)
    try:
        return kind() if isinstance(kind, type) else None
    except Exception:  # noqa: BLE001  # a type is anybody's code: it has no empty value
        return None


def fill_defaults(model_or_cls: Any, *, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Give each field of a model or TypedDict its default, or the empty value of its type.

    Args:
        extra: values to take instead.
    Raises: TypeError: it is no such class.
    """
    given = dict(extra or {})
    if is_typeddict(model_or_cls):
        hints = get_type_hints(model_or_cls, include_extras=True)
        return {name: given.get(name) or _empty(tp) for name, tp in hints.items()}
    if not is_basemodel(model_or_cls):
        raise TypeError(f"found {model_or_cls!r}, expected a class of models or a TypedDict.")
    filled: dict[str, Any] = {}
    for name, field in model_or_cls.model_fields.items():
        if name in given:
            filled[name] = given[name]
        elif field.is_required():
            filled[name] = _empty(field.annotation)
        else:
            filled[name] = field.get_default(call_default_factory=True)
    return filled


def safe_set_attr(data: Any, name: str, value: Any) -> None:
    """Set a key of a mapping, or an attribute of anything else."""
    if isinstance(data, MutableMapping):
        cast("MutableMapping[str, Any]", data)[name] = value
    else:
        setattr(data, name, value)


def safe_convert_to_schema(data: Any, schema: Any) -> Any:
    """Give the fields of a mapping, model or object as an instance of ``schema``, unvalidated."""
    return schema.model_construct(**_held(data)) if is_basemodel(schema) else _held(data)


def _held(data: Any) -> dict[str, Any]:
    if isinstance(data, BaseModel):
        return {name: getattr(data, name) for name in type(data).model_fields}
    if isinstance(data, Mapping):
        return dict(cast("Mapping[str, Any]", data))
    return {
        name: value for name, value in _attributes(cast("object", data)) if not name.startswith("_")
    }


def _attributes(data: object) -> list[tuple[str, Any]]:
    return list(vars(data).items())
