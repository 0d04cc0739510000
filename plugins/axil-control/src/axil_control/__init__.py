"""Nodes that steer a graph, conditions and processors for its edges; no model is involved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axil_control.channels import Replies
from axil_control.switches import LogicSwitch

if TYPE_CHECKING:
    from axil_control.fans import Map, Tree
    from axil_control.templates import (
        Factory,
        NodeTemplate,
        Shared,
        TemplateTarget,
        template_defaults,
        template_defaults_for,
        template_overrides,
        template_overrides_for,
    )

__all__ = [
    "Factory",
    "LogicSwitch",
    "Map",
    "NodeTemplate",
    "Replies",
    "Shared",
    "TemplateTarget",
    "Tree",
    "template_defaults",
    "template_defaults_for",
    "template_overrides",
    "template_overrides_for",
]


def __getattr__(name: str) -> Any:
    """Import what a workflow file does not need when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from axil_control import fans, templates

    return getattr(fans if name in ("Map", "Tree") else templates, name)
