"""Payloads folded into fields or gathered into messages, and conversions between the two.

A payload is a mapping of fields (builder graphs), a list of messages (workflow files), or anything
else. A message is a plain dict with ``role``, ``content``, and what travels with it (``source``,
``keep``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from axil.kernel.tokens import Token
from axil.kernel.values import thaw, type_of

Message = dict[str, Any]
"""A message: ``role`` and ``content``, and what else its author put there."""

FAILED_CODE: Final = "==CODE EXECUTION FAILED=="
"""The beginning of the text of a program that failed, where that is data for the next node."""

_RENDERER = json.JSONEncoder(ensure_ascii=False, default=str)


def message(content: Any, role: str = "user", **more: object) -> Message:
    """Return a message.

    >>> message("hi", source="A")
    {'role': 'user', 'content': 'hi', 'source': 'A'}
    """
    return {"role": role, "content": content, **more}


def is_messages(payload: Any) -> bool:
    """Return whether the payload is a list of messages, perhaps empty."""
    parts: Any = payload
    return isinstance(payload, (list, tuple)) and all(
        isinstance(part, dict) and "content" in part for part in parts
    )


def fold_payloads(payloads: Iterable[Any]) -> dict[str, Any]:
    """Return all payloads in one message of fields, by MASFactory's rule; nothing given is changed.

    Per field: absent: set; list and list: extended; dict and dict: updated; list and other:
    appended; else ``[a, b]``.

    >>> fold_payloads([{"k": 1}, {"k": 2}, {"k": [3]}, {"j": {"a": 1}}, {"j": {"b": 2}}])
    {'k': [1, 2, 3], 'j': {'a': 1, 'b': 2}}
    """
    result: dict[str, object] = {}
    made: set[str] = set()  # fields whose values were made here, and so may be added to
    for payload in payloads:
        fields: Mapping[str, object] = payload if type_of(payload) is dict else as_fields(payload)
        for name, new in fields.items():
            if name not in result:
                result[name] = new
                continue
            old: Any = result[name]
            mine: Any = old
            is_made = name in made
            if isinstance(old, list):
                if not is_made:
                    mine = [*cast("list[Any]", old)]
                mine.extend(new) if isinstance(new, list) else mine.append(new)
            elif isinstance(old, dict) and isinstance(new, dict):
                if not is_made:
                    mine = {**cast("dict[Any, Any]", old)}
                mine.update(new)
            else:
                mine = [old, new]
                is_made = False
            if not is_made:
                result[name] = mine
                made.add(name)
    return result


def as_fields(payload: Any) -> Mapping[str, Any]:
    """Return a payload as fields: messages become ``message``, their text or list of texts."""
    if isinstance(payload, Mapping):
        return cast("Mapping[str, Any]", payload)
    if payload is None:
        return {}
    if is_messages(payload):
        texts = [m["content"] for m in payload]
        return {"message": texts[0] if len(texts) == 1 else texts} if texts else {}
    return {"message": payload}


def as_messages(payload: object) -> list[Message]:
    """Return a payload as messages: fields become one user message, of ``message`` if there is such
    a field, else of them all; a list of texts in ``message`` alone becomes one each.
    """
    if is_messages(payload):
        return list(cast("Sequence[Message]", payload))
    if isinstance(payload, dict) and {"role", "content"} <= payload.keys():
        return [cast("Message", payload)]
    if payload is None or payload == {}:
        return []
    if isinstance(payload, Mapping):
        fields = cast("Mapping[str, Any]", payload)
        if is_messages(fields.get("messages")) and fields["messages"]:
            return list(fields["messages"])
        found: object = fields["message"] if set(fields) == {"message"} else render(fields)
        texts = cast("list[Any]", found) if isinstance(found, list) else []
        is_several = texts and all(isinstance(text, str) for text in texts)
        return [message(each) for each in (texts if is_several else cast("list[Any]", [found]))]
    return [message(payload)]


def has_failed(payload: object) -> bool:
    """Return whether a payload is the report of a program that failed; its node is not shown as
    done.

    >>> has_failed([message("hi"), message(FAILED_CODE + "\\nexit_code=1")]), has_failed("fine")
    (True, False)
    """
    last: Any = payload
    if isinstance(last, Mapping):
        last = cast("Mapping[str, Any]", last).get("message")
    elif is_messages(last) and last:
        last = last[-1]["content"]
    return isinstance(last, str) and last.startswith(FAILED_CODE)


def gather_messages(tokens: Iterable[Token]) -> list[Message]:
    """Return the messages of all tokens, in edge order."""
    return [m for token in tokens for m in as_messages(token.payload)]


def text_of(payload: Any) -> str:
    """Return a payload as text.

    >>> text_of([message("a"), message("b")]), text_of({"message": "x"}), text_of({"n": 1})
    ('a\\nb', 'x', '{"n": 1}')
    """
    if isinstance(payload, str):
        return payload
    if is_messages(payload):
        return "\n".join(text_of(m["content"]) for m in payload)
    if isinstance(payload, dict) and "content" in payload:
        return text_of(payload["content"])
    if isinstance(payload, Mapping) and set(cast("Mapping[str, Any]", payload)) == {"message"}:
        return text_of(payload["message"])
    if isinstance(payload, list) and all(
        isinstance(part, dict) for part in cast("list[Any]", payload)
    ):
        parts = cast("list[dict[str, Any]]", payload)
        if all(part.get("type") == "text" for part in parts):
            return "\n".join(str(part.get("text", "")) for part in parts)

    return "" if payload is None else render(cast("object", payload))


def render(value: object) -> str:
    """Return a value as text: strings as they are, all else as JSON, keys in their order."""
    return value if isinstance(value, str) else _RENDERER.encode(thaw(value))
