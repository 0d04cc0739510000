"""The contracts of nodes and edges: the least that each has, and what is taken from the rest."""

from __future__ import annotations

from typing import Any

import pytest

from axil import Edge, Node, RootGraph, SpecError
from axil.contract.node import NodeContract


class Shout:
    def run(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"text": inputs["text"].upper()}


class Short:
    """An edge that carries the first letters, and nothing of a short text."""

    def carry(self, seen: Any) -> Any:
        text = seen.fields["text"]
        return {"text": text[:3]} if len(text) > 3 else None


def graph(node: Any, **edge: Any) -> RootGraph:
    made = RootGraph("g")
    first = made.create_node(lambda inputs: inputs, name="first", inline=True)
    made.edge_from_entry(first, ["text"])
    second = made.create_node(node, name="second")
    made.create_edge(first, second, **(edge or {"keys": ["text"]}))
    made.edge_to_exit(second, ["text"])
    made.build()
    return made


def test_the_least_node_is_a_class_with_one_method_or_a_function():
    assert isinstance(Shout(), Node)
    assert graph(Shout()).invoke({"text": "hello"})[0] == {"text": "HELLO"}
    assert graph(lambda inputs: {"text": inputs["text"] * 2}).invoke({"text": "a"})[0] == {
        "text": "aa"
    }


def test_an_edge_is_an_object_that_says_what_is_carried():
    assert isinstance(Short(), Edge)
    made = graph(Shout(), carry=Short())
    assert made.invoke({"text": "hello"})[0] == {"text": "HEL"}
    assert made.invoke({"text": "ab"})[0] == {}


@pytest.mark.parametrize("other", [{"keys": ["text"]}, {"when": bool}, {"process": str}])
def test_an_edge_with_carry_has_nothing_else(other: dict[str, Any]):
    with pytest.raises(SpecError, match="AX169"):
        graph(Shout(), carry=Short(), **other)


def test_what_a_component_has_is_read_once():
    class Full(Shout):
        join, lane, effects, inline = "all", "slow", "none", True

        def __init__(self) -> None:
            self.given = {"tool": 1}

    component = Full()
    contract = NodeContract.of(component)
    assert (contract.join, contract.lane, contract.effects, contract.inline) == (
        "all",
        "slow",
        "none",
        True,
    )
    assert contract.given == {"node": component, "tool": 1}
    assert (contract.type, contract.is_node, contract.scope) == ("Full", True, None)


def test_what_has_nothing_to_run_is_no_node():
    assert not NodeContract.of(3).is_node
    with pytest.raises(SpecError, match=r"is not a node.*Give a class with run"):
        graph(type("Empty", (), {})())
