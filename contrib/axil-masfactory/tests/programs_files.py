"""Programs of AML, designs, skills and other files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from masfactory import (
    Agent,
    CustomNode,
    Graph,
    Loop,
    NodeTemplate,
    RootGraph,
    VibeGraph,
    load_skill,
)

from .programs import Says, add, program, ran, single

AML = """<aml version="0.2" kind="graph" id="tried">
  <definitions><agents>
    <agent id="planner"><instructions>Plan it.</instructions></agent>
  </agents></definitions>
  <graph id="root" kind="root">
    <nodes>
      <agent id="plan" ref="#planner" label="Plan">
        <attributes><pull_keys mode="keys"><field name="task" description="what"/></pull_keys>
        <push_keys mode="keys"><field name="plan" type="string"/></push_keys></attributes>
      </agent>
      <logic_switch id="way"/>
      <custom_node id="short"/><custom_node id="long"/>
      <graph id="inner"><nodes><custom_node id="deep"/></nodes>
        <edges><edge from="entry" to="deep"/><edge from="deep" to="exit"/></edges></graph>
    </nodes>
    <edges>
      <edge from="entry" to="plan"><keys><field name="task" description="what"/></keys></edge>
      <edge from="plan" to="way"><keys><field name="plan"/></keys></edge>
      <edge from="way" to="short" if="len(message['plan']) &lt; 5">
        <keys><field name="plan"/></keys></edge>
      <edge from="way" to="long" if="len(message['plan']) &gt;= 5">
        <keys><field name="plan"/></keys></edge>
      <edge from="short" to="inner"/><edge from="long" to="inner"/>
      <edge from="inner" to="exit"/>
    </edges>
  </graph>
</aml>"""


@program
def a_document_of_aml_is_a_graph() -> Any:
    from masfactory.components.vibe.compiler import compile_aml

    model = Says("a plan")
    graph = RootGraph("g", attributes={"task": "T", "plan": ""})
    inner = graph.create_node(Graph, "v")
    compile_aml(target_graph=inner, aml=AML, model=model)
    graph.edge_from_entry(inner, {"task": ""})
    graph.edge_to_exit(inner, {})
    graph.build()
    return [
        *ran(graph, {"task": "T"}),
        [n.name for n in inner._nodes.values()],
        model.asked[0][0]["content"],
    ]


@program
def a_document_of_aml_is_data_and_a_design() -> Any:
    from masfactory.aml import aml_to_graph_design, graph_design_to_aml, parse_aml_document

    document = parse_aml_document(AML, strict=True)
    nodes = [
        [node.id, node.kind, node.pull_keys, node.push_keys] for node in document.root_graph.nodes
    ]
    edges = [[e.source, e.target, e.condition_kind, e.keys] for e in document.root_graph.edges]
    design = aml_to_graph_design(AML)
    inner = design.get("graph_design", design)
    again = parse_aml_document(graph_design_to_aml(inner))
    types = [[n["name"], n["type"], n["label"]] for n in inner["nodes"]]
    return [document.id, nodes, edges, types, [n.id for n in again.root_graph.nodes]]


@program
def a_design_of_json_is_a_graph() -> Any:
    from masfactory.components.vibe.compiler import compile_graph_design, normalize_graph_design

    design = {
        "graph_design": {
            "nodes": [
                {
                    "name": "loop",
                    "type": "Loop",
                    "label": "L",
                    "max_iterations": 2,
                    "push_keys": {"code": ""},
                    "sub_graph": {
                        "nodes": [
                            {
                                "name": "coder",
                                "type": "Action",
                                "label": "C",
                                "agent": "C",
                                "instructions": "Code.",
                                "input_fields": ["task"],
                                "output_fields": ["code"],
                            }
                        ],
                        "edges": [
                            {"source": "controller", "target": "coder"},
                            {"source": "coder", "target": "CONTROLLER"},
                        ],
                    },
                },
            ],
            "edges": [{"source": "START", "target": "loop"}, {"source": "loop", "target": "END"}],
        }
    }
    model = Says("the code")
    graph = RootGraph("g", attributes={"task": "T", "code": ""})
    inner = graph.create_node(Graph, "v")
    compile_graph_design(target_graph=inner, graph_design=design, model=model)
    graph.edge_from_entry(inner, {})
    graph.edge_to_exit(inner, {})
    graph.build()
    ends = [[e["source"], e["target"]] for e in normalize_graph_design(design)["edges"]]
    return [ran(graph, {})[0][1]["code"], len(model.asked), ends]


@program
def a_vibe_graph_reads_its_cache() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "kept.aml"
        cache.write_text(AML, "utf-8")
        template = NodeTemplate(
            VibeGraph,
            invoke_model=Says("plan"),
            build_model=Says(""),
            build_instructions="Plan.",
            build_cache_path=cache,
        )
        graph = RootGraph(
            "g",
            attributes={"task": "T", "plan": ""},
            nodes=[("v", template)],
            edges=[("entry", "v", {"task": ""}), ("v", "exit", {})],
        )
        graph.build()
        return ran(graph, {"task": "T"})


@program
def a_skill_is_part_of_the_instructions() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "notes"
        (place / "examples").mkdir(parents=True)
        (place / "SKILL.md").write_text(
            "---\nname: notes\ndescription: Takes notes.\n---\nNote it.\n"
        )
        (place / "form.md").write_text("A form.")
        (place / "examples" / "one.txt").write_text("An example.")
        (place / "data.csv").write_text("1")
        skill = load_skill(path=place)
        model = Says({"a": "x"})
        ran(
            single(Agent, ["q"], ["a"], instructions="I.", model=model, skills=[skill]),
            {"q": "why"},
        )
        facts = {n: v for n, v in skill.metadata().items() if n != "source_path"}
        names = [[f.name for f in files] for files in (skill.templates, skill.references)]
        return [facts, names, skill.render_section(), model.asked[0][0]["content"], skill.body]


@program
def a_graph_is_drawn() -> Any:
    from masfactory.visualizer.serialize import serialize_root_graph

    graph = RootGraph("g")
    loop = graph.create_node(Loop, "l", max_iterations=2)
    body = loop.create_node(CustomNode, "b", forward=add(1))
    loop.edge_from_controller(body, {"n": "a number"})
    loop.edge_to_controller(body, {"n": "a number"})
    graph.edge_from_entry(loop, {"n": ""})
    graph.edge_to_exit(loop, {"n": ""})
    graph.build()
    drawn: Any = serialize_root_graph(graph).graph
    parts = ("nodes", "nodeTypes", "edges", "subgraphs", "subgraphTypes", "subgraphParents")
    return [drawn[part] for part in parts]


@program
def a_workflow_of_dify_is_a_blueprint_and_aml() -> Any:
    from masfactory.aml import parse_aml_document
    from masfactory.compatibility import (
        dify_document_to_aml,
        dify_document_to_blueprint,
        is_dify_app_document,
    )

    document = {
        "kind": "app",
        "app": {"mode": "workflow", "name": "x"},
        "workflow": {
            "graph": {
                "nodes": [
                    {"id": "s", "data": {"type": "start", "title": "Start"}},
                    {"id": "m", "data": {"type": "llm", "title": "Ask it"}},
                    {"id": "e", "data": {"type": "end", "title": "End"}},
                ],
                "edges": [{"source": "s", "target": "m"}, {"source": "m", "target": "e"}],
            }
        },
    }
    blueprint = dify_document_to_blueprint(document)
    read = parse_aml_document(dify_document_to_aml(document))
    return [
        is_dify_app_document(document),
        [[n.id, n.kind, n.label] for n in blueprint.nodes],
        [[n.id, n.kind] for n in read.root_graph.nodes],
        sorted([e.source, e.target] for e in read.root_graph.edges),
    ]
