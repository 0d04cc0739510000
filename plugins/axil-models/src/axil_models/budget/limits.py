"""The ledger of a run from its limits, and the estimate of a call from what a body says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from axil import LimitReached, Limits, Problem, SpecError
from axil.plugin import RunUsage
from axil_models.budget.ledger import Budget, Ledger
from axil_models.budget.prices import Estimate, Estimator, Pricing


def ledger_of(usage: RunUsage, limits: Limits, stop: Callable[[LimitReached], None]) -> Ledger:
    """Return the ledger of a run.

    Args:
        stop: ends the run when a limit is passed while bodies are at work.
    Raises: SpecError (AX128): ``pricing`` or ``estimate`` has another type.
    """
    found: dict[str, Any] = {}
    for name, kind, called in (
        ("pricing", Pricing, "a Pricing"),
        ("estimate", Estimator, "an Estimator"),
    ):
        value = found[name] = _read(kind, getattr(limits, name))
        if value is not None and not isinstance(value, kind):
            message = f"expected {called}, found {value!r}."
            hint = "Leave it out for no limit."
            raise SpecError(Problem("AX128", f"limits.{name}", message, hint))
    tokens, cost, pricing = limits.tokens, limits.cost, found["pricing"]
    budget = Budget(tokens=tokens, cost=cost, pricing=pricing) if limits.need_ledger else None
    return Ledger(usage, budget, found["estimate"], stop)


def _read(kind: type[Pricing] | type[Estimator], value: Any) -> Any:
    """Return an object again whose plain data a journal kept, and anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    data = cast("Mapping[str, Any]", value)
    with suppress(TypeError, AttributeError):  # of data that is another's
        if (found := kind.read(data)).plain() == data:
            return found
    return data


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
