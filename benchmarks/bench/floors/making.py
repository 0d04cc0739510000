"""Exponents of making: as many linked objects as a plan keeps of its nodes and edges, made by hand
and kept; µs a node.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..case import acyclic
from .measure import grown, lines, processor

SIZES: Sequence[int] = (100, 1000, 10_000, 100_000)
QUICK: Sequence[int] = (10, 20)
OBJECTS = 19
"""That Python's collector looks at, of a node of a chain of functions, with its edge: counted when
a plan was made.
"""
OF_NODE, OF_EDGE = 13, 8
"""The same of a random graph of three times as many edges, where a node and its edges come to 37.
"""


class Part:
    """One of them: it knows the one before and the node before."""

    __slots__ = ("before", "name", "node")

    def __init__(self, name: int, before: Part | None, node: Part | None) -> None:
        self.name, self.before, self.node = name, before, node


def made(size: int) -> list[Part]:
    """Return a chain of so many nodes, each of so many parts."""
    chain: list[Part] = []
    node: Part | None = None
    for _ in range(size):
        part: Part | None = None
        for name in range(OBJECTS):
            part = Part(name, part, node)
            chain.append(part)
        node = part
    return chain


def scattered(size: int, edges: Sequence[tuple[int, int]]) -> list[Part]:
    """Return a random graph: the parts of an edge know the nodes at both of its ends, which lie
    anywhere.
    """
    parts: list[Part] = []
    last: list[Part] = []
    for _ in range(size):
        part: Part | None = None
        for name in range(OF_NODE):
            part = Part(name, part, None)
            parts.append(part)
        last.append(parts[-1])
    for source, target in edges:
        for name in range(OF_EDGE):
            last[source] = Part(name, last[source], last[target])
            parts.append(last[source])
    return parts


def table(sizes: Sequence[int]) -> str:
    """With Python's collector, and without it."""
    edges = {size: acyclic(size, 3) for size in sizes}
    rows = [
        *grown(
            "chain",
            sizes,
            lambda size, collecting: processor(lambda: made(size), collecting=collecting),
        ),
        *grown(
            "random graph",
            sizes,
            lambda size, collecting: processor(
                lambda: scattered(size, edges[size]), collecting=collecting
            ),
        ),
    ]
    return lines(("made by hand", "collector on", "collector off"), rows)
