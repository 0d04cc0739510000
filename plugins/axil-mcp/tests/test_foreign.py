"""Servers that others wrote, in another language and of an older protocol: ``make foreign``
installs them and says where they are.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from axil_mcp import MCPContext, MCPTools, ToolFailed
from axil_models import ContextQuery

from .kit import Watch, fired

FOLDER = os.environ.get("AXIL_MCP_SERVERS", "")
pytestmark = pytest.mark.skipif(
    not FOLDER, reason="AXIL_MCP_SERVERS does not say where servers of others are installed"
)


def using(
    server: str, body: Any, *arguments: str, env: dict[str, str] | None = None, **options: Any
) -> Any:
    """Return what ``body(call, ctx)`` gives; ``call(tool, **arguments)`` calls a tool of the
    server.
    """
    command = [str(Path(FOLDER) / f"mcp-server-{server}"), *arguments]

    async def within(ctx: Any) -> Any:
        async with MCPTools(name="s", command=command, env=env or {}) as toolset:
            tools = {tool.name.removeprefix("s__"): tool for tool in await toolset.tools(ctx)}
            return await body(lambda name, **given: tools[name](given, ctx))

    return fired(within, **options)


def test_everything(tidy):
    class Person:
        asked: tuple[Any, ...] = ()

        async def ask(self, question: Any) -> Any:
            self.asked += (question,)
            return {"name": "Ada"}

    async def body(call: Any) -> Any:
        several = await asyncio.gather(*(call("get-sum", a=n, b=n) for n in range(10)))
        long = await call("trigger-long-running-operation", duration=0.2, steps=2)
        picture = await call("get-tiny-image")
        weather = await call("get-structured-content", location="New York")
        elicited = await call("trigger-elicitation-request")
        with pytest.raises(ToolFailed):
            await call("get-sum", a="one", b=2)
        return several, long, picture, weather, elicited

    person, watch = Person(), Watch()
    several, long, picture, weather, elicited = using(
        "everything", body, "stdio", channel=person, observers=[watch]
    )
    assert several == [f"The sum of {n} and {n} is {2 * n}." for n in range(10)]
    assert "completed" in long
    assert [chunk["progress"] for chunk in watch.of("mcp_progress")] == [1.0, 2.0]
    assert "[image: image/png, " in picture
    assert set(json.loads(weather)) == {"temperature", "conditions", "humidity"}
    assert [question.kind for question in person.asked] == ["form"]
    assert "Ada" in elicited


def test_the_resources_of_everything():
    async def body(ctx: Any) -> Any:
        async with MCPContext(
            name="s",
            command=[str(Path(FOLDER) / "mcp-server-everything"), "stdio"],
            resources=["*.md"],
        ) as context:
            blocks = await context.get_blocks(ContextQuery("extension points"), 2, ctx)
            return [[block.uri, block.metadata["origin"]] for block in blocks]

    blocks = fired(body)
    assert len(blocks) == 2
    assert all(uri.endswith(".md") and origin == "mcp:s" for uri, origin in blocks)


def test_filesystem(tmp_path, tidy):
    (tmp_path / "a.txt").write_text("hello")

    async def body(call: Any) -> Any:
        await call("write_file", path=str(tmp_path / "b.txt"), content="written")
        with pytest.raises(ToolFailed, match=r"(?i)denied"):
            await call("read_text_file", path="/etc/hostname")
        return await call("read_text_file", path=str(tmp_path / "a.txt"))

    assert using("filesystem", body, str(tmp_path)) == "hello"
    assert (tmp_path / "b.txt").read_text() == "written"


def test_memory(tmp_path, tidy):
    entity = {"name": "axil", "entityType": "angle", "observations": ["between stem and leaf"]}

    async def remember(call: Any) -> Any:
        return await call("create_entities", entities=[entity])

    async def recall(call: Any) -> Any:
        return await call("search_nodes", query="axil")

    env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}
    using("memory", remember, env=env)
    assert json.loads(using("memory", recall, env=env))["entities"] == [entity]
