"""A plan as an SVG image: a row for each level, a box for each cycle and each graph inside.

Sizes come from the inside out, positions from the outside in; the same plan gives the same bytes.
No edge crosses a node: it leads through the rows between its ends, where ``layout`` leaves room.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from itertools import pairwise

from axil.plugin import ENTRY, EXIT, Plan
from axil_journals.pictures.layout import Route, Shape, lay_out
from axil_journals.pictures.scopes import PlanScope, cycle_bounds, edge_label, shortened, walk_plan

_TURN = 6
"""The radius of a turn beside a node."""
_ASIDE = 8
"""Edges that lead up begin so much below the middle of a side."""
_LABEL_LETTER, _LABEL_LINE = 6, 13
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1b2733}"
    ".n{fill:#fff;stroke:#47617a;stroke-width:1.2}"
    ".b{fill:#47617a;fill-opacity:.06;stroke:#47617a;stroke-dasharray:5 3}"
    ".p{fill:#dfe8f1;stroke:#47617a}"
    ".k{font-size:11px;fill:#5a6b7b}"
    ".e{fill:none;stroke:#47617a;stroke-width:1.2;marker-end:url(#a)}"
    ".d{stroke-dasharray:4 3}"
    ".running{fill:#fff3cf}.waiting{fill:#e3dcf7}.done{fill:#dcefdc}.failed{fill:#f7d6d2}"
    ".skipped{fill:#eee}"
    ".l{font-size:11px;fill:#33465a;paint-order:stroke;stroke:#fff;stroke-width:4px}"
)


_FIRST, _LAST = -1, 1 << 30
"""The rows of a graph's own ends."""


def as_svg(plan: Plan, states: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield the lines of the image.

    ``states``: by the path of a node: ``running``, ``waiting``, ``done``, ``failed`` or
    ``skipped``; its colour says so.
    """
    root, ends, scopes = _shapes(plan)
    edges = [(scope, edge) for scope in scopes for edge in scope.plan.graph.spec.edges]
    routes = lay_out(
        root, [(ends[scope.id, e.source], ends[scope.id, e.target]) for scope, e in edges]
    )
    title = plan.graph.spec.id
    size = f'width="{root.width}" height="{root.height}" viewBox="0 0 {root.width} {root.height}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    yield f"<title>{_text(title)}</title><style>{_STYLE}</style>"
    yield (
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#47617a"/></marker></defs>'
    )
    yield f'<rect width="{root.width}" height="{root.height}" fill="#fff"/>'
    shapes = list(_drawn(root, states or {}))
    yield from (line for is_box, line in shapes if is_box)
    ports = _ports(routes)
    labels = _Labels()
    for (scope, edge), route in zip(edges, routes, strict=True):
        path, bends = _way(route, ports)
        yield f'<path class="e{"" if edge.trigger else " d"}" d="{path}"/>'
        if words := edge_label(scope, edge):
            labels.put(shortened(words, 32), bends)
    yield from (line for is_box, line in shapes if not is_box)
    yield from labels.lines
    yield "</svg>"


def _shapes(plan: Plan) -> tuple[Shape, dict[tuple[int, str], Shape], list[PlanScope]]:
    """Return the box around all, the shapes of nodes by graph and name, and the graphs."""
    ends: dict[tuple[int, str], Shape] = {}
    scopes: list[PlanScope] = []
    open_: list[tuple[Shape, int, str]] = []  # boxes, and the graph around each one's nodes
    graph, path = 0, ""
    for step in walk_plan(plan):
        scope = step.scope
        if step.kind == "open":
            is_inner = scope.parent is not None
            words = scope.name if scope.kind == "graph" else f"{scope.name}: {cycle_bounds(scope)}"
            box = Shape(words if is_inner else "", style="b")
            if is_inner and scope.node is not None:
                open_[-1][0].put(scope.node.level, box)
                ends[graph, scope.node.name] = box
            open_.append((box, graph, path))
            if scope.kind == "graph":
                graph = scope.id
                if is_inner and scope.node is not None:
                    path = f"{path}{scope.node.name}/"
                    box.path = path[:-1]
                scopes.append(scope)
                for name, row, text in ((ENTRY, _FIRST, "input"), (EXIT, _LAST, "output")):
                    end = ends[graph, name] = Shape(text, style="p")
                    end.measure()
                    box.put(row, end)
        elif step.kind == "close":
            box, graph, path = open_.pop()
            if not open_:
                return box, ends, scopes
        elif step.node is not None and step.node.vertex.body.mode != "scope":
            name, type_ = step.node.name, step.node.vertex.type
            kind = type_.replace("<lambda>", "function")
            shape = ends[graph, name] = Shape(shortened(name, 40), kind, path=path + name)
            shape.measure()
            open_[-1][0].put(step.node.level, shape)
    raise AssertionError("a walk closes what it opens")


def _drawn(root: Shape, states: Mapping[str, str]) -> Iterator[tuple[bool, str]]:
    """Yield the lines of a shape and of what is inside it, from the outside in, and whether each is
    of a box.
    """
    waiting = [root]
    while waiting:
        shape = waiting.pop()
        if shape.title:
            yield from ((bool(shape.rows), line) for line in _one(shape, states))
        waiting += reversed([inner for _, row in sorted(shape.rows.items()) for inner in row])


def _one(shape: Shape, states: Mapping[str, str]) -> Iterator[str]:
    x, y, middle = shape.x, shape.y, f'x="{shape.middle}"'
    size = f'width="{shape.width}" height="{shape.height}"'
    round_ = shape.height // 2 if shape.style == "p" else 6
    state = f" {states[shape.path]}" if shape.path in states else ""
    yield f'<rect class="{shape.style}{state}" x="{x}" y="{y}" {size} rx="{round_}"/>'
    if shape.rows:
        yield f'<text class="k" x="{x + 10}" y="{y + 17}">{_text(shape.title)}</text>'
        return
    yield f'<text {middle} y="{y + 19}" text-anchor="middle">{_text(shape.title)}</text>'
    if shape.kind:
        kind = _text(shape.kind)
        yield f'<text class="k" {middle} y="{y + 36}" text-anchor="middle">{kind}</text>'


# ------------------------------------------------------------------------------------- edges


def _ports(routes: list[Route]) -> dict[tuple[Route, bool], int]:
    """Return where each edge that leads down begins (True) and ends (False): the sides of a shape
    are shared out in the order of the ways.
    """
    sides: dict[tuple[Shape, bool], list[tuple[int, int, Route]]] = {}
    for number, route in enumerate(routes):
        if not route.leads_up:
            shapes = route.shapes
            sides.setdefault((route.source, True), []).append((shapes[1].middle, number, route))
            sides.setdefault((route.target, False), []).append((shapes[-2].middle, number, route))
    found: dict[tuple[Route, bool], int] = {}
    for (shape, is_begin), ways in sides.items():
        for place, (_, _, route) in enumerate(sorted(ways, key=lambda way: way[:2]), 1):
            found[route, is_begin] = shape.x + shape.width * place // (len(ways) + 1)
    return found


Point = tuple[int, int]


def _way(route: Route, ports: Mapping[tuple[Route, bool], int]) -> tuple[str, list[Point]]:
    """Return the path of an edge, and the middles of its bends.

    Within a row it leads straight down, or up; it bends between rows. One that leads up begins and
    ends at the right sides of its ends.
    """
    source, target, shapes = route.source, route.target, route.shapes
    if not route.leads_up:
        runs = [[ports[route, True], source.y + source.height, source.bottom]]
        runs += [[shape.middle, shape.top, shape.bottom] for shape in route.passages]
        runs.append([ports[route, False], target.top, target.y])
        _lengthen(runs, shapes)
        path, bends = _bent(runs)
        return f"M{runs[0][0]} {runs[0][1]}{path}", bends
    begin, end = source.y + source.height // 2, target.y + target.height // 2
    lanes = route.passages or [source, target]
    first, last = lanes[0].middle, lanes[-1].middle
    turn = f"M{source.x + source.width} {begin + _ASIDE}H{first - _TURN}Q{first} {begin + _ASIDE} "
    turn += f"{first} {begin + _ASIDE - _TURN}"
    back = f"Q{last} {end} {last - _TURN} {end}H{target.x + target.width}"
    if source is target:
        return f"{turn}V{end + _TURN}{back}", [(first + _TURN, begin)]
    runs = [[first, begin + _ASIDE - _TURN, source.top]]
    runs += [[shape.middle, shape.bottom, shape.top] for shape in lanes[1:-1]]
    runs.append([last, target.bottom, end + _TURN])
    _lengthen(runs, lanes)
    path, bends = _bent(runs)
    return f"{turn}{path}{back}", bends


def _lengthen(runs: list[list[int]], shapes: list[Shape]) -> None:
    """Let the way through a shape reach the border of the outermost box that it leaves or enters
    there.
    """
    pairs = zip(pairwise(runs), pairwise(shapes), strict=True)
    for (run, after), (shape, next_) in pairs:
        left, entered = _left(shape, next_), _left(next_, shape)
        goes_down = left.top < entered.top
        run[2] = left.bottom if goes_down else left.top
        after[1] = entered.top if goes_down else entered.bottom


def _bent(runs: list[list[int]]) -> tuple[str, list[Point]]:
    """Return a path from the beginning of the first run to the end of the last one, and the middles
    of its bends.
    """
    path = _straight(runs[0])
    bends: list[Point] = []
    for (x1, _, y1), (x2, y2, end) in pairwise(runs):
        bend = (y2 - y1) // 2
        path += f"C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2}{_straight([x2, y2, end])}"
        bends.append(((x1 + x2) // 2, (y1 + y2) // 2 + 4))
    return path, bends


def _straight(run: list[int]) -> str:
    """Return a straight line; none where it has no length, since an arrow takes its direction."""
    return f"V{run[2]}" if run[1] != run[2] else ""


def _left(shape: Shape, other: Shape) -> Shape:
    """Return the shape, or the outermost of the boxes around it that the other one is not in."""
    around: set[Shape] = set()
    box: Shape | None = other.box
    while box is not None:
        around.add(box)
        box = box.box
    while shape.box is not None and shape.box not in around:
        shape = shape.box
    return shape


class _Labels:
    """The words on edges, side by side where there is room."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._taken: dict[int, list[tuple[int, int]]] = {}

    def put(self, words: str, bends: list[Point]) -> None:
        """Write words at the first bend where no others are, or a little above or below it; else
        over others.
        """
        half = len(words) * _LABEL_LETTER // 2
        places = [(x, y + off) for off in (0, -_LABEL_LINE, _LABEL_LINE) for x, y in bends[:3]]
        x, y = next((place for place in places if self._is_free(*place, half)), bends[0])
        self._taken.setdefault(y // _LABEL_LINE, []).append((x - half, x + half))
        where = f'x="{x}" y="{y}" text-anchor="middle"'
        self.lines.append(f'<text class="l" {where}>{_text(words)}</text>')

    def _is_free(self, x: int, y: int, half: int) -> bool:
        row = self._taken.get(y // _LABEL_LINE, ())
        return all(x + half < begin or x - half > end for begin, end in row)


def _text(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return html.escape(line)
