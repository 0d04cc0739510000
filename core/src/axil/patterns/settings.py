"""Types of settings that are regular expressions and JSON Schemas, within bounds when decoded.

A setting of such a type needs no check in its component: ``axil check`` reports what cannot be
used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from axil.patterns.patterns import compile_pattern
from axil.patterns.schemas import BoundedSchema

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler


@dataclass(frozen=True, slots=True)
class _Bounded:
    """The mark of a type whose values are read once, so that what cannot be used is an error."""

    read: Callable[[Any], object]
    format: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> object:
        from pydantic import AfterValidator

        return AfterValidator(self.checked).__get_pydantic_core_schema__(source, handler)

    def __get_pydantic_json_schema__(
        self, schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {**handler(schema), "format": self.format}

    def checked(self, value: object) -> Any:
        """Return a value that can be used. Raises: PatternFault (AX601, AX637)."""
        if value:
            self.read(value)
        return value


PatternText: TypeAlias = Annotated[str, _Bounded(compile_pattern, "regex")]
"""A regular expression, as ``compile_pattern`` takes it."""
JsonSchema: TypeAlias = Annotated[dict[str, Any], _Bounded(BoundedSchema, "json-schema")]
"""A JSON Schema, as ``BoundedSchema`` takes it."""
