"""Transcripts: what was said in a team, by whom, and what a member is sent of it.

An entry is a message with its speaker in ``source``; the task has none. The words of others reach a
member as a user's message that begins with their name, its own as an assistant's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from axil.plugin import Message, text_of

Hears = Literal["all", "new", "last"]
"""The text that a member is sent: the whole transcript, the part since its own last turn, or the
last turn.
"""

Gives = Literal["answer", "transcript"]
"""The output of a team."""


def entry(source: str, content: Any) -> Message:
    """Return an entry of a transcript."""
    return {"role": "assistant" if source else "user", "content": content, "source": source}


def speaker(said: Message) -> str:
    """Return the name of an entry's speaker; empty: it is the task."""
    return str(said.get("source") or "")


def words(entries: Sequence[Message]) -> str:
    """Return the text of entries."""
    return "\n".join(text_of(each["content"]) for each in entries)


def named(said: Message, listener: str = "") -> Message:
    """Return an entry as ``listener`` is sent it.

    >>> named(entry("ann", "Hello."), "bob")
    {'role': 'user', 'content': 'ann: Hello.'}
    >>> named(entry("ann", "Hello."), "ann")
    {'role': 'assistant', 'content': 'Hello.'}
    """
    source, content = speaker(said), said["content"]
    if not source:
        return {"role": "user", "content": content}
    if source == listener:
        return {"role": "assistant", "content": content}
    if isinstance(content, str):
        return {"role": "user", "content": f"{source}: {content}"}
    if isinstance(content, list):
        return {"role": "user", "content": [{"type": "text", "text": f"{source}:"}, *content]}
    return {"role": "user", "content": f"{source}: {text_of(content)}"}


def heard(
    entries: Sequence[Message], last: Sequence[Message], listener: str, hears: Hears
) -> list[Message]:
    """Return what a member is sent: of all that was said, or of the ``last`` turn."""
    if hears == "last":
        return [named(each) for each in (last or entries)]
    if hears == "new":
        own = [at for at, each in enumerate(entries) if speaker(each) == listener]
        entries = entries[own[-1] + 1 :] if own else entries
    return [named(each, listener) for each in entries]
