"""A front-end developer: one server, and the clients of others, each with its own types.

Every client asks the same question, is asked by a person's node, answers it, and has to see the
same end.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.person import ROOT, Server, Terminal, readme

ASKED = "May this be sent? Answer yes or no."
LETTER = "Dear customer, we are sorry."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    terminal = Terminal(tmp_path_factory.mktemp("clients"))
    shutil.copy(ROOT / "examples/human.yaml", terminal.folder)
    terminal.write("brief.yaml", readme("yaml"))
    yield Server(terminal, "axil serve human.yaml brief.yaml")
    terminal.close()


@pytest.fixture
def openai(server: Server) -> Iterator[Any]:
    """A client of OpenAI's own library, without retries."""
    module = pytest.importorskip("openai")
    with module.OpenAI(
        base_url=f"{server.address}/v1", api_key=server.token, max_retries=0
    ) as client:
        yield client


def test_a_client_of_chat_completions_is_asked_and_answers(openai: Any) -> None:
    assert {each.id for each in openai.models.list()} >= {"human", "brief"}
    message = {"role": "user", "content": "Send it."}
    asked = openai.chat.completions.create(model="human", messages=[message])
    assert asked.choices[0].message.content == f"{ASKED}\n\n{LETTER}"
    answered = openai.chat.completions.create(
        model="human",
        messages=[{"role": "user", "content": "yes"}],
        metadata={"run_id": asked.id},
    )
    assert (answered.choices[0].message.content, answered.choices[0].finish_reason) == (
        "Sent.",
        "stop",
    )


def test_a_client_of_chat_completions_streams_words(openai: Any) -> None:
    message = {"role": "user", "content": "Ada"}
    whole = openai.chat.completions.create(model="brief", messages=[message])
    stream = openai.chat.completions.create(model="brief", messages=[message], stream=True)
    words = "".join(each.choices[0].delta.content or "" for each in stream if each.choices)
    assert words == whole.choices[0].message.content == "a text"


def test_a_client_of_responses_is_asked_and_answers(openai: Any) -> None:
    asked = openai.responses.create(model="human", input="Send it.")
    assert asked.output_text.startswith(ASKED)
    answered = openai.responses.create(model="human", input="no", previous_response_id=asked.id)
    assert answered.output_text == "Not sent."
    assert openai.responses.retrieve(answered.id).output_text == "Not sent."


def test_a_wrong_token_and_a_wrong_model_are_errors_of_the_clients_kind(
    openai: Any, server: Server
) -> None:
    module = pytest.importorskip("openai")
    message = {"role": "user", "content": "x"}
    with pytest.raises(module.NotFoundError, match="humane"):
        openai.chat.completions.create(model="humane", messages=[message])
    with (
        openai.with_options(api_key="not this one") as other,
        pytest.raises(module.AuthenticationError),
    ):
        other.models.list()


def test_a_front_end_of_ag_ui_is_interrupted_and_resumes(server: Server) -> None:
    core = pytest.importorskip("ag_ui.core")
    from pydantic import TypeAdapter

    def events(**given: Any) -> list[Any]:
        message = {"id": "1", "role": "user", "content": "Send it."}
        whole = {"threadId": "t", "runId": "r", "messages": [message], **given}
        body = core.RunAgentInput.model_validate(whole).model_dump(mode="json", by_alias=True)
        answer = server.http.post("/ag-ui/human", json=body).raise_for_status()
        lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
        return [TypeAdapter(core.Event).validate_json(line[6:]) for line in lines]

    [interrupt] = events()[-1].outcome.interrupts
    assert interrupt.message == f"{ASKED}\n\n{LETTER}"
    resume = [{"interruptId": interrupt.id, "status": "resolved", "payload": "yes"}]
    said = events(resume=resume)
    assert "".join(getattr(each, "delta", "") for each in said) == "Sent."


def test_another_agent_is_asked_over_a2a_and_answers(server: Server) -> None:
    a2a = pytest.importorskip("a2a.client")
    import httpx
    from a2a.types import GetTaskRequest, Message, Part, Role, SendMessageRequest, TaskState

    def says(text: str, task_id: str = "") -> Any:
        parts = [Part(text=text)]
        message = Message(message_id=text, role=Role.ROLE_USER, parts=parts, task_id=task_id)
        return SendMessageRequest(message=message)

    async def talk() -> Any:
        headers = {"authorization": f"Bearer {server.token}"}
        async with httpx.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
            config = a2a.ClientConfig(httpx_client=http)
            address = f"{server.address}/a2a/human"
            client = await a2a.create_client(address, client_config=config)
            events = [event async for event in client.send_message(says("Send it."))]
            status = events[-1].status_update.status
            assert status.state == TaskState.TASK_STATE_INPUT_REQUIRED
            assert status.message.parts[0].text == f"{ASKED}\n\n{LETTER}"
            task_id = events[0].task.id
            async for _ in client.send_message(says("yes", task_id)):
                pass
            return await client.get_task(GetTaskRequest(id=task_id))

    task = asyncio.run(talk())
    assert task.status.state == TaskState.TASK_STATE_COMPLETED
    assert "Sent." in str(task.artifacts)


def test_a_client_of_mcp_over_http_is_asked_and_answers(tmp_path: Path) -> None:
    mcp = pytest.importorskip("mcp")
    httpx2 = pytest.importorskip("httpx2")
    from mcp.client.streamable_http import streamable_http_client

    terminal = Terminal(tmp_path, AXIL_MCP_TOKEN="a token of at least 32 characters, made here")
    shutil.copy(ROOT / "examples/human.yaml", terminal.folder)
    program = terminal.start("axil mcp serve human.yaml --transport http --port 0")
    address = program.find(r"(http://\S+/mcp)")

    async def asks(context: Any, params: Any) -> Any:
        assert params.message.startswith(ASKED)
        return mcp.types.ElicitResult(action="accept", content={"answer": "yes"})

    async def call() -> Any:
        token = terminal.environment["AXIL_MCP_TOKEN"]
        headers = {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, trust_env=False) as http:
            transport = streamable_http_client(address, http_client=http)
            async with mcp.Client(transport, elicitation_callback=asks) as client:
                return await client.call_tool("human", {"input": "Send it."})

    try:
        assert asyncio.run(call()).structured_content["output"] == "Sent."
    finally:
        terminal.close()


def test_what_clients_did_is_what_the_server_keeps(server: Server) -> None:
    run = server.post("/v1/runs", {"workflow": "brief", "input": "Ada"})["run_id"]
    done = server.ended(run)
    kept = {each["run_id"]: each["status"] for each in server.get("/v1/runs")["runs"]}
    assert kept[run] == done["status"] == "done"
