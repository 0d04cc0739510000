"""The meter of runs that counts model tokens and money, and holds them to limits.

The limits are ``tokens``, ``cost``, ``pricing`` and ``estimate`` of ``axil.Limits``. Of what bodies
report, ``cost`` is money and everything else model tokens, by kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from axil import Activation, LimitReached, Limits
from axil.plugin import RunUsage
from axil_models.budget.ledger import Ledger, Reservation
from axil_models.budget.limits import estimate_of, ledger_of

if TYPE_CHECKING:
    from axil.plugin import MeterMaker


class BudgetMeter:
    """The meter of a run (``axil.plugin.Meter``), on a ledger."""

    __slots__ = ("ledger", "usage")

    ledger: Ledger
    """The spent and reserved amounts, by account."""

    def __init__(
        self, usage: RunUsage, limits: Limits, stop: Callable[[LimitReached], None]
    ) -> None:
        """``stop``: ends the run when a limit is passed while bodies are at work.

        Raises: SpecError (AX128): a limit has another type.
        """
        self.usage = usage
        self.ledger = ledger_of(usage, limits, stop)

    @property
    def has_spent(self) -> bool:
        """See ``Meter``."""
        return bool(self.usage.tokens or self.usage.cost or self.ledger.has_accounts)

    def spend(self, who: Activation, amounts: Mapping[str, float]) -> None:
        """See ``Meter``."""
        self.ledger.charge(who, amounts)

    async def reserve(self, who: Activation, wanted: Mapping[str, Any]) -> Reservation:
        """Reserve what a model call may use, in the run's limits and in every budget around it.

        Args:
            wanted: as of ``Estimate``; ``model``: a name or several.
        Raises: OverBudget (AX417): a node's budget is used up; UnknownPrice (AX418).
        """
        return await self.ledger.reserve(who, estimate_of(**wanted))

    def as_data(self) -> dict[str, object]:
        """See ``Meter``."""
        used: dict[str, object] = {"tokens": dict(self.usage.tokens), "cost": self.usage.cost}
        nodes = self.ledger.as_data()
        return {**used, "nodes": nodes} if nodes else used

    def restore(self, used: Mapping[str, Any]) -> None:
        """See ``Meter``."""
        self.usage.restore(used)
        if nodes := used.get("nodes"):
            self.ledger.restore(nodes)

    def close(self) -> None:
        """See ``Meter``."""
        self.ledger.close()


if TYPE_CHECKING:
    _IS_A_METER: MeterMaker = BudgetMeter
