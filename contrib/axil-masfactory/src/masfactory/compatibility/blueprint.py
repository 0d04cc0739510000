"""Workflows of other systems as data: nodes and edges, AML, and designs as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from masfactory.aml.design import Design, graph_design_to_aml_document
from masfactory.compatibility.errors import CompatibilityImportError
from masfactory.components.graphs.root_graph import RootGraph
from masfactory.components.vibe.compiler import compile_aml

COMPATIBILITY_OUT_DIR = Path("compatibility_out")
"""The folder of exports without a path, below the current one."""

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


def is_dify_app_document(doc: Mapping[str, Any]) -> bool:
    """Say whether a document is one of Dify's."""
    return isinstance(doc.get("workflow"), Mapping) and "graph" in doc["workflow"]


def is_langflow_document(doc: Mapping[str, Any]) -> bool:
    """Say whether a document is one of Langflow's."""
    return isinstance(doc.get("data"), Mapping) and "nodes" in doc["data"]


def is_chatdev_workflow_document(doc: Mapping[str, Any]) -> bool:
    """Say whether a document is one of ChatDev's."""
    return isinstance(doc.get("graph"), Mapping) and "nodes" in doc["graph"]


def workflow_export_to_blueprint(doc: Mapping[str, Any], **more: Any) -> GraphBlueprint:
    """Read a document: of Dify, Langflow or ChatDev, or ``{nodes, edges}``.

    Raises: CompatibilityImportError: it has no nodes.
    """
    del more  # where ChatDev's other files are: they are not read
    graph: Any = doc
    if is_dify_app_document(doc):
        graph = doc["workflow"]["graph"]
    elif is_langflow_document(doc):
        graph = doc["data"]
    elif is_chatdev_workflow_document(doc):
        graph = doc["graph"]
    nodes = [_node(each) for each in _listed(graph, "nodes")]
    nodes = [node for node in nodes if node.id and node.kind not in _NOTES[1:]]
    if not nodes:
        raise CompatibilityImportError(
            "a workflow: found no nodes, expected a list. Export the file again."
        )
    known = {node.id for node in nodes}
    edges = [_external(each) for each in _listed(graph, "edges")]
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


def blueprint_to_aml_document(
    blueprint: GraphBlueprint, *, source: str | None = None, **ids: str
) -> str:
    """Give a workflow as AML; ``ids``: ``document_id``, ``root_graph_id``."""
    return graph_design_to_aml_document(blueprint_to_graph_design(blueprint), source=source, **ids)


def blueprint_to_graph(
    blueprint: GraphBlueprint,
    *,
    graph_name: str = "imported",
    source: str | None = None,
    model: Any = None,
    tools: Sequence[Any] | None = None,
) -> RootGraph:
    """Give a workflow as a graph that passes its input on; ``model`` judges at its branches."""
    graph = RootGraph(graph_name)
    aml = blueprint_to_aml_document(blueprint, source=source)
    compile_aml(target_graph=graph, aml=aml, model=model, tools=tools)
    return graph


def document_to_aml(doc: Mapping[str, Any], *, source: str = "", **more: Any) -> str:
    """Give a document of another system as AML."""
    return blueprint_to_aml_document(
        workflow_export_to_blueprint(doc, **more), source=source or None
    )


def document_to_graph_design(doc: Mapping[str, Any], *, source: str = "", **more: Any) -> Design:
    """Give a document of another system as a design."""
    blueprint = workflow_export_to_blueprint(doc, **more)
    return blueprint_to_graph_design_document(blueprint, source=source)


dify_document_to_aml = langflow_document_to_aml = chatdev_document_to_aml = document_to_aml
dify_document_to_graph_design = langflow_document_to_graph_design = document_to_graph_design
chatdev_document_to_graph_design = document_to_graph_design
blueprint_to_graph_via_aml = blueprint_to_graph
blueprint_to_graph_design_document_via_aml = blueprint_to_graph_design_document

# -- files


def compatibility_out_dir(*, mkdir: bool = False) -> Path:
    """Give the folder of exports without a path, and make it."""
    if mkdir:
        COMPATIBILITY_OUT_DIR.mkdir(parents=True, exist_ok=True)
    return COMPATIBILITY_OUT_DIR


def default_aml_path(
    source: str, *, input_path: str | Path | None = None, stem: str | None = None
) -> Path:
    """Give the path of an export as AML."""
    name = stem or (Path(input_path).stem if input_path else source)
    return COMPATIBILITY_OUT_DIR / f"{name}.aml"


def default_graph_design_path(
    source: str, *, input_path: str | Path | None = None, stem: str | None = None
) -> Path:
    """Give the path of an export as JSON."""
    path = default_aml_path(source, input_path=input_path, stem=stem)
    return path.with_suffix(".graph_design.json")


def write_aml(path: str | Path, document: str) -> Path:
    """Write a document."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(document, "utf-8")
    return target


def write_graph_design_json(path: str | Path, document: Mapping[str, Any]) -> Path:
    """Write a design."""
    return write_aml(path, json.dumps(document, ensure_ascii=False, indent=2, default=str))


def export_aml_for_blueprint(
    blueprint: GraphBlueprint, path: str | Path, *, source: str | None = None, **ids: str
) -> Path:
    """Write a workflow as AML."""
    return write_aml(path, blueprint_to_aml_document(blueprint, source=source, **ids))


def export_graph_design_for_blueprint(
    blueprint: GraphBlueprint, path: str | Path, *, source: str = ""
) -> Path:
    """Write a workflow as a design."""
    return write_graph_design_json(
        path, blueprint_to_graph_design_document(blueprint, source=source)
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
    is_file = isinstance(input_path, Path) or "{" not in str(input_path or "{")
    place = input_path if is_file and isinstance(input_path, (str, Path)) else None
    blueprint = workflow_export_to_blueprint(document)
    if aml_path:
        usual = default_aml_path(source, input_path=place)
        export_aml_for_blueprint(blueprint, usual if aml_path is True else aml_path, source=source)
    if graph_design_path:
        usual = default_graph_design_path(source, input_path=place)
        path = usual if graph_design_path is True else graph_design_path
        export_graph_design_for_blueprint(blueprint, path, source=source)


def _listed(graph: Mapping[str, Any], part: str) -> list[Mapping[str, Any]]:
    return [each for each in graph.get(part) or () if isinstance(each, Mapping)]


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
    return found
