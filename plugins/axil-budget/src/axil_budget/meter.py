"""The meter of runs that counts model tokens and money, and holds them to limits.

The limits are ``tokens``, ``cost``, ``pricing`` and ``estimate`` of ``axil.Limits``. Of what bodies
report, ``cost`` is money and everything else model tokens, by kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from axil import Activation, LimitReached, Problem, SpecError
from axil.plugin import did_you_mean, format_names
from axil_budget.ledger import Budget, Ledger, Reservation, Usage
from axil_budget.prices import Estimate, Estimator, Pricing

if TYPE_CHECKING:
    from axil.plugin import MeterMaker

_LIMITS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "tokens": ((int, float), "a number ≥ 0"),
    "cost": ((int, float), "a number ≥ 0"),
    "pricing": (Pricing, "a Pricing"),
    "estimate": (Estimator, "an Estimator"),
}
"""Limit → its type, and what that is called."""


class BudgetMeter:
    """The meter of a run (``axil.plugin.Meter``), on a ledger."""

    __slots__ = ("ledger", "usage")

    def __init__(self, uses: Mapping[str, Any], stop: Callable[[LimitReached], None]) -> None:
        """Begin to count.

        Args:
            uses: the limits, by name.
            stop: ends the run when a limit is passed while bodies are at work.
        Raises: SpecError (AX128): a limit is not known, or has another type.
        """
        problems = [each for name, value in uses.items() if (each := _problem(name, value))]
        if problems:
            raise SpecError(*problems)
        bounds = {name: value for name, value in uses.items() if name != "estimate"}
        self.usage = Usage()
        self.ledger = Ledger(
            self.usage, Budget(**bounds) if bounds else None, uses.get("estimate"), stop
        )
        """The spent and reserved amounts, by account."""

    @property
    def has_spent(self) -> bool:
        """See ``Meter``."""
        return bool(self.usage.tokens or self.usage.cost or self.ledger.has_accounts)

    def spend(self, who: Activation, amounts: Mapping[str, float]) -> None:
        """See ``Meter``."""
        self.ledger.charge(who, *_parted(amounts))

    async def reserve(self, who: Activation, wanted: Mapping[str, Any]) -> Reservation:
        """Reserve what a model call may use, in the run's limits and in every budget around it.

        Args:
            wanted: ``model``: its name, for prices; several: it may be any of them.
                ``input_tokens``; without: estimated from ``characters``, or from what a function
                that counts them gives. ``output_tokens``: the most that it may answer; without:
                what ``limits.estimate`` assumes.
        Raises: OverBudget (AX417): a node's budget is used up; UnknownPrice (AX418).
        """
        return await self.ledger.reserve(who, _estimate(**wanted))

    def as_data(self) -> dict[str, Any]:
        """See ``Meter``."""
        used: dict[str, Any] = {"tokens": dict(self.usage.tokens), "cost": self.usage.cost}
        nodes = self.ledger.as_data()
        return {**used, "nodes": nodes} if nodes else used

    def restore(self, used: Mapping[str, Any]) -> None:
        """See ``Meter``; usage that a ``Tally`` recorded counts, too."""
        self.usage.tokens, self.usage.cost = dict(used.get("tokens", ())), used.get("cost", 0.0)
        self.usage.add(*_parted(used.get("amounts", {})))
        self.ledger.restore(used.get("nodes", {}))

    def close(self) -> None:
        """See ``Meter``."""
        self.ledger.close()


if TYPE_CHECKING:
    _IS_A_METER: MeterMaker = BudgetMeter


def _parted(amounts: Mapping[str, float]) -> tuple[dict[str, Any], float]:
    """Return tokens by kind, and money."""
    tokens = {name: amount for name, amount in amounts.items() if name != "cost"}
    return tokens, amounts.get("cost", 0.0)


def _estimate(
    *,
    model: str | Sequence[str] = "",
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    characters: int | Callable[[], int] | None = None,
) -> Estimate:
    names = (model,) if isinstance(model, str) else tuple(model)
    return Estimate(
        models=tuple(name for name in names if name),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        characters=characters,
    )


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
