"""Nodes that pass messages on: ``literal`` says the same each time, ``passthrough`` repeats what
came, ``vote`` finds the majority.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from axil import Out
from axil.plugin import (
    Message,
    PatternText,
    as_messages,
    compile_pattern,
    fold_payloads,
    is_messages,
    message,
    text_of,
)


def send_nothing() -> Out:
    """Return an outcome that sends nothing: every out-edge dies, whatever it carries."""
    return Out([], to=frozenset())


def forwarded(payloads: Sequence[object]) -> Any:
    """Return all that came, unchanged: one list of messages, or fields folded into one mapping."""
    some = [payload for payload in payloads if payload]
    if all(is_messages(payload) for payload in some or payloads):
        return [m for payload in some for m in as_messages(payload)]
    return fold_payloads(payloads)


class Constant:
    """``literal``: one fixed message; what came in only triggers it."""

    examples = ({"content": "Go on."},)

    inline = True
    reply_name = "its text"
    gives_one = always = True
    writes = frozenset[str]()
    model_calls = 0

    class Config(BaseModel, extra="forbid", frozen=True):
        """The text of ``literal``."""

        content: str = Field(min_length=1, description="The text of the message.")
        role: Literal["user", "assistant"] = Field(
            default="user", description="The role of its author; edges keep it."
        )

    def __init__(self, config: Config) -> None:
        self.config = config
        self.text = config.content
        """The only text that it gives."""

    def run(self) -> list[Message]:
        return [message(self.config.content, self.config.role, preserve_role=True)]


class Passthrough:
    """``passthrough``: what came in, or the last of it; an empty user message, if nothing came."""

    inline = always = forwards = True
    writes = frozenset[str]()
    model_calls = 0

    class Config(BaseModel, extra="forbid", frozen=True):
        """The messages that ``passthrough`` repeats."""

        only_last_message: bool = Field(
            default=True, description="Repeat the last message only; false: all of them."
        )

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()

    @property
    def gives_one(self) -> bool:
        """True if it gives one message at a time."""
        return self.config.only_last_message

    def run(self, payloads: list[Any]) -> Any:
        came = forwarded(payloads)
        if not is_messages(came):
            return Out(fold_payloads(payloads[-1:]) if self.config.only_last_message else came)
        if not came:
            return [message("")]
        return came[-1:] if self.config.only_last_message else came


class Vote:
    """``vote``: the text that most sources said last; of equals, the one said on the first edge.

    Blank texts do not count.
    """

    inline = gives_one = True
    writes = frozenset[str]()
    model_calls = 0

    examples: tuple[dict[str, str], ...] = ({}, {"pattern": "ANSWER: *(.+)"})

    class Config(BaseModel, extra="forbid", frozen=True):
        """The part of a text that is the vote."""

        pattern: PatternText = Field(
            default="",
            description="A regular expression: its first group, or its match, is the vote; a text "
            "without one has none. Without a pattern the whole text.",
        )

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()
        self._pattern = compile_pattern(self.config.pattern) if self.config.pattern else None

    def _vote(self, text: str) -> str:
        """Return what counts of a text; empty: it has no vote."""
        if self._pattern is None:
            return text
        match = self._pattern.search(text)
        return "" if match is None else match.group(min(1, self._pattern.groups)) or ""

    def run(self, payloads: list[object]) -> object:
        """Return the most frequent vote."""
        last: dict[object, str] = {}
        for position, payload in enumerate(payloads):
            for m in as_messages(payload):
                last[m.get("source") or position] = self._vote(text_of(m))
        votes = Counter(text for text in last.values() if text.strip())
        if not votes:
            return send_nothing()
        return [message(votes.most_common(1)[0][0], "assistant")]
