"""The meter of runs without limits on what bodies use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from axil.contract.meters import Meter, MeterMaker, MeterReservation, RunUsage
from axil.errors import LimitReached
from axil.kernel.tokens import Activation
from axil.spec.graph import Limits


def meter_of(limits: Limits, stop: Callable[[LimitReached], None]) -> Meter:
    """Return the meter of a run.

    Args:
        stop: ends the run when a limit is passed while bodies are at work.

    Raises: UnknownComponent: model tokens or money are limited, and no meter that limits them is
    installed.
    """
    usage = RunUsage()
    if limits.tokens is limits.cost is limits.pricing is limits.estimate is None:
        return Tally(usage, stop)
    return limiting_maker()(usage, limits, stop)


def limiting_maker() -> MeterMaker:
    """Return the component ``budget`` of the kind ``meters``.

    Raises: UnknownComponent: none is installed.
    """
    from axil.registry.registry import default_registry

    return default_registry().resolve("meters", "budget")


class Tally:
    """A meter without limits; a body that asks for the ledger, to limit its node, gets a limiting
    meter's, which counts on.
    """

    __slots__ = ("_limiting", "_stop", "usage")

    def __init__(self, usage: RunUsage, stop: Callable[[LimitReached], None]) -> None:
        self.usage, self._stop = usage, stop
        self._limiting: Meter | None = None

    @property
    def ledger(self) -> object:
        if self._limiting is None:
            self._limiting = limiting_maker()(self.usage, Limits(), self._stop)
        return self._limiting.ledger

    @property
    def has_spent(self) -> bool:
        if self._limiting is not None:
            return self._limiting.has_spent
        return bool(self.usage.tokens or self.usage.cost)

    def spend(self, who: Activation, amounts: Mapping[str, float]) -> None:
        if self._limiting is not None:
            self._limiting.spend(who, amounts)
        else:
            self.usage.add(amounts)

    async def reserve(self, who: Activation, wanted: Mapping[str, object]) -> MeterReservation:
        if self._limiting is not None:
            return await self._limiting.reserve(who, wanted)
        return _Free(self, who)

    def as_data(self) -> dict[str, object]:
        if self._limiting is not None:
            return self._limiting.as_data()
        return {"tokens": dict(self.usage.tokens), "cost": self.usage.cost}

    def restore(self, used: Mapping[str, object]) -> None:
        if "nodes" in used:  # accounts of nodes, which only a ledger has
            _ = self.ledger
        if self._limiting is not None:
            self._limiting.restore(used)
        else:
            self.usage.restore(used)

    def close(self) -> None:
        self._stop = _ignored
        if self._limiting is not None:
            self._limiting.close()


def _ignored(limit: LimitReached) -> None:
    """Ignore a limit that is passed after the end of the run."""


class _Free:
    __slots__ = ("_tally", "_who")

    def __init__(self, tally: Tally, who: Activation) -> None:
        self._tally, self._who = tally, who

    def settle(
        self,
        *,
        model: str = "",
        cached_tokens: int = 0,
        cache_write_tokens: int = 0,
        audio_tokens: Sequence[int] = (),
        audio_seconds: float = 0.0,
        discount: float = 0.0,
        **used: float,
    ) -> None:
        """Count what was used; tokens of caches and audio are among the others."""
        self._tally.spend(self._who, {name: amount for name, amount in used.items() if amount})

    def release(self) -> None:
        pass

    def __enter__(self) -> MeterReservation:
        return self

    def __exit__(self, *_: object) -> None:
        pass
