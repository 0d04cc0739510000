"""Calls of users' functions: by name, or by position."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from typing import Any

import pytest

from axil import CustomNode, RootGraph, SpecError


def given(function: Callable[..., Any], kind: Any = CustomNode, **options: Any) -> Any:
    g = RootGraph("g", attributes={"a": 1})
    if kind is CustomNode:
        n = g.create_node(CustomNode, name="n", forward=function, **options)
    else:
        n = g.create_node(function, name="n")
    g.edge_from_entry(n, ["x"])
    g.edge_to_exit(n, ["got"])
    return g.build().invoke({"x": 7})[0]["got"]


SHAPES: list[Callable[..., Any]] = [
    lambda input: {"got": [input["x"]]},
    lambda input, attributes: {"got": [input["x"], attributes["a"]]},
    lambda input, attributes, memories: {"got": [input["x"], attributes["a"], memories]},
    lambda input, attributes, memories, tools: {
        "got": [input["x"], attributes["a"], memories, tools]
    },
    lambda input, attributes, memories, tools, retrievers: {
        "got": [input["x"], attributes["a"], memories, tools, retrievers]
    },
    lambda input, attributes, memories, tools, retrievers, self: {
        "got": [input["x"], attributes["a"], memories, tools, retrievers, self.name]
    },
]


@pytest.mark.parametrize("count", range(1, 7))
def test_the_six_shapes_of_a_forward_function_are_called_as_printed(count: int):
    all_of_them = [7, 1, ["M"], ["T"], ["R"], "n"]
    got = given(SHAPES[count - 1], memories=["M"], tools=["T"], retrievers=["R"])
    assert got == all_of_them[:count]


@pytest.mark.parametrize(
    "function",
    [
        lambda message, attributes: {"got": [message["x"], attributes["a"]]},
        lambda data, attributes: {"got": [data["x"], attributes["a"]]},
        lambda input, attrs: {"got": [input["x"], attrs["a"]]},
        lambda inputs, at: {"got": [inputs["x"], at["a"]]},
        lambda messages, attributes: {"got": [messages["x"], attributes["a"]]},
        lambda data, attributes=None: {"got": [data["x"], attributes["a"]]},
    ],
)
def test_a_known_name_at_its_own_place_counts_as_a_position(function: Callable[..., Any]):
    assert given(function) == [7, 1]


def test_a_parameter_with_a_default_of_its_own_is_never_filled():
    assert given(lambda d, factor=5: {"got": d["x"] * factor}) == 35
    assert given(lambda d, factor=5: {"got": d["x"] * factor}, kind=None) == 35


def test_a_function_of_any_arguments_is_given_the_fields():
    assert given(lambda *given: {"got": [len(given), given[0]["x"]]}) == [1, 7]


def test_a_plain_function_is_called_by_position_too():
    assert given(lambda data, at: {"got": [data["x"], at["a"]]}, kind=None) == [7, 1]


def test_a_plain_function_has_two_positions():
    with pytest.raises(SpecError, match="AX163"):
        given(lambda p, q, r: {}, kind=None)


def test_what_a_function_writes_to_attributes_of_any_name_counts():
    def write(data: Any, at: Any) -> Any:
        at["a"] = data["x"]
        return {}

    g = RootGraph("g", attributes={"a": 1})
    n = g.create_node(CustomNode, name="n", forward=write)
    g.edge_from_entry(n, ["x"])
    g.edge_to_exit(n, {})
    assert g.build().invoke({"x": 7})[1] == {"a": 7}


def test_a_name_that_only_a_name_can_give_is_no_position():
    with pytest.raises(SpecError, match=r"AX162.*ctx"):
        given(lambda data, ctx: {})


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        (lambda p: p["x"] == 7, True),
        (lambda p, s: (p["x"], s["a"]) == (7, 1), True),
        (lambda p, limit=3: p["x"] < limit, False),
        (lambda p, attributes: attributes["a"] == 1 and p["x"] == 7, True),
        (lambda payload, state: state["a"] == payload["x"], False),
        (bool, True),
    ],
)
def test_a_condition_on_an_edge_is_called_by_the_same_rule(
    condition: Callable[..., Any], taken: bool
):
    g = RootGraph("g", attributes={"a": 1})
    a = g.create_node(CustomNode, name="a")
    g.edge_from_entry(a, ["x"])
    g.edge_to_exit(a, ["x"], when=condition)
    assert g.build().invoke({"x": 7})[0] == ({"x": 7} if taken else {})


def test_a_condition_that_mixes_names_is_refused_with_its_edge():
    g = RootGraph("g")
    a = g.create_node(CustomNode, name="a")
    g.edge_from_entry(a, ["x"])
    g.edge_to_exit(a, ["x"], when=lambda p, text: True)
    with pytest.raises(SpecError, match=r"AX162.*"):
        g.build()


LATER = """
import functools

def plain(input: Later, attributes: Later) -> Later:
    return {"got": [input["x"], attributes["a"]]}

@functools.wraps(plain)
def wrapped(*args, **named):
    return plain(*args, **named)

class Called:
    def __call__(self, input: Later, attributes: Later) -> Later:
        return plain(input, attributes)

partial = functools.partial(plain)
called = Called()
"""
"""Annotations by names that only type checkers know, which Python 3.14 reads when asked."""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are read at once")
@pytest.mark.parametrize("name", ["plain", "wrapped", "partial", "called"])
def test_a_function_may_be_annotated_with_what_only_type_checkers_know(name, tmp_path):
    (tmp_path / "later.py").write_text(LATER)
    assert given(runpy.run_path(str(tmp_path / "later.py"))[name]) == [7, 1]
