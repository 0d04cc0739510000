"""The lines of the edges of a picture, and the places of their labels, from laid out routes.

Within a row a line leads straight down, or up, where its passage is; it bends between rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from axil_journals.pictures.shapes import NARROW, Route, Shape

_TURN: Final = 6
"""The radius of a turn beside a node."""
_ARC: Final = 16
"""The height of the ends of the tangents of an arc over the shapes of a row."""
Point = tuple[int, int]
Run = tuple[int, int, int]
"""A straight part of a line: its place across, and where it begins and ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The line of an edge."""

    path: str
    """As of an SVG path."""
    label: Point | None
    """The middle of its label."""
    x: int
    y: int
    width: int
    height: int


def drawn_lines(routes: Sequence[Route]) -> list[Line]:
    """Return the lines of routes, in their order."""
    ports = _ports(routes)
    return [_line(route, ports) for route in routes]


def _ports(routes: Sequence[Route]) -> dict[tuple[Route, bool], int]:
    """Return where each line begins (True) or ends (False) at the lower or upper side of a shape:
    a side is shared out in the order of the ways, and those of one passage have one place.
    """
    sides: dict[tuple[Shape, bool], list[tuple[int, int, Route, Shape]]] = {}
    for number, route in enumerate(routes):
        shapes = route.shapes
        ends = [(route.target, False, shapes[-2])] if route.way == "down" or route.falling else []
        if route.way == "over" and not route.falling and route.source is not route.target:
            ends = [(route.target, False, route.rising[0])]
        if route.way == "down":
            ends.append((route.source, True, shapes[1]))
        for shape, is_begin, near in ends:
            sides.setdefault((shape, is_begin), []).append((near.middle, number, route, near))
    found: dict[tuple[Route, bool], int] = {}
    for (shape, is_begin), ways in sides.items():
        places: dict[object, int] = {}
        for _, number, _, near in sorted(ways, key=lambda way: way[:2]):
            places.setdefault(number if near.style else near, len(places) + 1)
        for _, number, route, near in ways:
            place = places[number if near.style else near]
            found[route, is_begin] = shape.x + shape.width * place // (len(places) + 1)
    return found


def _line(route: Route, ports: Mapping[tuple[Route, bool], int]) -> Line:
    source, target = route.source, route.target
    begin, end = source.y + source.height * 3 // 4, target.y + target.height // 4
    last = ports.get((route, False), 0)
    if route.way == "down":
        runs = [(ports[route, True], source.y + source.height, source.bottom)]
        runs += [(shape.middle, shape.top, shape.bottom) for shape in route.falling]
        runs.append((last, target.top, target.y))
        runs = _lengthened(runs, route.shapes)
        corners, path = [(runs[0][0], runs[0][1])], ""
    else:
        first = route.rising[0].x + NARROW // 2
        corners = [(source.x + source.width, begin), (first, begin)]
        path = f"H{first - _TURN}Q{first} {begin} {first} {begin - _TURN}"
        runs = [(first, begin - _TURN, source.top)]
        runs += [(shape.middle, shape.bottom, shape.top) for shape in route.rising[1:]]
        if route.way == "up":
            last = route.rising[-1].x + NARROW // 2
            runs[-1] = (last, target.bottom, end + _TURN)
            runs = _lengthened(runs, route.rising)
        elif source is not target:
            runs += [(shape.middle, shape.top, shape.bottom) for shape in route.falling]
            runs.append((last, target.top, target.y))
            runs = _lengthened(runs, [*route.rising, *route.falling, target])
        else:
            last, runs = first, [(first, begin - _TURN, end + _TURN)]
    path += _bent(runs)
    corners += [(x, y) for x, *ys in runs for y in ys]
    if route.way == "up" or source is target:
        path += f"Q{last} {end} {last - _TURN} {end}H{target.x + target.width}"
        corners += [(last, end), (target.x + target.width, end)]
    elif route.way == "over":
        corners += [(x, y - _ARC) for x, y in corners]
    return _bounded(f"M{corners[0][0]} {corners[0][1]}{path}", corners, _label(route, end))


def _label(route: Route, end: int) -> Point | None:
    if route.label is None:
        return None
    if route.label.box is not None:
        return route.label.middle, route.label.y + route.label.height // 2
    source = route.source
    middle = (source.y + source.height * 3 // 4 + end) // 2
    if route.source is not route.target:
        middle = source.y + source.height // 2
    return route.rising[0].x + NARROW + route.label.width // 2, middle


def _bounded(path: str, corners: Sequence[Point], label: Point | None) -> Line:
    left, top = (min(corner[at] for corner in corners) for at in (0, 1))
    right, bottom = (max(corner[at] for corner in corners) for at in (0, 1))
    return Line(path=path, label=label, x=left, y=top, width=right - left, height=bottom - top)


def _lengthened(runs: Sequence[Run], shapes: Sequence[Shape]) -> list[Run]:
    """Return the runs through shapes, to the border of the outermost box that each leaves or
    enters there.
    """
    found = list(runs)
    for at, (shape, following) in enumerate(pairwise(shapes)):
        left, entered = _left(shape, following), _left(following, shape)
        (x, begin, _), (x2, _, end) = found[at], found[at + 1]
        is_arc, goes_down = left.top == entered.top, left.top < entered.top
        found[at] = x, begin, left.bottom if goes_down else left.top
        found[at + 1] = x2, entered.top if goes_down or is_arc else entered.bottom, end
    return found


def _bent(runs: Sequence[Run]) -> str:
    """Return a path from the beginning of the first run to the end of the last one."""
    path = _straight(runs[0])
    for (x1, _, y1), run in pairwise(runs):
        x2, y2, _ = run
        near, far = (
            (y1 - _ARC, y2 - _ARC) if y1 == y2 else (y1 + (y2 - y1) // 2, y2 - (y2 - y1) // 2)
        )
        path += f"C{x1} {near} {x2} {far} {x2} {y2}{_straight(run)}"
    return path


def _straight(run: Run) -> str:
    """Return a straight line; none where it has no length, since an arrow takes its direction."""
    return f"V{run[2]}" if run[1] != run[2] else ""


def _left(shape: Shape, other: Shape) -> Shape:
    """Return the shape, or the outermost of the boxes around it that the other one is not in."""
    around: set[Shape] = set()
    box = other.box
    while box is not None:
        around.add(box)
        box = box.box
    while shape.box is not None and shape.box not in around:
        shape = shape.box
    return shape


__all__ = ["Line", "drawn_lines"]
