"""EvoFabric's rules in plain words, and, rule by rule, what axil does instead.

``theirs`` runs a random program by supersteps, as EvoFabric does; ``ours`` runs an acyclic one node
by node, as axil does. Both take rules of the other side, one at a time: the rules that it takes to
turn one outcome into the other are the reason why they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from . import evofabric_program as program
from .evofabric_program import Graph, Outcome, digest

AGAIN = "a node that waits for all fires again for each later token, with the latest of the others"
WHOLE = "states meet as whole values: one that a branch left alone undoes what another one wrote"
STARVED = "a node waits for a source that was not chosen"
ENDS = "only what reached the end belongs to the result"
ORDER = "states meet in the order in which they came, the longer path last; at joins by sources"
RULES = (AGAIN, WHOLE, STARVED, ENDS, ORDER)
"""Rules of EvoFabric that axil has not, where a graph has no cycles."""
ITSELF = "a node that waits for all and leads to itself is refused"
ENTRIES = "axil enters a cycle with a node that waits for all at one node"
"""In cycles; like the others, each is a row of divergences.md."""


@dataclass(frozen=True, slots=True)
class State:
    """Texts that are said, and the field that overwrites: value, write, known writes."""

    log: frozenset[str] = frozenset()
    last: int = 0
    write: int = 0
    known: frozenset[int] = frozenset({0})
    path: tuple[int, ...] = ()
    """The positions of the tokens on its way among what their firings sent."""

    def came(self) -> tuple[int, tuple[int, ...]]:
        """Return when it came: by supersteps, then by what was ready before."""
        return len(self.path), self.path


@dataclass(slots=True)
class Run:
    """One run: the rules that hold, the firings, the numbers of writes."""

    graph: Graph
    rules: frozenset[str]
    seen: list[Any] = field(default_factory=list[Any])
    writes: int = 0
    again: set[str] = field(default_factory=set[str])
    """Nodes that wait for all, and were sent several tokens by one source."""
    starved: set[str] = field(default_factory=set[str])
    """Nodes that wait for all, and to which some of their sources never sent anything."""

    def fired(self, name: str, state: State) -> State:
        """Return the state behind a firing."""
        if len(self.seen) >= program.MOST:
            raise OverflowError
        log = sorted(state.log)
        self.seen.append([name, log, state.last])
        said = f"{name}.{digest((name, log, state.last))}"
        state = replace(state, log=state.log | {said})
        return self.written(state, digest(said)) if self.graph["nodes"][name]["last"] else state

    def written(self, state: State, value: int) -> State:
        """Return a state with a write of ``last``."""
        self.writes += 1
        return replace(state, last=value, write=self.writes, known=state.known | {self.writes})

    def filtered(self, state: State, keep: str) -> State:
        """Return what a filter gives."""
        if keep == "half":
            return replace(state, log=frozenset(s for s in state.log if digest(s) % 2))
        if keep == "mark" and state.last != 7:
            return self.written(state, 7)
        return state

    def joined(self, states: Sequence[State]) -> State:
        """Return states that meet as one."""
        first, *others = states
        for other in others:
            log, known = first.log | other.log, first.known | other.known
            is_older = other.write in first.known
            shown = first if is_older and WHOLE not in self.rules else other
            first = State(log, shown.last, shown.write, known)
        return replace(first, path=max(states, key=State.came).path)

    def sent(self, name: str, state: State) -> list[tuple[str, str, State]]:
        """Return the tokens that a firing sends: target, group, state."""
        found = [
            (target, group, self.filtered(state, keep))
            for source, target, group, keep in self.graph["edges"]
            if source == name
        ]
        for source, targets, rule, group in self.graph["routers"]:
            if source == name:
                chosen = program.chosen(source, targets, rule, sorted(state.log))
                found += [(target, group, state) for target in chosen]
        if not found and not leads(self.graph, name):
            found = [("end", "all", state)]
        return [
            (target, group, replace(each, path=(*state.path, i)))
            for i, (target, group, each) in enumerate(found)
        ]

    def outcome(self, ended: Sequence[State]) -> Outcome:
        """Return the outcome of the run."""
        if not ended:
            return {"status": "nothing", "seen": sorted(self.seen), "state": None}
        state = self.joined(ended)
        return {
            "status": "done",
            "seen": sorted(self.seen),
            "state": [sorted(state.log), state.last],
        }


def leads(graph: Graph, name: str) -> bool:
    """Return whether a node has an edge or a router."""
    return any(name == each[0] for each in (*graph["edges"], *graph["routers"]))


def sources(graph: Graph) -> dict[str, dict[str, list[str]]]:
    """Return the sources of each node, by group."""
    found: dict[str, dict[str, list[str]]] = {}
    first = next(iter(graph["nodes"]))
    edges = [("start", first, "all"), *((s, t, g) for s, t, g, _ in graph["edges"])]
    for source, target, group in [
        *edges,
        *((s, t, g) for s, targets, _, g in graph["routers"] for t in targets),
    ]:
        of = found.setdefault(target, {}).setdefault(group, [])
        if source not in of:
            of.append(source)
    return found


def theirs(graph: Graph) -> tuple[Outcome, Run]:
    """Run by supersteps: what is ready fires, then what that made ready."""
    run = Run(graph, frozenset(RULES))
    first = next(iter(graph["nodes"]))
    order = by_edges(graph)
    slots: dict[str, dict[str, dict[str, State | None]]] = {
        target: {group: dict.fromkeys(sorted(of, key=order.index)) for group, of in groups.items()}
        for target, groups in sources(graph).items()
        if target != "end" and graph["nodes"][target]["mode"] == "all"
    }
    for target, groups in slots.items():
        if any(target in of and len(of) > 1 for of in groups.values()):
            return {"status": "RuntimeError", "seen": [], "state": None}, run
    ended: list[State] = []
    counts: dict[tuple[str, str, str], int] = {}
    ready: list[tuple[str, str, State, str]] = [(first, "all", State(), "start")]
    if first in slots:
        slots[first]["all"]["start"] = State()
    try:
        while ready:
            sent: list[tuple[str, str, State, str]] = []
            for name, group, state, _ in ready:
                if name in slots:
                    state = run.joined([s for s in slots[name][group].values() if s is not None])
                if name == "end":
                    ended.append(state)
                    continue
                after = run.fired(name, state)
                sent += [(*token, name) for token in run.sent(name, after)]
            ready = []
            for name, group, state, source in sent:
                if name in slots:
                    key = (name, group, source)
                    counts[key] = counts.get(key, 0) + 1
                    if counts[key] > 1:
                        run.again.add(name)
                    slots[name][group][source] = state
                    if None in slots[name][group].values():
                        continue
                ready.append((name, group, state, source))
    except OverflowError:
        return {"status": "limited", "seen": [], "state": None}, run
    run.starved |= {
        name
        for name, groups in slots.items()
        for of in groups.values()
        if None in of.values() and any(state is not None for state in of.values())
    }
    return run.outcome(ended), run


def by_edges(graph: Graph) -> list[str]:
    """Return the sources in the order in which their first edges were added, the start last."""
    edges = [edge[0] for edge in (*graph["edges"], *graph["routers"])]
    return [*dict.fromkeys(edges), "start"]


def ours(graph: Graph, rules: Iterable[str] = ()) -> Outcome:
    """Run an acyclic graph node by node: each has all that its sources sent when it fires."""
    run = Run(graph, frozenset(rules))
    names = list(graph["nodes"])
    of, order = sources(graph), by_edges(graph)
    positions = {
        target: [(s, g) for g, group in groups.items() for s in group]
        for target, groups in of.items()
    }
    for target, found in positions.items():
        added = [("start", "all")] if target == names[0] else []
        added += [(s, g) for s, t, g, _ in graph["edges"] if t == target]
        added += [(s, g) for s, targets, _, g in graph["routers"] if target in targets]
        found.sort(key=added.index)
    levels: dict[str, int] = {}
    tokens: dict[tuple[str, str, str], list[tuple[tuple[int, ...], State]]] = {}
    tokens["start", names[0], "all"] = [((), State())]
    ended: list[tuple[Any, State]] = []

    def level(name: str) -> int:
        before = [s for group in of.get(name, {}).values() for s in group if s != "start"]
        if name not in levels:
            levels[name] = 1 + max(map(level, before), default=-1)
        return levels[name]

    targets = [names[0], *(edge[1] for edge in graph["edges"])]
    targets += [target for router in graph["routers"] for target in router[1]]

    def place(name: str, ordinal: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        return level(name), targets.index(name), ordinal

    for name in sorted(set(names) & set(of), key=level):
        into = {at: tokens.get((at[0], name, at[1]), []) for at in positions[name]}
        firings: list[tuple[tuple[int, ...], State]] = []
        is_any = graph["nodes"][name]["mode"] == "any"
        if is_any or all(len(group) == 1 for group in of[name].values()):
            for position, arrived in enumerate(into.values()):
                firings += [((*ordinal, position), state) for ordinal, state in arrived]
        else:
            for group in of[name]:
                there = [at for at in positions[name] if at[1] == group]
                if ORDER in run.rules:
                    there.sort(key=lambda at: order.index(at[0]))
                asked = all if STARVED in run.rules else any
                if asked(into[at] for at in there):
                    met = [state for at in there for _, state in sorted(into[at], key=_ordinal)]
                    firings.append(((), run.joined(met)))
        for ordinal, state in firings:
            after = run.fired(name, state)
            sent = run.sent(name, after)
            for target, group, gone in sent:
                if target == "end":
                    ended.append((place(name, ordinal), gone))
                else:
                    tokens.setdefault((name, target, group), []).append((ordinal, gone))
            if not sent and ENDS not in run.rules:
                ended.append((place(name, ordinal), after))
    if ORDER in run.rules:
        return run.outcome(sorted((state for _, state in ended), key=State.came))
    return run.outcome([state for _, state in sorted(ended, key=_ordinal)])


def reasons(graph: Graph, here: Callable[[Graph], Outcome]) -> tuple[str, ...] | None:
    """Return the rules by which what axil does differs from EvoFabric; None: there is another.

    Args:
        here: gives what axil makes of a graph.
    """
    there, run = theirs(graph)
    found = here(graph)
    if found == there:
        return ()
    if there["status"] == "RuntimeError":
        return (ITSELF,)
    if "AX402" in str(found["state"]):
        return (ENTRIES,)
    if not any(router[2].startswith("back") for router in graph["routers"]):
        rules = [rule for rule in RULES if rule != AGAIN]
        if found != ours(graph):
            return None
        sets = [some for count in range(len(rules) + 1) for some in combinations(rules, count)]
        for some in sets:
            if ours(graph, some) == there:
                return some
        for some in sets:
            if run.again and differing(ours(graph, some), there) <= behind(graph, run.again):
                return (AGAIN, *some)
        return None
    plain = without_last(graph)
    if here(plain) == theirs(plain)[0]:
        return (WHOLE,)
    for rule, names in ((AGAIN, run.again), (STARVED, run.starved)):
        if names and differing(found, there) <= behind(graph, names):
            return (rule,)
    return None if differing(found, there) else (ENDS,)


def differing(one: Outcome, other: Outcome) -> set[str]:
    """Return the nodes that did not see the same; of a run with too many firings, none."""
    if "limited" in (one["status"], other["status"]):
        return set()
    return {
        mine[0]
        for seen, there in ((one["seen"], other["seen"]), (other["seen"], one["seen"]))
        for mine in seen
        if seen.count(mine) > there.count(mine)
    }


def without_last(graph: Graph) -> Graph:
    """Return a graph in which nothing is written to the field that overwrites."""
    nodes = {name: {**node, "last": False} for name, node in graph["nodes"].items()}
    edges = [[*edge[:3], "" if edge[3] == "mark" else edge[3]] for edge in graph["edges"]]
    return {**graph, "nodes": nodes, "edges": edges}


def behind(graph: Graph, names: Collection[str]) -> set[str]:
    """Return nodes, and what they lead to."""
    pairs = [(edge[0], edge[1]) for edge in graph["edges"]]
    pairs += [(router[0], target) for router in graph["routers"] for target in router[1]]
    found = set(names)
    while more := {target for source, target in pairs if source in found} - found:
        found |= more
    return found


def _ordinal(token: tuple[Any, State]) -> Any:
    return token[0]
