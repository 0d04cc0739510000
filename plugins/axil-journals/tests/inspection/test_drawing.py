"""Laws of pictures: of a graph that was made in Python, and in a notebook."""

from __future__ import annotations

import xml.etree.ElementTree as ET
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
