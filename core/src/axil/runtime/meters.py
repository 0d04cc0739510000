"""The meter of a run: one that its caller gave, axil-budget's, or one that only adds up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from axil._door import provided
from axil.contract.meters import Meter, MeterMaker, MeterReservation, RunUsage
from axil.errors import LimitReached, NotInstalled
from axil.kernel.tokens import Activation
from axil.spec.graph import Limits


def begin_meter(
    limits: Limits, make: MeterMaker | None, stop: Callable[[LimitReached], None]
) -> Meter:
    """Return the meter of a run: what ``make`` makes, else axil-budget's, else, where nothing but
    the runtime's own is limited, a ``Tally``.

    Args:
        stop: ends the run when a limit is passed while bodies are at work.
    Raises: NotInstalled (AX306): axil-budget is needed and not installed; SpecError (AX128): the
    meter does not know a limit.
    """
    if make is None and limits.uses:
        make = _installed_maker(f"a limit on {' and '.join(limits.uses)}")
    make = make or _usual_maker()
    return Tally() if make is None else make(limits.uses, stop)


@cache
def _usual_maker() -> MeterMaker | None:
    try:
        return _installed_maker("")
    except NotInstalled:
        return None


def _installed_maker(wanted: str) -> MeterMaker:
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


class Tally:
    """A meter without limits: it adds up what is spent."""

    __slots__ = ("_others", "usage")

    def __init__(self) -> None:
        self.usage = TalliedUsage()
        self._others: dict[
            str, Any
        ] = {}  # usage that another meter recorded; it stays in the journal

    @property
    def ledger(self) -> Any:
        """Raise NotInstalled (AX306): the ledger comes with axil-budget, which is not installed."""
        _installed_maker("ctx.ledger")

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


__all__ = ["TalliedUsage", "Tally", "begin_meter"]
