"""Laws of edits in the text of a workflow file: an edit writes its place, and no other line."""

from __future__ import annotations

import difflib
import textwrap
from typing import Any

import pytest

from axil import SpecError
from axil_files import EditError, edit_text, parse_yaml

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
    lines = list(difflib.ndiff(text.split("\n"), edit_text(text, edit).split("\n")))
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


def test_texts_of_several_lines_and_collections_are_replaced_as_a_whole():
    text = textwrap.dedent("""\
        a: |
          one
          two

        # of b
        b:
          - x   # one
          - y
        # behind
        c: 3
        """)
    for path, value in ((["a"], "uno\ndue"), (["b"], [1])):
        text = edit_text(text, {"do": "set", "path": path, "value": value})
    assert text == "a: |-\n  uno\n  due\n\n# of b\nb: [1]\n# behind\nc: 3\n"


def test_nodes_are_moved_into_a_group_as_they_are_written():
    text = edit_text(
        FILE, {"do": "group", "graph": GRAPH, "nodes": ["draft", "look"], "name": "work"}
    )
    assert "          nodes:\n            - id: draft\n              type: agent\n" in text
    assert "                  Write a text about what you get" in text
    assert "            - from: look\n              to: draft   # back\n" in text
    assert "  start: [work]   # one" in text
    assert "    - {from: work, to: end}" in text
    graph = parse_yaml(text, "f.yaml").data["graph"]
    assert [node["id"] for node in graph["nodes"]] == ["work", "end"]
    assert [node["id"] for node in graph["nodes"][0]["config"]["config"]["nodes"]] == [
        "draft",
        "look",
    ]


def test_a_group_is_dissolved_into_what_it_was_made_of():
    grouped = edit_text(
        FILE, {"do": "group", "graph": GRAPH, "nodes": ["draft", "look"], "name": "work"}
    )
    made = edit_text(grouped, {"do": "ungroup", "graph": GRAPH, "node": "work"})
    lines = [sorted(filter(None, text.split("\n"))) for text in (FILE, made)]
    assert lines[0] == lines[1]  # the edges of the group come last
    first, again = (parse_yaml(text, "f.yaml").data["graph"] for text in (FILE, made))
    assert first["nodes"] == again["nodes"]
    assert sorted(map(str, first["edges"])) == sorted(map(str, again["edges"]))
    assert (first["start"], "# one" in made) == (again["start"], True)
    whole = {"do": "group", "graph": GRAPH, "nodes": ["draft", "look", "end"], "name": "all"}
    ended = FILE.replace("  nodes:", "  end: [end]\n  nodes:", 1)
    made = edit_text(edit_text(ended, whole), {"do": "ungroup", "graph": GRAPH, "node": "all"})
    found = parse_yaml(made, "f.yaml").data["graph"]
    assert (found["nodes"], found["edges"]) == (first["nodes"], first["edges"])
    own = grouped.replace(
        "          start: [draft]", "          limits: {firings: 3}\n          start: [draft]"
    )
    assert own != grouped
    for text, node in ((own, "work"), (FILE, "draft")):
        with pytest.raises(EditError, match="AX191"):
            edit_text(text, {"do": "ungroup", "graph": GRAPH, "node": node})


def test_json_stays_json():
    import json

    text = '{\n  "graph": {\n    "nodes": [\n      {"id": "a", "type": "b"}\n    ]\n  }\n}\n'
    path = ["graph", "nodes"]
    made = edit_text(text, {"do": "append", "path": path, "value": {"id": "c", "t": [True]}})
    assert made == text.replace('"b"}', '"b"},\n      {"id": "c", "t": [true]}')
    made = edit_text(made, {"do": "set", "path": [*path, 1, "t"], "value": None})
    assert json.loads(made)["graph"]["nodes"][1] == {"id": "c", "t": None}


def test_json_may_be_indented_by_tabs():
    text = '{\n\t"a": {\n\t\t"b": 1\n\t}\n}\n'
    assert edit_text(text, {"do": "set", "path": ["a", "b"], "value": 2}) == text.replace("1", "2")


@pytest.mark.parametrize(
    ("edit", "more"),
    [
        ({"path": ["b"], "value": 2}, ["b: 2"]),
        ({"path": ["c", "z"], "value": 3}, ["  z: 3"]),
        ({"path": ["c", "y"], "value": 3}, ["  y: 3"]),
    ],
)
def test_what_stands_beside_an_alias_is_edited(edit, more):
    text = "a: &x {y: 1}\nb: *x   # as a\nc:\n  <<: *x\nd: 1\n"
    assert changed(text, do="set", **edit)[1] == [
        f"{line}   # as a" if line.startswith("b") else line for line in more
    ]


def test_aliases_of_aliases_are_counted_before_anything_is_compared():
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30)]
    text = "\n".join(["l0: &l0 [x]", *levels, "a: 1\n"])
    with pytest.raises(SpecError, match="AX144"):
        edit_text(text, {"do": "set", "path": ["a"], "value": 2})


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("a: [", {"do": "set", "path": ["a"], "value": 1}),
        ("a: &x {y: 1}\nb: *x\n", {"do": "set", "path": ["b", "y"], "value": 2}),
        ("a: &x {y: 1}\nb: *x\n", {"do": "set", "path": ["a", "y"], "value": 2}),
        ("a: &x {y: 1}\nb: *x\n", {"do": "remove", "path": ["a"]}),
        ("a: &x [1]\nb: *x\n", {"do": "append", "path": ["a"], "value": 2}),
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
    with pytest.raises(EditError, match="AX191"):
        edit_text(text, edit)


def test_a_long_file_is_edit_text():
    nodes = "".join(f"    - {{id: n{at}, type: passthrough}} # {at}\n" for at in range(500))
    text = f"graph:\n  start: [n0]\n  nodes:\n{nodes}"
    made = edit_text(text, {"do": "set", "path": ["graph", "nodes", 499, "id"], "value": "last"})
    assert made == text.replace("n499", "last")
