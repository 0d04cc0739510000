"""Laws of graphs in Python, as the command names them: module:graph, file.py:graph."""

from __future__ import annotations

import sys

import pytest

SHOUTS = """
from itertools import pairwise

from axil import RootGraph


async def ask(inputs, ctx):
    print("printed by a body")
    return {"message": inputs["message"] + await ctx.ask("Which end?")}


def shout(inputs):
    return {"message": inputs["message"].upper()}


def made(*bodies):
    graph = RootGraph("shouting")
    nodes = [graph.create_node(body, name=body.__name__) for body in bodies or (shout,)]
    for sender, receiver in pairwise(nodes):
        graph.create_edge(sender, receiver)
    graph.edge_from_entry(nodes[0])
    graph.edge_to_exit(nodes[-1])
    return graph


graph = made().build()
asking = made(ask, shout).build()
unbuilt = made()
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "shouts.py").write_text(SHOUTS)
    yield tmp_path
    sys.modules.pop("shouts", None)


@pytest.mark.parametrize("target", ["shouts:graph", "shouts.py:graph", "shouts.py:unbuilt"])
def test_a_graph_in_python_is_run_checked_and_drawn(axil, target):
    assert axil("run", target, "--input", "hello") == (0, "HELLO\n", "")
    assert axil("check", target) == (0, f"{target}: fine; 1 node, 2 edges\n", "")
    assert axil("show", target).out == ("shouting\n  in  → shout\n   0  shout  shout  → @exit\n")


def test_problems_of_a_graph_in_python_are_reported_at_once(axil, home):
    (home / "bad.py").write_text(
        "from axil import RootGraph\n\ngraph = RootGraph('bad')\n"
        "for name in 'ab':\n    graph.create_node('nothing', name=name)\n"
        "graph.edge_from_entry('a')\n"
    )
    done = axil("check", "bad.py:graph")
    assert done.code == 2
    assert done.out.count("AX301") == 2
    assert axil("check", "bad.py:grap").out.startswith(
        'error: AX701 bad.py:grap: there is no "grap" in it. Did you mean "graph"?'
    )


def test_a_graph_in_python_has_no_variables(axil):
    done = axil("run", "shouts:graph", "--set", "tone=dry")
    assert (done.code, "AX700 --set: shouts:graph is a graph in Python" in done.err) == (2, True)


def test_a_graph_in_python_stops_where_it_is_asked_to(axil, home):
    (home / "answers").write_text("go")
    done = axil("run", "shouts:graph", "--input", "a", "--break", "shout")
    assert (done.code, "shout is about to run" in done.err) == (3, True)
    ways = ("--break", "shout", "--answers", "answers")
    assert axil("run", "shouts:graph", "--input", "a", *ways).out == "A\n"


def test_a_run_of_a_graph_in_python_continues_with_leave(axil, home, monkeypatch):
    pytest.importorskip("axil_sqlite", reason="runs are kept by axil-sqlite")
    kept = ("--journal", home / "kept")
    paused = axil("run", "shouts.py:asking", "--input", "a", "--run-id", "r", *kept)
    assert paused.code == 3
    way = f"axil runs answer r ANSWER --journal {home / 'kept'}\n"
    assert way in paused.err
    (home / "away").mkdir()
    monkeypatch.chdir(home / "away")
    assert axil("runs", "answer", "r", "b", *kept).out == "AB\n"


def test_a_run_of_a_graph_in_python_says_that_its_file_changed(axil, home):
    pytest.importorskip("axil_sqlite", reason="runs are kept by axil-sqlite")
    kept = ("--journal", home / "kept")
    axil("run", "shouts.py:asking", "--input", "a", "--run-id", "r", *kept)
    (home / "shouts.py").write_text(SHOUTS.replace(".upper()", ".upper() + '!'"))
    refused = axil("runs", "answer", "r", "b", *kept)
    assert (refused.code, "AX700 --allow-code: the run is that of the graph" in refused.err) == (
        2,
        True,
    )
    done = axil("runs", "answer", "r", "b", "--allow", "code", *kept)
    assert done.out == "AB!\n"
    assert "shouts.py changed since the run began; a graph in Python goes on as it is" in done.err


def test_a_journal_cannot_say_that_a_graph_in_python_needs_no_leave(axil, home):
    """As one that came with a folder of somebody else's may."""
    pytest.importorskip("axil_sqlite", reason="runs are kept by axil-sqlite")
    from axil_journals import Entry
    from axil_sqlite import SqliteJournal

    kept = ("--journal", home / "kept")
    assert axil("run", "shouts.py:asking", "--input", "a", "--run-id", "r", *kept).code == 3
    journal = SqliteJournal(home / "kept")
    found = list(journal.entries("r"))
    writer = journal.open("q")
    for each in found:
        data = dict(each.data)
        if "origin" in data:
            data["origin"] = {**data["origin"], "allow_code": False}
        writer.append(Entry(each.kind, each.frame, each.node, each.ordinal, data))
    writer.close()
    journal.close()
    (home / "shouts.py").write_text("open('ran', 'w').close()\n" + SHOUTS)
    for command in (("answer", "q", "b"), ("resume", "q"), ("show", "q", "--at", "1")):
        refused = axil("runs", *command, *kept)
        assert refused.code == 2, refused
        assert "--allow code" in refused.err
        assert not (home / "ran").exists()


def test_the_output_of_a_conversation_in_the_state_is_its_last_message(axil, home):
    (home / "talk.py").write_text(
        "from axil import RootGraph\n"
        "from axil.plugin import message\n"
        "graph = RootGraph('talk', state='messages')\n"
        "said = {'messages': [message('Hello.', 'assistant')]}\n"
        "graph.create_node(lambda state: said, name='a')\n"
        "graph.edge_from_entry('a')\n"
        "graph.edge_to_exit('a')\n"
    )
    done = axil("run", "talk.py:graph", "--input", "hi")
    assert (done.code, done.out) == (0, "Hello.\n"), done.err
