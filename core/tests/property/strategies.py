"""Random graphs.

``axil_testing.graphs`` is the richer, public version; this one lets the kernel's tests stand alone.

A node's output is a number that depends on all it saw: its inputs in order, its state, how often it
fired. One difference anywhere shows everywhere after it.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, settings, strategies as st

from axil.kernel.plan import CycleLimit
from axil.kernel.state import APPEND, Field, Reducer, Schema
from axil.kernel.tokens import Out, Task
from axil.kernel.values import MISSING, Log
from axil.spec.graph import EdgeSpec, GraphSpec, Limits, NodeSpec, RouterSpec, SubgraphSpec
from axil_testing.specs import Raw

from ..tools import SUM

ALL = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
QUICK = (Phase.explicit, Phase.generate)
THOROUGH = os.environ.get("AXIL_HYPOTHESIS") == "thorough"


def law(examples: int, times: int = 150) -> settings:
    """So many examples, and times as many where time does not matter; a failure prints how to
    repeat it.
    """
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(
        max_examples=examples * times if THOROUGH else examples,
        deadline=None,
        print_blob=True,
        report_multiple_bugs=False,
        phases=QUICK if os.environ.get("AXIL_HYPOTHESIS") == "quick" else ALL,
        suppress_health_check=slow,
    )


def _said(old: Any, new: Any) -> str:
    return ("" if old is MISSING else old) + new


TYPED = Schema(
    "typed",
    {
        "log": Field("log", APPEND, default=Log),
        "total": Field("total", SUM, default=lambda: 0),
        "said": Field("said", Reducer("said", _said, pure=True)),
        "last": Field("last"),
    },
    closed=True,
)
VALUES: dict[str, Callable[[int], Any]] = {
    "log": lambda d: [d % 97],
    "total": lambda d: d % 7,
    "said": lambda d: "abcdefgh"[d % 8],
    "last": lambda d: d % 11,
}


def number(value: Any) -> int:
    return zlib.crc32(repr(value).encode())


@dataclass
class Script:
    """The acts of one node."""

    name: str
    writes: tuple[str, ...] = ()
    picks: tuple[str, ...] = ()
    """A switch: it sends to one or two of these only."""

    def __call__(self, task: Task) -> Out:
        own = f"@node/{self.name}"
        n = (task.state.get(own) or {}).get("n", 0) + 1
        d = number((self.name, task.ordinal, n, *seen_by(task)))
        delta = {name: VALUES[name](d) for name in self.writes} | {own: {"n": n}}
        to = (
            frozenset({self.picks[d % len(self.picks)], self.picks[d // 7 % len(self.picks)]})
            if self.picks
            else None
        )
        return Out({"d": d, "n": n}, delta, to)


def seen_by(task: Task) -> tuple[list[Any], list[tuple[str, Any]]]:
    """Return all that a body can see: payloads in edge order, the state by name."""
    return [token.payload for token in task.tokens], sorted(
        (k, v) for k, v in task.state.items() if not k.startswith("@")
    )


@dataclass(repr=False)
class Case:
    """A random graph: ``spec(wrap)`` gives it with every body wrapped."""

    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    typed: bool
    cyclic: bool
    inside: dict[str, Case] = field(default_factory=dict)

    def __repr__(self) -> str:
        rows = [
            f"typed={self.typed} cyclic={self.cyclic}",
            *(str(n) for n in self.nodes),
            *(str(e) for e in self.edges),
        ]
        return "\n  ".join([*rows, *(f"{name}: {inner!r}" for name, inner in self.inside.items())])

    def spec(self, wrap: Callable[[Script], Raw] | None = None) -> GraphSpec:
        make = wrap or (lambda script: Raw(lambda task, ctx: script(task)))
        scripts = {n["id"]: Script(n["id"], n["writes"], n["picks"]) for n in self.nodes}
        each = {n["id"] for n in self.nodes if n["join"] == "each"}
        limits = {name: CycleLimit(rounds=60) for name in each} | {
            "": CycleLimit(rounds=4, at_limit="exit")
        }
        routers = {
            f"{n['id']}?0": RouterSpec(
                source=n["id"], targets=n["routes"], ask=_router(n["routes"])
            )
            for n in self.nodes
            if n["routes"]
        }
        return GraphSpec(
            id="random",
            nodes=tuple(
                NodeSpec(
                    id=n["id"],
                    body=_Inner(self.inside[n["id"]], wrap)
                    if n["id"] in self.inside
                    else make(scripts[n["id"]]),
                    join=n["join"],
                )
                for n in self.nodes
            ),
            edges=tuple(_edge(e) for e in self.edges),
            routers=routers,
            schema=TYPED if self.typed else None,
            attributes={} if self.typed else {"last": 0, "total": 0},
            cycle_limits=limits if self.cyclic else {},
            limits=Limits(firings=600),
        )


@dataclass
class _Inner:
    case: Case
    wrap: Any

    def scope(self, node: str, setting: Any) -> SubgraphSpec:
        return SubgraphSpec(spec=self.case.spec(self.wrap))


def _edge(e: dict[str, Any]) -> EdgeSpec:
    table = e["table"]

    def passes(payload: Any) -> bool:
        n = payload.get("n", 1)
        n = n if isinstance(n, int) else len(n)
        return table[min(n, len(table)) - 1] and (
            e["modulus"] == 0 or number(payload) % e["modulus"] != 0
        )

    keep = (lambda state: {**state, "last": (state.get("last") or 0) + 1}) if e["filter"] else None
    return EdgeSpec(
        source=e["source"],
        target=e["target"],
        trigger=e["trigger"],
        group=e["group"],
        condition=passes if e["source"] != "@entry" and (e["modulus"] or not all(table)) else None,
        filter=keep,
        router=e["router"],
    )


def _router(targets: tuple[str, ...]) -> Callable[[Any], Any]:
    return lambda state: [targets[(state.get("total") or 0) % len(targets)]]


Pick = Callable[[int, int], int]
JOINS = ("gate", "gate", "gate", "gate", "each", "each", "all")
TABLES: tuple[tuple[bool, ...], ...] = (
    (True,),
    (True,),
    (True, False),
    (True, True, False),
    (False, True),
    (False, False, True),
    (True, False, True),
    (False,),
)


def _table(bits: int, *, back: bool, cyclic: bool) -> tuple[bool, ...]:
    """Return when an edge of a dense graph is taken: back edges at first, some others later, so
    that cycles turn and are left.
    """
    if back:
        return TABLES[2 + (bits >> 2 & 1)]
    if cyclic and bits >> 2 & 3 == 3:
        return TABLES[4 + (bits >> 4 & 1)]
    return TABLES[bits >> 2 & 7] if bits >> 7 & 7 == 6 else (True,)


def made(pick: Pick, *, cyclic: bool, joins: tuple[str, ...], depth: int, dense: bool) -> Case:
    """Return a graph of two to eight nodes out of many small choices; the first node is always
    reached.
    """
    typed = bool(pick(0, 1))
    count = pick(5, 9) if dense else pick(2, 8)
    names = [f"n{i}" for i in range(count)]
    edges: dict[tuple[str, str], dict[str, Any]] = {}

    def add(source: str, target: str, bits: int, trigger: bool = True) -> None:
        edges.setdefault(
            (source, target),
            {
                "source": source,
                "target": target,
                "trigger": trigger,
                "group": "g" if bits & 3 == 3 else "",
                "table": _table(bits, back=source >= target, cyclic=cyclic)
                if dense
                else TABLES[bits >> 2 & 7],
                "modulus": 3 if bits >> 5 & (7 if dense else 3) == 3 else 0,
                "filter": bits >> 7 & 7 == 7 and trigger,
                "router": None,
            },
        )

    add("@entry", names[0], 0)
    for i in range(1, count) if dense else ():
        add(names[pick(max(0, i - 3), i - 1)], names[i], pick(0, 511))
    for _ in range(pick(1, count) if dense else pick(1, 12)):
        a, b = pick(0, count - 1), pick(0, count - 1)
        bits = pick(0, 4095)
        if cyclic:
            add(names[a], names[b], bits, trigger=bits >> 10 != 3)
        elif a != b:
            add(names[min(a, b)], names[max(a, b)], bits, trigger=bits >> 10 != 3)
    for _ in range(pick(0, 3)):
        add(names[pick(0, count - 1)], "@exit", pick(0, 1023))
    if pick(0, 3) == 3:
        add("@entry", names[pick(1, count - 1)], 0)
    for lonely in sorted({*names} - {end for pair in edges for end in pair}):
        add(names[0], lonely, 0)
    nodes: list[dict[str, Any]] = []
    inside: dict[str, Case] = {}
    fields = tuple(VALUES) if typed else ("last", "total")
    for name in names:
        bits = pick(0, 1023)
        out = [e for e in edges.values() if e["source"] == name]
        targets = tuple(dict.fromkeys(e["target"] for e in out))
        routes: tuple[str, ...] = ()
        if bits >> 4 & 7 == 7 and len(out) > 1:  # a router over the first two edges
            routes = tuple(dict.fromkeys(e["target"] for e in out[:2]))
            for e in out[:2]:
                e["router"] = f"{name}?0"
        picks = targets if bits >> 2 & 3 == 3 and targets else ()
        writes = tuple(f for i, f in enumerate(fields) if bits >> i & 1)
        nodes.append(
            {
                "id": name,
                "writes": writes,
                "picks": picks,
                "join": joins[(bits >> 7) % len(joins)],
                "routes": routes,
            }
        )
        if depth and pick(0, 11) == 11:
            inner = made(pick, cyclic=cyclic, joins=joins, depth=0, dense=False)
            if inner.typed == typed:
                inside[name] = inner
    return Case(nodes, list(edges.values()), typed, cyclic, inside)


def cases(
    *, cyclic: bool = False, joins: tuple[str, ...] = JOINS, depth: int = 1
) -> st.SearchStrategy[Case]:
    """Random graphs: small ones that shrink, and dense ones from a seed."""

    @st.composite
    def small(draw: st.DrawFn) -> Case:
        return made(
            lambda low, high: draw(st.integers(low, high)),
            cyclic=cyclic,
            joins=joins,
            depth=depth,
            dense=False,
        )

    def dense(seed: int) -> Case:
        return made(
            random.Random(seed).randint, cyclic=cyclic, joins=joins, depth=depth, dense=True
        )

    return small() | st.integers(0, 2**64 - 1).map(dense)


seeds = st.integers(0, 2**32 - 1).map(random.Random)
