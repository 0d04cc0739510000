"""Shared fixtures: graphs of a few functions with wrappers around them, run under a clock that
jumps.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from axil import Result, RootGraph
from axil_testing import VirtualClock
from axil_testing.members import own_components


@pytest.fixture(autouse=True)
def registry() -> Any:
    """The components of this distribution, as its pyproject.toml names them, the formatters of
    agents, the meter with limits, and JSON files.
    """
    formatters = {
        "json": "axil_models.formatters.json:Json",
        "paragraph": "axil_models.formatters.paragraph:Paragraph",
        "twins": "axil_models.formatters.twins:Twins",
    }
    others = {
        "axil.formatters": formatters,
        "axil.loaders": {"json": "axil_files.documents:parse_json"},
        "axil.meters": {"budget": "axil_models.budget.meter:BudgetMeter"},
    }
    with own_components(__file__, others) as made:
        yield made


@dataclass
class Watch:
    """The events that were shown, and the firings."""

    chunks: list[Any] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def chunk(self, activation: Any, chunk: Any) -> None:
        self.chunks.append(chunk)

    def firing_failed(self, activation: Any, error: BaseException) -> None:
        self.failed.append(activation.path)

    def kinds(self) -> list[Any]:
        return [chunk["kind"] for chunk in self.chunks]


@dataclass
class Stage:
    """One node, called ``work``, and what came of running it."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    watch: Watch = field(default_factory=Watch)

    def graph(self, body: Any, *wrappers: Any, **more: Any) -> RootGraph:
        graph = RootGraph("t", attributes={"seen": 0, "log": ""})
        graph.create_node(body, name="work", wrappers=wrappers, **more)
        graph.edge_from_entry("work", {"n": ""})
        graph.edge_to_exit("work", ["n"])
        return graph.build()

    def run(self, body: Any, *wrappers: Any, given: Any = None, **options: Any) -> Result:
        return asyncio.run(self.arun(self.graph(body, *wrappers), given, **options))

    async def arun(self, graph: RootGraph, given: Any = None, **options: Any) -> Result:
        run = graph.start(
            {"n": 1} if given is None else given,
            observers=[self.watch],
            clock=self.clock,
            **options,
        )
        return await run.result()


@pytest.fixture(scope="session")
def new_stage() -> type[Stage]:
    """A stage for each example of a law."""
    return Stage


@pytest.fixture
def stage() -> Stage:
    return Stage()
