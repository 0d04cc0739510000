"""The smallest workflow that still shows a difference: simplified as long as it shows one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from .graphs import ALWAYS, ENTRY, EXIT, Edge, Graph, Node


def smallest(graph: Graph, differs: Callable[[Graph], bool], most: int = 3000) -> Graph:
    """Return a workflow that still differs and of which no single part can be taken away.

    Args:
        differs: asked at most ``most`` times.
    """
    asked = 0
    going = True
    while going:
        going = False
        for simpler in simplifications(graph):
            asked += 1
            if asked > most:
                return graph
            if differs(simpler):
                graph, going = simpler, True
                break
    return graph


def simplifications(graph: Graph) -> Iterator[Graph]:
    """Yield the workflows that are one step simpler, the largest steps first."""
    for node in graph.nodes if len(graph.nodes) > 1 else ():
        yield without(graph, node.name)
    for node in graph.nodes:
        yield from _bridged(graph, node)
    for i in range(len(graph.edges)):
        yield sound(replace(graph, edges=(*graph.edges[:i], *graph.edges[i + 1 :])))
    for i, node in enumerate(graph.nodes):
        for simpler in _simpler_nodes(node):
            yield replace(graph, nodes=(*graph.nodes[:i], simpler, *graph.nodes[i + 1 :]))
    for i, edge in enumerate(graph.edges):
        for other in _simpler_edges(edge):
            yield replace(graph, edges=(*graph.edges[:i], other, *graph.edges[i + 1 :]))
    for i in range(len(graph.limits)):
        yield replace(graph, limits=(*graph.limits[:i], *graph.limits[i + 1 :]))
    if graph.payload != "fields":
        yield replace(graph, payload="fields")
    if graph.pulls is not None or graph.pushes is not None:
        yield replace(graph, pulls=None, pushes=None)
    if graph.typed:
        yield untyped(graph)


def sound(graph: Graph) -> Graph:
    """Return ``graph`` without choices among edges that are not there."""
    targets = {n.name: {e.target for e in graph.edges if e.source == n.name} for n in graph.nodes}
    nodes = tuple(
        replace(
            node,
            picks=tuple(name for name in node.picks if name in targets[node.name]),
            routes=node.routes if targets[node.name].issuperset(node.routes) else (),
        )
        for node in graph.nodes
    )
    routed = {node.name for node in nodes if node.routes}
    edges = tuple(e if e.source in routed else replace(e, routed=False) for e in graph.edges)
    return replace(graph, nodes=nodes, edges=edges)


def without(graph: Graph, name: str) -> Graph:
    """Return ``graph`` without a node, and without what leads to it or from it."""
    nodes = tuple(node for node in graph.nodes if node.name != name)
    edges = tuple(edge for edge in graph.edges if name not in (edge.source, edge.target))
    limits = tuple((at, limit) for at, limit in graph.limits if at != name)
    return sound(replace(graph, nodes=nodes, edges=edges, limits=limits))


def _bridged(graph: Graph, node: Node) -> Iterator[Graph]:
    """Yield ``graph`` without a node, its one predecessor tied to its one successor."""
    into = [e for e in graph.edges if e.target == node.name and e.source != node.name]
    out = [e for e in graph.edges if e.source == node.name and e.target != node.name]
    if (
        len(graph.nodes) > 1
        and len(into) == 1
        and len(out) == 1
        and (into[0].source, out[0].target) != (ENTRY, EXIT)
    ):
        if any((e.source, e.target) == (into[0].source, out[0].target) for e in graph.edges):
            return
        rest = without(graph, node.name)
        bridge = Edge(
            source=into[0].source, target=out[0].target, trigger=into[0].trigger and out[0].trigger
        )
        yield replace(rest, edges=(*rest.edges, bridge))


def _simpler_nodes(node: Node) -> Iterator[Node]:
    if node.inside is not None:
        yield replace(node, inside=None, items=0, keeps=False)
        if node.items > 1:
            yield replace(node, items=1)
        for inner in simplifications(node.inside):
            if inner.typed == node.inside.typed:
                yield replace(node, inside=inner)
    if node.writes:
        yield replace(node, writes=())
        for name in node.writes if len(node.writes) > 1 else ():
            yield replace(node, writes=tuple(w for w in node.writes if w != name))
    plain = {
        "join": "gate",
        "picks": (),
        "merges": False,
        "asks": False,
        "fails": 0,
        "keeps": False,
    }
    for name, value in plain.items():
        if getattr(node, name) != value:
            yield replace(node, **{name: value})  # type: ignore[arg-type]


def _simpler_edges(edge: Edge) -> Iterator[Edge]:
    plain = {"group": "", "table": ALWAYS, "modulus": 0, "filter": "", "trigger": True}
    for name, value in plain.items():
        if getattr(edge, name) != value:
            yield replace(edge, **{name: value})  # type: ignore[arg-type]
    for i in range(len(edge.table)) if len(edge.table) > 1 else ():
        yield replace(edge, table=(*edge.table[:i], *edge.table[i + 1 :]))


def untyped(graph: Graph) -> Graph:
    """Return ``graph`` with attributes instead of a typed state."""
    names = {"last": "last", "log": "other"}
    nodes = tuple(
        replace(
            node,
            writes=tuple(names[w] for w in node.writes if w in names),
            inside=None if node.inside is None else untyped(node.inside),
        )
        for node in graph.nodes
    )
    edges = tuple(replace(edge, filter="count" if edge.filter else "") for edge in graph.edges)
    return replace(
        graph, nodes=nodes, edges=edges, typed=False, payload="fields", pulls=None, pushes=None
    )
