"""Agents, people and tools by EvoFabric's names."""

from __future__ import annotations

import asyncio
import builtins
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, ValidationError

import axil_models
from axil import RunPaused
from axil_journals import MemoryJournal
from evofabric.core.agent import AgentNode, UserNode
from evofabric.core.clients import ChatClientBase, OpenAIChatClient
from evofabric.core.clients.base import messages_of, response_of, specs_of
from evofabric.core.graph import GraphBuilder
from evofabric.core.tool import ToolManager
from evofabric.core.typing import (
    AssistantMessage,
    ChatStreamChunk,
    Function,
    LLMChatResponse,
    StateMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    cast_state_message,
)


class Talk(BaseModel):
    messages: Annotated[list[StateMessage], "append_messages"]


def weather(city: str) -> str:
    """Give the weather of a city."""
    return f"{city}: fair"


def call(name: str, arguments: str, known: str = "1") -> ToolCall:
    return ToolCall(id=known, function=Function(name=name, arguments=arguments))


class Script(ChatClientBase):
    """Gives one answer after the other."""

    answers: list[LLMChatResponse] = Field(default_factory=list)
    asked: list[Any] = Field(default_factory=list)

    async def create(self, messages: Any, **kwargs: Any) -> LLMChatResponse:
        self.asked.append((list(messages), kwargs))
        return self.answers.pop(0)


def route(state: Talk) -> str:
    last = state.messages[-1]
    if isinstance(last, ToolMessage):
        return "agent"
    return "user" if "::TO::user:" in last.content else "end"


def talking(client: Any) -> GraphBuilder:
    made = GraphBuilder(state_schema=Talk)
    made.add_node(
        "agent",
        AgentNode(client=client, system_prompt="Help.", tool_manager=ToolManager(tools=[weather])),
    )
    made.add_node("user", UserNode(prompt_message="You: "))
    made.set_entry_point("agent")
    made.add_condition_edge("agent", router=route, possible_targets={"user", "end", "agent"})
    made.add_edge("user", "agent")
    return made


ANSWERS = (
    LLMChatResponse(content="Which one? ::TO::user:"),
    LLMChatResponse(content="", tool_calls=[call("weather", '{"city": "Bern"}')]),
    LLMChatResponse(content="It is fair."),
)


def test_an_agent_asks_a_person_uses_a_tool_and_ends(monkeypatch):
    monkeypatch.setattr(builtins, "input", lambda prompt="": "Bern")
    client = Script(answers=list(ANSWERS))
    state = asyncio.run(
        talking(client).build().run({"messages": [UserMessage(content="The weather?")]})
    )
    assert [(type(m), m.content, m.node_name) for m in state.messages] == [
        (UserMessage, "The weather?", None),
        (AssistantMessage, "Which one? ::TO::user:", "agent"),
        (UserMessage, "Bern", "user"),
        (AssistantMessage, "", "agent"),
        (ToolMessage, "Bern: fair", "agent"),
        (AssistantMessage, "It is fair.", "agent"),
    ]
    messages, kwargs = client.asked[0]
    assert isinstance(messages[0], SystemMessage)
    assert kwargs["tools"][0]["function"]["name"] == "weather"


def test_without_a_person_at_hand_the_run_pauses():
    graph = talking(Script(answers=list(ANSWERS))).build().axil
    with pytest.raises(RunPaused, match="You: "):
        graph.invoke({"messages": [UserMessage(content="The weather?")]}, journal=MemoryJournal())


def test_an_answer_on_a_stream_is_the_last_that_comes():
    class Stream(Script):
        async def create_on_stream(self, messages: Any, **kwargs: Any) -> Any:
            yield ChatStreamChunk(content="It ")
            yield LLMChatResponse(content="It is fair.")

    state = asyncio.run(talking(Stream()).build().run({"messages": [UserMessage(content="?")]}))
    assert state.messages[-1].content == "It is fair."


def test_tools_run_side_by_side_and_a_failure_is_a_result():
    def broken() -> str:
        """Fail."""
        raise LookupError("gone")

    async def later(n: int) -> int:
        """Add one."""
        return n + 1

    manager = ToolManager(tools=[weather, broken])
    manager.add_callable_tools([later])
    calls = [
        call("later", '{"n": 1}', "a"),
        call("broken", "", "b"),
        call("absent", "{}", "c"),
        call("weather", "no JSON", "d"),
    ]
    results = asyncio.run(manager.call_tools(calls))
    assert [(r.tool_call_id, r.success) for r in results] == [
        ("a", True),
        ("b", False),
        ("c", False),
        ("d", False),
    ]
    assert [r.content for r in results[:3]] == [2, "gone", "Tool not found: absent"]
    manager.delete_tools(["broken"])
    assert [tool["function"]["name"] for tool in manager.find_tools(["weather"])] == ["weather"]
    with pytest.raises(KeyError, match="broken"):
        manager.find_tools(["broken"])


def test_messages_and_replies_are_translated_both_ways():
    asked = messages_of(
        [
            UserMessage(content="hi"),
            AssistantMessage(content="", tool_calls=[call("f", '{"a": 1}')]),
            ToolMessage(content="2", tool_call_id="1"),
        ]
    )
    assert asked == [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "1", "name": "f", "arguments": {"a": 1}}],
        },
        {"role": "tool", "content": "2", "tool_call_id": "1"},
    ]
    reply = axil_models.Reply(
        tool_calls=(axil_models.ToolCall(id="1", name="f", arguments={"a": 1}),),
        usage=axil_models.Usage(input_tokens=2, output_tokens=3),
    )
    response = response_of(reply)
    assert response.tool_calls == [call("f", '{"a": 1}')]
    assert response.usage is not None
    assert response.usage.total_tokens == 5
    assert specs_of([{"type": "function", "function": {"name": "f"}}])[0].name == "f"


class Core:
    """A model of axil that shows a part of its answer."""

    def __init__(self) -> None:
        self.requests: list[axil_models.Request] = []

    async def reply(self, request: axil_models.Request, emit: Any, /) -> axil_models.Reply:
        self.requests.append(request)
        emit({"kind": "text", "text": "he"})
        if request.settings.get("fail"):
            raise LookupError("no server")
        return axil_models.Reply(text="hello")


def test_the_client_of_openai_streams_and_hands_settings_on():
    client, core = OpenAIChatClient(model="m", inference_kwargs={"temperature": 0}), Core()
    client._core = core

    async def came(**kwargs: Any) -> list[Any]:
        return [
            each async for each in client.create_on_stream([UserMessage(content="?")], **kwargs)
        ]

    chunks = asyncio.run(came(response_format=Talk))
    assert [chunk.content for chunk in chunks] == ["he", "hello"]
    assert core.requests[0].settings == {"temperature": 0}
    assert core.requests[0].output is not None
    assert core.requests[0].output.name == "Talk"
    assert asyncio.run(client.create([UserMessage(content="?")])).content == "hello"
    with pytest.raises(LookupError, match="no server"):
        asyncio.run(came(fail=True))


def test_a_client_keeps_its_key_to_itself():
    client = OpenAIChatClient(model="m", client_kwargs={"api_key": "secret-key"})
    assert "secret-key" not in repr(client)
    assert "secret-key" not in repr(client.core)
    with pytest.raises(ValidationError, match=r"found http_client_kwargs \['verify'\]"):
        OpenAIChatClient(model="m", http_client_kwargs={"verify": False})


def test_a_mapping_becomes_the_message_of_its_role():
    message = cast_state_message({"role": "user", "content": "hi"})
    assert (type(message), message.content) == (UserMessage, "hi")
    assert message.msg_id
    with pytest.raises(ValidationError):
        cast_state_message({"role": "tool", "content": "no id"})
