"""Graph → plans: cycles folded into nodes, levels, ports and units.

The strongly connected components of a scope that trigger edges close become single nodes,
``CycleBody``s, whose body is folded again when they are entered: the edges into the node at which
they were entered are cut, so the body is closer to acyclic, and nested loops come for free, to any
depth. A component in which every node joins with ``each`` has nothing that waits: it stays as it is
(a *flat* cycle) and its tokens turn until none is live.

Compilation is linear in vertices and edges. A cycle's body is compiled once per entry and
remembered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from axil.errors import KernelBug
from axil.kernel.joins import ALL, EACH, GATE, Join
from axil.kernel.plan import (
    BACK,
    OUTSIDE,
    Edge,
    Graph,
    Mode,
    Plan,
    PlanEdge,
    PlanNode,
    Port,
    ResolvedNode,
)
from axil.kernel.tokens import Task

try:
    from axil.kernel.shortcuts import ways
except ImportError:  # that file can be deleted
    ways = None


def components(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Strongly connected components in topological order of the condensation, sources first.

    Args:
        successors: for each vertex ``0 … n-1`` the vertices its edges lead to; repeats are
            harmless.
    Returns: one sorted list of vertices per component.
    Cost: O(vertices + edges), no recursion.
    Source: R. Tarjan, Depth-first search and linear graph algorithms, SIAM J. Comput. 1(2), 1972.

    >>> components([[1], [2], [1, 3], []])
    [[0], [1, 2], [3]]
    """
    n = len(successors)
    order = [0] * n  # visit number, 0 = not visited
    low = [0] * n
    on_stack = bytearray(n)
    stack: list[int] = []
    found: list[list[int]] = []
    visit = 0
    for root in range(n):
        if order[root]:
            continue
        visit += 1
        order[root] = low[root] = visit
        stack.append(root)
        on_stack[root] = 1
        path = [(root, iter(successors[root]))]
        while path:
            v, rest = path[-1]
            for w in rest:
                if not order[w]:
                    visit += 1
                    order[w] = low[w] = visit
                    stack.append(w)
                    on_stack[w] = 1
                    path.append((w, iter(successors[w])))
                    break
                if on_stack[w] and order[w] < low[v]:
                    low[v] = order[w]
            else:
                path.pop()
                if path and low[v] < low[path[-1][0]]:
                    low[path[-1][0]] = low[v]
                if low[v] == order[v]:
                    component: list[int] = []
                    while True:
                        w = stack.pop()
                        on_stack[w] = 0
                        component.append(w)
                        if w == v:
                            break
                    component.sort()
                    found.append(component)
    found.reverse()
    return found


def is_cyclic(component: Sequence[int], successors: Sequence[Sequence[int]]) -> bool:
    """Whether the component holds a cycle: more than one vertex, or an edge to itself."""
    return len(component) > 1 or component[0] in successors[component[0]]


def levels(successors: Sequence[Sequence[int]]) -> list[int]:
    """The longest distance of each vertex from a source; vertices on a cycle share one level.

    Cost: O(vertices + edges).

    >>> levels([[1, 2], [2], []])
    [0, 1, 2]
    """
    result = [0] * len(successors)
    for component in components(successors):
        level = max(result[v] for v in component)
        for v in component:
            result[v] = level
        inside = set(component)
        for v in component:
            for w in successors[v]:
                if w not in inside and result[w] <= level:
                    result[w] = level + 1
    return result


def shortest_path(successors: Sequence[Sequence[int]], start: int, goal: int) -> list[int] | None:
    """Vertices of a shortest path from ``start`` to ``goal``, both included; None if there is none.

    ``start == goal`` asks for a cycle: the path then begins and ends there.

    >>> shortest_path([[1], [2], [0]], 0, 0)
    [0, 1, 2, 0]
    """
    came: dict[int, int] = {}
    queue = deque([start])
    while queue:
        v = queue.popleft()
        for w in successors[v]:
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


class CycleBody:
    """A cycle as a node's body: its members, and one compiled plan for each node it can be entered
    at.
    """

    mode: Mode = "scope"
    kind = "cycle"

    def __init__(self, graph: Graph, members: Sequence[int]) -> None:
        self.graph = graph
        self.members = tuple(members)
        self.inside = frozenset(members)
        self.name = cycle_name([graph.vertices[m].name for m in members])
        self._bodies: dict[int, Plan] = {}
        self._waiting: dict[int, dict[int, str]] = {}

    def body(self, entry: int) -> Plan:
        """The plan of a round that starts at vertex ``entry``."""
        plan = self._bodies.get(entry)
        if plan is None:
            plan = self._bodies[entry] = fold(self.graph, self.members, entry)
        return plan

    def waiting(self, entry: int) -> Mapping[int, str]:
        """The data edges that such a round takes from the state what waits on them of, each with
        its field: those of cycles within it are theirs."""
        waiting = self._waiting.get(entry)
        if waiting is None:
            own = {
                node.name for node in self.body(entry).nodes if not isinstance(node.body, CycleBody)
            }
            edges = [
                e
                for e in self.graph.incident(self.members)
                if not e.trigger and e.target in self.inside
            ]
            fields = {
                e.id: waiting_field(e) for e in edges if self.graph.vertices[e.target].name in own
            }
            waiting = self._waiting[entry] = fields
        return waiting

    def entrances(self) -> list[Edge]:
        """The edges that lead into the cycle from outside."""
        return [
            e
            for e in self.graph.incident(self.members)
            if e.target in self.inside and e.source not in self.inside
        ]

    def __call__(self, task: Task, ctx: Any, /) -> Any:
        raise KernelBug(f"the body of {self.name} was called; scopes are entered.")


def waiting_field(edge: Edge) -> str:
    """The name of the state field in which payloads of a data edge wait until their target takes
    them.
    """
    return f"@edge/{edge.name}"


def cycle_name(names: Sequence[str]) -> str:
    """``cycle(A,B,C)``, or ``cycle(A,B,+7)`` for many: stable, and different at each depth of
    nesting.
    """
    shown = list(names) if len(names) <= 3 else [*names[:2], f"+{len(names) - 2}"]
    return f"cycle({','.join(shown)})"


def fold(graph: Graph, members: Sequence[int] | None = None, entry: int | None = None) -> Plan:
    """The plan of a graph, or of the body of one of its cycles as entered at vertex ``entry``.

    Cost: O(vertices + edges) of the scope.
    """
    return _Scope(graph, range(len(graph.vertices)) if members is None else members, entry).plan()


class _Link(NamedTuple):
    """An edge between two plan nodes of the scope, by the numbers they will have."""

    source: int
    target: int
    edge: Edge


class _Scope:
    """One scope being folded, step by step; each step fills the attributes that the next one
    reads.
    """

    def __init__(self, graph: Graph, members: Sequence[int], entry: int | None) -> None:
        self.graph, self.entry, self.members = graph, entry, members
        self.inside = frozenset(members)
        self.incident = graph.incident(members)
        self.within = [
            e
            for e in self.incident
            if e.source in self.inside and e.target in self.inside and e.target != entry
        ]
        self.flat_units: list[list[int]] = []  # vertices of each flat cycle
        self.cycles: set[int] = set()  # first vertex of each folded cycle
        self.groups = self._groups()
        self.group_of = {v: g for g, group in enumerate(self.groups) for v in group}
        self.links, self.level = self._links()
        self.late = self._late()

    def _groups(self) -> list[list[int]]:
        """The vertices of each plan node.

        A cycle is closed by trigger edges. A node whose data comes back into a cycle belongs to it,
        so components are those of all edges; one that only data edges close is no cycle. Where all
        nodes join with ``each``, nothing is folded, and only what trigger edges tie together closes
        as one.
        """
        at = {v: i for i, v in enumerate(self.members)}
        every: list[list[int]] = [[] for _ in self.members]
        firing: list[list[int]] = [[] for _ in self.members]
        for edge in self.within:
            every[at[edge.source]].append(at[edge.target])
            if edge.trigger:
                firing[at[edge.source]].append(at[edge.target])
        self._hold_together(every, firing)
        groups: list[list[int]] = []
        for component in components(every):
            group = [self.members[i] for i in component]
            turning = self._turning(component, firing) if is_cyclic(component, every) else []
            if not turning:
                groups.extend([v] for v in group)
            elif all(self.graph.vertices[v].join.per_token for v in group):
                groups.extend([v] for v in group)
                self.flat_units.extend([self.members[i] for i in part] for part in turning)
            else:
                groups.append(group)
                self.cycles.add(group[0])
        return groups

    def _hold_together(self, every: list[list[int]], firing: list[list[int]]) -> None:
        """A declared loop keeps every node that its controller reaches, also where no edge leads
        back.
        """
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
    def _turning(component: list[int], firing: list[list[int]]) -> list[list[int]]:
        """Return the parts of the component that trigger edges alone tie into cycles."""
        at = {v: i for i, v in enumerate(component)}
        inner = [[at[w] for w in firing[v] if w in at] for v in component]
        parts = [part for part in components(inner) if is_cyclic(part, inner)]
        return [[component[i] for i in part] for part in parts]

    def _links(self) -> tuple[list[_Link], list[int]]:
        """Edges between plan nodes, and the nodes' levels; renumbers the groups into plan order."""
        of = self.group_of
        links = [_Link(of[e.source], of[e.target], e) for e in self.within]
        links = [
            link
            for link in links
            if link.source != link.target or self.groups[link.source][0] not in self.cycles
        ]
        successors: list[list[int]] = [[] for _ in self.groups]
        for source, target, edge in links:
            if edge.trigger:
                successors[source].append(target)
        level = levels(successors)
        first = [len(self.graph.edges)] * len(self.groups)
        for edge in self.incident:
            if edge.target in self.inside and edge.target != self.entry:
                first[of[edge.target]] = min(first[of[edge.target]], edge.id)
        order = sorted(
            range(len(self.groups)), key=lambda g: (level[g], first[g], self.groups[g][0])
        )
        number = {g: n for n, g in enumerate(order)}
        self.groups = [self.groups[g] for g in order]
        self.group_of = {v: number[g] for v, g in of.items()}
        return [_Link(number[a], number[b], e) for a, b, e in links], [level[g] for g in order]

    def _late(self) -> set[int]:
        """Data edges that cannot be waited for.

        In a cycle's body: all that do not lead to a higher level. In an acyclic scope: those among
        them that, with the other edges, would close a circle of waiting.
        """
        climbing = [
            k
            for k in self.links
            if not k.edge.trigger and self.level[k.source] >= self.level[k.target]
        ]
        if self.entry is not None or not climbing:
            return {link.edge.id for link in climbing}
        successors: list[list[int]] = [[] for _ in self.groups]
        for source, target, _ in self.links:
            successors[source].append(target)
        circle = {g: c for c, component in enumerate(components(successors)) for g in component}
        return {link.edge.id for link in climbing if circle[link.source] == circle[link.target]}

    def plan(self) -> Plan:
        """All of it, put together."""
        vertices = [self._vertex(group) for group in self.groups]
        ports = _Ports(
            [v.join for v in vertices],
            {n for n, g in enumerate(self.groups) if g[0] in self.cycles},
        )
        leading: list[list[_Way]] = [[] for _ in self.groups]
        entries: dict[int, _Way] = {}
        owners: dict[int, int] = {}
        turning = {v: unit[0] for unit in self.flat_units for v in unit}
        linked = {link.edge.id: link for link in self.links}
        for edge in self.incident:
            link = linked.get(edge.id)
            if link is not None:
                inner = edge.trigger and turning.get(edge.source, -1) == turning.get(
                    edge.target, -2
                )
                late = edge.id in self.late
                way = _Way(
                    edge, ports.port(link.target, edge, waited=not late and not inner), late, inner
                )
                leading[link.source].append(way)
                if late:
                    entries[edge.id] = way
                elif self.entry is not None and not edge.trigger:
                    # left over by a round in which its target did not fire
                    entries[edge.id] = _Way(edge, way.port, True)
            elif edge.source in self.inside and edge.target not in self.inside:
                leading[self.group_of[edge.source]].append(_Way(edge, OUTSIDE))
            elif edge.source in self.inside and edge.target == self.entry:
                leading[self.group_of[edge.source]].append(_Way(edge, BACK))
            elif (
                edge.source not in self.inside
                and edge.target in self.inside
                and edge.target != self.entry
            ):
                # what comes from outside is decided before a round begins
                in_body = self.entry is not None
                entries[edge.id] = _Way(
                    edge, ports.port(self.group_of[edge.target], edge, waited=not in_body), in_body
                )
            elif edge.source < 0 and edge.target < 0:
                entries[edge.id] = _Way(edge, OUTSIDE)
            if edge.source in self.inside:
                owners[edge.id] = self.group_of[edge.source]
        numbered = ports.finish()
        units, unit_of = self._units(turning)
        arcs = [tuple(map(numbered.arc, ways)) for ways in leading]
        leaves = [any(arc.port == OUTSIDE and arc.trigger for arc in out) for out in arcs]
        barriers = self._barriers(leaves) if self.entry is not None else ()
        free = barriers[0][0] if barriers else len(vertices)
        # where a chain may lead: nodes without a merge, on levels that no barrier holds up
        reach = [
            not v.merge and level <= free for v, level in zip(vertices, self.level, strict=True)
        ]
        nodes: list[PlanNode] = []
        for n, (vertex, out) in enumerate(zip(vertices, arcs, strict=True)):
            body = vertex.body
            chain, is_direct = None, False
            if ways is not None and not turning and body.mode != "scope":
                chain, is_direct = ways(out, numbered.ports, numbered.waits, reach)
            nodes.append(
                PlanNode(
                    name=vertex.name,
                    vertex=vertex,
                    level=self.level[n],
                    out=out,
                    unit=unit_of[n],
                    routers=vertex.routers,
                    leaves=leaves[n],
                    body=body,
                    call=vertex.call or body,
                    mode=body.mode,
                    quick=body.mode == "inline"
                    and vertex.lane is None
                    and vertex.effects != "external",
                    is_coroutine=vertex.is_coroutine,
                    wants_ctx=getattr(body, "wants_ctx", True),
                    kind=getattr(body, "kind", "node"),
                    is_direct=is_direct,
                    spreads=is_direct and chain is None and not vertex.routers,
                    chain=chain,
                )
            )
        opens = tuple(sum(numbered.opens[n] for n in unit) for unit in units)
        finished = tuple(
            replace(port, feeders=_feeders(index, port, numbered.ports, nodes))
            if port.join.early and port.join.rest == "cancel"
            else port
            for index, port in enumerate(numbered.ports)
        )
        return Plan(
            graph=self.graph,
            nodes=tuple(nodes),
            ports=finished,
            waits=numbered.waits,
            opens=opens,
            units=units,
            unit_of=tuple(unit_of),
            sources=tuple(u for u, n in enumerate(opens) if not n),
            entries={id: numbered.arc(arc) for id, arc in entries.items()},
            owners=owners,
            positions=ports.positions,
            ranks=self._ranks(owners),
            turning={
                self.group_of[v]: self.graph.cycle_limit(self.graph.vertices[v].name)
                for v in turning
            },
            barriers=barriers,
            entry=None if self.entry is None else self.group_of[self.entry],
            index={node.name: n for n, node in enumerate(nodes)},
        )

    def _barriers(self, leaves: Sequence[bool]) -> tuple[tuple[int, int], ...]:
        """How many nodes on each level could leave the scope."""
        leavers: dict[int, int] = {}
        for level, could_leave in zip(self.level, leaves, strict=True):
            if could_leave:
                leavers[level] = leavers.get(level, 0) + 1
        return tuple(sorted(leavers.items()))

    def _ranks(self, owners: dict[int, int]) -> dict[int, int] | None:
        """The place of each edge's tokens at a join: edge order (None), or first the level of their
        sources.
        """
        if not self.graph.payloads.by_level:
            return None
        ids = sorted(
            (edge.id for edge in self.incident),
            key=lambda id: (self.level[owners[id]] if id in owners else -1, id),
        )
        return {id: place for place, id in enumerate(ids)}

    def _vertex(self, group: list[int]) -> ResolvedNode:
        if group[0] not in self.cycles:
            return self.graph.vertices[group[0]]
        cycle = CycleBody(self.graph, group)
        doors = [self.graph.vertices[e.target].join for e in cycle.entrances() if e.trigger]
        join: Join = EACH if doors and all(each.per_token for each in doors) else GATE
        return ResolvedNode(name=cycle.name, body=cycle, join=join, type="cycle")

    def _units(self, turning: dict[int, int]) -> tuple[tuple[tuple[int, ...], ...], list[int]]:
        """What closes as one: a node, or all nodes of a flat cycle."""
        units: dict[tuple[bool, int], list[int]] = {}
        for n, group in enumerate(self.groups):
            flat = turning.get(group[0])
            units.setdefault((flat is not None, n if flat is None else flat), []).append(n)
        unit_of = [0] * len(self.groups)
        for u, unit in enumerate(units.values()):
            for n in unit:
                unit_of[n] = u
        return tuple(tuple(unit) for unit in units.values()), unit_of


def _feeders(
    index: int, port: Port, ports: Sequence[Port], nodes: Sequence[PlanNode]
) -> tuple[int, ...]:
    """Return the nodes all of whose outputs lead to one port, directly or through each other."""
    found: set[int] = set()
    for n in range(len(nodes) - 1, -1, -1):
        out = nodes[n].out
        if (
            n != port.node
            and out
            and all(
                arc.port == index or (arc.port >= 0 and ports[arc.port].node in found)
                for arc in out
            )
        ):
            found.add(n)
    return tuple(sorted(found))


class _Way(NamedTuple):
    """An arc in the making: the port is numbered as it appeared."""

    edge: Edge
    port: int
    late: bool = False
    inner: bool = False


class _Numbered(NamedTuple):
    """Ports with their final numbers: sorted by node."""

    ports: tuple[Port, ...]
    waits: tuple[int, ...]
    opens: list[int]
    number: list[int]

    def arc(self, way: _Way) -> PlanEdge:
        edge, port, late, inner = way
        port = port if port < 0 else self.number[port]
        return PlanEdge(
            edge.id, edge.carry, port, edge.trigger, edge.router, edge.target_name, late, inner
        )


class _Ports:
    """The ports of a plan in the making, numbered as they appear."""

    def __init__(self, joins: list[Join], cycles: set[int]) -> None:
        self.joins, self.cycles = joins, cycles
        self.of: dict[tuple[int, str], int] = {}
        self.waits: list[int] = []
        self.edges: list[list[Edge]] = []
        self.open_edges = [0] * len(joins)
        self.positions: dict[int, int] = {}
        self.indegree = [0] * len(joins)
        self.early_edges: dict[int, int] = {}  # ports of early joins: trigger edges to be decided

    def port(self, node: int, edge: Edge, *, waited: bool) -> int:
        """The port of ``node`` at which ``edge`` ends; ``waited``: it has to be decided before the
        port decides.
        """
        each = self.joins[node].per_token
        key = (node, "" if each or node in self.cycles else edge.group)
        index = self.of.setdefault(key, len(self.waits))
        if index == len(self.waits):
            self.waits.append(0)
            self.edges.append([])
        self.edges[index].append(edge)
        self.positions[edge.id] = self.indegree[node]
        self.indegree[node] += 1
        if waited and each and edge.trigger:
            self.open_edges[node] += 1
        elif waited and edge.trigger and self.joins[node].early:
            self.early_edges[index] = self.early_edges.get(index, 0) + 1
        elif waited:
            self.waits[index] += 1
        return index

    def finish(self) -> _Numbered:
        """The ports sorted by node; for each node the number of reasons why it may still fire."""
        number = [0] * len(self.waits)
        ports: list[Port] = []
        waits: list[int] = []
        opens = list(self.open_edges)
        place = [0] * len(self.joins)
        for (node, group), old in sorted(self.of.items(), key=lambda item: (item[0][0], item[1])):
            number[old] = len(ports)
            edges = self.edges[old]
            needs = sum(1 for e in edges if e.trigger)
            ports.append(
                Port(
                    node,
                    group,
                    self.joins[node],
                    needs,
                    needs == len(edges),
                    (place[node],) if place[node] else (),
                    self.joins[node] in (GATE, ALL),
                    self.early_edges.get(old, 0),
                )
            )
            waits.append(self.waits[old])
            place[node] += 1
            if self.waits[old] or old in self.early_edges:
                opens[node] += 1
        return _Numbered(tuple(ports), tuple(waits), opens, number)
