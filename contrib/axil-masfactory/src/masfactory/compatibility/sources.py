"""Files of other systems, and the nodes that they have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from masfactory.adapters.model.chosen import askable
from masfactory.compatibility.errors import CompatibilityImportError
from masfactory.components.agents.dynamic_agent import DynamicAgent
from masfactory.components.custom_node import CustomNode
from masfactory.components.graphs.base_graph import BaseGraph
from masfactory.core.message import TwinsFieldTextFormatter
from masfactory.core.node import Node


def mapping_of(source: str | Path | bytes, what: str) -> dict[str, Any]:
    """Read a file, or a text, as a mapping: JSON or YAML.

    Raises: CompatibilityImportError: it is none, or is not there.
    """
    is_text = isinstance(source, bytes) or str(source).lstrip().startswith("{")
    if not is_text and "\n" not in str(source):
        if not Path(str(source)).is_file():
            raise CompatibilityImportError(
                f'{what} "{source}": found no file, expected one. Give its path.'
            )
        source = Path(str(source)).read_bytes()
    try:
        text = source.decode("utf-8") if isinstance(source, bytes) else str(source)
        read = json.loads(text) if text.lstrip().startswith("{") else _yaml(text)
    except (ValueError, RecursionError) as error:
        raise CompatibilityImportError(f"{what}: it cannot be read: {error}.") from error
    if not isinstance(read, dict):
        raise CompatibilityImportError(
            f"{what}: found a {type(read).__name__}, expected a mapping. Export the file again."
        )
    return cast("dict[str, Any]", read)


def _yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error).splitlines()[0]) from error


def working(
    graph: BaseGraph,
    name: str,
    work: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]],
    *,
    writes: Sequence[str] = (),
) -> CustomNode:
    """Add a node that calls ``work(message, attributes)`` and writes some of what it gives."""
    pushed = dict.fromkeys(writes, "")
    return graph.create_node(CustomNode, name=name, forward=work, push_keys=pushed)


class _Plain(DynamicAgent):
    """An agent whose prompt is only the message."""

    def _input_prompt(self) -> dict[str, Any]:
        return {"": self._prompt_template_format(self._prompt_template)}

    def _output_keys_prompt(self) -> dict[str, Any]:
        return {}


Prompting = Callable[[dict[str, Any]], tuple[str, str]]
"""From the attributes to a system's prompt and a message."""


def node_for_model(
    graph: BaseGraph, name: str, model: Any, prompting: Prompting
) -> tuple[Node, Node]:
    """Add the two nodes of a question to a model: its prompt, and the agent.

    What is said becomes ``{"text": …}`` in the attribute of the node's name.
    """

    def prompt(message: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
        system, text = prompting(attributes)
        return {"instructions": system or "You are a helpful assistant.", "text": text}

    before = graph.create_node(CustomNode, name=f"{name}_prompt", forward=prompt, push_keys={})
    agent = graph.create_node(
        _Plain,
        name=f"{name}_model",
        model=askable(model),
        prompt_template="{text}",
        formatters=TwinsFieldTextFormatter(),
        hide_unused_fields=True,
    )
    after = working(
        graph, name, lambda message, values: {name: {"text": message["said"]}}, writes=[name]
    )
    graph.create_edge(before, agent, {"instructions": "", "text": ""})
    graph.create_edge(agent, after, {"said": ""})
    return before, after


def at(values: Mapping[str, Any], path: list[str]) -> Any:
    """Give the value at a path of names, ``None`` where there is none."""
    found: Any = values
    for name in path:
        if not isinstance(found, Mapping):
            return None
        found = cast("Mapping[str, Any]", found).get(name)
    return found


def shown(value: Any) -> str:
    """Give a value as it is put into a text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
