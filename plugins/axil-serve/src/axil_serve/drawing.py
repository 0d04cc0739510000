"""The drawing of a workflow file that is edited, as far as the file can be read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from axil import ComponentRef
from axil_files import graph_items, written_names
from axil_journals import use_label

_DEEPEST: Final = 8
_INNER_GRAPHS: Final = (("config",), ("config", "config"), ("config", "body"), ("config", "graph"))


def drawing(data: Any, lines: Mapping[Any, int]) -> dict[str, Any] | None:
    """Return the graph of a file as far as it can be read, in the form of a plan's scopes.

    Each node, edge and scope has its ``path`` in the file. None: there is no graph.
    """
    graph: Any = cast("dict[str, Any]", data).get("graph") if isinstance(data, dict) else None
    if not isinstance(graph, dict):
        return None
    return _scope_of(cast("dict[str, Any]", graph), ["graph"], lines, 0)


def _scope_of(
    graph: Mapping[str, Any], path: list[str | int], lines: Mapping[Any, int], depth: int
) -> dict[str, Any]:
    nodes: dict[str, dict[str, Any]] = {}
    for at, given in enumerate(graph_items(graph, "nodes")):
        name = str(given.get("id", ""))
        if not name or name in nodes:
            continue
        place = [*path, "nodes", at]
        made = {
            "name": name,
            "type": str(given.get("type") or given.get("use") or ""),
            "description": str(given.get("description") or ""),
            "given": given,
            "path": place,
            "line": lines.get(tuple(place), 0),
        }
        for keys in _INNER_GRAPHS:
            inner: Any = given
            for key in keys:
                inner = cast("dict[str, Any]", inner).get(key) if isinstance(inner, dict) else None
            inside = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
            if isinstance(inside.get("nodes"), list) and depth < _DEEPEST:
                made["inside"] = _scope_of(inside, [*place, *keys], lines, depth + 1)
                break
        nodes[name] = made
    edges: list[dict[str, Any]] = []

    def add(source: str, target: str, place: list[str | int], given: Mapping[str, Any]) -> None:
        if (source in nodes or source == "@entry") and (target in nodes or target == "@exit"):
            edges.append(
                {
                    "name": f"#{len(edges)}",
                    "source": source,
                    "target": target,
                    "label": _label(given),
                    "trigger": given.get("trigger") is not False,
                    "path": place,
                    "line": lines.get(tuple(place), 0),
                    "given": given,
                }
            )

    for at, name in enumerate(written_names(graph.get("start"))):
        add("@entry", name, [*path, "start", at], {})
    for at, each in enumerate(graph_items(graph, "edges")):
        add(str(each.get("from", "")), str(each.get("to", "")), [*path, "edges", at], each)
    for at, name in enumerate(written_names(graph.get("end"))):
        add(name, "@exit", [*path, "end", at], {})
    for name, level in _levels(nodes, edges).items():
        nodes[name]["level"] = level
    limits: Any = graph.get("cycle_limits")
    return {
        "kind": "graph",
        "name": str(graph.get("id") or ""),
        "title": str(graph.get("id") or ""),
        "path": path,
        "nodes": list(nodes.values()),
        "edges": edges,
        "limits": limits if isinstance(limits, dict) else {},
    }


def _label(given: Mapping[str, Any]) -> str:
    found = given.get("condition")
    if found in (None, True):
        return ""
    if isinstance(found, dict) and isinstance(cast("dict[str, Any]", found).get("type"), str):
        condition = cast("dict[str, Any]", found)
        settings: Any = condition.get("config")
        config = cast("dict[str, Any]", settings) if isinstance(settings, dict) else {}
        return use_label(ComponentRef(type=condition["type"], config=config))
    return found if isinstance(found, str) else json.dumps(found, default=str)


def _levels(names: Mapping[str, Any], edges: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return a row for each node: below those that lead to it, edges that close circles apart."""
    after: dict[str, list[str]] = {name: [] for name in names}
    for edge in edges:
        if edge["trigger"] and edge["source"] in after and edge["target"] in after:
            after[edge["source"]].append(edge["target"])
    entered = [edge["target"] for edge in edges if edge["source"] == "@entry"]
    order: list[str] = []
    state: dict[str, int] = {}  # 1: it is being visited, 2: it was
    back: set[tuple[str, str]] = set()
    for root in (*entered, *names):
        if root in state or root not in after:
            continue
        state[root] = 1
        visits = [(root, iter(after[root]))]
        while visits:
            name, left = visits[-1]
            following = next(left, None)
            if following is None:
                state[name] = 2
                order.append(name)
                visits.pop()
            elif state.get(following) == 1:
                back.add((name, following))
            elif following not in state:
                state[following] = 1
                visits.append((following, iter(after[following])))
    levels = dict.fromkeys(names, 0)
    for name in reversed(order):
        for following in after[name]:
            if (name, following) not in back:
                levels[following] = max(levels[following], levels[name] + 1)
    return levels


__all__ = ["drawing"]
