"""Graphs by EvoFabric's names: states, joins, routers, limits."""

from __future__ import annotations

import asyncio
import functools
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel

from axil import NodeFailed
from evofabric.absent import Unsupported
from evofabric.core.factory import safe_get_attr, safe_set_attr
from evofabric.core.graph import (
    AsyncNode,
    AsyncStreamNode,
    GraphBuilder,
    StateUpdater,
    StreamWriter,
    SyncStreamNode,
    generate_state_schema,
    set_streaming_handler,
)


@StateUpdater.register("evofabric_tests_added")
def added(old: Any, new: Any) -> Any:
    return [*old, *new]


class Log(BaseModel):
    log: Annotated[list[str], "evofabric_tests_added"] = []
    x: Annotated[str, "overwrite"] = "first"


def says(name: str, **more: Any) -> Any:
    return lambda state: {"log": [name], **more}


def builder(*edges: str, **nodes: Any) -> GraphBuilder:
    """Nodes that say their names, and edges written ``a->b``; the first node begins."""
    made = GraphBuilder(state_schema=Log)
    names = dict.fromkeys(name for edge in edges for name in edge.split("->"))
    for name in [*nodes, *(name for name in names if name not in nodes)]:
        if name != "end":
            given = nodes.get(name, says(name))
            made.add_node(name, *given) if isinstance(given, tuple) else made.add_node(name, given)
    made.set_entry_point(next(iter(names)))
    for edge in edges:
        made.add_edge(*edge.split("->"))
    return made


def run(made: GraphBuilder, inputs: Any = None, **options: Any) -> Any:
    return asyncio.run(made.build(**options).run(inputs or {}))


def test_a_chain_gives_the_state_at_its_end():
    state = run(builder("a->b", b=says("b", x="B")), {"log": ["in"]})
    assert isinstance(state, Log)
    assert (state.log, state.x) == (["in", "a", "b"], "B")


def test_a_node_is_async_partial_bound_or_an_object():
    class Later(AsyncNode):
        async def __call__(self, state: Any) -> Any:
            return {"log": ["object"]}

        async def bound(self, state: Any) -> Any:
            return {"log": ["bound"]}

    async def named(state: Any, name: str) -> Any:
        return {"log": [name]}

    made = builder(
        "a->b", "b->c", a=Later(), b=Later().bound, c=functools.partial(named, name="partial")
    )
    assert run(made).log == ["object", "bound", "partial"]


def test_what_a_node_shows_comes_to_the_handler_with_its_place():
    class Shows(SyncStreamNode):
        def __call__(self, state: Any, stream_writer: StreamWriter) -> Any:
            stream_writer.put("half")
            return {"log": ["shown"]}

    heard: list[dict[str, Any]] = []
    set_streaming_handler(heard.append)
    try:
        assert run(builder("a->b", a=Shows())).log == ["shown", "b"]
    finally:
        set_streaming_handler(lambda chunk: None)
    assert [(each["node_name"], each["payload"]) for each in heard] == [("a", "half")]


def test_an_async_handler_has_heard_all_when_the_run_ends():
    class Shows(AsyncStreamNode):
        async def __call__(self, state: Any, stream_writer: StreamWriter) -> Any:
            stream_writer.put("half")

    heard: list[Any] = []

    async def later(chunk: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        heard.append(chunk["payload"])

    set_streaming_handler(later)
    try:
        run(builder("a->b", a=Shows()))
    finally:
        set_streaming_handler(lambda chunk: None)
    assert heard == ["half"]


def test_any_works_for_each_predecessor_and_all_once():
    fork = ("a->b", "a->c", "b->d", "c->d")
    assert run(builder(*fork)).log.count("d") == 2
    assert run(builder(*fork, d=(says("d"), "all"))).log == ["a", "b", "c", "d"]


def test_states_that_meet_are_merged_by_a_strategy():
    seen: list[Any] = []

    def merge(states: list[Any]) -> Any:
        seen.extend(states)
        return {"log": ["merged"], "x": "M"}

    made = builder("a->b", "a->c", d=(says("d"), "all", {"all": merge}))
    made.add_edge("b", "d")
    made.add_edge("c", "d")
    state = run(made)
    assert (state.log, state.x) == (["merged", "d"], "M")
    assert len(seen) == 2


def test_a_filter_gives_the_state_that_goes_on():
    made = builder("a->b", b=says("b"), c=says("c"))
    made.add_edge("b", "c", state_filter=lambda state: {"log": ["kept"]})
    assert run(made).log == ["kept", "c"]


def test_a_router_chooses_among_its_targets():
    def route(state: Any) -> str:
        return "end" if len(state.log) > 3 else "a"

    made = builder("a->b")
    made.add_condition_edge("b", route, {"a", "end"})
    assert run(made).log == ["a", "b", "a", "b"]
    with pytest.raises(TypeError, match="expected several names"):
        made.add_condition_edge("b", route, "end")


def test_a_run_that_needs_more_turns_gives_its_state_so_far():
    assert run(builder("a->b", "b->c"), max_turn=3).log == ["a", "b"]
    assert run(builder("a->b", "b->c"), max_turn=5).log == ["a", "b", "c"]


def test_a_graph_is_a_node_of_another():
    made = GraphBuilder(state_schema=Log)
    made.add_node("inside", builder("i->j", i=says("i", x="I")).build())
    made.set_entry_point("inside")
    assert run(made).x == "I"


def test_one_engine_serves_many_at_once():
    engine = builder("a->b").build()

    async def several() -> list[Any]:
        return await asyncio.gather(*(engine.run({"log": [str(n)]}) for n in range(5)))

    assert [state.log for state in asyncio.run(several())] == [[str(n), "a", "b"] for n in range(5)]


def test_a_failure_names_the_node_and_has_its_cause():
    def fail(state: Any) -> Any:
        raise LookupError("gone")

    with pytest.raises(NodeFailed, match='node "b"') as failed:
        run(builder("a->b", b=fail))
    assert isinstance(failed.value.__cause__, LookupError)


def test_mistakes_are_errors_where_they_are_made():
    made = builder("a->b")
    for wrong, reported in (
        (lambda: made.add_node("a", says("a")), "already exists"),
        (lambda: made.add_node("start", says("s")), "is preserved"),
        (lambda: made.add_node("n", says("n"), "some"), "some"),
        (lambda: made.add_edge("a", "zz"), "'zz' not exists"),
        (lambda: GraphBuilder(state_schema=Log).build(), "must have an entry point"),
    ):
        with pytest.raises(ValueError, match=reported):
            wrong()
    for wrong in (lambda: made.build(graph_mode="debug"), made.dumps):
        with pytest.raises(Unsupported, match="axil"):
            wrong()


def test_a_graph_is_drawn_as_a_page(tmp_path):
    builder("a->b").build().draw_graph(str(tmp_path / "g.html"), auto_open=False)
    assert "<svg" in (tmp_path / "g.html").read_text(encoding="utf-8")


def test_what_a_source_that_fires_twice_sends_to_a_join_is_joined_once():
    made = builder("a->b", "a->c", "b->d", "c->d", "d->e", "a->e", e=(says("e"), "all"))
    log = run(made).log
    assert (log.count("d"), log.count("e")) == (2, 1)


def test_a_single_source_of_an_all_node_is_waited_for_once_for_each_token():
    made = builder("a->b", "a->c", "b->d", "c->d", "d->e", e=(says("e"), "all"))
    assert run(made).log.count("e") == 2


def loop(made: GraphBuilder, node: str, back: str, rounds: int) -> Any:
    def route(state: Any) -> str:
        return back if state.log.count(node) < rounds else "end"

    made.add_condition_edge(node, route, [back, "end"])
    return made


def test_what_reached_a_join_from_before_its_loop_counts_in_each_round():
    made = loop(
        builder("plan->work", "plan->join", "work->join", join=(says("join"), "all")),
        "join",
        "work",
        3,
    )
    assert run(made).log == ["plan", *["work", "join"] * 3]
    outer = builder("a->b", "a->d", "d->b", "b->c", b=(says("b"), "all"))
    assert run(loop(outer, "c", "d", 2)).log == ["a", *["d", "b", "c"] * 2]


def test_a_join_that_merges_itself_is_given_what_came_from_before_its_loop():
    made = builder("plan->work", join=(says("join"), "all", {"all": lambda states: states[-1]}))
    for source in ("plan", "work"):
        made.add_edge(source, "join")
    with pytest.raises(NodeFailed, match="AX402"):
        run(loop(made, "join", "work", 2))


def test_a_source_beside_a_loop_into_a_join_of_it_is_an_error_that_says_what_to_do():
    made = builder("a->b", "a->c", "b->d", "c->d", d=(says("d"), "all"))
    with pytest.raises(NodeFailed, match=r"AX402.*Let one node gather what enters"):
        run(loop(made, "d", "b", 2))


def test_a_join_that_leads_to_itself_repeats():
    assert run(loop(builder("a->b", b=(says("b"), "all")), "b", "b", 3)).log.count("b") == 3


def test_a_loop_has_no_limit_but_max_turn():
    assert run(loop(builder("a->b"), "b", "a", 150)).log.count("b") == 150
    made = loop(builder("a->b", "b->c", c=(says("c"), "all")), "c", "b", 150)
    assert run(made).log.count("c") == 150


def test_a_run_without_a_way_to_the_end_gives_its_state():
    made = builder("a->b")
    made.add_condition_edge("b", lambda state: [], ["a"])
    assert run(made).log == ["a", "b"]


def test_a_run_that_takes_too_long_is_a_timeout():
    async def sleep(state: Any) -> None:
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        run(builder("a->b", b=sleep), timeout=1)


def test_a_filter_in_a_loop_meets_other_paths_behind_it():
    made = builder("a->b", "a->c", "b->d", c=says("c"), b=(says("b"), "all"))
    made.add_node("e", says("e"))
    made.add_edge("d", "e", state_filter=lambda state: {"log": [*state.log[1:]]})
    made.add_condition_edge("e", lambda s: ["b"] if s.log.count("e") < 2 else [], ["b"])
    assert set(run(made).log) >= {"a", "c", "e"}


def test_schemas_are_made_of_triples_and_read_either_way():
    made = GraphBuilder(
        state_schema=generate_state_schema([("n", "int", "overwrite"), ("log", "list", "append")])
    )
    made.add_node("a", lambda state: {"n": state.n + 1, "log": ["a"]})
    made.set_entry_point("a")
    state = run(made, {"n": 1})
    assert (state.n, safe_get_attr(state, "log"), state["messages"]) == (2, ["a"], [])
    other = GraphBuilder(state_schema=generate_state_schema())
    other.add_node("a", lambda state: {"nope": 1})
    other.set_entry_point("a")
    with pytest.raises(NodeFailed, match="nope"):
        run(other, {})

    class Pair(TypedDict):
        left: Annotated[str, "overwrite"]

    holder, pair = Log(), Pair(left="l")
    safe_set_attr(holder, "x", "set")
    safe_set_attr(pair, "left", "set")
    assert (holder.x, pair["left"]) == ("set", "set")


def test_strategies_are_known_by_name():
    assert StateUpdater.get("evofabric_tests_added")(["a"], ["b"]) == ["a", "b"]
    assert StateUpdater.get("overwrite")(1, 2) == 2
    assert StateUpdater.get("append_messages")([], [{"role": "user", "content": "hi"}])
    assert "overwrite" in StateUpdater.list_strategies()
    with pytest.raises(KeyError, match="already registered"):
        StateUpdater.register("overwrite")
    with pytest.raises(KeyError, match="Unknown strategy 'nope'"):
        StateUpdater.get("nope")
