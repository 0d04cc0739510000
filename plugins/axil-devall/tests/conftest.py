"""A graph of DevAll's written into a file, and run against a scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axil import Result, Workflow, run_sync
from axil.plugin import CompileOptions, Registry
from axil_agent import Scripted
from axil_files import load_spec


@pytest.fixture
def known() -> Registry:
    """All that is installed; tests add to it."""
    return Registry()


@pytest.fixture
def flow(tmp_path: Path, known: Registry) -> Callable[..., Workflow]:
    """``flow(nodes, edges)``: the workflow; edges as "A B" or as mappings."""

    def make(nodes: list[dict[str, Any]], edges: list[Any] = (), **graph: Any) -> Workflow:
        made = [
            {"from": edge.split()[0], "to": edge.split()[1]} if isinstance(edge, str) else edge
            for edge in edges
        ]
        whole = {
            "start": [nodes[0]["id"]],
            "end": [nodes[-1]["id"]],
            "nodes": nodes,
            "edges": made,
            **graph,
        }
        (tmp_path / "flow.json").write_text(
            json.dumps({"version": "0.4.0", "graph": whole}), "utf-8"
        )
        return Workflow(
            load_spec(tmp_path / "flow.json", registry=known, allow={"write"}),
            CompileOptions(registry=known),
        )

    return make


@pytest.fixture
def talk(flow: Callable[..., Workflow]) -> Callable[..., tuple[Result, Scripted]]:
    """``talk(replies, nodes, …)``: the result, and the model with what it was asked."""

    def run(
        replies: Any, nodes: list[dict[str, Any]], *more: Any, task: str = "TASK", **graph: Any
    ) -> tuple[Result, Scripted]:
        script = Scripted(replies)
        with script.everywhere():
            return run_sync(flow(nodes, *more, **graph).run(task)), script

    return run
