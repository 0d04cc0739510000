"""Workflows of other systems as data: nodes and edges, AML, and designs as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from masfactory.aml.design import Design, aml_to_graph_design, graph_design_to_aml_document
from masfactory.compatibility.errors import CompatibilityImportError
from masfactory.components.graphs.root_graph import RootGraph
from masfactory.components.vibe.compiler import compile_aml

COMPATIBILITY_OUT_DIR = Path("compatibility_out")
"""Where exports are written that were given no path: below the current folder."""

_BRANCHING = ("if-else", "question-classifier", "router", "switch", "condition", "conditional")
_NOTES = ("", "note", "custom-note", "noteNode")


@dataclass(frozen=True)
class ExternalNode:
    """A node of a workflow; ``raw`` is what the file says of it."""

    id: str
    kind: str
    label: str
    raw: dict[str, Any]


@dataclass(frozen=True)
class ExternalEdge:
    """An edge of a workflow."""

    source: str
    target: str
    source_handle: str | None = None
    target_handle: str | None = None
    raw: dict[str, Any] | None = None


@dataclass(frozen=True)
class GraphBlueprint:
    """A workflow: its nodes and edges."""

    nodes: tuple[ExternalNode, ...]
    edges: tuple[ExternalEdge, ...]
    metadata: dict[str, Any] | None = None


def is_dify_app_document(document: Mapping[str, Any]) -> bool:
    """Say whether a document is one of Dify's."""
    return isinstance(document.get("workflow"), Mapping) and "graph" in document["workflow"]


def is_langflow_document(document: Mapping[str, Any]) -> bool:
    """Say whether a document is one of Langflow's."""
    return isinstance(document.get("data"), Mapping) and "nodes" in document["data"]


def is_chatdev_workflow_document(document: Mapping[str, Any]) -> bool:
    """Say whether a document is one of ChatDev's."""
    return isinstance(document.get("graph"), Mapping) and "nodes" in document["graph"]


def workflow_export_to_blueprint(document: Mapping[str, Any]) -> GraphBlueprint:
    """Read a document: of Dify, Langflow or ChatDev, or ``{nodes, edges}``.

    Raises: CompatibilityImportError: it has no nodes.
    """
    graph: Any = document
    if is_dify_app_document(document):
        graph = document["workflow"]["graph"]
    elif is_langflow_document(document):
        graph = document["data"]
    elif is_chatdev_workflow_document(document):
        graph = document["graph"]
    nodes = [_node(each) for each in graph.get("nodes") or () if isinstance(each, Mapping)]
    nodes = [node for node in nodes if node.id and node.kind not in _NOTES[1:]]
    if not nodes:
        raise CompatibilityImportError(
            "a workflow: found no nodes, expected a list. Export the file again."
        )
    known = {node.id for node in nodes}
    edges = [_external(each) for each in graph.get("edges") or () if isinstance(each, Mapping)]
    return GraphBlueprint(
        tuple(nodes), tuple(e for e in edges if e.source in known and e.target in known)
    )


dify_document_to_blueprint = workflow_export_to_blueprint
langflow_document_to_blueprint = workflow_export_to_blueprint
chatdev_document_to_blueprint = workflow_export_to_blueprint


def blueprint_to_graph_design(blueprint: GraphBlueprint) -> Design:
    """Give a workflow as a design: every node passes its input on, as MASFactory's does.

    Nodes without in-edges are behind the entry, those without out-edges before the exit. What the
    file says of a node is in its attributes ``compat_…``.
    """
    names = _names(blueprint.nodes)
    nodes: list[Design] = []
    for node in blueprint.nodes:
        is_branching = node.kind.lower() in _BRANCHING
        raw = json.dumps(node.raw, ensure_ascii=False, sort_keys=True, default=str)
        facts = {"external_id": node.id, "kind": node.kind, "label": node.label, "raw": raw}
        made: Design = {"id": names[node.id], "name": names[node.id], "label": node.label}
        made["type"] = "Switch" if is_branching else "CustomNode"
        made["attributes"] = {f"compat_{name}": value for name, value in facts.items()}
        nodes.append(made | ({"switch_kind": "agent_switch"} if is_branching else {}))
    edges: dict[tuple[str, str], Design] = {}
    for edge in blueprint.edges:
        source, target = names[edge.source], names[edge.target]
        said: Design = {"source": source, "target": target, "keys": {}}
        if any(node["name"] == source and node["type"] == "Switch" for node in nodes):
            said |= {"condition": edge.source_handle or target, "condition_kind": "match"}
        edges[source, target] = said
    for node in nodes:
        name = node["name"]
        if all(target != name for _, target in edges):
            edges["ENTRY", name] = {"source": "ENTRY", "target": name, "keys": {}}
        if all(source != name for source, _ in edges):
            last: Design = {"source": name, "target": "EXIT", "keys": {}}
            if node["type"] == "Switch":
                last |= {"condition": "exit", "condition_kind": "match"}
            edges[name, "EXIT"] = last
    return {"nodes": nodes, "edges": list(edges.values())}


def blueprint_to_graph_design_document(blueprint: GraphBlueprint, *, source: str = "") -> Design:
    """Give a workflow as a design with what it came from."""
    noted = {"format": "graph_design", "source": source}
    return {
        "graph_design": blueprint_to_graph_design(blueprint),
        "compatibility_export": noted | dict(blueprint.metadata or {}),
    }


def blueprint_to_aml_document(blueprint: GraphBlueprint, *, source: str = "") -> str:
    """Give a workflow as AML."""
    return graph_design_to_aml_document(blueprint_to_graph_design(blueprint), source=source or None)


def blueprint_to_graph(blueprint: GraphBlueprint, *, name: str = "imported", model: Any = None):
    """Give a workflow as a graph that passes its input on; ``model`` judges at its branches."""
    graph = RootGraph(name)
    compile_aml(target_graph=graph, aml=blueprint_to_aml_document(blueprint), model=model)
    return graph


def document_to_aml(document: Mapping[str, Any], *, source: str = "") -> str:
    """Give a document of another system as AML."""
    return blueprint_to_aml_document(workflow_export_to_blueprint(document), source=source)


def document_to_graph_design(document: Mapping[str, Any], *, source: str = "") -> Design:
    """Give a document of another system as a design."""
    blueprint = workflow_export_to_blueprint(document)
    return blueprint_to_graph_design_document(blueprint, source=source)


dify_document_to_aml = langflow_document_to_aml = chatdev_document_to_aml = document_to_aml
dify_document_to_graph_design = langflow_document_to_graph_design = document_to_graph_design
chatdev_document_to_graph_design = document_to_graph_design
blueprint_to_graph_via_aml = blueprint_to_graph
blueprint_to_graph_design_document_via_aml = blueprint_to_graph_design_document

# -- files


def compatibility_out_dir() -> Path:
    """Give the folder of exports without a path."""
    return COMPATIBILITY_OUT_DIR


def default_aml_path(source: str = "workflow", input_path: str | Path | None = None) -> Path:
    """Give the path of an export as AML."""
    return COMPATIBILITY_OUT_DIR / f"{Path(input_path).stem if input_path else source}.aml"


def default_graph_design_path(
    source: str = "workflow", input_path: str | Path | None = None
) -> Path:
    """Give the path of an export as JSON."""
    return default_aml_path(source, input_path).with_suffix(".graph_design.json")


def write_aml(aml: str, path: str | Path) -> Path:
    """Write a document."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(aml, "utf-8")
    return target


def write_graph_design_json(design: Mapping[str, Any], path: str | Path) -> Path:
    """Write a design."""
    return write_aml(json.dumps(design, ensure_ascii=False, indent=2, default=str), path)


def export_aml_for_blueprint(blueprint: GraphBlueprint, path: str | Path, *, source: str = ""):
    """Write a workflow as AML."""
    return write_aml(blueprint_to_aml_document(blueprint, source=source), path)


def export_graph_design_for_blueprint(
    blueprint: GraphBlueprint, path: str | Path, *, source: str = ""
):
    """Write a workflow as a design."""
    return write_graph_design_json(
        blueprint_to_graph_design_document(blueprint, source=source), path
    )


def exported(
    document: Mapping[str, Any],
    source: str,
    *,
    input_path: Any = None,
    graph_design_path: str | Path | bool | None = None,
    aml_path: str | Path | bool | None = None,
) -> None:
    """Write a document where its reader was asked to: a path, or True for the usual one."""
    given = input_path if isinstance(input_path, (str, Path)) and len(str(input_path)) < 256 else ""
    place = given if "{" not in str(given) else ""
    if aml_path:
        path = default_aml_path(source, place) if aml_path is True else aml_path
        write_aml(aml_of(document, source), path)
    if graph_design_path:
        is_usual = graph_design_path is True
        path = default_graph_design_path(source, place) if is_usual else graph_design_path
        write_graph_design_json(aml_to_graph_design(aml_of(document, source)), path)


def aml_of(document: Mapping[str, Any], source: str) -> str:
    """Give a document of another system as AML."""
    return document_to_aml(document, source=source)


def _node(said: Mapping[str, Any]) -> ExternalNode:
    data: Mapping[str, Any] = said.get("data") or {}
    name = str(said.get("id") or said.get("name") or "")
    own = said.get("type") if "data" not in said else None
    kind = str(data.get("type") or own or said.get("kind") or "")
    label = said.get("label") or data.get("title") or data.get("display_name") or kind or name
    return ExternalNode(name, kind, str(label), dict(said))


def _external(said: Mapping[str, Any]) -> ExternalEdge:
    source = str(said.get("source") or said.get("from") or "")
    target = str(said.get("target") or said.get("to") or "")
    handles = (said.get("sourceHandle"), said.get("targetHandle"))
    first, second = (str(h) if isinstance(h, str) else None for h in handles)
    return ExternalEdge(source, target, first, second, dict(said))


def _names(nodes: Sequence[ExternalNode]) -> dict[str, str]:
    """Return names that AML takes, each once."""
    found: dict[str, str] = {}
    for node in nodes:
        text = node.label if node.label == node.kind else f"{node.kind}_{node.label}"
        name = slug = re.sub(r"[^A-Za-z0-9_-]+|-", "_", text).strip("_") or "node"
        number = 1
        while name in found.values():
            number += 1
            name = f"{slug}_{number}"
        found[node.id] = name
    return cast("dict[str, str]", found)
