"""The evidence of a search, as text."""

from __future__ import annotations

from collections.abc import Iterator

from axil_evals.statistics import LEVEL, Interval
from axil_evals.tuning.parameters import Candidate, Variant
from axil_evals.tuning.search import Search, Tuned


def verdict(tuned: Tuned) -> str:
    """Return the outcome in one sentence."""
    evidence = tuned.evidence
    if tuned.outcome == "out of budget":
        return "Nothing is shown: the budget was used up before the held-out part was through."
    if evidence is None:
        return "Nothing that was tried was better on the training part than the file as it is."
    numbers = (
        f"{_interval(evidence.before)} before, {_interval(evidence.after)} after, on "
        f"{evidence.cases} cases that were held out; p = {evidence.chance:.3g}"
    )
    if tuned.outcome == "better":
        return f"Better: {numbers}."
    return f"Nothing was better than chance: {numbers}."


def as_text(tuned: Tuned) -> str:
    """Return what a terminal shows."""
    return "\n".join(
        [
            *(f"{each.mean:8.3f}  {_described(each.variant)}" for each in tuned.tried),
            "",
            verdict(tuned),
            *(f"  {each.described()}" for each in tuned.variant),
            f"spent {tuned.spent:.4g}",
            *tuned.notes,
        ]
    )


def as_markdown(tuned: Tuned, name: str, dataset: str, search: Search) -> str:
    """Return the report that is kept beside the file."""
    return "\n".join(_lines(tuned, name, dataset, search)) + "\n"


def _lines(tuned: Tuned, name: str, dataset: str, search: Search) -> Iterator[str]:
    training, held = tuned.split
    yield f"# {name}, tuned by {dataset}"
    yield ""
    yield verdict(tuned)
    yield ""
    if tuned.variant:
        yield "## What was changed" if tuned.outcome == "better" else "## What was tested"
        for each in tuned.variant:
            yield ""
            yield f"`{each.parameter.name}`:"
            yield ""
            yield from (f"    {line}" for line in _whole(each).split("\n"))
        yield ""
    if (evidence := tuned.evidence) is not None:
        yield "## On the cases that were held out"
        yield ""
        yield "| | |"
        yield "|---|---|"
        yield f"| before | {_interval(evidence.before)} |"
        yield f"| after | {_interval(evidence.after)} |"
        yield f"| better | {len(evidence.better)} of {evidence.cases}{_named(evidence.better)} |"
        yield f"| worse | {len(evidence.worse)} of {evidence.cases}{_named(evidence.worse)} |"
        yield f"| p, of one side | {evidence.chance:.3g}; better where it is at most {LEVEL} |"
        yield ""
    yield "## What was tried, on the training part"
    yield ""
    yield "| mean | gain | variant |"
    yield "|---|---|---|"
    for tried in tuned.tried:
        yield f"| {tried.mean:.3f} | {tried.gain:+.3f} | {_cell(_described(tried.variant))} |"
    yield ""
    yield (
        f"{len(training)} cases in training, {len(held)} held out, {search.repeats} trials each, "
        f"seed {search.seed}; spent {tuned.spent:.4g} of {search.budget:g}."
    )
    for note in tuned.notes:
        yield ""
        yield note


def _whole(candidate: Candidate) -> str:
    value = candidate.value
    return value if isinstance(value, str) else candidate.described().partition(" = ")[2]


def _described(variant: Variant) -> str:
    return "; ".join(each.described() for each in variant) or "the file as it is"


def _interval(given: Interval) -> str:
    return f"{given.mean:.3f} ({given.low:.3f} to {given.high:.3f})"


def _named(cases: tuple[str, ...]) -> str:
    if not cases:
        return ""
    more = f" and {len(cases) - 10} more" if len(cases) > 10 else ""
    return f": {_cell(', '.join(cases[:10]))}{more}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
