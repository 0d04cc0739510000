"""Checking a workflow file: its JSON read, its nodes, edges and settings compared with models, and
as many objects made and kept as axil keeps of a node with its edge; µs a node.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, make_dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel

from .measure import lines, processor

SIZES: Sequence[int] = (50, 5000)
QUICK: Sequence[int] = (10,)


class Node(BaseModel, extra="forbid"):
    """A node as a file says it."""

    id: str
    type: str
    config: dict[str, Any] | None = None


class Edge(BaseModel, extra="forbid"):
    """An edge as a file says it."""

    source: str
    target: str


class File(BaseModel, extra="forbid"):
    """A file."""

    nodes: list[Node]
    edges: list[Edge]


class Settings(BaseModel, extra="forbid"):
    """Those of one node."""

    is_short: bool = True


def kept(fields: int, *, frozen: bool = False) -> Callable[[], Any]:
    """Return a function that makes an object of so many fields with its constructor."""
    names = [f"field_{i}" for i in range(fields)]
    kind = make_dataclass("Kept", names, slots=True, kw_only=True, eq=False, frozen=frozen)
    values: dict[str, Any] = dict.fromkeys(names)
    return lambda: kind(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of the objects that are kept, and how often."""

    make: Callable[[], Any]
    times: int = 1


PARTS = (
    *(Part(make=kept(fields, frozen=True)) for fields in (14, 13, 4)),  # node, edge, component
    Part(make=kept(5), times=2),  # their places
    *(Part(make=kept(fields)) for fields in (9, 15)),  # rules, contract
    *(Part(make=kept(fields)) for fields in (9, 9, 8, 9, 18)),  # what a plan has of them
)


def text_of(size: int) -> str:
    """Return a file with a chain of so many nodes."""
    nodes = [{"id": f"n{i}", "type": "passthrough"} for i in range(size)]
    edges = [{"source": f"n{i - 1}", "target": f"n{i}"} for i in range(1, size)]
    return json.dumps({"nodes": nodes, "edges": edges})


def compared(text: str) -> list[Any]:
    """Read a file, and compare it and the settings of each node with models."""
    data = json.loads(text)
    File.model_validate(data)
    return [Settings.model_validate(node.get("config") or {}) for node in data["nodes"]]


def checked(text: str) -> list[Any]:
    """Do that, and make all that is kept."""
    return [
        (settings, [part.make() for part in PARTS for _ in range(part.times)])
        for settings in compared(text)
    ]


def table(sizes: Sequence[int]) -> str:
    """With Python's collector as it is."""
    rows: list[Sequence[str | float | None]] = []
    for size in sizes:
        text = text_of(size)
        acts: Sequence[Callable[[str], Any]] = (json.loads, compared, checked)
        costs = [processor(partial(act, text)) / size * 1e6 for act in acts]
        rows.append([f"{size:,} nodes", *costs])
    return lines(("a node, by hand", "JSON read", "compared with models", "all kept"), rows)
