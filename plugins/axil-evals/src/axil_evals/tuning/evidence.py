"""The test of whether a variant is better than the file as it is, or only luckier.

What is chosen by the training part is tested on cases that had no part in the choice, by the
permutation test of comparisons, of one side: a variant that is no better is called better with a
chance of at most the level. The number of variants that are tested is corrected for (Holm).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, NamedTuple

from axil_evals.statistics import LEVEL, Interval, Pairs, chance, difference, holm, interval

Outcome = Literal["better", "no better", "out of budget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The held-out part: a variant beside the file as it is."""

    before: Interval
    """The mean over cases of the file as it is."""
    after: Interval
    gain: float
    chance: float
    """The p value, corrected for how many variants were tested."""
    better: tuple[str, ...]
    """Cases whose mean is better."""
    worse: tuple[str, ...]
    cases: int
    is_better: bool


class Trials(NamedTuple):
    """The numbers of a held-out part."""

    cases: int
    repeats: int

    @property
    def least_chance(self) -> float:
        """The smallest p value that they can give.

        >>> Trials(5, 1).least_chance, Trials(4, 1).least_chance
        (0.03125, 0.0625)
        """
        return math.comb(2 * self.repeats, self.repeats) ** -float(self.cases)


def weigh(pairs: Sequence[Pairs], level: float = LEVEL) -> list[Evidence]:
    """Return the evidence for each variant that was tested.

    Args:
        pairs: by case, the values of the file as it is and of the variant.
        level: the chance of calling any variant better where none is.
    """
    sides = {str(n): _one_sided(each) for n, each in enumerate(pairs)}
    corrected = holm(sides)
    return [
        _evidence(each, corrected[str(n)], corrected[str(n)] <= level)
        for n, each in enumerate(pairs)
    ]


def _one_sided(pairs: Pairs) -> float:
    # exchanging the versions turns the sign: the distribution is symmetric
    both = chance(pairs)
    return both / 2 if difference(pairs) > 0 else 1.0


def _evidence(pairs: Pairs, corrected: float, is_better: bool) -> Evidence:
    moved = {name: fmean(after) - fmean(before) for name, (before, after) in pairs.items()}
    return Evidence(
        before=interval([before for before, _ in pairs.values()]),
        after=interval([after for _, after in pairs.values()]),
        gain=difference(pairs),
        chance=corrected,
        better=_moved(moved, 1),
        worse=_moved(moved, -1),
        cases=len(pairs),
        is_better=is_better,
    )


def _moved(moved: Mapping[str, float], sign: int) -> tuple[str, ...]:
    return tuple(name for name, by in moved.items() if sign * by > 1e-9)
