"""Node types that imported workflows are made of, beside agents and switches: ``assign``,
``script``, ``call_tool`` and ``retrieve``. They read fields and give fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import BaseModel, Field

from axil import Context
from axil.plugin import has_failed, message, refers_to, text_of
from axil_control import Python
from axil_importers.errors import ScriptError
from axil_importers.values import Value, Written, value_of
from axil_models import ContextQuery, blocks_of, component_of, result_text, tools_of

NamedComponent = str | dict[str, Any]


def _fields(inputs: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {**attributes, **inputs}


class Assign:
    """``assign``: fields made of other fields."""

    examples = ({"fields": {"greeting": "Dear {name}"}},)
    inline = True

    class Config(BaseModel, extra="forbid", frozen=True):
        """The fields that ``assign`` gives."""

        fields: dict[str, Written] = Field(
            min_length=1,
            description="By name a text with places, {field} or {field.name.0}; or {path}, "
            "{first}, {value}, with parse, take and at.",
        )

    def __init__(self, config: Config) -> None:
        self.config = config

    def run(self, inputs: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
        known = _fields(inputs, attributes)
        return {name: value_of(each, known) for name, each in self.config.fields.items()}


class Script:
    """``script``: a program that reads its inputs as one JSON object on its standard input, and
    prints a JSON object, whose values are the fields.

    It runs as that of a ``python`` node does, and only where the run allows code.
    """

    examples = ({"code": "import json; print(json.dumps({'n': 1}))", "fields": {"n": "n"}},)
    capabilities = ("runs_code", "varies")
    lane = "python"
    wants = ("code",)

    class Config(BaseModel, extra="forbid", frozen=True):
        """The program, what it reads and what is taken of what it prints."""

        code: str = Field(min_length=1, description="The program.")
        inputs: dict[str, Written] = Field(
            default_factory=dict[str, Written],
            description="What it reads, by name, as the fields of assign.",
        )
        fields: dict[str, str] = Field(
            min_length=1,
            description="Fields by name, each with its path in the object that is printed; "
            "empty: the whole.",
        )
        interpreter: str = Field(
            default="", description="The interpreter; empty: the one that runs axil."
        )
        timeout_seconds: float = Field(
            default=60, gt=0, allow_inf_nan=False, description="How long it may run."
        )

    def __init__(self, config: Config) -> None:
        self.config = config
        self._python = Python(
            Python.Config(
                code=config.code,
                interpreter=config.interpreter,
                timeout_seconds=config.timeout_seconds,
            )
        )

    async def run(
        self, inputs: dict[str, Any], attributes: dict[str, Any], ctx: Context
    ) -> dict[str, Any]:
        """Raises: ComponentBlocked (AX620): the run does not allow code; ScriptError (AX989): the
        program failed, or printed no JSON object.
        """
        known = _fields(inputs, attributes)
        given = {name: value_of(each, known) for name, each in self.config.inputs.items()}
        said = await self._python.run([message(json.dumps(given, ensure_ascii=False))], ctx)
        text = text_of(said)
        if has_failed(said):
            hint = "Run the program by itself with the same input."
            raise ScriptError("AX989", f"the program failed: {text.partition(chr(10))[2]}", hint)
        try:
            printed: Any = json.loads(text)
        except ValueError as error:
            raise _no_object(text) from error
        if not isinstance(printed, dict):
            raise _no_object(text)
        whole = cast("dict[str, Any]", printed)
        return {
            name: value_of(Value(path=path), whole) if path else whole
            for name, path in self.config.fields.items()
        }


def _no_object(text: str) -> ScriptError:
    fault = f"the program printed {text[:80]!r}, which is no JSON object."
    return ScriptError("AX989", fault, "Print json.dumps of a dict, and nothing else.")


class CallTool:
    """``call_tool``: calls one tool with arguments made of fields."""

    examples = ({"tool": "current_time", "field": "now"},)

    class Config(BaseModel, extra="forbid", frozen=True):
        """The tool, and its arguments."""

        tool: NamedComponent = Field(
            description="The name of an installed tool, or {type: …} with its settings.",
            json_schema_extra=refers_to("tools"),
        )
        arguments: dict[str, Written] = Field(
            default_factory=dict[str, Written],
            description="The arguments by name, as the fields of assign.",
        )
        field: str = Field(min_length=1, description="The field that gets the result, a text.")

    def __init__(self, config: Config) -> None:
        self.config = config
        self._tool = component_of("tools", config.tool)

    async def run(
        self, inputs: dict[str, Any], attributes: dict[str, Any], ctx: Context
    ) -> dict[str, Any]:
        known = _fields(inputs, attributes)
        given = {name: value_of(each, known) for name, each in self.config.arguments.items()}
        (tool,) = (await tools_of([self._tool], ctx))[:1]
        return {self.config.field: result_text(await tool(given, ctx))}


_TOP: Final = 4


class Retrieve:
    """``retrieve``: asks a context provider, and gives what it found as one text."""

    examples = ({"provider": {"type": "keyword", "documents": ["x"]}, "field": "found"},)

    class Config(BaseModel, extra="forbid", frozen=True):
        """The provider, and the query."""

        provider: NamedComponent = Field(
            description="The name of an installed context provider, or {type: …}.",
            json_schema_extra=refers_to("context"),
        )
        query: Written = Field(default="{query}", description="The query, as a field of assign.")
        top_k: int = Field(default=_TOP, ge=1, description="How many pieces it gives.")
        field: str = Field(min_length=1, description="The field that gets the text.")

    def __init__(self, config: Config) -> None:
        self.config = config
        self._provider = component_of("context", config.provider)

    async def run(
        self, inputs: dict[str, Any], attributes: dict[str, Any], ctx: Context
    ) -> dict[str, Any]:
        query = text_of(value_of(self.config.query, _fields(inputs, attributes)))
        asked = ContextQuery(query_text=query)
        blocks = await blocks_of(self._provider, asked, self.config.top_k, ctx=ctx)
        return {self.config.field: "\n\n".join(block.text for block in blocks)}
