"""Sampling: a server's request to a model, carried out with one that the settings allow it.

The call of the model is a step of the firing: recorded, counted, and bounded by the run's budget.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from axil import Question
from axil_mcp.texts import clean

_MOST_CHARACTERS: Final = 20_000
"""Characters of a request, all messages together: a person reads them all."""
_MOST_MESSAGES: Final = 50
_MOST_TOKENS: Final = 32_000
_MOST_STOPS: Final = 8
YES_OR_NO: Final = SimpleNamespace(mode="form", requested_schema={"properties": {}})
"""A question without fields, as a server would ask it."""


class Sampled(NamedTuple):
    """The reply of a model."""

    text: str
    model: str
    stop_reason: str


def allowance(server: str, params: Any) -> Question:
    """Return the question whether a server may use the model for a request, which is shown as it
    is sent.
    """
    messages, tokens = messages_of(params), tokens_of(params)
    shown = "\n".join(
        f"{each['role']}: " + each["content"].replace("\n", "\n  ") for each in messages
    )
    return Question(
        text=f'The MCP server "{server}" wants to ask the model, for at most '
        f"{tokens} tokens:\n{shown}",
        kind="approval",
        data={"origin": f"mcp:{server}", "messages": messages, "max_tokens": tokens},
    )


def is_too_long(params: Any) -> bool:
    """Return whether a request is longer than a person, or the model, is given."""
    messages = messages_of(params)
    size = sum(len(each["content"]) for each in messages)
    return size > _MOST_CHARACTERS or len(messages) > _MOST_MESSAGES


def tokens_of(params: Any) -> int:
    """Return how long the reply may be."""
    return max(1, min(int(params.max_tokens), _MOST_TOKENS))


async def sampled(model: Any, params: Any, ctx: Any, name: str) -> Sampled:
    """Return what the model replies to a server's request; what it used is the run's."""
    from axil_agent import ask

    settings: dict[str, Any] = {"max_tokens": tokens_of(params)}
    if params.temperature is not None:
        settings["temperature"] = params.temperature
    if params.stop_sequences:
        settings["stop"] = [clean(each, 100) for each in params.stop_sequences[:_MOST_STOPS]]
    reply = await ask(model, messages_of(params), ctx=ctx, settings=settings, name=name)
    stop = {"length": "maxTokens", "tools": "toolUse"}.get(reply.finish or "", "endTurn")
    return Sampled(reply.text, reply.model or "unknown", stop)


def messages_of(params: Any) -> list[dict[str, Any]]:
    """Return a request's messages; of their content the texts, without what hides in them."""
    system = (
        [clean(params.system_prompt, len(params.system_prompt))] if params.system_prompt else []
    )
    given = [
        {"role": str(each.role), "content": _text(each.content_as_list)} for each in params.messages
    ]
    return [*({"role": "system", "content": text} for text in system), *given]


def _text(blocks: Any) -> str:
    text = "\n".join(
        block.text if block.type == "text" else f"[{block.type}, which is not passed on]"
        for block in blocks
    )
    return clean(text, len(text))
