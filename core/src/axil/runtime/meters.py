"""Makers of meters: that of axil-budget, and a meter that only adds up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from axil._door import provided
from axil.contract.meters import MeterMaker, MeterReservation, RunUsage
from axil.errors import NotInstalled
from axil.kernel.tokens import Activation

_NO_LIMITS: Mapping[str, Any] = {}


@cache
def usual_maker() -> MeterMaker:
    """Return the maker of meters where nothing is limited but what the runtime counts: that of
    axil-budget, or ``Tally`` where it is not installed.
    """
    try:
        return limiting_maker("")
    except NotInstalled:
        return Tally


def limiting_maker(wanted: str) -> MeterMaker:
    """Return the maker of the meters of axil-budget.

    Args:
        wanted: what needs it, for the message.
    Raises: NotInstalled (AX306): axil-budget is not installed.
    """
    return provided("axil_budget.meter", "BudgetMeter", wanted=wanted)


@dataclass(slots=True)
class TalliedUsage(RunUsage):
    """The usage of a run, by the names that its bodies gave."""

    amounts: dict[str, float] = field(default_factory=dict[str, float])

    def __getattr__(self, name: str) -> Any:
        message = f"this run's usage has no {name!r}: its meter does not count it."
        raise AttributeError(message, name=name, obj=self)


class Tally:
    """A meter without limits: it adds up what is spent."""

    __slots__ = ("_others", "usage")

    def __init__(
        self, limits: Mapping[str, Any] = _NO_LIMITS, stop: Callable[..., None] | None = None
    ) -> None:
        """See ``MeterMaker``; there are no limits, so nothing is stopped."""
        self.usage = TalliedUsage()
        # usage that another meter recorded; it stays in the journal
        self._others: dict[str, Any] = {}

    @property
    def ledger(self) -> Any:
        """Raise NotInstalled (AX306): the ledger comes with axil-budget, which is not installed."""
        limiting_maker("ctx.ledger")

    @property
    def has_spent(self) -> bool:
        """See ``Meter``."""
        return bool(self.usage.amounts)

    def spend(self, who: Activation, amounts: Mapping[str, float]) -> None:
        """See ``Meter``."""
        mine = self.usage.amounts
        for name, amount in amounts.items():
            mine[name] = mine.get(name, 0) + amount

    async def reserve(self, who: Activation, wanted: Mapping[str, Any]) -> MeterReservation:
        """See ``Meter``; there is always enough."""
        return _Free(self, who)

    def as_data(self) -> dict[str, Any]:
        """See ``Meter``."""
        return {**self._others, "amounts": dict(self.usage.amounts)}

    def restore(self, used: Mapping[str, Any]) -> None:
        """See ``Meter``."""
        own = ("amounts", "cycles", "firings")
        self.usage.amounts = dict(used.get("amounts", ()))
        self._others = {name: value for name, value in used.items() if name not in own}

    def close(self) -> None:
        """See ``Meter``."""


class _Free:
    """A reservation of what nothing limits."""

    __slots__ = ("_tally", "_who")

    def __init__(self, tally: Tally, who: Activation) -> None:
        self._tally, self._who = tally, who

    def settle(self, **used: Any) -> None:
        amounts = {name: n for name, n in used.items() if isinstance(n, (int, float)) and n}
        self._tally.spend(self._who, amounts)

    def release(self) -> None:
        pass

    def __enter__(self) -> MeterReservation:
        return self

    def __exit__(self, *_: object) -> None:
        pass
