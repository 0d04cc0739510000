"""Meters, which count what a run uses, hold it to limits, and tell a journal about it.

The runtime counts firings and seconds; bodies report model tokens and money (``ctx.spend``) or
reserve them before a call (``ctx.reserve``). A meter with limits is a component of the kind
``meters``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

from axil.errors import LimitReached
from axil.kernel.tokens import Activation
from axil.spec.graph import Limits


@dataclass(slots=True)
class RunUsage:
    """The resources that a run has used."""

    firings: int = 0
    seconds: float = 0.0
    tokens: dict[str, int] = field(default_factory=dict[str, int])
    """Model tokens by kind."""
    cost: float = 0.0

    def add(self, amounts: Mapping[str, Any]) -> None:
        """Count amounts by name: ``cost`` is money, everything else model tokens by kind."""
        for name, amount in amounts.items():
            if name == "cost":
                self.cost += amount
            else:
                self.tokens[name] = self.tokens.get(name, 0) + amount

    def restore(self, used: Mapping[str, Any]) -> None:
        """Count on from the usage in a journal."""
        self.tokens, self.cost = dict(used.get("tokens", ())), used.get("cost", 0.0)
        self.add(used.get("amounts", {}))  # of a run that was recorded by an older meter


class MeterReservation(Protocol):
    """An amount that a meter has reserved; a ``with`` releases it unless it was settled."""

    def settle(self, **used: Any) -> None:
        """Replace the reservation by what was used."""
        ...

    def release(self) -> None:
        """End the reservation; nothing was used."""
        ...

    def __enter__(self) -> MeterReservation: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


class Meter(Protocol):
    """The meter of one run, called in the thread of the run's loop."""

    @property
    def usage(self) -> RunUsage:
        """The usage so far; the runtime counts its firings and seconds."""
        ...

    @property
    def ledger(self) -> object:
        """The ledger for wrappers that know this meter."""
        ...

    @property
    def has_spent(self) -> bool:
        """True if a journal has to record usage."""
        ...

    def spend(self, who: Activation, amounts: Mapping[str, float]) -> None:
        """Count what was used; where it passes a limit of the run, stop the run."""
        ...

    async def reserve(self, who: Activation, wanted: Mapping[str, object]) -> MeterReservation:
        """Reserve what is about to be used, wait for it, or raise."""
        ...

    def as_data(self) -> dict[str, object]:
        """Return plain data for a journal, by names other than ``firings`` and ``cycles``."""
        ...

    def restore(self, used: Mapping[str, Any]) -> None:
        """Count on from the usage in a journal, ``firings`` and ``cycles`` included."""
        ...

    def close(self) -> None:
        """End: threads that could not be stopped still spend, which stops nothing."""
        ...


MeterMaker = Callable[[RunUsage, Limits, Callable[[LimitReached], None]], Meter]
"""From the usage to count in, the limits, and what stops the run with a reason."""
