"""Laws of pictures that are live in a notebook: with a stub of a display, and in IPython."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import types
from typing import Any

import pytest

from axil import Activation, Context, Graph, NodeFailed, RootGraph
from axil_journals.pictures.live import path_in_plan


class Display:
    """A stub of IPython with a kernel: the pictures that were shown, and how they changed."""

    def __init__(self) -> None:
        self.pictures: list[list[dict[str, str]]] = []
        self.kernel: Any = object()

    def display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        changes = [bundle]
        self.pictures.append(changes)
        return types.SimpleNamespace(update=lambda bundle, raw: changes.append(bundle))


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Display:
    shown = Display()
    ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: shown  # type: ignore[attr-defined]
    display.display = shown.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr("axil_journals.pictures.live._LEAST_SECONDS", 0)
    monkeypatch.setattr("axil_journals.pictures.live._SHARE", 0)
    return shown


def states(bundle: dict[str, str]) -> dict[str, str]:
    """Return the state of each node in an image, by its name."""
    boxes = re.findall(
        r'class="n(?: (\w+))?" [^>]*/>\n<text[^>]*>([^<]*)<', bundle["image/svg+xml"]
    )
    return {name: state for state, name in boxes}


ANSWER = {"second?1": 5}


def made() -> Any:
    graph = RootGraph("flow")
    inner = graph.create_node(Graph, name="inner")
    inner.create_node(lambda inputs: inputs, name="first")
    inner.edge_from_entry("first", ["n"])
    inner.edge_to_exit("first", ["n"])

    async def ask(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"n": await ctx.ask("more?")}

    graph.create_node(ask, name="second")
    graph.edge_from_entry(inner, ["n"])
    graph.create_edge(inner, "second", {"n": ""})
    graph.edge_to_exit("second", ["n"])
    return graph.build()


def test_a_graph_that_a_cell_shows_is_changed_by_its_runs(notebook: Display):
    graph = made()
    graph._ipython_display_()
    [picture] = notebook.pictures
    assert states(picture[0]) == {"first": "", "second": ""}
    assert set(picture[0]) == {"text/plain", "image/svg+xml"}
    result = graph.invoke({"n": 1}, answers=ANSWER)
    assert result.output == {"n": 5}
    seen = [states(bundle) for bundle in picture]
    assert seen[-1] == {"first": "done", "second": "done"}
    assert len(notebook.pictures) == 1


def test_a_run_shows_the_picture_that_no_cell_has_shown_and_a_question_in_it(notebook: Display):
    graph = made()
    assert asyncio.run(graph.run({"n": 1})).status == "paused"
    asyncio.run(graph.run({"n": 1}))
    [picture] = notebook.pictures
    seen = [states(bundle) for bundle in picture]
    assert seen[-1] == {"first": "done", "second": "waiting"}
    assert {"first": "", "second": ""} in seen[1:]  # the second run began


def test_a_node_is_seen_at_work(notebook: Display):
    graph = RootGraph("slow")

    async def work(inputs: dict[str, Any]) -> dict[str, Any]:
        async with asyncio.timeout(30):
            seen = notebook.pictures[0]
            while states(seen[-1]) != {"work": "running"}:  # noqa: ASYNC110  # of a stub
                await asyncio.sleep(0)
        raise ValueError("no")

    graph.create_node(work, name="work")
    graph.edge_from_entry("work", ["n"])
    graph.edge_to_exit("work", ["n"])
    with pytest.raises(NodeFailed, match="ValueError: no"):
        graph.build().invoke({"n": 1})
    assert states(notebook.pictures[0][-1]) == {"work": "failed"}


def test_where_there_is_no_kernel_a_graph_is_shown_as_ever(notebook: Display):
    graph = made()
    notebook.kernel = None
    with pytest.raises(NotImplementedError):
        graph._ipython_display_()
    with pytest.raises(NotImplementedError):
        RootGraph("empty")._ipython_display_()
    graph.invoke({"n": 1}, answers=ANSWER)
    assert notebook.pictures == []


IN_IPYTHON = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.displaypub import CapturingDisplayPublisher

shell = InteractiveShell.instance()
shell.display_pub = CapturingDisplayPublisher(parent=shell)
shell.kernel = object()
cells = '''import axil
graph = axil.RootGraph("flow")
node = graph.create_node(lambda inputs: inputs, name="only")
graph.edge_from_entry(node, ["n"])
graph.edge_to_exit(node, ["n"])
graph.build()''', "graph", 'done = graph.invoke({"n": 1})'
for cell in cells:
    shell.run_cell(cell, silent=False).raise_error()
for output in shell.display_pub.outputs:
    data = output["data"]
    shown = {"id": output["transient"]["display_id"], "update": output.get("update", False),
             "done": 'class="n done"' in data["image/svg+xml"]}
    sys.stderr.write(json.dumps(shown) + "\\n")
"""


def test_ipython_shows_a_graph_and_changes_its_picture(tmp_path: Any, monkeypatch: Any):
    pytest.importorskip("IPython")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", IN_IPYTHON], capture_output=True, text=True, timeout=120, check=True
    )
    built, shown, *changes = map(json.loads, done.stderr.splitlines())
    assert (built["update"], shown["update"]) == (False, False)
    assert changes[-1] == {"id": shown["id"], "update": True, "done": True}
    assert {change["id"] for change in changes} == {shown["id"]}


def test_the_path_of_an_activation_is_that_of_its_node_in_the_picture():
    assert path_in_plan(Activation(("cycle(a,b)", 0), "a")) == "a"
    assert path_in_plan(Activation(("g", "#try:1", "#inside"), "g")) == "g"
