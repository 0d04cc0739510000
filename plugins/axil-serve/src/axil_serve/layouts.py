"""Layouts of graphs for the page: the places of nodes, and the lines and labels of edges."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain, combinations
from typing import Any, Final

from axil.plugin import ENTRY, EXIT
from axil_journals import picture_of

MOST_UNFOLDED: Final = 60
"""The nodes of a graph that is shown unfolded at first."""
_MOST_KEPT: Final = 64
_MOST_SUBSETS: Final = 5
"""The nodes of an exported graph whose folds are all written into the page, in any combination."""
_MOST_EXPORTED: Final = 40
Path = tuple[str, ...]


def layout_data(plan: Mapping[str, Any], opened: Collection[Path] | None) -> dict[str, Any]:
    """Return the layout of a graph.

    Args:
        plan: its nested scopes, as of ``plan_data`` or ``drawing``.
        opened: the nodes whose inside is drawn; None: all, or none of a large graph.
    """
    if opened is None:
        paths = dict(_nodes(plan))
        opened = () if len(paths) > MOST_UNFOLDED else paths
    drawn = picture_of(plan, is_open=opened.__contains__, notes=True)
    boxes = [
        {
            "path": list(shape.path),
            "x": shape.x,
            "y": shape.y,
            "width": shape.width,
            "height": shape.height,
            "title": shape.title,
            "is_open": bool(shape.rows),
            "is_end": shape.path[-1] in (ENTRY, EXIT),
        }
        for shape in drawn.shapes
    ]
    lines = [
        {
            "scope": list(edge.scope),
            "name": edge.data["name"],
            "d": edge.line.path,
            "x": edge.line.x,
            "y": edge.line.y,
            "width": edge.line.width,
            "height": edge.line.height,
            "label": edge.label,
            "label_at": edge.line.label,
        }
        for edge in drawn.edges
    ]
    return {"width": drawn.width, "height": drawn.height, "boxes": boxes, "lines": lines}


class Layouts:
    """Layouts that were made lately, by the digests of their graphs."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, frozenset[Path] | None], dict[str, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def of(
        self, digest: str, plan: Callable[[], Mapping[str, Any]], opened: Collection[Path] | None
    ) -> dict[str, Any]:
        """Return the layout of a graph; see ``layout_data``."""
        key = digest, None if opened is None else frozenset(opened)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = layout_data(plan(), opened)
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return made


def exported_layouts(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return layouts of a graph for a page without a server: first that which it begins with, with
    all folds where they are few, else folded, unfolded, and with one node unfolded each.
    """
    paths = [path for path, is_scope in _nodes(plan) if is_scope]
    found: list[frozenset[Path]] = [frozenset(), frozenset(paths)]
    if len(dict(_nodes(plan))) <= MOST_UNFOLDED:
        found.reverse()
    if len(paths) <= _MOST_SUBSETS:
        sizes = (combinations(paths, size) for size in range(len(paths) + 1))
        found += [frozenset(each) for each in chain.from_iterable(sizes)]
    else:
        found += [frozenset(_upto(path)) for path in paths]
    able = [each for each in dict.fromkeys(found) if all(each.issuperset(_upto(p)) for p in each)]
    return [
        {"open": [list(path) for path in each], "layout": layout_data(plan, each)}
        for each in able[:_MOST_EXPORTED]
    ]


def _upto(path: Path) -> list[Path]:
    return [path[:end] for end in range(1, len(path) + 1)]


def _nodes(plan: Mapping[str, Any]) -> Iterator[tuple[Path, bool]]:
    """Yield the nodes of a graph and of what is inside them, and whether each has an inside."""
    waiting: list[tuple[Path, Mapping[str, Any]]] = [((), plan)]
    while waiting:
        path, scope = waiting.pop()
        for node in scope["nodes"]:
            own, inside = (*path, str(node["name"])), node.get("inside")
            yield own, inside is not None
            if inside is not None:
                waiting.append((own, inside))


__all__ = ["Layouts", "exported_layouts", "layout_data"]
