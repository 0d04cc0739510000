"""The meter of runs that counts model tokens and money, and holds them to limits.

The limits are ``tokens``, ``cost``, ``pricing`` and ``estimate`` of ``axil.Limits``. Of what bodies
report, ``cost`` is money and everything else model tokens, by kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from axil import Activation, LimitReached, Limits
from axil.plugin import RunUsage

if TYPE_CHECKING:
    from axil.plugin import MeterMaker
    from axil_models.budget.ledger import Ledger, Reservation


class BudgetMeter:
    """The meter of a run (``axil.plugin.Meter``), on a ledger."""

    __slots__ = ("_ledger", "_stop", "usage")

    def __init__(
        self, usage: RunUsage, limits: Limits, stop: Callable[[LimitReached], None]
    ) -> None:
        """Begin to count.

        Args:
            usage: what is counted in.
            stop: ends the run when a limit is passed while bodies are at work.
        Raises: SpecError (AX128): a limit has another type.
        """
        self.usage, self._stop = usage, stop
        self._ledger = self._begun(limits) if limits.need_ledger else None

    @property
    def ledger(self) -> Ledger:
        """The spent and reserved amounts, by account. Without limits it begins when something is
        spent or reserved: a run that does neither loads none of it.
        """
        if self._ledger is None:
            self._ledger = self._begun(Limits())
        return self._ledger

    def _begun(self, limits: Limits) -> Ledger:
        from axil_models.budget.limits import ledger_of

        return ledger_of(self.usage, limits, self._stop)

    @property
    def has_spent(self) -> bool:
        """See ``Meter``."""
        has_accounts = self._ledger is not None and self._ledger.has_accounts
        return bool(self.usage.tokens or self.usage.cost or has_accounts)

    def spend(self, who: Activation, amounts: Mapping[str, float]) -> None:
        """See ``Meter``."""
        self.ledger.charge(who, amounts)

    async def reserve(self, who: Activation, wanted: Mapping[str, Any]) -> Reservation:
        """Reserve what a model call may use, in the run's limits and in every budget around it.

        Args:
            wanted: ``model``: its name, for prices; several: it may be any of them.
                ``input_tokens``; without: estimated from ``characters``, or from what a function
                that counts them gives. ``output_tokens``: the most that it may answer; without:
                what ``limits.estimate`` assumes.
        Raises: OverBudget (AX417): a node's budget is used up; UnknownPrice (AX418).
        """
        from axil_models.budget.limits import estimate_of

        return await self.ledger.reserve(who, estimate_of(**wanted))

    def as_data(self) -> dict[str, Any]:
        """See ``Meter``."""
        used: dict[str, Any] = {"tokens": dict(self.usage.tokens), "cost": self.usage.cost}
        nodes = {} if self._ledger is None else self._ledger.as_data()
        return {**used, "nodes": nodes} if nodes else used

    def restore(self, used: Mapping[str, Any]) -> None:
        """See ``Meter``."""
        self.usage.restore(used)
        if nodes := used.get("nodes"):
            self.ledger.restore(nodes)

    def close(self) -> None:
        """See ``Meter``."""
        self._stop = _unheard
        if self._ledger is not None:
            self._ledger.close()


if TYPE_CHECKING:
    _IS_A_METER: MeterMaker = BudgetMeter


def _unheard(limit: LimitReached) -> None:
    """Ignore a limit that is passed after the end of the run."""
