"""Sampling: a server's request to a model, carried out with one that the settings allow it.

The call of the model is a step of the firing: recorded, counted, and bounded by the run's budget.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from axil import Question
from axil_mcp.texts import clean

_SHOWN: Final = 2000
"""Characters of a message that a person is shown."""
YES_OR_NO: Final = SimpleNamespace(mode="form", requested_schema={"properties": {}})
"""A question without fields, as a server would ask it."""


class Sampled(NamedTuple):
    """The reply of a model."""

    text: str
    model: str
    stop_reason: str


def allowance(server: str, params: Any) -> Question:
    """Return the question whether a server may use the model for a request."""
    messages = _messages(params)
    shown = "\n".join(f"{each['role']}: {clean(each['content'], _SHOWN)}" for each in messages)
    return Question(
        text=f'The MCP server "{server}" wants to ask the model, for at most '
        f"{params.max_tokens} tokens:\n{shown}",
        kind="approval",
        data={"origin": f"mcp:{server}", "messages": messages, "max_tokens": params.max_tokens},
    )


async def sampled(model: Any, params: Any, ctx: Any, name: str) -> Sampled:
    """Return what the model replies to a server's request; what it used is the run's."""
    from axil_agent import ask

    settings: dict[str, Any] = {"max_tokens": params.max_tokens}
    if params.temperature is not None:
        settings["temperature"] = params.temperature
    if params.stop_sequences:
        settings["stop"] = list(params.stop_sequences)
    reply = await ask(model, _messages(params), ctx=ctx, settings=settings, name=name)
    stop = {"length": "maxTokens", "tools": "toolUse"}.get(reply.finish or "", "endTurn")
    return Sampled(reply.text, reply.model or "unknown", stop)


def _messages(params: Any) -> list[dict[str, Any]]:
    """Return a request's messages; of their content the texts."""
    system = [params.system_prompt] if params.system_prompt else []
    given = [
        {"role": str(each.role), "content": _text(each.content_as_list)} for each in params.messages
    ]
    return [*({"role": "system", "content": text} for text in system), *given]


def _text(blocks: Any) -> str:
    return "\n".join(
        block.text if block.type == "text" else f"[{block.type}, which is not passed on]"
        for block in blocks
    )
