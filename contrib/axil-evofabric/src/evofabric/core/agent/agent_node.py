"""``AgentNode``: a model that continues the conversation in the state."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel, Field, PrivateAttr, field_validator, model_validator

from axil import safe_get_attr
from evofabric.core.factory import safe_set_attr
from evofabric.core.graph import AsyncStreamNode, StreamWriter
from evofabric.core.graph.streaming import current_run
from evofabric.core.typing import (
    AssistantMessage,
    LLMChatResponse,
    SystemMessage,
    ToolMessage,
    UserMessage,
)


class AgentNode(AsyncStreamNode):
    """A model that continues ``messages``: one reply, and one round of the tools it asks for.

    The loop back to it, for the tools' results, is an edge of the graph.
    """

    client: Any
    """Has ``create_on_stream(messages, tools=…)``, or ``create``."""
    system_prompt: str = "You are a helpful assistant."
    inference_kwargs: dict[str, Any] = Field(default_factory=dict[str, Any])
    tool_manager: list[Any] = Field(default_factory=list[Any])
    """A manager of tools, or several."""
    memory: list[Any] = Field(default_factory=list[Any])
    """A memory, or several: they are asked in order, and receive the answer."""
    output_schema: type[BaseModel] | None = None
    output_msg_format: str | None = None
    """A template of the answer's text, of the fields of ``output_schema``."""
    input_msg_format: str | None = None
    """A template of the only message that is sent, of ``state``."""

    _stream_writer: Any = PrivateAttr(default=None)

    @field_validator("tool_manager", "memory", mode="before")
    @classmethod
    def _several(cls, given: Any) -> Any:
        if given is None:
            return []
        return list(cast("Any", given)) if isinstance(given, (list, tuple)) else [given]

    @model_validator(mode="after")
    def _needs_schema(self) -> AgentNode:
        if self.output_schema is None and self.output_msg_format is not None:
            raise ValueError("output_msg_format needs an output_schema, whose fields it shows.")
        return self

    async def __call__(self, state: Any, stream_writer: StreamWriter) -> Any:
        """Give the reply and the tools' results; each is asked for once, whatever is repeated."""
        self._stream_writer = stream_writer
        messages = list(cast("Sequence[Any]", safe_get_attr(state, "messages") or []))
        safe_set_attr(state, "messages", await self._update_model_context(messages))
        asked = self._format_input_messages(state)
        tools = [tool for manager in self.tool_manager for tool in await manager.list_tools()]
        response = self._format_output_schema(
            await self._call_llm(asked, tools, self.output_schema, **self.inference_kwargs)
        )
        said = AssistantMessage(
            content=response.content,
            reasoning_content=response.reasoning_content,
            tool_calls=response.tool_calls,
            usage=response.usage,
        )
        written = [said, *await self._execute_tools(response)]
        await self._update_model_memory([*asked, *written])
        return {"messages": written}

    def _format_input_messages(self, state: Any) -> list[Any]:
        if self.input_msg_format:
            text = _rendered(self.input_msg_format, state=state)
            messages: list[Any] = [UserMessage(content=text)]
        else:
            messages = list(cast("Sequence[Any]", safe_get_attr(state, "messages") or []))
        return [SystemMessage(content=self.system_prompt), *messages]

    async def _call_llm(
        self, messages: list[Any], tools: list[Any], output_schema: Any, **inference_kwargs: Any
    ) -> LLMChatResponse:
        kwargs = {**inference_kwargs, "tools": tools, "response_format": output_schema}

        async def ask() -> Any:
            return (await self._asked(messages, kwargs)).model_dump()

        return LLMChatResponse(**await _once("reply", ask))

    async def _asked(self, messages: Sequence[Any], kwargs: dict[str, Any]) -> LLMChatResponse:
        response = None
        async for chunk in self.client.create_on_stream(messages, **kwargs):
            self._stream_writer.put(chunk)
            response = chunk
            if isinstance(chunk, LLMChatResponse):
                break
        if not isinstance(response, LLMChatResponse):
            raise TypeError(
                f"{self.client!r}: create_on_stream ended with {type(response).__name__}, expected "
                "an LLMChatResponse. Yield the whole answer last."
            )
        return response

    def _format_output_schema(self, chat_response: LLMChatResponse) -> LLMChatResponse:
        if self.output_msg_format:
            fields = json.loads(chat_response.content)
            chat_response.content = _rendered(self.output_msg_format, **fields)
        return chat_response

    async def _execute_tools(self, chat_response: LLMChatResponse) -> list[Any]:
        results: list[Any] = []
        for number, call in enumerate(chat_response.tool_calls or ()):

            async def use(call: Any = call) -> Any:
                return await self._used(call)

            content = await _once(f"tool:{number}", use)
            results.append(ToolMessage(content=content, tool_call_id=call.id))
        return results

    async def _used(self, call: Any) -> Any:
        for manager in reversed(self.tool_manager):
            names = [each["function"]["name"] for each in await manager.list_tools()]
            if call.function.name in names:
                (result,) = await manager.call_tools([call])
                return _plain(result.content)
        return "Tool not found"

    async def _update_model_context(self, messages: list[Any]) -> list[Any]:
        for memory in self.memory:
            messages = await memory.retrieval_update(messages)
        return messages

    async def _update_model_memory(self, messages: list[Any]) -> None:
        for memory in self.memory:
            await memory.add_messages(messages)


async def _once(name: str, work: Any) -> Any:
    """Do something once in a run, whatever of it is repeated."""
    ctx = current_run()
    return await (work() if ctx is None else ctx.step(name, work))


def _rendered(template: str, **values: Any) -> str:
    return SandboxedEnvironment().from_string(template).render(**values)


def _plain(value: Any) -> Any:
    """Give a result as data: what JSON has no form for as text."""
    return json.loads(json.dumps(value, ensure_ascii=False, default=str))
