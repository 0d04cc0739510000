"""``write`` and ``collect``: constants that a node writes, and fields that are lists however many
edges bring them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import Field

from axil import Context, Out, Problem, SpecError, Token
from axil.plugin import (
    Body,
    Changes,
    NodeInfo,
    Task,
    did_you_mean,
    fold_payloads,
    format_names,
    isolate,
)
from axil_wrappers.inside import Around, Settings, Wrapper

if TYPE_CHECKING:
    from axil_wrappers.keywords import CollectKeywords, WriteKeywords


class WriteConfig(Settings):
    """The constants."""

    fields: dict[str, Any] = Field(
        min_length=1, description="Values by the names of fields of the state."
    )


class Write(Wrapper[WriteConfig]):
    """The wrapper ``write``: writes constants to the state with each firing that does not fail."""

    type = "write"
    examples = ({"fields": {"phase": "drafted"}},)

    Config = WriteConfig

    if TYPE_CHECKING:

        def __init__(
            self,
            config: WriteConfig | Mapping[str, object] | None = None,
            /,
            **settings: Unpack[WriteKeywords],
        ) -> None: ...

    @property
    def writes(self) -> frozenset[str]:  # type: ignore[override]  # of its settings
        """The fields of the state that it writes."""
        return frozenset(self.config.fields)

    @property
    def sets(self) -> Mapping[str, object]:
        """The constants that it writes, unless what is inside writes them itself."""
        return self.config.fields

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        """Raises: SpecError (AX836): the state has no such field; StateError: a value is wrong."""
        _check(self.config.fields, node.stored, 'writes "{}", which the state does not have')
        return _Writing(body, node, node.schema.check(self.config.fields))


class _Writing(Around):
    """A body that writes constants beside what it writes itself, which is stronger."""

    def __init__(self, body: Body, node: NodeInfo, constants: dict[str, Any]) -> None:
        super().__init__(body, node)
        self._constants = constants

    async def run(self, task: Task, ctx: Context) -> Out:
        out = await self.inside(task, ctx)
        delta = {**isolate(self._constants), **out.delta}
        return Out(out.output, Changes(delta) if type(out.delta) is Changes else delta, out.to)


class CollectConfig(Settings):
    """The fields that are collected."""

    fields: list[str] = Field(
        default_factory=list[str], description="Fields that become lists; none: all that come in."
    )


class Collect(Wrapper[CollectConfig]):
    """The wrapper ``collect``: a field that comes in is a list, one value for each edge."""

    type = "collect"
    writes = None
    examples: tuple[dict[str, Any], ...] = ({"fields": ["remark"]}, {})

    Config = CollectConfig

    if TYPE_CHECKING:

        def __init__(
            self,
            config: CollectConfig | Mapping[str, object] | None = None,
            /,
            **settings: Unpack[CollectKeywords],
        ) -> None: ...

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        """Raises: SpecError (AX836): no edge brings a field that is named."""
        _check(self.config.fields, node.brought(), 'collects "{}", which no edge brings')
        return _Collecting(body, node, self.config.fields)


class _Collecting(Around):
    """A body that is given lists."""

    def __init__(self, body: Body, node: NodeInfo, fields: list[str]) -> None:
        super().__init__(body, node)
        self._fields = fields

    async def run(self, task: Task, ctx: Context) -> Out:
        came = [fold_payloads([token.payload]) for token in task.tokens]
        names = self._fields or list(dict.fromkeys(name for each in came for name in each))
        lists = {name: [each[name] for each in came if name in each] for name in names}
        others = [{k: v for k, v in each.items() if k not in lists} for each in came]
        first = task.tokens[0] if task.tokens else Token(-1, None, task.state)
        token = Token(first.edge, {**fold_payloads(others), **lists}, first.state, first.ordinal)
        return await self.inside(task.with_tokens((token,)), ctx)


def _check(fields: Iterable[str], known: frozenset[str] | None, fault: str) -> None:
    """Raises: SpecError (AX836): a field is not among those ``known``; None: any may be there."""
    for field in fields:
        if known is not None and field not in known:
            names = sorted(each for each in known if not each.startswith("@"))
            hint = did_you_mean(field, names) or f"Available: {format_names(names) or 'none'}."
            raise SpecError(Problem("AX836", "", f"the wrapper {fault.format(field)}.", hint))
