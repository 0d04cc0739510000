"""``process``: a node's body in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from axil import ComponentRef, Context, Out, Problem, Schema, SpecError
from axil.plugin import Body, Mode, NodeInfo, Task, current_grants, decode_config
from axil_process.config import ProcessConfig
from axil_process.jobs import Job, job_of
from axil_process.workers import Workers


class ProcessWrapper:
    """The wrapper ``process``: runs a node in a process, which may compute, crash or be killed
    without harm to the rest.
    """

    type: ClassVar[str] = "process"
    Config: ClassVar[type[ProcessConfig]] = ProcessConfig
    examples: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {},
        {"workers": 2, "memory_megabytes": 2048},
    )

    def __init__(
        self, config: ProcessConfig | Mapping[str, Any] | None = None, /, **settings: Any
    ) -> None:
        """Raises: ConfigError: a setting is unknown or does not fit."""
        given = (
            config
            if isinstance(config, ProcessConfig)
            else decode_config(self.Config, {**(config or {}), **settings}, self.type)
        )
        self.config = given
        self.workers = Workers(given)

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
            raise SpecError(
                Problem(
                    "AX545",
                    node.where,
                    message,
                    "Write it last: wrappers are named outermost first.",
                )
            )
        if body.mode == "scope":
            message = "its body cannot be run elsewhere: it is a graph."
            raise SpecError(
                Problem("AX544", node.where, message, f"Put `{self.type}` on the nodes inside.")
            )
        return _InProcess(
            self.workers,
            job_of(
                node.spec,
                node.payload,
                node.schema,
                state=self.config.state,
                grants=current_grants(),
            ),
            node.schema,
        )

    async def provision(self) -> None:
        """Nothing: processes start when they are needed."""

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
