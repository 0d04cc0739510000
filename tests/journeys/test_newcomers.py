"""Programs of somebody who comes from another framework, and what is made of them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from axil import Context, Limits, NodeFailed, RootGraph, RunPaused, SpecError
from axil.plugin import UnknownComponent
from axil_agent import Agent, HistoryMemory, Scripted, SingleAgent
from axil_journals import MemoryJournal
from axil_models import image
from axil_openai import OpenAIModel
from axil_testing.stub import Stub


def said(model: Scripted, number: int = -1) -> list[Any]:
    return [message["content"] for message in model.requests[number].messages]


def test_a_text_is_sent_as_it_is_and_fields_are_a_prompt():
    model = Scripted(["From a manual."] * 3)
    agent = SingleAgent(model, "Be brief.")
    assert agent.invoke("Where does it come from?") == {"message": "From a manual."}
    assert said(model) == ["Be brief.", "Where does it come from?"]
    agent.invoke({"question": "Where?"})
    assert said(model)[1] != "Where?"
    templated = SingleAgent(model, prompt_template="Translate: {message}")
    templated.invoke("Hello.")
    assert "Translate: Hello." in said(model)[0]


def test_a_list_of_texts_and_images_is_a_message():
    with Stub() as server:
        SingleAgent(OpenAIModel("m", server.key, server.url)).invoke(
            ["What is it?", image("https://example.org/1.png")]
        )
        [message] = server.requests[0].body["messages"]
    assert [part["type"] for part in message["content"]] == ["text", "image_url"]
    assert message["content"][0]["text"] == "What is it?\n[image 1: 1.png]"


def test_a_thread_is_remembered_and_another_one_is_not():
    model = Scripted(["Hello."] * 5)
    agent = SingleAgent(model)
    agent.invoke("I am Ada.", thread="ada")
    agent.invoke("Who am I?", thread="ada")
    assert said(model) == ["I am Ada.", "Hello.", "Who am I?"]
    agent.invoke("Who am I?", thread="ben")
    assert said(model) == ["Who am I?"]
    agent.invoke("Who am I?")
    assert said(model) == ["Who am I?"]
    memory = HistoryMemory()
    own = SingleAgent(model, memories=[memory])
    own.invoke("Who am I?", thread="ada")
    assert own.providers == [memory]


def test_deps_are_those_of_the_call():
    def name(ctx: Context) -> str:
        """Return the player's name."""
        return ctx.deps["player"]

    model = Scripted([{"tool_calls": [{"name": "name", "arguments": {}}]}, "Hello."] * 2)
    agent = SingleAgent(model, tools=[name])
    agent.invoke("Hi.", deps={"player": "Ada"})
    assert said(model)[-1] == "Ada"
    asyncio.run(agent.run("Hi.", deps={"player": "Ben"}))
    assert said(model)[-1] == "Ben"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("openai:gpt-4.1-mini", '{"type": "openai", "name": "gpt-4.1-mini"}'),
        ("gpt-4.1-mini", '{"type": "openai", "name": "gpt-4.1-mini"}'),
        ("qwen2.5:7b", '{"type": "openai", "name": "qwen2.5:7b"}'),
    ],
)
def test_a_model_as_others_write_it_is_refused_with_what_to_write(written, meant):
    with pytest.raises(UnknownComponent) as raised:
        SingleAgent(written).invoke("Hi.")
    assert meant in str(raised.value)


def test_an_edge_of_a_graph_without_nodes_says_that_there_are_none():
    with pytest.raises(SpecError, match="Nodes: none yet"):
        RootGraph("g").edge_from_entry("a")


def asking(body: Any) -> Any:
    graph = RootGraph("g")
    graph.create_node(body, name="a")
    graph.edge_from_entry("a", ["mail"])
    graph.edge_to_exit("a", ["sent"])
    return graph.build()


def test_a_question_says_how_it_is_answered_and_that_it_is_awaited():
    async def awaits(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"sent": await ctx.ask("Send it?")}

    def forgets(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        question: Any = ctx.ask("Send it?")
        made.append(question)
        return {"sent": question}

    made: list[Any] = []
    with pytest.raises(RunPaused, match="resume"):
        asking(awaits).invoke({"mail": "x"})
    with pytest.raises(NodeFailed, match="Await it"):
        asking(forgets).invoke({"mail": "x"}, journal=MemoryJournal())
    made[0].close()


def test_a_limit_of_money_without_a_price_is_logged_once(caplog):
    graph = RootGraph("g", limits=Limits(cost=1.0))
    for name in ("a", "b"):
        graph.create_node(Agent(Scripted(["Yes."])), name=name)
    graph.edge_from_entry("a")
    graph.create_edge("a", "b")
    graph.edge_to_exit("b")
    with caplog.at_level(logging.WARNING, "axil_models"):
        graph.build().invoke("Hi.")
    assert [record.message for record in caplog.records] == [
        "scripted has no price, so no limit of its cost holds: give pricing."
    ]
