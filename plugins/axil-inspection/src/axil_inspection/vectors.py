"""A plan as an SVG image: a row for each level, a box for each cycle and each graph inside.

Sizes come from the inside out, positions from the outside in; the same plan gives the same bytes.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field

from axil import EdgeSpec
from axil.plugin import ENTRY, EXIT, Plan
from axil_inspection.scopes import Scope, bounded, label, shortened, walk

_LETTER, _LINE = 7, 18  # of a text: the width of a letter, and the height of a line
_ACROSS, _DOWN, _MARGIN = 28, 52, 18  # between nodes of a row, between rows, inside a box
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1b2733}"
    ".n{fill:#fff;stroke:#47617a;stroke-width:1.2}"
    ".b{fill:#47617a;fill-opacity:.06;stroke:#47617a;stroke-dasharray:5 3}"
    ".p{fill:#dfe8f1;stroke:#47617a}"
    ".k{font-size:11px;fill:#5a6b7b}"
    ".e{fill:none;stroke:#47617a;stroke-width:1.2;marker-end:url(#a)}"
    ".d{stroke-dasharray:4 3}"
    ".l{font-size:11px;fill:#33465a;paint-order:stroke;stroke:#fff;stroke-width:4px}"
)


@dataclass(slots=True)
class _Shape:
    """A node, an end of a graph, or a box with rows of shapes."""

    title: str
    kind: str = ""
    style: str = "n"
    rows: dict[int, list[_Shape]] = field(default_factory=dict[int, "list[_Shape]"])
    width: int = 0
    height: int = 0
    x: int = 0
    y: int = 0
    leaving: int = 0
    """Edges that have begun here so far; with those that have ended it spreads them."""
    coming: int = 0

    def measure(self) -> None:
        """Find the size; what is inside has its own already."""
        texts = max(len(self.title), len(self.kind))
        self.width, self.height = texts * _LETTER + 28, _LINE * (2 if self.kind else 1) + 12
        if self.rows:
            rows = self.rows.values()
            widths = [sum(s.width for s in row) + _ACROSS * (len(row) - 1) for row in rows]
            heights = [max(s.height for s in row) for row in rows]
            head = _LINE if self.title else 0
            self.width = max(self.width, *widths) + 2 * _MARGIN
            self.height = sum(heights) + _DOWN * (len(heights) - 1) + 2 * _MARGIN + head

    def place(self) -> None:
        """Put what is inside at its position: rows one below the other, in the middle."""
        waiting = [self]
        while waiting:
            box = waiting.pop()
            below = box.y + _MARGIN + (_LINE if box.title else 0)
            for _, row in sorted(box.rows.items()):
                across = sum(s.width for s in row) + _ACROSS * (len(row) - 1)
                right = box.x + (box.width - across) // 2
                height = max(s.height for s in row)
                for shape in row:
                    shape.x, shape.y = right, below + (height - shape.height) // 2
                    right += shape.width + _ACROSS
                waiting += row
                below += height + _DOWN


_FIRST, _LAST = -1, 1 << 30
"""The rows of a graph's own ends."""


def as_svg(plan: Plan) -> Iterator[str]:
    """Yield the lines of the image."""
    root, ends, scopes = _shapes(plan)
    root.place()
    title = plan.graph.spec.id
    size = f'width="{root.width}" height="{root.height}" viewBox="0 0 {root.width} {root.height}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    yield f"<title>{_text(title)}</title><style>{_STYLE}</style>"
    yield (
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#47617a"/></marker></defs>'
    )
    yield f'<rect width="{root.width}" height="{root.height}" fill="#fff"/>'
    yield from _drawn(root)
    for scope in scopes:
        edges = scope.plan.graph.spec.edges
        leaving = [e.source for e in edges]
        coming = [e.target for e in edges]
        for edge in edges:
            source, target = ends[scope.id, edge.source], ends[scope.id, edge.target]
            yield from _line(
                source,
                target,
                edge,
                label(scope, edge),
                (leaving.count(edge.source), coming.count(edge.target)),
            )
    yield "</svg>"


def _shapes(plan: Plan) -> tuple[_Shape, dict[tuple[int, str], _Shape], list[Scope]]:
    """Return the whole as a shape with its size, the shapes of nodes by graph and name, and the
    graphs.
    """
    ends: dict[tuple[int, str], _Shape] = {}
    scopes: list[Scope] = []
    open_: list[tuple[_Shape, int]] = []  # boxes, and the graph around each one's nodes
    graph = 0
    for step in walk(plan):
        scope = step.scope
        if step.kind == "open":
            is_inner = scope.parent is not None
            words = scope.name if scope.kind == "graph" else f"{scope.name}: {bounded(scope)}"
            box = _Shape(words if is_inner else "", style="b")
            if is_inner and scope.node is not None:
                open_[-1][0].rows.setdefault(scope.node.level, []).append(box)
                ends[graph, scope.node.name] = box
            open_.append((box, graph))
            if scope.kind == "graph":
                graph = scope.id
                scopes.append(scope)
                for name, row, text in ((ENTRY, _FIRST, "input"), (EXIT, _LAST, "output")):
                    end = ends[graph, name] = _Shape(text, style="p")
                    end.measure()
                    box.rows[row] = [end]
        elif step.kind == "close":
            box, graph = open_.pop()
            box.measure()
            if not open_:
                return box, ends, scopes
        elif step.node is not None and step.node.vertex.body.mode != "scope":
            kind = step.node.vertex.type.replace("<lambda>", "function")
            shape = ends[graph, step.node.name] = _Shape(shortened(step.node.name, 40), kind)
            shape.measure()
            open_[-1][0].rows.setdefault(step.node.level, []).append(shape)
    raise AssertionError("a walk closes what it opens")


def _drawn(root: _Shape) -> Iterator[str]:
    """Yield a shape and what is inside it, from the outside in."""
    waiting = [root]
    while waiting:
        shape = waiting.pop()
        if shape.title:
            yield from _one(shape)
        waiting += reversed([inner for _, row in sorted(shape.rows.items()) for inner in row])


def _one(shape: _Shape) -> Iterator[str]:
    x, y, middle = shape.x, shape.y, f'x="{shape.x + shape.width // 2}"'
    size = f'width="{shape.width}" height="{shape.height}"'
    round_ = shape.height // 2 if shape.style == "p" else 6
    yield f'<rect class="{shape.style}" x="{x}" y="{y}" {size} rx="{round_}"/>'
    if shape.rows:
        yield f'<text class="k" x="{x + 10}" y="{y + 17}">{_text(shape.title)}</text>'
        return
    yield f'<text {middle} y="{y + 19}" text-anchor="middle">{_text(shape.title)}</text>'
    if shape.kind:
        kind = _text(shape.kind)
        yield f'<text class="k" {middle} y="{y + 36}" text-anchor="middle">{kind}</text>'


def _line(
    source: _Shape, target: _Shape, edge: EdgeSpec, words: str, shares: tuple[int, int]
) -> Iterator[str]:
    """Yield an edge: downward from side to side, back around the right of both."""
    source.leaving += 1
    target.coming += 1
    x1 = source.x + source.width * source.leaving // (shares[0] + 1)
    x2 = target.x + target.width * target.coming // (shares[1] + 1)
    y1, y2 = source.y + source.height, target.y
    if y2 > y1:
        bend = max((y2 - y1) // 2, 16)
        path = f"M{x1} {y1}C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2}"
        middle = (x1 + x2) // 2, (y1 + y2) // 2 + 4
    else:
        x1, x2 = source.x + source.width, target.x + target.width
        y1, y2 = source.y + source.height // 2, target.y + target.height // 2
        aside = max(x1, x2) + _MARGIN // 2 + 8 * source.leaving
        path = f"M{x1} {y1}C{aside} {y1} {aside} {y2} {x2} {y2}"
        middle = max(x1, x2) + 4, (y1 + y2) // 2
    yield f'<path class="e{"" if edge.trigger else " d"}" d="{path}"/>'
    if words:
        where = f'x="{middle[0]}" y="{middle[1]}" text-anchor="middle"'
        yield f'<text class="l" {where}>{_text(shortened(words, 32))}</text>'


def _text(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return html.escape(line)
