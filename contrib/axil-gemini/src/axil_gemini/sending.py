"""A conversation as generateContent takes it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from axil.plugin import Message
from axil_gemini.provided import seen
from axil_models import Part, ToolSpec, content_text, kept_for, parts_of, unsendable, valid_text

EXTRA: Final = "gemini"
"""The key that a reply's own parts are kept under."""
UNSIGNED: Final = {
    "thought_signature": base64.b64encode(b"skip_thought_signature_validator").decode()
}
"""Google's word for calls of another model: models from Gemini 3 on refuse them without."""
_OLD: Final = re.compile(r"gemini-[12]\b")
OURS: Final = "axil_call_"
"""The prefix of ids of calls that have none from the service; they are not sent to it."""


def conversation(messages: Sequence[Message], origin: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the system text, and contents of alternating roles, neighbours of one role joined."""
    system: list[str] = []
    lines: list[dict[str, Any]] = []
    calls: dict[str, Mapping[str, Any]] = {}
    for each in messages:
        role = str(each.get("role") or "user")
        if role in ("system", "developer"):
            system.append(valid_text(content_text(each.get("content"))))
            continue
        calls |= {str(call["id"]): call for call in each.get("tool_calls") or ()}
        side = "model" if role == "assistant" else "user"
        parts = _parts(each, role, calls, origin)
        if lines and lines[-1]["role"] == side:
            lines[-1]["parts"] += parts
        elif parts:
            lines.append({"role": side, "parts": parts})
    return "\n\n".join(system), lines


def _parts(
    given: Message, role: str, calls: Mapping[str, Mapping[str, Any]], origin: str
) -> list[dict[str, Any]]:
    content = given.get("content")
    if role == "tool":
        id = str(given.get("tool_call_id") or "")
        call = calls.get(id) or {"name": given.get("name") or ""}
        response: dict[str, Any] = {
            "name": str(call["name"]),
            "response": {"result": valid_text(content_text(content))},
        }
        arguments: Any = call.get("arguments") or {}
        if call["name"] == "computer" and "action" in arguments:
            response = seen(arguments, parts_of(content))
        return [{"function_response": {**_id(id), **response}}]
    if role == "assistant":
        kept = kept_for(given, EXTRA, origin) or {}
        if "parts" in kept:
            return [dict(part) for part in kept["parts"]]
        parts: list[dict[str, Any]] = (
            [{"text": valid_text(content_text(content))}] if content else []
        )
        for at, call in enumerate(
            cast("Sequence[Mapping[str, Any]]", given.get("tool_calls") or ())
        ):
            parts.append(
                {
                    **(UNSIGNED if at == 0 and not _OLD.search(origin) else {}),
                    "function_call": {
                        **_id(str(call["id"])),
                        "name": call["name"],
                        "args": dict(call.get("arguments") or {}),
                    },
                }
            )
        return parts
    return [_part(part) for part in parts_of(content)]


def _id(id: str) -> dict[str, str]:
    return {} if id.startswith(OURS) or not id else {"id": id}


def _part(part: Part) -> dict[str, Any]:
    if part["type"] == "text":
        return {"text": valid_text(part["text"])}
    kind = {"mime_type": part["media_type"]} if part.get("media_type") else {}
    if part.get("data"):
        return {"inline_data": {"data": part["data"], **kind}}
    where = part.get("url") or part.get("file_id")
    if where:
        return {"file_data": {"file_uri": where, **kind}}
    raise unsendable(part, "the Gemini API")


def tool(spec: ToolSpec) -> dict[str, Any]:
    """Return a tool as the API takes it."""
    return {
        "name": spec.name,
        "description": spec.description,
        "parameters_json_schema": dict(spec.parameters),
    }


def tool_config(given: Any) -> dict[str, Any] | None:
    """Return the choice of tool in this service's form, from any spelling; None: the model chooses.

    >>> (
    ...     tool_config("required"),
    ...     tool_config("add")["function_calling_config"]["allowed_function_names"],
    ... )
    ({'function_calling_config': {'mode': 'ANY'}}, ['add'])
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        chosen = cast("Mapping[str, Any]", given)
        inner = chosen.get("function")
        if isinstance(inner, Mapping):
            given = cast("Mapping[str, Any]", inner).get("name")
        else:
            given = chosen.get("name") or "auto"
    mode = {"auto": "AUTO", "none": "NONE", "required": "ANY"}.get(str(given))
    if mode is not None:
        return {"function_calling_config": {"mode": mode}}
    return {"function_calling_config": {"mode": "ANY", "allowed_function_names": [str(given)]}}
