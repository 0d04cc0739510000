"""Calls by voice as runs: kept in SQLite, stopped in the middle, paused for a person, gone on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from axil import RootGraph
from axil_agent import Agent
from axil_models import Line
from axil_openai import OpenAIRealtimeModel
from axil_sqlite import SqliteJournal
from axil_testing.stub import Act, Call, RealtimeStub, speech

ASKED = speech(300) + speech(700, 0)
BOOKS = Act(calls=(Call(name="book", arguments={"name": "Ada"}, id="c1"),))


class Desk:
    """A workflow that takes calls, its service and its journal."""

    def __init__(self, server: RealtimeStub, path: Any) -> None:
        self.server, self.journal = server, SqliteJournal(path)
        self.booked: list[str] = []

        def book(name: str) -> str:
            """Book a table."""
            self.booked.append(name)
            return f"A table for {name} is booked."

        graph = RootGraph("desk")
        model = OpenAIRealtimeModel("m", server.key, server.url)
        graph.create_node(
            Agent(model, "You take calls.", tools=[book], approve=["book"]), name="talk"
        )
        graph.edge_from_entry("talk", ["message"])
        graph.edge_to_exit("talk", ["message"])
        self.workflow = graph.build()

    async def call(self, run: Any, *heard: bytes, stop: Callable[[], Any] | None = None) -> Any:
        """Return the result of a run on a line on which a person says this."""

        async def person() -> AsyncGenerator[bytes]:
            for chunk in heard:
                yield chunk
            if stop is not None:
                await asyncio.Event().wait()

        line = Line(person(), agent_begins=False)
        task = line.start(run)
        stopped = None if stop is None else asyncio.create_task(self._stopped(task, stop))
        async for _ in line:
            pass
        if stopped is not None:
            await stopped
            return None
        return await task

    async def _stopped(self, task: asyncio.Task[Any], is_time: Callable[[], Any]) -> None:
        async with asyncio.timeout(30):
            while not is_time():  # noqa: ASYNC110  # the service is in another thread
                await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.wait({task})

    def begun(self) -> Any:
        return self.workflow.run({"message": "A guest."}, run_id="r", journal=self.journal)

    def resumed(self, **more: Any) -> Any:
        return self.workflow.resume("r", journal=self.journal, **more)


@pytest.fixture
def desk(tmp_path):
    with RealtimeStub() as server:
        yield Desk(server, tmp_path / "runs.db")


def test_a_call_that_was_stopped_goes_on_on_a_new_line_and_nothing_is_paid_again(desk):
    desk.server.say("How can I help?", "Certainly.")
    desk.server.hear("Hello?", "A table.")

    async def twice() -> Any:
        await desk.call(
            desk.begun(), ASKED, stop=lambda: "Hello?" in str(desk.journal.entries("r"))
        )
        return await desk.call(desk.resumed(), ASKED)

    result = asyncio.run(asyncio.wait_for(twice(), 60))
    assert result.output["message"].splitlines() == [
        *("user: Hello?", "assistant: How can I help?"),
        *("user: A table.", "assistant: Certainly."),
    ]
    assert len(desk.server.of("response.create")) == 2
    assert result.usage.tokens["input_tokens"] == 22  # of both turns
    told = [e["item"]["content"][0].get("text") for e in desk.server.of("conversation.item.create")]
    assert told[-2:] == ["Hello?", "How can I help?"]


@pytest.mark.parametrize("on_a_line", [True, False])
def test_a_call_waits_for_an_approval_and_goes_on(desk, on_a_line):
    desk.server.say(BOOKS, "It is booked.")
    desk.server.hear("A table for Ada.")

    async def twice() -> Any:
        paused = await desk.call(desk.begun(), ASKED)
        assert (paused.status, desk.booked) == ("paused", [])
        [question] = paused.questions
        assert question.kind == "tool_approval"
        resumed = desk.resumed(answers={question.id: "allow"})
        return await (desk.call(resumed) if on_a_line else resumed)

    result = asyncio.run(asyncio.wait_for(twice(), 60))
    assert (result.status, desk.booked) == ("done", ["Ada"])
    said = ["user: A table for Ada.", *["assistant: It is booked."] * on_a_line]
    assert result.output["message"].splitlines() == said
    assert len(desk.server.of("response.create")) == 1 + on_a_line
    if on_a_line:
        kinds = [e["item"]["type"] for e in desk.server.of("conversation.item.create")]
        assert kinds[-2:] == ["function_call", "function_call_output"]


def test_no_audio_is_kept(desk, tmp_path):
    desk.server.hear("Hello?")
    asyncio.run(asyncio.wait_for(desk.call(desk.begun(), ASKED), 60))
    assert sum(len(str(entry)) for entry in desk.journal.entries("r")) < len(ASKED)
    assert "Hello?" in str(desk.journal.entries("r"))
