"""Dify's workflow exports as graphs.

Every node writes its outputs into the attribute of its id; edges only say what comes after what.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from masfactory.compatibility.blueprint import exported
from masfactory.compatibility.errors import CompatibilityImportError
from masfactory.compatibility.options import DifyCompileOptions
from masfactory.compatibility.sources import (
    at,
    mapping_of,
    node_for_model,
    shown,
    working,
)
from masfactory.components.controls.logic_switch import LogicSwitch
from masfactory.components.graphs.root_graph import RootGraph
from masfactory.core.node import Node
from masfactory.errors import Unsupported, also_in

__path__: list[str] = []  # ``masfactory.elsewhere`` has what is below it
__getattr__: Callable[[str], Any] = also_in("masfactory.compatibility", __name__)

_PLACE = re.compile(r"\{\{#([^#{}]+)#\}\}")
_JINJA = re.compile(r"\{\{\s*(\w+)\s*\}\}")
Values = dict[str, Any]
Working = Callable[[Values], Values]


def load_graph_from_dify_yaml(
    source: str | Path | bytes,
    *,
    graph_name: str | None = None,
    options: DifyCompileOptions | None = None,
    graph_design_path: str | Path | bool | None = None,
    aml_path: str | Path | bool | None = None,
) -> RootGraph:
    """Give the graph of a workflow that Dify exported as YAML. Raises: as the next one."""
    return load_graph_from_dify_dict(
        mapping_of(source, "Dify document"),
        graph_name=graph_name,
        options=options,
        graph_design_path=graph_design_path,
        aml_path=aml_path,
        input_path=source,
    )


def load_graph_from_dify_dict(
    doc: Mapping[str, Any],
    *,
    graph_name: str | None = None,
    options: DifyCompileOptions | None = None,
    graph_design_path: str | Path | bool | None = None,
    aml_path: str | Path | bool | None = None,
    input_path: Any = None,
) -> RootGraph:
    """Give the graph of a workflow of Dify; ``aml_path`` and ``graph_design_path``: where it is
    also written, True: below the current folder.

    Raises: CompatibilityImportError: it has no graph; Unsupported: a node of a kind that is not
    imported.
    """
    if aml_path or graph_design_path:
        exported(
            doc,
            "dify",
            input_path=input_path,
            graph_design_path=graph_design_path,
            aml_path=aml_path,
        )
    nodes: Any = at(doc, ["workflow", "graph", "nodes"])
    if not isinstance(nodes, list):
        raise CompatibilityImportError(
            "Dify document: found no workflow.graph.nodes, expected those of a workflow or a "
            "chatflow. Export the app again."
        )
    name = graph_name or re.sub(r"[^\w-]+", "_", str(at(doc, ["app", "name"]) or "dify_import"))
    importing = _Importing(RootGraph(name), options or DifyCompileOptions())
    kept = [node for node in cast("list[Values]", nodes) if at(node, ["data", "type"])]
    edges = cast("list[Values]", at(doc, ["workflow", "graph", "edges"]) or [])
    return importing.imported(kept, edges)


class _Importing:
    """One import."""

    def __init__(self, graph: RootGraph, options: DifyCompileOptions) -> None:
        self.graph, self.options = graph, options
        self.heads: dict[str, Node] = {}
        self.tails: dict[str, Node] = {}

    def imported(self, nodes: Sequence[Values], edges: Sequence[Values]) -> RootGraph:
        """Make the graph."""
        branching = {
            str(node["id"]): _handles(node["data"])
            for node in nodes
            if node["data"]["type"] == "if-else"
        }
        for node in nodes:
            if str(node["id"]) not in branching:
                self._node(_name(node["id"]), node["data"])
        for node in nodes:
            if str(node["id"]) in branching:
                self._branch(node, [edge for edge in edges if edge["source"] == node["id"]])
        for edge in edges:
            ends = self.tails[_name(edge["source"])], self.heads[_name(edge["target"])]
            if all(each.receiver is not ends[1] for each in ends[0].out_edges):
                self.graph.create_edge(*ends, {})
        return self.graph

    def _node(self, name: str, data: Values) -> None:
        kind = str(data["type"])
        if kind == "llm":
            model = self.options.resolve_model(data.get("model") or {})
            pair = node_for_model(self.graph, name, model, lambda values: _prompts(data, values))
            self.heads[name], self.tails[name] = pair
            return
        if kind == "start":
            names = _names(data.get("variables")) or ["query"]
            node = working(
                self.graph,
                name,
                lambda message, values: {name: dict(message), "sys": dict(message)},
                writes=[name, "sys"],
            )
            self.graph.edge_from_entry(node, dict.fromkeys(names, ""))
        elif kind in ("end", "answer"):
            give = _output(kind, data)
            node = working(self.graph, name, lambda message, values: give(values))
            outputs = ["answer"] if kind == "answer" else _names(data.get("outputs"))
            self.graph.edge_to_exit(node, dict.fromkeys(outputs, ""))
        else:
            work = self._work(kind, name, data)
            node = working(
                self.graph, name, lambda message, values: {name: work(values)}, writes=[name]
            )
        self.heads[name] = self.tails[name] = node

    def _work(self, kind: str, name: str, data: Values) -> Working:
        """Return the body of a node of an ordinary kind."""
        options = self.options
        if kind == "template-transform":
            return lambda values: {"output": _rendered(data, values)}
        if kind in ("variable-aggregator", "variable-assigner"):
            paths = [[str(part) for part in path] for path in data.get("variables") or ()]
            return lambda values: {
                "output": next((v for path in paths if (v := _at(values, path)) is not None), None)
            }
        if kind == "tool" and options.tool_executor is not None:
            execute = options.tool_executor
            return lambda values: execute(data, _filled(data.get("tool_parameters"), values))
        if kind == "http-request" and options.http_client is not None:
            client = options.http_client
            return lambda values: client(_filled(data, values))
        if kind == "knowledge-retrieval" and options.knowledge_retriever is not None:
            retrieve = options.knowledge_retriever
            path = [str(part) for part in data.get("query_variable_selector") or ()]
            return lambda values: {"result": retrieve(data, shown(_at(values, path)))}
        raise Unsupported(
            f'a node of Dify of the kind "{kind}" ("{name}")',
            "Imported are start, llm, template-transform, if-else, variable-aggregator, answer and "
            "end, and with the options for them tool, http-request and knowledge-retrieval. Write "
            "the node as a CustomNode of axil.",
        )

    def _branch(self, node: Values, edges: Sequence[Values]) -> None:
        name, cases = _name(node["id"]), _handles(node["data"])
        wanted: dict[str, list[str]] = {}
        for edge in edges:
            receiver = _name(edge["target"])
            head = self.heads.get(receiver)
            known = receiver if head is None else head.name
            wanted.setdefault(known, []).append(str(edge.get("sourceHandle") or "true"))

        def taken(handles: list[str]) -> Callable[[Values, Values], bool]:
            return lambda message, values: _chosen(cases, values) in handles

        routes = {receiver: taken(handles) for receiver, handles in wanted.items()}
        switch = self.graph.create_node(LogicSwitch, name=name, routes=routes)
        self.heads[name] = self.tails[name] = switch


def _names(given: Any) -> list[str]:
    return [str(each["variable"]) for each in cast("list[Values]", given or [])]


def _name(given: Any) -> str:
    name = re.sub(r"[^\w-]+", "_", str(given), flags=re.ASCII)
    return f"{name}_" if name.lower() in ("entry", "exit") else name


def _at(values: Mapping[str, Any], path: Sequence[str]) -> Any:
    return at(values, [_name(path[0]), *path[1:]]) if path else None


def _text(template: Any, values: Values) -> str:
    """Return a text with ``{{#node.name#}}`` filled in."""
    return _PLACE.sub(lambda m: shown(_at(values, m[1].strip().split("."))), str(template or ""))


def _filled(given: Any, values: Values) -> Any:
    if isinstance(given, str):
        return _text(given, values)
    if isinstance(given, Mapping):
        reported = cast("Mapping[str, Any]", given)
        if reported.get("type") == "variable" and isinstance(reported.get("value"), list):
            return _at(values, [str(part) for part in reported["value"]])
        return {key: _filled(value, values) for key, value in reported.items()}
    if isinstance(given, list):
        return [_filled(value, values) for value in cast("list[Any]", given)]
    return given if given is not None else {}


def _prompts(data: Values, values: Values) -> tuple[str, str]:
    given: Any = data.get("prompt_template") or []
    several = cast("list[Values]", [given] if isinstance(given, Mapping) else given)
    system = [_text(each.get("text"), values) for each in several if each.get("role") == "system"]
    others = [_text(each.get("text"), values) for each in several if each.get("role") != "system"]
    asked = "\n".join(others) or shown(at(values, ["sys", "query"]))
    return "\n".join(system), asked


def _rendered(data: Values, values: Values) -> str:
    names = {
        str(each["variable"]): _at(values, [str(part) for part in each["value_selector"]])
        for each in data.get("variables") or ()
    }
    template = str(data.get("template") or "")
    strange = re.findall(r"\{%|\{\{[^}]*[^\w\s}{][^}]*\}\}", template)
    if strange:
        raise Unsupported(
            "Jinja's statements and filters in a template of Dify",
            "Only {{ name }} is filled in. Write the text in a CustomNode of axil.",
        )
    return _JINJA.sub(lambda m: shown(names.get(m[1])), template)


def _output(kind: str, data: Values) -> Working:
    if kind == "answer":
        return lambda values: {"answer": _text(data.get("answer"), values)}
    outputs = cast("list[Values]", data.get("outputs") or [])
    return lambda values: {
        str(each["variable"]): _at(values, [str(part) for part in each["value_selector"]])
        for each in outputs
    }


def _handles(data: Values) -> list[Values]:
    """Return the cases of an if-else node, by the handle from which an edge begins."""
    cases = cast("list[Values]", data.get("cases") or [])
    if cases:
        return [{**case, "case_id": case.get("case_id") or case.get("id")} for case in cases]
    return [
        {
            "case_id": "true",
            "logical_operator": data.get("logical_operator", "and"),
            "conditions": data.get("conditions") or [],
        }
    ]


def _chosen(cases: Sequence[Values], values: Values) -> str:
    for case in cases:
        held = [_holds(each, values) for each in case.get("conditions") or ()]
        if any(held) if case.get("logical_operator") == "or" else all(held):
            return str(case["case_id"])
    return "false"


def _holds(condition: Values, values: Values) -> bool:
    path = [str(part) for part in condition.get("variable_selector") or ()]
    found, wanted = _at(values, path), _filled(condition.get("value"), values)
    operator = str(condition.get("comparison_operator"))
    text, expected = shown(found), shown(wanted)
    asks: dict[str, Callable[[], bool]] = {
        "contains": lambda: expected in text,
        "not contains": lambda: expected not in text,
        "start with": lambda: text.startswith(expected),
        "end with": lambda: text.endswith(expected),
        "is": lambda: text == expected,
        "is not": lambda: text != expected,
        "empty": lambda: not found,
        "not empty": lambda: bool(found),
        "null": lambda: found is None,
        "not null": lambda: found is not None,
        "exists": lambda: found is not None,
        "not exists": lambda: found is None,
        "=": lambda: float(text) == float(expected),
        "≠": lambda: float(text) != float(expected),
        ">": lambda: float(text) > float(expected),
        "<": lambda: float(text) < float(expected),
        "≥": lambda: float(text) >= float(expected),
        "≤": lambda: float(text) <= float(expected),
    }
    if operator not in asks:
        raise Unsupported(
            f'the comparison "{operator}" of Dify',
            f"Known are {', '.join(asks)}. Write the choice as a LogicSwitch of axil.",
        )
    return asks[operator]()
