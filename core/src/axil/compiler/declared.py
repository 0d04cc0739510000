"""Fields that conditions read, held against those that are declared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from axil.errors import Problem, did_you_mean, format_names
from axil.spec.graph import EdgeSpec, GraphSpec

_OF_MESSAGES = frozenset({"message", "role", "content", "name", "source", "extra"})


def misread(
    spec: GraphSpec,
    components: Callable[[str], Any],
    conditions: Iterable[tuple[EdgeSpec, Any]],
    fields: Iterable[str] | None,
) -> Iterator[Problem]:
    """Yield a warning (AX158) for each field that a condition reads and nothing declares.

    What reads has ``reads``, pairs of ``message`` or ``state`` and a name; a node that declares its
    output has ``gives``, the names. ``fields``: those of the state; None: any.
    """
    of_state = None if fields is None else frozenset(fields)
    incoming: defaultdict[str, list[EdgeSpec]] = defaultdict(list)
    for edge, condition in conditions:
        incoming[edge.target].append(edge)
        if reads := getattr(condition, "reads", ()):
            where = str(edge.place or f"edge {edge.source}->{edge.target}")
            gives = getattr(components(edge.source), "gives", None)
            known = None if gives is None else frozenset(gives)
            yield from _unknown(reads, where, known, of_state)
    for node in spec.nodes:
        if reads := getattr(components(node.id), "reads", ()):
            known = brought(incoming[node.id], components)
            yield from _unknown(reads, node.where, known, of_state)


def _unknown(
    reads: Iterable[tuple[str, str]],
    where: str,
    of_message: frozenset[str] | None,
    of_state: frozenset[str] | None,
) -> Iterator[Problem]:
    fields = {"message": of_message, "state": of_state}
    for root, name in sorted(reads):
        known = fields.get(root)
        if known is None or name in known or (root == "message" and name in _OF_MESSAGES):
            continue
        message = f"{root}.{name} is read, but the known fields are {format_names(sorted(known))}."
        yield Problem("AX158", where, message, did_you_mean(name, known), severity="warning")


def brought(edges: Iterable[EdgeSpec], components: Callable[[str], Any]) -> frozenset[str] | None:
    """Return the fields that edges bring; None: unknown."""
    found = set[str]()
    for edge in edges:
        gives = getattr(components(edge.source), "gives", None)
        carried = gives if edge.keys is None else edge.keys
        if carried is None or edge.process is not None:
            return None
        found.update(carried)
    return frozenset(found)
