"""Graphs whose state is typed: built, run, joined, recorded and resumed."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel, Field

from axil import GraphSpec, NodeFailed, RootGraph, schema_of
from axil.errors import InvalidValue, UndeclaredField


class Chat(TypedDict):
    topic: str
    count: int


class Brief(BaseModel):
    """A model with several strategies; its shape is counted in a digest below."""

    topic: str = ""
    notes: Annotated[list[str], "append"] = []
    messages: Annotated[list[dict[str, Any]], "append_messages"] = []
    cost: Annotated[float, "sum", Field(ge=0)] = 0.0
    seen: Annotated[set[int], "union"]


def typed(**nodes: Any) -> RootGraph:
    graph = RootGraph("g", state=Chat)
    for name, function in nodes.items():
        graph.create_node(function, name=name, inline=True)
    graph.edge_from_entry(next(iter(nodes)))
    return graph


def test_a_typed_graph_gives_its_state_and_nodes_return_what_changes():
    graph = typed(
        a=lambda state: {"count": len(state["topic"])}, b=lambda s: {"topic": s["topic"] + "!"}
    )
    graph.create_edge("a", "b")
    graph.edge_to_exit("b")
    output, attributes = graph.build().invoke({"topic": "axil"})
    assert dict(output) == attributes == {"topic": "axil!", "count": 4}


def test_a_typed_graph_refuses_other_fields_and_other_types():
    with pytest.raises(UndeclaredField):
        typed(a=lambda state: None).build().invoke({"topik": "t"})
    with pytest.raises(InvalidValue):
        typed(a=lambda state: None).build().invoke({"count": "many"})
    with pytest.raises(NodeFailed, match="topik"):
        typed(a=lambda state: {"topik": 1}).build().invoke({})


def test_what_a_body_does_to_its_view_of_a_model_counts_or_fails():
    def assigned(state: Any) -> Any:
        state.topic += "!"
        state.model_dump()
        state.cost = 2.0
        return {"notes": ["n"]}

    def assigned_alone(state: Any) -> None:
        state.topic = "t!"

    def deleted(state: Any) -> None:
        del state.topic

    for body, found in ((assigned, ("t!", ["n"], 2.0)), (assigned_alone, ("t!", [], 0.0))):
        graph = RootGraph("g", state=Brief)
        graph.edge_from_entry(graph.create_node(body, name="a"))
        state: Any = graph.build().invoke({"topic": "t"}).state
        assert (state.topic, state.notes, state.cost) == found
    graph = RootGraph("g", state=Brief)
    graph.edge_from_entry(graph.create_node(deleted, name="a"))
    with pytest.raises(NodeFailed, match='deleted "topic"'):
        graph.build().invoke({})


def test_branches_meet_in_the_fields_of_a_model():
    graph = RootGraph("g", state=Brief)
    graph.create_node(lambda state: None, name="a")
    graph.create_node(lambda state: {"notes": ["b"], "cost": 1, "seen": {1}}, name="b")
    graph.create_node(lambda state: {"notes": ["c"], "cost": 2, "seen": {2}}, name="c")
    graph.create_node(lambda state: {"topic": " ".join(state.notes)}, name="d")
    graph.edge_from_entry("a")
    graph.create_edges([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    graph.edge_to_exit("d")
    state = graph.build().invoke({})[1]
    assert state == {
        "topic": "b c", "notes": ["b", "c"], "messages": [], "cost": 3.0, "seen": {1, 2},
    }  # fmt: skip


def test_digests_are_what_they_were_before_typed_state_left_core():
    assert GraphSpec(id="g", schema=schema_of(Brief), payload="state").digest() == (
        "76f8b8058db17acd69dff61dde80fa939af3979e0c02bd299f9391e4a1b806dd"
    )


def test_importing_schemas_does_not_import_pydantic():
    code = "import sys, axil; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


NEW = {"role": "assistant", "content": "new"}


@pytest.mark.parametrize(
    "body",
    [
        lambda state: {"messages": [*state.messages, NEW]},
        lambda state: {"messages": state.messages + [NEW]},  # noqa: RUF005
        lambda state: state.messages.append(NEW),
        lambda state: (state.messages.append(NEW), {"messages": state.messages})[1],
        lambda state: (state.messages.append(NEW), state)[1],
        lambda state: (state.messages.append({"role": "user"}), {"messages": [NEW]})[1],
        lambda state, ctx: {"messages": [*state.messages, NEW]},
    ],
)
def test_what_a_body_was_given_of_a_conversation_is_not_said_again(body):
    graph = RootGraph("g", state=Brief)
    graph.create_node(body, name="a")
    graph.edge_from_entry("a")
    graph.edge_to_exit("a")
    said = {"role": "user", "content": "u"}
    assert graph.build().invoke({"messages": [said, said]})[1]["messages"] == [said, said, NEW]


def test_a_filter_of_messages_has_effect_on_its_own_path_only():
    graph = RootGraph("g", state=Brief)
    for name in "abcd":
        graph.create_node(
            lambda state, name=name: {"messages": [{"role": "user", "content": name, "id": name}]},
            name=name,
        )
    graph.edge_from_entry("a")
    graph.create_edge("a", "b", state_filter=lambda state: {})
    for source, target in ("ac", "bd", "cd"):
        graph.create_edge(source, target)
    graph.edge_to_exit("d")
    messages = graph.build().invoke({})[1]["messages"]
    assert [each["id"] for each in messages] == ["b", "a", "c", "d"]
