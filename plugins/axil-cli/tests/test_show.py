"""Laws of ``axil show``."""

from __future__ import annotations

import io
import re
from itertools import pairwise

import pytest

from axil import EdgeSpec, GraphSpec, NodeSpec
from axil.plugin import compile_spec
from axil_journals import as_mermaid, as_text, escaped, walk_plan

EDGES = [
    "a b",
    {"from": "b", "to": "a", "condition": "yes"},
    "b c",
    {"from": "a", "to": "c", "trigger": False},
]


@pytest.fixture
def looping(flow):
    return flow(
        ["a echo", "b echo", "c echo"], EDGES, id="looping", description="Turns.", end=["c"]
    )


def test_text_has_a_line_for_each_edge_and_folds_cycles(axil, looping):
    assert axil("show", looping).out == (
        "looping: Turns.\n"
        "  in  → a\n"
        "   0  ⟳ cycle(a,b)  entered at a; at most 100 rounds, then limited\n"
        "       0  a  echo  → b\n"
        "                   ⇢ c\n"
        "       1  b  echo  ↺ a  [yes]\n"
        "                   ↗ c\n"
        "   1  c  echo  ⇢ @exit\n"
    )


def test_signs_that_a_terminal_lacks_are_replaced(axil, looping, monkeypatch):
    import sys

    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    axil("show", looping)
    assert b"0  b  echo" not in raw.getvalue()
    assert b"<- a  [yes]" in raw.getvalue()


LINE = re.compile(
    r"""flowchart\ TD
    | \s*subgraph\ s\d+\ \["[^"\n]+"\]
    | \s*end
    | \s*g\d+(?:in|out)\(\["(?:input|output|in|out)"\]\)
    | \s*g\d+n\d+\["[^"\n]+"\]
    | \s*g\d+(?:in|out|n\d+)\ (?:-->|-\.->)(?:\|"[^"|\n]+"\|)?\ g\d+(?:in|out|n\d+)
    """,
    re.VERBOSE,
)


def sound(lines):
    """Check that every line is one that mermaid reads, boxes are closed, and ids are declared
    before they are used.
    """
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    assert sum(line.strip().startswith("subgraph") for line in lines) == sum(
        line.strip() == "end" for line in lines
    )
    declared = {
        match[1] for line in lines if (match := re.match(r"\s*(g\d+(?:in|out|n\d+))[\[(]", line))
    }
    used = {
        end
        for line in lines
        if " --> " in line or "-->|" in line or "-.->" in line
        for end in re.findall(r"\bg\d+(?:in|out|n\d+)\b", re.sub(r'"[^"]*"', "", line))
    }
    assert used <= declared


def test_mermaid_has_a_box_for_each_cycle_and_says_conditions(axil, looping):
    lines = axil("show", looping, "--format", "mermaid").out.splitlines()
    sound(lines)
    assert '    subgraph s1 ["cycle(a,b): entered at a; at most 100 rounds, then limited"]' in lines
    assert '  g0n1 -->|"yes"| g0n0' in lines
    assert "  g0n0 -.-> g0n2" in lines


@pytest.mark.parametrize(
    "name",
    [
        "end",
        "graph",
        'a"b',
        "a]b",
        "<b>",
        "a#35;",
        "`x`",
        "a|b",
        "-->",
        "日本",
        "o--o",
        "a\nb",
        "%%x",
    ],
)
def test_mermaid_admits_any_name(name):
    edges = (
        EdgeSpec(source="@entry", target=name),
        EdgeSpec(source=name, target="z", keys={name: ""}),
        EdgeSpec(source="z", target="@exit"),
    )
    spec = GraphSpec(
        id=name,
        nodes=(
            NodeSpec(id=name, body=lambda inputs: inputs),
            NodeSpec(id="z", body=lambda inputs: inputs),
        ),
        edges=edges,
        payload="fields",
    )
    sound(list(as_mermaid(compile_spec(spec))))


def test_labels_are_escaped():
    assert escaped('"quoted" #1') == "#quot;quoted#quot; #35;1"
    assert escaped("") == " "


def test_an_inner_graph_is_a_box_with_its_own_ends():
    import axil

    g = axil.RootGraph("outer")
    inner = g.create_node(axil.Graph, name="inner")
    work = inner.create_node(lambda inputs: inputs, name="work")
    inner.edge_from_entry(work)
    inner.edge_to_exit(work)
    g.edge_from_entry(inner)
    g.edge_to_exit(inner, when=lambda payload: True)
    plan = g.build().plan
    lines = list(as_mermaid(plan))
    sound(lines)
    assert "  g0in --> g1in" in lines
    assert '  g1out -->|"condition"| g0out' in lines
    assert list(as_text(plan))[2:5] == [
        "   0  inner  Graph  → @exit  [condition]",
        "      in  → work",
        "       0  work  function  → @exit",
    ]


def test_a_loop_is_a_box_in_a_box():
    import axil
    import axil_control

    g = axil.RootGraph("outer")
    loop = g.create_node(axil_control.Loop, name="loop", max_iterations=3)
    work = loop.create_node(lambda inputs: inputs, name="work")
    loop.edge_from_controller(work)
    loop.edge_to_controller(work)
    g.edge_from_entry(loop)
    g.edge_to_exit(loop)
    plan = g.build().plan
    sound(list(as_mermaid(plan)))
    kinds = [(step.scope.kind, step.scope.name) for step in walk_plan(plan) if step.kind == "open"]
    assert kinds == [("graph", "outer"), ("graph", "loop"), ("cycle", "cycle(controller,work)")]


def test_deep_nesting_needs_no_recursion():
    names = [f"n{i}" for i in range(200)]
    edges = [EdgeSpec(source="@entry", target=names[0])]
    edges += [EdgeSpec(source=a, target=b) for a, b in pairwise(names)]
    edges += [EdgeSpec(source=names[-1], target=name) for name in names[:-1]]
    spec = GraphSpec(
        id="deep",
        nodes=tuple(NodeSpec(id=name, body=lambda inputs: inputs) for name in names),
        edges=tuple(edges),
        payload="fields",
    )
    plan = compile_spec(spec)
    assert max(step.scope.depth for step in walk_plan(plan)) > 150
    sound(list(as_mermaid(plan)))


def test_json_is_the_plan_as_data(axil, looping):
    data = axil("show", looping, "--format", "json").data
    assert data["graph"] == "looping"
    whole, cycle = data["scopes"]
    assert [node["name"] for node in whole["nodes"]] == ["cycle(a,b)", "c"]
    assert whole["entry"] == [{"from": "@entry", "to": "a", "trigger": True, "label": ""}]
    assert (cycle["kind"], cycle["in"], cycle["entries"]) == (
        "cycle",
        0,
        [{"node": "a", "rounds": 100, "at_limit": "limited"}],
    )
    b = cycle["nodes"][1]
    assert [(edge["to"], edge["leads"], edge["label"]) for edge in b["edges"]] == [
        ("a", "back", "yes"),
        ("c", "out", ""),
    ]


def test_what_the_environment_held_is_not_shown(axil, flow, monkeypatch):
    monkeypatch.setenv("API_KEY", "sk-secret")
    file = flow([{"id": "a", "type": "say", "config": {"text": "${API_KEY}"}}])
    assert "sk-secret" not in axil("show", file, "--format", "json").out
    assert "--allow env:API_KEY" in axil("run", file).err
    assert axil("run", file, "--allow", "env:API_KEY").out == "${API_KEY}\n"


class Around:
    """A wrapper that leaves the body alone."""

    def __init__(self, n=1):
        self.n = n

    def wrap(self, body, node):
        return body


def test_wrappers_are_marks_on_their_node(axil, flow, registry):
    registry.register("wrappers", "around", Around)
    file = flow([{"id": "a", "type": "echo", "wrappers": [{"type": "around", "config": {"n": 3}}]}])
    assert "0  a  echo × around" in axil("show", file).out
    assert '["a<br/>echo × around"]' in axil("show", file, "--format", "mermaid").out
    node = axil("show", file, "--format", "json").data["scopes"][0]["nodes"][0]
    assert node["wrappers"] == [{"type": "around", "config": {"n": 3}}]


def test_a_workflow_that_cannot_run_here_is_drawn_all_the_same(axil, flow, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    inner = {"nodes": [{"id": "x", "type": "no_such_type"}], "start": "x"}
    nodes = [
        "a no_such_type",
        {"id": "b", "type": "say", "config": {"wrong": "${NO_SUCH_KEY}"}},
        {"id": "c", "type": "subgraph", "config": {"type": "config", "config": inner}},
    ]
    edges = [{"from": "a", "to": "b", "condition": "no_such_condition"}, "b a", "b c"]
    drawn = axil("show", flow(nodes, edges, id="g", end=["c"]))
    assert (drawn.code, drawn.err.split(":")[0]) == (0, "warning")
    assert "cycle(a,b)" in drawn.out
    assert "a  no_such_type  → b  [no_such_condition]" in drawn.out


def test_a_file_whose_shape_is_wrong_cannot_be_drawn(axil, flow):
    refused = axil("show", flow(["a say"], ["a nowhere"]))
    assert (refused.code, refused.out) == (2, "")
    assert 'no node "nowhere"' in refused.err
