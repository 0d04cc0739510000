"""Nodes and edges of a graph that may happen, that must, and that exclude each other.

Theory of operation
-------------------
A graph is followed as its plans have it: a scope is acyclic, but for flat cycles, and a cycle is a
node with a plan of its own for each entry. A node *may* fire if its join may be met; a token *may*
come along an edge if its source may fire and its formula is not proved to be false. So what may not
happen never does. The other way round, a node *must* fire if each run of its scope fires it, and an
edge must be taken if nothing decides about it.

Each node has the *choices* that each way to it makes: edges of nodes that fire once, and have a
formula. At a gate, choices are those that all its live edges have in common, and, as one more, that
those of one of them were made; at a join of all edges, those of all of them. So the formulas of a
node's choices hold wherever it fires. Their values are named (see ``values``), so that they speak
of the same thing in each formula: an edge whose own formula contradicts them is never taken, and
two edges exclude each other if two of their choices do. At most ``_MOST_CHOICES`` are kept, the
last ones; fewer choices prove less, never something wrong.

In a cycle this is said of one round: the choices before it hold in each round, those of its last
round behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from axil.plugin import CycleBody, Join, Plan, PlanEdge, PlanNode
from axil_journals.analysis.facts import GraphFacts
from axil_journals.analysis.logic import Formula, Path, atoms, may_hold, never
from axil_journals.analysis.values import NONE, Follower, Place, Values, places_in

_MOST_CHOICES: Final = 32
_MOST_ENTRIES: Final = 4
_MOST_PAIRS: Final = 200
"""Pairs of edges of one node that are compared."""
_MOST_COMPARED: Final = 1_000
"""Pairs of choices that are compared for one join."""
_MOST_NEAR: Final = 6
"""Choices with which one edge is compared."""
_MOST_WAYS: Final = 4
_MOST_ATOMS: Final = 12
"""The ways that meet at a gate of which one is a choice, and the atoms of it."""

Choices = tuple[int, ...]
"""Ids of edges, oldest first; less than -1: of several ways that meet, one was taken."""


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
    choices: Choices = ()
    """The choices that each way into it makes."""
    values: Values = field(default_factory=dict[Place, str])
    """The values at the start of each round."""
    out: dict[int, tuple[Choices, Values]] = field(
        default_factory=dict[int, "tuple[Choices, Values]"]
    )
    """Of each edge that may leave it, what is known there."""
    leaving: bool = False
    """A trigger edge that leaves it may be taken."""
    is_left: bool = False
    """Each round takes one that does."""
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
        self.against: dict[int, int] = {}
        """Of edges that contradict what is chosen before them, the choice; -1: several."""
        self.follower = Follower(facts)
        self._formulas: dict[int, Formula] = {}
        self._places: dict[int, frozenset[Path]] = {}
        self._exclusive: dict[tuple[int, int], bool] = {}
        self._pairs: dict[int, int] = {}
        self._dead: dict[int, bool] = {}
        self.sent: dict[int, Choices] = {}
        """Of edges of the outermost scope, the choices that each way along them makes."""
        self._follow(plan)

    # -- edges

    def formula(self, id: int) -> Formula:
        """Return when an edge is taken, or a choice was made, its values named."""
        found = self._formulas.get(id)
        return self.name_values(id, NONE, NONE) if found is None else found

    def name_values(self, id: int, before: Values, after: Values) -> Formula:
        """Return an edge's formula, its values named as they are known now."""
        found = self.follower.named(id, before, after)
        if self._formulas.get(id, found) != found:
            self._exclusive = {}  # a cycle that is entered in several ways has others in each
            self._dead.pop(id, None)
        self._formulas[id], self._places[id] = found, frozenset(places_in(found))
        return found

    def is_dead(self, id: int) -> bool:
        """Return whether an edge is never taken, whatever its source gives."""
        found = self._dead.get(id)
        if found is None:
            found = self.facts.formula(id) is not True and never(
                [self.formula(id)], self.follower.domain
            )
            self._dead[id] = found
        return found

    def contradicts(self, id: int, before: Choices) -> bool:
        """Return whether an edge is never taken behind choices."""
        formula, domain, near = self.formula(id), self.follower.domain, self._near(id, before)
        if not near:
            return False
        together = may_hold([formula, *map(self.formula, near)], domain)
        if together:  # so each two of them may, too
            return False
        one = next((c for c in near if never([formula, self.formula(c)], domain)), -1)
        if one == -1 and together is None:
            return False
        self.against[id] = one
        return True

    def _near(self, id: int, before: Choices) -> Sequence[int]:
        """Return the last choices that speak of the same values as an edge."""
        self.formula(id)
        places = self._places[id]
        near = (c for c in reversed(before) if not places.isdisjoint(self._places[c]))
        return [*islice(near, _MOST_NEAR)]

    def is_certain(self, id: int, before: Choices) -> bool:
        """Return whether an edge is taken whenever its source fires behind choices."""
        edge = self.graph.edges[id]
        if self.facts.formula(id) is not True:
            otherwise = ("not", self.formula(id))
            said = [self.formula(choice) for choice in self._near(id, before)]
            if not (self.facts.is_whole(id) and never([otherwise, *said], self.follower.domain)):
                return False
        if edge.source < 0:
            return True
        source = self.facts.nodes[edge.source]
        keys = self.facts.edge(id).keys
        return source.always and (not keys or source.has >= set(keys) or not source.is_strict)

    def exclude(self, one: int, other: int) -> bool:
        """Return whether two edges are never taken in one round: proved by their choices."""
        is_inner = one not in self.sent or other not in self.sent
        if is_inner and self.graph.edges[one].source != self.graph.edges[other].source:
            return False
        return self.exclude_each_other(self.chosen_before(one), self.chosen_before(other))

    def chosen_before(self, id: int) -> Choices:
        """Return the choices that each way along an edge makes, as far as they are kept."""
        source = self.graph.edges[id].source
        before = self.choices.get(source, ()) if source >= 0 else ()
        return self.sent[id] if id in self.sent else self.chosen(id, before)

    def chosen(self, id: int, before: Choices) -> Choices:
        """Return choices, with an edge behind them if it is one."""
        edge = self.graph.edges[id]
        if self.facts.formula(id) is True or not self.facts.fires_once(edge.source):
            return before
        return (*before, id)[-_MOST_CHOICES:]

    def topics(self, choice: int) -> Iterable[object]:
        """Return what a choice is about: another one that excludes it is about one of them, too."""
        source = self.graph.edges[choice].source if choice >= 0 else choice
        self.formula(choice)
        return (source, *self._places[choice])

    def exclude_each_other(self, one: Choices, other: Choices) -> bool:
        """Return whether choices are never made in one round."""
        by_topic: dict[object, set[int]] = {}
        for choice in one:
            for topic in self.topics(choice):
                by_topic.setdefault(topic, set()).add(choice)
        return any(
            mine != choice and self.differ(mine, choice)
            for choice in other
            for topic in self.topics(choice)
            for mine in by_topic.get(topic, ())
        )

    def differ(self, one: int, other: int) -> bool:
        """Return whether two choices are proved to exclude each other."""
        key = (min(one, other), max(one, other))
        found = self._exclusive.get(key)
        if found is None:
            source = self.graph.edges[key[1]].source if key[1] >= 0 else -1
            met = self._pairs[source] = self._pairs.get(source, 0) + 1
            found = met <= _MOST_PAIRS and never(
                [self.formula(one), self.formula(other)], self.follower.domain
            )
            self._exclusive[key] = found
        return found

    def one_of(self, ways: Sequence[Sequence[int]]) -> int | None:
        """Return a choice for that one of several ways was taken; None: it says nothing."""
        parts: list[Formula] = []
        for way in ways:
            said = [self.formula(choice) for choice in way if self._places[choice]]
            if not said:
                return None
            parts.append(said[0] if len(said) == 1 else ("and", *said))
        either = ("or", *parts)
        if sum(1 for _ in atoms(either)) > _MOST_ATOMS:
            return None
        choice = -2 - len(self._formulas)
        self._formulas[choice] = either
        self._places[choice] = frozenset(places_in(either))
        return choice

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


def fires(join: Join, live: int, dead: int, total: int) -> bool:
    """Return whether a join fires; one that raises does: its node is begun, and fails."""
    try:
        return bool(join.fires(live, dead, total))
    except Exception:  # noqa: BLE001, of a join that a plugin brings
        return True


def _needs_all(join: Join, total: int) -> bool:
    """Return whether a join never fires before all its edges are live."""
    fires_without = join.early and fires(join, total - 1, 0, total)
    return not (join.per_token or fires_without or fires(join, total - 1, 1, total))


class _Walk:
    """One scope being followed, node by node; it stops before the scopes inside a node."""

    def __init__(self, flow: Flow, scope: Scope) -> None:
        self.flow, self.scope, self.plan = flow, scope, scope.plan
        self.facts = flow.facts
        self.arriving: list[list[tuple[int, bool]]] = [[] for _ in scope.plan.ports]
        """Of each port the edges that may come, and whether they trigger."""
        self.carried: dict[int, Choices] = {}
        """Of each edge that may come, the choices."""
        self.values: dict[int, Values] = {}
        """Of each edge that may come, the values."""
        self.inner: list[Scope] = []
        """The scopes inside the node that is followed, one for each way in."""
        self.at = 0
        self.waiting: list[Scope] = []
        self.has_entered = False
        self.is_flat = bool(scope.plan.flat_limits)
        """Nothing is proved of the nodes of a scope with flat cycles: they have no order."""
        self.follows = bool(flow.follower.places) and not self.is_flat
        """Conditions ask for values that can be followed."""
        self.ports: dict[int, list[int]] = {}
        for number, port in enumerate(scope.plan.ports):
            self.ports.setdefault(port.node, []).append(number)
        if scope.body is None:
            for id, arc in scope.plan.entries.items():
                self._send(id, arc, (), flow.follower.carried(id, NONE), must=True)

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
                self.inner = []
                doors = self._doors(node, body)
                if len(doors) > _MOST_ENTRIES:
                    self.flow.is_exact = False
                    self.flow.live_edges.update(edge.id for edge in body.edges)
                    self.flow.live_nodes.update(body.members)
                else:
                    self.waiting = [self._inner(node, body, door) for door in doors]
                    self.inner = list(self.waiting)
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

    def _inner(self, node: PlanNode, body: CycleBody, door: int) -> Scope:
        """Return a cycle as it is entered at one vertex."""
        edges, choices, values = self.flow.graph.edges, (), NONE
        if not self.is_flat:
            met = self.ports.get(node.index, ())
            choices = self._common(met, lambda id: edges[id].target == door)
            writers = self.flow.follower.writers(body.members)
            values = self.flow.follower.entered(writers, self._values(node, door))
        return Scope(body.body(door), body, door, self.scope, set(), set(), choices, values)

    def _values(self, node: PlanNode, vertex: int) -> Values:
        """Return the values before a node fires."""
        if not self.follows:
            return NONE
        if node.index == self.plan.entry:
            return self.scope.values
        came = [id for p in self.ports.get(node.index, ()) for id, _ in self.arriving[p]]
        is_one = len(came) <= _MOST_WAYS and all(
            self.flow.exclude_each_other(self.carried[one], self.carried[other])
            for at, one in enumerate(came)
            for other in came[:at]
        )
        brought = [self.values.get(id, NONE) for id in came]
        return self.flow.follower.before(vertex, brought, is_one=is_one)

    def _fire(self, node: PlanNode) -> None:
        """Find out whether a node may fire, and must, and send along its edges."""
        is_entry = node.index == self.plan.entry
        met = [p for p in self.ports.get(node.index, ()) if self._may_meet(node, p)]
        if not (is_entry or met or self.is_flat):
            return
        flow = self.flow
        vertex = self._vertex(node)
        choices = self.scope.choices if is_entry else () if self.is_flat else self._common(met)
        must = not self.is_flat and (is_entry or any(self._must_meet(p) for p in met))
        if must:
            self.scope.must_nodes.add(node.index)
        if vertex >= 0:
            flow.live_nodes.add(vertex)
            if self.scope.parent is None:
                flow.choices[vertex] = choices
        body = node.vertex.body
        if isinstance(body, CycleBody):
            self._leave(node, body, choices)
            return
        before = self._values(node, vertex)
        after = flow.follower.after(vertex, before) if self.follows else NONE
        for arc in node.out:
            if flow.facts.formula(arc.id) is not True:
                flow.name_values(arc.id, before, after)
                if flow.is_dead(arc.id) or flow.contradicts(arc.id, choices):
                    continue
            certain = must and flow.is_certain(arc.id, choices)
            values = flow.follower.carried(arc.id, after) if self.follows else NONE
            self._send(arc.id, arc, flow.chosen(arc.id, choices), values, must=certain)

    def _leave(self, node: PlanNode, body: CycleBody, choices: Choices) -> None:
        """Send along the edges that leave a cycle."""
        flow = self.flow
        only = self.inner[0] if len(self.inner) == 1 else None
        writers = flow.follower.writers(body.members)
        for arc in node.out:
            if arc.id not in flow.live_edges:  # found inside
                continue
            chosen, values = choices, NONE
            is_last = arc.trigger  # what data edges carry may be of any round
            if is_last and only is not None and arc.id in only.out and not self.is_flat:
                chosen, inside = only.out[arc.id]
                source = flow.graph.edges[arc.id].source
                outside = self._values(node, only.entry)
                values = flow.follower.left(writers, source, outside, inside)
            self._send(arc.id, arc, chosen, values, must=False)

    def _vertex(self, node: PlanNode) -> int:
        if isinstance(node.vertex.body, CycleBody):
            return -1
        return self.flow.numbers[node.vertex.name]

    def _send(
        self, id: int, arc: PlanEdge, choices: Choices, values: Values, *, must: bool
    ) -> None:
        flow, scope = self.flow, self.scope
        if scope.parent is None and flow.graph.edges[id].source < 0 and flow.is_dead(id):
            return
        flow.live_edges.add(id)
        if must:
            scope.must_edges.add(id)
        if arc.port >= 0:
            self.arriving[arc.port].append((id, arc.trigger))
            self.carried[id], self.values[id] = choices, values
            if scope.parent is None:
                flow.sent[id] = choices
        else:
            scope.out[id] = choices, values
        if arc.port < 0 and arc.trigger and scope.body is not None:
            if flow.graph.edges[id].target == scope.entry:
                if must:
                    scope.returns = id
            else:
                scope.leaving = True
                scope.is_left |= must

    def _may_meet(self, node: PlanNode, number: int) -> bool:
        port = self.plan.ports[number]
        came = [id for id, trigger in self.arriving[number] if trigger]
        if not came or self.is_flat:
            return False
        join = port.join
        if join.per_token or (fires(join, 1, 0, 1) and fires(join, 1, port.needs - 1, port.needs)):
            return True
        pair = self._excluding(came)
        most = len(came) - (pair is not None)
        total = max(port.needs, len(came))
        if any(
            fires(join, live, total - live, total) for live in range(max(1, most - 64), most + 1)
        ):
            return True
        vertex = self._vertex(node)
        if vertex >= 0:
            first, second = pair or (came[0], -1)
            self.flow.unmet[vertex] = Unmet(vertex, first, second, most, total)
        return False

    def _excluding(self, came: Sequence[int]) -> tuple[int, int] | None:
        """Return two edges that exclude each other; None: none are proved to."""
        for one, first, other, second in islice(self._pairs(came), _MOST_COMPARED):
            if self.flow.differ(first, second):
                return one, other
        return None

    def _pairs(self, came: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
        """Yield each two choices that are about the same, each behind an edge that has it."""
        seen: dict[object, dict[int, int]] = {}
        for id in came:
            for choice in self.carried.get(id, ()):
                for topic in self.flow.topics(choice):
                    known = seen.setdefault(topic, {})
                    if choice not in known:
                        yield from ((by, c, id, choice) for c, by in known.items() if by != id)
                        known[choice] = id

    def _must_meet(self, number: int) -> bool:
        port, must = self.plan.ports[number], self.scope.must_edges
        live = sum(trigger and id in must for id, trigger in self.arriving[number])
        return bool(live and fires(port.join, live, port.needs - live, port.needs))

    def _common(
        self, ports: Sequence[int], counts: Callable[[int], bool] = lambda id: True
    ) -> Choices:
        """Return the choices that each way to a node makes, along the edges that count."""
        found: dict[int, None] | None = None
        ways: list[Choices] = []
        for number in ports:
            port = self.plan.ports[number]
            of_port: dict[int, None] | None = None
            came = [id for id, trigger in self.arriving[number] if trigger and counts(id)]
            needs_all = _needs_all(port.join, port.needs)
            for id in came:
                own = dict.fromkeys(self.carried.get(id, ()))
                if of_port is None:
                    of_port = own
                elif needs_all and len(came) == port.needs:
                    of_port |= own
                else:
                    of_port = {c: None for c in of_port if c in own}
            if needs_all and len(came) == port.needs:
                ways.append(tuple(of_port or ()))
            else:
                ways += [self.carried.get(id, ()) for id in came]
            if found is None:
                found = of_port
            elif of_port is not None:
                found = {c: None for c in found if c in of_port}
        common = found or {}
        if 1 < len(ways) <= _MOST_WAYS and self.flow.follower.places:
            either = self.flow.one_of([[c for c in way if c not in common] for way in ways])
            if either is not None:
                common[either] = None
        return tuple(common)[-_MOST_CHOICES:]
