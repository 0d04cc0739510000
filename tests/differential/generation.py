"""Random workflows: the same for a seed in every process and version of Python."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from .graphs import ALWAYS, ENTRY, EXIT, OPEN, TRIES, TYPED, Edge, Graph, Limit, Node

_SOMETIMES = (
    (True, False),
    (True, False),
    (False, True),
    (True, True, False),
    (False, False, True),
    (True, False, True),
    (False,),
)
_BACK = (
    (True, False),
    (True, True, False),
    (True, True, True, False),
    (True, False, True, False),
    (False,),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The features that random workflows may have."""

    cycles: bool = True
    depth: int = 2
    """The depth of nested graphs."""
    most: int = 9
    """Nodes of one graph."""
    people: bool = True
    failures: bool = True


def random_graph(seed: int, wishes: Wishes | None = None) -> Graph:
    """Return the workflow of a seed: the same in every process and version of Python."""
    chance = random.Random(seed)
    return _Maker(chance, wishes or Wishes(), typed=chance.random() < 0.5).graph()


class _Maker:
    """One random graph: a skeleton of chains, fans and loops, then stray edges and properties."""

    def __init__(
        self, chance: random.Random, wishes: Wishes, *, typed: bool, prefix: str = "n"
    ) -> None:
        self.chance, self.wishes, self.typed = chance, wishes, typed
        self.prefix = prefix
        self.names: list[str] = []
        self.edges: dict[tuple[str, str], Edge] = {}
        self.leaving: dict[str, tuple[bool, ...]] = {}
        """By the last node of a loop: when it leaves, which is when it does not go back."""
        self.is_wild = chance.random() < 0.3
        self.joins = chance.choice(
            (("gate",) * 7 + ("each", "each", "all"),) * 5 + (("each",) * 6 + ("gate", "all"),)
        )

    def graph(self) -> Graph:
        chance = self.chance
        head, tail = self.part(chance.randint(min(3, self.wishes.most), self.wishes.most))
        self.connect(ENTRY, head)
        self.connect(tail, EXIT)
        for _ in range(
            chance.choice((0, 0, 1, 2, 3, 5)) if not self.is_wild else chance.randint(2, 8)
        ):
            self.stray()
        if chance.random() < 0.12:
            self.connect(ENTRY, chance.choice(self.names))
        for _ in range(chance.choice((0, 0, 1, 2))):
            self.connect(chance.choice(self.names), EXIT)
        nodes = tuple(self.node(name) for name in self.names)
        flat = [node.name for node in nodes if node.join == "each"]
        limits = (
            [("", Limit(rounds=chance.choice((2, 3, 4, 4, 5)), is_exit=chance.random() < 0.85))]
            if self.wishes.cycles
            else []
        )
        for name in flat:
            if chance.random() < 0.4:
                limits.append(
                    (
                        name,
                        Limit(rounds=chance.choice((1, 2, 3, 30)), is_exit=chance.random() < 0.7),
                    )
                )
            else:
                limits.append((name, Limit(rounds=40, is_exit=False)))
        payload = "state" if self.typed and chance.random() < 0.4 else "fields"
        return Graph(
            nodes=nodes,
            edges=tuple(self.edges.values()),
            typed=self.typed,
            payload=payload,
            limits=tuple(limits),
        )

    def new(self) -> str:
        self.names.append(f"{self.prefix}{len(self.names)}")
        return self.names[-1]

    def part(self, size: int) -> tuple[str, str]:
        """Add a part of about ``size`` nodes; return where it is entered and where it is left."""
        if size <= 1:
            name = self.new()
            return name, name
        kind = self.chance.choice(
            ("chain", "chain", "fan", "loop", "loop", "loop")
            if self.wishes.cycles
            else ("chain", "fan")
        )
        if kind == "chain":
            cut = self.chance.randint(1, size - 1)
            first, second = self.part(cut), self.part(size - cut)
            self.connect(first[1], second[0], self.some())
            return first[0], second[1]
        if kind == "fan" and size >= 4:
            head = self.new()
            many = self.chance.randint(2, 3)
            parts = [self.part(max(1, (size - 2) // many)) for _ in range(many)]
            tail = self.new()
            for part in parts:
                self.connect(head, part[0], self.some())
                self.connect(
                    part[1], tail, self.some(), group="g" if self.chance.random() < 0.15 else ""
                )
            return head, tail
        head, tail = self.part(size) if kind == "fan" else self.part(size - 1)
        if kind == "loop":
            table = self.chance.choice(_BACK)
            self.connect(tail, head, table)
            if self.chance.random() < 0.85:
                self.leaving[tail] = tuple(not back for back in table)
        return head, tail

    def some(self) -> tuple[bool, ...]:
        return self.chance.choice(_SOMETIMES) if self.chance.random() < 0.12 else ALWAYS

    def connect(
        self,
        source: str,
        target: str,
        table: tuple[bool, ...] = ALWAYS,
        *,
        trigger: bool = True,
        group: str = "",
    ) -> None:
        chance = self.chance
        inner = ENTRY not in (source, target)
        edge = Edge(
            source=source,
            target=target,
            trigger=trigger,
            group=group,
            table=self.leaving.get(source, ALWAYS)
            if table == ALWAYS and source != target
            else table,
            modulus=chance.choice((2, 3, 5)) if inner and chance.random() < 0.05 else 0,
            filter=""
            if not inner or not trigger or chance.random() > 0.12
            else "reset"
            if chance.random() < 0.15
            else "count",
        )
        self.edges.setdefault((source, target), edge)

    def stray(self) -> None:
        """Add an edge between any two nodes: forward, or, where cycles are allowed, anywhere."""
        chance = self.chance
        a, b = chance.randrange(len(self.names)), chance.randrange(len(self.names))
        is_data = chance.random() < 0.35
        if not self.wishes.cycles:
            if a == b:
                return
            a, b = min(a, b), max(a, b)
        table = chance.choice(_BACK) if b <= a and not is_data else self.some()
        group = "g" if chance.random() < 0.2 else ""
        self.connect(self.names[a], self.names[b], table, trigger=not is_data, group=group)

    def node(self, name: str) -> Node:
        chance, wishes = self.chance, self.wishes
        out = [edge for edge in self.edges.values() if edge.source == name]
        targets = tuple(dict.fromkeys(edge.target for edge in out))
        routes: tuple[str, ...] = ()
        if len(out) > 1 and chance.random() < 0.1:
            routes = tuple(dict.fromkeys(edge.target for edge in out[:2]))
            for edge in out[:2]:
                self.edges[edge.source, edge.target] = replace(edge, routed=True)
        inside: Graph | None = None
        count = 0
        if wishes.depth and chance.random() < 0.12:
            inner = replace(wishes, depth=wishes.depth - 1, most=min(4, wishes.most))
            count = chance.randint(1, 3) if chance.random() < 0.35 else 0
            prefix = (
                f"{self.prefix}i" if count else self.prefix
            )  # items begin with the state around them: names are shared with it
            inside = _Maker(chance, inner, typed=self.typed, prefix=prefix).graph()
            if not count and chance.random() < 0.4:
                names = TYPED if self.typed else OPEN
                inside = replace(inside, pulls=tuple(n for n in names if chance.random() < 0.6))
                inside = replace(
                    inside,
                    pushes=tuple(n for n in names if chance.random() < 0.6)
                    if chance.random() < 0.5
                    else None,
                )
        is_plain, join = inside is None, chance.choice(self.joins)
        names = TYPED if self.typed else OPEN
        return Node(
            name=name,
            join=join,
            writes=tuple(field for field in names if chance.random() < 0.35)
            if is_plain or count
            else (),
            picks=targets if len(targets) > 1 and is_plain and chance.random() < 0.15 else (),
            routes=routes,
            merges=is_plain and join != "each" and chance.random() < 0.06,
            asks=is_plain and wishes.people and chance.random() < 0.06,
            fails=chance.choice((1, 1, 2, 2, TRIES))
            if is_plain and wishes.failures and chance.random() < 0.04
            else 0,
            items=count,
            inside=inside,
            keeps=inside is not None and not count and chance.random() < 0.3,
        )
