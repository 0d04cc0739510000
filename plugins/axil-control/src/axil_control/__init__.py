"""Nodes that steer a graph, conditions and processors for its edges; no model is involved."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from axil_control.channels import Replies
    from axil_control.fans import Map, Tree
    from axil_control.switches import LogicSwitch
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
_HOMES: Final = {"LogicSwitch": "switches", "Map": "fans", "Replies": "channels", "Tree": "fans"}
"""Names by the module that defines them; the others are of ``templates``."""


def __getattr__(name: str) -> Any:
    """Import a name when it is asked for: a workflow file needs the modules of its nodes alone."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'templates')}"), name)
