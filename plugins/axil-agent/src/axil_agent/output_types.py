"""Types of outputs: from what a user gives as ``output_type`` to a schema, a check and fields.

A type whose schema is an object with properties (a model, a dataclass, a TypedDict) is the whole
output. Any other type is the value of one field: of the one that is wanted, else ``message``. A
function is called with what its parameters ask for, and gives the output.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import SchemaError, from_json

from axil import ConfigError, Problem
from axil_agent.prompt import Wiring
from axil_models import (
    Structure,
    Tool,
    adapter_of,
    call_async,
    plain_data,
    tool_of,
    without_titles,
)

if TYPE_CHECKING:
    from axil_agent.stage import Stage


class OutputType:
    """A type of outputs, with the field that holds a value which is no object.

    >>> OutputType(list[int], "numbers").schema["properties"]
    {'numbers': {'items': {'type': 'integer'}, 'type': 'array'}}
    """

    def __init__(self, kind: Any, field: str = "message") -> None:
        """Raises: ConfigError (AX131): it is no type whose values JSON can hold; ToolError: of a
        function.
        """
        self.kind, self.field = kind, field
        self.is_text = kind is str
        self._tool: Tool | None = None
        self._around = ""
        if isinstance(kind, Tool) or inspect.isroutine(kind) or isinstance(kind, functools.partial):
            self._tool = tool_of(kind)
            self.name = self._tool.name
            given = dict(self._tool.parameters)
            self.schema, self._around = _flat(given)
            properties = _properties(_returned(kind))
        else:
            self.name = str(getattr(kind, "__name__", "") or "output")
            self._adapter, schema = _read(kind)
            properties = _properties(schema)
            self.schema = _within(schema, field) if properties is None else schema
        self._properties = properties

    @property
    def asked(self) -> tuple[str, ...]:
        """The names that a reply has to have, or may have."""
        return tuple(self.schema.get("properties") or ())

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the output, with descriptions."""
        if self._properties is None:
            return {self.field: ""}
        return {name: str(each.get("description") or "") for name, each in self._properties.items()}

    @property
    def types(self) -> dict[str, Mapping[str, object]]:
        """JSON Schemas of the fields of the output; empty ones where they are not known."""
        if self._properties is not None:
            return {name: dict(each) for name, each in self._properties.items()}
        known: Mapping[str, Any] = {}
        if self._tool is None:
            known = self.schema.get("properties") or {}
        return {self.field: dict(known.get(self.field) or {})}

    @property
    def is_one_value(self) -> bool:
        """True if it is a value of one field, which a reply that is no JSON can be."""
        return self._properties is None and self._tool is None

    @property
    def structure(self) -> Structure | None:
        """The form that a reply has to have; None: it is a text."""
        return None if self.is_text else Structure(name=self.name, schema=self.schema)

    @functools.cached_property
    def parts(self) -> Mapping[str, TypeAdapter[object]]:
        """Validators of the fields, for a reply that has not ended."""
        if self._tool is not None:
            return {}
        if self.is_one_value:
            return {self.field: self._adapter}
        hints: Mapping[str, Any]
        if hasattr(self.kind, "model_fields"):
            annotated: Any = Annotated
            fields = self.kind.model_fields.items()
            hints = {name: annotated[info.annotation, info] for name, info in fields}
        else:
            hints = typing.get_type_hints(self.kind, include_extras=True)
        return {name: adapter_of(hint) for name, hint in hints.items()}

    async def read(
        self, found: Mapping[str, object], ctx: Stage, step: str
    ) -> tuple[dict[str, Any], Any]:
        """Return the fields of the output, and the output itself, of what a reply holds.

        Raises: ValueError: what is wrong, for the model; and what a function raises.
        """
        if self._tool is not None:
            value = await self._called(found, ctx, step)
            plain = plain_data(value)
        else:
            value = self._adapter.validate_python(self._given(found))
            plain = self._adapter.dump_python(value, mode="json")
        return {self.field: plain} if self._properties is None else dict(plain), value

    def _given(self, found: Mapping[str, object]) -> object:
        """Return what is to be the output. Raises: ValueError: its field is missing."""
        if not self.is_one_value:
            return dict(found)
        if self.field in found:
            return found[self.field]
        try:  # the value itself, where that is an object
            self._adapter.validate_python(dict(found))
        except ValidationError:
            raise ValueError(f'the field "{self.field}" is missing.') from None
        return dict(found)

    async def _called(self, found: Mapping[str, object], ctx: Stage, step: str) -> object:
        """Return what the function gives: as a step, so that a resumed run does not call it again.

        Raises: ValueError: as the function.
        """
        tool = cast("Tool", self._tool)
        arguments = {self._around: dict(found)} if self._around else dict(found)
        given: list[object] = []

        async def run() -> dict[str, object]:
            try:
                positions, named = (tool.validate or _by_name)(arguments)
                if tool.wants_ctx:
                    named = {**named, "ctx": ctx}
                given.append(await call_async(tool.call, *positions, **named))
            except ValueError as error:
                return {"fault": str(error) or type(error).__name__}
            return {"value": plain_data(given[0])}

        result = await ctx.step(
            step,
            run,
            request=lambda: {"name": tool.name, "arguments": plain_data(arguments)},
            effects=tool.effects_of(plain_data(arguments)),
            kind="tool",
        )
        if "fault" in result:
            raise ValueError(str(result["fault"]))
        return given[0] if given else result.get("value")


def partial_fields(text: str, parts: Mapping[str, TypeAdapter[object]]) -> dict[str, object]:
    """Return the fields of a reply that has not ended yet: those that are there and fit.

    >>> parts = {"n": TypeAdapter(int), "words": TypeAdapter(list[str])}
    >>> partial_fields('{"n": 3, "words": ["a", "b', parts)
    {'n': 3, 'words': ['a']}
    """
    start = text.find("{")
    if start < 0:
        return {}
    try:
        # half of a pair of surrogates cannot be encoded
        given = from_json(text[start:].encode("utf-8", "replace"), allow_partial=True)
    except ValueError:
        return {}
    found: dict[str, object] = {}
    for name, kind in parts.items():
        if name in given:
            # a validator of the user's may raise whatever it likes of half a value
            with suppress(Exception):
                value = kind.validate_python(given[name])
                found[name] = kind.dump_python(value, mode="json")
    return found


def field_of(wiring: Wiring) -> str:
    """Return the field that holds a value which is no object: the one that is wanted."""
    names = list(wiring.needed) or list(wiring.pushed)
    return names[0] if len(names) == 1 else "message"


def _read(kind: object) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    """Return the validator and the schema of a type. Raises: ConfigError (AX131)."""
    try:
        if isinstance(kind, str):
            raise TypeError("a text is no type")
        adapter = adapter_of(kind)
        return adapter, _whole(without_titles(adapter.json_schema()))
    except (PydanticUserError, SchemaError, NameError, TypeError, KeyError) as error:
        why = str(error).splitlines()[0]
        message = f"expected a type or a function, found {kind!r:.80}: {why}"
        hint = "Give a class, a type such as list[str], or a function whose parameters have types."
        raise ConfigError(Problem("AX131", "output_type", message, hint)) from error


def _by_name(arguments: Mapping[str, object]) -> tuple[Sequence[object], Mapping[str, object]]:
    return (), arguments


def _returned(function: Any) -> dict[str, Any]:
    """Return the schema of what a function gives; empty: nothing is known of it."""
    with suppress(ConfigError, NameError, TypeError):
        hints = typing.get_type_hints(function)
        return _read(hints["return"])[1] if "return" in hints else {}
    return {}


def _whole(schema: Mapping[str, Any]) -> dict[str, object]:
    """Return a schema that is a reference to one of its definitions, as that definition."""
    ref = str(schema.get("$ref") or "")
    name = ref.removeprefix("#/$defs/")
    if set(schema) <= {"$ref", "$defs"} and name in schema.get("$defs", {}):
        return {**schema["$defs"][name], "$defs": schema["$defs"]}
    return dict(schema)


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the properties of an object; None: it is no object, or one with any names."""
    return schema.get("properties") if schema.get("type") == "object" else None


def _within(schema: Mapping[str, object], field: str) -> dict[str, Any]:
    """Return the schema of an object whose one field has a schema."""
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    whole = {"type": "object", "properties": {field: inner}, "required": [field]}
    return {**whole, "$defs": schema["$defs"]} if "$defs" in schema else whole


def _flat(parameters: Mapping[str, object]) -> tuple[dict[str, Any], str]:
    """Return what a function asks for: of one parameter that is an object, its properties, and the
    parameter's name.
    """
    properties = cast("Mapping[str, Any]", parameters.get("properties") or {})
    if len(properties) == 1:
        ((name, inner),) = properties.items()
        kept = {"$ref": inner["$ref"]} if "$ref" in inner else dict(inner)
        whole = _whole({**kept, "$defs": parameters["$defs"]} if "$defs" in parameters else kept)
        if _properties(whole):
            return whole, name
    return dict(parameters), ""
