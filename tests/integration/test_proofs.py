"""Laws of what is proved about plans: what is said never to happen does not, and what is said to
happen in each run does.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.internals import internal

from axil import (
    AxilError,
    ComponentRef,
    CycleLimit,
    EdgeSpec,
    GraphSpec,
    Limits,
    NodeSpec,
    Workflow,
    run_sync,
)
from axil.plugin import ENTRY, EXIT
from axil_files import load
from axil_journals import findings

Flow, GraphFacts = internal("Flow"), internal("GraphFacts")
CONDITIONS = (
    None,
    None,
    "len(text) > 1",
    "len(text) <= 1",
    '"x" in text',
    'not ("x" in text)',
    "len(text) > 3 and len(text) < 2",
    'text == "xx"',
    "state.m == 1",
    "state.m != 1",
    "not (state.m == 1)",
    'state.m == 2 or text == "y"',
    'message.content == "x"',
)
EXAMPLES = 400 if os.environ.get("AXIL_HYPOTHESIS") == "thorough" else 40


def expression(text: str) -> ComponentRef:
    return ComponentRef(type="expression", config={"expression": text})


@st.composite
def graphs(draw) -> GraphSpec:
    """Random graphs of gates, joins of all edges, switches and writes, perhaps with edges back."""
    count = draw(st.integers(3, 8))
    names = [f"n{n}" for n in range(count)]
    edges = [EdgeSpec(source=ENTRY, target=names[0])]
    for n in range(1, count):
        for source in draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=3)):
            text = draw(st.sampled_from(CONDITIONS))
            condition = None if text is None else expression(text)
            edges.append(EdgeSpec(source=names[source], target=names[n], condition=condition))
    for to in sorted(draw(st.sets(st.integers(0, count - 1), max_size=2))):
        back = draw(st.integers(max(1, to), count - 1))
        text = draw(st.sampled_from(CONDITIONS[2:]))
        edges.append(EdgeSpec(source=names[back], target=names[to], condition=expression(text)))
    edges.append(EdgeSpec(source=names[-1], target=EXIT))
    nodes: list[NodeSpec] = []
    for name in names:
        targets = sorted({edge.target for edge in edges if edge.source == name} - {EXIT})
        use = ComponentRef(type="passthrough")
        if len(targets) > 1 and draw(st.booleans()):
            routes = {t: draw(st.sampled_from(CONDITIONS[2:])) for t in targets[:-1]}
            use = ComponentRef(type="switch", config={"routes": routes, "otherwise": targets[-1]})
        elif not draw(st.integers(0, 3)):
            use = ComponentRef(type="literal", config={"content": draw(st.sampled_from("xy"))})
        join = draw(st.sampled_from(("gate", "gate", "all", "each")))
        value = draw(st.sampled_from((0, 0, 0, 1, 2)))
        writes = ComponentRef(type="write", config={"fields": {"m": value}})
        wrappers = (writes,) if value else ()
        nodes.append(NodeSpec(id=name, use=use, join=join, wrappers=wrappers))
    return GraphSpec(
        id="g",
        nodes=tuple(nodes),
        edges=tuple(edges),
        payload="messages",
        attributes={"m": draw(st.integers(1, 3))},
        cycle_limits={"": CycleLimit(rounds=3)},
        limits=Limits(firings=200),
    )


class Seen:
    """The nodes that fired, and the edges that were taken."""

    def __init__(self) -> None:
        self.fired: set[str] = set()
        self.taken: set[tuple[str, str]] = set()

    def firing_started(self, activation: Any, kind: str) -> None:
        if kind == "node":
            self.fired.add(activation.node)

    def firing_sent(self, activation: Any, payloads: Any) -> None:
        self.taken.update((payload.source, payload.target) for payload in payloads)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES == 40)
@given(graphs(), st.sampled_from(("", "x", "xx", "y", "yyy", "xxxxxxxxxxxx")))
def test_what_is_proved_of_a_graph_holds_in_each_of_its_runs(spec, text):
    workflow = Workflow(spec)
    flow = Flow(GraphFacts(workflow.plan.graph), workflow.plan)
    seen = Seen()
    result = run_sync(workflow.start(text, observers=[seen]).result())
    live = {workflow.plan.graph.vertices[v].name for v in flow.live_nodes}
    edges = {(e.source, e.target) for n, e in enumerate(spec.edges) if n in flow.live_edges}
    assert seen.fired <= live
    assert seen.taken <= edges
    root = next(scope for scope in flow.scopes if scope.parent is None)
    must = {workflow.plan.nodes[n].name for n in root.must_nodes}
    if result.status == "done":
        assert {name for name in must if not name.startswith("cycle(")} <= seen.fired


class Raising:
    """A join that a plugin brings, and that raises whatever it is asked."""

    early, rest, per_token = True, "ignore", False

    def fires(self, live: int, dead: int, total: int) -> bool:
        raise ZeroDivisionError


def test_of_a_join_that_raises_nothing_is_proved():
    nodes = [NodeSpec(id=name, body=lambda task, ctx: None) for name in "abc"]
    nodes.append(NodeSpec(id="d", body=lambda task, ctx: None, join=Raising()))
    ways = (ENTRY, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", EXIT)
    edges = [EdgeSpec(source=source, target=target) for source, target in ways]
    plan = Workflow(GraphSpec(id="g", nodes=tuple(nodes), edges=tuple(edges))).plan
    assert findings(plan) == []


CASES = [p for up in Path(__file__).parents if (p := up / "shared/cases/chatdev.json").is_file()]


@pytest.mark.skipif(not CASES, reason="the recorded cases are not here")
def test_nodes_that_never_fire_did_not_fire_in_recorded_runs():
    seen = 0
    for case in json.loads(CASES[0].read_text("utf-8")):
        given = {"allow": ["code", "env", "network"], "vars": {"BASE_URL": "u", "API_KEY": "k"}}
        try:
            plan = load("flow.yaml", texts={"flow.yaml": case["yaml"]}, **given).plan
        except AxilError:
            continue
        flow = Flow(GraphFacts(plan.graph), plan)
        dead = {v.name for n, v in enumerate(plan.graph.vertices) if n not in flow.live_nodes}
        fired = {name for name, count in (case["execution_counts"] or {}).items() if count}
        assert dead.isdisjoint(fired), case["name"]
        seen += len(dead)
    assert seen > 3
