"""Tests of assignments to views of the state, and of messages on edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import pytest

from axil import NodeFailed, Out, RootGraph


def after(body: Callable[..., Any], typed: Any = None, **options: Any) -> dict[str, Any]:
    g: Any = RootGraph("g", attributes={"k": 0}, state=typed)
    n = g.create_node(body, name="n", **options)
    g.edge_from_entry(n, {})
    g.edge_to_exit(n, {})
    return g.build().invoke({})[1]


def test_what_a_body_assigns_to_its_state_counts():
    def body(state: Any) -> Any:
        state["k"] = 1
        return {}

    async def slow(state: Any, ctx: Any) -> Any:
        state["k"] = 1
        return {}

    assert after(body) == after(slow) == {"k": 1}


def test_what_a_body_returns_wins_over_what_it_assigned():
    def body(state: Any) -> Any:
        state["k"] = 1
        return {"k": 2}

    assert after(body) == {"k": 2}


@pytest.mark.parametrize("options", [{}, {"push_keys": {}}])
def test_assigning_a_field_that_the_node_does_not_write_fails_it(options: Any):
    def body(state: Any) -> Any:
        state["new" if not options else "k"] = 1
        return {}

    with pytest.raises(NodeFailed, match="does not write it"):
        after(body, **options)


def setting(way: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a body that changes its view of the state."""

    def body(state: Any) -> Any:
        way(state)
        return {}

    return body


def of_attributes(way: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a body that changes its view of the attributes."""

    def body(attributes: Any) -> Any:
        way(attributes)
        return {}

    return body


WRITES: list[Callable[[Any], Any]] = [
    lambda view: view.__setitem__("k", 5),
    lambda view: view.update({"k": 5}),
    lambda view: view.update(k=5),
    lambda view: view.__ior__({"k": 5}),
]
DELETES: list[Callable[[Any], Any]] = [
    lambda view: view.__delitem__("k"),
    lambda view: view.pop("k"),
    lambda view: view.popitem(),
    lambda view: view.clear(),
]


class Counted(TypedDict):
    k: int


@pytest.mark.parametrize("body", [setting, of_attributes])
@pytest.mark.parametrize("state", [None, Counted])
def test_each_way_to_write_to_a_view_counts(body: Any, state: Any):
    for way in WRITES:
        assert after(body(way), typed=state) == {"k": 5}


@pytest.mark.parametrize("body", [setting, of_attributes])
@pytest.mark.parametrize("state", [None, Counted])
def test_each_way_to_delete_from_a_view_fails_its_node(body: Any, state: Any):
    for way in DELETES:
        with pytest.raises(NodeFailed, match=r'deleted "k".*Assign another value'):
            after(body(way), typed=state)


@pytest.mark.parametrize("body", [setting, of_attributes])
@pytest.mark.parametrize("state", [None, Counted])
def test_a_new_field_that_nothing_takes_fails_the_node_that_sets_it(body: Any, state: Any):
    for way in (lambda view: view.setdefault("z", 1), lambda view: view.update(z=1)):
        with pytest.raises(NodeFailed, match='"z"'):
            after(body(way), typed=state)


def test_what_was_deleted_and_assigned_again_is_written():
    def swap(view: Any) -> None:
        before = view.pop("k")
        view["k"] = before + 5

    assert after(setting(swap)) == {"k": 5}


def test_attributes_count_beside_an_out():
    def body(attributes: Any) -> Any:
        attributes["k"] = 5
        return Out({})

    assert after(body) == {"k": 5}


@pytest.mark.parametrize("way", [lambda state: state.update(k=1), lambda state: state.pop("k")])
def test_assigning_to_the_state_of_a_context_fails(way: Any):
    def body(ctx: Any) -> Any:
        way(ctx.state)
        return {}

    with pytest.raises(NodeFailed, match=r"ctx\.state"):
        after(body)


def test_a_body_of_a_typed_graph_may_assign_and_return_nothing():
    class Reported(TypedDict):
        k: int

    def body(state: Any) -> None:
        state["k"] = 5

    g = RootGraph("g", state=Reported)
    n = g.create_node(body, name="n")
    g.edge_from_entry(n)
    g.edge_to_exit(n)
    assert g.build().invoke({"k": 1})[1] == {"k": 5}


def test_an_input_that_lacks_a_field_is_at_fault_itself():
    g = RootGraph("g")
    n = g.create_node(lambda inputs: inputs, name="n")
    g.edge_from_entry(n, ["x"])
    g.edge_to_exit(n, ["x"])
    with pytest.raises(NodeFailed, match="the input lacks") as failed:
        g.build().invoke({})
    assert 'Give "x" with the input.' in str(failed.value.__cause__ or failed.value)
