"""Positions for the picture of a graph: boxes with rows of shapes, and edges between them.

As in a layered layout: an edge that spans rows has a passage in each row between its ends, rows are
ordered by the middle of their neighbours, and positions follow the same neighbours as far as the
order lets them. The label of an edge is a wide passage in a row of labels, and the title of a box a
shape of its first row, so no line crosses them.
An edge that leads up leaves and arrives at passages beside its ends, at their right sides; one
between two shapes of a row leads over those that are between them. A row that is too wide is
continued below; edges that lead past its parts from one source, or to one target, share passages.
Boxes inside boxes are laid out first; an edge that leaves or enters one passes its rows as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from axil_journals.pictures.positions import arrange, place
from axil_journals.pictures.routes import Passages, divide, put_labels, route_of
from axil_journals.pictures.shapes import Ends, Route, Shape, all_shapes


def lay_out(root: Shape, edges: Sequence[Ends]) -> list[Route]:
    """Return the ways of edges, and give all shapes their places.

    ``root``: the box around all; the boxes inside have no size yet.
    """
    boxes = [box for box in all_shapes(root) if box.rows]
    for box in boxes:
        divide(box)
    labels = put_labels(edges)
    for box in boxes:
        box.levels = sorted(box.rows)
    passages = Passages()
    routes = [route_of(edge, label, passages) for edge, label in zip(edges, labels, strict=True)]
    for box in reversed(boxes):
        arrange(box, {})
    place(root)
    if beyond := _beyond(routes):  # once more, now that the places around boxes are known
        for box in reversed(boxes):
            arrange(box, beyond)
        place(root)
    return routes


def _beyond(routes: Sequence[Route]) -> dict[Shape, int]:
    """Return, of each passage at the border of a box, where its edge goes on."""
    return {
        passage: other.middle
        for route in routes
        for one, following in pairwise(route.shapes)
        if one.box is not following.box
        for passage, other in ((one, following), (following, one))
        if not passage.style
    }


__all__ = ["lay_out"]
