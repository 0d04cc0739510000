"""Nodes that steer a graph, conditions and processors for its edges; no model is involved."""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Nodes": {
        "code": "Python",
        "fans": "Map Tree",
        "loop_graph": "Loop",
        "switches": "LogicSwitch",
    },
    "Questions to people": {
        "channels": "Replies",
    },
    "Templates of nodes": {
        "templates": """
            Factory NodeTemplate Shared Strength TemplateTarget copied scoped template_defaults
            template_defaults_for template_overrides template_overrides_for
        """,
    },
    "Errors": {
        "errors": "BindingError ControlError ExpressionError InputError",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)

_MOVED = {
    "axil_control.loop_graph": "axil.nodes",
}
"""Moved places → their names in the digests of runs that were recorded before."""
