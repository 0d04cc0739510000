"""JSON Schemas of files: nothing is fetched, and the work of a validation is bounded.

A schema may be hostile in four ways. ``$ref`` may name a page or a file: it resolves inside the
schema, and to the standard's schemas, only. A pattern may search for ever: its time is bounded.
References may lead in circles, or double what is to be done: steps are counted. Comparing all items
of a long list takes long: they are compared by their text.

Validation takes up to some seconds; call ``first_fault`` in a thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, cast

from axil._installing import install_advice
from axil.bounds import check_time
from axil.errors import NotInstalled
from axil.patterns.errors import PatternFault, PatternLimit
from axil.patterns.patterns import compile_pattern

MAX_STEPS: Final = 200_000
"""Keywords of a schema that one validation looks at, over all places of the value."""
_SECONDS: Final = 5.0
"""The processor's time of all patterns of one validation, about."""

_left: ContextVar[list[float]] = ContextVar("left")
"""The steps and seconds that are left to the validation under way."""


class SchemaFinding(NamedTuple):
    """A place of a value that does not fit a schema."""

    path: str
    """As a JSON path: ``$.items[0]``."""
    keyword: str
    message: str


class BoundedSchema:
    """A JSON Schema (draft 2020-12) within bounds."""

    def __init__(self, schema: Mapping[str, object]) -> None:
        """Read the schema.

        Raises: PatternFault: AX637 it is no schema; AX601 a pattern is none; NotInstalled (AX306).
        """
        try:
            # there are no stubs
            import jsonschema_specifications as known  # pyright: ignore[reportMissingTypeStubs]
            from jsonschema.exceptions import ValidationError
        except ImportError as error:
            message = "JSON Schemas need the library jsonschema, which is not installed."
            raise NotInstalled(message, hint=install_advice("axil-core[schemas]")) from error
        kind, given = _validator(), _of_one_draft(schema)
        _left.set([MAX_STEPS, _SECONDS])
        try:
            kind(kind.META_SCHEMA, registry=known.REGISTRY).validate(given)
        except ValidationError as error:
            message = f"expected a JSON Schema, found {error.message:.200} at {error.json_path}."
            raise PatternFault("AX637", message, "Correct the schema.") from error
        except RecursionError as error:
            raise _too_much() from error
        self._validator: Any = kind(given, registry=known.REGISTRY)

    def first_fault(self, value: object) -> SchemaFinding | None:
        """Return the first place of a value that does not fit, if any.

        Raises: PatternFault: AX637 a reference leads out of the schema; AX601 a pattern is none.
        PatternLimit: AX633 a pattern takes too long; AX638 the whole needs too many steps.
        """
        from referencing.exceptions import Unresolvable

        _left.set([MAX_STEPS, _SECONDS])
        try:
            fault = next(self._validator.iter_errors(value), None)
        except Unresolvable as error:
            message = f"the schema refers to {error.ref!r:.200}, which is not in it."
            hint = "Write it under $defs; nothing is read from files or fetched."
            raise PatternFault("AX637", message, hint) from error
        except RecursionError as error:
            raise _too_much() from error
        if fault is None:
            return None
        return SchemaFinding(fault.json_path, str(fault.validator), str(fault.message))


_DATA: Final = frozenset(["const", "enum", "default", "examples"])
"""Keywords whose values are data and no schemas."""


def _of_one_draft(schema: Mapping[str, object]) -> dict[str, object]:
    """Return a schema without ``$schema``: another draft would have unbounded keywords.

    Raises: PatternFault (AX637): a part of it names a draft.
    """
    own = {name: each for name, each in schema.items() if name != "$schema"}
    waiting: list[object] = [own]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += cast("list[Any]", part)
        elif isinstance(part, Mapping):
            inside = cast("Mapping[str, Any]", part)
            if isinstance(inside.get("$schema"), str):
                message = "a part of the schema names a draft with $schema."
                raise PatternFault("AX637", message, "Write $schema at its top, or not at all.")
            waiting += [each for name, each in inside.items() if name not in _DATA]
    return own


def _too_much() -> PatternLimit:
    return PatternLimit(
        "AX638",
        f"holding a value against the schema takes more than {MAX_STEPS:,} steps, or has no end.",
        "Simplify the schema: no references in circles, no alternatives inside alternatives.",
    )


def _step() -> None:
    left = _left.get()
    left[0] -= 1
    if left[0] % 100 == 0:
        check_time()
    if left[0] < 0:
        raise _too_much()


def _searched(pattern: str, text: str) -> bool:
    """Return whether a pattern is found, within what is left of the time."""
    from time import thread_time

    left, begun = _left.get(), thread_time()
    found = compile_pattern(pattern).search(text, seconds=min(1.0, max(0.01, left[1]))) is not None
    left[1] -= thread_time() - begun
    if left[1] < 0:
        raise _too_much()
    return found


Keyword = Callable[[Any, Any, Any, Any], "Iterator[object] | None"]


def _validator() -> Any:
    from jsonschema import Draft202012Validator, validators

    draft: Any = Draft202012Validator
    made: Any = validators
    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "unevaluatedProperties": _unevaluated_properties,
        "uniqueItems": _unique_items,
    }
    keywords = cast("dict[str, Keyword]", {**draft.VALIDATORS, **own})
    return made.extend(draft, {name: _counted(each) for name, each in keywords.items()})


def _counted(keyword: Keyword) -> Keyword:
    def check(validator: object, given: object, value: object, schema: object) -> Iterator[object]:
        _step()
        yield from keyword(validator, given, value, schema) or ()

    return check


def _fault(message: str) -> object:
    from jsonschema.exceptions import ValidationError

    return ValidationError(message)


def _pattern(validator: Any, pattern: Any, value: Any, schema: object) -> Iterator[object]:
    if validator.is_type(value, "string") and not _searched(pattern, value):
        yield _fault(f"{value!r:.100} does not match {pattern!r:.100}")


def _pattern_properties(validator: Any, given: Any, value: Any, schema: Any) -> Iterator[object]:
    if validator.is_type(value, "object"):
        for pattern, inner in given.items():
            for name, each in value.items():
                _step()
                if _searched(pattern, name):
                    yield from validator.descend(each, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, given: Any, value: Any, schema: Any) -> Iterator[object]:
    if not validator.is_type(value, "object"):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, each in value.items():
        if name in named or any(_searched(pattern, name) for pattern in patterns):
            continue
        if validator.is_type(given, "object"):
            yield from validator.descend(each, given, path=name)
        elif not given:
            yield _fault(f"additional properties are not allowed: {name!r:.100}")


def _unevaluated_properties(
    validator: object, given: object, value: object, schema: object
) -> Iterator[object]:
    """Refuse a keyword whose meaning needs unbounded searches."""
    message = "unevaluatedProperties is not supported in the schema of a file."
    raise PatternFault("AX637", message, "Write additionalProperties.")


def _unique_items(validator: Any, given: Any, value: Any, schema: object) -> Iterator[object]:
    if given and validator.is_type(value, "array"):
        texts = {json.dumps(_canonical(each), sort_keys=True, default=repr) for each in value}
        if len(texts) != len(value):
            yield _fault("it has items that are alike")


def _canonical(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {name: _canonical(each) for name, each in items}
    if isinstance(value, (list, tuple)):
        return [_canonical(each) for each in cast("list[Any]", value)]
    return value


__all__ = ["MAX_STEPS", "BoundedSchema", "SchemaFinding"]
