"""Descriptions of workflows that a model writes, and the routers between their nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel

from evofabric.core.factory import BaseComponent, safe_get_attr
from evofabric.core.graph import GraphEngine

ROUTE_PATTERN = "::TO::{target}::"
"""The words with which a node's model hands over."""


def extract_text_between(text: str, start: str, end: str) -> str | None:
    """Give what is between two texts; None: they are not there."""
    _, found, rest = text.partition(start)
    inner, closed, _ = rest.partition(end)
    return inner if found and closed else None


def generate_condition_router_function_call(
    source: str,
    possible_targets: Sequence[str],
    fallback_target: str = "end",
    exit_function_name: str | None = None,
) -> Callable[[Any], str]:
    """Give a router that follows what the model of ``source`` said last.

    Args:
        fallback_target: where it goes without a word of that.
        exit_function_name: a tool whose call leads to the end.
    """

    def routed(state: Any) -> str:
        messages = list(safe_get_attr(state, "messages"))
        said = [each for each in messages if each.role == "assistant"]
        for call in (said[-1].tool_calls or ()) if said else ():
            if exit_function_name and call.function.name == exit_function_name:
                return "end"
        if messages[-1].role == "tool":
            return source
        for target in possible_targets:
            if target != source and ROUTE_PATTERN.format(target=target) in messages[-1].content:
                return target
        return fallback_target

    return routed


def user_feedback_router(state: Any) -> str:
    """Give the node whose model spoke last."""
    for message in reversed(list(safe_get_attr(state, "messages"))):
        if message.role == "assistant":
            return message.node_name
    return "end"


class GraphDespNode(BaseModel):
    """A node."""

    name: str
    tools: list[str]
    memories: list[str]
    instruction: str
    sop: str | None = None


class GraphDespEdge(BaseModel):
    """The ways on from a node."""

    source: str
    possible_targets: list[str]
    type: Literal["condition"] = "condition"


class GraphDescription(BaseModel):
    """A workflow."""

    nodes: list[GraphDespNode]
    edges: list[GraphDespEdge]
    entry_point: str
    global_instruction: str


class SopBreakdownNodeDesp(BaseModel):
    """A node as it is first sketched."""

    name: str
    type: Literal["sop", "connect"]
    duty: str
    instruction: str
    next_node_routing_rule: dict[str, str]


class SopBreakdownGraphDesp(BaseModel):
    """A workflow as it is first sketched."""

    nodes: list[SopBreakdownNodeDesp]
    global_instruction: str
    entry_point: str


class WorkflowGeneratorBase(BaseComponent):
    """The base of what makes workflows of procedures."""

    sop: str

    @staticmethod
    def load_yaml(file_path: str | None) -> Any:
        """Give what a file holds; None: there is no file."""
        if not file_path or not Path(file_path).exists():
            return None
        return yaml.safe_load(Path(file_path).read_text(encoding="utf-8"))

    @staticmethod
    def dump_yaml(data: Any, file_path: str | None) -> None:
        """Write a file; without a path nothing."""
        if file_path:
            Path(file_path).parent.mkdir(parents=True, exist_ok=True)
            text = yaml.safe_dump(data, allow_unicode=True, sort_keys=False)
            Path(file_path).write_text(text, encoding="utf-8")

    async def generate(self) -> GraphEngine:
        """Give the workflow; subclasses say how."""
        raise NotImplementedError
