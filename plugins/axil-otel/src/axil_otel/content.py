"""Contents of spans: prompts, replies, arguments and results, redacted and cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from axil.plugin import redact_data, redact_text, without_secrets


@dataclass(frozen=True, slots=True)
class Content:
    """The rules for contents in spans."""

    longest: int
    redact: Callable[[str], str] | None = None

    def text(self, value: Any) -> str:
        """Return a value's text, redacted as a whole and then cut."""
        whole = (self.redact or redact_text)(without_secrets(str(value)))
        left = len(whole) - self.longest
        return whole if left <= 0 else f"{whole[: self.longest]}… [{left} more characters]"

    def data(self, value: Any) -> str:
        """Return a value as JSON; each text in it is redacted and cut.

        >>> Content(5).data({"api_key": "x", "city": "Reykjavik"})
        '{"api_key": "[redacted]", "city": "Reykj… [4 more characters]"}'
        """
        return json.dumps(redact_data(value, self.text), ensure_ascii=False)


def message_parts(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as the GenAI conventions have it: a role and parts.

    Of images, files and recordings the kind is given, and not the bytes.

    >>> message_parts({"role": "user", "content": "hi"})
    {'role': 'user', 'parts': [{'type': 'text', 'content': 'hi'}]}
    """
    content = message.get("content")
    parts: list[dict[str, Any]] = []
    if message.get("role") == "tool":
        call = message.get("tool_call_id")
        parts.append({"type": "tool_call_response", "id": call, "response": _texts(content)})
    elif content:
        parts += _texts(content)
    parts += [
        {
            "type": "tool_call",
            "id": call.get("id"),
            "name": call.get("name"),
            "arguments": call.get("arguments"),
        }
        for call in message.get("tool_calls") or ()
    ]
    return {"role": message.get("role"), "parts": parts}


def _texts(content: Any) -> list[dict[str, Any]]:
    if not isinstance(content, (list, tuple)):
        return [{"type": "text", "content": str(content)}]
    parts = cast("Sequence[Any]", content)
    return [
        {"type": "text", "content": str(part.get("text"))}
        if part.get("type") == "text"
        else {"type": str(part.get("type"))}
        for part in parts
        if isinstance(part, Mapping)
        for part in (cast("Mapping[str, Any]", part),)
    ]
