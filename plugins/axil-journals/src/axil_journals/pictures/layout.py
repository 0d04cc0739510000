"""Positions for the image of a plan: boxes with rows of shapes, and edges that pass between them.

As in a layered layout: an edge that spans rows has a passage in each row between its ends, rows are
ordered by the middle of their neighbours, and positions follow the same neighbours as far as the
order lets them. An edge that leads up has passages at the right side of both of its ends, too.
Boxes inside boxes are laid out first; an edge that leaves or enters one passes its rows as well.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

LETTER: Final = 7
"""The width of a letter."""
LINE: Final = 18
"""The height of a line of text."""
MARGIN: Final = 18
"""Between a box and what is inside it."""
ACROSS: Final = 28
"""Between the nodes of a row."""
DOWN: Final = 52
"""Between rows."""
NARROW: Final = 12
"""Between a passage and its neighbour."""
_SWEEPS: Final = 4
_PASSAGES: Final = 4000
"""The most passages of an image; edges beyond lead straight to their ends, behind the nodes."""


@dataclass(slots=True, eq=False, repr=False)
class Shape:
    """A node, an end of a graph, a passage of an edge, or a box with rows of shapes."""

    title: str = ""
    kind: str = ""
    style: str = "n"
    path: str = ""
    rows: dict[int, list[Shape]] = field(default_factory=dict[int, "list[Shape]"])
    box: Shape | None = None
    row: int = 0
    width: int = 0
    height: int = 0
    x: int = 0
    y: int = 0
    top: int = 0
    """The top of its row; every shape of the row is between it and ``bottom``."""
    bottom: int = 0
    above: list[Shape] = field(default_factory=list["Shape"])
    """The neighbours in the row above."""
    below: list[Shape] = field(default_factory=list["Shape"])
    beside: list[Shape] = field(default_factory=list["Shape"])
    """The passages right of it, of edges that lead up."""
    levels: list[int] = field(default_factory=list[int])

    @property
    def middle(self) -> int:
        """The middle of it, across."""
        return self.x + self.width // 2

    def put(self, row: int, shape: Shape) -> None:
        """Put a shape at the end of a row."""
        shape.box, shape.row = self, row
        self.rows.setdefault(row, []).append(shape)

    def measure(self) -> None:
        """Find the size of a shape without rows."""
        texts = max(len(self.title), len(self.kind))
        self.width, self.height = texts * LETTER + 28, LINE * (2 if self.kind else 1) + 12


@dataclass(slots=True, eq=False, repr=False)
class Route:
    """The way of an edge: the shapes that it passes, from its source to its target."""

    source: Shape
    target: Shape
    leads_up: bool
    passages: list[Shape]

    @property
    def shapes(self) -> list[Shape]:
        """All shapes of the way."""
        return [self.source, *self.passages, self.target]


def lay_out(root: Shape, ends: Sequence[tuple[Shape, Shape]]) -> list[Route]:
    """Return the ways of edges, each from one shape to another, and give all shapes their places.

    ``root``: the box around all; the boxes inside have no size yet.
    """
    boxes = [box for box in _all(root) if box.rows]
    for box in boxes:
        box.levels = sorted(box.rows)
    routes: list[Route] = []
    made = 0
    for source, target in ends:
        route = _route(source, target, is_direct=made >= _PASSAGES)
        made += len(route.passages)
        routes.append(route)
    for box in reversed(boxes):
        _arrange(box)
    _place(root)
    return routes


def _all(root: Shape) -> Iterator[Shape]:
    """Yield all shapes, each box before what is inside it."""
    waiting = [root]
    while waiting:
        shape = waiting.pop()
        yield shape
        waiting += [inner for row in shape.rows.values() for inner in row]


# ---------------------------------------------------------------------------------- routes


def _route(source: Shape, target: Shape, *, is_direct: bool) -> Route:
    """Return the way of one edge, with new passages in the rows between its ends."""
    leaving, coming = _to_common(source, target)
    leads_up = leaving[-1].row >= coming[-1].row
    if is_direct:
        return Route(source, target, leads_up, [])
    passages: list[Shape] = []
    if leads_up:
        leaving[0] = _beside(source)
        coming[0] = leaving[0] if source is target else _beside(target)
    for child in leaving[:-1]:
        passages += _passed(child.box, child, None, leads_up=leads_up)
    passages += _passed(leaving[-1].box, leaving[-1], coming[-1], leads_up=leads_up)
    for child in reversed(coming[:-1]):
        passages += _passed(child.box, None, child, leads_up=leads_up)
    if leads_up:
        passages = [leaving[0], *passages, *(coming[:1] if source is not target else ())]
    return Route(source, target, leads_up, passages)


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


def _passed(
    box: Shape | None, begin: Shape | None, end: Shape | None, *, leads_up: bool
) -> list[Shape]:
    """Return a new passage in each row of a box that lies between ``begin`` and ``end``; None:
    beyond the box.
    """
    if box is None:
        return []
    upper, lower = (end, begin) if leads_up else (begin, end)
    first = 0 if upper is None else bisect_right(box.levels, upper.row)
    last = len(box.levels) if lower is None else bisect_left(box.levels, lower.row)
    made: list[Shape] = []
    for level in box.levels[first:last]:
        passage = Shape(style="")
        box.put(level, passage)
        made.append(passage)
    known = [each for each in (upper, *made, lower) if each is not None]
    if len(known) > 1 and known[0].row == known[-1].row:
        return []  # in one row
    for one, other in pairwise(known):
        one.below.append(other)
        other.above.append(one)
    return made[::-1] if leads_up else made


def _beside(shape: Shape) -> Shape:
    """Return a new passage at the right side of a shape."""
    passage = Shape(style="", box=shape.box, row=shape.row)
    shape.beside.append(passage)
    return passage


# --------------------------------------------------------------------------------- positions


def _arrange(box: Shape) -> None:
    """Order the rows of a box, give what is in them positions from its left side, and find its
    size.
    """
    rows = [box.rows[level] for level in box.levels]
    if any(len(row) > 1 for row in rows):
        _order(rows)
    for row in rows:
        row[:] = [each for shape in row for each in (shape, *shape.beside)]
    middles = _spread(rows)
    left = min(m - s.width / 2 for s, m in middles.items())
    right = max(m + s.width / 2 for s, m in middles.items())
    head = LINE if box.title else 0
    inside = round(right - left)
    box.width = max(len(box.title) * LETTER + 28, inside) + 2 * MARGIN
    first = left - (box.width - inside) / 2
    for shape, middle in middles.items():
        shape.x = round(middle - shape.width / 2 - first)
    heights = [max(shape.height for shape in row) for row in rows]
    box.height = sum(heights) + DOWN * (len(heights) - 1) + 2 * MARGIN + head


def _order(rows: list[list[Shape]]) -> None:
    """Order each row by the middle of its neighbours: down, up, and again."""
    at: dict[Shape, float] = {}
    for row in rows:
        _count(row, at)
    for sweep in range(_SWEEPS):
        goes_down = sweep % 2 == 0
        for row in rows[1:] if goes_down else rows[-2::-1]:
            wanted = {
                shape: _mean(shape.above if goes_down else shape.below, at, at[shape])
                for shape in row
            }
            row.sort(key=wanted.__getitem__)
            _count(row, at)


def _count(row: list[Shape], at: dict[Shape, float]) -> None:
    """Note the places of the shapes of a row, from its middle on; what is beside them comes between
    them and the next.
    """
    for n, shape in enumerate(row):
        at[shape] = n - len(row) / 2
        for passage in shape.beside:
            at[passage] = at[shape] + 0.6


def _spread(rows: list[list[Shape]]) -> dict[Shape, float]:
    """Return the middle of each shape: as near to its neighbours as its row lets it be."""
    at: dict[Shape, float] = {}
    for row in rows:
        gaps = _gaps(row)
        begin = -sum(gaps) / 2
        for shape, gap in zip(row, gaps, strict=True):
            begin += gap
            at[shape] = begin
    for sweep in range(_SWEEPS):
        goes_down = sweep % 2 == 0
        for row in rows if goes_down else rows[::-1]:
            wanted = [
                _mean(shape.above if goes_down else shape.below, at, at[shape]) for shape in row
            ]
            for shape, middle in zip(row, _apart(wanted, _gaps(row)), strict=True):
                at[shape] = middle
    return at


def _mean(shapes: Sequence[Shape], at: Mapping[Shape, float], default: float) -> float:
    return sum(at[shape] for shape in shapes) / len(shapes) if shapes else default


def _gaps(row: Sequence[Shape]) -> list[float]:
    """Return the least distance of each shape's middle from the one before; of the first, 0."""
    gaps = [0.0]
    for one, other in pairwise(row):
        space = ACROSS if one.style and other.style else NARROW
        gaps.append((one.width + other.width) / 2 + space)
    return gaps


def _apart(wanted: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Return the positions nearest to the wanted ones that keep the order and the gaps: those of
    neighbours in each other's way move together.
    """
    groups: list[tuple[float, int]] = []  # the sum of what they want, and how many they are
    offset, offsets = 0.0, list[float]()
    for want, gap in zip(wanted, gaps, strict=True):
        offset += gap
        offsets.append(offset)
        total, count = want - offset, 1
        while groups and groups[-1][0] / groups[-1][1] > total / count:
            more, others = groups.pop()
            total, count = total + more, count + others
        groups.append((total, count))
    places = [total / count for total, count in groups for _ in range(count)]
    return [place + offset for place, offset in zip(places, offsets, strict=True)]


def _place(root: Shape) -> None:
    """Put what is inside each box at its position: rows one below the other."""
    root.bottom = root.y + root.height
    for box in _all(root):
        below = box.y + MARGIN + (LINE if box.title else 0)
        for level in box.levels:
            row = box.rows[level]
            height = max(shape.height for shape in row)
            for shape in row:
                shape.x += box.x
                shape.y = below + (height - shape.height) // 2
                shape.top, shape.bottom = below, below + height
            below += height + DOWN


__all__ = ["ACROSS", "DOWN", "LETTER", "LINE", "MARGIN", "NARROW", "Route", "Shape", "lay_out"]
