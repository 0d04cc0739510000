"""OpenAI's Agents SDK: an agent with a model of one's own, without tracing; kept in its SQLite
session, which holds what was said.
"""

from __future__ import annotations

import itertools
import json

TITLE = "OpenAI Agents SDK"
KIND = "peer"
REQUIRES = ("openai-agents>=0.20",)
PACKAGE = "openai-agents"
IMPORT = "agents"


def asking(case):
    """Return an agent whose model wants its tool until that has counted far enough."""
    from agents import Agent, Model, ModelResponse, Usage, function_tool
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    class Caller(Model):
        async def get_response(self, system_instructions, input, *args, **kwargs):
            await case.wait()
            last = input[-1] if isinstance(input, list) else {}
            n = int(last["output"]) if last.get("type") == "function_call_output" else 0
            if n < case.size:
                said = ResponseFunctionToolCall(
                    type="function_call",
                    call_id=f"c{n}",
                    name="add_one",
                    arguments=json.dumps({"n": n}),
                )
            else:
                text = ResponseOutputText(type="output_text", text=str(n), annotations=[])
                said = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
            return ModelResponse(output=[said], usage=Usage(), response_id=None)

        def stream_response(self, *args, **kwargs):
            raise NotImplementedError

    @function_tool
    async def add_one(n: int) -> int:
        """Add one to a number."""
        return n + 1

    return Agent(
        name="count",
        instructions="You count with your tool." + case.message,
        model=Caller(),
        tools=[add_one],
    )


async def asked(case, counting, **more):
    """Return how far it has counted."""
    from agents import RunConfig, Runner

    result = await Runner.run(
        counting,
        f"Count to {case.size}.",
        max_turns=case.size + 2,
        run_config=RunConfig(tracing_disabled=True),
        **more,
    )
    return int(result.final_output)


def agent(case):
    counting = asking(case)

    async def go():
        return await asked(case, counting)

    return go


def kept_agent(case):
    from agents import SQLiteSession

    counting, numbers = asking(case), itertools.count()

    async def go():
        session = SQLiteSession(f"r{next(numbers)}", case.folder / "sessions.db")
        try:
            return await asked(case, counting, session=session)
        finally:
            session.close()

    return go
