"""AML 0.2: a document as nodes and edges of a graph.

<aml version="0.2" kind="graph" id="w"><definitions>
  <agents><agent id="writer"><instructions>…</instructions>
    <prompt_template>Topic: {topic}</prompt_template></agent></agents>
  <graphs><graph id="root" kind="root">
    <nodes><agent id="draft" ref="#writer"/></nodes>
    <edges><edge from="entry" to="draft"><keys><field name="topic"/></keys></edge>
      <edge from="draft" to="exit"><keys><field name="text"/></keys></edge></edges>
  </graph></graphs>
</definitions></aml>
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from masfactory.aml.conditions import condition_of
from masfactory.components.agents.agent import Agent
from masfactory.components.controls.agent_switch import AgentSwitch
from masfactory.components.controls.logic_switch import LogicSwitch
from masfactory.components.custom_node import CustomNode
from masfactory.components.graphs.base_graph import BaseGraph
from masfactory.components.graphs.graph import Graph
from masfactory.components.graphs.loop import Loop
from masfactory.core.message import ParagraphMessageFormatter, TwinsFieldTextFormatter

LARGEST_CHARACTERS = 1_000_000


class AmlError(ValueError):
    """A document that is no graph."""


def compile_aml(
    text: str, graph: BaseGraph, *, model: Any, tools: Sequence[Callable[..., Any]] = ()
) -> None:
    """Put the nodes and edges of a document into a graph; its agents ask ``model``.

    Raises: AmlError: it cannot be read, or something in it is unknown.
    """
    root = _read(text)
    kept = root.findall("./definitions/graphs/graph")
    chosen = next((each for each in kept if each.get("kind") == "root"), kept[0] if kept else None)
    if chosen is None:
        raise AmlError(
            "AML: found no graph in definitions/graphs, expected one of the kind root. Add it."
        )
    try:
        _Compiling(root, model, tools).fill(graph, chosen)
    except (ValueError, TypeError) as error:
        raise AmlError(str(error)) from error


def _read(text: str) -> Element:
    if len(text) > LARGEST_CHARACTERS or "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise AmlError(
            f"AML: expected at most {LARGEST_CHARACTERS} characters and no DOCTYPE. Leave it out."
        )
    try:
        root = ElementTree.fromstring(text)  # without entities, and not large
    except ElementTree.ParseError as error:
        raise AmlError(f"AML: it is no XML: {error}.") from error
    if root.tag != "aml":
        raise AmlError(
            f"AML: found the element {root.tag}, expected aml. Write the whole document."
        )
    return root


class _Compiling:
    def __init__(self, root: Element, model: Any, tools: Sequence[Callable[..., Any]]) -> None:
        self.model, self.tools = model, tools
        self.agents = {each.get("id"): each for each in root.findall("./definitions/agents/agent")}
        self.graphs = {each.get("id"): each for each in root.findall("./definitions/graphs/graph")}

    def fill(self, graph: BaseGraph, reported: Element) -> None:
        """Make what an element of a graph says."""
        edges = reported.findall("./edges/edge")
        for node in reported.findall("./nodes/*"):
            self.node(graph, node, [each for each in edges if each.get("from") == node.get("id")])
        for edge in edges:
            graph.create_edge(edge.get("from", ""), edge.get("to", ""), _keys(edge.find("keys")))

    def node(self, graph: BaseGraph, reported: Element, out: list[Element]) -> None:
        """Make one node."""
        name, where = reported.get("id", ""), f'AML, node "{reported.get("id")}"'
        own: dict[str, Any] = {"name": name, "attributes": _attributes(reported)}
        for keys in ("pull_keys", "push_keys"):
            if (said := reported.find(keys)) is not None:
                own[keys] = None if said.get("mode") == "all" else _keys(said)
        match reported.tag:
            case "agent":
                graph.create_node(Agent, **own, **self.agent(reported, where))
            case "custom_node":
                if reported.get("forward"):
                    raise AmlError(
                        f"{where}: found forward={reported.get('forward')!r}, expected none: "
                        "code is "
                        "not imported from a document. Make the node in Python."
                    )
                graph.create_node(CustomNode, **own)
            case "logic_switch":
                routes = {
                    each.get("to", ""): condition_of(each.get("if", ""), where)
                    for each in out
                    if each.get("if")
                }
                graph.create_node(LogicSwitch, **own, routes=_complete(routes, out, where))
            case "agent_switch":
                asked = {each.get("to", ""): each.get("match", "") for each in out}
                graph.create_node(AgentSwitch, **own, model=self.model, routes=asked)
            case "loop":
                made = graph.create_node(Loop, **own, **self.ending(reported, where))
                self.fill(made, reported)
            case "graph":
                inner = self.graphs.get(reported.get("ref", "").removeprefix("#"), reported)
                self.fill(graph.create_node(Graph, **own), inner)
            case other:
                raise AmlError(
                    f"{where}: found the kind {other}, expected agent, custom_node, logic_switch, "
                    "agent_switch, loop or graph. Use one of them."
                )

    def agent(self, reported: Element, where: str) -> dict[str, Any]:
        """Return the settings of an agent."""
        ref = reported.get("ref", "").removeprefix("#")
        meant = self.agents.get(ref) if ref else reported
        if meant is None:
            raise AmlError(
                f"{where}: there is no agent {ref!r}; there are "
                f"{', '.join(str(known) for known in self.agents)}."
            )
        return {
            "model": self.model,
            "instructions": (meant.findtext("instructions") or "").strip(),
            "prompt_template": (meant.findtext("prompt_template") or "").strip() or None,
            "role_name": meant.findtext("role_name") or reported.get("label"),
            "formatters": [ParagraphMessageFormatter(), TwinsFieldTextFormatter()],
            "tools": self.tools,
        }

    def ending(self, reported: Element, where: str) -> dict[str, Any]:
        """Return the end of a loop."""
        ends: dict[str, Any] = {"max_iterations": int(reported.get("max_iterations") or 10)}
        said = reported.find("terminate")
        if said is not None and said.get("if"):
            ends["terminate_condition_function"] = condition_of(said.get("if", ""), where)
        if said is not None and said.get("match"):
            ends |= {"model": self.model, "terminate_condition_prompt": said.get("match")}
        return ends


def _complete(routes: dict[str, Any], out: list[Element], where: str) -> dict[str, Any]:
    if routes and len(routes) != len(out):
        raise AmlError(f"{where}: an edge of it has no condition. Write if= on every edge.")
    return routes


def _keys(reported: Element | None) -> dict[str, str] | None:
    if reported is None:
        return None
    return {each.get("name", ""): each.get("description", "") for each in reported.findall("field")}


def _attributes(reported: Element) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for each in reported.findall("./attributes/*"):
        text = each.get("value") or (each.text or "").strip()
        try:
            found[each.get("name", "")] = json.loads(text)
        except ValueError:
            found[each.get("name", "")] = text
    return found or None
