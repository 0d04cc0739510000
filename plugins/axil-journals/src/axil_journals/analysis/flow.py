"""Nodes and edges of a graph that may happen, that must, and that exclude each other.

Theory of operation
-------------------
A graph is followed as its plans have it: a scope is acyclic, but for flat cycles, and a cycle is a
node with a plan of its own for each entry. A node *may* fire if its join may be met; a token *may*
come along an edge if its source may fire and its formula is not proved to be false. So what may not
happen never does. The other way round, a node *must* fire if each run of its scope fires it, and an
edge must be taken if nothing decides about it.

Each node has the *choices* that each way to it makes: edges of nodes that fire once, of which the
formulas of some exclude each other. Two edges exclude each other if their choices contain two edges
of one source that do. At a gate, choices are those that all its live edges have in common; at a
join of all edges, those of all of them. At most ``_MOST_CHOICES`` are kept, the last ones; fewer
choices prove less, never something wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from axil.plugin import CycleBody, Plan, PlanEdge, PlanNode
from axil_journals.analysis.facts import GraphFacts
from axil_journals.analysis.logic import never

_MOST_CHOICES: Final = 32
_MOST_ENTRIES: Final = 4
_MOST_PAIRS: Final = 200
"""Pairs of edges of one node that are compared."""

Choices = tuple[int, ...]
"""Ids of edges, oldest first."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """A join that is never met, though edges may come."""

    vertex: int
    first: int
    second: int
    """Two edges of which only one can come; -1: fewer than the join asks for can come at all."""
    most: int
    """Edges that can come at most."""
    total: int


@dataclass(slots=True, eq=False)
class Scope:
    """One scope, followed."""

    plan: Plan
    body: CycleBody | None
    entry: int
    """The vertex at which a cycle is entered; -1: the whole graph."""
    parent: Scope | None
    must_nodes: set[int]
    """Plan nodes that each run of the scope fires."""
    must_edges: set[int]
    leaving: bool = False
    """A trigger edge that leaves it may be taken."""
    returns: int = -1
    """A trigger edge back to its start that each round takes; -1: none."""


class Flow:
    """A graph, followed."""

    def __init__(self, facts: GraphFacts, plan: Plan) -> None:
        self.facts, self.graph = facts, facts.graph
        self.live_edges: set[int] = set()
        self.live_nodes: set[int] = set()
        self.choices: dict[int, Choices] = {}
        """Of nodes of the outermost scope, and of cycles in it, by vertex."""
        self.unmet: dict[int, Unmet] = {}
        self.scopes: list[Scope] = []
        self.is_exact = True
        """False: some cycle has too many entries, and all in it may happen."""
        self.numbers = {vertex.name: n for n, vertex in enumerate(self.graph.vertices)}
        self._exclusive: dict[tuple[int, int], bool] = {}
        self._pairs: dict[int, int] = {}
        self._dead: dict[int, bool] = {}
        self._follow(plan)

    # -- edges

    def is_dead(self, id: int) -> bool:
        """Return whether an edge is never taken, whatever its source gives."""
        found = self._dead.get(id)
        if found is None:
            formula = self.facts.formula(id)
            found = formula is not True and never(
                [formula], self.facts.domains(self.graph.edges[id].source)
            )
            self._dead[id] = found
        return found

    def is_certain(self, id: int) -> bool:
        """Return whether an edge is taken whenever its source fires."""
        edge = self.graph.edges[id]
        if self.facts.formula(id) is not True:
            return False
        if edge.source < 0:
            return True
        source = self.facts.nodes[edge.source]
        keys = self.facts.edge(id).keys
        return source.always and (not keys or source.has >= set(keys) or not source.is_strict)

    def exclude(self, one: int, other: int) -> bool:
        """Return whether two edges are never taken in one round: proved by their choices."""
        return self._exclude(self.chosen_before(one), self.chosen_before(other))

    def chosen_before(self, id: int) -> Choices:
        """Return the choices that each way along an edge makes, as far as they are kept."""
        source = self.graph.edges[id].source
        before = self.choices.get(source, ()) if source >= 0 else ()
        return self.chosen(id, before)

    def chosen(self, id: int, before: Choices) -> Choices:
        """Return choices, with an edge behind them if it is one."""
        edge = self.graph.edges[id]
        if self.facts.formula(id) is True or not self._fires_once(edge.source):
            return before
        return (*before, id)[-_MOST_CHOICES:]

    def _fires_once(self, vertex: int) -> bool:
        if vertex < 0:
            return True
        incoming = [self.graph.edges[id] for id in self.facts.incoming[vertex]]
        join = self.graph.vertices[vertex].join
        return not join.per_token and len({edge.group for edge in incoming}) < 2

    def _exclude(self, one: Choices, other: Choices) -> bool:
        by_source = {self.graph.edges[id].source: id for id in one}
        for id in other:
            mine = by_source.get(self.graph.edges[id].source)
            if mine is not None and mine != id and self.differ(mine, id):
                return True
        return False

    def differ(self, one: int, other: int) -> bool:
        """Return whether two edges of one source are proved to exclude each other."""
        key = (min(one, other), max(one, other))
        found = self._exclusive.get(key)
        if found is None:
            source = self.graph.edges[one].source
            met = self._pairs[source] = self._pairs.get(source, 0) + 1
            found = met <= _MOST_PAIRS and never(
                [self.facts.formula(one), self.facts.formula(other)], self.facts.domains(source)
            )
            self._exclusive[key] = found
        return found

    # -- scopes

    def _follow(self, plan: Plan) -> None:
        """Follow all scopes, inner ones first where an outer one needs them."""
        root = Scope(plan, None, -1, None, set(), set())
        stack: list[tuple[Scope, _Walk]] = [(root, _Walk(self, root))]
        while stack:
            scope, walk = stack[-1]
            inner = walk.advance()
            if inner is None:
                self.scopes.append(scope)
                stack.pop()
            else:
                stack.append((inner, _Walk(self, inner)))


class _Walk:
    """One scope being followed, node by node; it stops before the scopes inside a node."""

    def __init__(self, flow: Flow, scope: Scope) -> None:
        self.flow, self.scope, self.plan = flow, scope, scope.plan
        self.facts = flow.facts
        self.arriving: list[list[tuple[int, bool]]] = [[] for _ in scope.plan.ports]
        """Of each port the edges that may come, and whether they trigger."""
        self.carried: dict[int, Choices] = {}
        """Of each edge that may come, the choices."""
        self.at = 0
        self.waiting: list[Scope] = []
        self.has_entered = False
        self.is_flat = bool(scope.plan.flat_limits)
        """Nothing is proved of the nodes of a scope with flat cycles: they have no order."""
        self.ports: dict[int, list[int]] = {}
        for number, port in enumerate(scope.plan.ports):
            self.ports.setdefault(port.node, []).append(number)
        if scope.body is None:
            for id, arc in scope.plan.entries.items():
                self._send(id, arc, (), must=True)

    def advance(self) -> Scope | None:
        """Follow nodes until one has a scope inside; return that, or None at the end."""
        while True:
            if self.waiting:
                return self.waiting.pop()
            if self.at >= len(self.plan.nodes):
                return None
            node = self.plan.nodes[self.at]
            body = node.vertex.body
            if isinstance(body, CycleBody) and not self.has_entered:
                doors = self._doors(node, body)
                if len(doors) > _MOST_ENTRIES:
                    self.flow.is_exact = False
                    self.flow.live_edges.update(edge.id for edge in body.edges)
                    self.flow.live_nodes.update(body.members)
                else:
                    self.waiting = [
                        Scope(body.body(door), body, door, self.scope, set(), set())
                        for door in doors
                    ]
                self.has_entered = True
                continue
            self.has_entered = False
            self._fire(node)
            self.at += 1

    def _doors(self, node: PlanNode, body: CycleBody) -> list[int]:
        """Return the vertices at which a cycle may be entered."""
        edges = self.flow.graph.edges
        if self.is_flat:
            return sorted({edge.target for edge in body.entrances() if edge.trigger})
        came = {id for p in self.ports.get(node.index, ()) for id, on in self.arriving[p] if on}
        return sorted({edges[id].target for id in came} & body.inside)

    def _fire(self, node: PlanNode) -> None:
        """Find out whether a node may fire, and must, and send along its edges."""
        is_entry = node.index == self.plan.entry
        met = [p for p in self.ports.get(node.index, ()) if self._may_meet(node, p)]
        if not (is_entry or met or self.is_flat):
            return
        flow = self.flow
        vertex = self._vertex(node)
        choices = () if is_entry or self.is_flat else self._common(met)
        must = not self.is_flat and (is_entry or any(self._must_meet(p) for p in met))
        if must:
            self.scope.must_nodes.add(node.index)
        if vertex >= 0:
            flow.live_nodes.add(vertex)
            if self.scope.parent is None:
                flow.choices[vertex] = choices
        is_cycle = isinstance(node.vertex.body, CycleBody)
        for arc in node.out:
            if is_cycle:
                if arc.id in flow.live_edges:  # found inside
                    self._send(arc.id, arc, choices, must=False)
            elif not flow.is_dead(arc.id):
                certain = must and flow.is_certain(arc.id)
                self._send(arc.id, arc, flow.chosen(arc.id, choices), must=certain)

    def _vertex(self, node: PlanNode) -> int:
        if isinstance(node.vertex.body, CycleBody):
            return -1
        return self.flow.numbers[node.vertex.name]

    def _send(self, id: int, arc: PlanEdge, choices: Choices, *, must: bool) -> None:
        flow, scope = self.flow, self.scope
        if scope.parent is None and flow.graph.edges[id].source < 0 and flow.is_dead(id):
            return
        flow.live_edges.add(id)
        if must:
            scope.must_edges.add(id)
        if arc.port >= 0:
            self.arriving[arc.port].append((id, arc.trigger))
            self.carried[id] = choices
        elif arc.trigger and scope.body is not None:
            if flow.graph.edges[id].target == scope.entry:
                if must:
                    scope.returns = id
            else:
                scope.leaving = True

    def _may_meet(self, node: PlanNode, number: int) -> bool:
        port = self.plan.ports[number]
        came = [id for id, trigger in self.arriving[number] if trigger]
        if not came or self.is_flat:
            return False
        join = port.join
        if join.per_token or (join.fires(1, 0, 1) and join.fires(1, port.needs - 1, port.needs)):
            return True
        pair = self._excluding(came)
        most = len(came) - (pair is not None)
        total = max(port.needs, len(came))
        if any(
            join.fires(live, total - live, total) for live in range(max(1, most - 64), most + 1)
        ):
            return True
        vertex = self._vertex(node)
        if vertex >= 0:
            first, second = pair or (came[0], -1)
            self.flow.unmet[vertex] = Unmet(vertex, first, second, most, total)
        return False

    def _excluding(self, came: Sequence[int]) -> tuple[int, int] | None:
        """Return two edges that exclude each other; None: none are proved to."""
        seen: dict[int, list[tuple[int, int]]] = {}
        for id in came:
            for choice in self.carried.get(id, ()):
                source = self.flow.graph.edges[choice].source
                for other, by in seen.get(source, ()):
                    if by != id and other != choice and self.flow.differ(other, choice):
                        return by, id
                seen.setdefault(source, []).append((choice, id))
        return None

    def _must_meet(self, number: int) -> bool:
        port, must = self.plan.ports[number], self.scope.must_edges
        live = sum(trigger and id in must for id, trigger in self.arriving[number])
        return bool(live and port.join.fires(live, port.needs - live, port.needs))

    def _common(self, ports: Sequence[int]) -> Choices:
        """Return the choices that each way to a node makes."""
        found: dict[int, None] | None = None
        for number in ports:
            port = self.plan.ports[number]
            of_port: dict[int, None] | None = None
            came = [id for id, trigger in self.arriving[number] if trigger]
            needs_all = not (port.join.per_token or port.join.fires(1, port.needs - 1, port.needs))
            for id in came:
                own = dict.fromkeys(self.carried.get(id, ()))
                if of_port is None:
                    of_port = own
                elif needs_all and len(came) == port.needs:
                    of_port |= own
                else:
                    of_port = {c: None for c in of_port if c in own}
            if found is None:
                found = of_port
            elif of_port is not None:
                found = {c: None for c in found if c in of_port}
        return tuple(found or ())[-_MOST_CHOICES:]
