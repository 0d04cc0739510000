"""Laws of agents elsewhere, held with a server of the protocol's own SDK."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from a2a.client.base_client import BaseClient
from a2a.helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette

from axil import NodeFailed, Question, RootGraph, SpecError
from axil_agent import Agent, Scripted, SingleAgent
from axil_files import load
from axil_journals import MemoryJournal
from axil_remote import A2ANode, A2ATool

PNG = b"\x89PNG\r\n\x1a\n"


@dataclass
class Clerk(AgentExecutor):
    """An agent that does what its message says."""

    heard: list[tuple[str, str, str]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        said = context.get_user_input()
        message = context.message
        assert message is not None
        self.heard.append((said, message.context_id, message.message_id))
        if said == "talk":
            await event_queue.enqueue_event(new_text_message("Just words."))
            return
        id, conversation = str(context.task_id), str(context.context_id)
        if context.current_task is None:
            begun = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(Task(id=id, context_id=conversation, status=begun))
        task = TaskUpdater(event_queue, id, conversation)
        await task.start_work()
        if said == "wait":
            await asyncio.Event().wait()
        elif said == "ask":
            words = task.new_agent_message([Part(text="Which shelf?")])
            await task.requires_input(words)
        elif said == "fail":
            await task.failed(task.new_agent_message([Part(text="No such shelf.")]))
        elif said == "refuse":
            await task.reject(task.new_agent_message([Part(text="Not for you.")]))
        elif said == "draw":
            await task.add_artifact(
                [Part(text="Here:"), Part(raw=PNG, media_type="image/png", filename="a.png")]
            )
            await task.complete()
        else:
            pieces = ("You said ", f"{said}.")
            for number, text in enumerate(pieces):
                await task.add_artifact(
                    [Part(text=text)], artifact_id="a", append=number > 0, last_chunk=number == 1
                )
            await task.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.cancelled.append(str(context.task_id))
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()


def card(url: str, *, streaming: bool = True) -> AgentCard:
    return AgentCard(
        name="clerk",
        description="Counts.",
        version="1",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="count", name="count", description="Counts.", tags=["count"])],
    )


@dataclass
class Server:
    url: str
    clerk: Clerk
    headers: list[dict[str, str]]


@contextlib.contextmanager
def serving(
    elsewhere: str = "", *, streaming: bool = True, breaks: bool = False
) -> Iterator[Server]:
    """Serve the clerk. ``breaks``: each stream breaks off behind its first event."""
    clerk, headers = Clerk(), list[dict[str, str]]()
    with contextlib.closing(__import__("socket").socket()) as line:
        line.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{line.getsockname()[1]}"
        about = card(elsewhere or url, streaming=streaming)
        handler = DefaultRequestHandler(clerk, InMemoryTaskStore(), about)
        app = Starlette(
            routes=[*create_agent_card_routes(about), *create_jsonrpc_routes(handler, "/")]
        )

        async def noting(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                pairs = scope["headers"]
                headers.append({name.decode(): value.decode() for name, value in pairs})
            is_stream = False

            async def broken(message: Any) -> None:
                nonlocal is_stream
                if message["type"] == "http.response.start":
                    is_stream = any(b"event-stream" in value for _, value in message["headers"])
                await send(message)
                if is_stream and message.get("body"):
                    raise ConnectionError

            await app(scope, receive, broken if breaks else send)

        server = uvicorn.Server(uvicorn.Config(noting, log_level="critical", ws="none"))
        thread = threading.Thread(target=server.run, args=([line],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.005)
        yield Server(url, clerk, headers)
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


def graph(*nodes: A2ANode) -> RootGraph:
    made = RootGraph("office")
    for number, node in enumerate(nodes):
        made.create_node(node, name=f"n{number}")
    made.edge_from_entry("n0")
    for number in range(1, len(nodes)):
        made.create_edge(f"n{number - 1}", f"n{number}")
    made.edge_to_exit(f"n{len(nodes) - 1}")
    return made


def asked(url: str, text: str, **settings: Any) -> Any:
    return graph(A2ANode(url, **settings)).build().invoke(text).output["message"]


def test_an_agent_elsewhere_is_a_node(server: Server):
    assert asked(server.url, "hello") == "You said hello."
    assert asked(server.url, "talk") == "Just words."


def test_an_agent_without_a_stream_is_asked_until_it_is_done():
    with serving(streaming=False) as running:
        assert asked(running.url, "hello") == "You said hello."


def test_the_answer_of_one_node_reaches_the_next(server: Server):
    nodes = A2ANode(server.url), A2ANode(server.url)
    assert graph(*nodes).build().invoke("hi").output["message"] == "You said You said hi.."


def test_an_agent_elsewhere_is_a_tool(server: Server):
    call = {"tool_calls": [{"name": "clerk", "arguments": {"message": "seven chairs"}}]}
    model = Scripted([call, "Seven."])
    tool = A2ATool(url=server.url, name="clerk", description="Counts.")
    assert SingleAgent(model, tools=[tool]).invoke({"q": "?"}) == {"message": "Seven."}
    assert model.requests[1].messages[-1]["content"] == "You said seven chairs."
    assert model.requests[0].tools[0].description == "Counts."


def test_pictures_come_as_parts(server: Server):
    call = {"tool_calls": [{"name": "clerk", "arguments": {"message": "draw"}}]}
    model = Scripted([call, "Drawn."])
    tool = A2ATool(url=server.url, name="clerk", description="Draws.")
    SingleAgent(model, tools=[tool]).invoke({"q": "?"})
    shown = model.requests[1].messages[-1]["content"]
    assert [part["type"] for part in shown] == ["text", "image"]
    assert (shown[1]["media_type"], shown[1]["name"]) == ("image/png", "a.png")


@pytest.mark.parametrize(
    ("said", "reason"), [("fail", "failed: No such shelf"), ("refuse", "rejected: Not for you")]
)
def test_a_task_that_ends_otherwise_is_an_error(server: Server, said: str, reason: str):
    with pytest.raises(NodeFailed, match=reason):
        asked(server.url, said)


def test_what_it_asks_is_a_question_of_the_run(server: Server):
    questions: list[Question] = []

    class Desk:
        async def ask(self, question: Question) -> Any:
            questions.append(question)
            return "the top one"

    async def whole() -> Any:
        built = graph(A2ANode(server.url)).build()
        return (await built.run("ask", channel=Desk())).output["message"]

    assert asyncio.run(whole()) == "You said the top one."
    assert [question.text for question in questions] == ["Which shelf?"]


def test_a_run_that_pauses_sends_no_message_twice(server: Server):
    journal, built = MemoryJournal(), graph(A2ANode(server.url)).build()
    server.clerk.heard.clear()

    async def whole() -> Any:
        paused = await built.run("ask", run_id="r", journal=journal)
        assert paused.status == "paused"
        [question] = paused.questions
        return await built.resume("r", journal=journal, answers={question.id: "below"})

    result = asyncio.run(whole())
    assert result.output == {"message": "You said below."}
    assert [said for said, _, _ in server.clerk.heard] == ["ask", "below"]
    assert len({conversation for _, conversation, _ in server.clerk.heard} - {""}) == 1


def test_the_turns_of_a_thread_are_one_conversation(server: Server):
    server.clerk.heard.clear()
    journal, built = MemoryJournal(), graph(A2ANode(server.url)).build()

    async def whole() -> None:
        for text in ("one", "two"):
            await built.run(text, journal=journal, thread="t")

    asyncio.run(whole())
    first, second = (conversation for _, conversation, _ in server.clerk.heard)
    assert second
    assert first in ("", second)


def test_a_token_is_sent_and_not_shown(server: Server):
    server.headers.clear()
    node = A2ANode(server.url, token="hush-hush-1", headers={"X-Desk": "d1-secret"})
    graph(node).build().invoke("hi")
    assert {each["authorization"] for each in server.headers} == {"Bearer hush-hush-1"}
    assert {each["x-desk"] for each in server.headers} == {"d1-secret"}
    assert "hush" not in repr(node.config)


def test_a_card_that_leads_to_another_host_is_refused():
    with serving("http://localhost:9/") as running, pytest.raises(NodeFailed, match="localhost:9"):
        asked(running.url, "hi")


def test_an_agent_that_is_not_there_is_an_error():
    with pytest.raises(NodeFailed, match="cannot be asked"):
        asked("http://127.0.0.1:1", "hi")


def test_a_file_needs_leave_for_its_host(server: Server, tmp_path: Path):
    flow = tmp_path / "flow.yaml"
    flow.write_text(
        "version: 1\ngraph:\n  start: a\n  nodes:\n"
        f"    - {{id: a, type: a2a_agent, config: {{url: '{server.url}'}}}}\n"
    )
    with pytest.raises(SpecError, match=r"AX138.*--allow net:127\.0\.0\.1"):
        load(flow).invoke("hi")
    assert load(flow, allow={"net:127.0.0.1"}).invoke("hi").output == "You said hi."


def test_an_agent_that_has_the_tool_in_a_graph(server: Server):
    call = {"tool_calls": [{"name": "clerk", "arguments": {"message": "chairs"}}]}
    made = RootGraph("g")
    tool = A2ATool(url=server.url, name="clerk", description="Counts.")
    made.create_node(Agent(Scripted([call, "Done."]), tools=[tool]), name="boss")
    made.edge_from_entry("boss")
    made.edge_to_exit("boss")
    assert made.build().invoke({"message": "?"}).output == {"message": "Done."}


def two_calls(first: str, second: str) -> list[Any]:
    """Return the replies of a model that asks the clerk twice."""
    made = [
        {"tool_calls": [{"name": "clerk", "arguments": {"message": each}}]}
        for each in (first, second)
    ]
    return [*made, "Done."]


def boss(url: str, *replies: Any, **settings: Any) -> tuple[Any, Scripted]:
    model = Scripted(list(replies))
    tool = A2ATool(url=url, name="clerk", description="Counts.", **settings)
    made = RootGraph("g")
    made.create_node(Agent(model, tools=[tool]), name="boss")
    made.edge_from_entry("boss")
    made.edge_to_exit("boss")
    return made.build(), model


def test_each_question_of_each_call_has_an_answer_of_its_own(server: Server):
    journal, (built, model) = MemoryJournal(), boss(server.url, *two_calls("ask", "ask"))
    server.clerk.heard.clear()

    async def whole() -> Any:
        result = await built.run({"message": "?"}, run_id="r", journal=journal)
        for answer in ("the top one", "the lower one"):
            [question] = result.questions
            result = await built.resume("r", journal=journal, answers={question.id: answer})
        return result

    assert asyncio.run(whole()).output == {"message": "Done."}
    shown = [each.messages[-1]["content"] for each in model.requests[1:]]
    assert shown == ["You said the top one.", "You said the lower one."]
    assert [said for said, *_ in server.clerk.heard] == [
        "ask", "the top one", "ask", "the lower one",
    ]  # fmt: skip


def test_each_message_has_an_id_of_its_own(server: Server):
    built, _ = boss(server.url, *two_calls("chairs", "chairs"))
    server.clerk.heard.clear()
    built.invoke({"message": "?"})
    graph(A2ANode(server.url)).build().invoke("hi")
    assert len({id for *_, id in server.clerk.heard}) == 3


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("way", ["cancelled", "failed"])
def test_a_task_that_is_not_waited_for_any_more_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, streaming: bool, way: str
):
    taken: list[Any] = []
    sending = BaseClient.send_message

    async def noting(client: Any, request: Any) -> Any:
        async for event in sending(client, request):
            yield event
            taken.append(event)

    monkeypatch.setattr(BaseClient, "send_message", noting)

    async def whole(running: Server) -> None:
        run = graph(A2ANode(running.url, timeout_seconds=1_000)).build().start("wait")
        job = asyncio.ensure_future(run.result())
        async with asyncio.timeout(60):
            while not taken:  # noqa: ASYNC110  # another task sets it
                await asyncio.sleep(0.01)
        if way == "cancelled":
            run.cancel()
        else:  # it took too long
            loop: Any = asyncio.get_running_loop()
            now = loop.time
            loop.time = lambda: now() + 2_000
        assert (await job).status == way
        assert len(running.clerk.cancelled) == 1

    with serving(streaming=streaming) as running:
        asyncio.run(whole(running))


def test_a_message_that_is_sent_again_has_the_id_that_it_had(server: Server):
    journal, built = MemoryJournal(), graph(A2ANode(server.url)).build()
    server.clerk.heard.clear()

    async def whole() -> Any:
        run = built.start("wait", run_id="r", journal=journal)
        job = asyncio.ensure_future(run.result())
        async with asyncio.timeout(60):
            while not server.clerk.heard:  # noqa: ASYNC110  # another thread sets it
                await asyncio.sleep(0.01)
        run.cancel()
        await job
        [question] = (await built.resume("r", journal=journal)).questions
        assert question.kind == "uncertain"
        run = built.start(
            run_id="r", journal=journal, resuming=True, answers={question.id: "retry"}
        )
        job = asyncio.ensure_future(run.result())
        async with asyncio.timeout(60):
            while len(server.clerk.heard) < 2:  # noqa: ASYNC110  # another thread sets it
                await asyncio.sleep(0.01)
        run.cancel()
        await job

    asyncio.run(whole())
    assert len({id for *_, id in server.clerk.heard}) == 1


def test_a_task_goes_on_where_its_stream_broke_off(server: Server):
    with serving(breaks=True) as running:
        assert asked(running.url, "hello") == "You said hello."
        assert [said for said, *_ in running.clerk.heard] == ["hello"]
