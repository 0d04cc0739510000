"""The way of one small run: the modules of core that it passes through.

The bounds only fall: where the path gets shorter, lower them in the same commit.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from axil import CustomNode, RootGraph, Workflow

MODULES = 17
"""Modules of core that a run of two inline nodes in memory passes through."""
CHANGES = 79
"""The number of changes from one of them to another, calls and returns alike; two are the check
of the size of what a firing gives, and six are the meter's, which used to be a plugin's.
"""

HOOK = ("axil.settings.confinement", "axil.settings.grants")
"""Modules that a run enters when its event loop is made, where a test before this one read a file.
"""


def two_nodes() -> Workflow:
    graph = RootGraph("two")
    first = graph.create_node(CustomNode, name="first", forward=add_one, inline=True)
    second = graph.create_node(CustomNode, name="second", forward=add_one, inline=True)
    graph.edge_from_entry(first, ["n"])
    graph.create_edge(first, second, ["n"])
    graph.edge_to_exit(second, ["n"])
    return graph.build()


def add_one(inputs: dict[str, int]) -> dict[str, int]:
    return {"n": inputs["n"] + 1}


def path_of(flow: Workflow) -> list[str]:
    """Return the modules of core that a run passes through, in order, each as often as it is
    entered or returned to.
    """
    passed: list[str] = []

    def look(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event not in ("call", "return") or not module.startswith("axil.") or module in HOOK:
            return
        if passed[-1:] != [module]:
            passed.append(module)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        output, _ = flow.invoke({"n": 1})
    finally:
        sys.setprofile(before)
    assert output == {"n": 3}
    return passed


def test_a_run_of_two_nodes_passes_through_few_modules_of_core():
    flow = two_nodes()
    flow.invoke({"n": 1})  # what is imported at the first run is no part of the path
    passed = path_of(flow)
    assert len(set(passed)) <= MODULES, sorted(set(passed))
    assert len(passed) - 1 <= CHANGES
