"""A graph, given as nested data, laid out: what its picture in SVG and that of the page share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from axil.plugin import ENTRY, EXIT
from axil_journals.pictures.layout import lay_out
from axil_journals.pictures.lines import Line, drawn_lines
from axil_journals.pictures.scopes import shortened
from axil_journals.pictures.shapes import SMALL_LETTER, Ends, Shape

_FIRST, _LAST = -1, 1 << 30
"""The levels of a graph's own ends."""
_LONGEST: Final = 40
_LONGEST_LABEL: Final = 32
_NOTED: Final = 150
"""The least width of what has a note."""
ScopePath = tuple[str, ...]
Scope = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureEdge:
    """An edge of a picture."""

    scope: ScopePath
    """The path of the graph or cycle that it is listed in."""
    data: Mapping[str, Any]
    """The edge, as its scope has it."""
    label: str
    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A graph, laid out: nodes and boxes, from the outside in, and edges."""

    width: int
    height: int
    shapes: Sequence[Shape]
    """Each box before what is inside it; those with rows are boxes."""
    edges: Sequence[PictureEdge]


@dataclass(slots=True)
class _Scope:
    """A scope whose shapes are being made."""

    data: Scope
    box: Shape
    path: ScopePath
    ends: dict[str, Shape]
    """By the names of nodes, those in the cycles of the graph included."""
    holders: dict[str, str] = field(default_factory=dict[str, str])
    """By the names of nodes in a cycle of the scope: that of the cycle."""


def picture_of(
    top: Scope, *, is_open: Callable[[ScopePath], bool] = lambda path: True, notes: bool = False
) -> Picture:
    """Return a graph, laid out.

    Args:
        top: the graph: ``kind``, ``title``, ``nodes`` (``name``, ``level``, ``type``, and a scope
            ``inside`` where it is one) and ``edges`` (``source``, ``target``, ``label``).
        is_open: whether what is inside a node is drawn, by the path of the node.
        notes: each node has a line for a note in place of its type, and a box one below its title.
    """
    root = Shape(style="b")
    scopes = list(_scopes(top, root, is_open, notes=notes))
    found: list[tuple[ScopePath, Mapping[str, Any], str]] = []
    edges: list[Ends] = []
    for scope in scopes:
        for edge in scope.data["edges"]:
            source, target = edge["source"], edge["target"]
            holder = scope.holders.get(source)
            is_inner = holder is not None and holder == scope.holders.get(target)
            if is_inner or source not in scope.ends or target not in scope.ends:
                continue
            label = shortened(edge["label"], _LONGEST_LABEL)
            found.append((scope.path, edge, label))
            width = len(label) * SMALL_LETTER + 8 if label else 0
            edges.append(
                Ends(source=scope.ends[source], target=scope.ends[target], label_width=width)
            )
    lines = drawn_lines(lay_out(root, edges))
    return Picture(
        width=root.width,
        height=root.height,
        shapes=list(_drawn(root)),
        edges=[
            PictureEdge(scope=path, data=edge, label=label, line=line)
            for (path, edge, label), line in zip(found, lines, strict=True)
        ],
    )


def _scopes(
    top: Scope, root: Shape, is_open: Callable[[ScopePath], bool], *, notes: bool
) -> Iterator[_Scope]:
    """Yield the scopes that are open, with the shapes of their nodes."""
    waiting = [_Scope(top, root, (), {})]
    while waiting:
        scope = waiting.pop()
        if scope.data["kind"] == "graph":
            for name, level, text in ((ENTRY, _FIRST, "input"), (EXIT, _LAST, "output")):
                end = scope.ends[name] = Shape(text, style="p", path=(*scope.path, name))
                end.measure()
                scope.box.put(level, end)
        for node in scope.data["nodes"]:
            name, inside = node["name"], node.get("inside")
            path = (*scope.path, name)
            if inside is not None and is_open(path):
                lines = (inside["title"] or name).split("\n")
                lines = [*(shortened(line) for line in lines), *([""] if notes else ())]
                title = "\n".join(lines)
                shape = Shape(title, style="b", path=path, width=_NOTED if notes else 0)
                is_cycle = inside["kind"] == "cycle"
                waiting.append(_Scope(inside, shape, path, scope.ends if is_cycle else {}))
            else:
                kind = "" if notes else node["type"]
                shape = Shape(shortened(name, _LONGEST), kind, path=path)
                shape.measure(_NOTED if notes else 0)
            scope.box.put(node["level"], shape)
            scope.ends[name] = shape
            if inside is not None and inside["kind"] == "cycle":
                for member in _members(inside):
                    scope.ends[member] = shape  # until its scope is opened
                    scope.holders[member] = name
        yield scope


def _members(cycle: Scope) -> Iterator[str]:
    """Yield the names of the nodes of a cycle, and of the cycles in it."""
    waiting = [cycle]
    while waiting:
        for node in waiting.pop()["nodes"]:
            yield node["name"]
            if (inside := node.get("inside")) is not None and inside["kind"] == "cycle":
                waiting.append(inside)


def _drawn(root: Shape) -> Iterator[Shape]:
    """Yield the shapes that have a title, each box before what is inside it."""
    waiting = [root]
    while waiting:
        shape = waiting.pop()
        if shape.title:
            yield shape
        waiting += reversed([inner for _, row in sorted(shape.rows.items()) for inner in row])


__all__ = ["Picture", "PictureEdge", "picture_of"]
