"""Typed output of agents in files: from what a file declares to a pydantic model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from axil import ConfigError
from axil_agent.errors import WiringError
from axil_agent.output_types import OutputType
from axil_models import ToolError

if TYPE_CHECKING:
    from axil.plugin import CompileOptions

_PLAIN: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict[str, Any],
}


class OutputField(BaseModel):
    """A field of an agent's output, with its type."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["string", "integer", "number", "boolean", "array", "object"] = Field(
        "string", description="Its type; with enum or properties it need not be said."
    )
    description: str = Field("", description="What it is, for the model.")
    enum: list[str | int | float | bool | None] | None = Field(
        None, min_length=1, description="The values that it may have."
    )
    items: OutputField | None = Field(None, description="What an array holds.")
    properties: dict[str, OutputField | str] | None = Field(
        None, description="The fields of an object: descriptions, or fields with types."
    )
    minimum: float | None = Field(None, description="The least number.")
    maximum: float | None = Field(None, description="The largest number.")
    optional: bool = Field(False, description="Whether a reply may leave it out: it is null then.")

    @model_validator(mode="after")
    def _parts_fit_the_type(self) -> OutputField:
        if self.items is not None and self.type != "array":
            raise ValueError("items belong to the type array")
        if self.properties is not None and self.type not in ("object", "string"):
            raise ValueError("properties belong to the type object")
        return self

    def kind(self, name: str) -> object:
        """Return the type, as pydantic takes it."""
        found: Any
        if self.enum is not None:
            found = cast("Any", Literal)[tuple(self.enum)]
        elif self.properties is not None:
            found = output_model(self.properties, name)
        elif self.type == "array":
            found = list[Any] if self.items is None else list[self.items.kind(name)]
        else:
            found = _PLAIN[self.type]
        return found | None if self.optional else found


Output = dict[str, str | OutputField] | str
"""Fields with descriptions, fields with types, or the import path of a type or a function."""


def output_model(fields: Mapping[str, str | OutputField], name: str = "Output") -> type[BaseModel]:
    """Return a model with these fields.

    >>> score = OutputField(type="integer", maximum=10)
    >>> sorted(output_model({"text": "What to say.", "score": score}).model_fields)
    ['score', 'text']
    """
    made: dict[str, Any] = {}
    for key, given in fields.items():
        each = OutputField.model_validate(
            {"description": given} if isinstance(given, str) else given
        )
        info = Field(
            None if each.optional else ...,
            description=each.description or None,
            ge=each.minimum,
            le=each.maximum,
        )
        made[key] = each.kind(key.title().replace("_", "")), info
    return create_model(name, __config__=ConfigDict(extra="ignore"), **made)


def output_type(given: Output, setting: CompileOptions | None, where: str) -> object:
    """Return the type of the output; None: its fields have no types.

    Raises: SpecError: the import path may not be used; WiringError (AX668): it leads to no type.
    """
    if not isinstance(given, str):
        typed = any(isinstance(each, OutputField) for each in given.values())
        return output_model(given) if typed else None
    from axil.plugin import CompileOptions

    found: object = (setting or CompileOptions()).imported(given, where)
    try:
        OutputType(found)
    except (ConfigError, ToolError) as error:
        message = f'"{given}" is no type of an output: {error}'
        hint = "Name a model, another type, or a function whose parameters have types."
        raise WiringError("AX668", message, hint, where) from error
    return found


def described(given: Output, kind: object) -> dict[str, str]:
    """Return the fields of the output, with descriptions; none of a type that is one value: an edge
    says which field holds it.
    """
    if kind is not None:
        output = OutputType(kind)
        return {} if output.is_one_value else output.fields
    return {} if isinstance(given, str) else cast("dict[str, str]", given)
