"""Agents whose tools are elsewhere, and a process in which one of them runs until it is killed:
``python -m tests.faults.elsewhere KIND FOLDER URL WAY``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from axil import MISSING, Question, RootGraph
from axil.driver import StepDone
from axil_agent import Agent, Scripted
from axil_mcp import MCPTools
from axil_remote import OpenAPITools
from axil_sqlite import SqliteJournal

from ..internals import internal

NOTES = [
    sys.executable,
    "-I",
    "-S",
    str(Path(__file__).parents[1] / "integration" / "mcp_server.py"),
]
"""An MCP server; its arguments name the tools that it has."""
ORDER = {"body": {"item": "chair"}}
CALLS = {
    "openapi": [
        {"name": "find", "arguments": {}},
        {"name": "order", "arguments": ORDER},
        {"name": "set", "arguments": ORDER},
    ],
    "order": [{"name": "order", "arguments": ORDER}],
    "mcp": [{"name": "post__send", "arguments": {"text": "one letter"}}],
}
"""By kind: the calls of the model's only reply."""
SHOP = {
    "openapi": "3.1.0",
    "info": {"title": "shop", "version": "1"},
    "paths": {
        "/orders": {
            method: {
                "operationId": name,
                "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
            }
            for method, name in (("post", "order"), ("put", "set"))
        }
        | {"get": {"operationId": "find"}}
    },
}


def tools_of(
    kind: str, folder: Path, url: str, offered: Sequence[str] = ("send",), **settings: Any
) -> Any:
    if kind == "mcp":
        return MCPTools(name="post", command=[*NOTES, *offered], cwd=str(folder), **settings)
    return OpenAPITools(SHOP, url=url)


def agent(model: Scripted, tools: Any, **settings: Any) -> RootGraph:
    graph = RootGraph("g")
    graph.create_node(Agent, name="w", model=model, tools=[tools], **settings)
    graph.edge_from_entry("w")
    graph.edge_to_exit("w", ["o"])
    return graph.build()


def gone() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed(*, behind: bool) -> None:
    """Have the process killed when the result of a tool is about to be recorded, or was."""
    services: Any = internal("RunServices")
    keep = services.keep

    async def kept(self: Any, fact: Any) -> None:
        is_it = isinstance(fact, StepDone) and fact.name.startswith("tool:")
        if is_it and not behind:
            gone()
        await keep(self, fact)
        if is_it:
            gone()

    services.keep = kept


class Person:
    """A person who is asked, and the process is killed before there is an answer."""

    async def ask(self, question: Question) -> Any:
        if question.kind == "tool_approval":
            gone()
        return MISSING


def main(kind: str, folder: str, url: str, way: str) -> None:
    if way in ("recorded", "unrecorded"):
        killed(behind=way == "recorded")
    model = Scripted([{"tool_calls": CALLS[kind]}])
    asked = {"approve": ["*"]} if way == "asked" else {}
    graph = agent(model, tools_of(kind, Path(folder), url), **asked)
    channel = {"channel": Person()} if way == "asked" else {}
    journal = SqliteJournal(Path(folder) / "journal")
    asyncio.run(graph.run({"message": "?"}, journal=journal, run_id="r", **channel))


if __name__ == "__main__":
    main(*sys.argv[1:])
