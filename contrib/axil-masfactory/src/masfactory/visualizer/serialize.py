"""A graph as MASFactory's visualizer draws it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from masfactory.components.agents.agent import Agent
from masfactory.components.custom_node import CustomNode
from masfactory.components.graphs.base_graph import BaseGraph
from masfactory.components.graphs.graph import Graph
from masfactory.components.graphs.internal_nodes import InternalGraphNode
from masfactory.components.graphs.loop import Loop
from masfactory.core.node import Node

_ENDS = {"controller": "Controller", "terminate": "TerminateNode"}


@dataclass
class SerializedGraph:
    """A drawing as data: names, kinds, edges, and who is inside whom."""

    graph: dict[str, object]


@dataclass
class _Drawing:
    """A drawing that is being made."""

    nodes: dict[str, Node | None] = field(default_factory=dict[str, "Node | None"])
    kinds: dict[str, str] = field(default_factory=dict[str, str])
    inside: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    edges: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    graphs: dict[str, str] = field(default_factory=dict[str, str])

    def walk(self, graph: BaseGraph, name: str) -> None:
        """Draw what is inside a graph."""
        ends = graph.internal_nodes if isinstance(graph, Loop) else ()
        for node in (*ends, *graph.nodes):
            self.nodes[node.name], self.kinds[node.name] = node, _kind(node)
            if name:
                self.inside.setdefault(name, []).append(node.name)
        for edge in graph.edges:
            pair = {"from": _end(edge.sender, graph), "to": _end(edge.receiver, graph)}
            self.edges.append({**pair, "keysDetails": _plain(edge.keys)})
        for node in graph.nodes:
            if isinstance(node, BaseGraph):
                self.graphs[node.name] = _kind(node)
                self.walk(node, node.name)


def serialize_root_graph(root: BaseGraph) -> SerializedGraph:
    """Give a built graph as data: plain texts, lists and dicts."""
    drawn = _Drawing(nodes={"entry": None, "exit": None}, kinds={"entry": "entry", "exit": "exit"})
    drawn.walk(root, "")
    known = {name: node for name, node in drawn.nodes.items() if node is not None}
    agents = {name: node for name, node in known.items() if isinstance(node, Agent)}
    parents = {name: parent for parent, names in drawn.inside.items() for name in names}
    keys: dict[str, dict[str, dict[str, Any]]] = {"from": {}, "to": {}}
    for edge in drawn.edges:
        for side, found in keys.items():
            found.setdefault(edge[side], {}).update(edge["keysDetails"])
    rules = (("nodePullKeys", "pull_keys"), ("nodePushKeys", "push_keys"))
    places = {name: place for name, node in known.items() if (place := _place(node)) is not None}
    graph: dict[str, object] = {
        "nodes": list(drawn.nodes),
        "nodeTypes": drawn.kinds,
        "edges": drawn.edges,
        "subgraphs": drawn.inside,
        "subgraphTypes": drawn.graphs,
        "subgraphParents": parents,
        "nodeFilePaths": {name: place[0] for name, place in places.items()},
        "nodeLineNumbers": {name: place[1] for name, place in places.items()},
        "nodeAttributes": {
            n: {} if v is None else _plain(v.attributes) for n, v in drawn.nodes.items()
        },
        "nodeAliases": {
            name: [node.role] for name, node in known.items() if isinstance(node, InternalGraphNode)
        }
        | {"entry": ["entry"], "exit": ["exit"]},
        "nodeInputKeys": keys["to"],
        "nodeOutputKeys": keys["from"],
        "nodeInstructions": {name: agent.instructions for name, agent in agents.items()},
        "nodePromptTemplates": {
            name: _plain(agent.prompt_template) for name, agent in agents.items()
        },
    }
    for title, part in rules:
        given = {name: getattr(node, part) for name, node in known.items()}
        graph[title] = {
            name: _plain(rule) if rule else "empty"
            for name, rule in given.items()
            if rule is not None
        }
    return SerializedGraph(graph)


def _kind(node: Node) -> str:
    return _ENDS[node.role] if isinstance(node, InternalGraphNode) else type(node).__name__


def _end(node: Node, graph: BaseGraph) -> str:
    if isinstance(node, InternalGraphNode) and isinstance(graph, Graph):
        return node.role if graph.owner is None else graph.name
    return node.name


def _plain(value: Any) -> Any:
    """Return a value as plain data."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Mapping):
        several = cast("Mapping[Any, Any]", value)
        return {str(name): _plain(each) for name, each in several.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(each) for each in cast("Iterable[Any]", value)]
    return str(value)


def _place(node: Node) -> tuple[str, int] | None:
    """Return the file and the line of a node's function, or of its class."""
    written: Any = node.function if isinstance(node, CustomNode) else None
    written = type(node) if written is None else inspect.unwrap(written)
    try:
        return inspect.getfile(written), inspect.getsourcelines(written)[1]
    except (OSError, TypeError):
        return None
