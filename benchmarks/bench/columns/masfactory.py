"""MASFactory: custom nodes of a root graph, with fields on its edges; synchronous."""

from __future__ import annotations

import itertools

TITLE = "MASFactory"
KIND = "peer"
REQUIRES = ("masfactory>=1", "pyyaml>=6")
PACKAGE = "masfactory"
IMPORT = "masfactory"
PUBLISHED = (
    "33 µs a node in a chain of 100 (MASFactory 1.0.4), in a comparison made before this one."
)


def add(input):
    return {"n": input["n"] + 1}


def row(size, body, keys, **options):
    from masfactory import CustomNode, RootGraph

    graph = RootGraph("row", **options)
    nodes = [graph.create_node(CustomNode, name=f"n{i}", forward=body) for i in range(size)]
    graph.edge_from_entry(nodes[0], keys)
    for a, b in itertools.pairwise(nodes):
        graph.create_edge(a, b, keys)
    graph.edge_to_exit(nodes[-1], keys)
    graph.build()
    return graph


def plain(case):
    graph = row(case.size, add, {"n": "count"})
    return lambda: graph.invoke({"n": 0})[0]["n"]


def fan(case):
    """Ready nodes run one after the other, in the caller's thread."""
    import time

    from masfactory import CustomNode, RootGraph

    def work(input):
        if case.seconds:
            time.sleep(case.seconds)
        return {"part": [1]}

    graph = RootGraph("fan")
    begin = graph.create_node(CustomNode, name="begin", forward=lambda input: {"n": 0})
    end = graph.create_node(CustomNode, name="end", forward=lambda input: {"n": sum(input["part"])})
    graph.edge_from_entry(begin, {"n": "count"})
    for i in range(case.size):
        node = graph.create_node(CustomNode, name=f"n{i}", forward=work)
        graph.create_edge(begin, node, {"n": "count"})
        graph.create_edge(node, end, {"part": "part"})
    graph.edge_to_exit(end, {"n": "count"})
    graph.build()
    return lambda: graph.invoke({"n": 0})[0]["n"]


def dag(case):
    from masfactory import CustomNode, RootGraph

    fired = []

    def work(input):
        fired.append(1)
        return {"in": 1}

    graph = RootGraph("dag")
    nodes = [graph.create_node(CustomNode, name=f"n{i}", forward=work) for i in range(case.size)]
    graph.edge_from_entry(nodes[0], {"in": "a number"})
    leads_on = set()
    for a, b in case.edges:
        graph.create_edge(nodes[a], nodes[b], {"in": "a number"})
        leads_on.add(a)
    for i in set(range(case.size)) - leads_on:
        graph.edge_to_exit(nodes[i], {"in": "a number"})
    graph.build()

    def go():
        fired.clear()
        graph.invoke({"in": 1})
        return len(fired)

    return go


def turning(case, body, keys):
    """Two nodes in a loop."""
    from masfactory import CustomNode, Loop, RootGraph

    graph = RootGraph("loop")
    loop = graph.create_node(Loop, name="loop", max_iterations=case.size)
    a = loop.create_node(CustomNode, name="a", forward=body)
    b = loop.create_node(CustomNode, name="b", forward=lambda input: input)
    loop.edge_from_controller(a, keys)
    loop.create_edge(a, b, keys)
    loop.edge_to_controller(b, keys)
    graph.edge_from_entry(loop, keys)
    graph.edge_to_exit(loop, keys)
    graph.build()
    return graph


def loop(case):
    graph = turning(case, add, {"n": "count"})
    return lambda: graph.invoke({"n": 0})[0]["n"]


def growing(case):
    def step(input):
        case.mark()
        return {"log": [*input["log"], "m"]}

    graph = turning(case, step, {"log": "messages"})
    return lambda: len(graph.invoke({"log": []})[0]["log"])


def payload(case):
    def carry(input):
        return {"n": input["n"] + 1, "data": input["data"]}

    graph, records = row(50, carry, {"n": "count", "data": "records"}), case.records

    def go():
        output = graph.invoke({"n": 0, "data": records})[0]
        return output["n"], len(output["data"])

    return go


def first():
    assert row(2, add, {"n": "count"}).invoke({"n": 0})[0]["n"] == 2
