"""Edges into loops whose token stays there for every round.

EvoFabric keeps what reached a node that waits for all, so a source before a loop counts in each
round of it. axil enters a loop at one node. Where a round's own token has all that such a source
sent, because the way to it leads through the source, the edge says nothing more and is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

Edge = tuple[str, str, str, Any]
Router = tuple[str, Any, Sequence[str], str]
Ways = Mapping[str, Collection[str]]


def without_stale(
    edges: Sequence[Edge], routers: Sequence[Router], waiting: Collection[str]
) -> list[Edge]:
    """Give the edges but for those from before a loop that a node in it need not wait for.

    Args:
        edges: source, target, group, filter.
        routers: source, router, targets, group.
        waiting: nodes that wait for all their predecessors, and merge nothing themselves.
    """
    ways: dict[str, set[str]] = {}
    filtered = {(source, target) for source, target, _, keep in edges if keep is not None}
    grouped: dict[tuple[str, str], set[str]] = {}
    for source, target, group in [
        *((s, t, g) for s, t, g, _ in edges),
        *((s, t, g) for s, _, targets, g in routers for t in targets),
    ]:
        ways.setdefault(source, set()).add(target)
        grouped.setdefault((target, group), set()).add(source)

    def is_stale(edge: Edge) -> bool:
        source, target, group, keep = edge
        if keep is not None or target not in waiting or source == target:
            return False
        after = reached(ways, target, without=source)
        before = reached(ways, source, without=target)
        return any(
            other in after and other in before and _holds(ways, filtered, source, other)
            for other in grouped[target, group]
        )

    return [edge for edge in edges if not is_stale(edge)]


def reached(ways: Ways, start: str, without: str = "") -> set[str]:
    """Give what can be reached from a node, but not by way of ``without``."""
    found: set[str] = set()
    left = [start]
    while left:
        for target in ways.get(left.pop(), ()):
            if target != without and target not in found:
                found.add(target)
                left.append(target)
    return found


def _holds(ways: Ways, filtered: Iterable[tuple[str, str]], source: str, node: str) -> bool:
    """Return whether each state of ``node`` has all that ``source`` sent."""
    if node in reached(ways, "start", without=source):
        return False
    between = reached(ways, source)
    return not any(
        s in between | {source} and (t == node or node in reached(ways, t)) for s, t in filtered
    )
