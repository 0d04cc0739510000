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

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
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
    """Return whether the component holds a cycle: more than one vertex, or an edge to itself."""
    return len(component) > 1 or component[0] in successors[component[0]]


def levels(successors: Sequence[Sequence[int]]) -> list[int]:
    """Return the longest distance of each vertex from a source; vertices on a cycle share one
    level.

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


class CycleBody:
    """A cycle as a node's body, with a plan for each node it can be entered at."""

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
        """Return the plan of a round that starts at vertex ``entry``."""
        plan = self._bodies.get(entry)
        if plan is None:
            plan = self._bodies[entry] = fold(self.graph, self.members, entry)
        return plan

    def waiting(self, entry: int) -> Mapping[int, str]:
        """Return the data edges whose payloads wait in the state for such a round, with their
        fields.
        """
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
        """Return the edges that lead into the cycle from outside."""
        return [
            e
            for e in self.graph.incident(self.members)
            if e.target in self.inside and e.source not in self.inside
        ]

    def __call__(self, task: Task, ctx: Any, /) -> Any:
        raise KernelBug(f"the body of {self.name} was called; scopes are entered.")


def waiting_field(edge: Edge) -> str:
    """Return the state field in which payloads of a data edge wait until their target takes
    them.
    """
    return f"@edge/{edge.name}"


def cycle_name(names: Sequence[str]) -> str:
    """``cycle(A,B,C)``, or ``cycle(A,B,+7)`` for many: different at each depth of nesting."""
    shown = list(names) if len(names) <= 3 else [*names[:2], f"+{len(names) - 2}"]
    return f"cycle({','.join(shown)})"


def fold(graph: Graph, members: Sequence[int] | None = None, entry: int | None = None) -> Plan:
    """Return the plan of a graph, or of one of its cycles entered at ``entry``. Cost: O(scope)."""
    return _Scope(graph, range(len(graph.vertices)) if members is None else members, entry).plan()


class _Link(NamedTuple):
    """An edge between two plan nodes of the scope, by the numbers they will have."""

    source: int
    target: int
    edge: Edge


class _Scope:
    """One scope being folded; each step fills the attributes that the next one reads."""

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
        """Return the vertices of each plan node.

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
    def _turning(component: list[int], firing: list[list[int]]) -> list[list[int]]:
        """Return the parts of the component that trigger edges alone tie into cycles."""
        at = {v: i for i, v in enumerate(component)}
        inner = [[at[w] for w in firing[v] if w in at] for v in component]
        parts = [part for part in components(inner) if is_cyclic(part, inner)]
        return [[component[i] for i in part] for part in parts]

    def _links(self) -> tuple[list[_Link], list[int]]:
        """Return edges between plan nodes, and the nodes' levels; renumbers the groups into plan
        order.
        """
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
        """Return data edges that cannot be waited for.

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
        """Return all of it, put together."""
        vertices = [self._vertex(group) for group in self.groups]
        ports = _Ports([v.join for v in vertices], self.groups, self.cycles)
        turning = {v: unit[0] for unit in self.flat_units for v in unit}
        leading, entries = self._ways(ports, turning)
        numbered, waits, opens_of = ports.finish()
        units, unit_of = self._units(turning)
        arcs = [tuple(map(ports.arc, ways)) for ways in leading]
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
                chain, is_direct = ways(out, numbered, waits, reach)
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
                    spreads=is_direct and not vertex.routers,
                    chain=chain,
                )
            )
        opens = tuple(sum(opens_of[n] for n in unit) for unit in units)
        owners = {e.id: self.group_of[e.source] for e in self.incident if e.source in self.inside}
        return Plan(
            graph=self.graph,
            nodes=tuple(nodes),
            ports=tuple(_with_feeders(index, numbered, nodes) for index in range(len(numbered))),
            waits=waits,
            opens=opens,
            units=units,
            unit_of=tuple(unit_of),
            sources=tuple(u for u, n in enumerate(opens) if not n),
            entries={id: ports.arc(way) for id, way in entries.items()},
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

    def _ways(
        self, ports: _Ports, turning: Mapping[int, int]
    ) -> tuple[list[list[_Way]], dict[int, _Way]]:
        """Return where edges lead, by node, and those that tokens from outside come on, by id."""
        leading: list[list[_Way]] = [[] for _ in self.groups]
        entries: dict[int, _Way] = {}
        linked = {link.edge.id: link for link in self.links}
        in_body = self.entry is not None
        for edge in self.incident:
            starts, ends = edge.source in self.inside, edge.target in self.inside
            if (link := linked.get(edge.id)) is not None:
                flat = edge.trigger and edge.source in turning
                inner = flat and turning[edge.source] == turning.get(edge.target)
                late = edge.id in self.late
                key = ports.meet(link.target, edge, waited=not late and not inner)
                way = _Way(edge, key, late, inner)
                leading[link.source].append(way)
                if late:
                    entries[edge.id] = way
                elif in_body and not edge.trigger:
                    # left over by a round in which its target did not fire
                    entries[edge.id] = _Way(edge, key, late=True)
            elif starts and not ends:
                leading[self.group_of[edge.source]].append(_Way(edge, OUTSIDE))
            elif starts and edge.target == self.entry:
                leading[self.group_of[edge.source]].append(_Way(edge, BACK))
            elif ends and not starts and edge.target != self.entry:
                # what comes from outside is decided before a round begins
                key = ports.meet(self.group_of[edge.target], edge, waited=not in_body)
                entries[edge.id] = _Way(edge, key, late=in_body)
            elif edge.source < 0 and edge.target < 0:
                entries[edge.id] = _Way(edge, OUTSIDE)
        return leading, entries

    def _barriers(self, leaves: Sequence[bool]) -> tuple[tuple[int, int], ...]:
        """Count, for each level, the nodes that could leave the scope."""
        leavers: dict[int, int] = {}
        for level, could_leave in zip(self.level, leaves, strict=True):
            if could_leave:
                leavers[level] = leavers.get(level, 0) + 1
        return tuple(sorted(leavers.items()))

    def _ranks(self, owners: dict[int, int]) -> dict[int, int] | None:
        """Return the place of each edge's tokens at a join; None: edge order."""
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
        """Return the units that close as one: a node, or all nodes of a flat cycle."""
        units: dict[tuple[bool, int], list[int]] = {}
        for n, group in enumerate(self.groups):
            flat = turning.get(group[0])
            units.setdefault((flat is not None, n if flat is None else flat), []).append(n)
        unit_of = [0] * len(self.groups)
        for u, unit in enumerate(units.values()):
            for n in unit:
                unit_of[n] = u
        return tuple(tuple(unit) for unit in units.values()), unit_of


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


_Key = tuple[int, str]


class _Way(NamedTuple):
    """The target of an edge: the port of a node and a group, ``OUTSIDE``, or ``BACK``."""

    edge: Edge
    to: _Key | int
    late: bool = False
    inner: bool = False


class _Ports:
    """The ports of a plan in the making, by node and group."""

    def __init__(
        self, joins: Sequence[Join], groups: Sequence[list[int]], cycles: Collection[int]
    ) -> None:
        self.joins = joins
        # nodes whose edges all meet in one port
        self.single = {
            n for n, join in enumerate(joins) if join.per_token or groups[n][0] in cycles
        }
        self.edges: dict[_Key, list[Edge]] = {}
        self.waits: dict[_Key, int] = {}
        self.undecided: dict[_Key, int] = {}  # of early joins: trigger edges to be decided
        self.opens = [0] * len(joins)
        self.positions: dict[int, int] = {}
        self.indegree = [0] * len(joins)
        self.number: dict[_Key, int] = {}

    def meet(self, node: int, edge: Edge, *, waited: bool) -> _Key:
        """Let ``edge`` end at ``node``; return its port. ``waited``: the port waits for it."""
        key = (node, "" if node in self.single else edge.group)
        self.edges.setdefault(key, []).append(edge)
        self.positions[edge.id] = self.indegree[node]
        self.indegree[node] += 1
        join = self.joins[node]
        if waited and edge.trigger and join.per_token:
            self.opens[node] += 1
        elif waited:
            counts = self.undecided if edge.trigger and join.early else self.waits
            counts[key] = counts.get(key, 0) + 1
        return key

    def finish(self) -> tuple[tuple[Port, ...], tuple[int, ...], list[int]]:
        """Return the ports by node, what each waits for, and why each node may still fire."""
        ports: list[Port] = []
        place = [0] * len(self.joins)
        for key in sorted(self.edges, key=itemgetter(0)):
            node, group = key
            join, edges = self.joins[node], self.edges[key]
            needs = sum(1 for e in edges if e.trigger)
            ordinal = (place[node],) if place[node] else ()
            is_usual, undecided = join in (GATE, ALL), self.undecided.get(key, 0)
            self.number[key] = len(ports)
            ports.append(
                Port(node, group, join, needs, needs == len(edges), ordinal, is_usual, undecided)
            )
            place[node] += 1
            if key in self.waits or key in self.undecided:
                self.opens[node] += 1
        waits = tuple(self.waits.get(key, 0) for key in self.number)
        return tuple(ports), waits, self.opens

    def arc(self, way: _Way) -> PlanEdge:
        """Return an edge as the plan sees it, when the ports are numbered."""
        edge, to, late, inner = way
        port = to if isinstance(to, int) else self.number[to]
        return PlanEdge(
            edge.id, edge.carry, port, edge.trigger, edge.router, edge.target_name, late, inner
        )
