"""Laws of served workflows before clients that mean harm."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from pydantic import SecretStr

from axil_mcp.guard import HttpConfig, app_of
from axil_mcp.lines import Lines
from axil_mcp.serving import Serving, WorkflowServer

from .kit import until
from .test_serving import TOKEN, Slow, asking, greeting

PROGRAM = """
import asyncio, sys
from axil import RootGraph
from axil_mcp import WorkflowServer

graph = RootGraph("greet")
graph.create_node(lambda inputs: {"text": f"Hello {inputs['name']}!"}, name="hello")
graph.edge_from_entry("hello", {"name": "whom"})
graph.edge_to_exit("hello", {"text": ""})
asyncio.run(WorkflowServer({"greet": graph.build()}).stdio())
"""
HELLO = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def request(id: Any, method: str = "tools/list", **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def call(id: Any, name: str = "Ada") -> str:
    return request(id, "tools/call", name="greet", arguments={"name": name})


def notice(method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params})


def talked(*lines: str | bytes, last: Any = "last") -> tuple[dict[Any, list[Any]], str]:
    """Return the answers of a server over pipes by their ids, and its standard error; behind the
    lines it is asked once more.
    """
    begin = [json.dumps(HELLO), json.dumps(READY)]
    given = [each if isinstance(each, bytes) else each.encode() for each in (*begin, *lines)]
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    found: dict[Any, list[Any]] = {}
    try:
        process.stdin.write(b"\n".join([*given, call(last).encode()]) + b"\n")
        process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            found.setdefault(answer.get("id"), []).append(answer)
            if answer.get("id") == last:
                break
        process.stdin.close()
        process.stdout.read()
        said = process.stderr.read().decode()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
    return found, said


MALFORMED: dict[str, list[str | bytes]] = {
    "no JSON": ["hello", "{", "[", '"x"', "null", "42"],
    "no message": ["{}", "[]", '{"jsonrpc": "2.0"}', '{"jsonrpc": "1.0", "id": 1, "method": "x"}'],
    "batches": ["[" + request(1) + "," + request(2) + "]"],
    "odd ids": [
        '{"jsonrpc": "2.0", "id": null, "method": "tools/list"}',
        '{"jsonrpc": "2.0", "id": {"a": 1}, "method": "tools/list"}',
        '{"jsonrpc": "2.0", "id": 1e400, "method": "tools/list"}',
    ],
    "odd params": [
        '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [1]}',
        '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": 3}}',
        '{"jsonrpc": "2.0", "id": 3, "method": "tools/call"}',
    ],
    "unknown methods": [request(1, "no/such"), request(2, "\u202e"), notice("no/such")],
    "bytes": [b"\xff\xfe\x00", b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}', b"\x00" * 1000],
    "depth": ["[" * 100_000, '{"a":' * 100_000],
    "deep arguments": [
        '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "greet", '
        '"arguments": {"name": ' + "[" * 150 + "]" * 150 + "}}}"
    ],
    "surrogates": [call(1, "X").replace("X", "\\ud800"), request(2, "x").replace("x", "\\udfff")],
    "answers to nothing": ['{"jsonrpc": "2.0", "id": 7, "result": {}}'] * 3,
    "pages": [request(n, cursor="x" * 1000) for n in range(20)],
    "unknown calls are cancelled": [notice("notifications/cancelled", requestId=n) for n in (1, 1)],
    "floods of notices": [notice("notifications/progress", progressToken=1, progress=1)] * 5000,
}


@pytest.fixture(scope="module")
def talk() -> tuple[dict[Any, list[Any]], str]:
    """The answers of one server to all nonsense; behind each kind it is asked to greet."""
    return talked(*(line for name, lines in MALFORMED.items() for line in (*lines, call(name))))


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_client_that_says_nonsense_is_answered_and_the_next_request_served(talk, kind):
    answers, said = talk
    for each in (kind, "last"):
        [answer] = answers[each]
        assert answer["result"]["structuredContent"]["output"] == {"text": "Hello Ada!"}
    assert "Traceback" not in said


def test_an_id_that_is_used_again_gets_an_answer_each_time_and_no_other_calls():
    answers, _ = talked(*(call(1, name) for name in ("Ada", "Ben", "Eve")))
    given = [each["result"]["structuredContent"]["output"]["text"] for each in answers[1]]
    assert set(given) <= {"Hello Ada!", "Hello Ben!", "Hello Eve!"}
    assert len(given) == len(set(given))


def test_a_line_that_is_too_long_ends_the_input():
    import io

    lines = Lines(io.BytesIO(b"one\n" + b"x" * 100 + b"\ntwo\n"), 10)
    assert [lines.readline(), lines.readline()] == ["one\n", ""]


def test_a_call_that_is_cancelled_twice_is_cancelled_once():
    async def main() -> tuple[int, int, str]:
        slow = Slow()
        async with Client(
            WorkflowServer({"slow": slow.graph, "greet": greeting()}).server, mode="legacy"
        ) as client:
            waiting = asyncio.ensure_future(client.call_tool("slow", {"seconds": 3600}))
            await until(lambda: slow.begun)
            waiting.cancel()
            waiting.cancel()
            await until(lambda: slow.cancelled)
            greeted = await client.call_tool("greet", {"name": "Ada"})
            return slow.begun, slow.cancelled, greeted.structured_content["output"]["text"]

    assert asyncio.run(main()) == (1, 1, "Hello Ada!")


def test_a_flood_of_calls_is_refused_beyond_those_that_may_wait():
    async def main() -> list[Any]:
        slow = Slow()
        serving = Serving(concurrency=1, most_waiting=5)
        server = WorkflowServer({"slow": slow.graph}, serving=serving)
        async with Client(server.server, mode="legacy") as client:
            calls = [
                asyncio.ensure_future(client.call_tool("slow", {"seconds": 3600}))
                for _ in range(50)
            ]
            await until(lambda: sum(each.done() for each in calls) == 44)
            refused = [each.result() for each in calls if each.done()]
            for each in calls:
                each.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            await until(lambda: not server._queued)
            assert slow.most == 1
        return refused

    refused = asyncio.run(main())
    assert all(each.is_error for each in refused)
    assert {each.content[0].text for each in refused} == {
        "AX933 5 calls wait already. Call again later."
    }


def test_runs_that_are_left_waiting_are_bounded():
    async def main() -> tuple[int, int]:
        server = WorkflowServer({"ask": asking("A?")}, serving=Serving(most_paused=10))

        async def never(context: Any, params: Any) -> Any:
            raise AssertionError

        async with Client(server.server, elicitation_callback=never) as client:
            for _ in range(40):
                ways: Any = {"allow_input_required": True}
                assert (await client.session.call_tool("ask", {}, **ways)).request_state
        return len(server._waiting), len(server._journals)

    assert asyncio.run(main()) == (10, 10)


def test_a_subscription_to_what_does_not_change_is_refused():
    uri = "axil://workflows/greet"
    asked = [request(n, "resources/subscribe", uri=uri) for n in range(3)]
    answers, _ = talked(*asked)
    assert [answers[n][0]["error"]["code"] for n in range(3)] == [-32601] * 3

    async def main() -> None:
        async with Client(WorkflowServer({"greet": greeting()}).server) as client:
            for _ in range(3):
                with pytest.raises(MCPError, match="Method not found"):
                    async with client.listen(resource_subscriptions=[uri]):
                        raise AssertionError

    asyncio.run(main())


# ---------------------------------------------------------------------------------- over HTTP

KNOWN = {
    "Authorization": f"Bearer {TOKEN}",
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
}


@asynccontextmanager
async def opened() -> AsyncIterator[httpx2.AsyncClient]:
    """Serve in this process; the client has the token."""
    import uvicorn

    app = app_of(WorkflowServer({"greet": greeting()}), HttpConfig(token=SecretStr(TOKEN)))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="on"))
    job = asyncio.ensure_future(server.serve())
    await until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    try:
        async with httpx2.AsyncClient(base_url=base, headers=KNOWN, timeout=60) as client:
            yield client
    finally:
        server.should_exit = server.force_exit = True
        await job


@pytest.mark.parametrize(
    ("method", "headers", "body", "statuses"),
    [
        ("POST", {"Mcp-Session-Id": "nobody's"}, request(1), {404}),
        ("GET", {"Mcp-Session-Id": "nobody's"}, None, {404}),
        ("DELETE", {"Mcp-Session-Id": "nobody's"}, None, {404}),
        ("POST", {"Mcp-Session-Id": "\x7f" * 5000}, request(1), {400, 404, 431}),
        ("GET", {}, None, {400, 405, 406}),
        ("PUT", {}, request(1), {405}),
        ("POST", {}, "{", {400}),
        ("POST", {}, "[]", {400}),
        ("POST", {}, "[" * 100_000, {400}),
        ("POST", {}, request(1), {400}),
        ("POST", {"Content-Type": "text/plain"}, request(1), {400, 415}),
        ("POST", {"Accept": "text/html"}, json.dumps(HELLO), {406}),
        ("POST", {"Content-Encoding": "gzip"}, b"\x1f\x8b\x08", {400, 415}),
        ("POST", {"MCP-Protocol-Version": "9999-01-01"}, request(1), {400}),
        ("POST", {}, "x" * 10_000_000, {413}),
    ],
)
def test_a_request_that_is_none_is_refused_and_the_next_one_served(method, headers, body, statuses):
    async def main() -> tuple[int, int]:
        async with opened() as client:
            odd = await client.request(method, "/mcp", headers=headers, content=body)
            good = await client.post("/mcp", json=HELLO)
            return odd.status_code, good.status_code

    odd, good = asyncio.run(main())
    assert odd in statuses
    assert good == 200


def test_a_session_has_one_stream_of_events_however_often_a_client_asks():
    async def main() -> list[int]:
        async with opened() as client:
            began = await client.post("/mcp", json=HELLO)
            session = {"Mcp-Session-Id": began.headers["mcp-session-id"]}
            await client.post("/mcp", json=READY, headers=session)
            statuses: list[int] = []
            async with client.stream("GET", "/mcp", headers=session) as first:
                statuses.append(first.status_code)
                for _ in range(5):
                    async with client.stream("GET", "/mcp", headers=session) as more:
                        statuses.append(more.status_code)
            return statuses

    first, *more = asyncio.run(main())
    assert first == 200
    assert set(more) == {409}
