"""The files, programs and pages of a run: a workspace that nothing leads out of, and tools for
agents to work in it.
"""

from __future__ import annotations

from axil_workspace.entries import Entry
from axil_workspace.workspace import Limits, Workspace

__all__ = ["Entry", "Limits", "Workspace"]
