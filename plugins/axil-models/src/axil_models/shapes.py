"""Tools of other libraries, known by their shape: LangChain and LangGraph, LlamaIndex, Pydantic AI.

Nothing of theirs is imported. A tool whose meaning cannot be kept is refused, with the reason: one
that wants the state or the context of its own framework, or whose result is to be the answer.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from pydantic import ValidationError

from axil.plugin import format_names, is_async, with_article
from axil_models.errors import ToolError
from axil_models.faults import validation_text, without_titles
from axil_models.threads import call_async
from axil_models.tools import Refused, Tool

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The names that a tool may have."""


def held_tools(given: object) -> list[object]:
    """Return the tools that a kit of another library holds, or its tool, as tools; of anything
    else, itself.

    Raises: ToolError (AX984): one cannot be used, and why.
    """
    if isinstance(given, (Tool, type, str, Mapping)) or inspect.isroutine(given):
        return [given]
    own: object = getattr(given, "tools", None)
    if is_async(own):  # a toolset of ours
        return [given]
    if isinstance(own, Mapping) and hasattr(given, "get_tools"):  # of Pydantic AI
        return [tool_by_shape(each) or each for each in cast("Mapping[str, Any]", own).values()]
    for name in ("to_tool_list", "get_tools"):  # of LlamaIndex, of LangChain
        listed: object = getattr(given, name, None)
        if callable(listed):
            if is_async(listed):
                why = f"its {name} has to be awaited, or given a context of its framework"
                raise _unfit(given, type(given).__name__, why, "Await it, and give the list.")
            return [tool_by_shape(each) or each for each in cast("Sequence[Any]", listed())]
    return [tool_by_shape(given) or given]


def tool_by_shape(given: Any) -> Tool | None:
    """Return a tool of another library as a tool; None: it has no shape that is known.

    Raises: ToolError (AX984): it cannot be used, and why.
    """
    if hasattr(given, "tool_call_schema") and hasattr(given, "ainvoke"):
        return _of_langchain(given)
    if hasattr(given, "metadata") and hasattr(given.metadata, "get_parameters_dict"):
        return _of_llama_index(given)
    if hasattr(given, "function_schema") and hasattr(given, "takes_ctx"):
        return _of_pydantic_ai(given)
    if hasattr(given, "on_invoke_tool"):
        why = "it is called with the context of another framework"
        raise _unfit(given, str(given.name), why, "Give the function that it was made of.")
    if hasattr(given, "ainvoke"):
        hint = "Make a tool of it with its method as_tool, or call it in a function."
        raise _unfit(given, type(given).__name__, "it says nothing of its arguments", hint)
    return None


def _of_langchain(given: Any) -> Tool:
    name, shown = str(given.name), given.tool_call_schema
    schema = _schema(given, name, shown)
    fields: Any = getattr(given.args_schema, "model_fields", None) or {}
    hidden = [
        each
        for each, field in cast("Mapping[str, Any]", fields).items()
        if each not in schema["properties"] and field.is_required()
    ]
    if hidden:
        why = f"its framework would have to give it {format_names(hidden)}"
        raise _unfit(given, name, why, "Call it in a function that gives it that.")
    if getattr(given, "return_direct", False):
        raise _direct(given, name)

    async def call(**arguments: object) -> object:
        result = await given.ainvoke(arguments)
        if all(hasattr(result, each) for each in ("goto", "update", "graph")):
            raise TypeError("it gave a Command of LangGraph; use axil_models.Command.")
        return result

    return _made(given, name, str(given.description), schema, call)


def _of_llama_index(given: Any) -> Tool:
    about = given.metadata
    name = str(about.name)
    schema = _schema(given, name, about.get_parameters_dict())
    if getattr(given, "requires_context", False):
        why = "it takes the context of a workflow of LlamaIndex"
        raise _unfit(given, name, why, "Call its function in one without it.")
    if about.return_direct:
        raise _direct(given, name)
    ask: Callable[..., Any] = getattr(given, "acall", None) or given.call

    async def call(**arguments: object) -> object:
        output = await call_async(ask, **arguments)
        if getattr(output, "is_error", False):
            raise RuntimeError(str(output.content))
        return str(output.content) if hasattr(output, "content") else output

    return _made(given, name, str(about.description), schema, call)


def _of_pydantic_ai(given: Any) -> Tool:
    name, about = str(given.name), given.function_schema
    schema = _schema(given, name, about.json_schema)
    wanted = {"takes_ctx": "RunContext", "prepare": "prepare", "args_validator": "args_validator"}
    for key, shown in wanted.items():
        if getattr(given, key, None):
            why = f"it uses {shown} of Pydantic AI, which is not there"
            raise _unfit(given, name, why, "Give a function; a parameter ctx is axil's context.")
    seconds = getattr(given, "timeout", None)

    async def call(**arguments: object) -> object:
        checked = about.validator.validate_python(arguments)
        async with asyncio.timeout(seconds):
            result = await about.call(checked, None)
        return result.return_value if hasattr(result, "return_value") else result

    tool = _made(given, name, str(given.description or ""), schema, call)
    return replace(tool, needs_approval=True) if given.requires_approval else tool


def _schema(given: object, name: str, shown: Any) -> dict[str, Any]:
    """Return the schema of a tool's arguments. Raises: ToolError (AX984): it has none."""
    if hasattr(shown, "model_json_schema"):
        shown = shown.model_json_schema()
    found = cast("Mapping[str, Any]", shown if isinstance(shown, Mapping) else {})
    if found.get("type") != "object":
        why = f"its arguments are described by {with_article(type(cast('object', shown)).__name__)}"
        raise _unfit(given, name, why, "Describe them by a model of pydantic, or a JSON Schema.")
    schema = {**without_titles(found)}
    schema.pop("description", None)
    return {"properties": {}, **schema}


def _made(
    given: object, name: str, description: str, schema: Mapping[str, Any], call: Callable[..., Any]
) -> Tool:
    if not NAME.fullmatch(name):
        why = "a name is letters, digits, _ and -, at most 64"
        raise _unfit(given, name, why, "Rename it.")

    async def refusing(**arguments: object) -> object:
        try:
            return await call(**arguments)
        except ValidationError as error:
            raise Refused(validation_text(error)) from error

    return Tool(name=name, description=description, parameters=schema, call=refusing)


def _direct(given: object, name: str) -> ToolError:
    why = "its result is to be the answer itself (return_direct)"
    return _unfit(given, name, why, "Give its function as output_type of the agent.")


def _unfit(given: object, name: str, why: str, hint: str) -> ToolError:
    kind = f"{type(given).__module__.partition('.')[0]}.{type(given).__name__}"
    return ToolError("AX984", f'the tool "{name}" ({kind}) cannot be used: {why}.', hint)
