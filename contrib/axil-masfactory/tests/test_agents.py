"""Agents by MASFactory's names: in graphs, alone, one by one."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

import axil_agent
import axil_models
from masfactory import (
    Agent,
    AgentSwitch,
    CustomNode,
    DynamicAgent,
    HistoryMemory,
    HumanChat,
    HumanFileEdit,
    JsonMessageFormatter,
    LegacyOpenAIModel,
    Memory,
    MessageFormatter,
    Model,
    OpenAIModel,
    RootGraph,
    SimpleKeywordRetriever,
    SingleAgent,
    Unsupported,
    load_skill,
)
from masfactory.adapters.model import ModelResponseType
from masfactory.skills import SkillNotFoundError, SkillParseError

from . import programs


class Says(Model):
    """Says one reply after the other; the last one again and again."""

    def __init__(self, *replies: Any) -> None:
        super().__init__("says")
        self.replies, self.asked = list(replies), []

    def invoke(self, messages: Any, tools: Any, settings: Any = None, **more: Any) -> Any:
        self.asked.append((messages, tools))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, list):
            return {"type": ModelResponseType.TOOL_CALL, "content": reply}
        return {"type": ModelResponseType.CONTENT, "content": reply}


def alone(agent: type[Any] = Agent, fields: Any = ("q",), out: Any = ("a",), **settings: Any):
    graph = RootGraph("g")
    node = graph.create_node(agent, name="agent", **settings)
    graph.edge_from_entry(node, dict.fromkeys(fields, ""))
    graph.edge_to_exit(node, dict.fromkeys(out, ""))
    graph.build()
    return graph


def test_an_agent_gives_the_fields_of_its_reply():
    model = Says('{"a": "yes"}')
    graph = alone(model=model, instructions="I.", prompt_template="Q: {q}")
    assert graph.invoke({"q": "why"})[0] == {"a": "yes"}
    (messages, tools) = model.asked[0]
    assert messages[0] == {"role": "system", "content": "I."}
    assert "Q: why" in messages[1]["content"]
    assert not tools


def test_another_model_can_stand_in_for_all_agents():
    graph = alone(model=OpenAIModel("m", api_key="k", base_url="https://example.org/v1"))
    with axil_agent.models_through(lambda meant, written: axil_agent.Scripted(default='{"a":1}')):
        assert graph.invoke({"q": "why"})[0] == {"a": 1}


def test_tools_and_hooks_of_replies_and_results():
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    model = Says([{"id": "1", "name": "add", "arguments": {"a": 1, "b": 2}}], '{"a": 3}')
    graph = alone(model=model, tools=[add])
    (agent,) = graph.nodes
    seen: list[Any] = []
    agent.hook_register(Agent.Hook.THINK_COMPLETED, lambda a, r, m: seen.append(r["type"]))
    agent.hook_register(Agent.Hook.ACT_COMPLETED, lambda a, c, r: seen.append(r[0]["content"]))
    assert graph.invoke({"q": "1+2"})[0] == {"a": 3}
    assert seen == [ModelResponseType.TOOL_CALL, "3", ModelResponseType.CONTENT]


def test_arguments_of_a_tool_are_of_the_types_that_it_names():
    got: list[Any] = []

    def half(x: float) -> str:
        """Halve."""
        got.append(x)
        return str(x / 2)

    model = Says([{"id": "1", "name": "half", "arguments": {"x": 2}}], '{"a": "1"}')
    assert alone(model=model, tools=[half]).invoke({"q": "2/2"})[0] == {"a": "1"}
    assert [(each, type(each)) for each in got] == [(2.0, float)]


def test_an_agent_needs_no_instructions():
    model = Says('{"a": "1"}')
    assert alone(model=model).invoke({"q": "1"})[0] == {"a": "1"}
    ((messages, _),) = model.asked
    assert [message["role"] for message in messages] == ["user"]


def test_history_stays_in_the_memory_and_can_be_put_there_and_forgotten():
    model, history = Says('{"a": "1"}'), HistoryMemory(top_k=4)
    graph = alone(model=model, memories=[history])
    graph.invoke({"q": "first"})
    graph.invoke({"q": "second"})
    assert [len(messages) for messages, _ in model.asked] == [1, 3]
    history.reset()
    history.insert("user", "put")
    history.insert("assistant", "there")
    assert history.get_messages() == [
        {"role": "user", "content": "put"},
        {"role": "assistant", "content": "there"},
    ]
    system, _, messages = graph.nodes[0].observe({"q": "third"})
    assert system == ""
    assert [m["content"] for m in messages if m["content"] in ("put", "there")] == ["put", "there"]


def test_a_custom_memory_is_written_and_queried():
    class Notes(Memory):
        def __init__(self) -> None:
            super().__init__(context_label="NOTES")
            self.kept: list[str] = []

        def insert(self, key: str, value: Any) -> None:
            self.kept.append(value)

        def get_blocks(self, query: Any, *, top_k: int = 8) -> list[axil_models.ContextBlock]:
            return [axil_models.ContextBlock(text) for text in self.kept]

    model, notes = Says('{"a": "noted"}'), Notes()
    graph = alone(model=model, memories=[notes])
    graph.invoke({"q": "1"})
    graph.invoke({"q": "2"})
    assert notes.kept == ['{"a": "noted"}'] * 2
    assert '(NOTES) {"a": "noted"}' in model.asked[1][0][-1]["content"]


def test_observing_needs_no_model_and_no_graph():
    docs = SimpleKeywordRetriever({"d": "Ferns grow in shade."}, context_label="DOCS")
    agent = Agent("w", "Be brief.", model=object(), prompt_template="{q}", retrievers=[docs])
    system, user, messages = agent.observe({"q": "Where do ferns grow?"})
    assert system == "Be brief."
    assert "(DOCS) Ferns grow in shade." in user
    assert agent.last_prompt == (system, user) == tuple(m["content"] for m in messages)
    assert agent.tools == []


def test_active_sources_are_two_tools():
    docs = SimpleKeywordRetriever(
        {"d": "Ferns grow in shade."}, context_label="DOCS", passive=False, active=True
    )
    agent = Agent("w", model=object(), retrievers=[docs])
    listing, asking = agent.tools
    assert listing() == {"sources": [{"name": "DOCS"}]}
    assert asking("DOCS", "ferns")["blocks"] == ["Ferns grow in shade."]
    with pytest.raises(ValueError, match='no context source "X"; there are DOCS'):
        asking("X", "ferns")


def test_a_model_that_is_none_is_named_when_it_is_asked():
    graph = alone(model=object())
    with pytest.raises(TypeError, match=r"the model is a object, expected an object with invoke"):
        graph.invoke({"q": "1"})


def test_thinking_and_acting_one_by_one():
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    call = {"id": "7", "name": "shout", "arguments": '{"text": "hi"}'}
    agent = Agent("a", model=Says([call], '{"x": 1}'), tools=[shout])
    response = agent.think([{"role": "user", "content": "?"}])
    assert response["type"] is ModelResponseType.TOOL_CALL
    results = agent.act([*response["content"], {"id": "8", "name": "whisper"}])
    assert [(r["tool_call_id"], r["content"][:8]) for r in results] == [
        ("7", "HI"),
        ("8", "KeyError"),
    ]


def test_a_step_outside_a_graph_gives_the_pushed_fields():
    agent = Agent("a", model=Says('{"answer": "42"}'), push_keys={"answer": "the answer"})
    assert agent.step({"q": "?"}) == {"answer": "42"}


def test_what_a_subclass_observes_is_what_a_run_sends():
    class Loud(Agent):
        def observe(self, input_dict: dict[str, Any]) -> Any:
            system, user, _ = super().observe(input_dict)
            return system, user, [{"role": "user", "content": input_dict["q"].upper()}]

    model, history = Says('{"a": 1}'), HistoryMemory()
    graph = alone(Loud, model=model, memories=[history])
    assert graph.invoke({"q": "why"})[0] == {"a": 1}
    assert model.asked[0][0] == [{"role": "user", "content": "WHY"}]
    assert [message["role"] for message in history.messages] == ["user", "assistant"]


def test_instructions_come_with_the_message():
    model = Says('{"a": 1}')
    graph = alone(
        DynamicAgent,
        ("instructions", "q"),
        model=model,
        prompt_template="{q}",
        default_instructions="usual",
    )
    graph.invoke({"instructions": "Be a pirate.", "q": "?"})
    assert model.asked[0][0][0]["content"] == "Be a pirate."
    assert graph.nodes[0].observe({"q": "?"})[0] == "usual"


def test_a_single_agent_is_asked_directly_and_not_inside_a_graph():
    agent = SingleAgent("one", Says('{"a": 1}'), "I.", prompt_template="{q}")
    assert agent.invoke({"q": "?"}) == {"a": 1}
    with pytest.raises(ValueError, match="a SingleAgent cannot be inside a graph"):
        RootGraph("g").create_node(SingleAgent, name="s", model=object())


def test_a_model_chooses_among_sentences():
    class Judge(Says):
        def invoke(self, messages: Any, tools: Any, settings: Any = None, **more: Any) -> Any:
            says_yes = "about money" in str(messages)
            return {"type": "content", "content": "YES" if says_yes else "NO"}

    graph = RootGraph("g")
    routes = {"tech": "It is about machines.", "money": "It is about money."}
    switch = graph.create_node(AgentSwitch, name="switch", model=Judge(""), routes=routes)
    graph.edge_from_entry(switch, {"q": ""})
    for name in routes:
        node = graph.create_node(CustomNode, name=name, forward=lambda m: m)
        node.set_forward((lambda key: lambda m: {"way": key})(name))
        graph.create_edge(switch, node, {"q": ""})
        graph.edge_to_exit(node, {"way": ""})
    graph.build()
    assert graph.invoke({"q": "refund"})[0] == {"way": "money"}


def test_a_formatter_of_your_own_reads_replies():
    class Bang(MessageFormatter):
        _agent_introducer = "End with a bang."

        def format(self, message: str) -> dict[str, Any]:
            return {"a": message.rstrip("!")}

        def dump(self, message: Any) -> str:
            return "; ".join(f"{key}={value}" for key, value in message.items())

    model = Says("pow!")
    graph = alone(model=model, formatters=[Bang(), Bang()], prompt_template="{q}")
    assert graph.invoke({"q": "?"})[0] == {"a": "pow"}
    assert "End with a bang." in model.asked[0][0][-1]["content"]
    assert JsonMessageFormatter().format('```json\n{"a": 1}\n```') == {"a": 1}


def test_skills_are_part_of_the_instructions_and_their_braces_are_text(tmp_path):
    folder = tmp_path / "sum"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: sum\ndescription: Adds.\n---\nWrite {total}.\n")
    skill = load_skill(folder)
    agent = Agent("a", "Base.", model=object(), skills=[skill])
    system = agent.observe({"q": "?"})[0]
    assert system.startswith("Base.\n\n[Loaded Skills]\n\n## Skill: sum\n\nDescription: Adds.")
    assert "Write {total}." in system
    with pytest.raises(SkillNotFoundError, match=r"found no SKILL.md"):
        load_skill(tmp_path)
    (folder / "SKILL.md").write_text("no front matter")
    with pytest.raises(SkillParseError, match="front matter"):
        load_skill(folder)


def typed(monkeypatch: Any, *lines: str) -> None:
    said = iter(lines)
    monkeypatch.setattr(builtins, "input", lambda prompt="": next(said))


def test_a_person_answers_up_to_the_end_line(monkeypatch, capsys):
    graph = alone(HumanChat, ("draft",), ("feedback",))
    typed(monkeypatch, "one", "two", "$END")
    assert graph.invoke({"draft": "D"})[0] == {"feedback": "one\ntwo"}
    assert "draft" in capsys.readouterr().out


def test_a_person_edits_a_file(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    graph = alone(HumanFileEdit, ("plan",), ("plan",), file_fields={"plan": "plan.md"})

    def edit(prompt: str = "") -> str:
        (tmp_path / "plan.md").write_text("edited")
        return "$END"

    monkeypatch.setattr(builtins, "input", edit)
    assert graph.invoke({"plan": "first"})[0] == {"plan": "edited"}


def test_compatible_servers_are_asked_by_chat_completions(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert type(OpenAIModel("m", "k").core).__name__ == "OpenAIResponsesModel"
    assert type(OpenAIModel("m", "k", "https://example.org/v1").core).__name__ == "OpenAIModel"
    assert type(LegacyOpenAIModel("m", "k").core).__name__ == "OpenAIModel"
    assert "secret-key" not in repr(OpenAIModel("m", "secret-key").core)


def test_images_are_not_made_and_the_error_says_what_to_do():
    with pytest.raises(Unsupported, match=r"OpenAIModel.generate_images.*in a CustomNode"):
        OpenAIModel("m", "k").generate_images("a fern")


def test_a_pulled_attribute_that_is_absent_is_its_description():
    agent = Agent("a", "About {topic}.", model=object(), pull_keys={"topic": "the topic"})
    assert agent.observe({})[0] == "About the topic."
    agent.set_attributes({"topic": "ferns"})
    assert agent.observe({})[0] == "About ferns."


def test_a_step_of_an_agent_in_a_graph_has_to_give_what_edges_carry_alone():
    class Own(Agent):
        def _forward(self, input: dict[str, Any]) -> dict[str, Any]:
            return self.step(input)

    model = programs.Says({"code": "x = 1"})
    graph = programs.single(
        Own, ["task"], ["code"], model=model, push_keys={"code": "", "status": ""}
    )
    assert graph.invoke({"task": "t"})[0] == {"code": "x = 1"}
    assert len(model.asked) == 1
