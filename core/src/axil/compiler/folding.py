"""Graph → plans: cycles folded into nodes, levels, ports and units.

The strongly connected components of a scope that trigger edges close become single nodes,
``CycleBody``s. A body is folded again for each node at which the cycle is entered: the edges into
that node are cut, so it is closer to acyclic, and nested loops follow, to any depth. A component in
which every node joins with ``each`` has nothing that waits: it stays as it is (a *flat* cycle).

Linear in vertices and edges. A cycle's body is folded once per entry and remembered; of the edges
around it only those between its own nodes are made anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from axil.compiler.bodies import Plain, is_coroutine_function
from axil.kernel.joins import ALL, EACH, GATE, Join
from axil.kernel.plan import (
    BACK,
    OUTSIDE,
    Edge,
    Plan,
    PlanEdge,
    PlanNode,
    Port,
    ResolvedGraph,
    ResolvedNode,
)
from axil.kernel.scopes import CycleBody
from axil.kernel.tokens import new_tuple
from axil.spec.components import components, is_cyclic, lead_onward, levels

try:
    from axil.kernel.shortcuts import ways
except ImportError:  # that file can be deleted
    ways = None


def fold(graph: ResolvedGraph) -> Plan:
    """Return the plan of a graph. Cost: O(vertices + edges)."""
    return _Scope(graph, range(len(graph.vertices)), graph.edges).plan()


class _Link(NamedTuple):
    """An edge of the scope, between plan nodes, ``OUTSIDE`` and ``BACK``."""

    source: int
    target: int
    edge: Edge


class _Scope:
    """One scope being folded; each step fills attributes that the next one reads."""

    def __init__(
        self,
        graph: ResolvedGraph,
        members: Sequence[int],
        edges: Sequence[Edge],
        entry: int | None = None,
    ) -> None:
        """
        Args:
            edges: those that touch one of ``members``, by id.
            entry: the member at which a cycle is entered; None: the scope is the whole graph.
        """
        self.graph, self.members, self.edges, self.entry = graph, members, edges, entry
        self.flat: dict[int, int] = {}
        """Vertices of flat cycles, each with the first one of its cycle."""
        self.cycles: dict[int, list[Edge]] = {}
        """First vertex of each folded cycle, with the edges that touch the cycle."""
        self.groups: list[list[int]] = self._groups()
        """The vertices of each plan node."""
        self.links, self.level = self._links()
        self.late = self._late()

    def _groups(self) -> list[list[int]]:
        """Return the vertices of each plan node.

        A cycle is closed by trigger edges, but a node whose data comes back into it belongs to it:
        so components are those of all edges, and one that only data edges close is no cycle. Where
        all nodes join with ``each``, only what trigger edges tie together closes as one.
        """
        at = {v: i for i, v in enumerate(self.members)}
        every: list[list[int]] = [[] for _ in self.members]
        firing: list[list[int]] = [[] for _ in self.members]
        for edge in self.edges:
            source, target = at.get(edge.source), at.get(edge.target)
            if source is not None and target is not None and edge.target != self.entry:
                every[source].append(target)
                if edge.trigger:
                    firing[source].append(target)
        self._hold_together(every, firing)
        if lead_onward(every):
            return [[v] for v in self.members]
        all_trigger = firing == every
        groups: list[list[int]] = []
        for component in components(every):
            group = [self.members[i] for i in component]
            flat: list[list[int]] = []
            if is_cyclic(component, every):
                flat = [component] if all_trigger else self._flat_parts(component, firing)
            if flat and not all(self.graph.vertices[v].join.per_token for v in group):
                groups.append(group)
                self.cycles[group[0]] = []
            else:
                groups.extend([v] for v in group)
                self.flat |= {self.members[i]: self.members[p[0]] for p in flat for i in p}
        return groups

    def _hold_together(self, every: list[list[int]], firing: list[list[int]]) -> None:
        """Keep in a declared loop all that its controller reaches."""
        loop = self.graph.loop
        if not loop or self.entry is not None:
            return
        head = next(i for i, v in enumerate(self.members) if self.graph.vertices[v].name == loop)
        seen, stack = {head}, [head]
        while stack:
            for there in every[stack.pop()]:
                if there not in seen:
                    seen.add(there)
                    stack.append(there)
        for i in seen:
            every[i].append(head)
            firing[i].append(head)

    @staticmethod
    def _flat_parts(component: list[int], firing: list[list[int]]) -> list[list[int]]:
        """Return the parts of the component that trigger edges alone tie into cycles."""
        at = {v: i for i, v in enumerate(component)}
        inner = [[at[w] for w in firing[v] if w in at] for v in component]
        parts = [part for part in components(inner) if is_cyclic(part, inner)]
        return [[component[i] for i in part] for part in parts]

    def _links(self) -> tuple[list[_Link], list[int]]:
        """Return the edges outside folded cycles, and the levels of the plan nodes; sort the groups
        into plan order, and note the edges of each folded cycle.
        """
        of = {v: g for g, group in enumerate(self.groups) for v in group}
        touching = {of[first]: edges for first, edges in self.cycles.items()}
        found: list[tuple[int, int, Edge]] = []
        successors: list[list[int]] = [[] for _ in self.groups]
        first = [len(self.graph.edges)] * len(self.groups)
        for edge in self.edges:
            source = of.get(edge.source, OUTSIDE)
            target = BACK if edge.target == self.entry else of.get(edge.target, OUTSIDE)
            if source in touching:
                touching[source].append(edge)
            if target >= 0:
                if edge.id < first[target]:
                    first[target] = edge.id
                if target in touching:
                    if source == target:
                        continue
                    touching[target].append(edge)
                if source >= 0 and edge.trigger:
                    successors[source].append(target)
            found.append((source, target, edge))
        level = levels(successors)
        order = sorted(
            range(len(self.groups)), key=lambda g: (level[g], first[g], self.groups[g][0])
        )
        number = {g: n for n, g in enumerate(order)} | {OUTSIDE: OUTSIDE, BACK: BACK}
        self.groups = [self.groups[g] for g in order]
        links = [new_tuple(_Link, (number[a], number[b], e)) for a, b, e in found]
        return links, [level[g] for g in order]

    def _late(self) -> set[int]:
        """Return data edges that cannot be waited for: in a cycle's body all that do not lead to a
        higher level; else those of them that would close a circle of waiting.
        """
        inner = [link for link in self.links if link.source >= 0 and link.target >= 0]
        climbing = [
            k for k in inner if not k.edge.trigger and self.level[k.source] >= self.level[k.target]
        ]
        if self.entry is not None or not climbing:
            return {link.edge.id for link in climbing}
        successors: list[list[int]] = [[] for _ in self.groups]
        for source, target, _ in inner:
            successors[source].append(target)
        circle = {g: c for c, component in enumerate(components(successors)) for g in component}
        return {link.edge.id for link in climbing if circle[link.source] == circle[link.target]}

    def plan(self) -> Plan:
        vertices = [self._vertex(group) for group in self.groups]
        ports = self._ports(vertices)
        outs, entries = self._arcs(ports)
        units, unit_of = self._units()
        leaves = [OUTSIDE in [arc.port for arc in out if arc.trigger] for out in outs]
        barriers = self._barriers(leaves) if self.entry is not None else ()
        free = barriers[0][0] if barriers else len(vertices)
        # where a chain may lead: nodes without a merge, on levels that no barrier holds up
        reach = [
            not v.merge and level <= free for v, level in zip(vertices, self.level, strict=True)
        ]
        nodes: list[PlanNode] = []
        for n, (vertex, out) in enumerate(zip(vertices, outs, strict=True)):
            body = vertex.body
            chain, is_direct = None, False
            if ways is not None and not self.flat and body.mode != "scope":
                chain, is_direct = ways(out, ports.ports, ports.waits, reach)
            nodes.append(
                PlanNode(
                    index=n,
                    name=vertex.name,
                    vertex=vertex,
                    level=self.level[n],
                    out=out,
                    unit=unit_of[n],
                    routers=vertex.routers,
                    leaves=leaves[n],
                    body=body,
                    call=body.call if isinstance(body, Plain) else body,
                    mode=body.mode,
                    quick=body.mode == "inline"
                    and vertex.lane is None
                    and vertex.effects != "external",
                    is_coroutine=body.mode == "async" and is_coroutine_function(body),
                    wants_ctx=getattr(body, "wants_ctx", True),
                    kind=getattr(body, "kind", "node"),
                    spreads=is_direct and not vertex.routers,
                    chain=chain,
                )
            )
        opens = [0] * len(units)
        for unit, more in zip(unit_of, ports.opens, strict=True):
            opens[unit] += more
        node_of = {v: n for n, group in enumerate(self.groups) for v in group}
        return Plan(
            graph=self.graph,
            nodes=tuple(nodes),
            ports=tuple([_with_feeders(at, ports.ports, nodes) for at in range(len(ports.ports))]),
            waits=tuple(ports.waits),
            opens=tuple(opens),
            units=units,
            sources=tuple(u for u, n in enumerate(opens) if not n),
            entries=entries,
            node_of=node_of,
            positions=ports.positions,
            flat_limits={
                node_of[v]: self.graph.cycle_limit(self.graph.vertices[v].name) for v in self.flat
            },
            barriers=barriers,
            entry=None if self.entry is None else node_of[self.entry],
            index={node.name: n for n, node in enumerate(nodes)},
        )

    def _ports(self, vertices: Sequence[ResolvedNode]) -> _Ports:
        """Return the places at which edges meet."""
        ports = _Ports(vertices)
        gates = {n for n, v in enumerate(vertices) if v.join is GATE and v.type == "cycle"}
        for source, target, edge in self.links:
            if target < 0:
                continue
            # what comes from outside is decided before a round begins
            is_decided = source < 0 and self.entry is not None
            if is_decided and edge.trigger and target in gates:
                continue  # it brings nothing, and a gate does not count what it lacks
            waited = not (
                is_decided or edge.id in self.late or (self.flat and self._is_inner(edge))
            )
            ports.meet(target, edge, waited=waited)
        ports.number()
        return ports

    def _is_inner(self, edge: Edge) -> bool:
        """Return whether an edge is inside a flat cycle: then nothing waits for it."""
        unit = self.flat.get(edge.source) if edge.trigger else None
        return unit is not None and unit == self.flat.get(edge.target)

    def _arcs(self, ports: _Ports) -> tuple[list[tuple[PlanEdge, ...]], dict[int, PlanEdge]]:
        """Return the out-edges of each node, and the edges from outside by id.

        An edge that leaves several cycles is made once.
        """
        outs: list[list[PlanEdge]] = [[] for _ in self.groups]
        entries: dict[int, PlanEdge] = {}
        leaving, in_body = self.graph.leaving, self.entry is not None
        for source, target, edge in self.links:
            if target == OUTSIDE:
                arc = leaving.get(edge.id)
                if arc is None:
                    arc = leaving[edge.id] = _arc(edge, OUTSIDE)
                if source < 0:  # from the entry of the graph straight to its exit
                    entries[edge.id] = arc
            elif source < 0 and (target == BACK or (in_body and edge.trigger)):
                continue  # on these no token comes but at the beginning, to the entry
            else:
                late, port = edge.id in self.late, ports.of.get(edge.id, BACK)
                arc = _arc(edge, port, late, bool(self.flat) and self._is_inner(edge))
                if source < 0 or late or (in_body and target >= 0 and not edge.trigger):
                    # in a body it was left over by a round in which its target did not fire
                    entries[edge.id] = _arc(edge, port, True) if in_body else arc
            if source >= 0:
                outs[source].append(arc)
        return [tuple(out) for out in outs], entries

    def _barriers(self, leaves: Sequence[bool]) -> tuple[tuple[int, int], ...]:
        found = Counter(self.level[n] for n, could_leave in enumerate(leaves) if could_leave)
        return tuple(sorted(found.items()))

    def _vertex(self, group: list[int]) -> ResolvedNode:
        if group[0] not in self.cycles:
            return self.graph.vertices[group[0]]
        edges = self.cycles[group[0]]
        cycle = CycleBody(
            self.graph, group, edges, lambda entry: _Scope(self.graph, group, edges, entry).plan()
        )
        joins = [self.graph.vertices[e.target].join for e in cycle.entrances() if e.trigger]
        join: Join = EACH if joins and all(each.per_token for each in joins) else GATE
        return ResolvedNode(name=cycle.name, body=cycle, join=join, type="cycle")

    def _units(self) -> tuple[tuple[tuple[int, ...], ...], list[int]]:
        """Return the units that close as one: a node, or the nodes of a flat cycle."""
        if not self.flat:
            return tuple([(n,) for n in range(len(self.groups))]), list(range(len(self.groups)))
        units: dict[tuple[bool, int], list[int]] = {}
        for n, group in enumerate(self.groups):
            first = self.flat.get(group[0])
            units.setdefault((first is not None, n if first is None else first), []).append(n)
        of = {n: u for u, unit in enumerate(units.values()) for n in unit}
        return tuple(map(tuple, units.values())), [of[n] for n in range(len(self.groups))]


def _arc(edge: Edge, port: int, late: bool = False, inner: bool = False) -> PlanEdge:
    return PlanEdge(
        edge.id, edge.carry, port, edge.trigger, edge.router, edge.target_name, late, inner
    )


def _with_feeders(index: int, ports: Sequence[Port], nodes: Sequence[PlanNode]) -> Port:
    """Return a port with its feeders: the nodes all of whose outputs lead to it."""
    port = ports[index]
    if not port.join.early or port.join.rest != "cancel":
        return port
    found: set[int] = set()
    for n in range(len(nodes) - 1, -1, -1):
        targets = [arc.port for arc in nodes[n].out]
        if (
            n != port.node
            and targets
            and all(to == index or (to >= 0 and ports[to].node in found) for to in targets)
        ):
            found.add(n)
    return replace(port, feeders=tuple(sorted(found)))


class _Ports:
    def __init__(self, vertices: Sequence[ResolvedNode]) -> None:
        self.vertices = vertices
        self.ports: list[Port] = []
        self.waits: list[int] = []
        self.opens = [0] * len(vertices)
        self.of: dict[int, int] = {}
        """The port of each edge, by edge id."""
        self.positions: dict[int, int] = {}
        self._met: list[dict[str, list[tuple[Edge, bool]]]] = [{} for _ in vertices]

    def meet(self, node: int, edge: Edge, *, waited: bool) -> None:
        """Let ``edge`` end at ``node``. ``waited``: its port waits for it."""
        vertex = self.vertices[node]
        is_single = vertex.join.per_token or isinstance(vertex.body, CycleBody)
        met = self._met[node].setdefault("" if is_single else edge.group, [])
        if vertex.join.per_token:
            self.positions[edge.id] = len(met)
        met.append((edge, waited))

    def number(self) -> None:
        """Number the ports by node, and count what each waits for and why each node may fire."""
        for node, groups in enumerate(self._met):
            join = self.vertices[node].join
            for place, (group, met) in enumerate(groups.items()):
                needs = firing = waits = 0
                for edge, waited in met:
                    self.of[edge.id] = len(self.ports)
                    needs += edge.trigger
                    waits += waited
                    firing += edge.trigger and waited
                if join.per_token or join.early:
                    waits -= firing
                undecided = firing if join.early else 0
                if join.per_token:
                    self.opens[node] += firing
                if waits or undecided:
                    self.opens[node] += 1
                self.waits.append(waits)
                is_usual, ordinal = join in (GATE, ALL), (place,) if place else ()
                plain = needs == len(met)
                self.ports.append(
                    Port(node, group, join, needs, plain, ordinal, is_usual, undecided)
                )
