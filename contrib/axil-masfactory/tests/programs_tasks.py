"""Programs of whole tasks: a trip, a search, texts with marks, sizes, a field."""

from __future__ import annotations

from typing import Any

from masfactory import (
    Agent,
    CustomNode,
    Graph,
    HistoryMemory,
    LogicSwitch,
    Loop,
    NodeTemplate,
    RootGraph,
)

from .programs import Says, giving, program, ran


@program
def a_trip_is_planned_beside_its_budget() -> Any:
    model = Says(
        {"days": "2", "city": "Bern"}, {"plan": "museum", "budget": "90"}, {"answer": "go"}
    )
    graph = RootGraph("trip", attributes={"currency": "CHF"})
    parse = graph.create_node(Agent, name="parse", model=model, instructions="Parse {request}.")
    keys = {"budget": "the sum"}
    plan = graph.create_node(
        Agent,
        name="plan",
        model=model,
        instructions="Plan.",
        pull_keys={"currency": "the money"},
        push_keys=keys,
    )
    answer = graph.create_node(
        Agent, name="answer", model=model, instructions="Answer.", pull_keys=keys
    )
    graph.edge_from_entry(parse, {"request": "what is wanted"})
    graph.create_edge(parse, plan, {"city": "where", "days": "how long"})
    graph.create_edge(plan, answer, {"plan": "the plan"})
    graph.edge_to_exit(answer, {"answer": "the answer"})
    graph.build()
    result = ran(graph, {"request": "two days in Bern"})
    texts = [str(each[-1]["content"]) for each in model.asked]
    return [*result, len(texts), "CHF" in texts[1], "90" in texts[2]]


@program
def a_number_is_found_by_halves() -> Any:
    def guess(message: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
        n = (message["low"] + message["high"]) // 2
        attributes["tried"] = [*attributes["tried"], n]
        return {**message, "n": n}

    def judge(message: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
        n, secret = message["n"], attributes["secret"]
        side = {"low": n} if n < secret else {"high": n}
        return {**message, **side, "hit": n == secret}

    graph = RootGraph("guess", attributes={"secret": 5, "tried": []})
    loop = graph.create_node(
        Loop,
        name="halves",
        max_iterations=10,
        terminate_condition_function=lambda message, attributes: message.get("hit") is True,
        initial_messages={"low": 0, "high": 16},
        pull_keys={"secret": "", "tried": ""},
        push_keys={"tried": ""},
    )
    first = loop.create_node(CustomNode, "guess", forward=guess, push_keys={"tried": ""})
    then = loop.create_node(CustomNode, name="judge", forward=judge)
    keys = {"low": "", "high": ""}
    loop.edge_from_controller(first, keys)
    loop.create_edge(first, then, {**keys, "n": ""})
    back = loop.edge_to_controller(then, {**keys, "n": "", "hit": ""})
    graph.edge_from_entry(loop, {})
    graph.edge_to_exit(loop, {"n": "what was found"})
    graph.build()
    return [*ran(graph, {}), back.keys]


class Marked(CustomNode):
    """A node that puts a text between marks."""

    def __init__(self, name: str, mark: str, **more: Any) -> None:
        super().__init__(name, **more)
        self.mark = mark

    def _forward(self, input: dict[str, Any]) -> dict[str, Any]:  # MASFactory's name
        self._attributes_store[f"seen_{self.mark}"] = True
        return {"text": f"{self.mark}{input['text']}{self.mark}", "by": self._name}


@program
def marks_are_made_of_templates() -> Any:
    graph = RootGraph(
        "marks",
        nodes=[("bold", NodeTemplate(Marked, mark="**")), ("code", NodeTemplate(Marked, mark="`"))],
        edges=[
            ("entry", "bold", {"text": ""}),
            ("bold", "code", {"text": ""}),
            ("code", "exit", {"text": "", "by": ""}),
        ],
    )
    graph.build()
    return ran(graph, {"text": "a"}, {"text": "b"})


@program
def two_ways_of_a_switch_meet_again() -> Any:
    graph = RootGraph("sizes")
    switch = graph.create_node(LogicSwitch, name="switch")
    join = graph.create_node(CustomNode, name="join", forward=lambda message: {"got": message})
    conditions = {"small": lambda m, a: m["v"] < 10, "big": lambda m, a: m["v"] >= 5}
    for name, condition in conditions.items():
        node = graph.create_node(CustomNode, name=name, forward=giving(size=name))
        switch.condition_binding(condition, graph.create_edge(switch, node, {"v": ""}))
        graph.create_edge(node, join, {"size": ""})
    graph.edge_from_entry(switch, {"v": ""})
    graph.edge_to_exit(join, {"got": ""})
    graph.build()
    return ran(graph, {"v": 1}, {"v": 7}, {"v": 20})


@program
def an_agent_within_computes_and_remembers() -> Any:
    called: list[Any] = []

    def area(width: int, height: int) -> int:
        """Compute the area of a field.

        Args:
            width: one side.
            height: the other one.
        """
        called.append([width, height])
        return width * height

    call = {"id": "1", "name": "area", "arguments": {"width": 2, "height": 3}}
    model, memory = Says([call], {"area": "6"}), HistoryMemory(top_k=5)
    graph = RootGraph("field")
    within = graph.create_node(
        Graph, name="within", pull_keys={"unit": ""}, push_keys={"area": ""}, attributes={"own": 1}
    )
    agent = within.create_node(
        Agent,
        name="compute",
        model=model,
        instructions=["You compute.", "Use tools."],
        tools=[area],
        memories=[memory],
        pull_keys={"unit": "the unit"},
        push_keys={"area": "the area"},
    )
    within.edge_from_entry(agent, {"question": "what is asked"})
    within.edge_to_exit(agent, {"area": "the area"})
    graph.edge_from_entry(within, {"question": ""})
    graph.edge_to_exit(within, {"area": ""})
    graph.build()
    output, attributes = graph.invoke({"question": "2 by 3?"}, attributes={"unit": "m"})
    return [output, attributes, called, agent.name, len(agent.tools), len(memory.get_messages())]
