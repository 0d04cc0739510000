"""A conversation as the Messages API takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from axil.plugin import Message
from axil_models import (
    Part,
    ToolSpec,
    content_text,
    is_content,
    kept_for,
    part_bytes,
    parts_of,
    unsendable,
    valid_text,
)

EXTRA = "anthropic"
"""The key that a reply's own blocks are kept under."""


def conversation(messages: Sequence[Message], origin: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the system text, and messages of alternating roles, neighbours of one role joined."""
    system: list[str] = []
    lines: list[dict[str, Any]] = []
    for each in messages:
        role = str(each.get("role") or "user")
        if role in ("system", "developer"):
            system.append(valid_text(content_text(each.get("content"))))
            continue
        side = "assistant" if role == "assistant" else "user"
        blocks = _blocks(each, role, origin)
        if lines and lines[-1]["role"] == side:
            lines[-1]["content"] += blocks
        elif blocks:
            lines.append({"role": side, "content": blocks})
    return "\n\n".join(system), lines


_MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}
_UNMARKABLE = ("thinking", "redacted_thinking")


def marked(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request with marks where the service is to cache it: after tools and system, and at
    its end.
    """
    made = dict(asked)
    if made.get("system"):
        made["system"] = [{"type": "text", "text": made["system"], **_MARK}]
    elif made.get("tools"):
        made["tools"] = [*made["tools"][:-1], {**made["tools"][-1], **_MARK}]
    if made["messages"]:
        *before, last = made["messages"]
        *blocks, end = last["content"]
        if end["type"] not in _UNMARKABLE:
            made["messages"] = [*before, {**last, "content": [*blocks, {**end, **_MARK}]}]
    return made


def with_text(system: str | list[dict[str, Any]], text: str) -> str | list[dict[str, Any]]:
    """Return the system's text with another one behind it."""
    if isinstance(system, str):
        return f"{system}\n\n{text}".strip()
    *before, last = system
    return [*before, {**last, "text": f"{last['text']}\n\n{text}"}]


def _blocks(given: Message, role: str, origin: str) -> list[dict[str, Any]]:
    content = given.get("content")
    if role == "tool":
        result: Any = valid_text(content_text(content)) or " "
        if is_content(content):  # of a computer: a picture of its screen
            result = [_part(part) for part in parts_of(content)]
        id = str(given.get("tool_call_id") or "")
        return [{"type": "tool_result", "tool_use_id": id, "content": result}]
    if role == "assistant":
        kept = kept_for(given, EXTRA, origin) or {}
        if "content" in kept:
            return [dict(block) for block in kept["content"]]
        blocks: list[dict[str, Any]] = (
            [{"type": "text", "text": valid_text(content_text(content))}] if content else []
        )
        for call in cast("Sequence[Mapping[str, Any]]", given.get("tool_calls") or ()):
            blocks.append(
                {
                    "type": "tool_use",
                    "id": call["id"],
                    "name": call["name"],
                    "input": dict(call.get("arguments") or {}),
                }
            )
        return blocks
    return [_part(part) for part in parts_of(content) if part["type"] != "text" or part["text"]]


def _part(part: Part) -> dict[str, Any]:
    kind, media_type = part["type"], str(part.get("media_type") or "")
    if kind == "text":
        return {"type": "text", "text": valid_text(part["text"])}
    block = "image" if kind == "image" else "document"
    named = {"title": part["name"]} if block == "document" and part.get("name") else {}
    if part.get("url"):
        return {"type": block, "source": {"type": "url", "url": part["url"]}, **named}
    if part.get("file_id"):
        return {"type": block, "source": {"type": "file", "file_id": part["file_id"]}, **named}
    if part.get("data") and (kind == "image" or media_type == "application/pdf"):
        return {
            "type": block,
            "source": {"type": "base64", "media_type": media_type, "data": part["data"]},
            **named,
        }
    if part.get("data") and media_type.startswith("text/"):
        words = part_bytes(part).decode("utf-8", "replace")
        return {
            "type": block,
            "source": {"type": "text", "media_type": "text/plain", "data": words},
            **named,
        }
    raise unsendable(part, "the Messages API")


def tool(spec: ToolSpec) -> dict[str, Any]:
    """Return a tool as the API takes it."""
    return {
        "name": spec.name,
        "description": spec.description,
        "input_schema": dict(spec.parameters),
    }


def tool_choice(given: Any, parallel: bool | None) -> dict[str, Any] | None:
    """Return the choice of tool in this service's form, from any spelling; None: the model chooses.

    >>> (
    ...     tool_choice("required", False),
    ...     tool_choice({"type": "function", "function": {"name": "add"}}, None),
    ... )
    ({'type': 'any', 'disable_parallel_tool_use': True}, {'type': 'tool', 'name': 'add'})
    """
    choice: dict[str, Any] | None = None
    if isinstance(given, str):
        known = {
            "auto": {"type": "auto"},
            "none": {"type": "none"},
            "required": {"type": "any"},
            "any": {"type": "any"},
        }
        choice = dict(known.get(given) or {"type": "tool", "name": given})
    elif isinstance(given, Mapping):
        chosen = cast("Mapping[str, Any]", given)
        inner = chosen.get("function")
        source = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else chosen
        name = source.get("name")
        choice = {"type": "tool", "name": name} if name else dict(chosen)
    if parallel is False:
        choice = choice or {"type": "auto"}
        if choice["type"] != "none":
            choice["disable_parallel_tool_use"] = True
    return choice
