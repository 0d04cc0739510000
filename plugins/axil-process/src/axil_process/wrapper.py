"""``process``: a node's body in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from axil import ComponentRef, Context, Out, Problem, Schema, SpecError
from axil.plugin import Body, Mode, NodeInfo, Task, current_grants, decode_config
from axil_process.config import ProcessConfig
from axil_process.jobs import Job, job_of
from axil_process.workers import Workers

if TYPE_CHECKING:
    from axil_process.keywords import ProcessWrapperKeywords


class ProcessWrapper:
    """The wrapper ``process``: runs a node in a process, which may crash or be killed."""

    type: ClassVar[str] = "process"
    Config: ClassVar[type[ProcessConfig]] = ProcessConfig
    examples: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {},
        {"workers": 2, "memory_megabytes": 2048},
    )

    def __init__(
        self,
        config: ProcessConfig | Mapping[str, object] | None = None,
        /,
        **settings: Unpack[ProcessWrapperKeywords],
    ) -> None:
        """Raises: ConfigError: a setting is unknown or does not fit."""
        if not isinstance(config, ProcessConfig):
            config = decode_config(self.Config, {**(config or {}), **settings}, self.type)
        self.config, self.workers = config, Workers(config)

    def use(self) -> ComponentRef:
        """Return the wrapper for the settings in a file."""
        return ComponentRef(
            type=self.type, config=self.config.model_dump(mode="json", exclude_defaults=True)
        )

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        """Return the body, elsewhere.

        Raises: SpecError: AX544 it cannot be named; AX545 something is wrapped around it already.
        """
        if body is not node.vertex.own:
            message = f"`{self.type}` has another wrapper inside it, which would be left out."
            hint = "Write it last: wrappers are named outermost first."
            raise SpecError(Problem("AX545", node.where, message, hint))
        if body.mode == "scope":
            message = "its body cannot be run elsewhere: it is a graph."
            hint = f"Put `{self.type}` on the nodes inside."
            raise SpecError(Problem("AX544", node.where, message, hint))
        state, grants = self.config.state, current_grants()
        job = job_of(node.spec, node.payload, node.schema, state=state, grants=grants)
        return _InProcess(self.workers, job, node.schema)

    async def close(self) -> None:
        """End the processes."""
        await self.workers.close()

    def __repr__(self) -> str:
        fields = (f"{name}={value!r}" for name, value in self.use().config.items())
        return f"{type(self).__name__}({', '.join(fields)})"


class _InProcess:
    """A body that is run by workers."""

    mode: Mode = "async"
    wants_ctx = True

    def __init__(self, workers: Workers, job: Job, schema: Schema) -> None:
        self._workers, self._job, self._schema = workers, job, schema

    async def __call__(self, task: Task, ctx: Context, /) -> Out:
        return await self._workers.run(self._job, task, ctx, self._schema)
