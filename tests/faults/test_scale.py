"""Much of everything: long, wide, deep, often. Nothing recurses, nothing grows that need not."""

from __future__ import annotations

import os
import resource
import tracemalloc

from axil import CycleLimit, EdgeSpec, Graph, GraphSpec, NodeSpec, Out, RootGraph, Schema, Workflow
from axil.plugin import APPEND, SUM, Field, Log, SubgraphSpec

from .tools import edges, finish, flow, node, nothing

MANY = 10_000
THOROUGH = os.environ.get("AXIL_HYPOTHESIS") == "thorough"


def test_a_chain_of_ten_thousand():
    words = [f"n{i}>n{i + 1}" for i in range(MANY - 1)]
    result = finish(flow([node(f"n{i}") for i in range(MANY)], "in>n0", *words, f"n{MANY - 1}>out"))
    assert (result.status, result.usage.firings) == ("done", MANY)


def test_a_fan_of_ten_thousand_out_and_in_with_a_write_on_every_branch():
    schema = Schema(
        "s",
        {"total": Field("total", SUM, default=lambda: 0), "log": Field("log", APPEND, default=Log)},
        closed=True,
    )
    branches = [
        node(f"n{i}", lambda task, ctx, i=i: Out({}, {"total": 1, "log": [i]})) for i in range(MANY)
    ]
    words = [word for i in range(MANY) for word in (f"s>n{i}", f"n{i}>t")]
    result = finish(flow([node("s"), *branches, node("t")], "in>s", *words, "t>out", schema=schema))
    assert result.status == "done"
    assert result.attributes == {"total": MANY, "log": list(range(MANY))}


def test_a_fan_of_a_thousand_async_bodies():
    async def body(task, ctx):
        return Out({})

    words = [word for i in range(1000) for word in (f"s>n{i}", f"n{i}>t")]
    result = finish(
        flow(
            [node("s"), *(node(f"n{i}", body, "async") for i in range(1000)), node("t")],
            "in>s",
            *words,
            "t>out",
        )
    )
    assert (result.status, result.usage.firings) == ("done", 1002)


def test_a_skipped_half_of_ten_thousand():
    words = [f"n{i}>n{i + 1}" for i in range(MANY - 1)]
    dead = EdgeSpec(source="s", target="n0", condition=lambda payload: False)
    result = finish(
        flow([node("s"), *(node(f"n{i}") for i in range(MANY))], "in>s", dead, *words, "s>out")
    )
    assert (result.status, result.usage.firings) == ("done", 1)


def turning(rounds: int) -> Workflow:
    def body(task, ctx):
        n = task.state["n"] + 1
        return Out({"n": n}, {"n": n, "total": n % 3, "@node/a": {"n": n}})

    schema = Schema(
        "s",
        {"n": Field("n", default=lambda: 0), "total": Field("total", SUM, default=lambda: 0)},
        closed=True,
    )
    again = EdgeSpec(source="b", target="a", condition=lambda payload: payload["n"] < rounds)
    leave = EdgeSpec(source="b", target="@exit", condition=lambda payload: payload["n"] >= rounds)
    nodes = [node("a", body), node("b", lambda task, ctx: Out(task.tokens[0].payload))]
    return flow(
        nodes,
        "in>a",
        "a>b",
        again,
        leave,
        schema=schema,
        cycle_limits={"": CycleLimit(rounds=None)},
    )


def peak_of(rounds: int) -> int:
    """Bytes held at most while so many rounds turn, beyond what was held before."""
    workflow = turning(rounds)
    workflow.plan  # noqa: B018  # compiled when it is first asked for
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        result = finish(workflow, within=900)
        assert (result.status, result.output) == ("done", {"n": rounds})
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_a_loop_leaves_nothing_behind():
    peak_of(10)  # imports and caches
    assert peak_of(4000) < peak_of(200) + 50_000


def test_ever_so_many_rounds_turn():
    rounds = 1_000_000 if THOROUGH else 50_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = finish(turning(rounds), within=900)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 20_000  # kilobytes
    assert (result.status, result.output, result.attributes["n"]) == ("done", {"n": rounds}, rounds)


def test_a_flat_cycle_of_each_nodes_leaves_nothing_behind_but_its_count():
    def body(task, ctx):
        n = task.state.get("n", 0) + 1
        return Out({"n": n}, {"n": n})

    def turns(rounds: int) -> int:
        again = EdgeSpec(source="a", target="a", condition=lambda payload: payload["n"] < rounds)
        workflow = flow(
            [node("a", body, join="each")],
            "in>a",
            again,
            attributes={"n": 0},
            cycle_limits={"": CycleLimit(rounds=None)},
        )
        workflow.plan  # noqa: B018  # compiled when it is first asked for
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            assert finish(workflow).attributes == {"n": rounds}
            return tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()

    turns(10)
    assert turns(4000) < turns(200) + 50_000


class Inside:
    """A graph as a node's body."""

    def __init__(self, spec: GraphSpec) -> None:
        self.spec = spec

    def scope(self, name, setting):
        return SubgraphSpec(spec=self.spec)


def test_two_thousand_graphs_in_each_other():
    spec = GraphSpec(
        id="leaf",
        nodes=(node("w", lambda task, ctx: Out({"m": 1}, {"x": 1})),),
        edges=edges("in>w", "w>out"),
    )
    for _ in range(2000):
        spec = GraphSpec(
            id="g", nodes=(NodeSpec(id="s", body=Inside(spec)),), edges=edges("in>s", "s>out")
        )
    result = finish(
        Workflow(GraphSpec(id="g", nodes=spec.nodes, edges=spec.edges, attributes={"x": 0}))
    )
    assert (result.status, result.output, result.attributes) == ("done", {"m": 1}, {"x": 1})


def test_a_failure_two_thousand_graphs_down_is_reported():
    def boom(task, ctx):
        raise ValueError("deep down")

    spec = GraphSpec(id="leaf", nodes=(node("w", boom),), edges=edges("in>w"))
    for _ in range(2000):
        spec = GraphSpec(
            id="g", nodes=(NodeSpec(id="s", body=Inside(spec)),), edges=edges("in>s", "s>out")
        )
    result = finish(Workflow(spec))
    assert result.status == "failed"
    assert result.error.path.endswith("s/s/w")


def test_graphs_of_the_builder_in_each_other_are_deeper_than_calls_may_be():
    g = inner = RootGraph("g")
    for _ in range(2000 if THOROUGH else 1100):
        sub = inner.create_node(Graph, name="s")
        inner.edge_from_entry(sub, ["x"])
        inner.edge_to_exit(sub, ["x"])
        inner = sub
    leaf = inner.create_node(lambda inputs: {"x": inputs["x"] + 1}, name="w", inline=True)
    inner.edge_from_entry(leaf, ["x"])
    inner.edge_to_exit(leaf, ["x"])
    assert g.build().invoke({"x": 1})[0] == {"x": 2}


def test_cycles_in_cycles_in_cycles():
    """Each body is folded when it is entered, so depth costs its square: 2,000 deep where time does
    not matter.
    """
    depth = 2000 if THOROUGH else 400
    back = [
        EdgeSpec(source=f"n{i + 1}", target=f"n{i}", condition=lambda payload: False)
        for i in range(depth)
    ]
    words = [f"n{i}>n{i + 1}" for i in range(depth)]
    result = finish(
        flow([node(f"n{i}") for i in range(depth + 1)], "in>n0", *words, *back, f"n{depth}>out"),
        within=300,
    )
    assert (result.status, len(result.cycles)) == ("done", depth)


def test_a_cycle_of_three_thousand_nodes_each_of_which_may_leave():
    n = 3000
    leave = [
        EdgeSpec(source=f"n{i}", target="@exit", condition=lambda payload: False) for i in range(n)
    ]
    limits = {"": CycleLimit(rounds=2, at_limit="exit")}
    words = [f"n{i}>n{(i + 1) % n}" for i in range(n)]
    result = finish(
        flow(
            [node(f"n{i}", nothing) for i in range(n)], "in>n0", *words, *leave, cycle_limits=limits
        )
    )
    assert (result.status, result.usage.firings) == ("done", 2 * n)


def test_a_deeply_nested_value_is_carried_and_is_never_a_recursion_error():
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    nodes = [
        node("a", lambda task, ctx: Out({"deep": deep}, {"x": deep})),
        node("b", lambda task, ctx: Out({"seen": True})),
    ]
    result = finish(flow(nodes, "in>a", "a>b", "b>out", attributes={"x": 0}))
    cause = result.error and result.error.__cause__
    assert not isinstance(cause, RecursionError), cause
