"""``timeout``: a limit on the time that a node takes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Unpack

from pydantic import Field

from axil import Context, Out
from axil.plugin import Body, Mode, NodeInfo, Task
from axil_wrappers.errors import TimeoutReached
from axil_wrappers.inside import Around, Settings, Wrapper
from axil_wrappers.value import Value

if TYPE_CHECKING:
    from axil_wrappers.keywords import TimeoutKeywords

_WHAT: Final[dict[Mode, str]] = {
    "async": "its body was cancelled",
    "scope": "the graph inside was cancelled",
    "thread": "its thread cannot be stopped; its result is ignored",
    "inline": "its body was cancelled",
}


class TimeoutConfig(Settings):
    """The time that a node may take."""

    seconds: float = Field(gt=0, description="The longest time, by the run's clock.")
    value: Any = Field(
        None, description="The output of the node instead of a failure: fields, messages or a text."
    )
    grace_seconds: float = Field(
        5.0,
        ge=0,
        description="The longest time to wait for a cancelled body to end.",
    )


class Timeout(Wrapper[TimeoutConfig]):
    """The wrapper ``timeout``: ends a node that takes too long."""

    type = "timeout"
    examples = ({"seconds": 30.0},)

    Config = TimeoutConfig

    if TYPE_CHECKING:

        def __init__(
            self,
            config: TimeoutConfig | Mapping[str, object] | None = None,
            /,
            **settings: Unpack[TimeoutKeywords],
        ) -> None: ...

    @property
    def writes(self) -> frozenset[str] | None:  # type: ignore[override]  # of its settings
        """As of any wrapper: a value takes the place of an output."""
        return None if "value" in self.config.model_fields_set else frozenset()

    @property
    def seconds(self) -> float:
        """The longest time of a firing."""
        return self.config.seconds + self.config.grace_seconds

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        return _Timed(body, node, self.config)


class _Timed(Around):
    """A body with a time limit."""

    def __init__(self, body: Body, node: NodeInfo, config: TimeoutConfig) -> None:
        super().__init__(body, node)
        self._config, self._where = config, node.where
        self._value = Value(config.value, node) if "value" in config.model_fields_set else None

    async def run(self, task: Task, ctx: Context) -> Out:
        part = ctx.part()
        job = asyncio.ensure_future(self.inside(task, part))
        try:
            if await _within(job, ctx, self._config.seconds):
                return job.result()
            part.abandon()
            job.cancel()
            is_gone = await _within(job, ctx, self._config.grace_seconds)
        except asyncio.CancelledError:
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)
            raise
        job.add_done_callback(_ignore)
        what = "its body was cancelled but has not ended yet"
        if is_gone:
            what = _WHAT[self.inside.mode]
        if self._value is not None:
            self.take_back(part, ctx)
        ctx.note({"kind": "timeout", "seconds": self._config.seconds, "what": what})
        if self._value is None:
            message = f"it took longer than {self._config.seconds:g} seconds; {what}."
            hint = "Raise seconds, or set a value to be used instead."
            raise TimeoutReached(self._config.seconds, message, hint, self._where)
        return self._value(task)


async def _within(job: asyncio.Future[Out], ctx: Context, seconds: float) -> bool:
    """Return whether a body ends within so many seconds of the run's clock."""
    timer = asyncio.ensure_future(ctx.clock.sleep(seconds))
    try:
        await asyncio.wait({job, timer}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
    return job.done()


def _ignore(job: asyncio.Future[Out]) -> None:
    """Read the late result of an abandoned body, so that asyncio does not warn of it."""
    if not job.cancelled():
        job.exception()
