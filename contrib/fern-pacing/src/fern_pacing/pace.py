"""``pacing``: which firing is next, and how many a second.

A start is counted when ``choose_firing`` has chosen it, for what is chosen starts at once;
``admit_firing`` only looks whether there is room for another one. So a firing that is admitted and
not chosen takes nothing from the others.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from threading import Lock
from typing import Any

from axil import hookimpl
from axil.plugin import Firing

_EARLY = 1e-9
"""Seconds by which sums of seconds may be wrong."""


class PriorityAndRate:
    """``pacing``: starts what matters most first, and only so many firings a second.

    It changes when firings start, never what they come to. One object may be used by several runs
    and in several threads; they share its rates, and so should have one clock.
    """

    capabilities = ("changes_timing_only",)

    def __init__(
        self,
        priorities: Mapping[str, float] | None = None,
        rate: float | Mapping[str, float] | None = None,
    ) -> None:
        """Without settings it changes nothing.

        Args:
            priorities: by the name of a node, its lane or its type, whichever is found first; the
                highest is first. What is not named has 0, and of two that are alike the one that
                was due first is first.
            rate: starts a second: of each lane and, where a firing has no lane, of each type; or by
                the names of lanes and types, and what is not named is not limited.
        Raises: ValueError: a rate is not positive.
        """
        self._priorities = dict(priorities or {})
        self._rate = dict(rate) if isinstance(rate, Mapping) else rate
        given = self._rate.items() if isinstance(self._rate, dict) else [("rate", self._rate)]
        for name, each in given:
            if each is not None and not 0 < each < float("inf"):
                raise ValueError(
                    f"{name} is {each!r}; a rate is a number of firings a second, above 0. "
                    "Leave it out for no limit."
                )
        self._next: dict[str, float] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"PriorityAndRate(priorities={self._priorities!r}, rate={self._rate!r})"

    @hookimpl
    def admit_firing(self, firing: Firing) -> float | None:
        """Return how many seconds a firing has to wait for its rate; None: it may start."""
        name, rate = self._limit(firing)
        if rate is None:
            return None
        with self._lock:
            wait = self._next.get(name, firing.now) - firing.now
        return wait if wait > _EARLY else None

    @hookimpl(wrapper=True)
    def choose_firing(self, due: Sequence[Firing]) -> Generator[None, Any, Firing]:
        """Choose what matters most, unless another plugin has chosen, and count the start."""
        chosen: Firing | None = yield
        if chosen is None:
            chosen = max(due, key=self._priority)
        name, rate = self._limit(chosen)
        if rate is not None:
            with self._lock:
                # other threads may have started one since this firing was admitted
                begins = max(self._next.get(name, chosen.now), chosen.now)
                self._next[name] = begins + 1 / rate
        return chosen

    def _priority(self, firing: Firing) -> float:
        names = (firing.activation.node, firing.lane, firing.type)
        return next((self._priorities[name] for name in names if name in self._priorities), 0)

    def _limit(self, firing: Firing) -> tuple[str, float | None]:
        """Return what a firing is counted with, and so many of these may start in a second."""
        if not isinstance(self._rate, dict):
            return firing.type if firing.lane is None else firing.lane, self._rate
        names = [name for name in (firing.lane, firing.type) if name in self._rate]
        return (names[0] or "", self._rate[names[0] or ""]) if names else ("", None)
