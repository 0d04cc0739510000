"""MCP at both ends of ``axil serve``: its workflows as tools of callers with rights, and servers
that its runs use with the callers' own tokens.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from axil import Context, Question, RootGraph, Workflow
from axil.plugin import CallerSecrets
from axil_agent import Agent, Scripted
from axil_journals import MemoryJournal
from axil_mcp import McpProtocol, MCPTools
from axil_serve import Access, Audit, Caller, RunService, app_of, token_digest

httpx2 = pytest.importorskip("httpx2")
mcp = pytest.importorskip("mcp")
uvicorn = pytest.importorskip("uvicorn")

WHO: Mapping[str, Caller] = {
    "ada": Caller(name="ada"),
    "ben": Caller(name="ben"),
    "runner": Caller(name="runner", rights=frozenset(["look", "run"])),
    "boss": Caller(name="boss", rights=frozenset(["look", "answer"]), sees_all=True),
    "blind": Caller(name="blind", rights=frozenset(["run"])),
}


def token(name: str) -> str:
    return f"{name}-" * 8


def sending() -> Workflow:
    """Return a letter that a person has to approve."""
    graph = RootGraph("sending")

    async def send(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        may = await ctx.ask(Question(text=inputs["letter"], kind="approval"))
        return {"sent": bool(may)}

    graph.create_node(send, name="send")
    graph.edge_from_entry("send", {"letter": "to send"})
    graph.edge_to_exit("send", {"sent": ""})
    return graph.build()


@asynccontextmanager
async def listening(app: Any) -> AsyncIterator[str]:
    """Serve an application at a port of this machine; give its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        settings = uvicorn.Config(app, log_config=None, lifespan="on")
        server = uvicorn.Server(settings)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            await serving


@asynccontextmanager
async def client_of(url: str, name: str, **ways: Any) -> AsyncIterator[Any]:
    from mcp.client.streamable_http import streamable_http_client

    headers = {"authorization": f"Bearer {token(name)}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=30) as http,
        mcp.Client(streamable_http_client(f"{url}/mcp", http_client=http), **ways) as client,
    ):
        yield client


@asynccontextmanager
async def served(
    folder: Path, journal: MemoryJournal | None = None, flow: Workflow | None = None
) -> AsyncIterator[tuple[str, RunService]]:
    service = RunService(
        journal or MemoryJournal(),
        {"sending": flow or sending()},
        poll_seconds=0.01,
        audit=Audit(folder / "audit.jsonl"),
    )
    access = Access((token_digest(token(n), n), caller) for n, caller in WHO.items())
    async with listening(app_of(service, access, protocols={"mcp": McpProtocol()})) as url:
        yield url, service


def says(result: Any) -> str:
    return "".join(each.text for each in result.content)


def test_a_run_over_mcp_is_its_callers_and_is_answered_by_who_may(tmp_path):
    async def talked() -> None:
        async with served(tmp_path) as (url, service):
            async with client_of(url, "runner") as client:
                names = [each.name for each in (await client.list_tools()).tools]
                assert names == ["sending", "answer_run"]
                asked = await client.call_tool("sending", {"letter": "Dear Una"})
                assert asked.is_error
                assert "Dear Una" in says(asked)
                run_id = asked.meta["axil/run_id"]
                answer = {"run_id": run_id, "answer": "yes"}
                refused = await client.call_tool("answer_run", answer)
                assert "AX962" in says(refused)
            async with client_of(url, "ben") as client:  # it is none of his
                assert "AX965" in says(await client.call_tool("answer_run", answer))
            async with client_of(url, "boss") as client:
                assert "AX962" in says(await client.call_tool("sending", {"letter": "x"}))
                done = await client.call_tool("answer_run", answer)
                assert done.structured_content == {"output": {"sent": True}, "run_id": run_id}
                assert "AX937" in says(await client.call_tool("answer_run", answer))
            async with client_of(url, "blind") as client:
                with pytest.raises(mcp.MCPError, match="AX962"):
                    await client.list_tools()
            assert service.look(WHO["runner"], run_id)["status"] == "done"
            acts = service.audit.read()[0] if service.audit is not None else []
            assert [(each["who"], each["action"]) for each in acts][::-1] == [
                ("runner", "start"),
                ("runner", "refused"),
                ("boss", "refused"),
                ("boss", "answer"),
            ]

    asyncio.run(asyncio.wait_for(talked(), 60))


def test_an_answer_to_a_run_whose_graph_is_not_served_here_is_refused_at_once(tmp_path):
    journal, other = MemoryJournal(), RootGraph("sending")
    other.create_node(lambda inputs: inputs, name="pass")
    other.edge_from_entry("pass", {"letter": ""})
    other.edge_to_exit("pass", {"letter": ""})

    async def talked() -> str:
        async with served(tmp_path, journal) as (url, _), client_of(url, "runner") as client:
            asked = await client.call_tool("sending", {"letter": "Dear Una"})
        answer = {"run_id": asked.meta["axil/run_id"], "answer": "yes"}
        here = served(tmp_path, journal, other.build())
        async with here as (url, _), client_of(url, "boss") as client:
            return says(await client.call_tool("answer_run", answer))

    said = asyncio.run(asyncio.wait_for(talked(), 60))
    assert said.startswith("AX542 the run's workflow is not served here.")


def test_a_client_that_can_be_asked_is_asked_and_no_other_answers_for_it(tmp_path):
    asked: list[str] = []

    async def asks(context: Any, params: Any) -> Any:
        asked.append(params.message)
        return mcp.types.ElicitResult(action="accept", content={"approved": True})

    async def talked() -> None:
        async with served(tmp_path) as (url, _):
            async with client_of(url, "ada", elicitation_callback=asks) as client:
                assert [each.name for each in (await client.list_tools()).tools] == ["sending"]
                done = await client.call_tool("sending", {"letter": "Dear Una"})
                assert done.structured_content["output"] == {"sent": True}
            assert asked == ["Dear Una"]
            async with httpx2.AsyncClient(trust_env=False) as http:
                body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
                assert (await http.post(f"{url}/mcp", json=body)).status_code == 401

    asyncio.run(asyncio.wait_for(talked(), 60))


def test_a_server_is_asked_with_the_token_of_the_caller_whose_run_it_is(tmp_path):
    """Two callers' runs at once, over connections of their own."""
    from mcp.server import Server
    from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

    seen: list[tuple[str, str]] = []

    async def offered(ctx: Any, params: Any) -> Any:
        schema = {"type": "object", "properties": {}, "additionalProperties": False}
        return ListToolsResult(tools=[Tool(name="whoami", input_schema=schema)])

    async def called(ctx: Any, params: Any) -> Any:
        seen.append((ctx.method, ctx.request.headers.get("authorization", "")))
        return CallToolResult(content=[TextContent(type="text", text="known")])

    theirs: Any = Server("whoami", on_list_tools=offered, on_call_tool=called)

    async def ran() -> list[Any]:
        async with listening(theirs.streamable_http_app()) as url:
            tools = MCPTools(url=f"{url}/mcp", token={"env": "GITHUB_TOKEN"}, name="who")
            graph = RootGraph("asking")
            calls = [{"tool_calls": [{"name": "who__whoami", "arguments": {}}]}, "done"] * 4
            model = Scripted(calls)
            graph.create_node(
                Agent, name="agent", model=model, tools=[tools], prompt_template="{x}"
            )
            graph.edge_from_entry("agent", {"x": ""})
            graph.edge_to_exit("agent", {"text": ""})
            service = RunService(
                MemoryJournal(), {"asking": graph.build()}, secrets=["GITHUB_TOKEN"]
            )
            found: list[Any] = []
            async with service.running():
                for name, value in (
                    ("ada", "ghp-ada-00001"),
                    ("ben", "ghp-ben-00002"),
                    ("ada", ""),
                ):
                    given = {"GITHUB_TOKEN": value} if value else {}
                    secrets = CallerSecrets(["GITHUB_TOKEN"], given)
                    caller = Caller(name=name, secrets=secrets)
                    run_id = await service.start(caller, "asking", {"x": 1})
                    await service.engine.result(run_id)
                    found.append(service.look(caller, run_id))
            return found

    runs = asyncio.run(asyncio.wait_for(ran(), 60))
    assert [run["status"] for run in runs] == ["done", "done", "failed"]
    assert [header for _, header in seen] == ["Bearer ghp-ada-00001", "Bearer ghp-ben-00002"]
    assert "AX994" in runs[2]["error"]
