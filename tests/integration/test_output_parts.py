"""Parts that models give beside text, in the shape of each API: they reach the reply, watchers, the
journal and, where they are images, the edges.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from axil import RootGraph
from axil_agent import Agent, ReplyError, SingleAgent
from axil_anthropic import AnthropicModel
from axil_gemini import GeminiModel
from axil_journals import MemoryJournal
from axil_models import Reply, Request
from axil_openai import OpenAIModel, OpenAIResponsesModel
from axil_testing.stub import Act, Call, Stub

MODELS = {
    "chat": OpenAIModel,
    "responses": OpenAIResponsesModel,
    "messages": AnthropicModel,
    "generate": GeminiModel,
}
MAKERS = [each for each in MODELS if each != "messages"]
PNG = "iVBORw0KGgo="
IMAGE = {"type": "image", "data": PNG, "media_type": "image/png"}
PAGE = "https://example.org/axil"


def ask(model: Any, chunks: list[Any] | None = None) -> Reply:
    request = Request(messages=[{"role": "user", "content": "hi"}])
    return asyncio.run(model.reply(request, (chunks if chunks is not None else []).append))


def made(dialect: str, server: Stub) -> Any:
    return MODELS[dialect]("m", server.key, server.url, retry={"max_tries": 1})


@pytest.mark.parametrize("dialect", MODELS)
def test_a_citation_is_a_part_of_the_reply_and_is_shown(dialect):
    chunks: list[Any] = []
    with Stub(dialect) as server:
        server.say(Act(text="An angle.", cited=PAGE))
        reply = ask(made(dialect, server), chunks)
    [part] = reply.parts
    assert (part["type"], part["url"], part["title"]) == ("citation", PAGE, "A page")
    assert [chunk["part"] for chunk in chunks if chunk["kind"] == "part"] == [part]
    assert Reply.read(json.loads(json.dumps(reply.plain()))) == reply


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_a_refusal_is_a_part_of_the_reply(dialect):
    with Stub(dialect) as server:
        server.say(Act(refusal="I would rather not."))
        reply = ask(made(dialect, server))
    assert [dict(part) for part in reply.parts] == [
        {"type": "refusal", "text": "I would rather not."}
    ]
    assert reply.finish == "refusal"


@pytest.mark.parametrize("dialect", MAKERS)
@pytest.mark.parametrize("text", ["", "Here it is."])
def test_an_image_reaches_the_edges_the_journal_and_watchers(dialect, text):
    chunks, journal = list[Any](), MemoryJournal()

    class Watch:
        def chunk(self, activation: Any, chunk: Any) -> None:
            chunks.append(chunk)

    with Stub(dialect) as server:
        server.say(Act(text=text, image=PNG), "A leaf.")
        g = RootGraph("g")
        g.create_node(Agent(made(dialect, server)), name="draw")
        g.create_node(Agent(made(dialect, server)), name="look")
        g.edge_from_entry("draw", ["q"])
        g.create_edge("draw", "look", ["picture"])
        g.edge_to_exit("look", ["answer"])
        result = asyncio.run(
            g.build().run({"q": "draw"}, run_id="r", journal=journal, observers=[Watch()])
        )
        entries = str(journal.entries("r"))
        seen = server.requests[1].text
    assert result.output == {"answer": "A leaf."}
    assert PNG in seen
    assert PNG in entries
    assert IMAGE in [chunk["part"] for chunk in chunks if chunk["kind"] == "part"]


def test_an_image_is_the_value_of_the_field_and_with_text_a_list_of_parts():
    with Stub() as server:
        server.say(Act(image=PNG), Act(text="Here.", image=PNG))
        agent = SingleAgent(made("chat", server))
        assert agent.invoke({"q": "?"}) == {"message": IMAGE}
        assert agent.invoke({"q": "?"}) == {"message": [{"type": "text", "text": "Here."}, IMAGE]}


@pytest.mark.parametrize("dialect", MODELS)
def test_an_empty_reply_is_asked_for_again_and_never_an_answer(dialect):
    with Stub(dialect) as server:
        server.say(Act(text=""), "An angle.", Act(text=""), Act(text=""), Act(text=""))
        agent = SingleAgent(made(dialect, server))
        assert agent.invoke({"q": "?"}) == {"message": "An angle."}
        with pytest.raises(ReplyError, match="AX652"):
            agent.invoke({"q": "?"})


def test_a_turn_that_the_service_pauses_is_continued_in_its_container():
    with Stub("messages") as server:
        server.say(
            Act(text="I search. ", finish="pause"),
            Act(text="Still. ", finish="pause"),
            Act(text="An angle.", cited=PAGE, calls=(Call(name="add", id="c1"),)),
            "Done.",
        )
        model = made("messages", server)
        reply = ask(model)
        bodies = [each.body for each in server.requests]
        assert (reply.text, reply.finish) == ("I search. Still. An angle.", "tools")
        assert [part["type"] for part in reply.parts] == ["provider_tool", "citation"]
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (33, 21)
        assert [len(body["messages"]) for body in bodies] == [1, 2, 2]
        assert [body.get("container") for body in bodies] == [None, "container_1", "container_1"]
        assert [block["type"] for block in bodies[2]["messages"][1]["content"]] == [
            *("server_tool_use", "text", "server_tool_use", "text"),
        ]
        result = {"role": "tool", "tool_call_id": "c1", "content": "3"}
        messages = [{"role": "user", "content": "hi"}, reply.message(), result]
        asyncio.run(model.reply(Request(messages=messages), lambda chunk: None))
        sent = server.requests[3].body["messages"]
    assert [each["role"] for each in sent] == ["user", "assistant", "user"]
    assert [block["type"] for block in sent[1]["content"]] == [
        *("server_tool_use", "text", "server_tool_use", "text"),
        *("text", "tool_use"),
    ]
