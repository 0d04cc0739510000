"""Two reports compared: what became better, what became worse, and what is chance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal

from axil_evals.errors import EvalError
from axil_evals.evaluation import Report
from axil_evals.statistics import LEVEL, Pairs, chance, difference, holm

Verdict = Literal["better", "worse", "no difference"]
_LESS_IS_BETTER = ("seconds", "money", "tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The difference of one measure between two versions."""

    measure: str
    """The name of a scorer; or one of ``MEASURES``."""
    first: float
    """The mean over cases of the first version."""
    second: float
    chance: float
    """The p value, corrected for the number of measures."""
    verdict: Verdict
    better: tuple[str, ...] = ()
    """Cases whose mean is better."""
    worse: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The differences of two reports."""

    first: str
    second: str
    cases: int
    changes: tuple[Change, ...]
    only_first: tuple[str, ...] = ()
    """Cases that the second report lacks."""
    only_second: tuple[str, ...] = ()
    level: float = LEVEL
    notes: tuple[str, ...] = ()

    @property
    def is_worse(self) -> bool:
        """True if a scorer, or the share of trials that are done, became worse."""
        return any(
            each.verdict == "worse" and each.measure not in _LESS_IS_BETTER for each in self.changes
        )

    def plain(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        return asdict(self)


def compare(first: Report, second: Report, *, level: float = LEVEL) -> Comparison:
    """Return how the second report differs from the first; ``level``: the chance of calling
    anything different where nothing is.

    Raises: EvalError (AX976): they have no case in common.
    """
    common = [name for name in first.trials if first.trials[name] and second.trials.get(name)]
    if not common:
        message = "the reports have no case in common."
        raise EvalError("AX976", message, "Compare runs of one dataset.")
    scorers = [name for name in first.scorers if name in second.scorers]
    pairs: dict[str, Pairs] = {}
    for measure in ("done", *scorers, *_LESS_IS_BETTER):
        of = Report.values if measure in scorers else Report.measured
        one, other = of(first, measure), of(second, measure)
        found = {name: (one[name], other[name]) for name in common if name in one and name in other}
        if found:
            pairs[measure] = found
    corrected: dict[str, float] = {}
    for are_resources in (False, True):
        tested = [name for name in pairs if (name in _LESS_IS_BETTER) is are_resources]
        corrected |= _corrected({name: pairs[name] for name in tested})
    changes = tuple(_change(name, each, corrected[name], level) for name, each in pairs.items())
    notes: list[str] = []
    if len(common) == 1:
        notes.append("There is one case: what is said holds for that case.")
    least = min((_least(each) for each in pairs.values()), default=1.0)
    if least > level:
        notes.append("There are too few trials for any difference to be told from chance.")
    return Comparison(
        first=first.target,
        second=second.target,
        cases=len(common),
        changes=changes,
        only_first=tuple(name for name in first.trials if name not in common),
        only_second=tuple(name for name in second.trials if name not in common),
        level=level,
        notes=tuple(notes),
    )


def _change(measure: str, pairs: Pairs, corrected: float, level: float) -> Change:
    first = fmean(fmean(a) for a, _ in pairs.values())
    sign = -1 if measure in _LESS_IS_BETTER else 1
    moved = {name: sign * (fmean(b) - fmean(a)) for name, (a, b) in pairs.items()}
    verdict: Verdict = "no difference"
    if corrected <= level:
        verdict = "better" if sum(moved.values()) > 0 else "worse"
    return Change(
        measure=measure,
        first=first,
        second=first + difference(pairs),
        chance=corrected,
        verdict=verdict,
        better=_sorted(moved, 1),
        worse=_sorted(moved, -1),
    )


def _corrected(pairs: Mapping[str, Pairs]) -> dict[str, float]:
    """Return corrected p values of measures that are tested together: qualities, or resources.

    What never varies is no test.
    """
    chances = {
        name: chance(each)
        for name, each in pairs.items()
        if any(len({*a, *b}) > 1 for a, b in each.values())
    }
    return {**dict.fromkeys(pairs, 1.0), **holm(chances)}


def _sorted(moved: Mapping[str, float], sign: int) -> tuple[str, ...]:
    found = [(name, sign * by) for name, by in moved.items() if sign * by > 1e-9]
    return tuple(name for name, _ in sorted(found, key=lambda pair: -pair[1]))


def _least(pairs: Pairs) -> float:
    """Return the smallest p value that so many trials could give."""
    ways = 1
    for first, second in pairs.values():
        ways *= math.comb(len(first) + len(second), len(first))
        if ways > 10_000:
            break
    return 2 / ways
