"""The ledger of a run from its limits, and the estimate of a call from what a body says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from axil import LimitReached, Problem, SpecError
from axil.plugin import RunUsage, did_you_mean, format_names
from axil_models.budget.ledger import Budget, Ledger
from axil_models.budget.prices import Estimate, Estimator, Pricing

_LIMITS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "tokens": ((int, float), "a number ≥ 0"),
    "cost": ((int, float), "a number ≥ 0"),
    "pricing": (Pricing, "a Pricing"),
    "estimate": (Estimator, "an Estimator"),
}
"""Limit → its type, and what that is called."""


def ledger_of(
    usage: RunUsage, uses: Mapping[str, Any], stop: Callable[[LimitReached], None]
) -> Ledger:
    """Return the ledger of a run.

    Args:
        uses: the limits, by name.
        stop: ends the run when a limit is passed while bodies are at work.
    Raises: SpecError (AX128): a limit is not known, or has another type.
    """
    problems = [each for name, value in uses.items() if (each := _problem(name, value))]
    if problems:
        raise SpecError(*problems)
    bounds = {name: value for name, value in uses.items() if name != "estimate"}
    return Ledger(usage, Budget(**bounds) if bounds else None, uses.get("estimate"), stop)


def _problem(name: str, value: Any) -> Problem | None:
    where = f"limits.{name}"
    if name not in _LIMITS:
        known = ("firings", "seconds", "concurrency", "lanes", *_LIMITS)
        hint = did_you_mean(name, known) or f"Limits are: {format_names(list(known))}."
        return Problem("AX128", where, "there is no such limit.", hint)
    kind, called = _LIMITS[name]
    if not isinstance(value, kind) or (name in ("tokens", "cost") and value < 0):
        message = f"expected {called}, found {value!r}."
        return Problem("AX128", where, message, "Leave it out for no limit.")
    return None


def estimate_of(
    *,
    model: str | Sequence[str] = "",
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    characters: int | Callable[[], int] | None = None,
) -> Estimate:
    """Return what a body expects a call of a model to use; see ``BudgetMeter.reserve``."""
    names = (model,) if isinstance(model, str) else tuple(model)
    return Estimate(
        models=tuple(name for name in names if name),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        characters=characters,
    )
