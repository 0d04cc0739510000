"""Thinking around a reply: before the model is asked for it, and once more when it is there.

Tools are for the reply itself: what is asked around it is answered without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from pydantic import BaseModel, Field

from axil.plugin import Message, naming_unknown
from axil_agent.converse import Answer, ChatOptions, converse, think
from axil_agent.stage import Stage
from axil_models import Ask, Request


class Before(Protocol):
    """The questions of an agent before its reply."""

    async def before(self, messages: Sequence[Message], ask: Ask, /) -> Sequence[Message]:
        """Return the messages that ask for the reply; ``ask`` asks the model other things first."""
        ...


class After(Protocol):
    """The questions of an agent about its reply."""

    async def after(self, messages: Sequence[Message], reply: str, /) -> Sequence[Message] | None:
        """Return the messages with which the model is asked again, for the reply that counts; None:
        the one it gave stands.
        """
        ...


class Thinking(Before, After, Protocol):
    """The questions of an agent around its reply. One of the two methods may be missing."""


class Reflection:
    """An agent that notes its thoughts before it replies, or looks over its reply, or both.

    >>> Reflection(after="Shorten it.")
    Reflection(before='', after='Shorten it.')
    """

    class Config(BaseModel, extra="forbid", frozen=True):
        """The questions to the model around its reply."""

        before: str = Field(
            "",
            description="Asked before the reply; "
            "what the model notes is put before it as its own words.",
        )
        after: str = Field(
            "", description="Asked with the reply; what the model then says is the reply."
        )

    @naming_unknown
    def __init__(self, before: str | Config = "", after: str = "") -> None:
        """``before``, ``after``: prompts; empty: not asked."""
        self.first, self.then = (
            (before.before, before.after)
            if isinstance(before, Reflection.Config)
            else (before, after)
        )

    async def before(self, messages: Sequence[Message], ask: Ask, /) -> Sequence[Message]:
        """Return the messages, with what the model noted behind them."""
        if not self.first:
            return messages
        texts: list[Message] = [*messages, {"role": "user", "content": self.first}]
        noted = await ask(Request(messages=texts))
        return [
            *texts,
            {"role": "assistant", "content": noted.text},
            {"role": "user", "content": "Now reply."},
        ]

    async def after(self, messages: Sequence[Message], reply: str, /) -> Sequence[Message] | None:
        """Return the conversation, with the reply and the question about it."""
        if not self.then:
            return None
        return [
            *messages,
            {"role": "assistant", "content": reply},
            {"role": "user", "content": self.then},
        ]

    def __repr__(self) -> str:
        return f"Reflection(before={self.first!r}, after={self.then!r})"


async def converse_with_thinking(
    messages: Sequence[Message], options: ChatOptions, ctx: Stage, thinking: Sequence[Any]
) -> Answer:
    """``converse``, with what each of ``thinking`` asks before and after."""
    for number, each in enumerate(thinking):
        if hasattr(each, "before"):
            ask = partial(_asked, options, ctx, f"before:{number}")
            messages = await each.before(messages, ask)
    answer = await converse(messages, options, ctx)
    for each in thinking:
        again = await each.after(messages, answer.text) if hasattr(each, "after") else None
        if again is not None:
            acted = answer.acted
            if answer.shown:  # another reply comes in its place
                ctx.emit({"kind": "reset", "chunks": answer.shown})
            answer = replace(await converse(again, replace(options, tools={}), ctx), acted=acted)
    return answer


async def _asked(options: ChatOptions, ctx: Stage, name: str, request: Request) -> Any:
    of_tools = ("tool_choice", "parallel_tool_calls")
    settings = {key: value for key, value in options.settings.items() if key not in of_tools}
    request = replace(request, settings={**settings, **request.settings})
    return await think(options.model, request, ctx, name)
