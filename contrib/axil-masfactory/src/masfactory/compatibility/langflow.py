"""Langflow's exports as graphs: every node gives a text to those behind it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from masfactory.compatibility.blueprint import exported
from masfactory.compatibility.errors import CompatibilityImportError
from masfactory.compatibility.options import LangflowCompileOptions
from masfactory.compatibility.sources import (
    at,
    mapping_of,
    node_for_model,
    shown,
    working,
)
from masfactory.components.graphs.root_graph import RootGraph
from masfactory.core.node import Node
from masfactory.errors import Unsupported, also_in

__path__: list[str] = []  # ``masfactory.elsewhere`` has what is below it
__getattr__: Callable[[str], Any] = also_in("masfactory.compatibility", __name__)

Values = dict[str, Any]
_PLACE = re.compile(r"\{(\w+)\}")


def load_graph_from_langflow_json(
    source: str | Path | bytes,
    *,
    graph_name: str = "langflow_import",
    options: LangflowCompileOptions | None = None,
    graph_design_path: str | Path | bool | None = None,
    aml_path: str | Path | bool | None = None,
) -> RootGraph:
    """Give the graph of a flow that Langflow exported: its input is ``input``, its output
    ``output``.

    Raises: CompatibilityImportError: it has no nodes; Unsupported: a node of a kind that is not
    imported.
    """
    document = mapping_of(source, "Langflow document")
    nodes: Any = at(document, ["data", "nodes"])
    if not isinstance(nodes, list):
        raise CompatibilityImportError(
            "Langflow document: found no data.nodes, expected those of a flow. Export it again."
        )
    if aml_path or graph_design_path:
        exported(
            document,
            "langflow",
            input_path=source,
            graph_design_path=graph_design_path,
            aml_path=aml_path,
        )
    graph = RootGraph(re.sub(r"[^\w-]+", "_", graph_name))
    edges = cast("list[Values]", at(document, ["data", "edges"]) or [])
    return _imported(graph, cast("list[Values]", nodes), edges, options or LangflowCompileOptions())


def _imported(
    graph: RootGraph, nodes: list[Values], edges: list[Values], options: LangflowCompileOptions
) -> RootGraph:
    heads: dict[str, Node] = {}
    tails: dict[str, Node] = {}
    kept = [node for node in nodes if _kind(node) not in ("note", "noteNode")]
    for node in kept:
        name = _name(node["id"])
        sources = [
            (_field(edge), _name(edge["source"])) for edge in edges if edge["target"] == node["id"]
        ]
        heads[name], tails[name] = _made(graph, name, node, sources, options)
    for edge in edges:
        ends = tails[_name(edge["source"])], heads[_name(edge["target"])]
        if all(each.receiver is not ends[1] for each in ends[0].out_edges):
            graph.create_edge(*ends, {})
    return graph


def _made(
    graph: RootGraph,
    name: str,
    node: Values,
    sources: list[tuple[str, str]],
    options: LangflowCompileOptions,
) -> tuple[Node, Node]:
    kind, template = _kind(node), cast("Values", at(node, ["data", "node", "template"]) or {})

    def value(field: str, attributes: Mapping[str, Any]) -> Any:
        came = [shown(at(attributes, [s, "text"])) for f, s in sources if f == field]
        return "\n".join(came) if came else at(template, [field, "value"])

    if kind in ("ChatInput", "TextInput"):
        made = working(
            graph, name, lambda message, values: {name: {"text": message["input"]}}, writes=[name]
        )
        graph.edge_from_entry(made, {"input": "what the flow is asked"})
    elif kind in ("ChatOutput", "TextOutput"):
        made = working(
            graph, name, lambda message, values: {"output": shown(value("input_value", values))}
        )
        graph.edge_to_exit(made, {"output": "what the flow says"})
    elif kind in ("Prompt", "Prompt Template"):
        text = str(at(template, ["template", "value"]) or "")

        def prompt(message: Values, values: Values) -> Values:
            said = _PLACE.sub(lambda match: shown(value(match[1], values)), text)
            return {name: {"text": said}}

        made = working(graph, name, prompt, writes=[name])
    elif kind.endswith("Model") or kind in ("LanguageModelComponent", "LanguageModel"):
        model = options.resolve_model({"model_name": at(template, ["model_name", "value"])})
        return node_for_model(
            graph,
            name,
            model,
            lambda attributes: (
                shown(value("system_message", attributes)),
                shown(value("input_value", attributes)),
            ),
        )
    else:
        raise Unsupported(
            f'a node of Langflow of the kind "{kind}" ("{name}")',
            "Imported are ChatInput, TextInput, Prompt, language models, ChatOutput and "
            "TextOutput. Write the node as a CustomNode of axil.",
        )
    return made, made


def _kind(node: Values) -> str:
    return str(at(node, ["data", "type"]) or node.get("type") or "")


def _name(given: Any) -> str:
    return re.sub(r"[^\w-]+", "_", str(given), flags=re.ASCII)


def _field(edge: Values) -> str:
    handle: Any = at(edge, ["data", "targetHandle"]) or edge.get("targetHandle")
    if isinstance(handle, str) and "fieldName" in handle:
        try:
            handle = json.loads(handle.replace("œ", '"'))
        except ValueError:
            handle = None
    if isinstance(handle, Mapping):
        handle = at(cast("Mapping[str, Any]", handle), ["fieldName"])
    return str(handle or "input_value")
