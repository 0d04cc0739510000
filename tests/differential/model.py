"""Reference model: what a workflow has to come to, in the plainest way to write the rules.

No short way, no incremental state, no compilation, no concurrency, and no import of axil. Where the
product and this model differ, one of them is wrong. README.md says how that is settled.

- Tokens. An edge of a scope carries live tokens or none. A node waits until every edge that leads
  to it is decided, so a scope is worked unit by unit, lower levels first (``Frame.run``).
- State. A state is the values at the beginning of its frame and, by field, the writes since; a
  join of states is the union of their writes (``history.State.join``).
- Cycles. A strongly connected component is a node. Its body is the component without the edges into
  the node at which it was entered, and is run round after round (``Run.cycle``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import graphs
from .graphs import Graph, Node, Observed, Seen
from .history import DEFAULTS, Failed, State, composed, joined, merged
from .scopes import Scope
from .tokens import (
    Ended,
    Firing,
    Left,
    Ordinal,
    Outcome,
    Path,
    Send,
    Token,
    folded,
    inner_path,
    next_ordinal,
    place_of,
)

FIRINGS = 400
"""Firings after which a run is limited."""


class Limited(Exception):
    """The run reaches a limit."""


def output_of(graph: Graph, ended: Ended) -> Any:
    """Return what a graph gives; None: nothing left it."""
    is_any = ended.has_fired if graph.payload == "state" else ended.exits
    return folded(exit.payload for exit in ended.exits) if is_any else None


def first_values(graph: Graph) -> dict[str, Any]:
    """Return the values with which the state of a graph begins."""
    return dict(DEFAULTS) if graph.typed else {"last": 0}


# --------------------------------------------------------------------------------------- runs


@dataclass
class Run:
    """One run of the model: what it fired, and what was seen."""

    activations: dict[str, Seen] = field(default_factory=dict[str, Seen])
    cycles: dict[str, Any] = field(default_factory=dict[str, Any])
    ids: int = 0
    scopes: dict[Any, Scope] = field(default_factory=dict[Any, Scope])

    def id(self) -> int:
        """Return a number for a write."""
        self.ids += 1
        return self.ids

    def scope(self, graph: Graph, members: Sequence[int], entry: int | None) -> Scope:
        """Return a scope, made once."""
        key = (id(graph), tuple(members), entry)
        if key not in self.scopes:
            self.scopes[key] = Scope(graph, members, entry)
        return self.scopes[key]

    def graph(self, graph: Graph, inputs: Any, root: State, path: Path) -> Ended:
        """Run a graph from its entry to its end."""
        scope = self.scope(graph, range(len(graph.nodes)), None)
        entering = [e for e in scope.edges if scope.ends[e][0] == -1]
        return Frame(self, scope, root, path).run([Token(e, inputs, root) for e in entering], [])

    # -- cycles

    def cycle(self, scope: Scope, at: int, firing: Firing, state: State, path: Path) -> Outcome:
        """Run a cycle until a token leaves it, its limit is reached, or none comes back."""
        graph, name = scope.graph, scope.name(at)
        doors = {scope.ends[t.edge][1] for t in firing.tokens if graph.edges[t.edge].trigger}
        if len(doors) != 1:
            raise Failed(f"{name} is entered at several nodes at once")
        (entry,) = doors
        if not scope.may_enter(at, entry, {token.edge for token in firing.tokens}):
            return Outcome(state, [])
        body = self.scope(graph, scope.groups[at], entry)
        limit = graph.limit(graph.nodes[entry].name)
        inside = inner_path(path, name, firing.ordinal)
        now, total, rounds = state.rooted(), list[Mapping[str, Any]](), 0
        data: list[Left] = []
        tokens = [Token(t.edge, t.payload, None, t.ordinal) for t in firing.tokens]
        while True:
            ended = self.round(body, tokens, now, (*inside, rounds))
            rounds += 1
            kept = still_waiting(body, ended, now)
            after = ended.state.apply(kept, self.id()) if kept else ended.state
            total.append(after.changes())
            now = after.rooted()
            out = [left for left in ended.exits if graph.edges[left.edge].trigger]
            data += [left for left in ended.exits if not graph.edges[left.edge].trigger]
            back = [left for left in ended.returns if graph.edges[left.edge].trigger]
            end = "exit" if out else "natural" if not back else ""
            if not end and rounds >= limit.rounds:
                end = "limit"
            if end == "limit" and not limit.is_exit:
                raise Limited(name)
            if end:
                break
            tokens = [Token(left.edge, left.payload, None, left.ordinal) for left in back]
        self.count(path, name, rounds, end)
        changes = composed(state.is_typed, total)
        leaving = sorted([*out, *data], key=lambda left: left.edge)
        return Outcome(
            state.apply(changes, self.id()) if changes else state,
            [(left.edge, left.payload, left.values) for left in leaving],
        )

    def round(self, body: Scope, tokens: Sequence[Token], state: State, path: Path) -> Ended:
        """Run one round, with what comes in and what waited on data edges."""
        waited = [
            Token(e, payload, None)
            for e, name in body.waiting_fields().items()
            if body.is_own(e)
            for payload in state.values().get(name) or ()
        ]
        every = [*waited, *sorted(tokens, key=lambda token: (token.edge, token.ordinal))]
        mine = [token for token in every if body.ends[token.edge][1] == body.entry]
        others = [*waited, *tokens]
        others = [token for token in others if body.ends[token.edge][1] != body.entry]
        return Frame(self, body, state, path).run(others, mine)

    def count(self, path: Path, name: str, rounds: int, end: str) -> None:
        """Count one entry of a cycle."""
        parts = [part for part in path if isinstance(part, str)]
        where = "/".join([*(p for p in parts if not p.startswith(("cycle(", "#"))), name])
        entries, turned, ends = self.cycles.get(where, (0, 0, {}))
        self.cycles[where] = entries + 1, turned + rounds, {**ends, end: ends.get(end, 0) + 1}

    # -- nodes

    def node(
        self, scope: Scope, at: int, firing: Firing, state: State, path: Path
    ) -> tuple[Any, Mapping[str, Any], Sequence[str] | None]:
        """Fire a node.

        Returns: its output (None: it sends nothing), what it writes, the targets that it sends to.
        """
        node = scope.graph.nodes[scope.groups[at][0]]
        if node.inside is not None and not node.items:
            return *self.subgraph(node, node.inside, firing, state, path), None
        n = (state.values().get(graphs.own_field(node.name)) or {}).get("n", 0) + 1
        payloads = [token.payload for token in firing.tokens]
        shown = sorted(state.seen().items())
        seen = Seen(ordinal=firing.ordinal, payloads=payloads, state=shown, n=n)
        named = f"#{'.'.join(map(str, firing.ordinal))}" if firing.ordinal else ""
        self.activations["/".join(map(str, (*path, node.name))) + named] = seen
        if len(self.activations) > FIRINGS:
            raise Limited("firings")
        if node.fails >= graphs.TRIES:
            raise Failed(node.name)
        if node.inside is not None:
            return self.items(
                node, node.inside, seen, state, inner_path(path, node.name, firing.ordinal)
            )
        answers = [graphs.answer(graphs.question(node, seen))] if node.asks else []
        done = graphs.fire(node, seen, *answers)
        return done.output, done.delta, done.to

    def items(
        self, node: Node, graph: Graph, seen: Seen, state: State, path: Path
    ) -> tuple[Any, Mapping[str, Any], None]:
        """Run a graph for each item of a map; what they write is written in their order."""
        every = [
            self.graph(graph, each, state.rooted(), (*path, i))
            for i, each in enumerate(graphs.items(node, seen))
        ]
        done = graphs.fire(node, seen, [output_of(graph, ended) for ended in every])
        wrote = [ended.state.changes() for ended in every]
        return done.output, composed(state.is_typed, [*wrote, done.delta]), None

    def subgraph(
        self, node: Node, graph: Graph, firing: Firing, state: State, path: Path
    ) -> tuple[Any, Mapping[str, Any]]:
        """Run a graph inside a node; return its output, and what it writes around it."""
        own, seen = graphs.own_field(node.name), state.seen()
        pulled = seen if graph.pulls is None else graph.pulls
        values = first_values(graph) | {name: seen[name] for name in pulled if name in seen}
        if node.keeps:
            kept = state.values().get(own) or {}
            values |= {name: value for name, value in kept.items() if name.startswith("@")}
        inputs = folded(token.payload for token in firing.tokens)
        root, inside = State(graph.typed, values), inner_path(path, node.name, firing.ordinal)
        ended = self.graph(graph, inputs, root, inside)
        names = graph.pulls if graph.pushes is None else graph.pushes
        if names is None:
            names = graphs.TYPED if state.is_typed else tuple(state.values())
        changes = ended.state.changes()
        pushed = {name: changes[name] for name in names if name in changes and name[0] != "@"}
        if node.keeps:
            pushed[own] = {n: v for n, v in ended.state.values().items() if n.startswith("@")}
        return output_of(graph, ended), pushed


def still_waiting(body: Scope, ended: Ended, before: State) -> dict[str, Any]:
    """Return what waits on edges after a round, by state field, where that has changed."""
    edges = body.graph.edges
    is_left = any(edges[left.edge].trigger for left in ended.exits)
    back = [left for left in ended.returns if is_left or not edges[left.edge].trigger]
    kept: dict[str, Any] = {}
    for e, name in body.waiting_fields().items():
        sent = [left.payload for left in [*ended.data, *back] if left.edge == e]
        if body.is_own(e):
            if sent or before.values().get(name):
                kept[name] = sent
        elif sent:
            kept[name] = [*(ended.state.values().get(name) or ()), *sent]
    return kept


# ------------------------------------------------------------------------------------- frames


class Frame:
    """One scope, run once: a graph, or one round of a cycle."""

    def __init__(self, run: Run, scope: Scope, root: State, path: Path) -> None:
        self.of, self.scope, self.root, self.path = run, scope, root, path
        self.slots: dict[int, list[Token]] = {e: [] for e in scope.edges}
        self.late: list[Token] = []
        self.ended: list[tuple[int, Ordinal, int, State]] = []
        """The ends of the paths of the state: place, ordinal, edge, state."""
        self.exits: list[Left] = []
        self.returns: list[Left] = []
        self.left_on: int | None = None
        """The lowest level on which a node has left the cycle."""
        self.has_fired = False

    def run(self, tokens: Sequence[Token], entry: Sequence[Token]) -> Ended:
        """Run the scope.

        Args:
            tokens: what comes on edges from outside.
            entry: what makes the entry node of a round fire.
        """
        scope = self.scope
        for token in tokens:
            if scope.ends[token.edge][1] == -1:  # from the graph's entry straight to its exit
                self.exits.append(Left(token.edge, token.payload, None, token.ordinal))
                self.ended.append((-1, token.ordinal, token.edge, token.state or self.root))
            else:
                self.slots[token.edge].append(token)
        for unit in self.in_order():
            if self.left_on is not None and scope.level[unit[0]] > self.left_on:
                continue  # the round is left: what lies on higher levels never starts
            if scope.entry is not None and unit == [scope.of[scope.entry]]:
                self.fire(unit[0], Firing((), list(entry)))
            elif any(set(unit) == {scope.of[v] for v in flat} for flat in scope.flat):
                self.turn(unit)
            else:
                for firing in self.due(unit[0]):
                    self.fire(unit[0], firing)
        return self.end()

    def in_order(self) -> Iterator[list[int]]:
        """Yield the units, each when all that its places wait for is decided."""
        scope, decided = self.scope, set[int]()
        todo = sorted(scope.units, key=lambda unit: (scope.level[unit[0]], unit[0]))

        def waits(unit: list[int]) -> bool:
            into = [e for place in unit for e in scope.incoming(place) if e in scope.links]
            return any(scope.is_waited(e, unit) and scope.links[e][0] not in decided for e in into)

        while todo:
            unit = next(unit for unit in todo if not waits(unit))
            todo.remove(unit)
            decided.update(unit)
            yield unit

    def due(self, at: int) -> list[Firing]:
        """Return the firings of a place whose edges are all decided, and take their tokens."""
        scope, edges, join = self.scope, self.scope.graph.edges, self.scope.join(at)
        firings: list[Firing] = []
        for number, port in enumerate(scope.ports(at)):
            tokens = [token for e in port for token in self.slots[e]]
            firing = [token for token in tokens if edges[token.edge].trigger]
            data = [token for token in tokens if not edges[token.edge].trigger]
            live, needed = {token.edge for token in firing}, [e for e in port if edges[e].trigger]
            if not live or (join == "all" and len(live) < len(needed)):
                continue
            if join == "each":
                firings += [self.for_token(at, token, data) for token in firing]
            elif any(scope.is_waited(e, [at]) for e in port):
                firings.append(Firing((number,) if number else (), sorted(tokens, key=place_of)))
            else:
                continue
            for e in port:
                self.slots[e] = []
        return firings

    def for_token(self, at: int, token: Token, data: Sequence[Token]) -> Firing:
        """Return the firing of an ``each`` node for one token, with the data that is there."""
        position = self.scope.incoming(at).index(token.edge)
        ordinal = next_ordinal(position, token.ordinal)
        return Firing(ordinal, sorted([*data, token], key=place_of))

    def turn(self, unit: Sequence[int]) -> None:
        """Run a flat cycle.

        A place whose limit is an exit fires when nothing else can, in the order of ordinals.
        """
        scope, counts = self.scope, dict.fromkeys(unit, 0)
        graph = scope.graph
        limits = {n: graph.limit(graph.nodes[scope.groups[n][0]].name) for n in unit}
        data: dict[int, list[Token]] = {}
        for n in unit:
            into = [e for e in scope.incoming(n) if not graph.edges[e].trigger]
            data[n] = [token for e in into for token in self.slots[e]]
        free = [n for n in unit if not limits[n].is_exit]
        while wave := self.wave(free, data) or self.wave(unit, data):
            for n, firing in wave:
                counts[n] += 1
                if counts[n] <= limits[n].rounds:
                    self.fire(n, firing)
                elif not limits[n].is_exit:
                    raise Limited(scope.name(n))
                else:
                    for token in firing.tokens:
                        self.end_path(token)

    def wave(
        self, places: Sequence[int], data: Mapping[int, Sequence[Token]]
    ) -> list[tuple[int, Firing]]:
        """Return the firings for all tokens that wait at places, and take the tokens."""
        wave: list[tuple[int, Firing]] = []
        for n in places:
            into = self.scope.incoming(n)
            firing = [e for e in into if self.scope.graph.edges[e].trigger]
            tokens = [token for e in firing for token in self.slots[e]]
            wave += [(n, self.for_token(n, token, data[n])) for token in tokens]
            for e in into if tokens else ():
                self.slots[e] = []
        return sorted(wave, key=lambda item: item[1].ordinal)

    def state_at(self, at: int, firing: Firing) -> State:
        """Return the state that a firing begins with."""
        scope = self.scope
        states = [token.state for token in firing.tokens if token.state is not None]
        if not states:
            return self.root
        if scope.is_cycle(at) or not scope.graph.nodes[scope.groups[at][0]].merges:
            return joined(states)
        return merged(states, graphs.merge([state.values() for state in states]), self.of.id())

    def fire(self, at: int, firing: Firing) -> None:
        """Fire a place, and put what it sends on its edges."""
        scope, run = self.scope, self.of
        self.has_fired = True
        state = self.state_at(at, firing)
        if scope.is_cycle(at):
            outcome = run.cycle(scope, at, firing, state, self.path)
        else:
            output, delta, to = run.node(scope, at, firing, state, self.path)
            after = state.apply(delta, run.id()) if delta else state
            outcome = Outcome(after, [] if output is None else self.sends(at, output, after, to))
        goes_on, times = False, dict[int, int]()
        for e, payload, values in outcome.sends:
            again = times[e] = times.get(e, -1) + 1
            ordinal = (*firing.ordinal, -2, again) if again else firing.ordinal
            after = outcome.state if values is None else outcome.state.replaced(values, run.id())
            if e in scope.late:
                self.late.append(Token(e, payload, None, ordinal))
                continue
            goes_on = goes_on or scope.graph.edges[e].trigger
            if e in scope.links:
                self.slots[e].append(Token(e, payload, after, ordinal))
            else:
                self.leave(at, Left(e, payload, values, ordinal), after)
        if not goes_on:
            self.ended.append((at, firing.ordinal, -1, outcome.state))

    def leave(self, at: int, left: Left, state: State) -> None:
        """Let a token leave the scope, or come back to its beginning."""
        scope = self.scope
        self.ended.append((at, left.ordinal, left.edge, state))
        if scope.entry is not None and scope.ends[left.edge][1] == scope.entry:
            self.returns.append(left)
            return
        self.exits.append(left)
        is_over = scope.entry is not None and scope.graph.edges[left.edge].trigger
        if is_over and self.left_on is None:
            self.left_on = scope.level[at]

    def sends(self, at: int, output: Any, state: State, to: Sequence[str] | None) -> list[Send]:
        """Return what the edges of a node carry of an output."""
        graph = self.scope.graph
        node = graph.nodes[self.scope.groups[at][0]]
        chosen = graphs.route(node.routes, state.seen()) if node.routes else ""
        sent: list[Send] = []
        for e, edge in enumerate(graph.edges):
            if edge.source != node.name or (to is not None and edge.target not in to):
                continue
            if edge.routed and edge.target != chosen:
                continue
            if not edge.asks or edge.carries(output):
                values = graphs.FILTERS[edge.filter](state.values()) if edge.filter else None
                sent.append((e, output, values))
        return sent

    def end_path(self, token: Token) -> None:
        """Note that the path of a token's state ends with it."""
        if token.state is not None:
            owner = self.scope.of.get(self.scope.ends[token.edge][0], -1)
            self.ended.append((owner, token.ordinal, token.edge, token.state))

    def end(self) -> Ended:
        """Join the paths that ended, in plan order; what data edges carried in vain, waits."""
        waiting: list[Token] = []
        for e, tokens in self.slots.items():
            for token in tokens:
                self.end_path(token)
            waiting += [] if self.scope.graph.edges[e].trigger else tokens
        self.ended.sort(key=lambda path: path[:3])
        state = joined([state for *_, state in self.ended]) if self.ended else self.root
        data = [*sorted(waiting, key=place_of), *sorted(self.late, key=place_of)]
        for several in (self.exits, self.returns):
            several.sort(key=lambda left: (left.edge, left.ordinal))
        return Ended(state, self.exits, self.returns, data, self.has_fired)


def expected(graph: Graph) -> Observed:
    """Return what a workflow has to come to."""
    run = Run()
    try:
        ended = run.graph(graph, {}, State(graph.typed, first_values(graph)), ())
    except Failed as error:
        return Observed(status="failed", error=str(error))
    except Limited as error:
        return Observed(status="limited", error=str(error))
    state = ended.state.seen()
    exits: dict[str, tuple[Any, ...]] = {}
    for left in ended.exits:
        source = graph.edges[left.edge].source
        exits[source] = (*exits.get(source, ()), left.payload)
    return Observed(
        status="done",
        output=state if graph.payload == "state" else output_of(graph, ended) or {},
        state=state,
        exits=exits,
        cycles=run.cycles,
        activations=run.activations,
    )
