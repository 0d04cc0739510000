"""A plan as an SVG image: a row for each level, a box for each cycle and each graph inside.

The same plan gives the same bytes.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping

from axil.plugin import Plan
from axil_journals.pictures.picture import picture_of
from axil_journals.pictures.scopes import plan_scopes
from axil_journals.pictures.shapes import SMALL_LINE, Shape

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


def as_svg(plan: Plan, states: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield the lines of the image.

    ``states``: by the path of a node: ``running``, ``waiting``, ``done``, ``failed`` or
    ``skipped``; its colour says so.
    """
    drawn = picture_of(plan_scopes(plan))
    width, height = drawn.width, drawn.height
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    yield f"<title>{_text(plan.graph.spec.id)}</title><style>{_STYLE}</style>"
    yield (
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#47617a"/></marker></defs>'
    )
    yield f'<rect width="{width}" height="{height}" fill="#fff"/>'
    for shape in drawn.shapes:
        if shape.rows:
            yield from _shape(shape, states or {})
    for edge in drawn.edges:
        is_data = "" if edge.data["trigger"] else " d"
        yield f'<path class="e{is_data}" d="{edge.line.path}"/>'
    for shape in drawn.shapes:
        if not shape.rows:
            yield from _shape(shape, states or {})
    for edge in drawn.edges:
        if edge.line.label is not None:
            x, y = edge.line.label
            where = f'x="{x}" y="{y + 4}" text-anchor="middle"'
            yield f'<text class="l" {where}>{_text(edge.label)}</text>'
    yield "</svg>"


def _shape(shape: Shape, states: Mapping[str, str]) -> Iterator[str]:
    x, y, middle = shape.x, shape.y, f'x="{shape.middle}"'
    size = f'width="{shape.width}" height="{shape.height}"'
    round_ = shape.height // 2 if shape.style == "p" else 6
    # states are by graph: a cycle is none
    path = "/".join(part for part in shape.path if not part.startswith("cycle("))
    state = f" {states[path]}" if path in states else ""
    yield f'<rect class="{shape.style}{state}" x="{x}" y="{y}" {size} rx="{round_}"/>'
    if shape.rows:
        for number, line in enumerate(shape.title.split("\n")):
            down = y + 16 + number * SMALL_LINE
            yield f'<text class="k" x="{x + 10}" y="{down}">{_text(line)}</text>'
        return
    yield f'<text {middle} y="{y + 20}" text-anchor="middle">{_text(shape.title)}</text>'
    if shape.kind:
        kind = _text(shape.kind)
        yield f'<text class="k" {middle} y="{y + 37}" text-anchor="middle">{kind}</text>'


def _text(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return html.escape(line)


__all__ = ["as_svg"]
