"""Speakers of a shared conversation: a message of an assistant names its node in ``source``, and is
for the others a user's message that begins with that name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from axil.plugin import Message
from axil_models import content_text, plain_data, text_part

_SENT = ("role", "content", "name", "tool_call_id", "tool_calls", "extra")


def from_speaker(messages: Sequence[Message], speaker: str) -> list[Message]:
    """Return messages with their speaker."""
    return [{**cast("Message", plain_data(dict(m))), "source": speaker} for m in messages]


def unmarked(given: Mapping[str, object]) -> Message:
    """Return a message without axil's own marks."""
    return {name: given[name] for name in _SENT if name in given}


def visible_to(listener: str, messages: Sequence[Mapping[str, object]]) -> list[Message]:
    """Return a conversation as one of its speakers is sent it, without the tool calls of others.

    >>> said = [{"role": "assistant", "content": "Hello.", "source": "ann"}]
    >>> visible_to("bob", said), visible_to("ann", said)
    ([{'role': 'user', 'content': 'ann: Hello.'}], [{'role': 'assistant', 'content': 'Hello.'}])
    """
    return [m for each in messages if (m := _as_sent(each, listener)) is not None]


def _as_sent(given: Mapping[str, object], listener: str) -> Message | None:
    speaker, role, content = given.get("source"), given.get("role"), given.get("content")
    if speaker in (None, "", listener) or role not in ("assistant", "tool"):
        return unmarked(given)
    if role == "tool" or not content:
        return None
    if isinstance(content, list):
        return {"role": "user", "content": [text_part(f"{speaker}:"), *cast("list[Any]", content)]}
    return {"role": "user", "content": f"{speaker}: {content_text(content)}"}


def transcript(messages: Sequence[Mapping[str, object]]) -> str:
    """Return a conversation as text: a line for each message but those of tools.

    >>> transcript([{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}])
    'user: Hi.\\nassistant: Hello.'
    """
    return "\n".join(
        f"{m.get('source') or m.get('role') or 'user'}: {content_text(m.get('content'))}"
        for m in messages
        if m.get("role") != "tool" and m.get("content")
    )


def since(listener: str, messages: Sequence[Mapping[str, object]]) -> list[Message]:
    """Return the messages since a speaker's last turn, as it is sent them."""
    own = [at for at, m in enumerate(messages) if m.get("source") == listener]
    return visible_to(listener, messages[own[-1] + 1 if own else 0 :])


def not_yet_sent(history: Sequence[Message], conversation: Sequence[Message]) -> list[Message]:
    """Return the messages of a memory that a conversation does not hold."""
    return [m for m in history if unmarked(m) not in conversation]
