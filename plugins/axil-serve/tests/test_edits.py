"""Laws of edits in the text of a workflow file: an edit writes its place, and no other line."""

from __future__ import annotations

import difflib
from typing import Any

import pytest

from axil.plugin import default_registry
from axil_serve.drawing import drawing
from axil_serve.edits import edited
from axil_serve.errors import BadRequest

FILE = """\
# What it is for.
version: 1
vars: {MODEL: scripted}
graph:
  start: [draft]   # one
  nodes:
    # the first
    - id: draft
      type: agent
      config:
        model: ${MODEL}
        instructions: >-
          Write a text about what you get, and write it so that it can be read by people
          who have read nothing about it.

    - {id: look, type: switch, config: {routes: {draft: no, end: yes}}}

    - id: end      # the last
      type: literal
      config:
        content: 'It''s done'   # said at the end
  edges:
    - {from: draft, to: look}
    - from: look
      to: draft   # back
    - {from: look, to: end}
"""
GRAPH = ["graph"]


def changed(text: str, **edit: Any) -> tuple[list[str], list[str]]:
    """Return the lines that an edit takes away and adds."""
    lines = list(difflib.ndiff(text.split("\n"), edited(text, edit).split("\n")))
    return (
        [line[2:] for line in lines if line.startswith("- ")],
        [line[2:] for line in lines if line.startswith("+ ")],
    )


@pytest.mark.parametrize(
    ("edit", "less", "more"),
    [
        (
            {"do": "set", "path": ["graph", "nodes", 2, "config", "content"], "value": "Don't"},
            ["        content: 'It''s done'   # said at the end"],
            ["        content: 'Don''t'   # said at the end"],
        ),
        (
            {"do": "set", "path": ["graph", "nodes", 0, "config", "max_turns"], "value": 3},
            [],
            ["        max_turns: 3"],
        ),
        (
            {"do": "set", "path": ["graph", "nodes", 2, "config", "content"], "value": "a\nb"},
            ["        content: 'It''s done'   # said at the end"],
            ['        content: "a\\nb"   # said at the end'],
        ),
        (
            {"do": "set", "path": ["graph", "cycle_limits", "draft", "rounds"], "value": 4},
            [],
            ["  cycle_limits:", "    draft: {rounds: 4}"],
        ),
        (
            {"do": "set", "path": ["vars", "MODEL"], "value": "1e3"},
            ["vars: {MODEL: scripted}"],
            ['vars: {MODEL: "1e3"}'],
        ),
        (
            {"do": "append", "path": ["graph", "edges"], "value": {"from": "end", "to": "look"}},
            [],
            ["    - {from: end, to: look}"],
        ),
        (
            {"do": "append", "path": ["graph", "end"], "value": "end"},
            [],
            ["  end: [end]"],
        ),
        (
            {"do": "append", "path": ["graph", "nodes"], "value": {"id": "x", "type": "y: z"}},
            [],
            ["", "    - id: x", "      type: 'y: z'"],
        ),
        (
            {"do": "remove", "path": ["graph", "nodes", 0, "config", "model"]},
            ["        model: ${MODEL}"],
            [],
        ),
        (
            {"do": "remove", "path": ["graph", "start", 0]},
            ["  start: [draft]   # one"],
            ["  start: []   # one"],
        ),
        (
            {"do": "rename", "graph": GRAPH, "node": "draft", "name": "write"},
            [
                "  start: [draft]   # one",
                "    - id: draft",
                "    - {id: look, type: switch, config: {routes: {draft: no, end: yes}}}",
                "    - {from: draft, to: look}",
                "      to: draft   # back",
            ],
            [
                "  start: [write]   # one",
                "    - id: write",
                "    - {id: look, type: switch, config: {routes: {write: no, end: yes}}}",
                "    - {from: write, to: look}",
                "      to: write   # back",
            ],
        ),
        (
            {"do": "drop", "graph": GRAPH, "node": "end"},
            [
                "",
                "    - id: end      # the last",
                "      type: literal",
                "      config:",
                "        content: 'It''s done'   # said at the end",
                "    - {from: look, to: end}",
            ],
            [],
        ),
    ],
    ids=lambda each: (
        "-".join(map(str, [each["do"], *each.get("path", [])])) if "do" in each else ""
    ),
)
def test_an_edit_changes_its_place_alone(edit, less, more):
    assert changed(FILE, **edit) == (less, more)


def test_nodes_are_moved_into_a_group_as_they_are_written():
    text = edited(FILE, {"do": "group", "graph": GRAPH, "nodes": ["draft", "look"], "name": "work"})
    assert "          nodes:\n            - id: draft\n              type: agent\n" in text
    assert "                  Write a text about what you get" in text
    assert "            - from: look\n              to: draft   # back\n" in text
    assert "  start: [work]   # one" in text
    assert "    - {from: work, to: end}" in text
    document = default_registry().resolve("loaders", "yaml")(text, "f.yaml")
    drawn = drawing(document.data, document.lines)
    assert [(node["name"], node["level"]) for node in drawn["nodes"]] == [("work", 0), ("end", 1)]
    assert [node["name"] for node in drawn["nodes"][0]["inside"]["nodes"]] == ["draft", "look"]


def test_a_group_is_dissolved_into_what_it_was_made_of():
    grouped = edited(
        FILE, {"do": "group", "graph": GRAPH, "nodes": ["draft", "look"], "name": "work"}
    )
    made = edited(grouped, {"do": "ungroup", "graph": GRAPH, "node": "work"})
    lines = [sorted(filter(None, text.split("\n"))) for text in (FILE, made)]
    assert lines[0] == lines[1]  # the edges of the group come last
    load = default_registry().resolve("loaders", "yaml")
    first, again = (load(text, "f.yaml").data["graph"] for text in (FILE, made))
    assert first["nodes"] == again["nodes"]
    assert sorted(map(str, first["edges"])) == sorted(map(str, again["edges"]))
    assert (first["start"], "# one" in made) == (again["start"], True)
    whole = {"do": "group", "graph": GRAPH, "nodes": ["draft", "look", "end"], "name": "all"}
    ended = FILE.replace("  nodes:", "  end: [end]\n  nodes:", 1)
    made = edited(edited(ended, whole), {"do": "ungroup", "graph": GRAPH, "node": "all"})
    found = load(made, "f.yaml").data["graph"]
    assert (found["nodes"], found["edges"]) == (first["nodes"], first["edges"])
    own = grouped.replace(
        "          start: [draft]", "          limits: {firings: 3}\n          start: [draft]"
    )
    assert own != grouped
    for text, node in ((own, "work"), (FILE, "draft")):
        with pytest.raises(BadRequest, match="AX966"):
            edited(text, {"do": "ungroup", "graph": GRAPH, "node": node})


def test_json_stays_json():
    import json

    text = '{\n  "graph": {\n    "nodes": [\n      {"id": "a", "type": "b"}\n    ]\n  }\n}\n'
    path = ["graph", "nodes"]
    made = edited(text, {"do": "append", "path": path, "value": {"id": "c", "t": [True]}})
    assert made == text.replace('"b"}', '"b"},\n      {"id": "c", "t": [true]}')
    made = edited(made, {"do": "set", "path": [*path, 1, "t"], "value": None})
    assert json.loads(made)["graph"]["nodes"][1] == {"id": "c", "t": None}


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("a: [", {"do": "set", "path": ["a"], "value": 1}),
        ("a: &x 1\nb: *x\n", {"do": "set", "path": ["b"], "value": 2}),
        ("a: # why\n  b: 1\n", {"do": "set", "path": ["a"], "value": 2}),
        (FILE, {"do": "remove", "path": ["graph", "nodes", 9]}),
        (FILE, {"do": "set", "path": ["graph", "nodes", 9, "id"], "value": 1}),
        (FILE, {"do": "set", "path": "graph", "value": 1}),
        (FILE, {"do": "append", "path": ["version"], "value": 1}),
        (FILE, {"do": "rename", "graph": GRAPH, "node": "draft", "name": "end"}),
        (FILE, {"do": "group", "graph": GRAPH, "nodes": ["draft", "end"], "name": "g"}),
        (FILE, {"do": "write"}),
        (FILE, {"do": "set"}),
    ],
)
def test_an_edit_that_cannot_be_made_without_loss_is_refused(text, edit):
    with pytest.raises(BadRequest, match="AX966"):
        edited(text, edit)


def test_a_long_file_is_edited():
    nodes = "".join(f"    - {{id: n{at}, type: passthrough}} # {at}\n" for at in range(500))
    text = f"graph:\n  start: [n0]\n  nodes:\n{nodes}"
    made = edited(text, {"do": "set", "path": ["graph", "nodes", 499, "id"], "value": "last"})
    assert made == text.replace("n499", "last")
