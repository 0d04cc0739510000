"""Workflows with components that are opened and closed."""

from __future__ import annotations

import asyncio
from typing import Any

from axil import ComponentRef, NodeSpec, Workflow
from axil.plugin import CompileOptions, Registry
from axil_testing.specs import graph


class Part:
    """A component that logs what happens to it, takes its time, and may fail."""

    log: list[str]

    def __init__(self, name: str, fails: str = "") -> None:
        self.name, self.fails, self.is_ready = name, fails, False

    async def provision(self) -> None:
        self.log.append(f"provision {self.name}")
        for _ in range(9):
            await asyncio.sleep(0)
        if self.fails == "provision":
            raise OSError(self.name)
        self.is_ready = True

    async def close(self) -> None:
        self.log.append(f"close {self.name}")
        self.is_ready = False

    async def run(self) -> dict[str, Any]:
        assert self.is_ready
        await asyncio.sleep(0)
        self.log.append(f"run {self.name}")
        return {}


def with_parts(**fails: str) -> tuple[Workflow, list[str]]:
    """Return a workflow of components that run beside each other, and their log."""
    log: list[str] = []
    registry = Registry(entry_points=[])
    for name, how in fails.items():

        def begin(self: Any, name: str = name, how: str = how) -> None:
            Part.__init__(self, name, how)

        registry.register("nodes", name, type(name, (Part,), {"log": log, "__init__": begin}))
    nodes = [NodeSpec(id=name, use=ComponentRef(type=name)) for name in fails]
    spec = graph(nodes, [f"in {name}" for name in fails])
    return Workflow(spec, CompileOptions(registry=registry)), log
