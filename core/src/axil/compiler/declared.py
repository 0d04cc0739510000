"""Fields that conditions read, held against those that are declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from axil.errors import Problem, did_you_mean, format_names
from axil.spec.graph import EdgeSpec, GraphSpec

_OF_MESSAGES = {"message", "role", "content", "name", "source", "extra"}


def misread(
    spec: GraphSpec,
    components: Callable[[str], Any],
    conditions: Iterable[tuple[EdgeSpec, Any]],
    fields: Iterable[str] | None,
) -> Iterator[Problem]:
    """Yield a warning (AX158) for each field that a condition reads and nothing declares.

    What reads has ``reads``, pairs of ``message`` or ``state`` and a name; a node that declares its
    output has ``gives``, the names. ``fields``: those of the state; None: there may be any.
    """
    said = {node.id: getattr(components(node.id), "gives", None) for node in spec.nodes}

    def unknown(
        reads: Iterable[tuple[str, str]], where: Any, otherwise: str, given: set[str] | None
    ) -> Iterator[Problem]:
        known = {"message": given, "state": None if fields is None else set(fields)}
        for root, name in sorted(reads):
            there = known.get(root)
            if there is not None and name not in there | (
                _OF_MESSAGES if root == "message" else set()
            ):
                message = f"{root}.{name} is read, and there are {format_names(sorted(there))}."
                hint = did_you_mean(name, there)
                yield Problem("AX158", str(where or otherwise), message, hint, severity="warning")

    for edge, condition in conditions:
        given = said.get(edge.source)
        where = f"edge {edge.source}->{edge.target}"
        yield from unknown(
            getattr(condition, "reads", ()),
            edge.place,
            where,
            None if given is None else set(given),
        )
    for node in spec.nodes:
        come = [_carried(edge, said) for edge in spec.edges if edge.target == node.id]
        given = None if None in come else set[str]().union(*(each or () for each in come))
        reads = getattr(components(node.id), "reads", ())
        yield from unknown(reads, node.place, f'node "{node.id}"', given)


def _carried(edge: EdgeSpec, said: Mapping[str, Any]) -> Iterable[str] | None:
    """Return the fields that an edge is known to bring; None: it is not known."""
    if edge.process is not None:
        return None
    return said.get(edge.source) if edge.keys is None else edge.keys
