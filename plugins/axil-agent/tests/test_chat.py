"""Conversations in the state of typed graphs, and agents that are overridden."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from axil import GraphWarning, NodeFailed, RootGraph
from axil_agent import Agent, AgentSwitch, DynamicAgent, HistoryMemory, Scripted, SingleAgent
from axil_agent.human import HumanNode
from axil_agent.nodes import AgentNode

Script = Callable[..., Scripted]


class Talk(BaseModel):
    topic: str = ""
    messages: Annotated[list[dict[str, Any]], "append_messages"] = []


def after(*kinds: Any, state: Any = Talk, **options: Any) -> list[tuple[str, str]]:
    g = RootGraph("g", state=state)
    names = [f"n{i}" for i in range(len(kinds))]
    for name, kind in zip(names, kinds, strict=True):
        g.create_node(kind, name=name)
    for one, two in zip(["entry", *names], [*names, "exit"], strict=True):
        g.create_edge(one, two)
    given = {"messages": [{"role": "user", "content": "hi"}]}
    values = g.build().invoke(given, **options)[1]
    return [(m["role"], m["content"]) for m in values["messages"]]


def asked(model: Scripted, call: int = -1) -> list[tuple[str, Any]]:
    return [(m["role"], m["content"]) for m in model.requests[call].messages]


def test_an_agent_reads_the_conversation_and_writes_its_turn(script: Script):
    one, two = script("first"), script("second")
    said = after(Agent(one, "Be brief."), Agent(two))
    assert said == [("user", "hi"), ("assistant", "first"), ("assistant", "second")]
    assert asked(one) == [("system", "Be brief."), ("user", "hi")]
    assert asked(two) == [("user", "hi"), ("user", "n0: first")]


def test_speakers_have_names_and_nothing_is_said_twice():
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    called = {"tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}
    ann = Scripted([called, "Three.", "Sure."])
    bob = Scripted(["Are you sure?"])
    g = RootGraph("g", state="messages", cycles="allow")
    g.create_node(Agent(ann, tools=[add], memories=[HistoryMemory()]), name="ann")
    g.create_node(Agent(bob, prompt_template="Ask.", formatters="twins"), name="bob")
    g.create_node(Agent(Scripted(["Good."])), name="cid")
    g.edge_from_entry("ann")
    g.create_edge("ann", "bob", when=lambda state: len(state["messages"]) < 6)
    g.create_edge("bob", "ann")
    g.create_edge("ann", "cid", when=lambda state: len(state["messages"]) >= 6)
    g.edge_to_exit("cid")
    given = {"messages": [{"role": "user", "content": "1 + 2?"}]}
    said = g.build().invoke(given).state["messages"]
    assert [(m.get("source"), m["role"]) for m in said] == [
        (None, "user"),
        ("ann", "assistant"),
        ("ann", "tool"),
        ("ann", "assistant"),
        ("bob", "assistant"),
        ("ann", "assistant"),
        ("cid", "assistant"),
    ]
    assert asked(bob)[:2] == [("user", "1 + 2?"), ("user", "ann: Three.")]
    assert [role for role, _ in asked(ann)] == ["user", "assistant", "tool", "assistant", "user"]
    assert asked(ann)[-1] == ("user", "bob: Are you sure?")


def test_a_conversation_is_a_state_that_is_ready_made(script: Script):
    said = after(Agent(script("first")), state="messages")
    assert said == [("user", "hi"), ("assistant", "first")]


def test_a_switch_that_asks_a_model_shows_it_the_conversation(script: Script):
    judge = Scripted(["yes"])
    switch = AgentSwitch(judge, {"exit": "the user is angry"})
    after(Agent(script("Hello.")), switch, state="messages")
    ((_, shown),) = asked(judge)[1:]
    assert "ANSWER:\nuser: hi\nn0: Hello.\nCONDITION:" in shown


def test_a_switch_that_asks_a_model_shows_it_the_state_where_there_is_no_conversation():
    class Mood(BaseModel):
        mood: str = ""

    g = RootGraph("g", state=Mood)
    judge = Scripted(["yes"])
    g.create_node(AgentSwitch(judge, {"exit": "the user is angry"}), name="s")
    g.create_edges([("entry", "s"), ("s", "exit")])
    g.build().invoke({"mood": "angry"})
    assert "ANSWER:\n{'mood': 'angry'}\nCONDITION:" in asked(judge)[1][1]


class Instructed(Talk):
    instructions: str = ""


@pytest.mark.parametrize("settings", [{}, {"prompt_template": "Go."}])
@pytest.mark.parametrize(
    ("given", "default", "system"),
    [("Be a fern", "", "Be a fern"), ("Be a fern", "Be brief", "Be a fern"), ("", "Be b", "Be b")],
)
def test_the_instructions_of_a_dynamic_agent_are_a_field_of_the_state(
    given: str, default: str, system: str, settings: dict[str, Any]
):
    model = Scripted(["{}"])
    g = RootGraph("g", state=Instructed)
    g.create_node(DynamicAgent(model, default_instructions=default, **settings), name="d")
    g.create_edges([("entry", "d"), ("d", "exit")])
    g.build().invoke({"messages": [{"role": "user", "content": "q"}], "instructions": given})
    assert asked(model)[:2] == [("system", system), ("user", "q")]


@pytest.mark.parametrize("state", [Instructed, "messages"])
def test_a_dynamic_agent_without_instructions_is_an_error_in_a_typed_graph(state: Any):
    with pytest.raises(NodeFailed, match="AX651"):
        after(DynamicAgent(Scripted(["no"])), state=state)


def test_a_memory_that_shares_the_conversation_repeats_nothing(script: Script):
    models = script("ok"), script("yes")
    agents = [Agent(model, memories=HistoryMemory(share="messages")) for model in models]
    said = [("user", "hi"), ("assistant", "ok"), ("assistant", "yes")]
    assert after(*agents, state="messages") == said
    assert [asked(model) for model in models] == [
        [("user", "hi")],
        [("user", "hi"), ("user", "n0: ok")],
    ]


def test_an_agent_of_a_file_reads_and_writes_it_too(script: Script):
    model = script("first")
    node = AgentNode(AgentNode.Config(model={"type": "scripted", "config": {"rules": []}}))
    node.config = node.config.model_copy(update={"model": model})
    assert after(node) == [("user", "hi"), ("assistant", "first")]
    assert asked(model) == [("user", "hi")]


def test_calls_of_tools_and_their_results_are_turns():
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    model = Scripted([{"tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}, "It is 3."])
    said = after(Agent(model, tools=[add]))
    assert [role for role, _ in said] == ["user", "assistant", "tool", "assistant"]
    assert said[2:] == [("tool", "3"), ("assistant", "It is 3.")]


def test_an_agent_that_writes_fields_writes_its_turn_too(script: Script):
    g = RootGraph("g", state=Talk)
    g.create_node(Agent(script('{"topic": "x"}')), name="a", push_keys={"topic": "what it is"})
    g.create_edges([("entry", "a"), ("a", "exit")])
    values = g.build().invoke({"messages": [{"role": "user", "content": "hi"}]})[1]
    assert values["topic"] == "x"
    assert [m["role"] for m in values["messages"]] == ["user", "assistant"]


def test_what_a_person_answers_is_a_turn(script: Script):
    class Answering:
        async def ask(self, question: Any, *_: Any, **__: Any) -> Any:
            assert "user: hi" in question.text
            return "go on"

    said = after(HumanNode(), channel=Answering())
    assert said == [("user", "hi"), ("user", "go on")]


def test_a_reply_that_nothing_takes_is_a_warning(script: Script):
    class Bare(BaseModel):
        topic: str = ""

    g = RootGraph("g", state=Bare)
    g.create_node(Agent(script("x")), name="a")
    g.create_edges([("entry", "a"), ("a", "exit")])
    with pytest.warns(GraphWarning, match=r'AX157.*"a"'):
        g.build()


def test_what_a_subclass_observes_thinks_and_does_has_an_effect_in_a_run(script: Script):
    class Mine(Agent):
        def observe(self, inputs: Any = None, attributes: Any = None) -> Any:
            system, user, messages = super().observe(inputs, attributes)
            return system, user, [*messages, {"role": "user", "content": "P.S."}]

        async def think(self, messages: Any, manner: Any, ctx: Any) -> Any:
            answer = await super().think(messages, manner, ctx)
            return replace(answer, fields={**answer.fields, "thought": 1})

        async def act(self, answer: Any, ctx: Any) -> Any:
            return {**await super().act(answer, ctx), "acted": 2}

    model = script('{"o": "x"}')
    g = RootGraph("g")
    g.create_node(Mine(model), name="a")
    g.edge_from_entry("a", ["q"])
    g.edge_to_exit("a", ["o", "thought", "acted"])
    model = script('{"o": "x", "thought": 0, "acted": 0}')
    g.nodes["a"]._model = Agent(model)._model
    assert g.build().invoke({"q": "?"})[0] == {"o": "x", "thought": 1, "acted": 2}
    assert asked(model)[-1] == ("user", "P.S.")


def test_what_a_history_begins_with_is_observed(script: Script):
    memory = HistoryMemory(messages=[{"role": "user", "content": "a"}])
    memory.insert("assistant", "b")
    messages = Agent(script("x"), memories=[memory]).observe({"q": 1}).messages
    assert [m["content"] for m in messages[:2]] == ["a", "b"]


def test_an_agent_shows_its_tools_and_can_be_built(script: Script):
    def add(a: int) -> int:
        """Add."""
        return a

    agent = Agent(script("x"), tools=[add])
    assert agent.build() is agent
    assert agent.tools == [add]


def test_a_single_agent_may_be_given_its_name_first(script: Script):
    agent = SingleAgent("ann", script('{"o": 1}'), "Be brief.", output_keys=["o"])
    assert (agent.name, agent.invoke({"q": 1})) == ("ann", {"o": 1})
