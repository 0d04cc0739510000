"""A machine that is driven by hand, for the kernel's tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axil.compiler.planner import compile_spec
from axil.kernel.machine import Machine, entry_tokens
from axil.kernel.tokens import Activation, Out, Task
from axil_testing.specs import graph


class Hand:
    """A machine driven by hand: ``start``, then ``take`` and ``finish`` in any order."""

    def __init__(self, nodes: Any, edges: Any, *, keeps: bool = False, **more: Any) -> None:
        self.plan = compile_spec(graph(nodes, edges, **more))
        self.root = self.plan.graph.schema.start(self.plan.graph.start)
        self.machine = Machine(self.plan, (), self.root, keeps=keeps)
        self.at_work: dict[str, Task] = {}
        self.order: list[str] = []

    def start(self, inputs: Any = None) -> Hand:
        self.machine.start(entry_tokens(self.plan, inputs or {}, self.root))
        return self

    def take(self) -> list[str]:
        """Take all that is due; gives the names, with ordinals where there are any."""
        taken: list[str] = []
        while (task := self.machine.take()) is not None:
            name = str(Activation((), task.node.name, task.ordinal))
            self.at_work[name] = task
            taken.append(name)
        self.order += taken
        return taken

    def finish(self, name: str, out: Out | None = None) -> Task:
        """Finish a task: with ``out``, or with what its body says."""
        task = self.at_work.pop(name)
        self.machine.commit(
            task,
            self.machine.prepare(task, task.node.vertex.body(task, None) if out is None else out),
        )
        return task

    def go(self) -> Hand:
        """Take and finish, first come first served, until nothing is due."""
        self.take()
        while self.at_work:
            self.finish(next(iter(self.at_work)))
            self.take()
        return self

    @property
    def skipped(self) -> list[str]:
        return [self.plan.nodes[index].name for index in self.machine.skips]


def plain(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state without the fields that nodes keep for themselves."""
    return {name: value for name, value in state.items() if not name.startswith("@")}
