"""Tests of axil-mcp with others: the servers of DevAll's files, and approval of what a server
offers.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from axil import NodeFailed, RootGraph
from axil.plugin import default_registry
from axil_agent import Agent, Scripted
from axil_files import load
from axil_mcp import MCPTools, WorkflowServer
from axil_sqlite import SqliteJournal

PROGRAM = [sys.executable, "-I", "-S", str(Path(__file__).parent / "mcp_server.py")]
SERVER = [*PROGRAM, "look_up", "forget"]


def asking(model: Scripted, toolset: Any, **settings: Any) -> RootGraph:
    graph = RootGraph("g")
    graph.create_node(Agent, name="w", model=model, tools=[toolset], **settings)
    graph.edge_from_entry("w")
    graph.edge_to_exit("w", ["o"])
    return graph.build()


def test_a_server_of_a_devall_file_offers_its_tools_under_their_own_names_where_it_may_start():
    config = {"command": SERVER[0], "args": SERVER[1:]}
    from ..internals import internal  # this module is imported by itself, too

    Local = internal("devall_config").Local
    box = internal("devall_tooling").Toolbox(
        [
            Local(type="mcp_local", config=config),
            Local(type="mcp_local", prefix="p", config=config),
        ],
        default_registry(),
    )
    model = Scripted(
        [{"tool_calls": [{"name": "p_look_up", "arguments": {"word": "axil"}}]}, '{"o": 1}']
    )
    with pytest.raises(NodeFailed, match="AX921"):
        asking(model, box).invoke({"message": "?"})
    asking(model, box).invoke({"message": "?"}, allow=frozenset({"mcp"}))
    assert [tool.name for tool in model.requests[0].tools] == [
        "look_up",
        "forget",
        "p_look_up",
        "p_forget",
    ]
    assert model.requests[1].messages[-1]["content"] == "the angle between a stem and a leaf"


CHILD = """
import sys
from axil_agent import Scripted
from axil_sqlite import SqliteJournal
sys.path.insert(0, sys.argv[1])
from test_mcp import sleeping
model = Scripted([{"tool_calls": [{"name": "post__send", "arguments": {"text": "one letter"}}]}])
journal = SqliteJournal(sys.argv[2] + "/journal")
sleeping(sys.argv[2], model).invoke({"message": "?"}, journal=journal, run_id="r")
"""


def sleeping(folder: str, model: Scripted) -> RootGraph:
    """Return an agent with a server that sends letters, and never says that it has."""
    return asking(model, MCPTools(name="post", command=[*PROGRAM, "send"], cwd=folder))


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_after_a_kill_in_the_middle_of_a_call_a_person_is_asked_whether_it_was_carried_out(
    tmp_path,
):
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(tmp_path)]
    ) as child:
        until = time.monotonic() + 60
        while not (tmp_path / "sent").exists() and time.monotonic() < until:
            time.sleep(0.02)
        child.kill()
    model = Scripted(['{"o": 1}'])
    journal, graph = SqliteJournal(tmp_path / "journal"), sleeping(str(tmp_path), model)

    async def resumed(**answers: Any) -> Any:
        return await graph.resume("r", journal=journal, **answers)

    paused = asyncio.run(resumed())
    (question,) = paused.questions
    assert (question.kind, question.options) == ("uncertain", ("retry", "fail"))
    assert "post__send" in question.text
    done = asyncio.run(resumed(answers={question.id: {"output": "the letter was sent"}}))
    journal.close()
    assert (done.status, done.output) == ("done", {"o": 1})
    assert model.requests[0].messages[-1]["content"] == "the letter was sent"
    assert (tmp_path / "sent").read_text() == "one letter"


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
            return await asking(model, toolset, approve=["notes__forget"]).run(
                {"message": "?"}, channel=person
            )

    assert asyncio.run(main()).output == {"o": 1}
    assert [question.kind for question in person.asked] == ["tool_approval"]
    assert "not allowed" in model.requests[1].messages[-1]["content"]


def test_a_text_that_a_pattern_chokes_on_fails_its_own_call_and_no_other(tmp_path):
    condition = {"type": "regex", "config": {"pattern": "^(a|aa)+$"}}
    nodes = [{"id": name, "type": "passthrough", "config": {}} for name in ("A", "B")]
    edges = [{"from": "A", "to": "B", "condition": condition}]
    graph = {"id": "g", "nodes": nodes, "edges": edges, "start": ["A"], "end": ["A", "B"]}
    (tmp_path / "g.json").write_text(json.dumps({"version": "1.0.0", "graph": graph}))

    async def main() -> list[Any]:
        async with Client(WorkflowServer({"g": load(tmp_path / "g.json")}).server) as client:
            texts = ["a" * 60 + "b", "aaa", "c"]
            return await asyncio.gather(*(client.call_tool("g", {"input": text}) for text in texts))

    answers = asyncio.run(main())
    assert [answer.is_error for answer in answers] == [True, False, False]
    assert "AX633" in answers[0].content[0].text
