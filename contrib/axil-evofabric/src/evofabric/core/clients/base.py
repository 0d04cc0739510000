"""``ChatClientBase``: what answers messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import axil_models
from evofabric.core.factory import BaseComponent
from evofabric.core.typing import (
    AssistantMessage,
    ChatUsage,
    Function,
    LLMChatResponse,
    StateBaseMessage,
    ToolCall,
    ToolMessage,
)


class ChatClientBase(BaseComponent):
    """The base of clients of your own: ``create(messages, tools=…)`` gives an answer."""

    async def create(self, messages: Sequence[Any], **kwargs: Any) -> LLMChatResponse:
        """Answer; subclasses say how."""
        raise NotImplementedError

    async def create_on_stream(self, messages: Sequence[Any], **kwargs: Any) -> AsyncIterator[Any]:
        """Answer, with what there is so far; without a way of its own, only the whole answer."""
        yield await self.create(messages, **kwargs)


class EmbedClientBase(BaseComponent):
    """The base of what makes vectors of texts."""

    def embed_query(self, text: str, **kwargs: Any) -> list[float]:
        """Give a text's vector; subclasses say how."""
        raise NotImplementedError

    def embed_documents(self, texts: list[str], **kwargs: Any) -> list[list[float]]:
        """Give the vector of each text; subclasses say how."""
        raise NotImplementedError

    async def aembed_query(self, text: str, **kwargs: Any) -> list[float]:
        """Give a text's vector."""
        return await asyncio.to_thread(self.embed_query, text, **kwargs)

    async def aembed_documents(self, texts: list[str], **kwargs: Any) -> list[list[float]]:
        """Give the vector of each text."""
        return await asyncio.to_thread(self.embed_documents, texts, **kwargs)


class RerankClientBase(BaseComponent):
    """The base of what orders texts by how well they fit."""

    async def rank(self, query: str, texts: list[str], **kwargs: Any) -> list[int]:
        """Give positions of ``texts``, the best first; subclasses say how."""
        raise NotImplementedError


def messages_of(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Give messages of a state as axil's models take them."""
    return [_message(each) for each in messages]


def _message(given: Any) -> dict[str, Any]:
    if not isinstance(given, StateBaseMessage):
        return dict(given)
    reported: dict[str, Any] = {"role": getattr(given, "role", "user"), "content": given.content}
    if isinstance(given, AssistantMessage) and given.tool_calls:
        reported["tool_calls"] = [
            {
                "id": call.id,
                "name": call.function.name,
                "arguments": json.loads(call.function.arguments or "{}"),
            }
            for call in given.tool_calls
        ]
    if isinstance(given, ToolMessage):
        reported["tool_call_id"] = given.tool_call_id
    return reported


def response_of(reply: axil_models.Reply) -> LLMChatResponse:
    """Give a reply of axil's models as a client answers."""
    calls = [
        ToolCall(
            id=call.id,
            function=Function(name=call.name, arguments=json.dumps(dict(call.arguments))),
        )
        for call in reply.tool_calls
    ]
    used = reply.usage
    return LLMChatResponse(
        content=reply.text,
        tool_calls=calls or None,
        usage=ChatUsage(
            completion_tokens=used.output_tokens,
            prompt_tokens=used.input_tokens,
            total_tokens=used.input_tokens + used.output_tokens,
        ),
    )


def specs_of(tools: Sequence[Any] | None) -> tuple[axil_models.ToolSpec, ...]:
    """Read tools as OpenAI's API has them."""
    reported = [tool.get("function", tool) for tool in tools or ()]
    return tuple(
        axil_models.ToolSpec(
            name=each["name"],
            description=each.get("description") or "",
            parameters=each.get("parameters") or {"type": "object", "properties": {}},
        )
        for each in reported
    )
