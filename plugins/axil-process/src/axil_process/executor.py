"""``process``: an executor whose bodies run in processes of their own."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

from axil import Context, NodeSpec
from axil.driver import LocalExecutor
from axil.plugin import Body, Plan, ResolvedNode, Task, decode_config
from axil_process.config import ExecutorConfig
from axil_process.jobs import Job, job_of
from axil_process.workers import Workers


class ProcessExecutor:
    """Plain functions, or all bodies in certain lanes, in processes; the rest where it usually is.

    One may serve many runs, one after the other or at once: each run closes it, and its processes
    end when the last has.
    """

    type: ClassVar[str] = "process"
    Config: ClassVar[type[ExecutorConfig]] = ExecutorConfig

    def __init__(
        self, config: ExecutorConfig | Mapping[str, Any] | None = None, /, **settings: Any
    ) -> None:
        """Nothing is started before the first body. Raises: ConfigError."""
        given = (
            config
            if isinstance(config, ExecutorConfig)
            else decode_config(self.Config, {**(config or {}), **settings}, self.type)
        )
        self.config = given
        self.workers = Workers(given)
        self._local = LocalExecutor(64, self.type)
        self._jobs: dict[int, tuple[ResolvedNode, Job | None]] = {}
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
        vertex: ResolvedNode = task.node.vertex
        if body is not vertex.own:
            return await self._local.execute(body, task, ctx)
        if id(vertex) not in self._jobs:
            self._jobs[id(vertex)] = (vertex, self._job(plan, vertex, body))
        job = self._jobs[id(vertex)][1]
        if job is None:
            return await self._local.execute(body, task, ctx)
        return await self.workers.run(job, task, ctx, plan.graph.schema)

    def _job(self, plan: Plan, vertex: ResolvedNode, body: Body) -> Job | None:
        """Return the job of a node's body; None: it runs here."""
        graph = plan.graph.spec
        spec = next((node for node in graph.nodes if node.id == vertex.name), None)
        lanes = self.config.lanes
        if spec is None or not (vertex.lane in lanes if lanes else self.takes(spec, body)):
            return None
        return job_of(
            spec,
            graph.payload,
            plan.graph.schema,
            state=self.config.state,
            grants=graph.extras.get("grants"),
        )

    def takes(self, node: NodeSpec, body: Body) -> bool:
        """Return whether the body of a node runs in a process, where no lanes are given."""
        return body.mode == "thread"

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
                local, self._local = self._local, LocalExecutor(64, self.type)
        if local is not None:
            await local.close()
        if not has_work:
            await self.workers.close()
