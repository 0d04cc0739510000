"""Inspection of graphs and of recorded runs: pictures, checks, steps, moments, differences, forks,
breakpoints.

Each name is imported from its module at its first use: a picture needs no journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from axil_inspection.breakpoints import Breakpoints
    from axil_inspection.checks import CheckResult, check_workflow, want_lines, want_rows
    from axil_inspection.drawing import as_mermaid, as_text, draw_plan, escaped, join_name
    from axil_inspection.forks import Edit, fork
    from axil_inspection.outlines import Outline, OutlineNode, outline
    from axil_inspection.records import Difference, RunStep, differences, steps
    from axil_inspection.scopes import PlanScope, cycle_bounds, edge_label, shortened, walk_plan
    from axil_inspection.snapshots import DueFiring, Snapshot, snapshot

__all__ = [
    "Breakpoints",
    "CheckResult",
    "Difference",
    "DueFiring",
    "Edit",
    "Outline",
    "OutlineNode",
    "PlanScope",
    "RunStep",
    "Snapshot",
    "as_mermaid",
    "as_text",
    "check_workflow",
    "cycle_bounds",
    "differences",
    "draw_plan",
    "edge_label",
    "escaped",
    "fork",
    "join_name",
    "outline",
    "shortened",
    "snapshot",
    "steps",
    "walk_plan",
    "want_lines",
    "want_rows",
]

_MODULES: Final = {
    "breakpoints": "Breakpoints",
    "checks": "CheckResult check_workflow want_lines want_rows",
    "drawing": "as_mermaid as_text draw escaped join_of",
    "forks": "Edit fork",
    "snapshots": "DueFiring Snapshot snapshot",
    "scopes": "Scope bounded label shortened walk",
    "outlines": "Outline OutlineNode outline",
    "records": "Difference RunStep differences steps",
}
_FOUND_IN: Final = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _FOUND_IN:
        raise AttributeError(f"module 'axil_inspection' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"axil_inspection.{_FOUND_IN[name]}"), name)
