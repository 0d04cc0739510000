"""Programs of agents."""

from __future__ import annotations

import json
from typing import Any

from masfactory import (
    Agent,
    AgentSwitch,
    CustomNode,
    DynamicAgent,
    HistoryMemory,
    JsonMessageFormatter,
    LenientJsonMessageFormatter,
    MarkdownMessageFormatter,
    ParagraphMessageFormatter,
    RootGraph,
    SimpleKeywordRetriever,
    SingleAgent,
    TaggedFieldMessageFormatter,
    TwinsFieldTextFormatter,
)
from masfactory.core.message import StatefulFormatter

from .programs import Says, giving, order, program, ran, single


@program
def a_prompt_has_its_parts_in_order() -> Any:
    model = Says({"a": "x"})
    ran(
        single(Agent, ["q"], ["a"], instructions="I.", model=model, prompt_template="Q: {q}"),
        {"q": "why"},
    )
    system, user = (message["content"] for message in model.asked[0])
    return [system, order(user), user.splitlines()[:2], user.partition("DESCRIPTIONS:")[2]]


@program
def every_formatter_has_the_same_parts_in_the_same_order() -> Any:
    found: dict[str, Any] = {}
    for kind in (
        JsonMessageFormatter,
        LenientJsonMessageFormatter,
        MarkdownMessageFormatter,
        ParagraphMessageFormatter,
        TaggedFieldMessageFormatter,
        TwinsFieldTextFormatter,
    ):
        model = Says({"a": "x", "b": "y"})
        formatters = [kind(), JsonMessageFormatter()]
        settings = {"instructions": "I.", "model": model, "prompt_template": "Ask {q}"}
        ran(
            single(Agent, ["q", "rest"], ["a", "b"], formatters=formatters, **settings),
            {"q": "why", "rest": "unused text"},
        )
        user = model.asked[0][-1]["content"]
        parts = ["unused text", "Ask why", *order(user)]
        found[kind.__name__] = sorted(set(parts) - {"role_name"}, key=user.index)
    return found


@program
def the_description_in_push_keys_is_asked_for() -> Any:
    model = Says({"a": "x", "b": "y"})
    graph = RootGraph("g", attributes={"a": "", "b": "", "t": "shade"})
    node = graph.create_node(
        Agent,
        name="w",
        instructions="I.",
        model=model,
        prompt_template="{q} {t}",
        pull_keys={"t": "the topic"},
        push_keys={"a": "pushed", "b": "kept"},
    )
    graph.edge_from_entry(node, {"q": "asked"})
    graph.edge_to_exit(node, {"a": "carried"})
    graph.build()
    out = ran(graph, {"q": "why"})
    user = model.asked[0][-1]["content"]
    return [out, user.partition("DESCRIPTIONS:")[2], "the topic" in user, "why shade" in user]


@program
def twins_fill_every_field_and_say_how_to_answer() -> Any:
    model = Says("whole reply")
    formatters = [ParagraphMessageFormatter(), TwinsFieldTextFormatter()]
    graph = single(Agent, ["q"], ["a", "b"], instructions="I.", model=model, formatters=formatters)
    return [ran(graph, {"q": "why"})[0][0], order(model.asked[0][-1]["content"])]


@program
def a_formatter_of_ones_own_knows_the_fields() -> Any:
    class Pipes(StatefulFormatter):
        def __init__(self) -> None:
            super().__init__()
            self._is_input_formatter = self._is_output_formatter = True
            self._agent_introducer = "Use pipes."

        def format(self, message: str) -> dict[str, Any]:
            return dict(zip(self.field_keys, message.split("|"), strict=False))

        def dump(self, message: dict[str, Any]) -> str:
            if isinstance(message, str):
                return message
            return " / ".join(f"{name}={value}" for name, value in message.items())

    model = Says("one|two")
    settings = {
        "instructions": "I.",
        "model": model,
        "formatters": Pipes(),
        "prompt_template": "{q}",
    }
    graph = single(Agent, ["q"], ["a", "b"], hide_unused_fields=True, **settings)
    return [ran(graph, {"q": "why"})[0][0], model.asked[0][-1]["content"]]


@program
def parts_of_a_prompt_may_be_replaced() -> Any:
    class Plain(Agent):
        def _input_prompt(self) -> dict[str, Any]:
            return {"input": self._prompt_template_format(self._prompt_template)}

        def _output_keys_prompt(self) -> dict[str, Any]:
            return {}

    model = Says({"a": "x"})
    settings = {"instructions": "I {q}.", "model": model, "prompt_template": "Ask {q}"}
    graph = single(Plain, ["q"], ["a"], hide_unused_fields=True, **settings)
    return [ran(graph, {"q": "why"})[0][0], [message["content"] for message in model.asked[0]]]


@program
def a_forward_of_ones_own_changes_the_agent_for_one_turn() -> Any:
    class Changing(Agent):
        def _forward(self, input: dict[str, Any]) -> dict[str, Any]:
            before, self._instructions = self._instructions, f"For {input['who']}."
            result = super()._forward({"q": input["q"]})
            self._instructions = before
            return {"a": f"{result['a']} {self._out_formatter.is_output_formatter}"}

    model = Says({"a": "x"})
    graph = single(Changing, ["q", "who"], ["a"], instructions="I.", model=model)
    return [ran(graph, {"q": "why", "who": "you"})[0][0], model.asked[0][0]["content"]]


@program
def tools_are_called_and_hooks_notified() -> Any:
    def double(number: int) -> dict[str, int]:
        """Double.

        Args:
            number: a number.
        """
        return {"doubled": number * 2}

    calls: list[Any] = []
    asked = [{"id": "1", "name": "double", "arguments": {"number": 4}}]
    model = Says(asked, {"a": "eight"})
    graph = single(Agent, ["q"], ["a"], instructions="I.", model=model, tools=[double])
    node = next(iter(graph._nodes.values()))
    node.hook_register(Agent.Hook.THINK_COMPLETED, lambda a, r, m: calls.append(r["type"].name))
    node.hook_register(Agent.Hook.ACT_COMPLETED, lambda a, c, r: calls.append(len(r)))
    out = ran(graph, {"q": "why"})[0][0]
    said = json.loads(model.asked[1][-1]["content"])
    return [out, calls, said, [tool.__name__ for tool in node._user_tools]]


@program
def an_agent_observes_thinks_and_acts_by_hand() -> Any:
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    model = Says("hello")
    agent = Agent("w", "I.", model=model, tools=[shout], prompt_template="{q}")
    system, _, messages = agent.observe({"q": "why"})
    reply = agent.think(messages, settings={"temperature": 0.5})
    results = agent.act([{"id": "9", "name": "shout", "arguments": {"text": "hi"}}])
    first = {name: results[0][name] for name in ("role", "name", "content", "tool_call_id")}
    return [system, reply["content"], model.settings, first, [m["role"] for m in messages]]


@program
def a_step_keeps_its_last_prompt() -> Any:
    model = Says({"a": "x"})
    agent = Agent("w", ["One.", "Two."], model=model, prompt_template="{q}", role_name="writer")
    out = agent.step({"q": "why"})
    system, user = agent.last_prompt
    return [out, system, order(user), agent.role_name if hasattr(agent, "role_name") else "writer"]


@program
def history_goes_on_from_one_invoke_to_the_next() -> Any:
    model, memory = Says({"a": "one"}, {"a": "two"}), HistoryMemory(top_k=4)
    settings = {"instructions": "I.", "model": model, "memories": [memory]}
    graph = single(Agent, ["q"], ["a"], **settings)
    outs = [each[0] for each in ran(graph, {"q": "1"}, {"q": "2"})]
    return [outs, [m["role"] for m in model.asked[1]], model.asked[1][2]["content"]]


@program
def context_is_at_the_end_of_a_prompt() -> Any:
    docs = SimpleKeywordRetriever({"d": "Ferns like shade."}, context_label="DOCS")
    model = Says({"a": "x"})
    settings = {
        "instructions": "I.",
        "model": model,
        "retrievers": [docs],
        "prompt_template": "{q}",
    }
    graph = single(Agent, ["q"], ["a"], **settings)
    ran(graph, {"q": "Where do ferns grow?"})
    user = model.asked[0][-1]["content"]
    return [order(user), "(DOCS)" in user, "Ferns like shade." in user]


@program
def an_agent_takes_its_instructions_from_the_message() -> Any:
    model = Says({"a": "x"})
    agent = DynamicAgent("d", model, "Usual.", None, None, 3)
    graph = RootGraph("g")
    node = graph.create_node(DynamicAgent, "d", model, "Usual.", instruction_key="how")
    graph.edge_from_entry(node, {"q": "", "how": ""})
    graph.edge_to_exit(node, {"a": ""})
    graph.build()
    ran(graph, {"q": "why", "how": "Now."})
    return [agent.name, [asked[0]["content"] for asked in model.asked]]


@program
def an_agent_is_asked_without_a_graph() -> Any:
    model = Says({"a": "x"})
    agent = SingleAgent("s", model, "I.", "Q: {q}")
    return [agent.invoke({"q": "why"}), model.asked[0][1]["content"].splitlines()[1]]


@program
def a_model_judges_each_way_of_a_switch() -> Any:
    model = Says("YES", "NO")
    graph = RootGraph("g")
    switch = graph.create_node(AgentSwitch, "s", model=model, routes={"a": "is A", "b": "is B"})
    graph.edge_from_entry(switch, {"t": ""})
    for name in ("a", "b"):
        node = graph.create_node(CustomNode, name, forward=giving(**{"is": name}))
        graph.create_edge(switch, node, {"t": ""})
        graph.edge_to_exit(node, {"is": ""})
    graph.build()
    return [ran(graph, {"t": "x"})[0][0], len(model.asked)]
