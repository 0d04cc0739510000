"""Positions in rows that are ordered by the middle of their neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from axil_journals.pictures.shapes import (
    ACROSS,
    DOWN,
    MARGIN,
    NARROW,
    Inner,
    Link,
    Shape,
    all_shapes,
)

_ROUND_TEXTS: Final = 24
"""Between a row of labels, or a title, and its neighbours."""
_HEAD: Final = 5
"""Between a box and its title."""
_STEEP: Final = 12
"""An edge that leads further to the side than so many times the distance of its rows has them moved
apart."""
_FARTHEST: Final = 110
_SWEEPS: Final = 6
_ALIKE: Final = 1e-5
"""Times a distance: what orders the edges of one box without moving them past those of others."""


def arrange(box: Shape, beyond: Mapping[Shape, int]) -> None:
    """Order the rows of a box, give what is in them positions from its left side, and find its
    size.
    """
    rows = [box.rows[level] for level in box.levels]
    for row in rows:
        beside = {passage for shape in row for passage in shape.beside}
        row[:] = [shape for shape in row if shape not in beside]
        known = iter(sorted((shape for shape in row if shape in beyond), key=beyond.__getitem__))
        row[:] = [next(known) if shape in beyond else shape for shape in row]
    title = rows[0][0] if box.title else None
    for row in rows:
        for link in (link for shape in row for link in (*shape.above, *shape.below)):
            link.shift = _offset(link.shape, link.other)
    for row in rows:
        for shape in row:
            for link in (*shape.above, *shape.below):
                link.shift -= _offset(shape, link.own)
    if any(len(row) > 1 for row in rows):
        _order(rows)
    if title is not None:
        rows[0].sort(key=lambda shape: shape is not title)
    for row in rows:
        row[:] = [
            each
            for shape in row
            for each in (shape, *sorted(shape.beside, key=lambda passage: passage.width))
        ]
    middles = _spread(rows, [level in box.parts for level in box.levels])
    if title is not None:
        middles[title] = min(m - s.width / 2 for s, m in middles.items()) + title.width / 2
    left = min(m - s.width / 2 for s, m in middles.items())
    right = max(m + s.width / 2 for s, m in middles.items())
    box.width = round(right - left) + 2 * MARGIN
    for shape, middle in middles.items():
        shape.x = round(middle - shape.width / 2 - left) + MARGIN
    box.gaps = [_gap(upper, lower) for upper, lower in pairwise(rows)]
    heights = sum(max(shape.height for shape in row) for row in rows)
    box.height = heights + sum(box.gaps) + (_HEAD if box.title else MARGIN) + MARGIN


def _offset(shape: Shape, inner: Inner | None) -> float:
    """Return how far right of the middle of a box an edge crosses its border; 0: it is no box."""
    if inner is None:
        return 0.0
    middle = inner.shape.x + inner.shape.width / 2
    return middle + _offset(inner.shape, inner.inner) - shape.width / 2


def _gap(upper: Sequence[Shape], lower: Sequence[Shape]) -> int:
    """Return the distance of two rows: larger where an edge between them leads far to the side."""
    has_texts = any(all(shape.style in ("", "l") for shape in row) for row in (upper, lower))
    farthest = max(
        (
            abs(shape.middle - link.shape.middle - link.shift)
            for shape in upper
            for link in shape.below
        ),
        default=0,
    )
    least = _ROUND_TEXTS if has_texts else DOWN
    return max(least, min(_FARTHEST, round(farthest / _STEEP)))


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


def _spread(rows: list[list[Shape]], are_parts: Sequence[bool]) -> dict[Shape, float]:
    """Return the middle of each shape: as near to its neighbours as its row lets it be; the nodes
    of the parts of a row stay below each other.
    """
    at: dict[Shape, float] = {}
    for row in rows:
        gaps = _gaps(row)
        begin = -sum(gaps) / 2
        for shape, gap in zip(row, gaps, strict=True):
            begin += gap
            at[shape] = begin
    for sweep in range(_SWEEPS):
        goes_down = sweep % 2 == 0
        both = list(zip(rows, are_parts, strict=True))
        for row, is_part in both if goes_down else both[::-1]:
            wanted = [
                at[shape]
                if is_part and (shape.style or shape.is_shared)
                else _wanted(shape.above if goes_down else shape.below, at, shape)
                for shape in row
            ]
            gaps = _gaps(row)
            if len(row) > 1 and row[0].style == "l" and not (row[0].above or row[0].below):
                wanted[0] = wanted[1] - gaps[1]  # a title makes room
            for shape, middle in zip(row, _apart(wanted, gaps), strict=True):
                at[shape] = middle
    return at


def _mean(links: Sequence[Link], at: Mapping[Shape, float], default: float) -> float:
    if not links:
        return default
    return sum(at[link.shape] + link.shift * _ALIKE for link in links) / len(links)


def _wanted(links: Sequence[Link], at: Mapping[Shape, float], shape: Shape) -> float:
    """Return where the neighbours of a shape want its middle; a shared passage and what it leads to
    do not draw each other.
    """
    near = [link for link in links if link.shape.is_shared == shape.is_shared]
    return sum(at[link.shape] + link.shift for link in near) / len(near) if near else at[shape]


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


def place(root: Shape) -> None:
    """Put what is inside each box at its position: rows one below the other."""
    root.bottom = root.y + root.height
    for box in all_shapes(root):
        below = box.y + (_HEAD if box.title else MARGIN)
        for level, gap in zip(box.levels, [*box.gaps, 0], strict=False):
            row = box.rows[level]
            height = max(shape.height for shape in row)
            for shape in row:
                shape.x += box.x
                shape.y = below + (height - shape.height) // 2
                shape.top, shape.bottom = below, below + height
            below += height + gap


__all__ = ["arrange", "place"]
