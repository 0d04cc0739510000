"""Recorded behaviour of the systems that axil grew out of, and how to compare a run with it.

The recordings lie in a folder ``shared`` beside the checkout. Where it is not there, the tests that
read it pass over it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from axil import Activation, GraphSpec

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
absent = pytest.mark.skipif(
    not (SHARED / "cases").is_dir(), reason="the recorded cases are not beside this checkout"
)


@cache
def cases(system: str) -> dict[str, dict[str, Any]]:
    """Return the recorded cases of ``masfactory``, ``evofabric`` or ``chatdev`` by name; none where
    the folder is absent.
    """
    file = SHARED / "cases" / f"{system}.json"
    if not file.is_file():
        return {}
    reported = json.loads(file.read_text("utf-8"))
    every = reported if isinstance(reported, list) else reported["cases"]
    return {case.get("name") or case["id"]: case for case in every}


class Watch:
    """An observer that notes what fired, what came of it and what did not fire."""

    def __init__(self) -> None:
        self.started: list[tuple[Activation, str]] = []
        self.finished: list[tuple[Activation, Any]] = []
        self.skipped: list[Activation] = []

    def firing_started(self, activation: Activation, kind: str) -> None:
        self.started.append((activation, kind))

    def firing_finished(self, activation: Activation, kind: str, output: Any) -> None:
        self.finished.append((activation, output))

    def firing_skipped(self, activation: Activation, kind: str) -> None:
        self.skipped.append(activation)

    @property
    def order(self) -> list[str]:
        """Names of the nodes and graphs that fired; a loop's controller is called
        ``<loop>_controller``.
        """
        return [named(activation) for activation, kind in self.started if kind != "cycle"]

    @property
    def bodies(self) -> list[str]:
        """The same without controllers."""
        return [name for name in self.order if not name.endswith("_controller")]


def named(activation: Activation) -> str:
    if activation.node != "controller":
        return activation.node
    return f"{activation.path.split('/')[-2]}_controller"


def dependent(spec: GraphSpec, name: str = "") -> set[frozenset[str]]:
    """Pairs of nodes that an edge, or a graph around one of them, keeps from running at the same
    time.
    """
    inside: dict[str, set[str]] = {}
    pairs: set[frozenset[str]] = set()
    for node in spec.nodes:
        own = f"{name}_controller" if node.id == "controller" else node.id
        inside[node.id] = {own}
        if hasattr(node.body, "to_spec"):
            inner = node.body.to_spec()
            names = all_names(inner, node.id)
            pairs |= dependent(inner, node.id) | {frozenset((own, other)) for other in names}
            inside[node.id] |= names
    for edge in spec.edges:
        for source in inside.get(edge.source, ()):
            pairs |= {frozenset((source, target)) for target in inside.get(edge.target, ())}
    return {pair for pair in pairs if len(pair) == 2}


def all_names(spec: GraphSpec, name: str = "") -> set[str]:
    """Return the names of all nodes, those in nested graphs included."""
    found: set[str] = set()
    for node in spec.nodes:
        found.add(f"{name}_controller" if node.id == "controller" else node.id)
        if hasattr(node.body, "to_spec"):
            found |= all_names(node.body.to_spec(), node.id)
    return found


def assert_same_order(
    got: Sequence[str], recorded: Sequence[str], pairs: Iterable[frozenset[str]]
) -> None:
    """``got`` is one of the orders that the graph allows, if it allows ``recorded``.

    Two sequences are the same up to swaps of independent neighbours exactly if they agree on every
    dependent pair (Mazurkiewicz traces).
    """
    assert Counter(got) == Counter(recorded)
    for pair in pairs:
        assert [name for name in got if name in pair] == [
            name for name in recorded if name in pair
        ], f"{sorted(pair)} in {list(got)}"


def pairs_of(names: Iterable[str]) -> set[frozenset[str]]:
    """Return every pair: a total order."""
    return {frozenset(pair) for pair in combinations(set(names), 2)}
