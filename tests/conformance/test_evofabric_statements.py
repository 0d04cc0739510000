"""Statements of EvoFabric's study beyond its recorded runs: fields, filters, merges, routers, nodes
and failures.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from pydantic import BaseModel, Field

from axil import (
    Graph,
    NodeFailed,
    RootGraph,
    SpecError,
    StateError,
    generate_state_schema,
    register_strategy,
    run_sync,
    schema_of,
)
from axil.plugin import BodyError, InvalidValue, RouteError

from .test_evofabric import (
    DIAMOND,
    Flow,
    Logged,
    Plain,
    Talk,
    Total,
    append_list,
    both,
    flow,
    gives,
    routed,
    state_of,
)

# --------------------------------------------------------------------------------------------------


class Zeros(BaseModel):
    a: list[int]
    b: dict[str, int]
    c: int
    d: str
    e: bool
    f: float
    g: int | None


class Odd(BaseModel):
    kind: Literal["x", "y"]
    n: int = 0


class Shape(TypedDict):
    name: str
    extra: NotRequired[int]


class Bounded(BaseModel):
    n: int = Field(0, ge=0, le=10)
    tail_: str = ""


def test_a_field_without_a_default_starts_with_the_empty_value_of_its_type():
    assert state_of(flow(Zeros, "start->a", a=gives({})).run({})) == {
        "a": [],
        "b": {},
        "c": 0,
        "d": "",
        "e": False,
        "f": 0.0,
        "g": None,
    }


def test_a_field_of_a_type_without_an_empty_value_can_be_given_or_written():
    made = flow(Odd, "start->a", a=gives({"n": 1}))
    assert state_of(made.run({"kind": "y"})) == {"kind": "y", "n": 1}
    assert flow(Odd, "start->a", a=gives({"kind": "x"})).run({}).attributes == {"kind": "x", "n": 0}


def test_a_field_without_a_strategy_is_overwritten_and_an_underscore_may_end_its_name():
    assert state_of(flow(Bounded, "start->a", a=gives({"n": 5, "tail_": "kept"})).run({})) == {
        "n": 5,
        "tail_": "kept",
    }


def test_constraints_hold_and_the_field_is_named():
    with pytest.raises(NodeFailed, match='field "n"') as caught:
        flow(Bounded, "start->a", a=gives({"n": 11})).run({})
    assert isinstance(caught.value.__cause__, InvalidValue)


def test_values_are_validated_in_lax_mode():
    assert state_of(flow(Logged, "start->a", a=gives({"n": "5"})).run({}))["n"] == 5


def test_a_typed_dict_gives_bodies_a_dict_and_a_field_that_is_not_required_may_be_absent():
    made = flow(
        Shape, "start->a", "a->b", a=gives({"name": "n"}), b=lambda state: {"extra": len(state)}
    )
    assert dict(made.run({}).state) == {"name": "n", "extra": 1}


def test_a_model_gives_bodies_something_with_attributes():
    made = flow(Plain, "start->a", a=lambda state: {"y": state.x + "!"})
    assert made.run({"x": "X"}).state.y == "X!"


def test_the_input_may_be_a_model():
    assert state_of(flow(Plain, "start->a", a=gives({})).run(Plain(x="X")))["x"] == "X"


def test_an_unknown_strategy_is_an_error_before_anything_runs():
    class Wrong(BaseModel):
        a: Annotated[list[int], "apend"]

    with pytest.raises(SpecError, match=r'"apend".*append'):
        RootGraph("g", state=Wrong)


def test_a_strategy_cannot_be_registered_twice():
    with pytest.raises(SpecError, match="AX150"):
        register_strategy("overwrite")(lambda old, new: new)


def test_a_schema_can_be_made_of_triples_and_always_has_messages():
    schema = generate_state_schema([("n", "int", "sum"), ("tags", list[str], append_list)])
    made = flow(
        schema,
        "start->a",
        a=gives({"n": 2, "tags": ["t"], "messages": [{"role": "user", "content": "hi"}]}),
    )
    result = made.run({"n": 1})
    assert (
        result.attributes["n"],
        list(result.attributes["tags"]),
        len(result.attributes["messages"]),
    ) == (3, ["t"], 1)
    with pytest.raises(SpecError, match="AX155"):
        generate_state_schema([("1a b", "int", "sum")])
    with pytest.raises(SpecError, match="AX150"):
        generate_state_schema([("n", "int", "zzz")])


# --------------------------------------------------------------------------------------------------


def test_none_is_a_value_for_overwrite():
    class Maybe(BaseModel):
        x: int | None = 1

    assert state_of(flow(Maybe, "start->a", a=gives({"x": None})).run({})) == {"x": None}


def test_an_updater_may_change_the_old_value():
    old_values: list[Any] = []

    def noting(old: Any, new: Any) -> Any:
        old_values.append(old)
        old.extend(new)
        return old

    class Noted(BaseModel):
        log: Annotated[list[str], noting] = []  # pydantic copies it

    made = flow(Noted, "start->a", "a->b", "a->c", **{n: gives({"log": [n]}) for n in "abc"})
    assert state_of(made.run({"log": ["in"]})) == {"log": ["in", "a", "b", "c"]}
    assert made.saw("b") == made.saw("c") == [{"log": ["in", "a"]}]


def test_of_messages_with_one_id_the_first_stays():
    says = gives(
        {"messages": [{"role": "user", "content": str(n), "msg_id": "1"} for n in range(2)]}
    )
    made = flow(Talk, "start->a", "a->b", a=says, b=says)
    assert [message["content"] for message in state_of(made.run({}))["messages"]] == ["0"]


@pytest.mark.parametrize("wrong", [None, 5, {"role": "user"}, [5], [["text"]]])
def test_what_is_not_a_list_of_messages_is_refused(wrong):
    with pytest.raises(NodeFailed, match="messages"):
        flow(Talk, "start->a", a=gives({"messages": wrong})).run({})


def test_messages_are_left_as_they_are():
    mine = {"role": "user", "content": "hi"}
    result = flow(
        Talk, "start->a", a=gives({"messages": [{"role": "assistant", "content": "ho"}]})
    ).run({"messages": [mine]})
    assert state_of(result)["messages"] == [mine, {"role": "assistant", "content": "ho"}]
    assert mine == {"role": "user", "content": "hi"}


# --------------------------------------------------------------------------------------------------


def test_a_filter_does_not_apply_defaults_again():
    made = flow(Total, "start->a", a=gives({"total": 1}))
    made.node("b", gives({"total": 1}))
    made.graph.create_edge("a", "b", state_filter=lambda state: {"total": state.total})
    assert state_of(made.run({})) == {"total": 12}


def test_a_filter_may_stand_on_an_edge_to_the_exit():
    made = flow(Plain, "start->a", a=gives({"x": "A", "y": "Y"}))
    made.graph.edge_to_exit("a", state_filter=lambda state: {"x": state.x})
    assert state_of(made.run({})) == {"x": "A", "y": "dflt", "last": ""}


@pytest.mark.parametrize("nothing", [None, {}])
def test_a_filter_that_gives_nothing_gives_all_defaults(nothing):
    made = flow(Plain, "start->a", a=gives({"x": "A"}))
    made.node("b", gives({}))
    made.graph.create_edge("a", "b", state_filter=lambda state: nothing)
    assert state_of(made.run({})) == {"x": "dflt", "y": "dflt", "last": ""}


def test_filters_act_before_states_are_merged():
    made = flow(Logged, "start->a", "a->b", "a->c")
    seen: list[Any] = []

    def merge(states: Any) -> Any:
        seen.extend(state.x for state in states)
        return {"x": "merged"}

    made.node("d", join="all", merge=merge)
    made.graph.create_edge("b", "d", state_filter=lambda state: {"x": "filtered b"})
    made.graph.create_edge("c", "d")
    assert state_of(made.run({"x": "in"}))["x"] == "merged"
    assert seen == ["filtered b", "in"]


@pytest.mark.parametrize("gives_back", [None, {}])
def test_a_merge_is_asked_for_a_single_state_too_and_nothing_means_all_defaults(gives_back):
    counts: list[int] = []
    made = flow(Plain, "start->a", a=gives({"x": "A"}))
    made.node(
        "d", gives({}), join="all", merge=lambda states: counts.append(len(states)) or gives_back
    )
    made.graph.create_edge("a", "d")
    assert state_of(made.run({})) == {"x": "dflt", "y": "dflt", "last": ""}
    assert counts == [1]


def test_each_group_may_have_a_merge_of_its_own():
    made = flow(
        Plain, "start->a", "a->b", "a->c", a=gives({}), b=gives({"x": "B"}), c=gives({"x": "C"})
    )
    made.node(
        "d",
        gives({}),
        join="all",
        merge={"one": lambda states: {"y": "1"}, "two": lambda states: {"y": "2"}},
    )
    made.graph.create_edge("b", "d", group="one")
    made.graph.create_edge("c", "d", group="two")
    made.run({})
    assert [state["y"] for state in made.saw("d")] == ["1", "2"]


# --------------------------------------------------------------------------------------------------


def test_plain_edges_and_a_router_of_one_node_all_count():
    made = flow(Logged, "start->a", "a->b", "a->p")
    made.node("c")
    made.graph.create_router("a", lambda state: "c", ["c"])
    made.run({})
    assert sorted(made.watch.bodies) == ["a", "b", "c", "p"]


@pytest.mark.parametrize("answer", [["c", "c"], {"c"}, ("c", "c"), frozenset({"c"})], ids=repr)
def test_a_target_is_taken_once_however_often_it_is_named(answer):
    made = routed(answer)
    made.run({"log": ["in"]})
    assert made.watch.bodies == ["a", "b", "c"]


def test_a_router_may_mix_names_and_filters():
    made = routed(["c", ("d", lambda state: {"x": "only d", "log": state.log})])
    made.run({"x": "in"})
    assert (made.saw("c")[0]["x"], made.saw("d")[0]["x"]) == ("in", "only d")


@pytest.mark.parametrize("answer", [3, True, object()], ids=["int", "bool", "object"])
def test_an_answer_that_is_no_name_is_an_error_at_the_router(answer):
    with pytest.raises(NodeFailed) as caught:
        routed(answer).run({})
    assert isinstance(caught.value.__cause__, RouteError)
    assert caught.value.path == "b"


def test_what_an_edge_asks_answers_at_once():
    async def ask(state: Any) -> Any:
        return "c"

    made = flow(Logged, "start->a")
    made.node("c")
    with pytest.raises(SpecError, match="AX166"):
        made.graph.create_router("a", ask, ["c"])
    made.graph.create_edge("a", "c", when=ask, process=ask, state_filter=ask)
    with pytest.raises(SpecError, match="AX166") as caught:
        made.graph.build()
    assert len(caught.value.problems) == 3


def test_the_same_edge_twice_is_an_error():
    made = flow(Logged, "start->a", "a->b")
    with pytest.raises(SpecError, match="AX106"):
        made.graph.create_edge("a", "b")


# --------------------------------------------------------------------------------------------------


def test_every_source_of_an_all_group_has_to_be_live():
    made = flow(Logged, "start->a", "a->b", "a->c", "b->d", join=both("d"))
    made.node("e")
    made.graph.create_router("c", lambda state: "e", ["d", "e"])
    made.run({})
    assert [activation.node for activation in made.watch.skipped] == ["d"]


def test_where_paths_end_the_one_on_the_later_level_is_joined_later():
    made = flow(
        Plain,
        "start->a",
        "a->b",
        "b->b2",
        "a->c",
        a=gives({}),
        b=gives({}),
        b2=gives({"x": "B2"}),
        c=gives({"x": "C"}),
    )
    assert state_of(made.run({}))["x"] == "B2"


def test_at_a_join_the_order_of_its_edges_decides_not_the_length_of_the_branches():
    edges = ("start->a", "a->b", "b->b2", "a->c", "b2->d", "c->d")
    made = flow(
        Plain,
        *edges,
        join=both("d"),
        a=gives({}),
        b=gives({}),
        b2=gives({"x": "B2"}),
        c=gives({"x": "C"}),
        d=gives({}),
    )
    assert state_of(made.run({}))["x"] == "C"


def test_a_value_that_was_seen_and_overwritten_upstream_does_not_come_back():
    """The newer write wins over the older one that came along another path, whatever the order of
    the edges.
    """
    edges = ("start->a", "a->b", "b->d", "a->d")
    made = flow(
        Plain, *edges, join=both("d"), a=gives({"x": "A"}), b=gives({"x": "B"}), d=gives({})
    )
    assert state_of(made.run({}))["x"] == "B"


def test_an_agent_loop_of_each_nodes_turns_until_its_router_leaves():
    made = flow(Logged, "start->agent", "tools->agent", join={})
    made.graph.create_router(
        "agent", lambda state: "tools" if len(state.log) < 6 else "end", ["tools", "end"]
    )
    assert state_of(made.run({}))["log"] == ["agent", "tools"] * 3 + ["agent"]


def test_branches_of_an_each_loop_keep_their_states_apart_and_meet_at_the_end():
    made = flow(Logged, "start->a", "a->b", "a->c", "b->d", "c->d")
    made.graph.create_router(
        "d", lambda state: "d" if list(state.log).count("d") < 2 else "end", ["d", "end"]
    )
    result = made.run({})
    assert [state["log"] for state in made.saw("d")] == [
        ["a", "b"],
        ["a", "c"],
        ["a", "b", "d"],
        ["a", "c", "d"],
    ]
    assert sorted(state_of(result)["log"]) == sorted(["a", "b", "c", "d", "d", "d", "d"])


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["text", 5, ["x"], ("x",), True], ids=repr)
def test_a_result_that_is_no_mapping_is_an_error(wrong):
    with pytest.raises(NodeFailed) as caught:
        flow(Logged, "start->a", a=lambda state: wrong).run({})
    assert isinstance(caught.value.__cause__, BodyError)


class Worker:
    async def method(self, state: Any) -> Any:
        return {"x": "method"}

    async def __call__(self, state: Any) -> Any:
        return {"x": "call"}


async def named(extra: str, state: Any) -> Any:
    return {"x": extra}


@pytest.mark.parametrize(
    "body",
    [Worker().method, Worker(), functools.partial(named, "partial")],
    ids=["method", "call", "partial"],
)
def test_any_async_callable_is_awaited(body):
    made = Flow(RootGraph("g", state=Plain))
    made.graph.create_node(body, name="n")
    made.graph.edge_from_entry("n")
    assert state_of(made.run({}))["x"] in ("method", "call", "partial")


def test_an_all_async_generator_streams_all_but_its_last_item():
    async def talk(state: Any) -> Any:
        yield "one"
        yield "two"
        yield {"x": "done"}

    made = Flow(RootGraph("g", state=Plain))
    made.graph.create_node(talk, name="n")
    made.graph.edge_from_entry("n")

    async def events() -> list[Any]:
        return [event async for event in made.graph.build().stream({})]

    reported = asyncio.run(events())
    assert [event.data for event in reported if event.kind == "chunk"] == ["one", "two"]
    assert state_of(reported[-1].data)["x"] == "done"


def test_a_typed_graph_may_be_a_node_of_another():
    g = RootGraph("g", state=Logged)
    inner = g.create_node(Graph, name="inner", state=Logged)
    inner.create_node(lambda state: {"log": ["i"], "x": "I"}, name="i", inline=True)
    inner.edge_from_entry("i")
    g.create_node(lambda state: {"log": ["o"]}, name="o", inline=True)
    g.edge_from_entry(inner)
    g.create_edge(inner, "o")
    assert state_of(run_sync(g.build().run({"log": ["in"], "n": 2}))) == {
        "log": ["in", "i", "o"],
        "x": "I",
        "n": 2,
    }


def test_a_body_may_hold_what_cannot_be_copied():
    class Holds(BaseModel, arbitrary_types_allowed=True):
        thing: Any = None

    lock = asyncio.Lock()
    assert flow(Holds, "start->a", a=gives({"thing": lock})).run({}).state.thing is lock


# --------------------------------------------------------------------------------------------------


def test_siblings_of_a_failed_node_are_cancelled_and_gone_when_the_run_ends():
    cancelled: list[str] = []
    made = Flow(RootGraph("g", state=Plain))
    started = asyncio.Event()

    async def slow(state: Any) -> Any:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("slow")
            raise

    async def fails(state: Any) -> Any:
        await started.wait()
        raise ValueError("broken")

    for name, body in (("slow", slow), ("fails", fails)):
        made.graph.create_node(body, name=name)
        made.graph.edge_from_entry(name)
    with pytest.raises(NodeFailed, match="broken"):
        made.run({})
    assert cancelled == ["slow"]


def test_one_graph_serves_requests_that_are_under_way_at_once():
    made = flow(Logged, *DIAMOND, join=both("d"))
    made.graph.build()

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(made.graph.run({"log": [str(n)], "n": n}) for n in range(40)))

    for n, result in enumerate(asyncio.run(all_at_once())):
        assert state_of(result) == {"log": [str(n), "a", "b", "c", "d"], "x": "dflt", "n": n}


def test_a_graph_can_be_used_again_after_a_failure():
    made = flow(Logged, "start->a", a=lambda state: {"n": 10 // state.n})
    with pytest.raises(NodeFailed):
        made.run({"n": 0})
    assert run_sync(made.graph.run({"n": 5})).state.n == 2


def test_a_merge_that_raises_fails_the_node_it_is_for():
    made = flow(Plain, "start->a", "a->b", "a->c", a=gives({}), b=gives({}), c=gives({}))
    made.node("d", gives({}), join="all", merge=lambda states: 1 // 0)
    made.graph.create_edges([("b", "d"), ("c", "d")])
    with pytest.raises(NodeFailed, match='node "d"'):
        made.run({})


def test_a_filter_that_raises_fails_its_edges_source():
    made = flow(Plain, "start->a", a=gives({}))
    made.node("b", gives({}))
    made.graph.create_edge("a", "b", state_filter=lambda state: 1 // 0)
    with pytest.raises(NodeFailed, match='node "a"'):
        made.run({})


@pytest.mark.parametrize("part", ["when", "process", "state_filter"])
def test_a_function_that_raises_is_blamed_with_its_edge(part):
    made = flow(Plain, "start->a", a=gives({}))
    made.node("b", gives({}))
    made.graph.create_edge("a", "b", **{part: lambda seen: 1 // 0})
    with pytest.raises(NodeFailed, match="a->b"):
        made.run({})


def test_what_a_filter_or_a_merge_gives_is_checked_like_a_delta():
    made = flow(Plain, "start->a", a=gives({}))
    made.node("b", gives({}))
    made.graph.create_edge("a", "b", state_filter=lambda state: {"zzz": 1})
    with pytest.raises(NodeFailed) as caught:
        made.run({})
    assert caught.value.__cause__.id == "AX201"  # a field that is not declared


def test_a_filtered_sum_that_meets_concurrent_writes_is_a_named_error():
    made = flow(Total, "start->a", "a->b", "a->c", **{n: gives({"total": 1}) for n in "abc"})
    made.node("d", gives({}), join="all")
    made.graph.create_edge("b", "d", state_filter=lambda state: {"total": 0})
    made.graph.create_edge("c", "d")
    with pytest.raises(NodeFailed, match="AX213") as caught:
        made.run({})
    assert isinstance(caught.value.__cause__, StateError)


def test_states_of_one_class_are_of_one_schema():
    assert schema_of(Plain) is schema_of(Plain)
