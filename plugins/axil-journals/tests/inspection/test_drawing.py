"""Laws of pictures: of a graph that was made in Python, and in a notebook."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from axil import ComponentRef, NodeSpec, RootGraph
from axil.plugin import UnknownComponent
from axil_control import Loop
from axil_journals.pictures.scopes import _chosen


def made():
    graph = RootGraph("pair")
    first, second = (graph.create_node(lambda inputs: inputs, name=n) for n in ("first", "second"))
    graph.edge_from_entry(first)
    graph.create_edge(first, second)
    graph.edge_to_exit(second)
    return graph


def test_a_graph_draws_itself_as_lines_of_text():
    assert made().build().draw() == (
        "pair\n  in  → first\n   0  first  function  → second\n   1  second  function  → @exit"
    )


def test_a_graph_draws_itself_as_a_mermaid_flowchart():
    assert made().build().draw("mermaid").splitlines() == [
        "flowchart TD",
        '    g0in(["input"])',
        '    g0out(["output"])',
        '    g0n0["first<br/>function"]',
        '    g0n1["second<br/>function"]',
        "  g0in --> g0n0",
        "  g0n0 --> g0n1",
        "  g0n1 --> g0out",
    ]


def same(inputs: Any) -> Any:
    return inputs


def test_a_graph_draws_itself_as_an_image_with_a_box_for_each_loop():
    graph = RootGraph("review")
    loop = graph.create_node(Loop, name="again", max_iterations=2)
    loop.create_node(same, name="write")
    loop.edge_from_controller("write", ["text"])
    loop.edge_to_controller("write", ["text"])
    graph.create_node(same, name="publish")
    graph.edge_from_entry(loop, ["text"])
    graph.create_edge(loop, "publish", {"text": 'a <b> & "c"'}, when=same)
    graph.edge_to_exit("publish", ["text"])
    image = ET.fromstring(graph.build().draw("svg"))
    name = "{http://www.w3.org/2000/svg}"
    words = ["".join(text.itertext()) for text in image.iter(f"{name}text")]
    assert {"again", "controller", "write", "publish", "input", "output"} <= set(words)
    assert any(text.startswith("cycle(controller,write)") for text in words)
    assert len([p for p in image.iter(f"{name}path") if p.get("class") == "e"]) == 7
    wide, high = (int(image.attrib[side]) for side in ("width", "height"))
    boxes = [
        [int(box.attrib[side]) for side in ("x", "y", "width", "height")]
        for box in image.iter(f"{name}rect")
        if "class" in box.attrib
    ]
    assert all(x >= 0 and x + w <= wide and y + h <= high for x, y, w, h in boxes)
    assert graph.draw("svg") == graph.draw("svg")


def wired(*edges: str, cycles: str = "forbid") -> Any:
    """Return a graph of edges such as ``a b``; it begins at the first and ends at the last node."""
    graph: Any = RootGraph("wired", cycles=cycles)
    pairs = [edge.split() for edge in edges]
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    for name in names:
        graph.create_node(same, name=name)
    for source, target in pairs:
        back = names.index(source) >= names.index(target)
        graph.create_edge(source, target, {"x": ""}, **({"when": same} if back else {}))
    graph.edge_from_entry(names[0], ["x"])
    graph.edge_to_exit(names[-1], ["x"])
    return graph.build()


def nested() -> Any:
    """Return a loop in a loop, with edges past the inner one."""
    graph = RootGraph("nested")
    outer = graph.create_node(Loop, name="outer", max_iterations=2)
    inner = outer.create_node(Loop, name="inner", max_iterations=2)
    for loop, name in ((outer, "plan"), (outer, "judge"), (inner, "write")):
        loop.create_node(same, name=name)
    inner.edge_from_controller("write", ["t"])
    inner.edge_to_controller("write", ["t"])
    outer.edge_from_controller("plan", ["t"])
    outer.create_edge("plan", inner, {"t": ""})
    outer.create_edge(inner, "judge", {"t": ""})
    outer.create_edge("plan", "judge", {"u": ""})
    outer.edge_to_controller("judge", ["t"])
    graph.edge_from_entry(outer, ["t"])
    graph.edge_to_exit(outer, ["t"])
    return graph.build()


def scattered(seed: int) -> Any:
    """Return thirty nodes whose edges lead past each other."""
    chance = random.Random(seed)
    edges = [
        f"n{source} n{node}"
        for node in range(1, 30)
        for source in {chance.randrange(max(0, node - 9), node) for _ in range(2)}
    ]
    return wired(*edges)


GRAPHS: dict[str, Callable[[], Any]] = {
    "a chain with edges past it": lambda: wired("a b", "b c", "c d", "d e", "a d", "b e", "a e"),
    "a fan": lambda: wired(
        *(f"plan w{n}" for n in range(6)), *(f"w{n} join" for n in range(6)), "plan join"
    ),
    "loops across": lambda: wired(
        "a b", "b c", "c d", "c e", "d e", "a e", "c a", "d b", "c c", cycles="allow"
    ),
    "a loop in a loop": nested,
    **{f"scattered {seed}": lambda seed=seed: scattered(seed) for seed in range(3)},
}


@pytest.mark.parametrize("name", GRAPHS)
def test_no_edge_of_an_image_crosses_a_node(name: str):
    image = ET.fromstring(GRAPHS[name]().draw("svg"))
    nodes = [
        [int(box.attrib[side]) for side in ("x", "y", "width", "height")]
        for box in image.iter("{http://www.w3.org/2000/svg}rect")
        if box.get("class") in ("n", "p")
    ]
    for n, (x, y, w, h) in enumerate(nodes):
        for x2, y2, w2, h2 in nodes[:n]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
    paths = [p.attrib["d"] for p in image.iter() if p.get("class") in ("e", "e d")]
    assert len(paths) > 5
    for path in paths:
        for at, down in points(path):
            inside = [box for box in nodes if _is_in(at, down, box)]
            assert not inside, (path, inside)


def _is_in(at: float, down: float, box: list[int]) -> bool:
    x, y, width, height = box
    return x + 1 < at < x + width - 1 and y + 1 < down < y + height - 1


def points(path: str) -> Iterator[tuple[float, float]]:
    """Yield points of a path of the image, a few pixels apart."""
    here = (0.0, 0.0)
    for command, rest in re.findall(r"([MHVCQ])([^MHVCQ]*)", path):
        given = [float(each) for each in rest.split()]
        if command == "H":
            given = [given[0], here[1]]
        elif command == "V":
            given = [here[0], given[0]]
        corners = [here, *zip(given[::2], given[1::2], strict=True)]
        here = corners[-1]
        if command == "M":
            continue
        for step in range(41):
            between = corners
            while len(between) > 1:  # de Casteljau
                between = [
                    tuple(a + (b - a) * step / 40 for a, b in zip(one, other, strict=True))
                    for one, other in pairwise(between)
                ]
            yield between[0]


def test_a_format_that_is_none_is_an_error():
    with pytest.raises(UnknownComponent, match="Installed: mermaid, notebook, svg, text"):
        made().build().draw("png")


def test_a_notebook_is_given_the_picture_by_media_type():
    graph = made().build()
    flowchart = graph.draw("mermaid")
    assert graph._repr_mimebundle_() == {
        "text/plain": graph.draw(),
        "text/markdown": f"```mermaid\n{flowchart}\n```",
        "text/vnd.mermaid": flowchart,
        "image/svg+xml": graph.draw("svg"),
    }


def test_a_notebook_shows_why_a_graph_has_no_picture():
    shown = made()._repr_mimebundle_()
    assert list(shown) == ["text/plain"]
    assert shown["text/plain"].startswith('<RootGraph "pair": 2 nodes, 3 edges>\nAX123')


def test_drawing_a_graph_imports_no_journal():
    import subprocess
    import sys

    code = (
        "import sys; from axil import RootGraph;"
        "graph = RootGraph('empty'); graph.create_edge('entry', 'exit');"
        "print(graph.build().draw('svg')[:4], graph.build().draw()[:5],"
        " 'axil_journals.journal' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True
    )
    assert done.stdout == "<svg empty False\n"


def test_a_routers_edges_say_which_values_lead_there():
    config = {"by": "text", "names": {"invoice": "a", "refund": ["a", "b"]}, "otherwise": "c"}
    node = NodeSpec(id="desk", use=ComponentRef(type="router", config=config))
    assert [_chosen(node, target) for target in "abcd"] == [
        "text = invoice | refund",
        "text = refund",
        "otherwise",
        "text = d",
    ]
