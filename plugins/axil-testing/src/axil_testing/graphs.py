"""Random graphs for hypothesis: small enough to shrink, varied enough to find unexpected faults.

Every node gives a number that depends on all it saw: its payloads in order, its state, how often it
fired. So a difference anywhere shows in all that follows.

    @given(case=graphs(cyclic=True))
    def test_my_wrapper_changes_nothing(case):
        plain, wrapped = Workflow(case.spec()), Workflow(case.spec(around))
        assert tuple(plain.invoke({})) == tuple(wrapped.invoke({}))
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from axil import MISSING, CycleLimit, EdgeSpec, GraphSpec, Limits, NodeSpec, Out, Reducer, Schema
from axil.plugin import APPEND, SUM, Field, Log, RouterSpec, SubgraphSpec, Task
from axil_testing.specs import Raw

Call = Callable[[Task, Any], Any]
"""A body: from a task and a context to an ``Out``, or something to await."""


def _said(old: Any, new: Any) -> str:
    return ("" if old is MISSING else old) + new


TYPED = Schema(
    "random",
    {
        "log": Field("log", APPEND, default=Log),
        "total": Field("total", SUM, default=lambda: 0),
        "said": Field("said", Reducer("said", _said, pure=True)),
        "last": Field("last"),
    },
    closed=True,
)
"""The state of typed graphs: a field that grows, one that adds, one whose changes cannot be
composed, one that overwrites.
"""

_VALUES: dict[str, Callable[[int], Any]] = {
    "log": lambda d: [d % 97],
    "total": lambda d: d % 7,
    "said": lambda d: "abcdefgh"[d % 8],
    "last": lambda d: d % 11,
}


def digest(value: Any) -> int:
    """Return a number that differs where values differ."""
    return zlib.crc32(repr(value).encode())


def seen_by(task: Task) -> tuple[list[Any], list[tuple[str, Any]]]:
    """Return all that a body can see: its payloads in edge order, and its state by name, without
    what nodes keep for themselves.
    """
    return [token.payload for token in task.tokens], sorted(
        (k, v) for k, v in task.state.items() if not k.startswith("@")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomNode:
    """One node, as data."""

    name: str
    writes: tuple[str, ...] = ()
    """Fields of the state that it writes at every firing."""
    join: Any = "gate"
    picks: tuple[str, ...] = ()
    """A switch: it sends to one or two of these only."""
    routes: tuple[str, ...] = ()
    """It has a router that asks the state for one of these."""
    inside: RandomGraph | None = None
    """It is a graph."""

    def fire(self, task: Task) -> Out:
        """Return the body of a node; it counts its firings in its local dict."""
        own = f"@node/{self.name}"
        counted: Mapping[str, int] = task.state.get(own) or {}
        n = counted.get("n", 0) + 1
        d = digest((self.name, task.ordinal, n, *seen_by(task)))
        delta: dict[str, Any] = {name: _VALUES[name](d) for name in self.writes}
        delta[own] = {"n": n}
        to = (
            frozenset({self.picks[d % len(self.picks)], self.picks[d // 7 % len(self.picks)]})
            if self.picks
            else None
        )
        return Out({"d": d, "n": n}, delta, to)


Wrap = Callable[[Call, RandomNode], "Call | Raw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomEdge:
    """One edge, as data."""

    source: str
    target: str
    trigger: bool = True
    group: str = ""
    table: tuple[bool, ...] = (True,)
    """True where it is taken: at its source's first, second … firing; the last entry stands for all
    later ones.
    """
    modulus: int = 0
    """Not taken where the payload's digest is a multiple of this; 0: always."""
    filters: bool = False
    """It changes the state that goes on along it."""
    routed: bool = False

    def takes(self, payload: Any) -> bool:
        """Return its condition: decided by source, target, the source's n-th firing, and the
        payload.
        """
        n = payload.get("n", 1)
        n = n if isinstance(n, int) else len(n)
        return self.table[min(n, len(self.table)) - 1] and (
            not self.modulus or digest(payload) % self.modulus != 0
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomGraph:
    """A graph, as data; ``spec`` makes it one that can run. Its ``str`` can be read."""

    nodes: tuple[RandomNode, ...]
    edges: tuple[RandomEdge, ...]
    typed: bool
    cyclic: bool
    limits: Limits = field(default_factory=lambda: Limits(firings=1000))

    def __str__(self) -> str:
        lines = [
            f"{'typed' if self.typed else 'attributes'}, {'cyclic' if self.cyclic else 'acyclic'}"
        ]
        lines += [f"  {node}" for node in self.nodes] + [f"  {edge}" for edge in self.edges]
        return "\n".join(lines)

    def spec(self, wrap: Wrap | None = None, mode: str = "inline") -> GraphSpec:
        """Return the graph.

        Args:
            wrap: gives another body to use instead, for each node; a ``Raw`` has its own mode.
            mode: how bodies run: ``inline``, ``async`` or ``thread``.
        """
        each = {node.name for node in self.nodes if node.join == "each"}
        limits = {name: CycleLimit(rounds=60) for name in each} | {
            "": CycleLimit(rounds=4, at_limit="exit")
        }
        return GraphSpec(
            id="random",
            nodes=tuple(
                NodeSpec(id=node.name, body=self._body(node, wrap, mode), join=node.join)
                for node in self.nodes
            ),
            edges=tuple(_edge(edge) for edge in self.edges),
            routers={
                f"{node.name}?0": RouterSpec(
                    source=node.name, targets=node.routes, ask=_router(node.routes)
                )
                for node in self.nodes
                if node.routes
            },
            schema=TYPED if self.typed else None,
            attributes={} if self.typed else {"last": 0, "total": 0},
            cycle_limits=limits if self.cyclic else {},
            limits=self.limits,
        )

    @staticmethod
    def _body(node: RandomNode, wrap: Wrap | None, mode: str) -> Any:
        if node.inside is not None:
            return _Inside(node.inside.spec(wrap, mode))

        def call(task: Task, ctx: Any) -> Any:
            return node.fire(task)

        body = call if wrap is None else wrap(call, node)
        return body if isinstance(body, Raw) else Raw(body, mode, ctx=True)


@dataclass
class _Inside:
    spec: GraphSpec

    def scope(self, node: str, setting: Any) -> SubgraphSpec:
        return SubgraphSpec(spec=self.spec)


def _edge(edge: RandomEdge) -> EdgeSpec:
    asks = edge.source != "@entry" and (edge.modulus or not all(edge.table))
    return EdgeSpec(
        source=edge.source,
        target=edge.target,
        trigger=edge.trigger,
        group=edge.group,
        condition=edge.takes if asks else None,
        filter=_counted if edge.filters else None,
        router=f"{edge.source}?0" if edge.routed else None,
    )


def _counted(state: Any) -> dict[str, Any]:
    """Return a filter that every field but one passes unchanged: what grows keeps its history."""
    return {**state, "last": (state.get("last") or 0) + 1}


def _router(targets: Sequence[str]) -> Callable[[Any], Any]:
    return lambda state: [targets[(state.get("total") or 0) % len(targets)]]


Pick = Callable[[int, int], int]
_JOINS = ("gate", "gate", "gate", "gate", "each", "each", "all")
_ALWAYS = (True,)
_TABLES: tuple[tuple[bool, ...], ...] = (
    _ALWAYS,
    _ALWAYS,
    (True, False),
    (True, True, False),
    (False, True),
    (False, False, True),
    (True, False, True),
    (False,),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The features that random graphs may have."""

    cyclic: bool = False
    typed: bool | None = None
    """None: either."""
    most: int = 8
    joins: tuple[str, ...] = _JOINS
    groups: bool = True
    data: bool = True
    switches: bool = True
    filters: bool = True
    depth: int = 1


class _Maker:
    """One graph out of many small choices."""

    def __init__(self, wishes: Wishes, pick: Pick, *, dense: bool) -> None:
        self.wishes, self.pick, self.dense = wishes, pick, dense
        self.edges: dict[tuple[str, str], dict[str, Any]] = {}

    def make(self) -> RandomGraph:
        wishes, pick = self.wishes, self.pick
        typed = bool(pick(0, 1)) if wishes.typed is None else wishes.typed
        count = pick(min(5, wishes.most), wishes.most) if self.dense else pick(2, wishes.most)
        names = [f"n{i}" for i in range(count)]
        self.add("@entry", names[0], 0)
        for i in range(1, count) if self.dense else ():
            self.add(names[pick(max(0, i - 3), i - 1)], names[i], pick(0, 511))
        for _ in range(pick(1, count) if self.dense else pick(1, 12)):
            a, b, bits = pick(0, count - 1), pick(0, count - 1), pick(0, 4095)
            if wishes.cyclic:
                self.add(names[a], names[b], bits, trigger=bits >> 10 != 3)
            elif a != b:
                self.add(names[min(a, b)], names[max(a, b)], bits, trigger=bits >> 10 != 3)
        for _ in range(pick(0, 3)):
            self.add(names[pick(0, count - 1)], "@exit", pick(0, 1023))
        if pick(0, 3) == 3:
            self.add("@entry", names[pick(1, count - 1)], 0)
        for lonely in sorted({*names} - {end for pair in self.edges for end in pair}):
            self.add(names[0], lonely, 0)
        nodes = tuple(self.node(name, typed) for name in names)
        return RandomGraph(
            nodes=nodes,
            edges=tuple(RandomEdge(**edge) for edge in self.edges.values()),
            typed=typed,
            cyclic=wishes.cyclic,
        )

    def add(self, source: str, target: str, bits: int, trigger: bool = True) -> None:
        wishes = self.wishes
        edge = {
            "source": source,
            "target": target,
            "trigger": trigger or not wishes.data,
            "group": "g" if wishes.groups and bits & 3 == 3 else "",
            "table": self.table(bits, back=source >= target),
            "modulus": 3 if bits >> 5 & (7 if self.dense else 3) == 3 else 0,
            "filters": wishes.filters and trigger and bits >> 7 & 7 == 7,
            "routed": False,
        }
        self.edges.setdefault((source, target), edge)

    def table(self, bits: int, *, back: bool) -> tuple[bool, ...]:
        """Return when an edge is taken: in dense graphs back edges at first and some others later,
        so that cycles turn and are left.
        """
        if not self.dense:
            return _TABLES[bits >> 2 & 7]
        if back:
            return _TABLES[2 + (bits >> 2 & 1)]
        if self.wishes.cyclic and bits >> 2 & 3 == 3:
            return _TABLES[4 + (bits >> 4 & 1)]
        return _TABLES[bits >> 2 & 7] if bits >> 7 & 7 == 6 else _ALWAYS

    def node(self, name: str, typed: bool) -> RandomNode:
        wishes, bits = self.wishes, self.pick(0, 1023)
        out = [edge for edge in self.edges.values() if edge["source"] == name]
        targets = tuple(dict.fromkeys(edge["target"] for edge in out))
        routes: tuple[str, ...] = ()
        # a router over the first two edges
        if wishes.switches and bits >> 4 & 7 == 7 and len(out) > 1:
            routes = tuple(dict.fromkeys(edge["target"] for edge in out[:2]))
            for edge in out[:2]:
                edge["routed"] = True
        inside: RandomGraph | None = None
        if wishes.depth and self.pick(0, 11) == 11:
            inner = replace(wishes, depth=wishes.depth - 1, typed=typed)
            inside = _Maker(inner, self.pick, dense=False).make()
        return RandomNode(
            name=name,
            writes=tuple(
                f for i, f in enumerate(_VALUES if typed else ("last", "total")) if bits >> i & 1
            ),
            join=wishes.joins[(bits >> 7) % len(wishes.joins)],
            picks=targets if wishes.switches and bits >> 2 & 3 == 3 else (),
            routes=routes,
            inside=inside,
        )


def graphs(**wishes: Any) -> st.SearchStrategy[RandomGraph]:
    """Random graphs: small ones that shrink, and dense ones from a seed.

    ``wishes``: fields of ``Wishes``.

    Acyclic by default. A cyclic one ends: edges that lead back are taken a few times only, and
    cycles have a limit that is an exit. It may be entered at several nodes at once, which fails:
    ignore runs that are not ``done``.
    """
    wished = Wishes(**wishes)

    @st.composite
    def small(draw: st.DrawFn) -> RandomGraph:
        return _Maker(wished, lambda low, high: draw(st.integers(low, high)), dense=False).make()

    def dense(seed: int) -> RandomGraph:
        return random_graph(seed, **wishes)

    return small() | st.integers(0, 2**64 - 1).map(dense)


def random_graph(seed: int, **wishes: Any) -> RandomGraph:
    """Return the dense graph of a seed: for benchmarks, and to repeat what hypothesis found."""
    return _Maker(Wishes(**wishes), random.Random(seed).randint, dense=True).make()
