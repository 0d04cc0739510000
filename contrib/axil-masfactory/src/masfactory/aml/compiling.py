"""From a document of AML to nodes and edges."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from masfactory.adapters.memory import VectorMemory
from masfactory.aml.conditions import condition_of
from masfactory.aml.model import AmlError, AmlGraph, AmlNode, validate_aml_document
from masfactory.aml.reader import ClassReference, MemoryReference, Reference, parse_aml_document
from masfactory.components.agents.agent import Agent
from masfactory.components.controls.agent_switch import AgentSwitch
from masfactory.components.controls.logic_switch import LogicSwitch
from masfactory.components.custom_node import CustomNode
from masfactory.components.graphs.base_graph import BaseGraph
from masfactory.components.graphs.graph import Graph
from masfactory.components.graphs.loop import Loop
from masfactory.core.message import ParagraphMessageFormatter, TwinsFieldTextFormatter
from masfactory.utils.embedding import SimpleEmbedder

PYTHON = "python:"


class Compiling:
    """The making of nodes and edges, with what a program gives for it."""

    def __init__(
        self,
        model: Any,
        tools: Sequence[Callable[..., Any]] = (),
        given: Mapping[str, Any] | None = None,
        modules: Sequence[str] = (),
    ) -> None:
        """See ``compile_aml``."""
        self.model, self.given, self.modules = model, dict(given or {}), tuple(modules)
        self.tools = list(tools)

    def fill(self, graph: BaseGraph, meant: AmlGraph) -> None:
        """Make what a graph of a document has. Raises: AmlError."""
        for node in meant.nodes:
            out = [edge for edge in meant.edges if edge.source == node.id]
            routes = {edge.target: edge.condition or "" for edge in out if edge.condition}
            if node.kind.endswith("_switch") and len(routes) != len(out):
                raise AmlError(
                    f'AML, node "{node.id}": an edge of it has no condition. Write if= or match= '
                    "on every edge."
                )
            self.node(graph, node, routes)
        for edge in meant.edges:
            graph.create_edge(edge.source, edge.target, edge.keys or {})

    def node(self, graph: BaseGraph, node: AmlNode, routes: Mapping[str, str]) -> None:
        """Make one node."""
        where, name = f'AML, node "{node.id}"', node.id
        own: dict[str, Any] = {
            "pull_keys": node.pull_keys,
            "push_keys": node.push_keys,
            "attributes": self.values(node.attributes or {}, where) or None,
        }
        match node.kind:
            case "agent":
                own |= {part: {} for part in ("pull_keys", "push_keys") if own[part] is None}
                graph.create_node(Agent, name, **own, **self.agent(node))
            case "custom_node":
                graph.create_node(CustomNode, name, **own, forward=self.function(node, where))
            case "logic_switch":
                asked = {to: self.condition(text, where) for to, text in routes.items()}
                ends = {to.lower() if to.isupper() else to: ask for to, ask in asked.items()}
                graph.create_node(LogicSwitch, name, **own, routes=ends)
            case "agent_switch":
                spoken = {to.lower() if to.isupper() else to: text for to, text in routes.items()}
                graph.create_node(AgentSwitch, name, **own, model=self.model, routes=spoken)
            case "loop":
                loop = graph.create_node(Loop, name, **own, **self.ending(node, where))
                self.fill(loop, node.sub_graph or AmlGraph("", None, (), ()))
            case _:
                self.graph(graph, node, own, where)

    def graph(self, graph: BaseGraph, node: AmlNode, own: dict[str, Any], where: str) -> None:
        """Make a graph, of its nodes or of a class."""
        if not node.implementation:
            inner = graph.create_node(Graph, node.id, **own)
            if node.sub_graph is not None:
                self.fill(inner, node.sub_graph)
            return
        kind: Any = self.imported(node.implementation, where)
        made = graph.create_node(kind, node.id, **self.values(node.parameters, where))
        if node.pull_keys is not None:
            made.set_pull_keys(node.pull_keys)
        if node.push_keys is not None:
            made.set_push_keys(node.push_keys)
        made.set_attributes(own["attributes"] or {})

    def agent(self, node: AmlNode) -> dict[str, Any]:
        """Give the settings of an agent. Raises: AmlError: it names a tool that is not there."""
        settings, tools = dict(node.parameters), self.tools
        if "tools" in settings:
            known = {getattr(tool, "__name__", ""): tool for tool in self.tools}
            unknown = [name for name in settings["tools"] if name not in known]
            if unknown:
                raise AmlError(
                    f'node "{node.id}": there is no tool {", ".join(unknown)}; there are '
                    f"{', '.join(known) or 'none'}. Give it."
                )
            tools = [known[name] for name in settings.pop("tools")]
        return {
            **settings,
            "model": self.model,
            "instructions": node.instructions or f'Do the work of "{node.id}".',
            "prompt_template": node.prompt_template,
            "role_name": node.role_name,
            "formatters": [ParagraphMessageFormatter(), TwinsFieldTextFormatter()],
            "tools": tools,
        }

    def ending(self, node: AmlNode, where: str) -> dict[str, Any]:
        """Give the end of a loop."""
        ends: dict[str, Any] = {"max_iterations": node.max_iterations or 3}
        if node.terminate_condition_expr:
            stop = self.condition(node.terminate_condition_expr, where)
            ends["terminate_condition_function"] = stop
        if node.terminate_condition_prompt:
            ends |= {
                "model": self.model,
                "terminate_condition_prompt": node.terminate_condition_prompt,
            }
        return ends

    def condition(self, text: str, where: str) -> Callable[[Any, Any], bool]:
        """Give the function of a condition."""
        if text.startswith(PYTHON):
            return self.imported(text, where)
        return condition_of(text, where)

    def function(self, node: AmlNode, where: str) -> Callable[..., Any] | None:
        """Give the function of a node; ``builtin:noop`` is none: the input goes on."""
        named = node.forward
        return None if not named or named == "builtin:noop" else self.imported(named, where)

    def imported(self, name: str, where: str) -> Any:
        """Give what a document names in Python, if the program gave or allowed it.

        Raises: AmlError: it did not, or there is no such name.
        """
        if name in self.given:
            return self.given[name]
        path = name.removeprefix(PYTHON)
        module, colon, attribute = path.partition(":")
        if not colon:
            module, _, attribute = path.rpartition(".")
        if not any(module == each or module.startswith(f"{each}.") for each in self.modules):
            raise AmlError(
                f"{where}: found {name!r}, and code is not imported from a document unless the "
                f"program allows it. Give given={{{name!r}: …}}"
                + (f', or modules=["{module}"].' if name.startswith(PYTHON) else ".")
            )
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            if not hasattr(found, part):
                raise AmlError(f'{where}: the module {module} has no "{attribute}". Correct it.')
            found = getattr(found, part)
        return found

    def values(self, values: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Give values, with what the program gives for references."""
        return {name: self.resolved(value, where) for name, value in values.items()}

    def resolved(self, value: Any, where: str) -> Any:
        """Give one value. Raises: AmlError: nothing was given for a reference."""
        if isinstance(value, Mapping):
            return self.values(cast("Mapping[str, Any]", value), where)
        if isinstance(value, list):
            return [self.resolved(each, where) for each in cast("list[Any]", value)]
        if not isinstance(value, Reference):
            return value
        if value in self.given:
            return self.given[value]
        if isinstance(value, ClassReference):
            return self.imported(value, where)
        if value.startswith(PYTHON):
            return self.imported(value, where)()
        if isinstance(value, MemoryReference):
            made = VectorMemory(
                SimpleEmbedder(
                    int(value.facts.get("vocab_size") or 10000)
                ).get_embedding_function(),
                context_label=value.facts.get("context_label") or value,
            )
            return self.given.setdefault(value, made)
        if value.endswith("model"):
            return self.model
        raise AmlError(f'{where}: nothing was given for "{value}". Give given={{"{value}": …}}.')


def compile_aml(
    aml: str | Path,
    graph: BaseGraph,
    *,
    model: Any,
    tools: Sequence[Callable[..., Any]] = (),
    given: Mapping[str, Any] | None = None,
    modules: Sequence[str] = (),
) -> None:
    """Put the nodes and edges of a document into a graph; its agents ask ``model``.

    Args:
        aml: a text, or a file; imports and resources lie beside it.
        tools: what its agents may call.
        given: what the document refers to, by name: models, memories, functions.
        modules: modules from which its ``python:`` names are imported; none, if nothing is said.

    Raises: AmlError: it cannot be read, or something in it is unknown.
    """
    document = parse_aml_document(aml)
    validate_aml_document(document)
    compiling = Compiling(model, tools, given, modules)
    root = document.root_graph
    try:
        attributes = compiling.values(root.attributes, "AML, the root graph")
        if attributes:
            graph.set_attributes({**attributes, **graph.attributes})
        compiling.fill(graph, root)
    except (ValueError, TypeError) as error:
        raise AmlError(str(error)) from error
