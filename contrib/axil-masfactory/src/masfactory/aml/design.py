"""Designs of graphs as JSON (``graph_design``), and AML: each from the other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from axil_models import LenientJson
from masfactory.aml.model import (
    AmlDocument,
    AmlEdge,
    AmlError,
    AmlGraph,
    AmlNode,
    validate_aml_document,
)
from masfactory.aml.reader import AML_VERSION, parse_aml_document

Design = dict[str, Any]

_TYPES = {"agent": "Action", "custom_node": "CustomNode", "loop": "Loop", "graph": "Subgraph"}
_KINDS = {kind: name for name, kind in _TYPES.items()}
_SAME = (
    *("instructions", "prompt_template", "forward", "ref", "implementation", "max_iterations"),
    *("terminate_condition_prompt", "terminate_condition_expr", "pull_keys", "push_keys"),
)
"""Facts of a node that have one name in both forms."""
_SETTINGS = ("tools", "model_settings", "max_retries", "retry_delay", "retry_backoff")
_ENDS = {"START": "ENTRY", "END": "EXIT"}


def normalize_graph_design(graph_design: Any) -> Design:
    """Give a design as ``{nodes, edges}``, with one name for each fact.

    Args:
        graph_design: a dict, JSON with or without text around it, or a file; perhaps inside
            ``graph_design`` or ``graph``.

    Raises: AmlError: all that is wrong with it.
    """
    graph = design_graph(graph_design)
    validate_aml_document(AmlDocument("", AML_VERSION, graph, {}))
    return design_of(graph)


def design_graph(graph_design: Any) -> AmlGraph:
    """Read a design. Raises: AmlError: it is none."""
    return _graph(_inner(graph_design), "root", is_loop=False)


def aml_to_graph_design(source: str | Path, *, strict: bool = False) -> Design:
    """Give a document of AML as a design."""
    document = parse_aml_document(source, strict=strict)
    return {"graph_design": design_of(document.root_graph)}


def graph_design_to_aml_document(
    graph_design: Any,
    *,
    document_id: str = "masfactory.compatibility.graph",
    root_graph_id: str = "root",
    source: str | None = None,
) -> str:
    """Give a design as a document of AML. ``source`` is noted in it."""
    aml = Element("aml", {"version": AML_VERSION, "kind": "graph", "id": document_id})
    root = SubElement(
        SubElement(SubElement(aml, "definitions"), "graphs"),
        "graph",
        {"id": root_graph_id, "kind": "root"},
    )
    if source:
        SubElement(SubElement(root, "metadata"), "source").text = source
    _write(root, design_graph(graph_design))
    ElementTree.indent(aml)
    return ElementTree.tostring(aml, encoding="unicode")


graph_design_to_aml = graph_design_to_aml_document


def design_of(graph: AmlGraph) -> Design:
    """Give nodes and edges as a design."""
    nodes: list[Design] = []
    for node in graph.nodes:
        made: Design = {"id": node.id, "name": node.id, "label": node.label}
        made["type"] = _TYPES.get(node.kind, "Switch")
        if made["type"] == "Switch":
            made["switch_kind"] = node.kind
        if node.kind == "agent":
            made["agent"] = node.agent_ref or node.id
        made |= {fact: getattr(node, fact) for fact in _SAME if getattr(node, fact) is not None}
        if node.attributes:
            made["attributes"] = dict(node.attributes)
        if node.sub_graph is not None:
            made["sub_graph"] = design_of(node.sub_graph)
        nodes.append(made | node.parameters)
    edges: list[Design] = []
    for edge in graph.edges:
        said: Design = {"source": edge.source, "target": edge.target}
        if edge.condition:
            said |= {"condition": edge.condition, "condition_kind": edge.condition_kind or "match"}
        edges.append(said | {"keys": edge.keys or {}})
    return {"nodes": nodes, "edges": edges}


def _inner(given: Any) -> Mapping[str, Any]:
    """Return ``{nodes, edges}``, out of what is around it."""
    if isinstance(given, Path) or (isinstance(given, str) and "{" not in given):
        given = Path(given).read_text("utf-8")
    if isinstance(given, str):
        try:
            given = LenientJson().parse(given)
        except ValueError as error:
            raise AmlError(
                f"a design of a graph: found no JSON ({error}). Give an object."
            ) from error
    for _ in range(10):
        if not isinstance(given, Mapping):
            break
        inside = cast("Mapping[str, Any]", given)
        if isinstance(inside.get("nodes"), list) and isinstance(inside.get("edges"), list):
            return inside
        given = inside.get("graph_design", inside.get("graph"))
    raise AmlError("a design of a graph: found no nodes and edges, expected both. Give them.")


def _graph(said: Mapping[str, Any], name: str, *, is_loop: bool) -> AmlGraph:
    nodes = [_node(each, name) for each in said.get("nodes") or ()]
    edges = [_edge(each, is_loop) for each in said.get("edges") or ()]
    return AmlGraph(name, None, tuple(nodes), tuple(edges))


def _node(said: Mapping[str, Any], where: str) -> AmlNode:
    name, kind = str(said.get("name") or said.get("id") or ""), str(said.get("type"))
    if not name or kind not in (*_KINDS, "Switch"):
        raise AmlError(
            f'a design of a graph, {where}: found a node "{name}" of the type {kind}, expected a '
            f"name and one of {', '.join([*_KINDS, 'Switch'])}. Correct it."
        )
    facts: dict[str, Any] = {fact: said[fact] for fact in _SAME if said.get(fact) is not None}
    for keys, fields in (("pull_keys", "input_fields"), ("push_keys", "output_fields")):
        if keys in facts or fields in said:
            facts[keys] = _keys(facts.get(keys, said.get(fields)))
    if kind == "Loop" and said.get("terminate_condition"):
        facts.setdefault("terminate_condition_prompt", said["terminate_condition"])
    if kind in ("Loop", "Subgraph"):
        inner = cast("Mapping[str, Any]", said.get("sub_graph") or {})
        facts["sub_graph"] = _graph(inner, name, is_loop=kind == "Loop")
    if kind == "Action":
        facts["agent_ref"] = str(said.get("agent") or name)
        facts["parameters"] = {"tools": said.get("tools_allowed") or []} | {
            setting: said[setting] for setting in _SETTINGS if said.get(setting) is not None
        }
    switch = "logic_switch" if said.get("switch_kind") == "logic_switch" else "agent_switch"
    return AmlNode(
        id=name,
        kind=_KINDS.get(kind, switch),
        label=str(said.get("label") or name),
        attributes=said.get("attributes") or None,
        **facts,
    )


def _edge(said: Mapping[str, Any], is_loop: bool) -> AmlEdge:
    ends = ("CONTROLLER", "TERMINATE") if is_loop else ("ENTRY", "EXIT", "START", "END")
    source, target = (
        _ENDS.get(end.upper(), end.upper()) if end.upper() in ends else end
        for end in (str(said.get(part) or "").strip() for part in ("source", "target"))
    )
    condition = said.get("condition") or said.get("label")
    kind = None if condition is None else str(said.get("condition_kind") or "match")
    keys = _keys(said.get("keys", said.get("key")))
    return AmlEdge(source, target, condition and str(condition), kind, keys)


def _keys(given: Any) -> dict[str, str]:
    if isinstance(given, Mapping):
        several = cast("Mapping[str, Any]", given)
        return {str(name): str(said or "") for name, said in several.items()}
    return {str(name): "" for name in cast("Sequence[Any]", given or ())}


def _write(parent: Element, graph: AmlGraph) -> None:
    nodes, edges = SubElement(parent, "nodes"), SubElement(parent, "edges")
    for node in graph.nodes:
        facts = {"id": node.id, "label": node.label}
        named = ("forward", "ref", "implementation", "max_iterations")
        facts |= {n: str(v) for n in named if (v := getattr(node, n)) is not None}
        written = SubElement(nodes, node.kind, facts)
        for part in ("instructions", "prompt_template"):
            if getattr(node, part):
                SubElement(written, part).text = getattr(node, part)
        ends = {"match": node.terminate_condition_prompt, "if": node.terminate_condition_expr}
        if any(ends.values()):
            SubElement(
                written, "terminate", {name: str(text) for name, text in ends.items() if text}
            )
        _write_attributes(written, node)
        if node.sub_graph is not None:
            _write(written, node.sub_graph)
    for edge in graph.edges:
        loose = {"controller", "terminate", "entry", "exit"}
        ends = (
            end.lower() if end.lower() in loose and end.isupper() else end
            for end in (edge.source, edge.target)
        )
        said: dict[str, str] = dict(zip(("from", "to"), ends, strict=True))
        if edge.condition:
            said[edge.condition_kind or "match"] = edge.condition
        _write_keys(SubElement(SubElement(edges, "edge", said), "keys"), edge.keys or {})


def _write_attributes(said: Element, node: AmlNode) -> None:
    rules = {"pull_keys": node.pull_keys, "push_keys": node.push_keys}
    if not node.attributes and all(keys is None for keys in rules.values()):
        return
    attributes = SubElement(said, "attributes")
    for part, keys in rules.items():
        if keys is not None:
            _write_keys(SubElement(attributes, part, {"mode": "keys"}), keys)
    for name, value in (node.attributes or {}).items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        SubElement(attributes, "attribute", {"name": name, "value": text})


def _write_keys(said: Element, keys: Mapping[str, str]) -> None:
    for name, text in keys.items():
        SubElement(said, "field", {"name": name} | ({"description": text} if text else {}))
