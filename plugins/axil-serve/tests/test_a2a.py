"""Laws of A2A, held with the client of its own SDK."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, create_client
from a2a.client.errors import A2AClientError
from a2a.types import (
    AuthenticationInfo,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.constants import TransportProtocol
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

import axil_serve.a2a as module
from axil_journals import MemoryJournal
from axil_serve import RunService, a2a_push, app_of
from axil_serve.a2a import A2a
from axil_serve.files import RunFiles

from .conftest import (
    ADA,
    BEN,
    EVE,
    FITTING,
    Followed,
    access,
    as_caller,
    broken_off,
    greeting,
    refund,
    triage,
)
from .test_files import copying
from .test_responses import breaking, counting


@dataclass
class Agents:
    """Agents of a server, for the client of one caller."""

    http: httpx.AsyncClient
    streaming: bool

    async def of(self, name: str, *bindings: str) -> Client:
        config = ClientConfig(httpx_client=self.http, streaming=self.streaming)
        if bindings:
            config.supported_protocol_bindings = list(bindings)
        return await create_client(f"http://127.0.0.1/a2a/{name}", client_config=config)


@dataclass
class Server:
    app: Any
    service: RunService
    stack: contextlib.AsyncExitStack

    def __call__(self, token: str = ADA, *, streaming: bool = True) -> Agents:
        http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.app),
            base_url="http://127.0.0.1",
            headers=as_caller(token),
        )
        self.stack.push_async_callback(http.aclose)
        return Agents(http, streaming)


@contextlib.asynccontextmanager
async def served(folder: Path, **options: Any) -> AsyncIterator[Server]:
    followed = Followed()
    workflows = {
        "greeting": greeting(),
        "refund": refund(),
        "triage": triage(followed),
        "broken": broken_off(followed),
        "copying": copying(),
        "counting": counting(),
        "breaking": breaking(),
    }
    files = RunFiles(folder)
    service = RunService(MemoryJournal(), workflows, files=files, poll_seconds=0.01, **options)
    followed.feed = service.feed
    app = app_of(service, access(), protocols={"a2a": A2a()})
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(service.running())
        yield Server(app, service, stack)


@pytest.fixture
def tried(tmp_path: Path) -> Callable[[Callable[..., Awaitable[None]]], None]:
    """A function that calls one with the agents of a server, with a limit of time."""

    def run(body: Callable[..., Awaitable[None]], **options: Any) -> None:
        async def whole() -> None:
            async with asyncio.timeout(60), served(tmp_path, **options) as agents:
                await body(agents)

        asyncio.run(whole())

    return run


def says(*parts: Part, **more: Any) -> SendMessageRequest:
    return SendMessageRequest(
        message=Message(message_id="m", role=Role.ROLE_USER, parts=parts, **more)
    )


def data(value: Any) -> Part:
    return Part(data=ParseDict(value, Value()))


async def events_of(client: Client, request: SendMessageRequest) -> list[Any]:
    return [event async for event in client.send_message(request)]


async def task_of(client: Client, request: SendMessageRequest) -> Any:
    """Return the task after a message, as the server has it."""
    events = await events_of(client, request)
    return await client.get_task(GetTaskRequest(id=events[0].task.id))


def test_the_card_of_a_workflow_is_had_with_a_token_and_names_its_endpoint(tried):
    async def body(agents):
        http = agents().http
        card = await A2ACardResolver(http, "http://127.0.0.1/a2a/greeting").get_agent_card()
        assert card.name == "greeting"
        assert {each.protocol_version for each in card.supported_interfaces} == {"1.0", "0.3"}
        assert card.supported_interfaces[0].url == "http://127.0.0.1/a2a/greeting"
        assert card.capabilities.streaming
        path = "/a2a/greeting/.well-known/agent-card.json"
        assert (await http.get(path, headers={"authorization": ""})).status_code == 401
        assert (await http.get(path.replace("greeting", "none"))).status_code == 404
        assert (await http.post("/a2a/none", json={})).status_code == 404

    tried(body)


@pytest.mark.parametrize("streaming", [True, False])
def test_a_task_is_a_run_with_its_output_as_an_artifact(tried, streaming):
    async def body(agents):
        client = await agents(streaming=streaming).of("greeting")
        events = await events_of(client, says(data({"name": "ada"})))
        task = await client.get_task(GetTaskRequest(id=events[0].task.id))
        assert task.status.state == TaskState.TASK_STATE_COMPLETED
        [artifact] = task.artifacts
        assert artifact.parts[0].text == "Hello Ada"
        assert MessageToDict(artifact.parts[1].data) == {"text": "Hello Ada"}
        if streaming:
            made = [each.artifact_update for each in events if each.HasField("artifact_update")]
            assert "".join(p.text for each in made for p in each.artifact.parts) == "Hello Ada"
            assert [each.append for each in made] == [False] + [True] * (len(made) - 1)
            assert made[-1].last_chunk
            assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED

    tried(body)


def test_fields_come_before_their_reply_and_words_that_do_not_count_are_replaced(tried):
    async def updates(agents, name, given):
        events = await events_of(await agents().of(name), says(data(given)))
        return [each.artifact_update for each in events if each.HasField("artifact_update")]

    async def body(agents):
        *shown, last = await updates(agents, "triage", {"text": "x"})
        fields = [MessageToDict(each.artifact.parts[0].data) for each in shown]
        assert fields[-2:] == FITTING[1:]
        assert not any(each.append for each in (*shown, last))
        assert json.loads(last.artifact.parts[0].text) == FITTING[-1]
        first, last = await updates(agents, "broken", {"name": "x"})
        assert (first.artifact.parts[0].text, first.append) == ("An axil is", False)
        assert (last.artifact.parts[0].text, last.append) == ("An angle.", False)

    tried(body)


def test_a_question_requires_input_and_the_next_message_of_the_task_is_the_answer(tried):
    async def body(agents):
        client = await agents().of("refund")
        events = await events_of(client, says(data({"amount": 3})))
        status = events[-1].status_update.status
        assert status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert status.message.parts[0].text == "Refund 3?"
        [asked] = MessageToDict(status.message.parts[1].data)["questions"]
        id = events[0].task.id
        page = await client.list_tasks(ListTasksRequest(status=status.state))
        assert [task.id for task in page.tasks] == [id]
        with pytest.raises(A2AError, match="no open question"):
            await events_of(
                client, says(Part(text="yes"), task_id=id, metadata={"question": "other"})
            )
        answer = says(Part(text="yes"), task_id=id, metadata={"question": asked["id"]})
        events = await events_of(client, answer)
        assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
        assert (await client.get_task(GetTaskRequest(id=id))).artifacts[0].parts[0].text == "3: yes"
        with pytest.raises(A2AError, match="has ended"):
            await events_of(client, says(Part(text="again"), task_id=id))

    tried(body)


def test_a_task_is_cancelled_and_followed_by_a_second_client(tried):
    async def body(agents):
        client = await agents().of("refund")
        id = (await task_of(client, says(data({"amount": 3})))).id

        async def follow() -> list[Any]:
            return [each async for each in client.subscribe(SubscribeToTaskRequest(id=id))]

        following = asyncio.create_task(follow())
        while not agents.service.feed.is_followed(id):  # noqa: ASYNC110  # no event says it
            await asyncio.sleep(0)
        task = await client.cancel_task(CancelTaskRequest(id=id))
        assert task.status.state == TaskState.TASK_STATE_CANCELED
        first, last = await following
        assert first.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert last.status_update.status.state == TaskState.TASK_STATE_CANCELED
        for call in (client.cancel_task(CancelTaskRequest(id=id)), follow()):
            with pytest.raises(A2AError, match="has ended"):
                await call

    tried(body)


def test_a_message_may_return_before_the_run_has_ended(tried):
    async def body(agents):
        request = says(data({"amount": 3}))
        request.configuration.return_immediately = True
        [first] = await events_of(await agents(streaming=False).of("refund"), request)
        states = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)
        assert first.task.status.state in states

    tried(body)


def test_tasks_of_a_context_continue_one_conversation(tried):
    async def body(agents):
        client = await agents().of("counting")
        first = await task_of(client, says(Part(text="a")))
        second = await task_of(client, says(Part(text="b"), context_id=first.context_id))
        texts = [task.artifacts[0].parts[0].text for task in (first, second)]
        assert texts == ["1 in turn 1", "3 in turn 2"]
        page = await client.list_tasks(ListTasksRequest(page_size=1))
        assert [task.id for task in page.tasks] == [second.id]
        rest = await client.list_tasks(ListTasksRequest(page_token=page.next_page_token))
        assert [task.id for task in rest.tasks] == [first.id]
        apart = await (await agents(BEN).of("counting")).list_tasks(ListTasksRequest())
        assert list(apart.tasks) == []

    tried(body)


def test_files_of_a_message_are_attached_and_those_of_a_run_are_artifacts(tried):
    async def body(agents):
        mine = agents()
        client = await mine.of("copying")
        sent = Part(raw=b"rain", filename="a.txt", media_type="text/plain")
        task = await task_of(client, says(data({"name": "a.txt"}), sent))
        output, made = task.artifacts
        assert (output.parts[0].text, made.name) == ("rain", "out/copy.html")
        assert (await mine.http.get(made.parts[0].url)).text == "RAIN"
        assert (await agents(BEN).http.get(made.parts[0].url)).status_code == 404
        assert (await mine.http.get("/v1/files")).json()["files"] == []

    tried(body)


def test_a_message_of_which_a_file_is_refused_leaves_no_other(tried):
    async def body(agents):
        mine = agents()
        client = await mine.of("copying")
        sent = [Part(raw=b"rain", filename=name) for name in ("a.txt", "../b.txt")]
        with pytest.raises(A2AError, match="name of a file"):
            await events_of(client, says(data({"name": "a.txt"}), *sent))
        assert (await mine.http.get("/v1/files")).json()["files"] == []

    tried(body)


def test_a_page_of_tasks_is_named_by_a_number(tried):
    async def body(agents):
        client = await agents().of("greeting")
        for token in ("9" * 5000, "next"):
            with pytest.raises(A2AError, match="number"):
                await client.list_tasks(ListTasksRequest(page_token=token))

    tried(body)


def test_a_task_of_another_caller_or_another_agent_does_not_exist(tried):
    async def body(agents):
        client = await agents().of("refund")
        id = (await task_of(client, says(data({"amount": 3})))).id
        ben, other = await agents(BEN).of("refund"), await agents().of("greeting")
        for client in (ben, other):
            messages: set[str] = set()
            for unknown in (id, "none"):
                for call in (
                    client.get_task(GetTaskRequest(id=unknown)),
                    client.cancel_task(CancelTaskRequest(id=unknown)),
                    events_of(client, says(Part(text="yes"), task_id=unknown)),
                ):
                    with pytest.raises(A2AError) as caught:
                        await call
                    messages.add(str(caught.value).replace(unknown, "RUN"))
            assert all("no run" in each for each in messages)
            assert len(messages) == (1 if client is ben else 2)
        with pytest.raises(A2AClientError, match="403"):
            await events_of(await agents(EVE).of("refund"), says(data({"amount": 3})))

    tried(body)


def test_the_methods_are_had_over_rest_too(tried):
    async def body(agents):
        client = await agents().of("refund", TransportProtocol.HTTP_JSON)
        events = await events_of(client, says(data({"amount": 3})))
        id = events[0].task.id
        assert events[-1].status_update.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        page = await client.list_tasks(ListTasksRequest())
        assert [task.id for task in page.tasks] == [id]
        task = await client.cancel_task(CancelTaskRequest(id=id))
        assert task.status.state == TaskState.TASK_STATE_CANCELED
        with pytest.raises(A2AError, match="no run"):
            await client.get_task(GetTaskRequest(id="none"))
        eve = await agents(EVE).of("refund", TransportProtocol.HTTP_JSON)
        with pytest.raises(A2AClientError, match="403"):
            await events_of(eve, says(data({"amount": 3})))
        large = b'{"message": "' + b"x" * 1_000_001
        path = "/a2a/refund/message:send"
        assert (await agents().http.post(path, content=large)).status_code == 413

    tried(body)


def test_what_goes_wrong_is_an_error_of_the_protocol(tried):
    async def body(agents):
        failed = await task_of(await agents().of("breaking"), says(Part(text="x")))
        assert failed.status.state == TaskState.TASK_STATE_FAILED
        assert "no paper" in failed.status.message.parts[0].text
        client = await agents().of("greeting")
        address = Part(url="http://127.0.0.1/x", filename="a")
        for request, match in (
            (says(address), "no address is fetched"),
            (says(Part(text="x"), data({})), "one part of data"),
            (says(data(5)), "AX120"),
            (says(Part(raw=b"x", filename="../x")), "AX966"),
            (says(Part(text="x"), task_id="t", context_id="other"), "no run"),
        ):
            with pytest.raises(A2AError, match=match):
                await events_of(client, request)
        large = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": "x" * 1_000_001}
        assert (await agents().http.post("/a2a/greeting", json=large)).status_code == 413

    tried(body)


def test_methods_of_version_0_3_are_answered(tried):
    async def body(agents):
        http = agents().http

        async def call(method: str, **params: Any) -> Any:
            sent = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return (await http.post("/a2a/refund", json=sent)).json()

        part = {"kind": "data", "data": {"amount": 3}}
        message = {"kind": "message", "messageId": "m", "role": "user", "parts": [part]}
        asked = (await call("message/send", message=message))["result"]
        assert asked["status"]["state"] == "input-required"
        got = (await call("tasks/get", id=asked["id"]))["result"]
        assert got["status"]["message"]["parts"][0]["text"] == "Refund 3?"
        assert (await call("tasks/cancel", id=asked["id"]))["result"]["status"]["state"] == (
            "canceled"
        )

    tried(body)


class Receiver:
    """A server that keeps what it receives, and answers with the given statuses."""

    def __init__(self, *statuses: int) -> None:
        self.statuses, self.taken = list(statuses), asyncio.Queue[tuple[str, dict[str, str], Any]]()

    async def __aenter__(self) -> str:
        self.server = await asyncio.start_server(self.receive, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self.server.close()

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): v for name, _, v in (each.partition(": ") for each in head[1:])}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        self.taken.put_nowait((head[0].split()[1], headers, body))
        status = self.statuses.pop(0) if self.statuses else 204
        writer.write(
            f"HTTP/1.1 {status} x\r\nlocation: /moved\r\nconnection: close\r\n\r\n".encode()
        )
        await writer.drain()
        writer.close()


def pushing(url: str) -> TaskPushNotificationConfig:
    own = AuthenticationInfo(scheme="Bearer", credentials="key-1")
    return TaskPushNotificationConfig(url=url, token="key-2", authentication=own)


def test_a_task_is_sent_to_an_allowed_address_when_it_asks_and_when_it_has_ended(
    tried, monkeypatch, caplog
):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(a2a_push, "_PAUSES", (0.0, 0.0))

    async def body(agents):
        receiver = Receiver(302, 500, 204, 204, 500, 500, 500)
        async with receiver as address:
            agents.service.push_urls = (f"{address}/hooks",)
            client = await agents().of("refund")
            request = says(data({"amount": 3}))
            request.configuration.task_push_notification_config.CopyFrom(
                pushing(f"{address}/hooks/key-3")
            )
            id = (await task_of(client, request)).id
            tries = [await receiver.taken.get() for _ in range(3)]  # neither is a redirect followed
            assert {path for path, _, _ in tries} == {"/hooks/key-3"}
            _, headers, sent = tries[-1]
            assert headers["x-a2a-notification-token"] == "key-2"
            assert headers["authorization"] == "Bearer key-1"
            assert sent["task"]["id"] == id
            assert sent["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
            configs = await client.list_task_push_notification_configs(
                ListTaskPushNotificationConfigsRequest(task_id=id)
            )
            assert [(each.task_id, each.id) for each in configs.configs] == [(id, id)]
            await events_of(client, says(Part(text="yes"), task_id=id))
            sent = (await receiver.taken.get())[2]["task"]
            assert sent["status"]["state"] == "TASK_STATE_COMPLETED"
            assert sent["artifacts"][0]["parts"][0]["text"] == "3: yes"
            # one that is never taken is given up, and a deleted one is not sent
            second = (await task_of(client, says(data({"amount": 4})))).id
            for path, id in (("a", "kept"), ("b", "deleted")):
                config = pushing(f"{address}/hooks/{path}")
                config.task_id, config.id = second, id
                await client.create_task_push_notification_config(config)
            await client.delete_task_push_notification_config(
                DeleteTaskPushNotificationConfigRequest(task_id=second, id="deleted")
            )
            assert {(await receiver.taken.get())[0] for _ in range(3)} == {"/hooks/a"}
            while "was not taken" not in caplog.text:  # noqa: ASYNC110  # no event says it
                await asyncio.sleep(0)
            assert receiver.taken.empty()

    tried(body)
    assert not [key for key in ("key-1", "key-2", "key-3") if key in caplog.text]


def test_an_address_that_is_named_while_a_task_is_sent_is_sent_it_too(tried, monkeypatch):
    taken, is_sending, goes_on = list[str](), asyncio.Event(), asyncio.Event()

    async def post(config: TaskPushNotificationConfig, body: Any) -> int:
        taken.append(config.id)
        is_sending.set()
        await goes_on.wait()
        return 204

    monkeypatch.setattr(a2a_push, "_post", post)

    async def body(agents):
        agents.service.push_urls = ("https://a.example",)
        client = await agents().of("greeting")
        task = (await task_of(client, says(data({"name": "ada"})))).id

        async def add(id: str) -> None:
            config = pushing(f"https://a.example/{id}")
            config.task_id, config.id = task, id
            await client.create_task_push_notification_config(config)

        await add("first")
        await is_sending.wait()
        await add("second")
        goes_on.set()
        while taken != ["first", "second"]:  # noqa: ASYNC110  # no event says it
            await asyncio.sleep(0)

    tried(body)


def test_notifications_go_to_no_address_that_the_server_was_not_started_with(tried):
    async def refused(agents, url: str, match: str) -> None:
        request = says(data({"amount": 3}))
        request.configuration.task_push_notification_config.CopyFrom(pushing(url))
        with pytest.raises(A2AError, match=match):
            await events_of(await agents().of("refund"), request)

    async def none(agents):
        card = await A2ACardResolver(agents().http, "http://127.0.0.1/a2a/refund").get_agent_card()
        assert not card.capabilities.push_notifications
        await refused(agents, "https://a.example/hooks/1", "(?i)not supported")

    async def some(agents):
        card = await A2ACardResolver(agents().http, "http://127.0.0.1/a2a/refund").get_agent_card()
        assert card.capabilities.push_notifications
        for url in (
            "https://a.example/hooks-2",
            "https://a.example/hooks/../admin",
            "https://a.example/hooks/%2e%2e/admin",
            "https://a.example:8443/hooks/1",
            "http://a.example/hooks/1",
            "https://a.example@127.0.0.1/hooks/1",
            "https://a.example.evil/hooks/1",
            "https://a.example\\@127.0.0.1/hooks/1",
            "http://169.254.169.254/hooks/1",
            "file:///hooks/1",
            "//a.example/hooks",
        ):
            await refused(agents, url, "no notifications to that address")
        runs = (await agents().http.get("/v1/runs")).json()
        assert runs["runs"] == []
        client, ben = await agents().of("refund"), await agents(BEN).of("refund")
        id = (await task_of(client, says(data({"amount": 3})))).id
        config = pushing("https://a.example/hooks/1")
        config.task_id = id
        with pytest.raises(A2AError, match="no run"):
            await ben.create_task_push_notification_config(config)
        with pytest.raises(A2AError, match="no run"):
            await ben.list_task_push_notification_configs(
                ListTaskPushNotificationConfigsRequest(task_id=id)
            )

    tried(none)
    tried(some, push_urls=["https://a.example/hooks/"])


def test_the_sdk_is_imported_only_when_routes_are_made():
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    names = [each.module or "" for each in tree.body if isinstance(each, ast.ImportFrom)]
    assert [name for name in names if name.split(".")[0] in ("a2a", "google")] == []
    assert "axil_serve.a2a_tasks" not in names
