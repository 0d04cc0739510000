"""``fallback``: a value, or another node, in place of a node that fails."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import Field, model_validator

from axil import ComponentRef, Context, Out
from axil.plugin import Body, NodeInfo, Task
from axil_wrappers.component import ReplacementNode
from axil_wrappers.failures import Failures, describe_failure
from axil_wrappers.inside import Around, Wrapper
from axil_wrappers.value import Value

if TYPE_CHECKING:
    from axil_wrappers.keywords import FallbackKeywords


class FallbackConfig(Failures):
    """The outcome of a node in place of a failure; by default, of any failure."""

    value: Any = Field(None, description="The value: fields, messages or a text.")
    use: Any = Field(None, description="The node: its type, or {type, config}.")

    @model_validator(mode="after")
    def _one(self) -> FallbackConfig:
        if ("value" in self.model_fields_set) == ("use" in self.model_fields_set):
            raise ValueError("expected either a value or another node to use")
        return self


class Fallback(Wrapper[FallbackConfig]):
    """The wrapper ``fallback``: a value, or another node, where a node fails."""

    type = "fallback"
    writes = None
    examples = ({"value": "There was no answer."},)

    Config = FallbackConfig

    def __init__(
        self,
        config: FallbackConfig | Mapping[str, object] | None = None,
        /,
        **settings: Unpack[FallbackKeywords],
    ) -> None:
        super().__init__(config, **settings)
        self._components: list[Any] = []
        self.repeats = 1 if self.config.use is None else None

    def use(self) -> ComponentRef:
        config = self.config.model_dump(mode="python", exclude_defaults=True)
        return ComponentRef(
            type=self.type,
            config={
                **config,
                **{k: getattr(self.config, k) for k in ("value", "use") if k in config},
            },
        )

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        if "value" in self.config.model_fields_set:
            return _Backed(body, node, self.config, Value(self.config.value, node))
        replacement = ReplacementNode(ComponentRef.of(self.config.use), node)
        self._components += replacement.components
        return _Backed(body, node, self.config, replacement)

    async def provision(self) -> None:
        """Provision the replacements."""
        for component in self._components:
            if hasattr(component, "provision"):
                await component.provision()

    async def close(self) -> None:
        """Close all replacements, even where one of them fails."""
        async with AsyncExitStack() as stack:
            for component in self._components:
                if hasattr(component, "close"):
                    stack.push_async_callback(component.close)


class _Backed(Around):
    """A body with a replacement."""

    def __init__(
        self, body: Body, node: NodeInfo, config: FallbackConfig, other: Value | ReplacementNode
    ) -> None:
        super().__init__(body, node)
        self._config, self._other = config, other

    async def run(self, task: Task, ctx: Context) -> Out:
        part = ctx.part("first")
        try:
            return await self.inside(task, part)
        except Exception as error:
            if not self._config.selects(error, usual=True):
                raise
            self.take_back(part, ctx)
            ctx.note({"kind": "fallback", "error": describe_failure(error)})
        if isinstance(self._other, Value):
            return self._other(task)
        return await self._other(task, ctx.part("instead"))
