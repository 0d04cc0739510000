"""The shared parts of the two request forms: settings, tools, structured output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, cast

from pydantic import Field

from axil import ConfigError, Problem
from axil_models import RemoteModelConfig, Request, Structure, structure_prompt
from axil_openai.connection import OpenAIConfig
from axil_openai.profiles import Form, Profile
from axil_openai.strict import strict


class ModelConfig(RemoteModelConfig, OpenAIConfig):
    """A model of a service that speaks as OpenAI does."""

    structured_output: Literal["auto"] | Form = Field(
        default="auto",
        description="How a reply is held to a schema. strict; schema: not strictly; object: "
        "JSON, shown the schema; "
        "prompt: only shown the schema; auto: the first of these that the service and the schema "
        "allow; the next one where the service refuses.",
    )
    strict_tools: bool = Field(
        default=False,
        description="Hold arguments of tools to their schemas; all of them become required.",
    )


def chosen_tool(given: Any) -> str | None:
    """Return the name of the tool that a ``tool_choice`` names; None: it names none.

    >>> chosen_tool("auto"), chosen_tool({"type": "function", "function": {"name": "add"}})
    (None, 'add')
    """
    if isinstance(given, str):
        return None if given in ("auto", "none", "required") else given
    if isinstance(given, Mapping):
        choice = cast("Mapping[str, Any]", given)
        inner = choice.get("function")
        named = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else choice
        name = named.get("name")
        return str(name) if name and choice.get("type", "function") == "function" else None
    return None


def tool_schema(parameters: Mapping[str, Any], is_strict: bool) -> tuple[dict[str, Any], bool]:
    """Return a tool's parameters, and whether they are strict: those that cannot be are not."""
    if is_strict:
        with suppress(ValueError):
            return strict(parameters), True
    return dict(parameters), False


def forms_for(request: Request, profile: Profile) -> tuple[Form, ...]:
    """Return the forms in which a service can be asked for the structure, the firmest first."""
    if request.output is not None:
        try:
            strict(request.output.schema)
        except ValueError:
            return tuple(form for form in profile.forms if form != "strict")
    return profile.forms


def held(structure: Structure, form: Form) -> tuple[dict[str, Any] | None, str]:
    """Return the binding of a reply to a structure: ``{"name", "schema", "strict"}``, ``{}`` for
    any object, or None; and the instructions for the model.

    Raises: ConfigError (AX808): the schema cannot be strict, and has to be.
    """
    name = re.sub(r"[^A-Za-z0-9_-]", "_", structure.name)[:64] or "reply"
    if form == "strict":
        try:
            return {"name": name, "schema": strict(structure.schema), "strict": True}, ""
        except ValueError as error:
            message = f"the schema cannot be strict: {error}."
            hint = "Define what it may hold, or set structured_output: schema."
            raise ConfigError(Problem("AX808", structure.name, message, hint)) from None
    if form == "schema":
        return {"name": name, "schema": dict(structure.schema), "strict": False}, ""
    return ({} if form == "object" else None), structure_prompt(structure)
