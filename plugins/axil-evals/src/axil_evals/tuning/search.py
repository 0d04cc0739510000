"""The search for a better variant of a workflow file.

1. The cases are split by the seed: a training part, by which variants are chosen, and a held-out
   part, which no choice sees.
2. The file as it is is tried on the training part; then each candidate by itself; then the best one
   together with others that were better than the file as it is, as long as that is better still on
   the same cases.
3. What is best is tried on the held-out part, beside the file as it is. See ``evidence``.

Every evaluation and every question for proposals is a run whose id is made of the search's and of
the variant's text: with a journal a search goes on where it broke off and pays for nothing twice.

The budget is one for all. Each evaluation is given what is left, less what the held-out part will
need; when it is used up, what was found until then is tested.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from axil import MISSING, Limits, SpecError, Workflow
from axil_evals.datasets import Dataset
from axil_evals.evaluation import Plan, Report, evaluate
from axil_evals.statistics import LEVEL, Pairs, difference
from axil_evals.targets import WorkflowTarget
from axil_evals.trials import Case
from axil_evals.tuning.errors import TuneError
from axil_evals.tuning.evidence import Evidence, Outcome, Trials, weigh
from axil_evals.tuning.parameters import (
    Candidate,
    Variant,
    data_of,
    digest_of,
    given,
    parameters,
    text_of,
    usual,
)
from axil_evals.tuning.proposals import propose
from axil_files import EditError
from axil_journals import Journal
from axil_models import ModelLike


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The settings of a search."""

    budget: float
    """Money for everything: trials, scorers, proposals."""
    tries: Any = ()
    """Candidates of one's own: a list of ``{node, key, values}``."""
    models: Sequence[ModelLike] = ()
    """Models that are tried in each agent: names, or ``{type: …, …}``."""
    proposals: int = 3
    """The number of times that a model is asked for other instructions of an agent; 0: none."""
    model: ModelLike | None = None
    """The model that proposes, and that of judges that name none; None: the agent's own."""
    examples: Sequence[int] = (2, 4)
    """Numbers of cases of the training part that are tried as examples in the instructions."""
    scorer: str = ""
    """The scorer whose mean is to be better; empty: the mean of all."""
    held_out: float = 0.5
    """The share of cases in the held-out part."""
    finalists: int = 1
    """The largest number of variants that are tested on it."""
    repeats: int = 1
    concurrency: int = 4
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Options of each run, as of ``axil.Options``."""

    def __post_init__(self) -> None:
        """Raises: TuneError (AX986): a number cannot be."""
        least = {"proposals": 0, "finalists": 1, "repeats": 1, "concurrency": 1}
        for name, at_least in least.items():
            if getattr(self, name) < at_least:
                raise TuneError("AX986", f"{name} is {at_least} or more.")
        if not 0 < self.held_out < 1:
            raise TuneError("AX986", f"held_out is between 0 and 1, found {self.held_out:g}.")
        if not self.budget > 0:
            raise TuneError("AX986", f"a budget is more than 0, found {self.budget:g}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A variant, and its training part."""

    variant: Variant
    mean: float
    gain: float
    """The mean over cases of how much better it is than the file as it is, on the same cases."""
    report: Report = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """The result of a search."""

    outcome: Outcome
    text: str
    """The best file; that as it is where nothing was better."""
    variant: Variant
    evidence: Evidence | None
    """Of the variant, or of the best one that was no better; None: none was tested."""
    tried: tuple[Tried, ...]
    """In the order in which they were tried; the file as it is first."""
    spent: float
    split: tuple[tuple[str, ...], tuple[str, ...]]
    """The cases of the training part and of the held-out part."""
    notes: tuple[str, ...] = ()


Opener = Callable[[str], Workflow[Any]]
"""Makes a workflow of the text of a variant."""


async def tune(
    text: str,
    name: str,
    dataset: Dataset,
    search: Search,
    open: Opener,
    *,
    journal: Journal | None = None,
    run_id: str = "",
    registry: object = None,
) -> Tuned:
    """Look for a variant of a workflow file that is better by a dataset.

    Args:
        text: the workflow file.
        name: the file's name; it ends with .yaml, .yml or .json.
        open: makes a workflow of a text.
        journal: keeps what was tried; with a ``run_id`` that it knows, the search goes on.
    Raises: TuneError: AX985 the file cannot be read; AX986 a setting cannot be, or the cases are
    too few; AX987 the budget does not reach for the file as it is; as ``axil_evals.evaluate``.
    """
    made = _Searching(text, name, dataset, search, open, journal, run_id, registry)
    return await made.run()


class _Ended(Exception):  # a signal, not an error: it does not leave this module
    """The budget of the search is used up."""


class _Searching:
    """One search while it runs."""

    def __init__(
        self,
        text: str,
        name: str,
        dataset: Dataset,
        search: Search,
        open: Opener,
        journal: Journal | None,
        run_id: str,
        registry: Any,
    ) -> None:
        self.text, self.name, self.search = text, name, search
        self._open, self._journal, self._run_id = open, journal, run_id
        self.data = data_of(text, name, registry)
        self.training, self.held = split(dataset, search)
        self._own = given(list(search.tries), self.data, "tries") if search.tries else []
        self.spent, self._reserve, self._tokens = 0.0, 0.0, 0
        self.tried: list[Tried] = []
        self._best: Tried | None = None
        self.notes: list[str] = []

    async def run(self) -> Tuned:
        base = await self._base()
        try:
            await self._singles(base)
            await self._combined(base)
        except _Ended:
            self.notes.append("The budget ended the search before everything was tried.")
        best = [] if self._best is None else [self._best]
        ranked = [*best, *(each for each in self._ranked() if each not in best)]
        if not ranked:
            return self._tuned("no better", None, ())
        return await self._tested([each.variant for each in ranked[: self.search.finalists]])

    def _ranked(self) -> list[Tried]:
        """Return the variants that are better than the file as it is, the best one first."""
        better = [each for each in self.tried if each.gain > 1e-9]
        return sorted(better, key=lambda each: -each.gain)

    # ------------------------------------------------------------------ the training part

    async def _base(self) -> Report:
        """Try the file as it is. Raises: TuneError (AX987): the budget does not reach."""
        base = await self._evaluated((), self.training)
        trials = len(self.training.cases) * self.search.repeats
        held = len(self.held.cases) * self.search.repeats
        each = base.spent / max(1, trials - base.skipped)
        # twice: the file as it is and what is best, which may cost more
        needed = each * held * (1 + 1.5 * self.search.finalists)
        if base.skipped or self.spent + needed > self.search.budget:
            message = (
                f"{self.search.budget:g} does not reach: the file as it is cost {base.spent:.4g} "
                f"in {trials - base.skipped} of {trials} trials, and the held-out part needs about "
                f"{needed:.4g} more."
            )
            raise TuneError("AX987", message, "Give a larger --budget, or fewer cases.")
        self._reserve = needed
        self._note((), base, base)
        return base

    async def _singles(self, base: Report) -> None:
        """Try each candidate by itself."""
        for candidate in await self._candidates(base):
            try:
                self._opened((candidate,))
            except (SpecError, EditError) as error:
                self.notes.append(f"Not tried: {candidate.described()}: {error}")
                continue
            await self._try((candidate,), base)

    async def _combined(self, base: Report) -> None:
        """Try the best one together with others, as long as that is better on the same cases."""
        singles = self._ranked()
        for single in singles:
            if self._best is None:
                self._best = single
                continue
            taken = {each.parameter.name for each in self._best.variant}
            if single.variant[0].parameter.name in taken:
                continue
            both = await self._try((*self._best.variant, *single.variant), base)
            if difference(self._pairs(self._best.report, both.report)) > 1e-9:
                self._best = both

    async def _candidates(self, base: Report) -> list[Candidate]:
        search = self.search
        known = [case for case in self.training.cases if case.expected is not MISSING]
        draw = random.Random(search.seed)  # which cases are examples is no secret
        draw.shuffle(known)
        # at least half of the training part is left to try them on
        sizes = [size for size in search.examples if 0 < size <= len(self.training.cases) // 2]
        examples = [known[:size] for size in dict.fromkeys(sizes) if len(known) >= size]
        return [
            *self._own,
            *await self._proposed(base),
            *usual(self.data, models=search.models, examples=examples),
        ]

    async def _proposed(self, base: Report) -> list[Candidate]:
        found: list[Candidate] = []
        all_known = parameters(self.data)
        for each in all_known if self.search.proposals else ():
            if each.kind != "instructions":
                continue
            owner = each.name.rpartition(".")[0]
            own = next((p.value for p in all_known if p.name == f"{owner}.model"), None)
            model = self.search.model if self.search.model is not None else own
            if model is None:
                self.notes.append(f"Nothing was proposed for {each.name}: no model is named.")
                continue
            left = self.search.budget - self.spent - self._reserve
            if left <= 0:
                raise _Ended
            proposed = await propose(
                model,
                each.value,
                base,
                self.search.proposals,
                limits=self._limits(left),
                journal=self._journal,
                run_id=self._id(f"proposals-{digest_of(each.name + each.value)}"),
            )
            self.spent += proposed.spent
            found += [Candidate(parameter=each, value=text) for text in proposed.texts]
        return found

    async def _try(self, variant: Variant, base: Report) -> Tried:
        shown = {name for each in variant for name in each.shown}
        cases = tuple(case for case in self.training.cases if case.name not in shown)
        left = self.search.budget - self.spent - self._reserve
        if left <= 0:
            raise _Ended
        report = await self._evaluated(variant, replace(self.training, cases=cases), left)
        if report.skipped:
            raise _Ended
        return self._note(variant, report, base)

    def _note(self, variant: Variant, report: Report, base: Report) -> Tried:
        pairs = self._pairs(base, report)
        mean = fmean(fmean(after) for _, after in pairs.values())
        tried = Tried(variant=variant, mean=mean, gain=difference(pairs), report=report)
        self.tried.append(tried)
        return tried

    # ------------------------------------------------------------------ the held-out part

    async def _tested(self, variants: Sequence[Variant]) -> Tuned:
        reports = [await self._evaluated(each, self.held) for each in ((), *variants)]
        if any(report.skipped for report in reports):
            return self._tuned("out of budget", None, variants[0])
        found = weigh([self._pairs(reports[0], report) for report in reports[1:]])
        best = max(
            zip(found, variants, strict=True), key=lambda pair: (pair[0].is_better, pair[0].gain)
        )
        return self._tuned("better" if best[0].is_better else "no better", *best)

    def _tuned(self, outcome: Outcome, evidence: Evidence | None, variant: Variant) -> Tuned:
        taken = variant if outcome == "better" else ()
        if self._tokens and not self.spent:
            self.notes.append(
                "The budget limited nothing: models used tokens, and neither they nor the file's "
                "limits.pricing say what these cost."
            )
        return Tuned(
            outcome=outcome,
            text=text_of(taken, self.text),
            variant=variant,
            evidence=evidence,
            tried=tuple(self.tried),
            spent=self.spent,
            split=(
                tuple(case.name for case in self.training.cases),
                tuple(case.name for case in self.held.cases),
            ),
            notes=tuple(self.notes),
        )

    # ------------------------------------------------------------------ evaluations

    async def _evaluated(
        self, variant: Variant, dataset: Dataset, most: float | None = None
    ) -> Report:
        text, workflow = self._opened(variant)
        target = WorkflowTarget(workflow, name=self.name, **self.search.options)
        plan = Plan(
            repeats=self.search.repeats,
            concurrency=self.search.concurrency,
            budget=max(0.0, self.search.budget - self.spent if most is None else most),
            model=self.search.model,
        )
        part = dataset.name.rpartition("/")[2]
        report = await evaluate(
            dataset,
            target,
            plan,
            journal=self._journal,
            run_id=self._id(f"{part}-{digest_of(text)}"),
        )
        self.spent += report.spent
        trials = [each.trial for several in report.trials.values() for each in several]
        self._tokens += sum(trial.tokens for trial in trials)
        return report

    def _opened(self, variant: Variant) -> tuple[str, Workflow[Any]]:
        """Return the text of a variant and its workflow. Raises: SpecError, EditError: there is
        none.
        """
        text = text_of(variant, self.text)
        workflow = self._open(text)
        _ = workflow.plan
        return text, workflow

    def _id(self, part: str) -> str:
        return f"{self._run_id}-{part}" if self._run_id else ""

    def _limits(self, left: float) -> Limits:
        own = self._open(self.text).spec.limits
        return Limits(cost=left, pricing=own.pricing, estimate=own.estimate)

    def _pairs(self, first: Report, second: Report) -> Pairs:
        before, after = self._values(first), self._values(second)
        return {name: (before[name], after[name]) for name in before if name in after}

    def _values(self, report: Report) -> dict[str, list[float]]:
        """Return what is to be better, for the trials of each case."""
        found: dict[str, list[float]] = {}
        for name, trials in report.trials.items():
            for each in trials:
                scores = each.scores
                if self.search.scorer:
                    wanted = [scores[self.search.scorer]] if self.search.scorer in scores else []
                else:
                    wanted = list(scores.values())
                if wanted:
                    mean = fmean(score.value for score in wanted)
                    found.setdefault(name, []).append(mean)
        if not found:
            message = f'no case has the scorer "{self.search.scorer}".'
            raise TuneError("AX986", message, "Name a scorer of the dataset.")
        return found


def split(dataset: Dataset, search: Search) -> tuple[Dataset, Dataset]:
    """Return the training part and the held-out part, drawn by the seed.

    Raises: TuneError (AX986): the held-out part is too small to tell anything from chance.
    """
    cases: list[Case] = list(dataset.cases)
    random.Random(search.seed).shuffle(cases)  # which part a case is in is no secret
    number = round(len(cases) * search.held_out)
    held = {case.name for case in cases[:number]}
    least = Trials(number, search.repeats).least_chance
    # Holm's correction multiplies the smallest one by how many there are
    if least * search.finalists > LEVEL or number >= len(cases):
        message = (
            f"of {len(cases)} cases {number} are held out, with {search.repeats} trials each: "
            "no difference could be told from chance."
        )
        more = ", or more --repeats" if number else ""  # of nothing there is nothing to repeat
        raise TuneError("AX986", message, f"Give more cases{more}.")

    def part(name: str, *, is_held: bool) -> Dataset:
        chosen = tuple(case for case in dataset.cases if (case.name in held) is is_held)
        return replace(dataset, name=f"{dataset.name}/{name}", cases=chosen)

    return part("training", is_held=False), part("held-out", is_held=True)
