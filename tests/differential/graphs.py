"""Workflows as plain data, what their nodes compute, and what can be seen of a run.

Shared by the product's runs and by the reference model; nothing here imports axil. The output of a
node is a number made of all that its body can see: its payloads in order, its state, its ordinal,
how often it fired before. So one difference anywhere shows everywhere downstream of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

ENTRY, EXIT = "@entry", "@exit"
TYPED = ("log", "total", "said", "best", "bag", "last")
"""Fields of a typed state: append, sum, no composition, maximum, changed in place, overwrite."""
OPEN = ("last", "other")
"""Attributes, which all overwrite."""
ALWAYS = (True,)
"""The table of an edge that carries whatever its source sends."""
TRIES = 3
"""The number of tries of a failing node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node. Everything but its name has a plain default."""

    name: str
    join: str = "gate"
    writes: tuple[str, ...] = ()
    """Fields of the state that every firing writes."""
    picks: tuple[str, ...] = ()
    """A switch: each firing sends to one or two of these targets only."""
    routes: tuple[str, ...] = ()
    """Targets among which a router chooses by the state."""
    merges: bool = False
    """States that meet here are merged by a function instead of joined."""
    asks: bool = False
    """Each firing asks a person."""
    fails: int = 0
    """The number of tries of each firing that fail; from ``TRIES`` on the run fails."""
    items: int = 0
    """A map: each firing runs ``inside`` once for each of up to so many items."""
    inside: Graph | None = None
    """The node is a graph, or, with ``items``, runs one."""
    keeps: bool = False
    """The graph's nodes keep what is theirs between two entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One edge."""

    source: str
    target: str
    trigger: bool = True
    group: str = ""
    table: tuple[bool, ...] = (True,)
    """True where it carries: at the first, second … firing of its source; the last: at the rest."""
    modulus: int = 0
    """It carries nothing where the payload's digest is a multiple of this; 0: no condition."""
    filter: str = ""
    """``count`` changes one field of the state that goes on, ``reset`` sets an accumulating one."""
    routed: bool = False
    """The source's router decides about it."""

    def carries(self, payload: Mapping[str, Any]) -> bool:
        """Return whether the edge carries ``payload``."""
        n = payload.get("n", 1)
        n = n if isinstance(n, int) else len(n)
        return self.table[min(n, len(self.table)) - 1] and (
            not self.modulus or digest(payload) % self.modulus != 0
        )

    @property
    def asks(self) -> bool:
        """True if it has a condition."""
        return self.source != ENTRY and (self.modulus > 0 or not all(self.table))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The limit of the cycles that are entered at one node."""

    rounds: int
    is_exit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A workflow, or a graph inside one."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    typed: bool = False
    payload: str = "fields"
    """``fields``, or ``state`` for typed graphs whose output is their state."""
    limits: tuple[tuple[str, Limit], ...] = ()
    """By entry node; ``""``: all others."""
    pulls: tuple[str, ...] | None = None
    """Fields that a graph inside another one pulls; None: all."""
    pushes: tuple[str, ...] | None = None

    def limit(self, entry: str) -> Limit:
        """Return the limit of cycles that are entered at ``entry``."""
        limits = dict(self.limits)
        return limits.get(entry) or limits.get("") or Limit(rounds=100, is_exit=False)

    def node(self, name: str) -> Node:
        """Return the node of this name."""
        return next(node for node in self.nodes if node.name == name)

    def all_nodes(self) -> Iterator[Node]:
        """Yield the nodes of this graph and of those inside it."""
        for node in self.nodes:
            yield node
            if node.inside is not None:
                yield from node.inside.all_nodes()

    def all_graphs(self) -> Iterator[Graph]:
        """Yield this graph and those inside it."""
        yield self
        for node in self.nodes:
            if node.inside is not None:
                yield from node.inside.all_graphs()

    def __str__(self) -> str:
        return python(self)


def python(value: Any, indent: str = "") -> str:
    """Return ``value`` as Python source that makes it again; defaults are left out."""
    if isinstance(value, (Node, Edge, Graph, Limit)):
        given = [(f.name, getattr(value, f.name)) for f in fields(value)]
        shown = [
            (name, item)
            for f, (name, item) in zip(fields(value), given, strict=True)
            if item != f.default
        ]
        inner = ", ".join(f"{name}={python(item, indent + '    ')}" for name, item in shown)
        return f"{type(value).__name__}({inner})"
    if isinstance(value, tuple) and any(isinstance(item, (Node, Edge, tuple)) for item in value):
        rows = "".join(f"\n{indent}    {python(item, indent + '    ')}," for item in value)
        return f"({rows}\n{indent})"
    return repr(value)


# ------------------------------------------------------------------------------------- bodies


def digest(value: Any) -> int:
    """Return a number that differs where values differ."""
    return zlib.crc32(repr(value).encode())


def answer(text: str) -> int:
    """Return what a person answers to the question ``text``."""
    return digest(("answer", text)) % 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that a body can see, as plain data."""

    ordinal: tuple[int, ...]
    payloads: list[Any]
    state: list[tuple[str, Any]]
    """Sorted by name, without what nodes keep for themselves; sequences as lists."""
    n: int
    """The number of the firing of the node, counted along its path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The outcome of a body."""

    output: dict[str, Any]
    delta: dict[str, Any]
    to: tuple[str, ...] | None


def own_field(node: str) -> str:
    """Return the state field in which a node counts its firings."""
    return f"@node/{node}"


CONTRIBUTIONS: dict[str, Callable[[int], Any]] = {
    "log": lambda d: [d % 97],
    "total": lambda d: d % 7,
    "said": lambda d: "abcdefgh"[d % 8],
    "best": lambda d: d % 101,
    "bag": lambda d: {"kmn"[d % 3]: d % 13},
    "last": lambda d: d % 11,
    "other": lambda d: [d % 5],
}
"""The writes of a firing to each field, by its digest."""


def question(node: Node, seen: Seen) -> str:
    """Return what a firing asks a person."""
    return f"{node.name}:{digest((node.name, seen.ordinal, seen.n, seen.payloads, seen.state))}"


def items(node: Node, seen: Seen) -> list[dict[str, Any]]:
    """Return the inputs of a map's items, one mapping for each."""
    d = digest((node.name, seen.ordinal, seen.n, seen.payloads, seen.state))
    return [{"d": (d + i) % 1009, "n": i + 1} for i in range(d % (node.items + 1))]


def fire(node: Node, seen: Seen, *more: Any) -> Done:
    """Return the outcome of one firing; ``more``: a person's answer, or what a map's items gave."""
    d = digest((node.name, seen.ordinal, seen.n, seen.payloads, seen.state, *more))
    delta = {name: CONTRIBUTIONS[name](d) for name in node.writes} | {
        own_field(node.name): {"n": seen.n}
    }
    to = None
    if node.picks:
        to = tuple(sorted({node.picks[d % len(node.picks)], node.picks[d // 7 % len(node.picks)]}))
    output: dict[str, Any] = {"d": d, "n": seen.n}
    if d % 5 == 0:
        output["l"] = [d % 3]
    if d % 11 == 0:
        output["m"] = {"abc"[d % 3]: d % 2}
    return Done(output=output, delta=delta, to=to)


def counted(state: Mapping[str, Any]) -> dict[str, Any]:
    """Filter a state: every field but ``last`` stays as it is."""
    return {**state, "last": (state.get("last") or 0) + 1}


def reset(state: Mapping[str, Any]) -> dict[str, Any]:
    """Filter a state: set ``total``, which accumulates in typed graphs."""
    return {**state, "total": 3}


FILTERS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "count": counted,
    "reset": reset,
}


def merge(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge states that meet: the first one's values, and a ``last`` that counts all."""
    return {**states[0], "last": sum(1 + (state.get("last") or 0) for state in states) % 1000}


def route(targets: Sequence[str], state: Mapping[str, Any]) -> str:
    """Return the target that a router chooses."""
    return targets[((state.get("total") or 0) + (state.get("last") or 0)) % len(targets)]


# ----------------------------------------------------------------------------- what can be seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """All that can be seen of a run."""

    status: str
    output: Any = None
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    exits: dict[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])
    cycles: dict[str, Any] = field(default_factory=dict[str, Any])
    """By path: entries, rounds, how they ended."""
    activations: dict[str, Seen] = field(default_factory=dict[str, Seen])
    error: str = ""
    way: str = ""
    """Details of the way it was run, beside its name."""

    def difference(self, other: Observed) -> str:
        """Return the first difference, in words; empty: there is none.

        What is left of runs that are not done is not compared.
        """
        if (self.status == "done") != (other.status == "done"):
            return f"status {self.status} ({self.error}), and {other.status} ({other.error})"
        if self.status != "done":
            return ""
        for name in sorted(self.activations.keys() | other.activations.keys()):
            mine, theirs = self.activations.get(name), other.activations.get(name)
            if mine != theirs:
                return f"activation {name}:\n    {mine}\n    {theirs}"
        for what in ("output", "state", "exits", "cycles"):
            mine, theirs = getattr(self, what), getattr(other, what)
            if mine != theirs:
                return f"{what}:\n    {mine}\n    {theirs}"
        return ""
