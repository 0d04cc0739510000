"""The wrapped node, called in the form that the wrapper wants, and the shared parts of wrappers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from axil import ComponentRef, Context, Out
from axil.plugin import Body, Mode, NodeInfo, Task, decode_config


class Settings(BaseModel):
    """The config of a wrapper: strict, and fixed once it is made."""

    model_config = ConfigDict(extra="forbid", frozen=True)


C = TypeVar("C", bound=Settings)


class Wrapper(Generic[C]):
    """A wrapper, made of a ``Config`` or of its fields: ``Retry(tries=3)``."""

    type: ClassVar[str]
    Config: ClassVar[type[Any]]
    repeats: int | None = 1
    """The most times that it may run what is inside; None: unknown."""
    writes: frozenset[str] | None = frozenset()
    """The fields of the state that it may write itself; None: unknown, and its output, too."""

    def __init__(self, config: C | Mapping[str, Any] | None = None, /, **settings: Any) -> None:
        """Raises: ConfigError: a setting is unknown or does not fit."""
        if not isinstance(config, Settings):
            config = decode_config(self.Config, {**(config or {}), **settings}, self.type)
        self.config: C = config  # type: ignore[assignment]  # Config is C

    def use(self) -> ComponentRef:
        """Return the wrapper for the settings in a file."""
        return ComponentRef(
            type=self.type, config=self.config.model_dump(mode="json", exclude_defaults=True)
        )

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        """Return the body around ``body``."""
        raise NotImplementedError

    def __repr__(self) -> str:
        fields = (f"{name}={value!r}" for name, value in self.use().config.items())
        return f"{type(self).__name__}({', '.join(fields)})"


class Inside:
    """A body of any mode, to be awaited: a scope runs in a frame of its own, a function in a thread
    of the run's.
    """

    def __init__(self, body: Body, node: NodeInfo) -> None:
        self.mode: Mode = body.mode
        self._body = body
        self._plan = node.single() if body.mode == "scope" else None

    async def __call__(self, task: Task, ctx: Context, /) -> Out:
        if self._plan is None:
            return await ctx.execute(self._body, task)
        return await run_plan(self._plan, task, ctx, "#inside")


async def run_plan(plan: Any, task: Task, ctx: Context, name: str) -> Out:
    """Return the outcome of a plan that runs for a task, in a frame of its own."""
    payload = plan.graph.payloads.gather(task.tokens)
    returned = await ctx.run(plan, payload, name=name, state=task.state)
    return Out(returned.output, returned.changes, frozenset() if returned.output is None else None)


class Around:
    """A wrapped body: awaited, whatever is inside."""

    mode: Mode = "async"
    wants_ctx = True

    def __init__(self, body: Body, node: NodeInfo) -> None:
        self.node = node.name
        self.inside = Inside(body, node)

    def __call__(self, task: Task, ctx: Context, /) -> Any:
        return self.run(task, ctx)

    async def run(self, task: Task, ctx: Context) -> Out:
        """Return one firing."""
        raise NotImplementedError

    def take_back(self, part: Context, ctx: Context) -> None:
        """Report that what a part has shown does not count, if it has shown anything."""
        if self.inside.mode == "scope":
            ctx.note({"kind": "reset", "chunks": part.shown, "inside": True})
        elif part.has_emitted and part.shown:
            ctx.note({"kind": "reset", "chunks": part.shown})
