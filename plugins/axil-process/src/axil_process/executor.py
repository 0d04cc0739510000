"""Executors whose bodies run elsewhere, as jobs; ``process``: in processes of their own."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from axil import Context, NodeSpec, Out, Schema
from axil.driver import LocalExecutor, ResolvedGraph
from axil.plugin import Body, Plan, ResolvedNode, Task, decode_config
from axil_process.config import ProcessExecutorConfig
from axil_process.jobs import Job, job_of
from axil_process.workers import Workers

if TYPE_CHECKING:
    from axil_process.keywords import ProcessExecutorKeywords


class JobExecutor:
    """An executor that sends some bodies elsewhere, as jobs; the rest run as usual.

    A subclass implements ``run`` and ``end``, perhaps ``takes`` and ``place``. One may serve many
    runs, one after the other or at once, on several event loops.
    """

    has_places: ClassVar[bool] = False
    """True if it finds machines by ``resources`` of nodes, whose bodies it takes always."""

    def __init__(self, name: str, *, state: str = "", lanes: Sequence[str] = ()) -> None:
        """Args:
        state: where the class of a typed state can be imported from, ``module:Class``.
        lanes: bodies of nodes in these lanes; without lanes those that it ``takes``.
        """
        self._name, self._state, self._lanes = name, state, tuple(lanes)
        self._local = LocalExecutor(64, name)
        self._jobs: dict[int, tuple[ResolvedNode, Job | None]] = {}
        self._checked: dict[int, Plan] = {}
        self._at_work: Counter[asyncio.AbstractEventLoop] = Counter()
        self._lock = threading.Lock()

    async def run(self, job: Job, task: Task, ctx: Context, schema: Schema) -> Out:
        """Return one firing of a body that runs elsewhere."""
        raise NotImplementedError

    async def end(self) -> None:
        """Release what this event loop acquired."""
        raise NotImplementedError

    def place(self, spec: NodeSpec) -> None:
        """Refuse a node whose body finds no place. Raises: SpecError."""

    def takes(self, node: NodeSpec, body: Body) -> bool:
        """Return whether the body of a node runs elsewhere, where no lanes are given."""
        return body.mode == "thread"

    def check(self, plan: Plan) -> None:
        """Refuse a plan with a body that is to run elsewhere and cannot; called before a run.

        Raises: SpecError: AX544 a body cannot be named; what ``place`` raises.
        """
        if id(plan) in self._checked:
            return
        plans = [plan]
        while plans:
            graph = plans.pop().graph
            specs = {node.id: node for node in graph.spec.nodes}
            for vertex in graph.vertices:
                body: Any = vertex.own or vertex.body
                if body.mode == "scope":
                    plans += [body.plan] if hasattr(body, "plan") else []
                elif vertex.name in specs and self._job(graph, vertex) is not None:
                    self.place(specs[vertex.name])
        self._checked[id(plan)] = plan

    async def execute(self, body: Body, task: Task, ctx: Context) -> Any:
        """See ``axil.driver.Executor``.

        Raises: SpecError (AX544): a body that is to run elsewhere cannot be named.
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
        job = self._job(plan.graph, vertex)
        if job is None:
            return await self._local.execute(body, task, ctx)
        return await self.run(job, task, ctx, plan.graph.schema)

    def _job(self, graph: ResolvedGraph, vertex: ResolvedNode) -> Job | None:
        """Return the job of a node's body; None: it runs here."""
        if id(vertex) not in self._jobs:
            self._jobs[id(vertex)] = (vertex, self._made(graph, vertex))
        return self._jobs[id(vertex)][1]

    def _made(self, graph: ResolvedGraph, vertex: ResolvedNode) -> Job | None:
        whole, body = graph.spec, vertex.own
        spec = next((node for node in whole.nodes if node.id == vertex.name), None)
        if spec is None or body is None:
            return None
        is_taken = vertex.lane in self._lanes if self._lanes else self.takes(spec, body)
        if not is_taken and not (self.has_places and spec.extras.get("resources")):
            return None
        return job_of(
            spec,
            whole.payload,
            graph.schema,
            state=self._state,
            grants=whole.extras.get("grants"),
        )

    async def close(self) -> None:
        """Release what this event loop acquired, unless another run's bodies are at work there, and
        the threads, unless any are at work. The executor may be used again.
        """
        loop, local = asyncio.get_running_loop(), None
        with self._lock:
            has_work = self._at_work[loop] > 0
            if not self._at_work:
                # runs that begin meanwhile have other threads
                local, self._local = self._local, LocalExecutor(64, self._name)
        if local is not None:
            await local.close()
        if not has_work:
            await self.end()


class ProcessExecutor(JobExecutor):
    """Runs plain functions, or all bodies in certain lanes, in processes.

    Each run closes it, and its processes end when the last has; an engine keeps it.
    """

    type: ClassVar[str] = "process"
    Config: ClassVar[type[ProcessExecutorConfig]] = ProcessExecutorConfig

    def __init__(
        self,
        config: ProcessExecutorConfig | Mapping[str, Any] | None = None,
        /,
        **settings: Unpack[ProcessExecutorKeywords],
    ) -> None:
        """Nothing is started before the first body. Raises: ConfigError."""
        if not isinstance(config, ProcessExecutorConfig):
            config = decode_config(self.Config, {**(config or {}), **settings}, self.type)
        super().__init__(self.type, state=config.state, lanes=config.lanes)
        self.config, self.workers = config, Workers(config)

    async def run(self, job: Job, task: Task, ctx: Context, schema: Schema) -> Out:
        """Return one firing of a body in a process."""
        return await self.workers.run(job, task, ctx, schema)

    async def end(self) -> None:
        """End the processes of this event loop."""
        await self.workers.close()
