"""``ray``: an executor whose bodies run on the machines of a Ray cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Unpack

from axil import Context, NodeSpec, Out, Schema
from axil.plugin import Task, decode_config
from axil_process import Job, JobExecutor
from axil_ray.cluster import Cluster
from axil_ray.config import RayConfig

if TYPE_CHECKING:
    from axil_ray.keywords import RayExecutorKeywords


class RayExecutor(JobExecutor):
    """An executor on the machines of a cluster, for bodies of nodes with ``resources``, of nodes in
    certain lanes, or all plain functions.

    A run closes it, and its processes end; an engine keeps it as long as it lives.
    """

    type: ClassVar[str] = "ray"
    Config: ClassVar[type[RayConfig]] = RayConfig
    has_places: ClassVar[bool] = True

    def __init__(
        self,
        config: RayConfig | Mapping[str, object] | None = None,
        /,
        **settings: Unpack[RayExecutorKeywords],
    ) -> None:
        """Store the settings. Raises: ConfigError."""
        given = (
            config
            if isinstance(config, RayConfig)
            else decode_config(self.Config, {**(config or {}), **settings}, self.type)
        )
        super().__init__(self.type, state=given.state, lanes=given.lanes)
        self.config, self.cluster = given, Cluster(given)

    def place(self, spec: NodeSpec) -> None:
        """Refuse a node whose resources no node of the cluster has. Raises: SpecError (AX558)."""
        self.cluster.place(spec)

    async def run(self, job: Job, task: Task, ctx: Context, schema: Schema) -> Out:
        return await self.cluster.run(job, task, ctx, schema)

    async def end(self) -> None:
        """End the processes of this event loop."""
        await self.cluster.close()
