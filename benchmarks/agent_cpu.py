"""The processor's time of an agent's run, against OpenAI's SDK by hand.

A run is two model calls and one call of a tool between them; 100 are under way at once. The service
is the kit's stub, in a process of its own. Both sides stream, in this process, in rounds that take
turns; what counts is the median of the ratios of two rounds that followed each other, so what else
the machine does meets both. Only this process is measured, with connections that are open already
and nothing left for the collector.

The tool is a coroutine function on both sides; with `--threads` a plain function, which both call
in a thread, as it may block.

    python benchmarks/agent_cpu.py [--threads]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

AT_ONCE = 100
_SERVER = """
import sys
from benchmarks.agent_cpu import service

with service() as server:
    print(server.url, server.key, flush=True)
    sys.stdin.read()
"""


def service() -> Any:
    """Return the service: it asks for the tool, and answers when it has the result."""
    from axil_testing.stub import Act, Call, Stub

    ask = Act(calls=(Call(name="add", arguments={"a": 1, "b": 2}),))

    class Service(Stub):
        async def _answer(self, act: Any, asked: Any, line: Any) -> Any:
            is_done = any(message["role"] == "tool" for message in asked.body["messages"])
            return await super()._answer(Act(text="Three.") if is_done else ask, asked, line)

    return Service("chat")


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def add_plainly(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


add_plainly.__name__ = "add"  # as the service asks for it


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


def by_hand(
    url: str, key: str, *, threads: bool = False
) -> tuple[Callable[[], Awaitable[Any]], Callable[[], Awaitable[Any]]]:
    """Return a run with the SDK alone, and what closes the client."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key=key, max_retries=0, timeout=60)
    function = {"name": "add", "description": "Add two numbers.", "parameters": SCHEMA}
    tools: Any = [{"type": "function", "function": function}]

    async def ask(messages: list[Any]) -> tuple[str, dict[int, dict[str, str]]]:
        text, calls = "", dict[int, dict[str, str]]()
        stream = await client.chat.completions.create(
            model="m", messages=messages, tools=tools, stream=True,
            stream_options={"include_usage": True},
        )  # fmt: skip
        async for chunk in stream:
            for choice in chunk.choices[:1]:
                text += choice.delta.content or ""
                for piece in choice.delta.tool_calls or ():
                    call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                    call["id"] += piece.id or ""
                    if piece.function is not None:
                        call["name"] += piece.function.name or ""
                        call["arguments"] += piece.function.arguments or ""
        return text, calls

    async def run() -> str:
        messages: list[Any] = [
            {"role": "system", "content": "You add."},
            {"role": "user", "content": "What is 1 and 2?"},
        ]
        while True:
            text, calls = await ask(messages)
            if not calls:
                return text
            asked = [
                {"id": c["id"], "type": "function",
                 "function": {"name": c["name"], "arguments": c["arguments"]}}
                for c in calls.values()
            ]  # fmt: skip
            messages.append({"role": "assistant", "content": text or None, "tool_calls": asked})
            for call in calls.values():
                given = json.loads(call["arguments"])
                result = await (
                    asyncio.to_thread(add_plainly, **given) if threads else add(**given)
                )
                messages.append(
                    {"role": "tool", "tool_call_id": call["id"], "content": str(result)}
                )

    return run, client.close


def by_axil(
    url: str, key: str, *, threads: bool = False
) -> tuple[Callable[[], Awaitable[Any]], Callable[[], Awaitable[Any]]]:
    """Return a run of an agent, and what closes it."""
    from axil_agent import SingleAgent
    from axil_openai import OpenAIModel

    model = OpenAIModel("m", key, url, retry={"max_tries": 1}, connect_timeout_seconds=60)
    agent = SingleAgent(model, "You add.", tools=[add_plainly if threads else add])

    async def run() -> str:
        return str((await agent.run({"question": "What is 1 and 2?"}))["message"])

    return run, agent.close


async def compared(url: str, key: str, pairs: int, *, threads: bool) -> list[tuple[float, float]]:
    """Return the milliseconds of the processor that a run takes, by hand and by axil, of each pair
    of rounds; the two take turns at going first. A pair before them is not counted.
    """
    sides = [make(url, key, threads=threads) for make in (by_hand, by_axil)]
    found: list[tuple[float, float]] = []
    for number in range(pairs + 1):
        taken = [0.0, 0.0]
        for at in (0, 1) if number % 2 else (1, 0):
            run, _ = sides[at]
            gc.collect()
            before = time.process_time()
            answers = await asyncio.gather(*(run() for _ in range(AT_ONCE)))
            taken[at] = (time.process_time() - before) / AT_ONCE * 1e3
            assert set(answers) == {"Three."}
        found.append((taken[0], taken[1]))
    for _, close in sides:
        await close()
    return found[1:]


def main() -> int:
    parser = argparse.ArgumentParser(description="An agent's run against the SDK by hand.")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--threads", action="store_true")
    given = parser.parse_args()
    command, root = [sys.executable, "-c", _SERVER], Path(__file__).parents[1]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, cwd=root) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        url, key = server.stdout.readline().split()
        found = asyncio.run(compared(url, key, given.pairs, threads=given.threads))
        server.stdin.close()
    hand, ours = (statistics.median(side) for side in zip(*found, strict=True))
    low, ratio, high = statistics.quantiles([b / a for a, b in found], n=4)
    print(
        f"by hand {hand:.2f} ms, axil {ours:.2f} ms of the processor a run: {ratio:.2f}×, "
        f"the middle half of {given.pairs} pairs {low:.2f} to {high:.2f}×"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
