"""Laws of graphs that are made in Python and named on a command line."""

from __future__ import annotations

import sys

import pytest

from axil import ConfigError, SpecError
from axil_files import python_target

GRAPH = """
from axil import RootGraph

print("printed while it is imported")


def shout(inputs):
    return {"message": inputs["message"].upper()}


def made():
    graph = RootGraph("shouting")
    node = graph.create_node(shout, name="shout")
    graph.edge_from_entry(node)
    graph.edge_to_exit(node)
    return graph


graph = made().build()
unbuilt = made()
number = 3
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    (tmp_path / "shouts.py").write_text(GRAPH)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize(
    "text",
    ["flow.yaml", "flows/a.json", "flow", "a:b:c.yaml", "C:/flow.yaml", "http://x/y", "-"],
)
def test_a_workflow_file_is_no_python_target(text):
    assert python_target(text) is None


def test_a_file_that_is_called_like_a_target_is_a_file(home):
    (home / "shouts:graph").write_text("{}")
    assert python_target("shouts:graph") is None


@pytest.mark.parametrize(
    "text", ["shouts.py:graph", "shouts:graph", "shouts.py:unbuilt", "shouts:made"]
)
def test_a_graph_is_loaded_from_a_file_or_a_module(home, text, capsys):
    target = python_target(text)
    assert target is not None
    assert target.load().invoke("hello")[0] == {"message": "HELLO"}
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "printed while it is imported\n")


def test_a_target_is_kept_under_a_name_that_holds_in_every_folder(home, monkeypatch):
    kept = python_target("shouts.py:graph").kept
    monkeypatch.chdir("/")
    assert python_target(kept).load().spec.id == "shouting"


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("shouts.py:grap", 'AX701 shouts.py:grap: there is no "grap" in it. Did you mean "graph"?'),
        (
            "shouts.py",
            "AX701 shouts.py: name a graph in it. It has graph, unbuilt: shouts.py:graph",
        ),
        (
            "shouts:number",
            'AX701 shouts:number: "number" is of the type int; expected a RootGraph. It ',
        ),
        (
            "nothing_here:graph",
            "AX701 nothing_here: no module of that name can be imported here. Check the name",
        ),
        ("gone.py:graph", "AX701 gone.py:graph: no such file."),
    ],
)
def test_what_is_no_graph_says_which_there_are(home, text, reported):
    with pytest.raises(ConfigError) as caught:
        python_target(text).load()
    assert str(caught.value).startswith(reported)


def test_a_file_that_fails_is_reported_with_its_line(home):
    (home / "broken.py").write_text("x = 1\ny = 1 / 0\n")
    with pytest.raises(ConfigError, match=r"broken.py:2: .* \(ZeroDivisionError"):
        python_target("broken.py:graph").load()


def test_problems_of_a_graph_keep_their_words(home):
    (home / "bad.py").write_text(
        "from axil import RootGraph\ngraph = RootGraph('bad')\n"
        "graph.create_node('literl', name='a')\ngraph.edge_from_entry('b')\n"
    )
    with pytest.raises(SpecError, match='no node "b"'):
        python_target("bad.py:graph").load()
