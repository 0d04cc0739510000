"""Tests of graphs, loops and subgraphs of files inside a graph with typed state."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

import axil
import axil_files
from axil import Graph, GraphWarning, RootGraph
from axil_agent import Agent, Scripted
from axil_control import Loop
from axil_journals import MemoryJournal


def asked(model: Scripted, call: int = -1) -> list[tuple[str, Any]]:
    return [(m["role"], m["content"]) for m in model.requests[call].messages]


class Counted(BaseModel):
    n: int = 0
    messages: Annotated[list[dict[str, Any]], "append_messages"] = []


def turning(state: Any, speaker: Scripted, /, **options: Any) -> tuple[RootGraph[Any], Loop]:
    """Return a graph with a loop in a graph in it, whose agent speaks in each round."""
    g: RootGraph[Any] = RootGraph("g", state=state)
    inner = g.create_node(Graph, name="inner")
    loop = inner.create_node(Loop, name="loop", **options)
    g.create_node(Agent(Scripted(["Done."])), name="last")
    loop.create_node(Agent(speaker), name="ann")
    loop.edge_from_controller("ann")
    inner.edge_from_entry(loop)
    inner.edge_to_exit(loop)
    g.create_edges([("entry", inner), (inner, "last"), ("last", "exit")])
    return g, loop


def test_graphs_and_loops_inside_share_the_conversation_around_them():
    ann = Scripted(["one", "two"])
    g, loop = turning("messages", ann, max_iterations=2)
    loop.create_node(Agent(Scripted(["b1", "b2"])), name="bob")
    loop.create_edges([("ann", "bob"), ("bob", "controller")])
    said = g.build().invoke("hi").state["messages"]
    assert [(m.get("source"), m["content"]) for m in said] == [
        (None, "hi"), ("ann", "one"), ("bob", "b1"), ("ann", "two"), ("bob", "b2"),
        ("last", "Done."),
    ]  # fmt: skip
    assert asked(ann) == [("user", "hi"), ("assistant", "one"), ("user", "bob: b1")]


@pytest.mark.parametrize(
    ("stop", "rounds"),
    [
        (lambda state: "STOP" in state.messages[-1]["content"], 3),
        (lambda state, attributes: attributes["current_iteration"] > 2, 2),
        (lambda: True, 1),
        (None, 4),
    ],
)
def test_a_loop_in_typed_state_is_asked_about_that_after_its_first_round(stop: Any, rounds: int):
    g, loop = turning(
        Counted,
        Scripted(["a", "b", "STOP", "d"]),
        max_iterations=4,
        terminate_condition_function=stop,
    )
    loop.create_node(lambda state: {"n": state.n + 1}, name="count")
    loop.create_edges([("ann", "count"), ("count", "controller")])
    assert g.build().invoke("Say STOP at the end.").state.n == rounds


def test_a_model_that_ends_a_loop_is_shown_the_conversation():
    judge = Scripted(["CONTINUE", "STOP"])
    g, loop = turning(
        "messages", Scripted(["a", "b"]), model=judge, terminate_condition_prompt="It is good."
    )
    loop.edge_to_controller("ann")
    assert len(g.build().invoke("hi").state["messages"]) == 4
    assert "user: hi\\nann: a\\nann: b" in asked(judge)[-1][1]


def test_a_loop_may_have_a_state_of_its_own():
    g = RootGraph("g")
    loop = g.create_node(Loop, name="loop", max_iterations=2, state=Counted)
    loop.create_node(lambda state: {"n": state.n + 2}, name="add")
    loop.edge_from_controller("add")
    loop.edge_to_controller("add")
    g.create_node(lambda attributes: {"message": attributes["n"]}, name="said")
    g.edge_from_entry(loop, {})
    g.create_edge(loop, "said", {})
    g.edge_to_exit("said")
    assert g.build().invoke({}, {"n": 1})[0] == {"message": 5}


def spoken(word: str) -> dict[str, Any]:
    model = {"type": "scripted", "config": {"rules": [{"replies": [word]}]}}
    return {"id": word, "type": "agent", "config": {"model": model}}


def holding(folder: Path, kind: str, config: dict[str, Any]) -> axil.Workflow[Any]:
    """Return the workflow of a file, whose subgraph follows an agent in a conversation."""
    sub = {"id": "sub", "type": "subgraph", "config": {"type": kind, "config": config}}
    edges = [{"from": "one", "to": "sub"}]
    graph = {"payload": "state", "start": ["one"], "nodes": [spoken("one"), sub], "edges": edges}
    (folder / "flow.json").write_text(json.dumps({"graph": graph}))
    return axil_files.load(folder / "flow.json")


def test_a_subgraph_of_a_file_shares_the_typed_state_around_it(tmp_path: Path):
    workflow = holding(tmp_path, "config", {"start": ["two"], "nodes": [spoken("two")]})
    said = workflow.invoke("hi").state["messages"]
    assert [(m["role"], m["content"]) for m in said] == [
        ("user", "hi"), ("assistant", "one"), ("assistant", "two"),
    ]  # fmt: skip


@pytest.mark.parametrize("payload", ["messages", "state"])
def test_an_included_file_that_works_on_messages_is_a_warning(tmp_path: Path, payload: str):
    graph = {"start": ["two"], "nodes": [spoken("two")], "payload": payload}
    (tmp_path / "inner.json").write_text(json.dumps({"graph": graph}))
    workflow = holding(tmp_path, "file", {"path": "inner.json"})
    found: list[Any] = []
    workflow.setting = replace(workflow.setting, warned=found.append)
    said = workflow.invoke("hi").state["messages"]
    assert [problem.id for problem in found] == ["AX174"] * (payload == "messages")
    assert len(said) == 2 + (payload == "state")


def test_a_file_whose_edges_carry_nothing_declares_its_fields(tmp_path: Path):
    graph = {"payload": "state", "attributes": {"n": 1}, "start": ["a"], "nodes": [spoken("a")]}
    (tmp_path / "flow.json").write_text(json.dumps({"graph": graph}))
    with pytest.raises(axil.SpecError, match=r"AX103.*n: \{type: int, default: 1\}"):
        axil_files.load(tmp_path / "flow.json")


@pytest.mark.parametrize("way", ["attributes", "keys"])
def test_agents_that_cannot_hear_the_conversation_around_them_are_a_warning(way: str):
    g, loop = turning("messages", Scripted(['{"draft": "d"}']), max_iterations=1)
    if way == "attributes":
        inner = g.nodes["inner"]
        inner.create_node(Graph(attributes={"n": 0}), name="apart")
        inner.nodes["apart"].create_node(Agent(Scripted(["a"])), name="cid")
        inner.nodes["apart"].edge_from_entry("cid", {})
        inner.create_edge("entry", "apart")
    loop.edge_to_controller("ann", ["draft"] if way == "keys" else None)
    found = {"attributes": r"apart.*cid.*attributes", "keys": r"loop.*ann.*ann->controller"}[way]
    with pytest.warns(GraphWarning, match=f"AX174.*{found}"):
        g.build()


class Said(BaseModel):
    role: str
    content: str


def test_messages_that_are_objects_are_heard():
    ann = Scripted(["yes"])
    g = RootGraph("g", state="messages")
    g.create_node(Agent(ann), name="ann")
    g.edge_from_entry("ann")
    g.edge_to_exit("ann")
    g.build().invoke([Said(role="user", content="hi")])
    assert asked(ann) == [("user", "hi")]


def test_messages_given_to_a_run_of_a_thread_follow_those_of_the_thread():
    g = RootGraph("g", state="messages")
    g.create_node(Agent(Scripted(["one", "two", "three"])), name="ann")
    g.edge_from_entry("ann")
    g.edge_to_exit("ann")
    g.build()
    journal = MemoryJournal()
    for number, words in enumerate(("a", "b", "c")):
        state = g.invoke(words, journal=journal, thread="t", run_id=f"r{number}").state
    assert [m["content"] for m in state["messages"]] == ["a", "one", "b", "two", "c", "three"]
    again = g.invoke(journal=journal, thread="t", run_id="r2", resuming=True)
    assert list(again.state["messages"]) == list(state["messages"])
