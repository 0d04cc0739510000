"""Statistics of a batch: how its runs ended, what they took and what they cost."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from axil_cli.batch.batch import RowResult

_BEGUN = ("done", "failed", "paused", "limited", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The statistics of a batch."""

    statuses: dict[str, int]
    """The number of rows by the status of their runs."""
    median_seconds: float
    slowest_seconds: float
    """The time within which 95 of 100 runs ended."""
    tokens: int
    cost: float
    seconds: float
    """The duration of the batch this time, in seconds."""
    batches: int = 0
    """Batches of calls that were submitted to services this time."""
    discount: float = 0.0
    """The share of the usual price that these services do not ask for."""

    @classmethod
    def of(cls, results: Sequence[RowResult], seconds: float = 0.0) -> Statistics:
        """Return the statistics of these results; times are of runs that were begun."""
        times = sorted(result.seconds for result in results if result.status in _BEGUN)
        return cls(
            statuses=dict(Counter(result.status for result in results).most_common()),
            median_seconds=statistics.median(times) if times else 0.0,
            slowest_seconds=times[math.ceil(0.95 * len(times)) - 1] if times else 0.0,
            tokens=sum(result.tokens for result in results),
            cost=sum(result.cost for result in results),
            seconds=seconds,
        )

    def as_data(self) -> dict[str, Any]:
        """Return them as plain data."""
        return {
            "rows": sum(self.statuses.values()),
            "statuses": dict(self.statuses),
            "seconds": round(self.seconds, 3),
            "run_seconds": {
                "median": round(self.median_seconds, 3),
                "p95": round(self.slowest_seconds, 3),
            },
            "tokens": self.tokens,
            "cost": self.cost,
            **({"batches": self.batches, "discount": self.discount} if self.discount else {}),
        }

    def lines(self) -> list[str]:
        """Return them as lines of text."""
        found = [f"rows     {sum(self.statuses.values())}"]
        found += [f"  {status:<7}{count}" for status, count in self.statuses.items()]
        times = f"median {self.median_seconds:.2f} s, 95 % within {self.slowest_seconds:.2f} s"
        found.append(f"runs     {times}")
        if self.tokens:
            found.append(f"tokens   {self.tokens}")
        if self.cost:
            share = f" ({1 - self.discount:.0%} of the usual price)" if self.discount else ""
            found.append(f"cost     {self.cost:.4f}{share}")
        if self.discount:
            found.append(f"batches  {self.batches} submitted, {self.discount:.0%} off")
        return [*found, f"took     {self.seconds:.2f} s"]


__all__ = ["Statistics"]
