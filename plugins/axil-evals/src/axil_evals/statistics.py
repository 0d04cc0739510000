"""Intervals and tests; the same numbers always give the same answer.

**Interval of a mean.** Wilson's score interval over cases. Repeats of a case are not independent of
each other, so they do not count as further cases; where there is one case, its repeats are counted.
For values between 0 and 1 the interval is at least as wide as it has to be, also where all values
are equal.

**Test of a difference.** A permutation test within cases: if two versions were the same, each trial
of a case could as well be one of the other version. The statistic is the mean over cases of the
difference of means. All assignments are counted where sums of differences are few, as for scores of
yes and no; else a fixed sample of them.

**Several tests.** Holm's step-down correction: the chance that any measure is called different
where none is, is at most the level.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

LEVEL = 0.05
"""The chance of an error that is accepted."""
_Z = 1.959963984540054
_MOST = 20_000
"""Up to so many assignments, and sums of differences, are all looked at."""
_SAMPLES = 9_999


class Interval(NamedTuple):
    """A mean, and the interval in which it lies with 95 % confidence."""

    mean: float
    low: float
    high: float


def interval(values: Sequence[Sequence[float]]) -> Interval:
    """Return the mean over cases with its interval.

    Args:
        values: from 0 to 1, those of the repeats of each case.

    >>> tuple(round(number, 3) for number in interval([[1.0], [1.0], [0.0], [1.0]]))
    (0.75, 0.301, 0.954)
    """
    filled = [case for case in values if case]
    if not filled:
        return Interval(math.nan, 0.0, 1.0)
    means = [fmean(case) for case in filled]
    mean, n = fmean(means), len(means) if len(means) > 1 else len(filled[0])
    center = (mean + _Z * _Z / (2 * n)) / (1 + _Z * _Z / n)
    half = _Z / (1 + _Z * _Z / n) * math.sqrt(mean * (1 - mean) / n + _Z * _Z / (4 * n * n))
    return Interval(mean, max(0.0, min(mean, center - half)), min(1.0, max(mean, center + half)))


Pairs = Mapping[str, tuple[Sequence[float], Sequence[float]]]
"""By case: the values of its trials with the first version, and with the second."""


def difference(pairs: Pairs) -> float:
    """Return the mean over cases of how much greater the second version's mean is."""
    return fmean(fmean(b) - fmean(a) for a, b in pairs.values())


def chance(pairs: Pairs) -> float:
    """Return how likely a difference at least as large is if the versions do not differ: the p
    value of the permutation test.

    >>> chance({str(n): ([0.0], [1.0]) for n in range(6)})
    0.03125
    >>> chance({"a": ([1.0], [1.0])})
    1.0
    """
    told = {name: pair for name, pair in pairs.items() if len({*pair[0], *pair[1]}) > 1}
    if not told:
        return 1.0
    observed = abs(sum(fmean(b) - fmean(a) for a, b in told.values()))
    least = observed - 1e-9 * max(1.0, observed)
    draw = random.Random(0)  # a sample, not a secret; always the same one
    each_case = [_differences(first, second, draw) for first, second in told.values()]
    sums = _sums(each_case) if all(is_all for _, is_all in each_case) else None
    if sums is not None:
        return sum(ways for by, ways in sums.items() if abs(by) >= least) / sum(sums.values())
    drawn = [draw.choices([*found], [*found.values()], k=_SAMPLES) for found, _ in each_case]
    reached = sum(abs(sum(chosen)) >= least for chosen in zip(*drawn, strict=True))
    return (1 + reached) / (1 + _SAMPLES)


def _differences(
    first: Sequence[float], second: Sequence[float], draw: random.Random
) -> tuple[Counter[float], bool]:
    """Return the differences of means that assignments of a case's trials give, with how many give
    each; and whether these are all assignments.
    """
    pool, size = [*first, *second], len(first)
    whole = sum(pool)
    is_all = math.comb(len(pool), size) <= _MOST
    if is_all:
        chosen: Iterable[Sequence[float]] = combinations(pool, size)
    else:
        chosen = (draw.sample(pool, size) for _ in range(_MOST))
    found: Counter[float] = Counter()
    for each in chosen:
        of_first = sum(each)
        found[round((whole - of_first) / len(second) - of_first / size, 9)] += 1
    return found, is_all


def _sums(each_case: Sequence[tuple[Counter[float], bool]]) -> dict[float, int] | None:
    """Return the sums of differences over cases, with how many assignments give each; None: there
    are too many to look at.
    """
    sums: dict[float, int] = {0.0: 1}
    for found, _ in each_case:
        if len(sums) * len(found) > _MOST:
            return None
        after: dict[float, int] = {}
        for total, ways in sums.items():
            for by, count in found.items():
                at = round(total + by, 9)
                after[at] = after.get(at, 0) + ways * count
        sums = after
    return sums


def holm(chances: Mapping[str, float]) -> dict[str, float]:
    """Return p values that are corrected for how many there are.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.5})
    {'a': 0.03, 'b': 0.08, 'c': 0.5}
    """
    corrected: dict[str, float] = {}
    highest = 0.0
    for rank, (name, each) in enumerate(sorted(chances.items(), key=lambda pair: pair[1])):
        highest = max(highest, min(1.0, each * (len(chances) - rank)))
        corrected[name] = highest
    return {name: corrected[name] for name in chances}
