"""Thoughts in Chat Completions: what services beside OpenAI add to the messages of their models.

DeepSeek, Qwen, Kimi, vLLM: ``reasoning_content``, or ``reasoning``. OpenRouter: also
``reasoning_details``. Mistral: content that is a list, with parts ``thinking``. Gemini:
``extra_content`` with the signature of a call or of the message. All of it goes back as it came,
to the same model of the same service only. DeepSeek, Kimi and Gemini refuse calls without: where
another model made them, something stands in for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from axil_models import Showing, reasoning_parts

EXTRA: Final = "openai_chat"
"""The key that it is kept under."""
_STAND_IN: Final = "(not kept)"
"""Kimi refuses an empty text."""
_UNSIGNED: Final = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""Google's word for calls of another model: models from Gemini 3 on refuse them without."""
_OLD: Final = re.compile(r"gemini-[12]\b")
_TEXTS: Final = ("reasoning_content", "reasoning")


def more_of(given: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the fields of these names that a service sent beyond the API."""
    more: Mapping[str, Any] | None = getattr(given, "model_extra", None)
    if not more:  # nearly always
        return {}
    return {name: more[name] for name in names if more.get(name) is not None}


class Thoughts:
    """The thoughts of one reply, which come in pieces."""

    def __init__(self, show: Showing, origin: str) -> None:
        self._show, self._origin = show, origin
        self._fields: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._shown: list[str] = []
        self._listed: list[str] = []
        self._more: dict[str, Any] = {}

    def taken_from(self, delta: Any) -> str:
        """Take the thoughts in a piece of a message, and return the text of its answer."""
        more: Mapping[str, Any] | None = delta.model_extra
        thought = self._added(more) if more else ""
        content: Any = delta.content
        if isinstance(content, list):
            listed, content = _read(cast("list[Any]", content))
            self._listed += [listed] if listed else []
            thought = thought or listed
        if thought:
            self._shown.append(thought)
            self._show({"kind": "reasoning", "text": thought})
        return content if isinstance(content, str) else ""

    def _added(self, more: Mapping[str, Any]) -> str:
        """Take the thoughts in fields beyond the API; return what they show."""
        thought = ""
        for name in _TEXTS:
            if name in more:  # empty, too: who has the field wants it back
                pieces = self._fields.setdefault(name, [])
                if isinstance(more[name], str):
                    pieces.append(more[name])
                    thought = thought or more[name]
        found = more.get("reasoning_details")
        for detail in cast("list[Any]", found) if isinstance(found, list) else ():
            if isinstance(detail, Mapping):
                added = self._detail(dict(cast("Mapping[str, Any]", detail)))
                thought = thought or added
        if more.get("extra_content") is not None:
            self._more["extra_content"] = more["extra_content"]
        return thought

    def _detail(self, detail: dict[str, Any]) -> str:
        """Add a detail, or a piece of the one before; return what it shows."""
        text = detail.get("text") or detail.get("summary")
        last = self._details[-1] if self._details else {}
        same = all(detail.get(key) == last.get(key) for key in ("type", "index"))
        if last and same and detail.get("id") in (None, last.get("id")):
            for key, value in detail.items():
                is_piece = key in ("text", "summary", "data") and isinstance(value, str)
                last[key] = f"{last.get(key) or ''}{value}" if is_piece else value or last.get(key)
        else:
            self._details.append(detail)
        return text if isinstance(text, str) else ""

    @property
    def parts(self) -> tuple[dict[str, Any], ...]:
        """The thoughts, as parts of the reply."""
        return reasoning_parts(self._shown)

    def kept(self, calls: Mapping[str, Any]) -> dict[str, Any]:
        """Return what goes back: fields of the message, and of its calls by id."""
        message: dict[str, Any] = {name: "".join(texts) for name, texts in self._fields.items()}
        message |= self._more
        if self._details:
            message["reasoning_details"] = self._details
        if self._listed:
            inner = [{"type": "text", "text": "".join(self._listed)}]
            message["content"] = [{"type": "thinking", "thinking": inner}]
        if not message and not calls:
            return {}
        return {EXTRA: {"origin": self._origin, "message": message, "calls": dict(calls)}}


def sent_back(kept: Mapping[str, Any], text: Any) -> dict[str, Any]:
    """Return what was kept as it is sent: the text of the reply behind a list of thoughts."""
    if "content" not in kept or not text:
        return dict(kept)
    return {**kept, "content": [*kept["content"], {"type": "text", "text": text}]}


def with_stand_ins(
    messages: list[dict[str, Any]], thinking: str, model: str
) -> list[dict[str, Any]]:
    """Return a conversation with calls, and something in place of thoughts that it lacks.

    ``thinking``: the field of the thoughts; ``model``: who is asked.
    """
    is_signed = thinking == "extra_content"
    if not any(each.get("tool_calls") for each in messages) or (is_signed and _OLD.search(model)):
        return messages
    made: list[dict[str, Any]] = []
    for each in messages:
        calls = each.get("tool_calls")
        if each["role"] == "assistant" and not is_signed:
            made.append({"reasoning_content": _STAND_IN, **each})
        elif calls and is_signed and not any("extra_content" in call for call in calls):
            signed = {**calls[0], "extra_content": _UNSIGNED}
            made.append({**each, "tool_calls": [signed, *calls[1:]]})
        else:
            made.append(each)
    return made


def _read(content: Sequence[Any]) -> tuple[str, str]:
    """Return the thoughts and the text in a list of Mistral's parts."""
    thoughts: list[str] = []
    texts: list[str] = []
    for each in content:
        part = cast("Mapping[str, Any]", each if isinstance(each, Mapping) else {})
        inner: Any = part.get("thinking")
        if part.get("type") == "thinking":
            thoughts.append(inner if isinstance(inner, str) else _read(inner or ())[1])
        elif isinstance(part.get("text"), str):
            texts.append(part["text"])
    return "".join(thoughts), "".join(texts)
