"""DevAll's rules for nodes, edges and cycles in plain words, and what axil does instead.

``made`` runs a random graph in layers, as DevAll does, with those of its rules that are given:
with all of them it gives what DevAll gives, with none what axil gives. The rules that it takes to
turn one outcome into the other are the reason why they differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .devall_program import Graph, Noted, Outcome

CLOSED = "a cycle that only data edges close is a cycle"
BESIDE = "what has not yet begun when a node beside it leaves a cycle does not run"
AT_ONCE = "data reaches a node of the same layer in the same round, if its source is faster"
INNER = "inside a cycle, only trigger edges make cycles"
RULES = (CLOSED, INNER, BESIDE, AT_ONCE)
"""Rules of DevAll that axil has not; each is a row of divergences.md."""
ROUNDS = 100
Layers = list[list[frozenset[str]]]
"""Nodes, and cycles as one, by the layer in which they run; in a layer in the order of the file."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge, and what its marks say."""

    source: str
    target: str
    is_trigger: bool = True
    is_bare: bool = False
    is_kept: bool = False
    only: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A text, and whether the node that is given it keeps it."""

    text: str
    is_kept: bool = False


class EntriesError(Exception):
    """A cycle is entered at several nodes."""


@dataclass(slots=True)
class Run:
    """One run: what waits at each node, and the edges that fired since their target ran."""

    graph: Graph
    edges: list[Edge]
    waiting: dict[str, list[Message]]
    rules: Collection[str] = RULES
    held: list[tuple[str, Message]] | None = None
    """The messages that data edges brought in this layer; None: it is there at once."""
    lost: Collection[Edge] = ()
    """Edges that bring nothing, as their target does not wait for them and never runs again."""
    noted: Noted = field(default_factory=Noted)
    fired: set[Edge] = field(default_factory=set[Edge])
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def is_triggered(self, name: str) -> bool:
        """Return whether a node is to run."""
        return any(edge.target == name for edge in self.fired)

    def reset(self, names: Collection[str]) -> None:
        """Forget that edges to these nodes fired."""
        self.fired = {edge for edge in self.fired if edge.target not in names}

    def fire(self, name: str) -> None:
        """Run a node, and send what it gives along its edges."""
        inputs = self.waiting[name]
        self.noted.add(name, [message.text for message in inputs])
        self.reset([name])
        outputs = self.outputs(name, inputs)
        self.waiting[name] = [message for message in inputs if message.is_kept]
        for message in outputs:
            for edge in self.edges:
                if edge.source != name or edge.only not in message.text:
                    continue
                if not edge.is_bare:
                    kept = message.is_kept or edge.is_kept
                    self.give(edge, Message(message.text, kept))
                if edge.is_trigger:
                    self.fired.add(edge)

    def give(self, edge: Edge, message: Message) -> None:
        """Let a message wait at the target of an edge."""
        if edge in self.lost:
            return
        if self.held is None or edge.is_trigger:
            self.waiting[edge.target].append(message)
        else:
            self.held.append((edge.target, message))

    def outputs(self, name: str, inputs: list[Message]) -> list[Message]:
        """Return what a node gives."""
        kind = self.graph["nodes"][name]
        if kind == "says":
            return [Message(name)]
        if kind == "all":
            return list(inputs) or [Message("")]
        self.counts[name] = self.counts.get(name, 0) + 1
        if self.counts[name] < kind:
            return []
        self.counts[name] = 0
        return [Message(name)]

    def entry(self, cycle: frozenset[str], start: str) -> str | None:
        """Return the node at which a cycle begins."""
        found = {e.target for e in self.fired if e.target in cycle and e.source not in cycle}
        if len(found) > 1:
            raise EntriesError
        return next(iter(found), start if start in cycle else None)

    def rounds(self, cycle: frozenset[str], first: str) -> set[str]:
        """Run a cycle, and return the nodes outside that it led to."""
        inside = within(cycle, self.edges)
        if INNER in self.rules:
            inner = cycles(cycle, [edge for edge in inside if edge.target != first])
        else:
            inner = closed(cycle, [edge for edge in self.edges if edge.target != first])
        inner = [each for each in inner if len(each) > 1]
        for count in range(ROUNDS):
            begin = {first} if not count else set(filter(self.is_triggered, cycle))
            into = [edge for edge in inside if edge.target not in begin]
            left = self.run_layers(layers(self.graph, cycle, into, inner), cycle, begin, count)
            if left:
                self.reset(cycle)
                return left
            if not any(e.target == first and e.source in cycle for e in self.fired):
                break
        return set()

    def run_layers(
        self, order: Layers, cycle: frozenset[str], begin: Collection[str], count: int
    ) -> set[str]:
        """Run a round of a cycle, and return the nodes outside that it led to."""
        for layer in order:
            left: set[str] = set()
            outer, self.held = self.held, None if AT_ONCE in self.rules else []
            for each in layer:
                if left and BESIDE in self.rules:
                    break
                if len(each) > 1:
                    first = self.entry(each, "")
                    if first is not None:
                        left |= self.rounds(each, first) - cycle
                    continue
                (name,) = each
                if self.is_triggered(name) or (not count and name in begin):
                    mine = {edge for edge in self.edges if edge.source == name}
                    self.fired -= mine
                    self.fire(name)
                    left |= {e.target for e in self.fired & mine if e.target not in cycle}
            for target, message in self.held or ():
                self.waiting[target].append(message)
            self.held = outer
            if left:
                return left
        return set()


def made(graph: Graph, rules: Collection[str] = RULES) -> Outcome:
    """Return what becomes of a graph by these rules; what would run at once runs in the order of
    the file.
    """
    names = list(graph["nodes"])
    edges = [edge_of(*each) for each in graph["edges"]]
    run = Run(graph, edges, {name: [] for name in names}, rules)
    start = names[0]
    run.waiting[start].append(Message("TASK"))
    found = cycles(names, edges)
    if CLOSED not in rules:
        found = closed(names, edges)
        run.lost = unordered(graph, edges, found)
    order = [edge for edge in edges if edge not in run.lost]
    try:
        for layer in layers(graph, names, order, found):
            for each in layer:
                if each in found:
                    first = run.entry(each, start)
                    if first is not None:
                        run.rounds(each, first)
                else:
                    (name,) = each
                    if name == start or run.is_triggered(name):
                        run.fire(name)
    except OverflowError:
        return run.noted.outcome("limited")
    except EntriesError:
        return run.noted.outcome("entries")
    return run.noted.outcome()


def closed(names: Iterable[str], edges: Collection[Edge]) -> list[frozenset[str]]:
    """Return the sets of nodes that lead to each other, where trigger edges make a cycle."""
    inside = set(names)
    edges = [edge for edge in edges if edge.source in inside and edge.target in inside]
    found = cycles(names, edges)
    return [each for each in found if cycles(each, within(each, edges))]


def unordered(graph: Graph, edges: Sequence[Edge], found: Collection[frozenset[str]]) -> list[Edge]:
    """Return the data edges outside cycles that would close a circle of waiting, and do not lead to
    a later layer.
    """
    names = list(graph["nodes"])
    trigger = layers(graph, names, [edge for edge in edges if edge.is_trigger], found)
    at = {name: i for i, layer in enumerate(trigger) for group in layer for name in group}
    return [
        edge
        for edge in edges
        if not edge.is_trigger
        and at[edge.source] >= at[edge.target]
        and edge.source in reached(edge.target, edges)
        and not any({edge.source, edge.target} <= group for group in found)
    ]


def within(names: Collection[str], edges: Collection[Edge]) -> list[Edge]:
    """Return the trigger edges inside a set of nodes."""
    return [e for e in edges if e.is_trigger and e.source in names and e.target in names]


def edge_of(source: str, target: str, marks: Iterable[str]) -> Edge:
    """Return an edge of a graph."""
    only = next((mark.removeprefix("only ") for mark in marks if mark.startswith("only ")), "")
    return Edge(source, target, "data" not in marks, "bare" in marks, "kept" in marks, only)


def cycles(names: Iterable[str], edges: Collection[Edge]) -> list[frozenset[str]]:
    """Return the sets of nodes that lead to each other."""
    names = list(names)
    beyond = {name: reached(name, edges) for name in names}
    return list(
        dict.fromkeys(
            frozenset(other for other in beyond[name] if name in beyond[other])
            for name in names
            if name in beyond[name]
        )
    )


def reached(name: str, edges: Collection[Edge]) -> set[str]:
    """Return the nodes to which a node leads."""
    found: set[str] = set()
    ready = [name]
    while ready:
        at = ready.pop()
        for edge in edges:
            if edge.source == at and edge.target not in found:
                found.add(edge.target)
                ready.append(edge.target)
    return found


def layers(
    graph: Graph,
    names: Iterable[str],
    edges: Collection[Edge],
    inner: Collection[frozenset[str]],
) -> Layers:
    """Return the order of nodes; one in a circle that is no cycle of ``inner`` is left out."""
    names = set(names)
    of: Mapping[str, frozenset[str]] = {
        name: next((each for each in inner if name in each), frozenset({name})) for name in names
    }
    before: dict[frozenset[str], set[frozenset[str]]] = {group: set() for group in of.values()}
    for edge in edges:
        if edge.source in names and edge.target in names:
            one, other = of[edge.source], of[edge.target]
            if one != other or one not in inner:
                before[other].add(one)
    at = list(graph["nodes"]).index
    found: Layers = []
    while ready := [group for group, needs in before.items() if not needs]:
        found.append(sorted(ready, key=lambda group: min(map(at, group))))
        before = {g: needs - set(ready) for g, needs in before.items() if g not in ready}
    return found
