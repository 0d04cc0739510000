"""``budget``: bounds the tokens and the money that a node and everything inside it use in a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack

from pydantic import Field, field_validator, model_validator

from axil import Context, Out, Problem, SpecError
from axil.plugin import Body, NodeInfo, Task
from axil_models import Budget as Bound, Ledger, OverBudget, Pricing
from axil_wrappers.failures import chain
from axil_wrappers.inside import Around, Settings, Wrapper

if TYPE_CHECKING:
    from axil_wrappers.keywords import BudgetKeywords


class BudgetConfig(Settings):
    """The resources that a node may use in a run."""

    tokens: int | None = Field(None, ge=1, description="Model tokens, input and output.")
    cost: float | None = Field(None, gt=0, description="Cost, in the currency of the prices.")
    on_limit: Literal["stop_run", "fail_node"] = Field(
        "stop_run",
        description="stop_run: the run ends with the status limited; fail_node: the node fails.",
    )
    pricing: dict[str, Any] | None = Field(
        None,
        description="{models: {name: {input, output, cached, cache_write}}, unknown, table}; "
        "without it, the run's.",
    )

    @field_validator("pricing")
    @classmethod
    def _sound(cls, given: dict[str, Any] | None) -> dict[str, Any] | None:
        if given is not None:
            _pricing(given)
        return given

    @model_validator(mode="after")
    def _something(self) -> BudgetConfig:
        if self.tokens is None and self.cost is None:
            raise ValueError("expected tokens, cost, or both")
        return self


def _pricing(given: dict[str, Any]) -> Pricing:
    if set(given) - {"models", "unknown", "table"}:
        raise ValueError("expected the keys models, unknown and table in pricing")
    if isinstance(given.get("unknown"), str) and given["unknown"] not in ("refuse", "ignore"):
        raise ValueError("expected refuse, ignore or a price for unknown")
    try:
        return Pricing.read(given)
    except (SpecError, TypeError, AttributeError) as error:
        raise ValueError(
            "expected a price as {input, output, cached, cache_write}, for a million tokens: "
            f"{error}"
        ) from error


class Budget(Wrapper[BudgetConfig]):
    """The wrapper ``budget``: bounds what a node uses."""

    type = "budget"
    examples = ({"tokens": 10_000},)

    Config = BudgetConfig

    if TYPE_CHECKING:

        def __init__(
            self,
            config: BudgetConfig | Mapping[str, object] | None = None,
            /,
            **settings: Unpack[BudgetKeywords],
        ) -> None: ...

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        config = self.config
        pricing = None if config.pricing is None else _pricing(config.pricing)
        bound = Bound(
            tokens=config.tokens, cost=config.cost, at_limit=config.on_limit, pricing=pricing
        )
        return _Bounded(body, node, bound)


class _Bounded(Around):
    """A body with an account of its own."""

    def __init__(self, body: Body, node: NodeInfo, bound: Bound) -> None:
        super().__init__(body, node)
        self._bound = bound

    async def run(self, task: Task, ctx: Context) -> Out:
        ledger: Any = ctx.ledger
        if not isinstance(ledger, Ledger):
            message = "the wrapper budget needs the meter of axil-models; the run has another one."
            hint = "Use the meter of axil-models, or remove the wrapper."
            raise SpecError(Problem("AX128", f'node "{ctx.activation.path}"', message, hint))
        account = ledger.open(ctx.activation.path, self._bound)
        (await ctx.reserve()).release()  # nothing begins where more than all is used
        try:
            out = await self.inside(task, ctx.part())
        except Exception as error:
            # what failed inside for want of this budget is this node's failure
            for each in chain(error):
                if isinstance(each, OverBudget) and each.where == account.where:
                    raise each from None
            raise
        account.check(self._bound)
        return out
