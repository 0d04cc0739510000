"""Recorded behaviour of MASFactory: agents, tools, memory, context, switches, loops; payloads are
compared byte for byte.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from axil import NodeFailed, RootGraph
from axil_agent import Agent, AgentSwitch, HistoryMemory
from axil_agent.errors import ReplyError
from axil_agent.formatters import formatter_of
from axil_control import Loop
from axil_models import ContextBlock

INTRODUCER = (
    "\n        !IMPORTANT!:Your response must strictly and only "
    "contain a single JSON object that conforms "
    "to the description below. Do not add any extra explanations, comments, or any non-JSON text "
    "before or after the JSON code block.\n"
    "        Your response must be strictly valid JSON. Do not include any Markdown code block "
    "markers (e.g., ```json ... ```) or any "
    "explanatory text. Ensure all brackets and braces are correctly balanced and matched.\n      "
    "  "
)
TITLES = {
    "message": "MESSAGE TO YOU",
    "format": "RESPONSE FORMAT REQUIREMENTS",
    "fields": "REQUIRED OUTPUT FIELDS AND THEIR DESCRIPTIONS",
}
REQUIREMENTS = f"{TITLES['format']}:\n{INTRODUCER}\n{TITLES['fields']}:\n"


class Worded:
    """JSON, asked for in MASFactory's words."""

    introduction = INTRODUCER

    def __init__(self) -> None:
        json = formatter_of("json")
        self.dump, self.parse = json.dump, json.parse


def graph(*nodes: Any, entry: Any = ("q",), exit: Any = ("o",), **settings: Any) -> RootGraph:
    """Agents in a line, each given as its settings."""
    g = RootGraph("g")
    made = [g.create_node(Agent, **{"name": "w", **node, **settings}) for node in nodes]
    g.edge_from_entry(made[0], entry)
    g.edge_to_exit(made[-1], exit)
    return g.build()


def reported(model: Any) -> list[list[dict[str, Any]]]:
    return [list(request.messages) for request in model.requests]


def test_two_agents_in_a_line(script):
    model = script('{"query":"Q2","analysis":"AN"}', '{"answer":"ANS"}')
    words: dict[str, Any] = {"formatters": ["paragraph", Worded()], "titles": TITLES}
    g = RootGraph("qa_two_stage")
    analyze = g.create_node(
        Agent,
        name="analyze",
        model=model,
        **words,
        instructions="You are a problem analysis expert.",
        prompt_template="User question: {query}",
    )
    answer = g.create_node(
        Agent,
        name="answer",
        model=model,
        **words,
        instructions="You are a solution expert.",
        prompt_template="Question: {query}\nAnalysis: {analysis}",
    )
    g.edge_from_entry(analyze, {"query": "User question"})
    g.create_edge(analyze, answer, {"query": "Original question", "analysis": "Analysis result"})
    g.edge_to_exit(answer, {"answer": "Final answer"})
    g.build()
    assert g.invoke({"query": "learn Python?"}) == ({"answer": "ANS"}, {})
    assert reported(model) == [
        [
            {"role": "system", "content": "You are a problem analysis expert."},
            {
                "role": "user",
                "content": "MESSAGE TO YOU:\nUser question: learn Python?\nrole_name:\nanalyze\n"
                + REQUIREMENTS
                + '{\n  "query": "Original question",\n  "analysis": "Analysis result"\n}',
            },
        ],
        [
            {"role": "system", "content": "You are a solution expert."},
            {
                "role": "user",
                "content": "MESSAGE TO YOU:\nQuestion: Q2\nAnalysis: AN\nrole_name:\nanswer\n"
                + REQUIREMENTS
                + '{\n  "answer": "Final answer"\n}',
            },
        ],
    ]


def add(a: int, b: int = 2) -> int:
    """Add numbers.

    Args:
        a: first
        b: second
    """
    return a + b


def test_tools_are_run_and_their_results_returned_in_order(script):
    calls = [{"name": "add", "arguments": {"a": 1}}, {"name": "add", "arguments": {"a": 5, "b": 5}}]
    model = script({"tool_calls": calls}, '{"sum":13}')
    g = graph({"model": model, "tools": [add], "name": "calc"}, exit=["sum"])
    assert g.invoke({"q": "1+2, 5+5"}) == ({"sum": 13}, {})
    (tool,) = model.requests[0].tools
    # MASFactory also sends what the schema says of the arguments
    assert (tool.name, tool.description) == ("add", "Add numbers.\n\nReturns int.")
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "first"},
            "b": {"type": "integer", "description": "second", "default": 2},
        },
        "required": ["a"],
    }
    assert reported(model)[1][-3:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "c0", "name": "add", "arguments": {"a": 1}},
                {"id": "c1", "name": "add", "arguments": {"a": 5, "b": 5}},
            ],
        },
        {"role": "tool", "name": "add", "content": "3", "tool_call_id": "c0"},
        {"role": "tool", "name": "add", "content": "10", "tool_call_id": "c1"},
    ]


def test_after_three_bad_replies_the_node_fails_and_says_why(script):
    model = script("bad", "bad", "bad")
    with pytest.raises(NodeFailed, match=r'node "w".*no reply of 3 could be used.*"bad"') as failed:
        graph({"model": model, "formatters": ["paragraph", "json"]}).invoke({"q": "x"})
    assert isinstance(failed.value.__cause__, ReplyError)
    assert len(model.requests) == 3
    # MASFactory asks again without a word
    assert "could not be used" in reported(model)[1][-1]["content"]


def test_history_is_sent_between_the_system_and_the_message(script):
    model = script('{"o":"a1"}', '{"o":"a2"}')
    g = graph({"model": model, "instructions": "I", "memories": HistoryMemory(share="chat")})
    first, attributes = g.invoke({"q": "first"})
    second, _ = g.invoke({"q": "second"}, attributes)
    assert (first, second) == ({"o": "a1"}, {"o": "a2"})
    assert [[m["role"] for m in messages] for messages in reported(model)] == [
        ["system", "user"],
        ["system", "user", "assistant", "user"],
    ]
    assert reported(model)[1][2]["content"] == '{"o":"a1"}'
    assert reported(model)[1][1] == reported(model)[0][1]


class Provider:
    """A provider as MASFactory's documentation writes them."""

    def __init__(self, label: str, blocks: list[ContextBlock], **flags: bool) -> None:
        self.context_label, self.blocks = label, blocks
        self.__dict__.update(flags)

    def get_blocks(self, query: Any, top_k: int = 8) -> list[ContextBlock]:
        return self.blocks[:top_k]


def test_context_is_injected_last_in_order_and_once(script):
    model = script('{"o":1}')
    memory = Provider(
        "MEM",
        [
            ContextBlock("m1", score=0.1),
            ContextBlock("m2", score=0.9),
            ContextBlock("m3"),
            ContextBlock("dup", uri="u1"),
        ],
    )
    retriever = Provider(
        "RAG", [ContextBlock("other", uri="u1"), ContextBlock("m1"), ContextBlock("r1")]
    )
    g = graph({"model": model, "memories": [memory], "retrievers": [retriever]})
    assert g.invoke({"q": "x"})[0] == {"o": 1}
    tail = "[Context]\n(MEM) m2\n(MEM) m1\n(MEM) m3\n(MEM) dup\n(RAG) r1"
    assert reported(model)[0][-1]["content"].endswith(f"\nContext:\n{tail}")


class SimpleKeywordRetriever:
    context_label, passive, active = "DOCS", False, True

    def get_blocks(self, query: Any, top_k: int = 8) -> list[ContextBlock]:
        return [ContextBlock("vis vis", uri="b", score=4 / 3, metadata={"doc_id": "b"})][:top_k]


def test_the_model_asks_active_context_with_two_tools(script):
    asks = {
        "name": "retrieve_context",
        "arguments": {"source": "DOCS", "query_text": "vis", "top_k": 1},
    }
    model = script({"tool_calls": [{"name": "list_context_sources"}, asks]}, '{"o":1}')
    g = graph({"model": model, "retrievers": [SimpleKeywordRetriever()]})
    assert g.invoke({"q": "x"})[0] == {"o": 1}
    assert [tool.name for tool in model.requests[0].tools] == [
        "list_context_sources",
        "retrieve_context",
    ]
    results = [json.loads(m["content"]) for m in reported(model)[1] if m["role"] == "tool"]
    block = {
        "chunk_id": None,
        "dedupe_key": None,
        "metadata": {"doc_id": "b"},
        "score": 4 / 3,
        "text": "vis vis",
        "title": None,
        "uri": "b",
    }
    assert results == [
        {"sources": [{"label": "DOCS", "name": "DOCS", "type": "SimpleKeywordRetriever"}]},
        {
            "blocks": [block],
            "provider": "DOCS",
            "query": "vis",
            "rendered": "[Context]\n(DOCS) vis vis",
        },
    ]


def test_a_switch_asks_once_for_each_condition(script):
    model = script("NO", "YES", "no")
    g = RootGraph("g")
    router = g.create_node(AgentSwitch, name="router", model=model)
    g.edge_from_entry(router, ["query"])
    for name, condition in (("tech", "technical"), ("sales", "product"), ("care", "complaint")):
        branch = g.create_node(lambda name=name: {"response": name}, name=name)
        router.condition_binding(condition, g.create_edge(router, branch, ["query"]))
        g.edge_to_exit(branch, ["response"])
    g.build()
    assert g.invoke({"query": "plans?"})[0] == {"response": "sales"}
    assert [messages[-1]["content"] for messages in reported(model)] == [
        f"USER INPUT:\nANSWER:\n{{'query': 'plans?'}}\nCONDITION:\n{c}\n"
        for c in ("technical", "product", "complaint")
    ]


def turn_taking(loop: Loop, choose: Any) -> Any:
    """Return a node that sends on to the one that ``choose`` names."""
    from axil import Out

    def switch(inputs: dict[str, Any], attributes: dict[str, Any]) -> Out:
        return Out(dict(inputs), to=frozenset({choose(attributes)}))

    return switch


def test_instructor_and_assistant_take_turns_with_histories_of_their_own(script):
    model = script(*(json.dumps({"message": text}) for text in ("i1", "a1", "i2", "a2")))
    g = RootGraph("g")
    loop = g.create_node(Loop, name="ia", max_iterations=4)
    switch = loop.create_node(
        turn_taking(
            loop, lambda a: "ia_instructor" if a["current_iteration"] % 2 else "ia_assistant"
        ),
        name="ia_switch",
    )
    ceo = loop.create_node(
        Agent,
        name="ia_instructor",
        model=model,
        instructions="I am CEO",
        memories=[HistoryMemory()],
    )
    cto = loop.create_node(
        Agent, name="ia_assistant", model=model, instructions="I am CTO", memories=[HistoryMemory()]
    )
    loop.edge_from_controller(switch)
    for agent in (ceo, cto):
        loop.create_edge(switch, agent)
        loop.edge_to_controller(agent)
    g.edge_from_entry(loop)
    g.edge_to_exit(loop)
    g.build()
    assert g.invoke({"message": "task"}) == (
        {"message": "a2"},
        {"current_iteration": 4, "max_iterations": 4},
    )
    assert [messages[0]["content"] for messages in reported(model)] == [
        "I am CEO",
        "I am CTO",
        "I am CEO",
        "I am CTO",
    ]
    assert [len(messages) for messages in reported(model)] == [2, 2, 4, 4]


def test_a_round_robin_shares_one_history_and_stops_at_the_final_answer(script):
    model = script(*(json.dumps({"message": text}) for text in ("m1", "m2", "FINAL ANSWER x")))
    g = RootGraph("g")

    def over(inputs: dict[str, Any]) -> bool:
        return "FINAL ANSWER" in inputs["message"]

    loop = g.create_node(Loop, name="mesh", max_iterations=6, terminate_condition_function=over)
    router = loop.create_node(
        turn_taking(loop, lambda a: "AB"[(a["current_iteration"] - 1) % 2]), name="mesh_router"
    )
    loop.edge_from_controller(router)
    for name, text in (("A", "ia"), ("B", "ib")):
        agent = loop.create_node(
            Agent,
            name=name,
            model=model,
            instructions=["GI", text],
            memories=HistoryMemory(share="history"),
            hide_unused_fields=True,
        )
        loop.create_edge(router, agent)
        loop.edge_to_controller(agent)
    g.edge_from_entry(loop)
    g.edge_to_exit(loop)
    g.build()
    assert g.invoke({"message": "start"}) == (
        {"message": "FINAL ANSWER x"},
        {"current_iteration": 4, "max_iterations": 6},
    )
    assert [messages[0]["content"] for messages in reported(model)] == [
        "GI\nia",
        "GI\nib",
        "GI\nia",
    ]
    assert [len(messages) for messages in reported(model)] == [2, 4, 6]


def test_a_solver_and_its_critics_go_round(script):
    """AgentVerse's vertical decision, with agents for the critics."""
    model = script(*(json.dumps({"fb": f"k{n}"}) for n in (1, 2, 1, 2)))
    g = RootGraph("g")
    first = g.create_node(lambda inputs: {"sol": "F:" + inputs["q"]}, name="first")
    loop = g.create_node(Loop, name="loop", max_iterations=2)
    critics = [
        loop.create_node(Agent, name=f"k{n}", model=model, prompt_template="Criticise {sol}")
        for n in (1, 2)
    ]
    solver = loop.create_node(
        lambda inputs: {"sol": inputs["sol"] + "+" + "".join(sorted(inputs["fb"]))}, name="solver"
    )
    for critic in critics:
        loop.edge_from_controller(critic, ["sol"])
        loop.create_edge(critic, solver, {"fb": "what is wrong"})
    loop.edge_from_controller(solver, ["sol"])
    loop.edge_to_controller(solver, ["sol"])
    g.edge_from_entry(first, ["q"])
    g.create_edge(first, loop, ["sol"])
    g.edge_to_exit(loop, ["sol"])
    assert g.build().invoke({"q": "Q"})[0] == {"sol": "F:Q+k1k2+k1k2"}


def test_a_critic_sees_what_earlier_ones_broadcast(script):
    """The brainstorming graph: what a critic said is an attribute that those after it pull."""
    model = script(
        '{"o": "C1", "broadcast": {"c1": "C1"}}',
        '{"o": "C2", "broadcast": {"c1": "C1", "c2": "C2"}}',
        '{"ans": "C1C2"}',
    )
    g = RootGraph("g", attributes={"broadcast": {}})
    nodes = [
        g.create_node(
            Agent,
            name=name,
            model=model,
            pull_keys={"broadcast": "said so far"},
            push_keys={"broadcast": "all said"},
        )
        for name in ("c1", "c2")
    ]
    nodes.append(g.create_node(Agent, name="solver", model=model, pull_keys={"broadcast": ""}))
    g.edge_from_entry(nodes[0], ["q"])
    g.create_edge(nodes[0], nodes[1], ["o"])
    g.create_edge(nodes[1], nodes[2], ["o"])
    g.edge_to_exit(nodes[2], ["ans"])
    output, attributes = g.build().invoke({"q": "Q"})
    assert output == {"ans": "C1C2"}
    assert attributes == {"broadcast": {"c1": "C1", "c2": "C2"}}
    assert "broadcast:\n{}\n" in reported(model)[0][-1]["content"]
    assert '"c1": "C1"' in reported(model)[1][-1]["content"]
    assert '"broadcast": "all said"' in reported(model)[1][-1]["content"]


def test_raw_text_goes_into_every_field_with_twins(script):
    """The AML cases: paragraph in, the raw reply in every field out, then a loop that ends by what
    the text says.
    """
    model = script("abc", "a", "b", "x!")
    g = RootGraph("g")
    plan = g.create_node(
        Agent,
        name="plan",
        model=model,
        prompt_template="T: {topic}",
        formatters=["paragraph", "twins"],
    )
    loop = g.create_node(
        Loop,
        name="lp",
        max_iterations=3,
        terminate_condition_function=lambda inputs: "x" in str(inputs.get("plan")),
    )
    rev = loop.create_node(
        Agent,
        name="rev",
        model=model,
        prompt_template="T: {plan}",
        formatters=["paragraph", "twins"],
    )
    g.edge_from_entry(plan, ["topic"])
    g.create_edge(plan, loop, ["plan"])
    loop.edge_from_controller(rev, ["plan"])
    loop.edge_to_controller(rev, ["plan"])
    g.edge_to_exit(loop, ["plan"])
    assert g.build().invoke({"topic": "X"})[0] == {"plan": "x!"}
    assert len(model.requests) == 4
