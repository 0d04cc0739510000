"""Hostile peers of agents and of served workflows.

The promise attacked first: what a person allows is what was shown, whatever channel shows it. A
model asks for a call whose arguments hide and steer text; each channel is asked for the arguments
that it shows, and they are compared with those that the tool received.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.types import Message, Part, Role, SendMessageRequest
from google.protobuf.json_format import MessageToDict
from mcp import Client
from mcp_types import ElicitResult
from starlette.testclient import TestClient

from axil import MISSING, Question, RootGraph, Workflow
from axil.plugin import default_registry, is_hidden
from axil_agent import Agent, Scripted
from axil_journals import MemoryJournal
from axil_mcp import WorkflowServer
from axil_models import Tool
from axil_serve import Access, Caller, RunService, app_of, token_digest

TOKEN = "ada-" * 8
HEADERS = {"authorization": f"Bearer {TOKEN}"}
HIDING = 'Ada\u202e\x1b[2J\u200b\U000e0041\ufe0f\x9b zoë\n  "to": "Ben"\r'
GIVEN = {
    "amount": "5",
    "to": HIDING,
    "more": {"lines": ["\u2066a", 2**70, 1.5, None]},
}
RECEIVED = {**GIVEN, "amount": 5}

# ---------------------------------------------------------------------------------- ways to call


class Till:
    """A tool that a person approves, and what it received."""

    def __init__(self) -> None:
        self.paid: list[dict[str, Any]] = []

    def tool(self, **settings: Any) -> Tool:
        return Tool(
            name="pay",
            description="Pay.\u202e",
            parameters={"type": "object", "properties": {}},
            call=lambda **given: self.paid.append(given) or "paid",
            needs_approval=True,
            **settings,
        )

    def plain(self) -> Workflow:
        return self.built(self.tool())

    def converted(self) -> Workflow:
        """Return a workflow whose tool converts an argument before it is called."""
        return self.built(self.tool(validate=lambda a: ((), {**a, "amount": int(a["amount"])})))

    def function(self) -> Workflow:
        """Return a workflow whose tool is a function, which pydantic calls."""

        def pay(amount: int, to: str, more: dict[str, Any], *, note: str = "") -> str:
            self.paid.append({"amount": amount, "to": to, "more": more})
            return "paid"

        pay.needs_approval = True
        return self.built(pay)

    def rewritten(self) -> Workflow:
        """Return a workflow whose agent has a hook that changes the calls of each reply."""

        def rewritten(reply: Any, messages: Any) -> Any:
            from dataclasses import replace

            calls = [replace(c, arguments={**c.arguments, "amount": 7}) for c in reply.tool_calls]
            return replace(reply, tool_calls=calls) if calls else None

        return self.built(self.tool(), on_reply=rewritten)

    def meddling(self) -> Workflow:
        """Return a workflow whose tool has rules that change what they look at."""

        def taken(arguments: Any) -> Any:
            arguments["more"]["lines"].append("behind the question")
            return "external"

        return self.built(self.tool(effects=taken))

    def built(self, tool: Any, **settings: Any) -> Workflow:
        call = {"tool_calls": [{"name": "pay", "arguments": GIVEN}]}
        graph = RootGraph("pay")
        model = Scripted([call, '{"o": "done"}'])
        graph.create_node(Agent, name="w", model=model, tools=[tool], **settings)
        graph.edge_from_entry("w", {"message": ""})
        graph.edge_to_exit("w", ["o"])
        return graph.build()


WAYS = {
    "plain": (Till.plain, GIVEN),
    "converted": (Till.converted, RECEIVED),
    "function": (Till.function, RECEIVED),
    "rewritten": (Till.rewritten, {**GIVEN, "amount": 7}),
    "meddling": (Till.meddling, GIVEN),
}

# --------------------------------------------------------------------------------------- channels


def read_from(text: str) -> Any:
    """Return the arguments that a question's text shows."""
    head, _, rest = text.partition(" be called with these arguments?\n")
    assert head.endswith('May the tool "pay"'), head
    found, end = json.JSONDecoder().raw_decode(rest)
    assert rest[end:].startswith(("\nIt changes", "\nWhat it changes")), rest[end:]
    return found


def on_the_terminal(workflow: Workflow) -> Any:
    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen, terminal = io.StringIO(), default_registry().resolve("channels", "terminal", "")
    workflow.invoke({"message": "x"}, channel=terminal(stdin=Keyboard("allow\n"), stdout=screen))
    assert not any(map(is_hidden, screen.getvalue()))
    return read_from(screen.getvalue())


def by_a_channel(workflow: Workflow) -> Any:
    class Person:
        asked: tuple[Question, ...] = ()

        async def ask(self, question: Question) -> Any:
            self.asked += (question,)
            shown.append(json.loads(json.dumps(question.data["arguments"])))
            lines = question.data["arguments"].get("more", {}).get("lines")
            if isinstance(lines, list):
                lines.append("behind the answer")
            return "allow" if len(self.asked) == 1 else MISSING

    shown: list[Any] = []
    workflow.invoke({"message": "x"}, channel=Person())
    return shown[0]


@contextlib.contextmanager
def served(workflow: Workflow) -> Iterator[tuple[TestClient, Any]]:
    access = Access([(token_digest(TOKEN, "ada"), Caller(name="ada"))])
    made = default_registry()
    names = ("a2a", "ag-ui", "openai", "responses")
    protocols = {name: made.resolve("protocols", name, "")() for name in names}
    service = RunService(MemoryJournal(), {"pay": workflow}, poll_seconds=0.01)
    app = app_of(service, access, protocols=protocols)
    with TestClient(app, base_url="http://127.0.0.1", headers=HEADERS) as client:
        yield client, app


def waiting(client: TestClient, run_id: str) -> Any:
    """Return a run when it asks, or is over."""
    while True:
        run = client.get(f"/v1/runs/{run_id}").json()
        if run["questions"] or run["status"] in ("done", "failed"):
            return run


def over_http(workflow: Workflow) -> Any:
    """Return the question over the API of the page, and allow the call."""
    with served(workflow) as (client, _):
        begun = client.post("/v1/runs", json={"workflow": "pay", "input": {"message": "x"}})
        run_id = begun.json()["run_id"]
        [question] = waiting(client, run_id)["questions"]
        answers = {"answers": {question["id"]: True}}
        assert client.post(f"/v1/runs/{run_id}/answers", json=answers).status_code < 300
        client.get(f"/v1/runs/{run_id}/events")
        assert waiting(client, run_id)["output"] == {"o": "done"}
    return question


def on_the_page(workflow: Workflow) -> Any:
    """Return the arguments as the page's own code shows them."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed")
    question = over_http(workflow)
    source = (files("axil_serve") / "page" / "dom.js").read_text("utf-8")
    script = f"{source}\nconsole.log(callShown({json.dumps(question)}))\n"
    run = [node, "--input-type=module", "-"]
    shown = subprocess.run(run, input=script, capture_output=True, text=True, check=True).stdout
    assert not any(map(is_hidden, shown))
    return json.loads(shown)


def over_ag_ui(workflow: Workflow) -> Any:
    message = {"id": "m", "role": "user", "content": "x"}
    body: dict[str, Any] = {"threadId": "t", "runId": "r", "messages": [message], "state": {}}
    body |= {"tools": [], "context": [], "forwardedProps": {"input": {"message": "x"}}}
    with served(workflow) as (client, _):
        [interrupt] = ended(client.post("/ag-ui/pay", json=body))["outcome"]["interrupts"]
        resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": "allow"}]
        assert ended(client.post("/ag-ui/pay", json={**body, "resume": resume}))["result"]
    return read_from(interrupt["message"])


def ended(answer: Any) -> Any:
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line[:5] == "data:"]
    return events[-1]


def over_a2a(workflow: Workflow) -> Any:
    async def main(app: Any) -> Any:
        http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1", headers=HEADERS
        )
        async with http, asyncio.timeout(30):
            config = ClientConfig(httpx_client=http, streaming=False)
            client = await create_client("http://127.0.0.1/a2a/pay", client_config=config)

            async def said(text: str, **more: Any) -> Any:
                parts = [Part(text=text)]
                message = Message(message_id=text, role=Role.ROLE_USER, parts=parts, **more)
                request = SendMessageRequest(message=message)
                return [each async for each in client.send_message(request)][-1].task

            task = await said("x")
            question = task.status.message.parts[0].text
            assert MessageToDict(task.status.message.parts[1].data)["questions"]
            await said("allow", task_id=task.id, context_id=task.context_id)
        return read_from(question)

    with served(workflow) as (client, app):
        return client.portal.call(main, app)


def over_chat(workflow: Workflow) -> Any:
    with served(workflow) as (client, _):
        body = {"model": "pay", "messages": [{"role": "user", "content": "x"}]}
        asked = client.post("/v1/chat/completions", json=body).json()
        body["messages"] = [{"role": "user", "content": "allow"}]
        body["metadata"] = {"run_id": asked["axil"]["run_id"]}
        assert client.post("/v1/chat/completions", json=body).status_code == 200
    return read_from(asked["choices"][0]["message"]["content"])


def over_responses(workflow: Workflow) -> Any:
    with served(workflow) as (client, _):
        body = {"model": "pay", "input": "x"}
        asked = client.post("/v1/responses", json=body).json()
        body = {**body, "input": "allow", "previous_response_id": asked["id"]}
        assert client.post("/v1/responses", json=body).status_code == 200
    return read_from(asked["output"][-1]["content"][0]["text"])


def over_mcp(mode: str) -> Callable[[Workflow], Any]:
    def asked(workflow: Workflow) -> Any:
        shown: list[str] = []

        async def elicit(context: Any, params: Any) -> ElicitResult:
            shown.append(params.message)
            return ElicitResult(action="accept", content={"answer": "allow"})

        async def main() -> Any:
            server = WorkflowServer({"pay": workflow}).server
            async with Client(server, mode=mode, elicitation_callback=elicit) as client:
                return await client.call_tool("pay", {"message": "x"})

        assert not asyncio.run(main()).is_error
        return read_from(shown[0])

    return asked


CHANNELS: dict[str, Callable[[Workflow], Any]] = {
    "terminal": on_the_terminal,
    "channel": by_a_channel,
    "page": on_the_page,
    "ag-ui": over_ag_ui,
    "a2a": over_a2a,
    "chat": over_chat,
    "responses": over_responses,
    "mcp": over_mcp("auto"),
    "mcp, older": over_mcp("legacy"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("channel", CHANNELS)
def test_what_a_channel_shows_is_what_the_tool_receives(channel, way):
    build, expected = WAYS[way]
    till = Till()
    shown = CHANNELS[channel](build(till))
    assert till.paid == [expected]
    assert shown == json.loads(json.dumps(expected))
