"""What spans axil-mcp and others: the servers of DevAll's files, and approval of what a server offers."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from axil import RootGraph
from axil.errors import NodeFailed
from axil.registry import default
from axil_agent import Agent, Scripted
from axil_devall.config import Local
from axil_devall.tooling import Toolbox
from axil_mcp import MCPTools

SERVER = [sys.executable, str(Path(__file__).parents[2] / "examples/parts/notes_server.py")]


def asking(model: Scripted, toolset: Any, **settings: Any) -> RootGraph:
    graph = RootGraph("g")
    graph.create_node(Agent, name="w", model=model, tools=[toolset], **settings)
    graph.edge_from_entry("w")
    graph.edge_to_exit("w", ["o"])
    return graph.build()


def test_a_server_of_a_devall_file_offers_its_tools_under_their_own_names_where_it_may_start():
    config = {"command": SERVER[0], "args": SERVER[1:]}
    box = Toolbox([Local(type="mcp_local", config=config), Local(type="mcp_local", prefix="p", config=config)], default())
    model = Scripted([{"tool_calls": [{"name": "p_look_up", "arguments": {"word": "axil"}}]}, '{"o": 1}'])
    with pytest.raises(NodeFailed, match="AX921"):
        asking(model, box).invoke({"message": "?"})
    asking(model, box).invoke({"message": "?"}, allow=frozenset({"mcp"}))
    assert [tool.name for tool in model.requests[0].tools] == ["look_up", "forget", "p_look_up", "p_forget"]
    assert model.requests[1].messages[-1]["content"] == "the angle between a stem and a leaf"


def test_a_person_is_asked_before_a_servers_tool_is_called():
    class Person:
        asked: tuple[Any, ...] = ()

        async def ask(self, question: Any) -> Any:
            self.asked += (question,)
            return "deny"

    call = {"name": "notes__forget", "arguments": {"word": "axil"}}
    model = Scripted([{"tool_calls": [call]}, '{"o": 1}'])
    person = Person()

    async def main() -> Any:
        async with MCPTools(name="notes", command=SERVER) as toolset:
            return await asking(model, toolset, approve=["notes__forget"]).run({"message": "?"}, channel=person)

    assert asyncio.run(main()).output == {"o": 1}
    assert [question.kind for question in person.asked] == ["tool_approval"]
    assert "not allowed" in model.requests[1].messages[-1]["content"]
