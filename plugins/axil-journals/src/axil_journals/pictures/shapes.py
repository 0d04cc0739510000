"""The parts of a picture: shapes in rows of boxes, and the ways of edges between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

LETTER: Final = 8
"""The width of a letter of a title."""
LINE: Final = 18
"""The height of a line of text."""
SMALL_LETTER: Final = 7
SMALL_LINE: Final = 15
"""The same of labels, types and the titles of boxes."""
MARGIN: Final = 18
"""Between a box and what is inside it."""
ACROSS: Final = 28
"""Between the nodes of a row."""
DOWN: Final = 52
"""Between rows."""
NARROW: Final = 12
"""Between a passage and its neighbour."""


@dataclass(slots=True, eq=False, repr=False)
class Shape:
    """A node, an end of a graph, a passage of an edge, or a box with rows of shapes."""

    title: str = ""
    kind: str = ""
    style: str = "n"
    """``n``: a node, ``b``: a box, ``p``: an end of a graph, ``l``: a label or the title of a box;
    empty: a passage."""
    is_shared: bool = False
    """A passage of several edges."""
    path: tuple[str, ...] = ()
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
    above: list[Link] = field(default_factory=list["Link"])
    """The neighbours in the row above."""
    below: list[Link] = field(default_factory=list["Link"])
    beside: list[Shape] = field(default_factory=list["Shape"])
    """The passages right of it, of edges that lead up."""
    levels: list[int] = field(default_factory=list[int])
    """The numbers of its rows, in order."""
    parts: set[int] = field(default_factory=set[int])
    """The numbers of the rows that are parts of one that is too wide."""
    gaps: list[int] = field(default_factory=list[int])
    """The heights between its rows."""

    @property
    def middle(self) -> int:
        """The middle of it, across."""
        return self.x + self.width // 2

    def put(self, row: int, shape: Shape) -> None:
        """Put a shape at the end of a row."""
        shape.box, shape.row = self, row
        self.rows.setdefault(row, []).append(shape)

    def measure(self, least_width: int = 0) -> None:
        """Find the size of a shape without rows."""
        texts = max(len(self.title) * LETTER, len(self.kind) * SMALL_LETTER)
        self.width = max(least_width, texts + 24)
        self.height = LINE * (2 if self.kind or least_width else 1) + 12


@dataclass(frozen=True, slots=True, eq=False)
class Inner:
    """A shape in a box, at which an edge enters or leaves the box; ``inner``: of a box in it."""

    shape: Shape
    inner: Inner | None


@dataclass(slots=True, eq=False)
class Link:
    """A neighbour of a shape in a row next to it."""

    shape: Shape
    own: Inner | None
    """The place where the edge leaves the shape that has the link, if that is a box."""
    other: Inner | None
    shift: float = 0.0
    """The distance of the shape's middle, to the right, from that of the neighbour."""


Way = Literal["down", "up", "over"]


@dataclass(slots=True, eq=False, repr=False)
class Route:
    """The way of an edge: the shapes that it passes, from its source to its target."""

    source: Shape
    target: Shape
    way: Way
    """``over``: its ends are in one row, or are one shape."""
    rising: list[Shape]
    """The passages that it passes from below; of an edge that leads down none."""
    falling: list[Shape]
    label: Shape | None = None

    @property
    def shapes(self) -> list[Shape]:
        """All shapes of the way."""
        return [self.source, *self.rising, *self.falling, self.target]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """An edge that is to be laid out; ``label_width`` 0: it has no label."""

    source: Shape
    target: Shape
    label_width: int = 0


def all_shapes(root: Shape) -> Iterator[Shape]:
    """Yield all shapes, each box before what is inside it."""
    waiting = [root]
    while waiting:
        shape = waiting.pop()
        yield shape
        waiting += [inner for row in shape.rows.values() for inner in row]


__all__ = [
    "ACROSS",
    "DOWN",
    "LETTER",
    "LINE",
    "MARGIN",
    "NARROW",
    "SMALL_LETTER",
    "SMALL_LINE",
    "Ends",
    "Inner",
    "Link",
    "Route",
    "Shape",
    "Way",
    "all_shapes",
]
