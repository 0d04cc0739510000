"""Programs of composed graphs."""

from __future__ import annotations

from typing import Any

from masfactory import (
    CustomNode,
    GeneratorVerifierGraph,
    HorizontalGraph,
    NodeTemplate,
    PingPongGraph,
    VerticalDecisionGraph,
    VerticalSolverFirstDecisionGraph,
)

from .programs import noting, program, ran, saying, single


def critics(*names: str) -> dict[str, Any]:
    """Give critics that say their names, an aggregator and a solver that notes what it is given."""
    return {
        "critics_args": [
            {"cls": CustomNode, "name": name, "forward": saying(name)} for name in names
        ],
        "critics_output_keys_list": [{"say": ""} for _ in names],
        "aggregator_args": {
            "cls": CustomNode,
            "name": "all",
            "forward": lambda m: {"say": "".join(m["say"])},
        },
        "solver_args": {
            "cls": CustomNode,
            "name": "solver",
            "forward": lambda m: {"draft": f"{m['draft']}+{m['say']}"},
        },
        "solver_input_keys": {"say": ""},
        "controller_to_solver_keys": {"draft": ""},
        "max_inner_turns": 2,
    }


@program
def a_draft_goes_through_critics() -> Any:
    graph = single(
        VerticalSolverFirstDecisionGraph,
        ["q"],
        ["draft"],
        name="v",
        prepend_solver_args={
            "cls": CustomNode,
            "name": "first",
            "forward": lambda m: {"draft": m["q"]},
        },
        prepend_solver_output_keys={"draft": ""},
        **critics("a", "b"),
    )
    node: Any = graph._nodes["v"]
    names = [node.prepend_solver.name, node.solver.name, node.aggregator.name]
    inner = node.vertical_decision_graph.name
    return [ran(graph, {"q": "Q"})[0][0], names, [c.name for c in node.critics], inner]


@program
def critics_may_end_the_rounds_before_the_solver() -> Any:
    settings = critics("a", "b") | {
        "pre_solver_terminate_condition_function": lambda m: "bb" in m["draft"]
    }
    settings["aggregator_args"]["forward"] = lambda m: {"say": m["say"][-1] + "b"}
    return ran(
        single(VerticalDecisionGraph, ["draft"], ["draft"], name="v", **settings), {"draft": "D"}
    )[0][0]


@program
def a_generator_tries_until_its_verifier_accepts() -> Any:
    def generate(message: dict[str, Any]) -> dict[str, Any]:
        return {"message": {"try": message["message"].get("try", 0) + 1}}

    def verify(message: dict[str, Any]) -> dict[str, Any]:
        return {"message": {**message["message"], "ok": message["message"]["try"] >= 2}}

    graph = single(
        GeneratorVerifierGraph,
        ["message"],
        ["message"],
        name="gv",
        generator=NodeTemplate(CustomNode, forward=generate),
        verifier=NodeTemplate(CustomNode, forward=verify),
        accept_condition_function=lambda m: m["message"]["ok"],
        generator_name="maker",
        max_iterations=4,
    )
    node: Any = graph._nodes["gv"]
    return [
        ran(graph, {"message": {}})[0][0],
        node.generator.name,
        node.verifier.name,
        node.decision.name,
    ]


@program
def nodes_stand_in_a_row() -> Any:
    row = single(
        HorizontalGraph,
        ["text"],
        ["text"],
        node_args_list=[{"cls": CustomNode, "name": n, "forward": noting(n)} for n in "abc"],
        edge_keys_list=[{"text": ""}] * 2,
    )
    return ran(row, {"text": ">"})[0][0]


@program
def two_nodes_take_turns() -> Any:
    keys = {f"node_{node}_{way}_keys": {"text": ""} for node in "ab" for way in ("in", "out")}
    two = keys | {
        "node_a": {"cls": CustomNode, "name": "a", "forward": noting("a")},
        "node_b": {"cls": CustomNode, "name": "b", "forward": noting("b")},
    }
    graph = single(PingPongGraph, ["text"], ["text"], max_turns=3, **two)
    return ran(graph, {"text": ">"})[0][0]
