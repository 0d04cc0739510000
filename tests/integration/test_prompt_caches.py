"""Prompts that a provider's cache knows from the front: counted by a service that reports the
tokens which a request shares with earlier ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from axil import RootGraph
from axil_agent import Agent, HistoryMemory, Scripted, SingleAgent
from axil_anthropic import AnthropicModel
from axil_gemini import GeminiModel
from axil_models import ContextBlock
from axil_openai import OpenAIModel, OpenAIResponsesModel
from axil_testing.stub import Act, Call, PromptCache, Stub, front

ADAPTERS = {
    "chat": OpenAIModel,
    "responses": OpenAIResponsesModel,
    "messages": AnthropicModel,
    "generate": GeminiModel,
}
CALLS = 6


def known(counted: Sequence[tuple[int, int]]) -> float:
    """Return how much of what a loop had sent was at the front of its next request, and cached."""
    return sum(cached for _, cached in counted[1:]) / sum(tokens for tokens, _ in counted[:-1])


def look_up(word: str) -> str:
    """Look up a word."""
    return f"{word}: the angle between a leaf and a stem"


@pytest.mark.parametrize("dialect", ADAPTERS)
def test_a_loop_of_tool_calls_sends_what_it_sent_before_at_the_front(dialect: str):
    with Stub(dialect, caches=True) as server:
        calls = [Act(calls=(Call(name="look_up", arguments={"word": f"w{i}"}),)) for i in range(CALLS)]
        server.say(*calls, '{"answer": "an angle"}')
        model = ADAPTERS[dialect]("m", api_key=server.key, base_url=server.url)
        agent = SingleAgent(
            model,
            instructions="You look every word up, and answer in one sentence. " * 4,
            tools=[look_up],
            output_keys=["answer"],
        )
        assert agent.invoke({"question": "What is an axil?"}) == {"answer": "an angle"}
        assert len(server.counted) == CALLS + 1
        assert known(server.counted) >= 0.9
