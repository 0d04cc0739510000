"""The rows of boxes, and the ways of edges through them: a passage in each row between two ends."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil, sqrt
from typing import Final

from axil_journals.pictures.shapes import (
    LINE,
    NARROW,
    SMALL_LETTER,
    SMALL_LINE,
    Ends,
    Inner,
    Link,
    Route,
    Shape,
    Way,
)

_WIDEST: Final = 14
"""The most nodes of a row, of a few; of many the square root of their count, and a little more."""
_BETWEEN: Final = 1 << 12
"""Between the numbers of two rows: rows of labels have those between."""
_PASSAGES: Final = 4000
"""The most passages of a picture; edges beyond lead straight to their ends, behind the nodes."""


def divide(box: Shape) -> None:
    """Number the rows of a box, each with room for rows of labels below it; divide wide ones."""
    rows, box.rows = box.rows, {}
    number = 0
    if box.title:
        lines = box.title.split("\n")
        width = max(box.width, max(map(len, lines)) * SMALL_LETTER)
        box.put(number, Shape(style="l", width=width, height=len(lines) * SMALL_LINE))
        number += _BETWEEN
    for _, row in sorted(rows.items()):
        most = max(_WIDEST, ceil(sqrt(len(row)) * 1.3))
        for begin in range(0, len(row), most):
            for shape in row[begin : begin + most]:
                box.put(number, shape)
            if len(row) > most:
                box.parts.add(number)
            number += _BETWEEN


def put_labels(edges: Sequence[Ends]) -> list[Shape | None]:
    """Return the labels of edges; those between rows are put there, below the source of an edge
    that leads down and above that of one that leads up; above the target in a part of a row.
    """
    counts = Counter[tuple[Shape, int]]()
    found: list[Shape | None] = []
    for edge in edges:
        label = None
        if edge.label_width:
            label = Shape(style="l", width=edge.label_width, height=LINE)
            leaving, coming = _to_common(edge.source, edge.target)
            box, row = leaving[-1].box, leaving[-1].row
            if box is not None and row != coming[-1].row:
                if row > coming[-1].row:
                    row = (row - 1) // _BETWEEN * _BETWEEN
                elif coming[-1].row in box.parts:
                    row = coming[-1].row - _BETWEEN // 2
                at = counts[box, row]
                counts[box, row] += 1
                box.put(row + 1 + at // _WIDEST, label)
        found.append(label)
    return found


class Passages:
    """New passages of edges in rows; those that several edges share are known."""

    def __init__(self) -> None:
        self.count = 0
        self._shared: dict[tuple[Shape, int, Shape], Shape] = {}
        self._linked: set[tuple[Shape, Shape]] = set()

    def between(
        self,
        box: Shape | None,
        ends: tuple[Shape | None, Shape | None],
        route: Route,
        inner: tuple[Inner | None, Inner | None] = (None, None),
    ) -> list[Shape]:
        """Return a passage in each row of a box between two shapes of it.

        Args:
            ends: the upper and the lower shape; None: beyond the box.
            inner: where the edge leaves or enters them, if they are boxes.
        """
        if box is None:
            return []
        upper, lower = ends
        first = 0 if upper is None else bisect_right(box.levels, upper.row)
        last = len(box.levels) if lower is None else bisect_left(box.levels, lower.row)
        found = [self._in_row(box, row, ends, route) for row in box.levels[first:last]]
        known = [
            *([(upper, inner[0])] if upper is not None else ()),
            *((passage, None) for passage in found),
            *([(lower, inner[1])] if lower is not None else ()),
        ]
        for (one, leaves), (other, enters) in pairwise(known):
            if leaves is not None or enters is not None or (one, other) not in self._linked:
                self._linked.add((one, other))
                one.below.append(Link(other, leaves, enters))
                other.above.append(Link(one, enters, leaves))
        return found

    def _in_row(
        self, box: Shape, row: int, ends: tuple[Shape | None, Shape | None], route: Route
    ) -> Shape:
        label, (upper, lower) = route.label, ends
        if label is not None and label.box is box and label.row == row:
            return label
        key: tuple[Shape, int, Shape] | None = None
        if route.way == "down" and lower is not None and lower.row in box.parts:
            key = box, row, route.source
        elif route.way == "down" and upper is not None and upper.row in box.parts:
            key = box, row, route.target
        if key is not None and key in self._shared:
            return self._shared[key]
        passage = Shape(style="", is_shared=key is not None)
        box.put(row, passage)
        self.count += 1
        if key is not None:
            self._shared[key] = passage
        return passage

    @staticmethod
    def beside(shape: Shape, label: Shape | None = None) -> Shape:
        """Return a new passage at the right side of a shape, with room for a label."""
        passage = Shape(style="", box=shape.box, row=shape.row)
        if label is not None:
            passage.width = 2 * NARROW + label.width
        shape.beside.append(passage)
        return passage


def route_of(edge: Ends, label: Shape | None, passages: Passages) -> Route:
    """Return the way of one edge, with new passages in the rows between its ends."""
    leaving, coming = _to_common(edge.source, edge.target)
    common, first, last = leaving[-1].box, leaving[-1].row, coming[-1].row
    way: Way = "over" if first == last else "up" if first > last else "down"
    if passages.count >= _PASSAGES and way != "over":
        return Route(edge.source, edge.target, "down", [], [label] if label else [], label)
    route = Route(edge.source, edge.target, way, [], [], label)
    is_down = way == "down"
    if not is_down:
        leaving[0] = passages.beside(edge.source, label if way == "over" else None)
        route.rising.append(leaving[0])
    if way == "up":
        coming[0] = passages.beside(edge.target)
    begin, leaves = _inside(leaving, passages, route, goes_down=is_down)
    end, enters = _inside(coming, passages, route, goes_down=way == "up")
    if is_down:
        between = passages.between(common, (leaving[-1], coming[-1]), route, (leaves, enters))
        route.falling = [*begin, *between, *reversed(end)]
    elif way == "up":
        between = passages.between(common, (coming[-1], leaving[-1]), route, (enters, leaves))
        route.rising += [*begin, *reversed(between), *reversed(end), coming[0]]
    elif edge.source is not edge.target:
        route.rising += begin
        route.falling = end[::-1]
    return route


def _inside(
    chain: Sequence[Shape], passages: Passages, route: Route, *, goes_down: bool
) -> tuple[list[Shape], Inner | None]:
    """Return the passages of an edge from one of its ends to the border of the outermost box around
    it, and where it crosses that border.
    """
    found: list[Shape] = []
    inner: Inner | None = None
    for child in chain[:-1]:
        if goes_down:
            made = passages.between(child.box, (child, None), route, (inner, None))
        else:
            made = passages.between(child.box, (None, child), route, (None, inner))[::-1]
        inner = Inner(made[-1], None) if made else Inner(child, inner)
        found += made
    return found, inner


def _to_common(source: Shape, target: Shape) -> tuple[list[Shape], list[Shape]]:
    """Return each end with the boxes around it, up to those that are in one box."""
    leaving, coming = ([*_around(end)] for end in (source, target))
    while min(len(leaving), len(coming)) > 1 and leaving[-1] is coming[-1]:
        leaving.pop()
        coming.pop()
    return leaving, coming


def _around(shape: Shape) -> Iterator[Shape]:
    box: Shape | None = shape
    while box is not None:
        yield box
        box = box.box


__all__ = ["Passages", "divide", "put_labels", "route_of"]
