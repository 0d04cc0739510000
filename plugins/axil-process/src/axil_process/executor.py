"""``process``: an executor whose bodies run in processes of their own."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from axil import Context
from axil.driver import LocalExecutor
from axil.plugin import Body, ResolvedNode, Task, decode_config
from axil_process.config import ExecutorConfig
from axil_process.jobs import Job, job_of
from axil_process.workers import Workers


class ProcessExecutor:
    """Plain functions, or all bodies in certain lanes, in processes; the rest where it usually is.

    One may serve many runs, one after the other or at once: each run closes it, and its processes
    end when the last has.
    """

    Config = ExecutorConfig

    def __init__(
        self, config: ExecutorConfig | Mapping[str, Any] | None = None, /, **settings: Any
    ) -> None:
        """Nothing is started before the first body. Raises: ConfigError."""
        given = (
            config
            if isinstance(config, ExecutorConfig)
            else decode_config(ExecutorConfig, {**(config or {}), **settings}, "process")
        )
        self.config = given
        self.workers = Workers(given)
        self._local = LocalExecutor(64, "process")
        self._jobs: dict[int, tuple[ResolvedNode, Job]] = {}
        self._at_work: Counter[asyncio.AbstractEventLoop] = Counter()
        self._lock = threading.Lock()

    async def execute(self, body: Body, task: Task, ctx: Context) -> Any:
        """See ``axil.driver.Executor``.

        Raises: SpecError (AX544): a body that is to run in a process cannot be named.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            self._at_work[loop] += 1
        try:
            return await self._execute(body, task, ctx)
        finally:
            with self._lock:
                self._at_work -= Counter([loop])  # of loops without work nothing is kept

    async def _execute(self, body: Body, task: Task, ctx: Context) -> Any:
        plan = task.owner.plan
        vertex: ResolvedNode = plan.nodes[task.node].vertex
        lanes = self.config.lanes
        if body is not vertex.own or (vertex.lane not in lanes if lanes else body.mode != "thread"):
            return await self._local.execute(body, task, ctx)
        if id(vertex) not in self._jobs:
            spec = next(node for node in plan.graph.spec.nodes if node.id == vertex.name)
            job = job_of(
                spec,
                plan.graph.spec.payload,
                plan.graph.schema,
                state=self.config.state,
                grants=plan.graph.spec.extras.get("grants"),
            )
            self._jobs[id(vertex)] = (vertex, job)
        return await self.workers.run(self._jobs[id(vertex)][1], task, ctx, plan.graph.schema)

    async def close(self) -> None:
        """End this event loop's processes, unless another run's bodies are at work there, and the
        threads, unless any are at work.

        May be used again.
        """
        loop, local = asyncio.get_running_loop(), None
        with self._lock:
            has_work = self._at_work[loop] > 0
            if not self._at_work:
                # who comes while processes end has others
                local, self._local = self._local, LocalExecutor(64, "process")
        if local is not None:
            await local.close()
        if not has_work:
            await self.workers.close()
