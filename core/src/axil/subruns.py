"""Sub-runs: plans that a body at work has run inside its own firing, and waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from axil.composite import entry_tokens, output_of
from axil.context import Returned, SubRun
from axil.crew import Crew
from axil.live import Live
from axil.machine import Machine
from axil.tokens import Changes, Task, inner_frame


class SubRuns:
    """The sub-runs of one run, by the bodies that wait for them."""

    __slots__ = ("_crew", "_lives", "are_any", "are_dropped")

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._lives: dict[Task, list[Live]] = {}
        self.are_any = False
        """Whether there was ever one."""
        self.are_dropped = False
        """Whether any was given up by whoever waited for it."""

    async def enter(self, task: Task, sub: SubRun) -> Returned:
        """Run a plan inside the firing of ``task``, and wait for what it comes to. Raises: NodeFailed, Pause: as it ends."""
        parent = self._crew.frame_of(task)
        node = parent.machine.plan.nodes[task.node]
        root = (task.state if sub.state is None else sub.state).rooted()
        machine = Machine(sub.plan, (*inner_frame(task.frame, node.name, task.ordinal), *sub.name), root, keeps=True)
        machine.start(entry_tokens(sub.plan, sub.inputs, root))
        live = Live(machine, parent, task)
        live.waiter, live.contained = asyncio.get_running_loop().create_future(), sub.contained
        self._crew.foreman.notice(live)
        self.are_any = True
        self._lives.setdefault(task, []).append(live)
        self._crew.step_inside(task)
        try:
            ended = await live.waiter
        except asyncio.CancelledError:  # whoever asked for it does not wait any more
            self.drop([live])
            raise
        finally:
            await self._crew.step_out(task)
        return Returned(output_of(sub.plan.graph, ended), Changes(ended.changes), ended.fired)

    def leave(self, task: Task) -> None:
        """The body of ``task`` has ended: nobody waits any more for what it began."""
        if task in self._lives:
            self.drop(self._lives.pop(task))

    def drop(self, lives: Sequence[Live]) -> None:
        """End sub-runs that nobody waits for: nothing in them starts, and what is at work is cancelled."""
        for live in lives:
            if live.waiter is not None and not live.over:
                live.dropped = self.are_dropped = True
        if self.are_dropped:
            self._crew.drop()
