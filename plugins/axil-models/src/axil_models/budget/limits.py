"""The ledger of a run from its limits, and the estimate of a call from what a body says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar, cast

from axil import LimitReached, Limits, Problem, SpecError
from axil.plugin import RunUsage
from axil_models.budget.ledger import Budget, Ledger
from axil_models.budget.prices import Estimate, Estimator, Pricing

T = TypeVar("T", Pricing, Estimator)


def ledger_of(usage: RunUsage, limits: Limits, stop: Callable[[LimitReached], None]) -> Ledger:
    """Return the ledger of a run.

    Args:
        stop: ends the run when a limit is passed while bodies are at work.
    Raises: SpecError (AX128): ``pricing`` or ``estimate`` has another type.
    """
    pricing = _read(Pricing, "pricing", limits.pricing)
    estimator = _read(Estimator, "estimate", limits.estimate)
    tokens, cost = limits.tokens, limits.cost
    budget = Budget(tokens=tokens, cost=cost, pricing=pricing) if limits.need_ledger else None
    return Ledger(usage, budget, estimator, stop)


def _read(kind: type[T], name: str, value: object) -> T | None:
    """Return a limit, also of the plain data that a journal kept of it.

    Raises: SpecError (AX128): it has another type.
    """
    if value is None or isinstance(value, kind):
        return value
    if isinstance(value, Mapping):
        data = cast("Mapping[str, object]", value)
        with suppress(TypeError, AttributeError):  # of data that is another's
            if (found := kind.read(data)).plain() == data:
                return found
    article = "a" if kind is Pricing else "an"
    message = f"expected {article} {kind.__name__}, found {value!r}."
    hint = "Leave it out for no limit."
    raise SpecError(Problem("AX128", f"limits.{name}", message, hint))


def estimate_of(
    *,
    model: str | Sequence[str] = "",
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    characters: int | Callable[[], int] | None = None,
    audio_seconds: float = 0.0,
) -> Estimate:
    """Return what a body expects a call of a model to use; see ``BudgetMeter.reserve``."""
    names = (model,) if isinstance(model, str) else tuple(model)
    return Estimate(
        models=tuple(name for name in names if name),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        characters=characters,
        audio_seconds=audio_seconds,
    )
