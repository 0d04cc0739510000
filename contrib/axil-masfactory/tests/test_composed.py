"""Composed graphs: what each shape carries, and how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from masfactory import (
    AdjacencyMatrixGraph,
    Agent,
    BrainstormingGraph,
    CustomNode,
    GeneratorVerifierGraph,
    HistoryMemory,
    HorizontalGraph,
    HubGraph,
    InstructorAssistantGraph,
    MeshGraph,
    Model,
    NodeTemplate,
    PingPongGraph,
    RootGraph,
    VerticalDecisionGraph,
    VerticalGraph,
    VerticalSolverFirstDecisionGraph,
)


class Script(Model):
    """Says one reply after the other, and keeps what it was asked."""

    def __init__(self, *replies: Any) -> None:
        super().__init__("script")
        self.replies, self.asked = list(replies), []

    def invoke(self, messages: Any, tools: Any, settings: Any = None, **more: Any) -> Any:
        self.asked.append(messages)
        reply = self.replies.pop(0)
        if isinstance(reply, list):
            return {"type": "tool_call", "content": reply}
        return {"type": "content", "content": reply}


def run(kind: Any, fields: dict[str, Any], comes: list[str], goes: list[str], **settings: Any):
    """Build a graph around one node, and invoke it."""
    graph = RootGraph("g")
    node = graph.create_node(kind, name="node", **settings)
    graph.edge_from_entry(node, dict.fromkeys(comes, ""))
    graph.edge_to_exit(node, dict.fromkeys(goes, ""))
    graph.build()
    return graph.invoke(fields)[0]


def node(name: str, forward: Any, **more: Any) -> dict[str, Any]:
    return {"cls": CustomNode, "name": name, "forward": forward, **more}


def test_a_horizontal_graph_is_a_line():
    nodes = [node("a", lambda m: {"x": m["n"] + 1}), node("b", lambda m: {"y": m["x"] * 2})]
    out = run(
        HorizontalGraph, {"n": 3}, ["n"], ["y"], node_args_list=nodes, edge_keys_list=[{"x": ""}]
    )
    assert out == {"y": 8}
    with pytest.raises(ValueError, match="2 keys for 1 edges"):
        HorizontalGraph("h", nodes, [{}, {}])


def test_a_vertical_graph_runs_nodes_side_by_side_and_joins_them():
    configs = [
        {
            "node": node(name, (lambda key: lambda m: {key: m["n"]})(name)),
            "input_keys": {"n": ""},
            "output_keys": {name: ""},
        }
        for name in ("a", "b")
    ]
    assert run(VerticalGraph, {"n": 1}, ["n"], ["a", "b"], node_configs=configs) == {
        "a": 1,
        "b": 1,
    }
    out = run(
        VerticalGraph,
        {"n": 2},
        ["n"],
        ["sum"],
        node_configs=configs,
        aggregator_args=node("sum", lambda m: {"sum": m["a"] + m["b"]}),
    )
    assert out == {"sum": 4}


def test_an_adjacency_matrix_says_which_edges_there_are():
    keys = {"n": ""}
    matrix = [[0, keys, 0, 0], [0, 0, keys, 0], [0, 0, 0, keys], [0, 0, 0, 0]]
    nodes = [None, node("a", lambda m: {"n": m["n"] + 1}), node("b", lambda m: m), None]
    out = run(
        AdjacencyMatrixGraph,
        {"n": 1},
        ["n"],
        ["n"],
        node_args_list=nodes,
        adjacency_matrix=matrix,
    )
    assert out == {"n": 2}
    with pytest.raises(ValueError, match="found a table of 1 rows"):
        AdjacencyMatrixGraph("m", nodes, [[0, 0, 0, 0]])


def test_critics_of_a_brainstorming_see_what_was_said_before_them():
    seen: list[Any] = []

    def critic(name: str) -> Any:
        def say(message: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
            seen.append((name, dict(attributes["broadcast"])))
            return {"q": message["q"], "o": message.get("o", "") + name}

        return say

    out = run(
        BrainstormingGraph,
        {"q": "Q"},
        ["q"],
        ["answer"],
        solver_args=node("solver", lambda m: {"answer": m["o"]}),
        critics_args=[node("c1", critic("c1")), node("c2", critic("c2"))],
        critic_keys={"q": "", "o": ""},
    )
    assert out == {"answer": "c1c2"}
    assert seen == [("c1", {}), ("c2", {"c1": {"q": "Q", "o": "c1"}})]


def critics(*names: str) -> dict[str, Any]:
    made = [node(name, (lambda said: lambda m: {"feedback": said})(name)) for name in names]
    return {
        "critics_args": made,
        "critics_output_keys_list": [{"feedback": ""}] * len(names),
        "solver_args": node("solver", solve),
        "solver_input_keys": {"feedback": ""},
        "max_inner_turns": 2,
        "controller_to_solver_keys": {"draft": ""},
    }


def solve(message: dict[str, Any]) -> dict[str, Any]:
    said = message["feedback"]
    return {"draft": f"{message['draft']}+{said if isinstance(said, str) else ''.join(said)}"}


def test_a_solver_answers_its_critics_in_every_round():
    out = run(VerticalDecisionGraph, {"draft": "D"}, ["draft"], ["draft"], **critics("a", "b"))
    assert out == {"draft": "D+ab+ab"}


def test_an_aggregator_stands_between_critics_and_solver():
    out = run(
        VerticalDecisionGraph,
        {"draft": "D"},
        ["draft"],
        ["draft"],
        **critics("a", "b"),
        aggregator_args=node("all", lambda m: {"feedback": "/".join(m["feedback"])}),
    )
    assert out == {"draft": "D+a/b+a/b"}


def test_a_draft_comes_before_the_rounds():
    out = run(
        VerticalSolverFirstDecisionGraph,
        {"q": "Q"},
        ["q"],
        ["draft"],
        prepend_solver_args=node("first", lambda m: {"draft": f"F:{m['q']}"}),
        prepend_solver_output_keys={"draft": ""},
        **critics("a"),
    )
    assert out == {"draft": "F:Q+a+a"}


def test_two_nodes_take_turns():
    def says(name: str) -> Any:
        return lambda message: {"text": f"{message['text']}{name}"}

    two = {"node_a": node("a", says("a")), "node_b": node("b", says("b")), "max_turns": 3}
    assert run(PingPongGraph, {"text": ""}, ["text"], ["text"], **two) == {"text": "aba"}
    out = run(PingPongGraph, {"text": ""}, ["text"], ["text"], **two, node_a_first=False)
    assert out == {"text": "bab"}


def test_instructor_and_assistant_have_histories_of_their_own():
    model = Script(*(f'{{"message": "{said}"}}' for said in ("i1", "a1", "i2", "a2")))
    out = run(
        InstructorAssistantGraph,
        {"message": "task"},
        ["message"],
        ["message"],
        model=model,
        max_turns=4,
        instructor_role_name="CEO",
        instructor_instructions="I am CEO",
        assistant_role_name="CTO",
        assistant_instructions="I am CTO",
        phase_instructions="Be brief.",
    )
    assert out == {"message": "a2"}
    assert [asked[0]["content"] for asked in model.asked] == ["I am CEO", "I am CTO"] * 2
    assert [len(asked) for asked in model.asked] == [2, 2, 4, 4]
    assert "Be brief." in model.asked[0][-1]["content"]


def test_phases_that_carry_nothing_share_attributes():
    model = Script('{"plan": "p"}', '{"draft": "d"}')
    graph = RootGraph("g", attributes={"task": "T", "plan": "", "draft": ""})
    phase = graph.create_node(
        InstructorAssistantGraph,
        name="phase",
        model=model,
        max_turns=2,
        instructor_role_name="I",
        instructor_instructions="",
        assistant_role_name="A",
        assistant_instructions="",
        phase_instructions="",
        instructor_prompt_template="{task} {draft}",
        assistant_prompt_template="{task} {plan}",
        pull_keys={"task": "", "plan": "", "draft": ""},
        push_keys={"plan": "", "draft": ""},
    )
    graph.edge_from_entry(phase, {})
    graph.edge_to_exit(phase, {})
    graph.build()
    _, attributes = graph.invoke({})
    assert (attributes["plan"], attributes["draft"]) == ("p", "d")
    assert "T p" in model.asked[1][-1]["content"]


def test_a_mesh_goes_round_with_one_history_until_the_answer_is_final():
    model = Script('{"message":"m1"}', '{"message":"m2"}', '{"message":"FINAL ANSWER x"}')
    history = HistoryMemory()
    out = run(
        MeshGraph,
        {"message": "start"},
        ["message"],
        ["message"],
        agents=[
            NodeTemplate(Agent, name="A", instructions="ia"),
            NodeTemplate(Agent, name="B", instructions="ib"),
        ],
        model=model,
        graph_instructions="GI",
        shared_memory=history,
    )
    assert out == {"message": "FINAL ANSWER x"}
    assert [asked[0]["content"] for asked in model.asked] == ["GI\nia", "GI\nib", "GI\nia"]
    assert [len(asked) for asked in model.asked] == [2, 4, 6]


def test_a_hub_hands_over_and_ends_where_it_answers_itself():
    model = Script(
        [{"id": "1", "name": "transfer_to_coder", "arguments": {}}],
        '{"message": "coder, begin"}',
        '{"message": "code"}',
        '{"message": "done: code"}',
    )
    hub = NodeTemplate(Agent, name="boss", instructions="hub")
    graph = RootGraph("g")
    node = graph.create_node(
        HubGraph,
        name="team",
        hub=hub,
        spokes=[NodeTemplate(Agent, name="coder", instructions="spoke")],
        model=model,
    )
    graph.edge_from_entry(node)
    graph.edge_to_exit(node)
    graph.build()
    assert graph.invoke({"message": "task"})[0] == {"message": "done: code"}
    assert [asked[0]["content"] for asked in model.asked] == ["hub", "hub", "spoke", "hub"]
    model.replies = ['{"message": "again"}']
    assert graph.invoke({"message": "more"})[0] == {"message": "again"}


def verify(at_least: int) -> Any:
    return lambda message: {**message, "accepted": message["attempt"] >= at_least}


@pytest.mark.parametrize(("at_least", "expected"), [(2, "draft-2"), (99, "draft-3")])
def test_a_generator_tries_until_it_is_accepted_or_the_rounds_are_over(at_least, expected):
    def generate(message: dict[str, Any]) -> dict[str, Any]:
        attempt = message["attempt"] + 1
        return {"attempt": attempt, "candidate": f"draft-{attempt}"}

    keys = {"attempt": "", "candidate": ""}
    out = run(
        GeneratorVerifierGraph,
        {"attempt": 0},
        ["attempt"],
        ["candidate"],
        generator=NodeTemplate(CustomNode, forward=generate),
        verifier=NodeTemplate(CustomNode, forward=verify(at_least)),
        max_iterations=3,
        generator_output_keys=keys,
        verifier_output_keys={**keys, "accepted": ""},
    )
    assert out == {"candidate": expected}
