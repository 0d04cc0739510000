"""Parts of axil that no door has, for tests of the project that replace them or compare with them.

Outside core only this module names other modules of axil than the doors. When one of them moves,
its place is changed here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

PLACES = {
    # differential: the short way into the next round, switched off
    "CycleRun": "axil.kernel.scopes:CycleRun",
    # differential: faults are planted in it, and its short ways switched off
    "folding": "axil.compiler.folding",
    "machine_type": "axil.kernel.scopes:machine_type",  # differential: the same
    "joins": "axil.kernel.joins",  # differential: faults
    "journal": "axil_journals.replay",  # differential: faults
    "planner": "axil.compiler.planner",  # differential: faults
    "scopes": "axil.kernel.scopes",  # differential: faults
    "machine": "axil.kernel.machine",  # differential: faults
    "barriers": "axil.kernel.barriers",  # differential: faults
    "subgraphs": "axil.compiler.subgraphs",  # differential: faults
    "state": "axil.kernel.state",  # differential: faults
    # faults: what a run offers to its bodies, replaced method by method
    "RunServices": "axil.runtime.services:RunServices",
    "pool": "axil.runtime.pool",  # benchmarks: after what time a run gives way, SLICE
    "run": "axil.runtime.run",  # benchmarks: the same
    "module_of_each": "axil._lazy:module_of_each",  # house: what public modules give
    "file_models": "axil_files.models",  # integration: every key of a file is on its page
}


def internal(name: str) -> Any:
    """Return the part of axil that is called ``name`` here."""
    module, _, attribute = PLACES[name].partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found
