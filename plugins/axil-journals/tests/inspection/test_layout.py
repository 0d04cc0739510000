"""Laws of the geometry of pictures, for random graphs: what a line may cross, and what overlaps."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any

import pytest

from axil_journals import Picture, picture_of
from axil_journals.pictures import routes, shapes

_POINTS = 12
"""Of each bend of a line."""
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


class Graphs:
    """A source of random graphs: with graphs and cycles in nodes, labels, and edges of any kind."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.made = 0

    def graph(self, depth: int = 0) -> dict[str, Any]:
        nodes = self.nodes(self.chance.randrange(1, 12), depth)
        names = [name for name, _ in named(nodes)]
        edges = self.edges(names, self.chance.randrange(2 * len(names) + 1))
        edges += [self.edge("@entry", names[0]), self.edge(names[-1], "@exit")]
        found = {"kind": "graph", "title": f"graph{depth}", "nodes": nodes, "edges": edges}
        listed(nodes, edges)
        return found

    def nodes(self, count: int, depth: int) -> list[dict[str, Any]]:
        return [self.node(depth) for _ in range(count)]

    def node(self, depth: int) -> dict[str, Any]:
        self.made += 1
        name = f"n{self.made}" + "x" * self.chance.randrange(12)
        made: dict[str, Any] = {"name": name, "level": self.chance.randrange(6), "type": "python"}
        chance = self.chance.random()
        if depth < 3 and chance < 0.12:
            made["inside"] = self.graph(depth + 1)
        elif depth < 3 and chance < 0.25:
            inner = self.nodes(self.chance.randrange(1, 4), depth + 1)
            title = f"cycle{self.made}\nentered at a\nat most 100 rounds, then limited"
            made["inside"] = {"kind": "cycle", "title": title, "nodes": inner, "edges": []}
        return made

    def edge(self, source: str, target: str) -> dict[str, Any]:
        label = self.chance.choice(["", "", "ok", "keyword: any ACCEPT", "x" * 60])
        return {"source": source, "target": target, "label": label, "trigger": True}

    def edges(self, names: list[str], count: int) -> list[dict[str, Any]]:
        return [
            self.edge(self.chance.choice(names), self.chance.choice(names)) for _ in range(count)
        ]


def named(nodes: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the nodes of a graph, those in its cycles included."""
    for node in nodes:
        inside = node.get("inside")
        if inside is None or inside["kind"] == "graph":
            yield node["name"], node
        else:
            yield from named(inside["nodes"])


def listed(nodes: list[dict[str, Any]], edges: list[dict[str, Any]]) -> None:
    """List the edges of the members of each cycle in it, too."""
    for node in nodes:
        inside = node.get("inside")
        if inside is not None and inside["kind"] == "cycle":
            members = {name for name, _ in named(inside["nodes"])}
            inside["edges"] = [e for e in edges if {e["source"], e["target"]} <= members]
            listed(inside["nodes"], edges)


def fan(count: int, label: str) -> dict[str, Any]:
    """Return a graph with a row of many nodes."""
    names = [f"worker{at}" for at in range(count)]
    nodes = [{"name": name, "level": 1, "type": "python"} for name in names]
    nodes += [{"name": name, "level": at, "type": "python"} for name, at in (("a", 0), ("z", 2))]
    edges = [("@entry", "a"), ("a", "z"), ("z", "@exit")]
    edges += [pair for name in names for pair in (("a", name), (name, "z"))]
    made = [{"source": s, "target": t, "label": label, "trigger": True} for s, t in edges]
    return {"kind": "graph", "title": "fan", "nodes": nodes, "edges": made}


def points(path: str) -> Iterator[Any]:
    """Yield points of a path, a few pixels apart."""
    here = (0.0, 0.0)
    for command, rest in re.findall(r"([MHVCQ])([^MHVCQ]*)", path):
        given = [float(each) for each in rest.split()]
        if command == "H":
            given = [given[0], here[1]]
        elif command == "V":
            given = [here[0], given[0]]
        corners: list[Any] = [here, *zip(given[::2], given[1::2], strict=True)]
        here = corners[-1]
        if command == "M":
            continue
        for step in range(_POINTS + 1):
            between: list[Any] = corners
            while len(between) > 1:  # de Casteljau
                between = [
                    tuple(a + (b - a) * step / _POINTS for a, b in zip(one, other, strict=True))
                    for one, other in pairwise(between)
                ]
            yield between[0]


def boxes(drawn: Picture) -> tuple[list[Box], list[tuple[Box, Any]]]:
    """Return the nodes, and the labels with their edges; a title is a label of none."""
    nodes: list[Box] = [
        (s.x, s.y, s.x + s.width, s.y + s.height) for s in drawn.shapes if not s.rows
    ]
    labels: list[tuple[Box, Any]] = []
    for edge in drawn.edges:
        if edge.line.label is not None:
            (x, y), half = edge.line.label, len(edge.label) * shapes.SMALL_LETTER / 2
            labels.append(((x - half, y - 7, x + half, y + 7), edge))
    for s in drawn.shapes:
        if s.rows:
            lines = s.title.split("\n")
            width = max(map(len, lines)) * shapes.SMALL_LETTER
            high = len(lines) * shapes.SMALL_LINE
            labels.append(((s.x + 10, s.y + 5, s.x + 10 + width, s.y + 5 + high), None))
    return nodes, labels


def is_apart(one: Box, other: Box) -> bool:
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def is_in(point: tuple[float, float], box: Box) -> bool:
    return box[0] + 1 < point[0] < box[2] - 1 and box[1] + 1 < point[1] < box[3] - 1


def check(drawn: Picture) -> None:
    nodes, labels = boxes(drawn)
    for one, other in combinations([*nodes, *(box for box, _ in labels)], 2):
        assert is_apart(one, other), (one, other)
    assert drawn.edges
    for edge in drawn.edges:
        line = edge.line
        frame = (line.x, line.y, line.x + line.width, line.y + line.height)
        assert frame[0] >= 0
        assert frame[1] >= 0
        assert frame[2] <= drawn.width
        assert frame[3] <= drawn.height
        # a line may pass behind a label that is beside the source of its edge
        texts = [box for box, own in labels if own is not edge and not is_beside(own)]
        near = [box for box in (*nodes, *texts) if not is_apart(box, frame)]
        for x, y in points(line.path):
            assert frame[0] <= x <= frame[2]
            assert frame[1] <= y <= frame[3]
            assert not [box for box in near if is_in((x, y), box)], (edge.data, x, y)


def is_beside(edge: Any) -> bool:
    """Return whether the ends of an edge are in one row, or are one: its label is beside them."""
    if edge is None or "H" not in edge.line.path:
        return False
    x, y = edge.line.label
    return not any(abs(a - x) < 1 and abs(b - y) < 20 for a, b in points(edge.line.path))


@pytest.mark.third
@pytest.mark.parametrize("seed", range(40))
def test_no_line_crosses_a_node_or_a_text_and_no_texts_overlap(seed: int):
    graph = Graphs(seed).graph()
    check(picture_of(graph))
    check(picture_of(graph, is_open=lambda path: len(path) < 2, notes=True))


@pytest.mark.parametrize("label", ["", "ok"])
@pytest.mark.parametrize("count", [6, 40, 100])
def test_a_row_that_is_too_wide_is_continued_below(count: int, label: str):
    drawn = picture_of(fan(count, label))
    check(drawn)
    assert len({shape.y for shape in drawn.shapes}) == {6: 5, 40: 7, 100: 12}[count]
    assert drawn.width < 3000


def test_the_same_graph_has_the_same_picture():
    one, other = (picture_of(Graphs(3).graph()) for _ in range(2))
    assert [edge.line for edge in one.edges] == [edge.line for edge in other.edges]


def test_beyond_a_bound_of_passages_lines_lead_straight_to_their_ends(monkeypatch: Any):
    monkeypatch.setattr(routes, "_PASSAGES", 3)
    drawn = picture_of(Graphs(5).graph())
    assert all(edge.line.path.startswith("M") for edge in drawn.edges)


def test_the_laws_of_this_file_find_lines_that_lead_straight(monkeypatch: Any):
    monkeypatch.setattr(routes, "_PASSAGES", 0)
    with pytest.raises(AssertionError):
        check(picture_of(fan(40, "")))
