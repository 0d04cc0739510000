"""Pydantic AI: an agent with a function for its model; nothing is kept but in the environment of a
durable service, so there is no such row.
"""

from __future__ import annotations

TITLE = "Pydantic AI"
KIND = "peer"
REQUIRES = ("pydantic-ai-slim>=2",)
PACKAGE = "pydantic-ai-slim"
IMPORT = "pydantic_ai"


def agent(case):
    from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import UsageLimits

    async def reply(messages, info):
        await case.wait()
        last = messages[-1].parts[-1]
        n = last.content if last.part_kind == "tool-return" else 0
        said = ToolCallPart("add_one", {"n": n}) if n < case.size else TextPart(str(n))
        return ModelResponse(parts=[said])

    counting = Agent(FunctionModel(reply), instructions="You count with your tool." + case.message)

    @counting.tool_plain
    async def add_one(n: int) -> int:
        """Add one to a number."""
        return n + 1

    limits = UsageLimits(request_limit=case.size + 2)

    async def go():
        result = await counting.run(f"Count to {case.size}.", usage_limits=limits)
        return int(result.output)

    return go
