"""``limit``: how many firings of nodes may be at work, and how many may begin in a while."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import Field, model_validator

from axil import Context, Out
from axil.plugin import Body, NodeInfo, Task
from axil_wrappers.inside import Around, Settings, Wrapper
from axil_wrappers.limiter import Limiter, Pace, limiter

if TYPE_CHECKING:
    from axil_wrappers.keywords import LimitKeywords


class LimitConfig(Settings):
    """The number of firings that may pass."""

    name: str = Field(
        "",
        description="The limiter's name: nodes and runs of this process with the same name share "
        "one limiter; empty: a limiter of this node alone.",
    )
    concurrency: int | None = Field(
        None, ge=1, description="The largest number of firings at the same time."
    )
    calls: int | None = Field(
        None, ge=1, description="The largest number of firings that begin in period_seconds."
    )
    period_seconds: float = Field(1.0, gt=0, description="The length of the period of calls.")
    burst: int | None = Field(
        None,
        ge=1,
        description="The largest number of firings that may begin at once after an idle time; "
        "the default is calls.",
    )

    @model_validator(mode="after")
    def _something(self) -> LimitConfig:
        if self.concurrency is None and self.calls is None:
            raise ValueError("expected concurrency, calls, or both")
        return self


class Limit(Wrapper[LimitConfig]):
    """The wrapper ``limit``: lets so many pass, in the order in which they came."""

    type = "limit"
    examples = ({"concurrency": 4},)

    Config = LimitConfig

    if TYPE_CHECKING:

        def __init__(
            self,
            config: LimitConfig | Mapping[str, Any] | None = None,
            /,
            **settings: Unpack[LimitKeywords],
        ) -> None: ...

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        """Raises: LimiterConflict (AX834)."""
        pace = Pace(**self.config.model_dump(exclude={"name"}))
        return _Limited(body, node, limiter(self.config.name, pace))


class _Limited(Around):
    """A body behind a limiter."""

    def __init__(self, body: Body, node: NodeInfo, limiter: Limiter) -> None:
        super().__init__(body, node)
        self.limiter = limiter

    async def run(self, task: Task, ctx: Context) -> Out:
        await self.limiter.enter(ctx.clock)
        try:
            return await self.inside(task, ctx)
        finally:
            self.limiter.leave()
