"""Rules of a graph's structure, checked before anything is resolved."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from axil.errors import Problem, did_you_mean, format_names
from axil.kernel.tokens import ENTRY, EXIT
from axil.spec.components import components, is_cyclic, lead_onward
from axil.spec.graph import EdgeSpec, GraphSpec, Place

V = TypeVar("V", bound=Hashable)


def check(spec: GraphSpec) -> list[Problem]:
    """Return all problems of one graph's structure. Cost: O(nodes + edges)."""
    found = list(_names(spec))
    ids = [node.id for node in spec.nodes]
    known = set(ids)
    starts, stops = known | {ENTRY}, known | {EXIT}
    sound = [e for e in spec.edges if e.source in starts and e.target in stops]
    if len(sound) < len(spec.edges) or spec.cycle_limits:
        found.extend(_ends(spec, known))
    found.extend(_duplicates(spec, sound))
    found.extend(_merges(spec, sound))
    found.extend(_routers(spec, known))
    found.extend(_cycles(spec, ids, sound))
    found.extend(_reach(spec, sound))
    return found


def check_exit(spec: GraphSpec) -> list[Problem]:
    """Return a warning if runs of this graph have neither an output nor a state."""
    if spec.payload != "fields" or spec.attributes or any(node.push for node in spec.nodes):
        return []
    if not spec.nodes or any(edge.target == EXIT for edge in spec.edges):
        return []
    message = "no edge leads to its exit, so each run ends with an empty output."
    hint = f'Add one: graph.edge_to_exit("{spec.nodes[-1].id}", [fields]).'
    return [Problem("AX177", spec.where, message, hint, severity="warning")]


def _at(place: Place | None, otherwise: str, key: str = "") -> str:
    if place is None:
        return otherwise
    return f"{place}.{key}" if key else str(place)


def _names(spec: GraphSpec) -> Iterable[Problem]:
    seen: set[str] = set()
    for node in spec.nodes:
        if node.id in seen:
            yield Problem(
                "AX101",
                _at(node.place, f'graph "{spec.id}"', "id"),
                f'two nodes are called "{node.id}".',
                "Each node needs a name of its own. Rename one.",
            )
        seen.add(node.id)
        if not node.id or node.id.startswith(("@", "#", "cycle(")) or "/" in node.id:
            yield Problem(
                "AX102",
                _at(node.place, f'graph "{spec.id}"', "id"),
                f'"{node.id}" cannot be a name.',
                'A name is not empty, has no "/" and does not begin with "@", "#" or "cycle(".',
            )


def _ends(spec: GraphSpec, known: set[str]) -> Iterable[Problem]:
    for edge in spec.edges:
        for key, end, special in (("from", edge.source, ENTRY), ("to", edge.target, EXIT)):
            if end not in known and end != special:
                yield Problem(
                    "AX104",
                    _at(edge.place, f"edge {edge.source}->{edge.target}", key),
                    f'no node "{end}".',
                    did_you_mean(end, known),
                )
    for name in spec.cycle_limits:
        if name and name not in known:
            yield Problem(
                "AX105",
                _at(spec.place, f'graph "{spec.id}"', "cycle_limits"),
                f'no node "{name}".',
                did_you_mean(name, known),
            )


def _duplicates(spec: GraphSpec, edges: list[EdgeSpec]) -> Iterable[Problem]:
    def said(part: object) -> object:
        return id(part) if callable(part) else repr(part)

    seen: set[tuple[object, ...]] = set()
    for edge in edges:
        ways = (edge.source, edge.target, edge.group, edge.router, edge.trigger)
        how = (edge.condition, edge.process)
        key = ways if how == (None, None) else (*ways, *map(said, how))
        if key in seen:
            yield Problem(
                "AX106",
                str(edge.place or spec.where),
                f"a second edge {edge.source}->{edge.target} says the same as the first.",
                "Remove one, or tell them apart by group, condition or processor.",
            )
        seen.add(key)


def _merges(spec: GraphSpec, edges: list[EdgeSpec]) -> Iterable[Problem]:
    merging = [node for node in spec.nodes if node.merge]
    groups: dict[str, set[str]] = {node.id: set() for node in merging}
    for edge in edges:
        if edge.target in groups:
            groups[edge.target].add(edge.group)
    for node in merging:
        where = _at(node.place, f'node "{node.id}"', "merge")
        if node.join == "each":
            yield Problem(
                "AX107",
                where,
                "a merge is given, but the node fires for each token and never merges.",
                "Use join gate or all.",
            )
            continue
        mine, given = sorted(groups[node.id]), node.merge or {}
        lacking = [g for g in mine if g not in given]
        strange = [g for g in given if g not in mine]
        if lacking or strange:
            yield Problem(
                "AX108",
                where,
                f"merges are given for the groups {format_names(sorted(given))}; the node's "
                f"in-edges have the groups {format_names(mine)}.",
                "Give one merge per group.",
            )


def _routers(spec: GraphSpec, known: set[str]) -> Iterable[Problem]:
    for name, router in spec.routers.items():
        for target in (router.source, *router.targets):
            if target not in known and target not in (EXIT, "end"):
                yield Problem(
                    "AX109", f'router "{name}"', f'no node "{target}".', did_you_mean(target, known)
                )


def _cycles(spec: GraphSpec, ids: list[str], edges: list[EdgeSpec]) -> Iterable[Problem]:
    if spec.cycles != "forbid":
        return
    at = {name: i for i, name in enumerate(ids)}
    successors: list[list[int]] = [[] for _ in ids]
    for edge in edges:
        if edge.trigger and edge.source in at and edge.target in at:
            successors[at[edge.source]].append(at[edge.target])
    for component in () if lead_onward(successors) else components(successors):
        if is_cyclic(component, successors):
            path = shortest_path(successors.__getitem__, component[0], component[0]) or component
            yield Problem(
                "AX111",
                f'graph "{spec.id}"',
                f"the edges close a cycle: {' -> '.join(ids[i] for i in path)}.",
                'Use a Loop, or make the graph with cycles="allow".',
            )


def _reach(spec: GraphSpec, edges: list[EdgeSpec]) -> Iterable[Problem]:
    """Yield each node that nothing can make fire: an error without any edge, else a warning."""
    onward: dict[str, list[str]] = {}
    touched = {edge.source for edge in edges} | {edge.target for edge in edges}
    for edge in edges:
        if edge.trigger:
            onward.setdefault(edge.source, []).append(edge.target)
    reached: set[str] = set()
    stack = [ENTRY]
    while stack:
        for target in onward.get(stack.pop(), ()):
            if target not in reached:
                reached.add(target)
                stack.append(target)
    for node in spec.nodes:
        if node.id not in touched:
            message = "no edge leads to it or from it."
            yield Problem("AX112", node.where, message, "Connect it, or remove it.")
        elif node.id not in reached:
            message = "no start node leads to it, so it never fires."
            yield Problem("AX113", node.where, message, "", severity="warning")


def shortest_path(after: Callable[[V], Iterable[V]], start: V, goal: V) -> list[V] | None:
    """Vertices of a shortest path from ``start`` to ``goal``, both included; None if there is none.

    ``start == goal`` asks for a cycle: the path then begins and ends there.

    >>> shortest_path([[1], [2], [0]].__getitem__, 0, 0)
    [0, 1, 2, 0]
    """
    came: dict[V, V] = {}
    queue = deque([start])
    while queue:
        v = queue.popleft()
        for w in after(v):
            if w == goal:
                path = [w, v]
                while v != start:
                    v = came[v]
                    path.append(v)
                return path[::-1]
            if w not in came and w != start:
                came[w] = v
                queue.append(w)
    return None
