"""Laws of the server: workflows as tools of the SDK's own client, in the process, over pipes and
over HTTP.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import ElicitResult, JSONRPCRequest
from pydantic import BaseModel, SecretStr

from axil import ConfigError, Limits, Question, RootGraph
from axil.plugin import ComponentBlocked
from axil_journals import MemoryJournal
from axil_mcp import MCPTools, Unserved, guard
from axil_mcp.files import Tools
from axil_mcp.guard import HttpConfig, Sessions, app_of
from axil_mcp.served import ANSWER_TOOL, RUN_ID, form_of
from axil_mcp.serving import Serving, WorkflowServer

from .kit import fired, until

TOKEN = "a-token-of-some-length"


def greeting() -> RootGraph:
    graph = RootGraph("greet")
    graph.create_node(lambda inputs: {"text": f"Hello {inputs['name']}!"}, name="hello")
    graph.edge_from_entry("hello", {"name": "whom to greet"})
    graph.edge_to_exit("hello", {"text": "the greeting"})
    return graph.build()


def asking(question: Question | str, again: Question | None = None) -> RootGraph:
    """Asks, perhaps twice, and tells what was said; what it did before the first question is
    counted.
    """
    graph = RootGraph("ask")

    async def ask(ctx: Any) -> dict[str, Any]:
        first = await ctx.ask(question)
        return {"said": [first] if again is None else [first, await ctx.ask(again)]}

    graph.create_node(ask, name="ask")
    graph.edge_from_entry("ask", {})
    graph.edge_to_exit("ask", ["said"])
    return graph.build()


class Slow:
    """A workflow that waits, and knows what became of its runs; ``together``: until so many are at
    it at once.
    """

    def __init__(self, together: int = 0) -> None:
        self.together, self.met = together, asyncio.Event()
        self.begun = self.cancelled = self.at_once = self.most = 0
        graph = RootGraph("slow")
        graph.create_node(self.wait, name="wait")
        graph.edge_from_entry("wait", {"seconds": ""})
        graph.edge_to_exit("wait", ["done"])
        self.graph = graph.build()

    async def wait(self, inputs: dict[str, Any]) -> dict[str, Any]:
        self.begun += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        if self.at_once == self.together:
            self.met.set()
        try:
            if self.together:
                await self.met.wait()
            await asyncio.sleep(inputs["seconds"])
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.at_once -= 1
        return {"done": True}


def text(result: Any) -> str:
    return result.content[0].text


OLDER = pytest.param(
    "legacy",
    marks=pytest.mark.skipif(
        os.environ.get("AXIL_HYPOTHESIS") != "thorough", reason="the older protocol: make thorough"
    ),
)


@pytest.fixture(params=["auto", OLDER])
def mode(request: pytest.FixtureRequest) -> str:
    """The protocol of 2026, and the one before."""
    return request.param


# --------------------------------------------------------------------------------------------------


def test_a_workflow_is_a_tool_with_its_inputs_and_its_output(mode):
    async def main() -> None:
        async with Client(WorkflowServer({"greet": greeting()}).server, mode=mode) as client:
            (tool, *_) = (await client.list_tools()).tools
            assert tool.input_schema["properties"] == {"name": {"description": "whom to greet"}}
            assert tool.input_schema["required"] == ["name"]
            assert tool.output_schema["properties"]["output"]["properties"] == {
                "text": {"description": "the greeting"}
            }
            result = await client.call_tool("greet", {"name": "Ada"})
            assert not result.is_error
            assert result.structured_content["output"] == {"text": "Hello Ada!"}
            assert json.loads(text(result)) == {"text": "Hello Ada!"}
            for wrong in ({}, {"name": "Ada", "nam": 1}):
                refused = await client.call_tool("greet", wrong)
                assert refused.is_error
                assert text(refused).startswith("AX936")
            with pytest.raises(MCPError, match="no tool 'shout'"):
                await client.call_tool("shout", {})

    asyncio.run(main())


def test_a_typed_state_is_the_tools_schema():
    class State(BaseModel):
        topic: str
        words: int = 3

    graph = RootGraph("typed", state=State)
    graph.create_node(lambda state: {"topic": " ".join([state.topic] * state.words)}, name="n")
    graph.edge_from_entry("n")
    graph.edge_to_exit("n")

    async def main() -> None:
        async with Client(WorkflowServer({"typed": graph.build()}).server) as client:
            (tool, *_) = (await client.list_tools()).tools
            assert {
                name: schema["type"] for name, schema in tool.input_schema["properties"].items()
            } == {
                "topic": "string",
                "words": "integer",
            }
            result = await client.call_tool("typed", {"topic": "a", "words": 2})
            assert result.structured_content["output"] == {"topic": "a a", "words": 2}
            assert text(await client.call_tool("typed", {"words": "two"})).startswith("AX936")

    asyncio.run(main())


def test_a_workflow_that_fails_says_which_node_did():
    graph = RootGraph("g")
    graph.create_node(lambda inputs: {"x": 1 / 0}, name="divide")
    graph.edge_from_entry("divide", {})
    graph.edge_to_exit("divide", ["x"])

    async def main() -> None:
        async with Client(WorkflowServer({"g": graph.build()}).server) as client:
            result = await client.call_tool("g", {})
            assert result.is_error
            assert 'node "divide"' in text(result)
            assert "ZeroDivisionError" in text(result)

    asyncio.run(main())


def test_a_call_says_how_its_run_ended_as_its_record_does():
    def act(inputs: dict[str, Any]) -> dict[str, Any]:
        if inputs["message"] == "fail":
            raise ValueError("no paper")
        return {"text": inputs["message"]}

    def chain(name: str, limits: Limits | None = None) -> RootGraph:
        graph = RootGraph(name, limits=limits)
        graph.create_node(act, name="act")
        graph.create_node(lambda inputs: {"text": inputs["text"]}, name="pass")
        graph.edge_from_entry("act", {"message": ""})
        graph.create_edge("act", "pass", {"text": ""})
        graph.edge_to_exit("pass", {"text": ""})
        return graph.build()

    calls = {
        "done": ("chain", {"message": "hello"}, "hello"),
        "failed": ("chain", {"message": "fail"}, "no paper"),
        "limited": ("short", {"message": "hello"}, "its limit"),
        "paused": ("ask", {}, "Which paper?"),  # of a client that cannot be asked
    }
    flows = {"chain": chain("chain"), "short": chain("short", Limits(firings=1))}

    async def main() -> None:
        journal = MemoryJournal()
        serving = Serving(journal=journal)
        server = WorkflowServer({**flows, "ask": asking("Which paper?")}, serving=serving).server
        async with Client(server) as client:
            for end, (tool, given, said) in [*calls.items()] * 10:
                before = {info.run_id for info in journal.runs()}
                result = await client.call_tool(tool, given)
                assert result.is_error == (end != "done")
                assert said in text(result)
                made = [info.status for info in journal.runs() if info.run_id not in before]
                assert made == [end]

    asyncio.run(main())


async def unasked(context: Any, params: Any) -> Any:
    raise AssertionError


def test_outputs_that_json_cannot_express_are_shown_as_text():
    graph = RootGraph("g")
    graph.create_node(lambda inputs: {"x": [float("nan"), {1, 2}, "\ud800", Path("a")]}, name="n")
    graph.edge_from_entry("n", {})
    graph.edge_to_exit("n", ["x"])

    async def main() -> None:
        server = WorkflowServer({"g": graph.build()}).server
        async with Client(server, mode="legacy", elicitation_callback=unasked) as client:
            assert (await client.call_tool("g", {})).structured_content["output"] == {
                "x": ["NaN", "{1, 2}", "?", "a"]
            }

    asyncio.run(main())


def test_names_of_tools_are_distinguished():
    assert list(WorkflowServer({"a b.c": greeting()}).tools) == ["a_b_c"]
    with pytest.raises(Unserved, match=r'AX935.*"a_b"'):
        WorkflowServer({"a b": greeting(), "a_b": greeting()})


def test_firings_are_progress(mode, monkeypatch):
    monkeypatch.setattr("axil_mcp.serving._LAST_WORDS", 60)

    async def main() -> list[Any]:
        seen: list[Any] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            seen.append((done, message))

        async with Client(WorkflowServer({"greet": greeting()}).server, mode=mode) as client:
            await client.call_tool("greet", {"name": "Ada"}, progress_callback=progress)
            await until(lambda: seen)
        return seen

    assert asyncio.run(main()) == [(1.0, "hello")]


# --------------------------------------------------------------------------------------------------

FORM = Question(text="Where to?", kind="form", data={"fields": {"city": "the city", "street": ""}})
QUESTIONS = [
    (Question(text="Send it?", kind="approval"), {"approved": True}, True),
    (Question(text="Which?", kind="choice", options=("a", "b")), {"answer": "b"}, "b"),
    (FORM, {"city": "Bonn", "street": "Weg 1"}, {"city": "Bonn", "street": "Weg 1"}),
    (Question(text="Why?"), {"answer": "because"}, "because"),
]


@pytest.mark.parametrize(
    ("question", "content", "said"), QUESTIONS, ids=["approval", "choice", "form", "text"]
)
def test_what_a_node_asks_is_asked_through_the_client(mode, question, content, said):
    async def main() -> Any:
        async def elicit(context: Any, params: Any) -> ElicitResult:
            assert params.message.startswith(question.text)
            assert dict(params.requested_schema) == form_of(question)
            return ElicitResult(action="accept", content=content)

        server = WorkflowServer({"ask": asking(question)})
        async with Client(server.server, mode=mode, elicitation_callback=elicit) as client:
            return (await client.call_tool("ask", {})).structured_content["output"]

    assert asyncio.run(main()) == {"said": [said]}


def test_a_run_may_ask_more_than_once_and_does_nothing_twice(mode):
    async def main() -> Any:
        answers = iter([{"answer": "one"}, {"wrong": 1}, {"answer": "two"}])
        asked: list[str] = []

        async def elicit(context: Any, params: Any) -> ElicitResult:
            asked.append(params.message)
            if mode == "legacy" and asked == ["A?", "B?"]:
                next(answers)  # over a live connection an answer that does not fit is no answer
            return ElicitResult(action="accept", content=next(answers))

        server = WorkflowServer({"ask": asking("A?", Question(text="B?"))})
        async with Client(server.server, mode=mode, elicitation_callback=elicit) as client:
            return (
                (await client.call_tool("ask", {})).structured_content["output"],
                asked,
                len(server._waiting),
            )

    output, asked, left = asyncio.run(main())
    assert output == {"said": ["one", "two"]}
    assert asked == (["A?", "B?", "B?"] if mode == "auto" else ["A?", "B?"])
    assert left == 0


def test_a_person_who_declines_and_a_client_that_cannot_ask_are_clear_errors(mode):
    async def main() -> tuple[str, str]:
        async def elicit(context: Any, params: Any) -> ElicitResult:
            return ElicitResult(action="decline")

        server = WorkflowServer(
            {"ask": asking(Question(text="Send it?", kind="choice", options=("now", "never")))}
        )
        async with Client(server.server, mode=mode, elicitation_callback=elicit) as client:
            declined = await client.call_tool("ask", {})
        async with Client(server.server, mode=mode) as client:
            unable = await client.call_tool("ask", {})
        assert declined.is_error
        assert unable.is_error
        return text(declined), text(unable)

    declined, unable = asyncio.run(main())
    assert declined.startswith("AX938")
    assert "decline" in declined
    assert "Send it?\nOne of: now, never" in unable
    assert "elicitation" in unable


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("question", "answer", "given"),
    [
        (Question(text="Which?"), "this", "this"),
        (Question(text="Send?", kind="approval"), "no", False),
        (Question(text="Send?", kind="approval"), True, True),
    ],
)
def test_a_client_that_cannot_be_asked_answers_by_the_id_of_the_run(mode, question, answer, given):
    async def main() -> None:
        server = WorkflowServer({"ask": asking(question)}).server
        async with Client(server, mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["ask", ANSWER_TOOL]
            asked = await client.call_tool("ask", {})
            assert asked.is_error
            run_id = asked.meta[RUN_ID]
            assert question.text in text(asked)
            assert run_id in text(asked)
            reply = {"run_id": run_id, "answer": answer}
            done = await client.call_tool(ANSWER_TOOL, reply)
            assert done.structured_content == {"output": {"said": [given]}, "run_id": run_id}
            again = await client.call_tool(ANSWER_TOOL, reply)
            assert text(again).startswith("AX937")

    asyncio.run(main())


def test_an_answer_that_is_no_option_is_refused_and_the_run_waits_on():
    question = Question(text="When?", kind="choice", options=("now", "never"))

    async def main() -> None:
        async with Client(WorkflowServer({"ask": asking(question)}).server) as client:
            run_id = (await client.call_tool("ask", {})).meta[RUN_ID]
            ways = {"run_id": run_id}
            refused = await client.call_tool(ANSWER_TOOL, {**ways, "answer": "soon"})
            assert text(refused).startswith("AX938")
            done = await client.call_tool(ANSWER_TOOL, {**ways, "answer": "now"})
            assert done.structured_content["output"] == {"said": ["now"]}

    asyncio.run(main())


def test_a_paused_run_is_continued_once_and_only_by_the_call_that_it_belongs_to():
    async def main() -> None:
        server = WorkflowServer(
            {"ask": asking("A?"), "other": asking("A?")}, serving=Serving(most_paused=2)
        )

        async def never(context: Any, params: Any) -> ElicitResult:
            raise AssertionError

        async with Client(server.server, elicitation_callback=never) as client:

            async def call(name: str, state: str | None = None, **arguments: Any) -> Any:
                replies = {"q1": ElicitResult(action="accept", content={"answer": "yes"})}
                return await client.session.call_tool(
                    name,
                    arguments,
                    request_state=state,
                    input_responses=replies if state else None,
                    allow_input_required=True,
                )

            states = [(await call("ask")).request_state for _ in range(3)]
            # given up for a newer one
            assert text(await call("ask", states[0])).startswith("AX937")
            assert text(await call("other", states[1])).startswith("AX937")
            assert text(await call("ask", "guessed")).startswith("AX937")
            assert (await call("ask", states[1])).structured_content["output"] == {"said": ["yes"]}
            assert text(await call("ask", states[1])).startswith("AX937")

    asyncio.run(main())


def test_a_paused_run_outlives_its_server_and_is_taken_by_one_of_two(tmp_path):
    journal = MemoryJournal()  # what has to survive is here and in the folder
    serving = Serving(journal=journal, waiting=tmp_path / "waiting")

    async def call(state: str | None = None, name: str = "Ada") -> Any:
        """Call over a server of its own."""

        async def never(context: Any, params: Any) -> ElicitResult:
            raise AssertionError

        server = WorkflowServer({"ask": asking("A?", Question(text="B?"))}, serving=serving)
        async with Client(server.server, elicitation_callback=never) as client:
            return await client.session.call_tool(
                "ask",
                {"name": name},
                request_state=state,
                input_responses={"q1": ElicitResult(action="accept", content={"answer": "yes"})}
                if state
                else None,
                allow_input_required=True,
            )

    async def main() -> None:
        first = (await call()).request_state
        assert text(await call(first, "Eve")).startswith("AX937")
        both = await asyncio.gather(call(first), call(first))
        [second] = [each.request_state for each in both if hasattr(each, "request_state")]
        assert [text(each)[:5] for each in both if hasattr(each, "content")] == ["AX937"]
        assert (await call(second)).structured_content["output"] == {"said": ["yes", "yes"]}
        assert (len(journal.runs()), list((tmp_path / "waiting").iterdir())) == (1, [])

    asyncio.run(main())


def test_a_workflow_is_a_prompt_and_a_resource_and_its_files_are_resources(tmp_path):
    graph = RootGraph("write")

    async def write(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        (ctx.workspace / "notes of today.txt").write_text(inputs["note"])
        return {"written": True}

    graph.create_node(write, name="write")
    graph.edge_from_entry("write", {"note": "what to note"})
    graph.edge_to_exit("write", ["written"])
    (tmp_path / "secret.txt").write_text("other")

    async def main() -> None:
        server = WorkflowServer({"write": graph.build()}, serving=Serving(workspace=str(tmp_path)))
        async with Client(server.server) as client:
            [prompt] = (await client.list_prompts()).prompts
            assert [(each.name, each.required) for each in prompt.arguments] == [("note", True)]
            [message] = (await client.get_prompt("write", {"note": "moss"})).messages
            assert "Call the tool write with these arguments" in message.content.text
            [about] = (await client.list_resources()).resources
            [described] = (await client.read_resource(str(about.uri))).contents
            assert "what to note" in described.text
            link = (await client.call_tool("write", {"note": "moss"})).content[1]
            [file] = (await client.read_resource(str(link.uri))).contents
            assert (file.text, link.name) == ("moss", "notes of today.txt")
            run = str(link.uri).rpartition("/")[0]
            for uri in (f"{run}/../secret.txt", f"{run}/%2e%2e/secret.txt", "axil://runs/../x"):
                with pytest.raises(MCPError, match="there is no resource"):
                    await client.read_resource(uri)

    asyncio.run(main())


def test_a_call_that_is_cancelled_before_there_is_room_leaves_the_paused_run_waiting():
    async def main() -> Any:
        slow = Slow()
        server = WorkflowServer(
            {"ask": asking("A?"), "slow": slow.graph}, serving=Serving(concurrency=1)
        )

        async def never(context: Any, params: Any) -> ElicitResult:
            raise AssertionError

        async with Client(server.server, elicitation_callback=never) as client:

            def call(name: str, arguments: Any, state: str | None = None) -> asyncio.Task[Any]:
                replies = (
                    {"q1": ElicitResult(action="accept", content={"answer": "yes"})}
                    if state
                    else None
                )
                ways: Any = {
                    "request_state": state,
                    "input_responses": replies,
                    "allow_input_required": True,
                }
                return asyncio.ensure_future(client.session.call_tool(name, arguments, **ways))

            state = (await call("ask", {})).request_state
            busy = call("slow", {"seconds": 3600})
            await until(lambda: slow.begun)
            given_up = call("ask", {}, state)
            room = server._room
            await until(lambda: room._waiters)
            given_up.cancel()
            await until(lambda: not room._waiters)
            busy.cancel()
            return (await call("ask", {}, state)).structured_content["output"]

    assert asyncio.run(main()) == {"said": ["yes"]}


# --------------------------------------------------------------------------------------------------


def test_cancelling_a_call_cancels_its_run_and_no_other(mode):
    async def main() -> tuple[int, int, bool]:
        slow = Slow()
        async with Client(WorkflowServer({"slow": slow.graph}).server, mode=mode) as client:
            one = asyncio.ensure_future(client.call_tool("slow", {"seconds": 3600}))
            other = asyncio.ensure_future(client.call_tool("slow", {"seconds": 0.5}))
            await until(lambda: slow.begun == 2)
            one.cancel()
            await until(lambda: slow.cancelled)
            done = (await other).structured_content["output"]["done"]
        return slow.begun, slow.cancelled, done

    assert asyncio.run(main()) == (2, 1, True)


def test_runs_at_the_same_time_are_bounded():
    async def main() -> int:
        slow = Slow(together=2)
        async with Client(
            WorkflowServer({"slow": slow.graph}, serving=Serving(concurrency=2)).server
        ) as client:
            await asyncio.gather(*(client.call_tool("slow", {"seconds": 0.01}) for _ in range(6)))
        return slow.most

    assert asyncio.run(main()) == 2


# --------------------------------------------------------------------------------------------------


def axil(*arguments: str) -> list[str]:
    return ["-W", "ignore", "-m", "axil_cli.main", *arguments]


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two workflow files: one that answers, one that asks."""
    folder = tmp_path_factory.mktemp("flows")
    greet = {
        "graph": {
            "id": "greet",
            "description": "Greets.",
            "nodes": [{"id": "A", "type": "literal", "config": {"content": "Hello!"}}],
        }
    }
    nodes = [{"id": "A", "type": "human", "config": {"description": "Really?"}}]
    files = []
    for name, data in (("greet", greet), ("ask", {"graph": {"id": "ask", "nodes": nodes}})):
        data = {"version": "1.0.0", **data}
        data["graph"] |= {"edges": [], "start": ["A"], "end": ["A"]}
        (folder / f"{name}.json").write_text(json.dumps(data))
        files.append(str(folder / f"{name}.json"))
    return files


def test_the_command_serves_files_over_pipes(flows, mode):
    async def main() -> None:
        async def elicit(context: Any, params: Any) -> ElicitResult:
            assert "Really?" in params.message
            return ElicitResult(action="accept", content={"answer": "yes, really"})

        program = StdioServerParameters(command=sys.executable, args=axil("mcp", "serve", *flows))
        async with Client(program, mode=mode, elicitation_callback=elicit) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {"greet", "ask"}
            assert tools["greet"].description == "Greets."
            assert text(await client.call_tool("greet", {"input": "x"})) == "Hello!"
            assert text(await client.call_tool("ask", {"input": "x"})) == "yes, really"

    asyncio.run(main())


def test_a_client_that_is_gone_in_the_middle_of_an_answer_ends_the_server_in_peace(monkeypatch):
    @asynccontextmanager
    async def gone(stdin: Any) -> AsyncGenerator[tuple[Any, Any]]:
        """Yield the SDK's streams, whose other end is closed: what is written first fails, in a
        task of theirs.
        """

        async def write(answers: Any) -> None:
            await answers.receive()
            raise BrokenPipeError

        asked, read = anyio.create_memory_object_stream[Any](1)
        answer, answers = anyio.create_memory_object_stream[Any](0)
        await asked.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="ping")))
        async with asked, read, answer, answers, anyio.create_task_group() as group:
            group.start_soon(write, answers)
            yield read, answer

    monkeypatch.setattr("mcp.server.stdio.stdio_server", gone)
    asyncio.run(WorkflowServer({"greet": greeting()}).stdio())


def test_a_workflow_is_a_tool_of_another_workflows_agent(flows):
    """Both halves of this plugin, over pipes; the question goes through both runs."""

    async def body(ctx: Any) -> Any:
        async with MCPTools(
            name="flows", command=[sys.executable, *axil("mcp", "serve", *flows)]
        ) as toolset:
            tools = {tool.name: tool for tool in await toolset.tools(ctx)}
            return [
                await tools["flows__greet"]({"input": "x"}, ctx),
                await tools["flows__ask"]({"input": "x"}, ctx),
            ]

    class Person:
        async def ask(self, question: Any) -> Any:
            return "indeed"

    greeted, asked = fired(body, channel=Person())
    assert json.loads(greeted)["output"] == "Hello!"
    assert json.loads(asked)["output"] == "indeed"


# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Served:
    url: str

    @asynccontextmanager
    async def client(self, token: str = TOKEN, **ways: Any) -> AsyncGenerator[Client]:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
            Client(streamable_http_client(self.url, http_client=http), **ways) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def serving(flows: list[str]) -> Iterator[Served]:
    """The command that serves them; it keeps nothing of a client."""
    command = [sys.executable, *axil("mcp", "serve", *flows, "--transport", "http", "--port", "0")]
    environment = {**os.environ, "AXIL_MCP_TOKEN": TOKEN}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            found = re.search(r"listening at (http://127\.0\.0\.1:\d+/mcp)", line)
            assert found, line + process.stderr.read()
            yield Served(found[1])
        finally:
            process.kill()


def test_two_clients_are_served_over_http_at_once(serving, mode):
    async def main() -> None:
        async def elicit(context: Any, params: Any) -> ElicitResult:
            return ElicitResult(action="accept", content={"answer": "yes"})

        async with (
            serving.client(mode=mode, elicitation_callback=elicit) as one,
            serving.client(mode=mode) as other,
        ):
            asked, *greeted = await asyncio.gather(
                one.call_tool("ask", {"input": "x"}),
                *(c.call_tool("greet", {"input": "x"}) for c in (one, other) for _ in range(3)),
            )
            assert text(asked) == "yes"
            assert [text(each) for each in greeted] == ["Hello!"] * 6

    asyncio.run(main())


def test_a_request_without_the_token_or_with_a_strange_host_gets_nothing(serving):
    base = serving.url.removesuffix("/mcp")
    known = {"Authorization": f"Bearer {TOKEN}"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    wrong = [{}, *({"Authorization": value} for value in ("Bearer wrong", TOKEN, f"Basic {TOKEN}"))]
    attempts = [
        (method, base + path, headers)
        for path in ("/mcp", "/", "/docs", "/mcp/")
        for method in ("GET", "POST", "DELETE", "OPTIONS")
        for headers in wrong
    ]

    def attempted(attempt: tuple[str, str, dict[str, str]]) -> int:
        method, url, headers = attempt
        return http.request(method, url, headers=headers).status_code

    with httpx2.Client(timeout=60) as http, ThreadPoolExecutor(8) as threads:
        for attempt, status in zip(attempts, threads.map(attempted, attempts), strict=True):
            assert status == 401, attempt
        assert (
            http.post(serving.url, json=body, headers={**known, "Host": "evil.example"}).status_code
            == 421
        )
        for host in ("127.0.0.1:1@x", "127.0.0.1:x", "[::1]:1@x", "localhost, evil.example"):
            answer = http.post(serving.url, json=body, headers={**known, "Host": host})
            assert answer.status_code == 400, host
        assert (
            http.post(
                serving.url, json=body, headers={**known, "Origin": "https://evil.example"}
            ).status_code
            == 403
        )
        assert http.get(base + "/docs", headers=known).status_code == 404
        twice = [("Authorization", "Bearer wrong"), ("Authorization", f"Bearer {TOKEN}")]
        assert http.post(serving.url, json=body, headers=twice).status_code == 401


@pytest.mark.parametrize(
    ("sent", "answer"), [(b"", b""), (b"GET /mcp HTTP/1.1\r\nHost: x", b"408")]
)
def test_headers_that_do_not_come_end_a_connection(monkeypatch, sent, answer):
    monkeypatch.setattr(guard, "bounded_protocol", partial(guard.bounded_protocol, 0.1))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "lifespan"
        await receive()
        await send({"type": "lifespan.startup.complete"})
        with suppress(asyncio.CancelledError):
            await receive()

    @asynccontextmanager
    async def ready() -> AsyncGenerator[None]:
        yield

    async def main() -> bytes:
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        config = HttpConfig(token=SecretStr(TOKEN), port=0)
        server: Any = SimpleNamespace(ready=ready)
        serving = asyncio.create_task(guard.serve(server, config, address.set_result))
        port = int((await address).removesuffix("/mcp").rpartition(":")[2])
        async with asyncio.timeout(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            found = await reader.read()
        writer.close()
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        return found

    monkeypatch.setattr(guard, "app_of", lambda server, config: app)
    assert asyncio.run(main())[9:12] == answer


def test_an_agent_with_the_wrong_token_is_reported(serving):
    async def body(ctx: Any) -> Any:
        async with MCPTools(
            name="f", url=serving.url, token="not-the-token", backoff_seconds=60
        ) as toolset:
            return await toolset.tools(ctx)

    with pytest.raises(Exception, match=r"AX920.*HTTP 401") as caught:
        fired(body)
    assert "not-the-token" not in str(caught.value)


def test_an_agent_with_the_token_is_served(serving, monkeypatch):
    monkeypatch.setenv("FLOWS_TOKEN", TOKEN)

    async def body(ctx: Any) -> Any:
        async with MCPTools(name="f", url=serving.url, token="${FLOWS_TOKEN}") as toolset:
            tools = {tool.name: tool for tool in await toolset.tools(ctx)}
            return await tools["f__greet"]({"input": "x"}, ctx)

    assert json.loads(fired(body))["output"] == "Hello!"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_over_http_a_cancelled_call_ends_its_run(mode):
    import uvicorn

    async def main() -> tuple[int, int]:
        slow = Slow()
        server = WorkflowServer({"slow": slow.graph})
        app = app_of(server, HttpConfig(token=SecretStr(TOKEN)))
        http = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="on"))
        job = asyncio.ensure_future(http.serve())
        await until(lambda: http.started)
        port = http.servers[0].sockets[0].getsockname()[1]
        async with Served(f"http://127.0.0.1:{port}/mcp").client(mode=mode) as client:
            call = asyncio.ensure_future(client.call_tool("slow", {"seconds": 3600}))
            await until(lambda: slow.begun)
            call.cancel()
            await until(lambda: slow.cancelled)
        http.should_exit = True
        await job
        return slow.begun, slow.cancelled

    assert asyncio.run(main()) == (1, 1)


def test_the_command_refuses_what_it_cannot_serve(flows, capsys, monkeypatch):
    from axil_cli.main import main

    monkeypatch.delenv("AXIL_MCP_TOKEN", raising=False)
    for arguments, reported in (
        (["serve", flows[0], "--transport", "http"], "AX934 --token-env"),
        (["serve", flows[0], flows[0]], "AX935"),
        (["serve", flows[0], "--concurrency", "0"], "AX934 --concurrency"),
        (["serve", flows[0], "--set", "x"], "AX700 --set"),
    ):
        assert main(["mcp", *arguments]) == 2
        assert reported in capsys.readouterr().err
    monkeypatch.setenv("AXIL_MCP_TOKEN", "short")
    assert main(["mcp", "serve", flows[0], "--transport", "http", "--port", "0"]) == 2
    assert "fewer than 16 characters" in capsys.readouterr().err


def test_a_door_needs_a_token():
    with pytest.raises(ConfigError, match="AX934"):
        app_of(WorkflowServer({"greet": greeting()}), HttpConfig(token=SecretStr("")))


# --------------------------------------------------------------------------------------------------


def test_the_command_shows_the_tools_that_a_file_uses(tmp_path, various, capsys):
    from axil_cli.main import main

    use = {"type": "mcp", **various, "allow": ["add", "slow"], "expect": "sha256:" + "0" * 64}
    graph = {
        "id": "g",
        "nodes": [{"id": "A", "type": "agent", "config": {"model": "scripted", "tools": [use]}}],
        "edges": [],
    }
    (tmp_path / "flow.json").write_text(
        json.dumps({"version": "1.0.0", "graph": {**graph, "start": ["A"], "end": ["A"]}})
    )
    assert main(["mcp", "tools", str(tmp_path / "flow.json")]) == 2
    assert "AX921" in capsys.readouterr().err
    assert (
        main(["mcp", "tools", str(tmp_path / "flow.json"), "--allow", "mcp", "--format", "json"])
        == 0
    )
    (reported,) = json.loads(capsys.readouterr().out)
    assert reported["digest"].startswith("sha256:")
    assert [tool["name"] for tool in reported["tools"]] == ["v__add", "v__slow"]
    assert main(["mcp", "tools", str(tmp_path / "flow.json"), "--allow", "mcp"]) == 0
    assert capsys.readouterr().out.startswith(
        f"v  {reported['digest']}\n  v__add  Adds two numbers.\n"
    )


# --------------------------------------------------------------------------------------------------


def test_a_lock_holds_what_a_server_offered(various):
    settings = {**various, "allow": ["add", "slow"], "expect": "sha256:" + "0" * 64}
    pinned = Tools.pinned(settings, frozenset({"mcp"}))
    assert pinned["server"] == "v"
    parts = ["description", "input_schema", "output_schema", "annotations"]
    assert {name: list(each) for name, each in pinned["tools"].items()} == {
        "add": parts,
        "slow": parts,
    }
    assert {len(digest) for each in pinned["tools"].values() for digest in each.values()} == {64}
    assert Tools.pinned(settings, frozenset({"mcp"})) == pinned
    with pytest.raises(ComponentBlocked, match="AX921"):
        Tools.pinned(settings, frozenset())


class Sessionful:
    """An application that gives a number to each session, and forgets it at DELETE."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.made = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope["headers"]).get(b"mcp-session-id", b"").decode()
        if scope["method"] == "DELETE":
            self.open.remove(given)
        elif not given:
            self.made += 1
            given = str(self.made)
            self.open.append(given)
        headers = [(b"mcp-session-id", given.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})


def test_a_client_with_many_sessions_takes_room_from_itself():
    app = Sessionful()
    sessions = Sessions(app, 5)

    async def ask(client: str, session: str = "", method: str = "POST") -> None:
        headers = [(b"mcp-session-id", session.encode())] if session else []
        scope = {"type": "http", "method": method, "client": (client, 1), "headers": headers}

        async def nothing(*_: Any) -> None:
            return None

        await sessions(scope, nothing, nothing)

    async def main() -> None:
        await ask("friend")  # 1
        for _ in range(20):
            await ask("greedy")
        assert app.open == ["1", "18", "19", "20", "21"]
        await ask("greedy", "18")  # used last
        await ask("other")  # 22
        assert app.open == ["1", "18", "20", "21", "22"]
        await ask("friend", "1", "DELETE")
        await ask("new")  # 23: there is room
        assert app.open == ["18", "20", "21", "22", "23"]

    asyncio.run(main())
