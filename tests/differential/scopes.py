"""Scopes of the reference model: what is a cycle, who waits for whom, in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from .graphs import ENTRY, EXIT, Graph

Link = tuple[int, int]


def reachable(start: int, links: Iterable[Link]) -> set[int]:
    """Return the vertices that paths of at least one link lead to."""
    found: set[int] = set()
    todo = [start]
    while todo:
        at = todo.pop()
        new = {target for source, target in links if source == at} - found
        found |= new
        todo += new
    return found


def components(vertices: Sequence[int], links: Sequence[Link]) -> list[list[int]]:
    """Return the strongly connected components."""
    reach = {v: reachable(v, links) for v in vertices}
    found: list[list[int]] = []
    for v in vertices:
        if not any(v in component for component in found):
            found.append(sorted({v, *(w for w in vertices if w in reach[v] and v in reach[w])}))
    return found


def circles(vertices: Sequence[int], links: Sequence[Link]) -> list[list[int]]:
    """Return the strongly connected components that links within ``vertices`` close."""
    within = [(a, b) for a, b in links if a in vertices and b in vertices]
    return [part for part in components(vertices, within) if part[0] in reachable(part[0], within)]


class Scope:
    """A graph, or the body of one of its cycles as it is entered at a node.

    A *place* is a node of the scope: a node of the graph, or a cycle, which is folded. Places are
    numbered in plan order: by level, then by their first in-edge, then as declared.
    """

    def __init__(self, graph: Graph, members: Sequence[int], entry: int | None) -> None:
        """``entry``: the node at which a cycle is entered; None: the scope is the whole graph."""
        self.graph, self.entry = graph, entry
        number = {node.name: i for i, node in enumerate(graph.nodes)} | {ENTRY: -1, EXIT: -1}
        self.ends = [(number[edge.source], number[edge.target]) for edge in graph.edges]
        """By edge: the numbers of the nodes at its ends; -1: outside the graph."""
        ends = enumerate(self.ends)
        self.edges = [e for e, (a, b) in ends if entry is None or a in members or b in members]
        within = {e: self.ends[e] for e in self.edges if self._is_within(e, members)}
        firing = [link for e, link in within.items() if graph.edges[e].trigger]
        groups: list[list[int]] = []
        self.flat: list[list[int]] = []
        """Cycles of ``each`` nodes, which are not folded."""
        self.folded: list[list[int]] = []
        for tied in components(members, list(within.values())):
            turning = circles(tied, firing)
            if turning and any(graph.nodes[v].join != "each" for v in tied):
                self.folded.append(tied)
                groups.append(tied)
            else:
                self.flat += turning
                groups += [[v] for v in tied]
        self._number(groups, within)
        self.units = [[self.of[v] for v in unit] for unit in self.flat]
        """Places whose edges are decided together: flat cycles, and each other place alone."""
        turning = {place for unit in self.units for place in unit}
        self.units += [[place] for place in range(len(groups)) if place not in turning]
        self.late = self._late()
        """Data edges that cannot be waited for: what they carry comes in the next round."""

    def _is_within(self, e: int, members: Sequence[int]) -> bool:
        source, target = self.ends[e]
        return source in members and target in members and target != self.entry

    def _number(self, groups: Sequence[list[int]], within: dict[int, Link]) -> None:
        of = {v: g for g, group in enumerate(groups) for v in group}
        links = {e: (of[a], of[b]) for e, (a, b) in within.items()}
        links = {e: (a, b) for e, (a, b) in links.items() if a != b or groups[a] not in self.folded}
        flat = [{of[v] for v in unit} for unit in self.flat]
        firing = [link for e, link in links.items() if self.graph.edges[e].trigger]
        level = self._levels(len(groups), firing, flat)

        def first(g: int) -> int:
            into = (e for e in self.edges if of.get(self.ends[e][1]) == g)
            return min((e for e in into if self.ends[e][1] != self.entry), default=len(self.ends))

        order = sorted(range(len(groups)), key=lambda g: (level[g], first(g), groups[g][0]))
        place = {g: n for n, g in enumerate(order)}
        self.groups = [groups[g] for g in order]
        """By place: the nodes of the graph that it is made of."""
        self.level = [level[g] for g in order]
        self.of = {v: place[g] for v, g in of.items()}
        """By node of the graph: its place."""
        self.links = {e: (place[a], place[b]) for e, (a, b) in links.items()}
        """By edge within the scope: the places at its ends."""

    @staticmethod
    def _levels(count: int, links: Sequence[Link], flat: Sequence[set[int]]) -> list[int]:
        """Return how long the longest path to each is; a flat cycle has one level."""
        level = [0] * count
        for _ in range(count + 1):
            for a, b in links:
                is_inside = any(a in unit and b in unit for unit in flat)
                level[b] = max(level[b], level[a] + (0 if is_inside else 1))
            for unit in flat:
                highest = max(level[g] for g in unit)
                for g in unit:
                    level[g] = highest
        return level

    def _late(self) -> set[int]:
        data = [e for e in self.links if not self.graph.edges[e].trigger]
        late = {e for e in data if self.level[self.links[e][0]] >= self.level[self.links[e][1]]}
        if self.entry is not None:
            return late
        waiting = circles(range(len(self.groups)), list(self.links.values()))
        return {e for e in late if any(set(self.links[e]) <= set(circle) for circle in waiting)}

    def is_cycle(self, place: int) -> bool:
        """Return whether a place is a cycle."""
        return self.groups[place] in self.folded

    def name(self, place: int) -> str:
        """Return the name of a place."""
        names = [self.graph.nodes[v].name for v in self.groups[place]]
        if not self.is_cycle(place):
            return names[0]
        shown = names if len(names) <= 3 else [*names[:2], f"+{len(names) - 2}"]
        return f"cycle({','.join(shown)})"

    def incoming(self, place: int) -> list[int]:
        """Return the edges that lead to a place, in order: from others, and from outside."""
        into = [e for e in self.edges if self.of.get(self.ends[e][1]) == place]
        into = [e for e in into if self.ends[e][1] != self.entry]
        return [e for e in into if e in self.links or self.ends[e][0] not in self.of]

    def is_waited(self, e: int, unit: Sequence[int]) -> bool:
        """Return whether the target of an edge waits for it; ``unit``: that of the target."""
        if e not in self.links:
            return self.entry is None  # what comes from outside is decided before a round begins
        is_inside = self.graph.edges[e].trigger and self.links[e][0] in unit
        return e not in self.late and not is_inside

    def join(self, place: int) -> str:
        """Return how a place joins; a cycle: as the nodes do at which it can be entered."""
        if not self.is_cycle(place):
            return self.graph.nodes[self.groups[place][0]].join
        into = [e for e in self.incoming(place) if self.graph.edges[e].trigger]
        joins = {self.graph.nodes[self.ends[e][1]].join for e in into}
        return "each" if joins == {"each"} else "gate"

    def ports(self, place: int) -> list[list[int]]:
        """Return the edges to a place in the groups that join independently."""
        into = self.incoming(place)
        if self.join(place) == "each" or self.is_cycle(place):
            return [into]
        labels = dict.fromkeys(self.graph.edges[e].group for e in into)
        return [[e for e in into if self.graph.edges[e].group == label] for label in labels]

    def may_enter(self, place: int, entry: int, live: Set[int]) -> bool:
        """Return whether live edges are enough for the join of a cycle's entry node."""
        if self.graph.nodes[entry].join != "all":
            return True
        needed: dict[str, set[int]] = {}
        for e in self.incoming(place):
            edge = self.graph.edges[e]
            if self.ends[e][1] == entry and edge.trigger:
                needed.setdefault(edge.group, set()).add(e)
        return any(edges <= live for edges in needed.values())

    def waiting_fields(self) -> dict[int, str]:
        """Return the state fields in which payloads wait for a round, by edge: a data edge, or one
        that leads back to the start.
        """
        edges = ((e, self.graph.edges[e]) for e in self.edges if self.ends[e][1] in self.of)
        return {
            e: f"@edge/{edge.source}->{edge.target}"
            for e, edge in edges
            if not edge.trigger or (self.ends[e][1] == self.entry and self.ends[e][0] in self.of)
        }

    def is_own(self, e: int) -> bool:
        """Return whether the target of an edge is a node here, and not in a cycle within."""
        target = self.ends[e][1]
        return target == self.entry or not self.is_cycle(self.of[target])
