"""``AgentNode``: a model that continues the conversation in the state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from axil import safe_get_attr
from evofabric.absent import Unsupported
from evofabric.core.graph.nodes import Asking
from evofabric.core.graph.streaming import StreamWriter
from evofabric.core.tool import ToolManager
from evofabric.core.typing import (
    AssistantMessage,
    LLMChatResponse,
    StateBaseMessage,
    SystemMessage,
    ToolMessage,
)


class AgentNode(Asking):
    """A model that continues ``messages``: one reply, and one round of the tools it asks for.

    The loop back to it, for the tools' results, is an edge of the graph.
    """

    def __init__(
        self,
        client: Any,
        system_prompt: str = "You are a helpful assistant.",
        inference_kwargs: Mapping[str, Any] | None = None,
        tool_manager: ToolManager | Sequence[ToolManager] | None = None,
        memory: Any = None,
        output_schema: Any = None,
        output_msg_format: str | None = None,
        input_msg_format: str | None = None,
    ) -> None:
        """``client``: has ``create(messages, tools=…)``, and perhaps ``create_on_stream``.

        Raises: Unsupported: memories, or templates of messages.
        """
        for name, value in (
            ("memory", memory),
            ("output_msg_format", output_msg_format),
            ("input_msg_format", input_msg_format),
        ):
            if value:
                raise Unsupported(
                    f"AgentNode({name}=…): axil does not do this under EvoFabric's name. "
                    "axil_agent.Agent has memories and prompt templates."
                )
        self.client, self.system_prompt = client, system_prompt
        self.inference_kwargs = dict(inference_kwargs or {})
        self.output_schema = output_schema
        if tool_manager is None:
            self.tool_managers: list[ToolManager] = []
        elif isinstance(tool_manager, ToolManager):
            self.tool_managers = [tool_manager]
        else:
            self.tool_managers = list(tool_manager)

    async def fire(self, state: Any, ctx: Any) -> Any:
        """Give the reply and the tools' results; each is asked for once, whatever is repeated."""
        held = cast("Sequence[Any]", safe_get_attr(state, "messages") or [])
        messages: list[Any] = list(held)
        if self.system_prompt:
            messages.insert(0, SystemMessage(content=self.system_prompt))
        tools = [tool for manager in self.tool_managers for tool in await manager.list_tools()]
        kwargs = dict(self.inference_kwargs)
        if tools:
            kwargs["tools"] = tools
        if self.output_schema is not None:
            kwargs["response_format"] = self.output_schema

        async def ask() -> Any:
            return (await self._asked(messages, kwargs)).model_dump()

        response = LLMChatResponse(**await ctx.step("reply", ask))
        said = AssistantMessage(
            content=response.content,
            reasoning_content=response.reasoning_content,
            tool_calls=response.tool_calls,
            usage=response.usage,
        )
        results: list[StateBaseMessage] = []
        for number, call in enumerate(response.tool_calls or ()):

            async def use(call: Any = call) -> Any:
                return await self._used(call)

            content = await ctx.step(f"tool:{number}", use)
            results.append(ToolMessage(content=content, tool_call_id=call.id))
        return {"messages": [said, *results]}

    async def _asked(self, messages: Sequence[Any], kwargs: Mapping[str, Any]) -> LLMChatResponse:
        writer = StreamWriter()
        if not getattr(self.client, "stream", False):
            response = await self.client.create(messages=messages, **kwargs)
            writer.put(response)
            return response
        response = None
        async for chunk in self.client.create_on_stream(messages=messages, **kwargs):
            writer.put(chunk)
            response = chunk
        if not isinstance(response, LLMChatResponse):
            raise TypeError(
                f"{self.client!r}: create_on_stream ended with {type(response).__name__}, expected "
                "an LLMChatResponse. Yield the whole answer last."
            )
        return response

    async def _used(self, call: Any) -> str:
        for manager in self.tool_managers:
            if manager.find_tools([call.function.name]):
                (result,) = await manager.call_tools([call])
                return _text(result.content)
        return "Tool not found"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
