"""An evaluation: every case of a dataset is tried on a target, and every trial is scored.

An evaluation is a run of axil with one node. A trial is a step of it, and so is what a scorer asks
a model: in a journal an evaluation goes on where it broke off, and is not paid for twice.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from axil import AxilError, ComponentRef, Context, RootGraph, Workflow
from axil.driver import Journal
from axil.plugin import default_registry, make_component
from axil_evals.datasets import Dataset
from axil_evals.errors import EvalError
from axil_evals.statistics import Interval, interval
from axil_evals.targets import Target
from axil_evals.trials import Case, Score, Scored, Scorer, Trial

MEASURES = ("done", "seconds", "money", "tokens")
"""The measures of each trial beside its scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredTrial:
    """A trial and its scores, by scorer."""

    trial: Trial
    scores: Mapping[str, Score]
    """A trial that is not done has 0 from each scorer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of an evaluation, by case."""

    dataset: str
    target: str
    trials: Mapping[str, tuple[ScoredTrial, ...]]
    left_out: tuple[str, ...] = ()
    """Evaluators of another framework that were not applied."""
    skipped: int = 0
    """Trials that were not made, because the budget was used up."""
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def scorers(self) -> list[str]:
        """The names of scorers, in the order in which they were first applied."""
        found: dict[str, None] = {}
        for trials in self.trials.values():
            for each in trials:
                found.update(dict.fromkeys(each.scores))
        return list(found)

    def values(self, scorer: str) -> dict[str, list[float]]:
        """Return the values of a scorer for each case that has it."""
        found: dict[str, list[float]] = {}
        for name, trials in self.trials.items():
            scores = [each.scores.get(scorer) for each in trials]
            if values := [score.value for score in scores if score is not None]:
                found[name] = values
        return found

    def measured(self, measure: str) -> dict[str, list[float]]:
        """Return one of ``MEASURES`` for the trials of each case."""
        found: dict[str, list[float]] = {}
        for name, trials in self.trials.items():
            found[name] = [_measured(each.trial, measure) for each in trials]
        return {name: values for name, values in found.items() if values}

    def mean(self, scorer: str) -> Interval:
        """Return the mean of a scorer over cases, with its interval."""
        return interval(list(self.values(scorer).values()))

    def passes(self, case: str) -> bool:
        """Return whether every trial of a case was made and passed every scorer."""
        trials = self.trials[case]
        return bool(trials) and all(
            each.trial.status == "done" and all(score.passed for score in each.scores.values())
            for each in trials
        )

    @property
    def cost(self) -> float:
        """The cost of all trials, without that of scorers."""
        return sum(each.trial.cost for trials in self.trials.values() for each in trials)

    def plain(self) -> dict[str, Any]:
        """Return the report as plain data; ``Report.of`` reads it."""
        return {
            "axil_evals": 1,
            "dataset": self.dataset,
            "target": self.target,
            "skipped": self.skipped,
            "left_out": list(self.left_out),
            "inputs": dict(self.inputs),
            "trials": {
                name: [
                    {
                        "trial": each.trial.plain(),
                        "scores": {scorer: score.plain() for scorer, score in each.scores.items()},
                    }
                    for each in trials
                ]
                for name, trials in self.trials.items()
            },
        }

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Report:
        """Return the report of which ``plain`` made data. Raises: EvalError (AX971): it is none."""
        if data.get("axil_evals") != 1:
            raise EvalError(
                "AX971", "this is no report of an evaluation.", "axil eval run --out writes one."
            )
        trials = {
            name: tuple(
                ScoredTrial(
                    trial=Trial.of(each["trial"]),
                    scores={scorer: Score(**score) for scorer, score in each["scores"].items()},
                )
                for each in several
            )
            for name, several in cast("Mapping[str, Any]", data["trials"]).items()
        }
        return cls(
            dataset=data["dataset"],
            target=data["target"],
            skipped=data["skipped"],
            left_out=tuple(data["left_out"]),
            inputs=data["inputs"],
            trials=trials,
        )


def _measured(trial: Trial, measure: str) -> float:
    """Return one of ``MEASURES`` for a trial."""
    if measure == "done":
        return float(trial.status == "done")
    return float({"seconds": trial.seconds, "money": trial.cost, "tokens": trial.tokens}[measure])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The settings of an evaluation."""

    repeats: int = 1
    """Trials of each case."""
    concurrency: int = 4
    """Trials at the same time."""
    budget: float | None = None
    """Money: no trial begins when those that have ended cost so much."""
    model: Any = None
    """The model of judges that name none: a name, or {type: …, …}."""


async def evaluate(
    dataset: Dataset,
    target: Target,
    plan: Plan | None = None,
    *,
    scorers: Sequence[Any] = (),
    journal: Journal | None = None,
    run_id: str = "",
) -> Report:
    """Try a dataset on a target.

    Args:
        scorers: beside those of the dataset: names, ``{type: …, …}``, or objects.
        journal: keeps trials and judgements; with a ``run_id`` that it knows, the evaluation goes
            on.
    Raises: EvalError: AX971 a scorer's name is there twice; AX972 a case lacks what a scorer needs;
    AX975 a scorer failed; JournalError: the run is that of another dataset.
    """
    made = _Evaluation(dataset, target, plan or Plan(), scorers)
    graph = RootGraph("evaluation")
    node = graph.create_node(made.body, name="evaluation")
    graph.edge_from_entry(node, ["dataset", "plan"])
    graph.edge_to_exit(node, ["report"])
    workflow = cast("Workflow[Any]", graph.build())
    given = {
        "dataset": dataset.plain(),
        "plan": {"repeats": made.plan.repeats, "budget": made.plan.budget},
    }
    options: dict[str, Any] = {"run_id": run_id} if run_id else {}
    try:
        result = await workflow.run(given, journal=journal, **options)
    except AxilError as error:
        if isinstance(error.__cause__, (EvalError, AxilError)):
            raise error.__cause__ from None
        raise
    finally:
        await made.close()
    return Report.of(result.output["report"])


class _Evaluation:
    """One evaluation while it runs."""

    def __init__(
        self, dataset: Dataset, target: Target, plan: Plan, scorers: Sequence[Any]
    ) -> None:
        if plan.repeats < 1 or plan.concurrency < 1:
            raise EvalError("AX971", "repeats and concurrency are 1 or more.")
        self.dataset, self.target, self.plan = dataset, target, plan
        self._room = asyncio.Semaphore(plan.concurrency)
        self._spent, self._skipped = 0.0, 0
        self._made: dict[str, tuple[str, Scorer]] = {}
        general = [*dataset.scorers, *scorers]
        if not general and not any(case.scorers for case in dataset.cases):
            has_expected = all("expected" in case.plain() for case in dataset.cases)
            if not has_expected:
                raise EvalError(
                    "AX971", "there is no scorer.", "Give --scorer, or `scorers` in the dataset."
                )
            general = ["exact"]
        self._general = [self._scorer(each) for each in general]
        self._own = {
            case.name: [self._scorer(each) for each in case.scorers] for case in dataset.cases
        }
        for case in dataset.cases:
            names = [name for name, _ in self._of(case)]
            if taken := [name for name in names if name in MEASURES]:
                message = f'a scorer is called "{taken[0]}", as is what is measured of every trial.'
                raise EvalError("AX971", message, 'Give it another "name".')
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise EvalError(
                    "AX971",
                    f'case "{case.name}" has two scorers called "{twice}".',
                    'Give one of them a "name".',
                )

    def _scorer(self, given: Any) -> tuple[str, Scorer]:
        if not isinstance(given, (str, Mapping)):
            return str(getattr(given, "name", type(given).__name__)), given
        key = json.dumps(given, sort_keys=True, default=repr)
        if key not in self._made:
            data = {"type": given} if isinstance(given, str) else dict(cast("Any", given))
            name = data.pop("name", None)
            use = ComponentRef.of(data)
            if use.type == "judge" and "model" not in use.config and self.plan.model is not None:
                use = ComponentRef(type="judge", config={**use.config, "model": self.plan.model})
            where = f"scorer {use.type}"
            component = default_registry().resolve("scorers", use.type, where)
            self._made[key] = str(name or use.type), make_component(component, use.config, where)
        return self._made[key]

    def _of(self, case: Case) -> list[tuple[str, Scorer]]:
        return [*self._general, *self._own[case.name]]

    async def body(self, inputs: Any, ctx: Context) -> dict[str, Any]:
        """Make all trials and score them."""
        cases = self.dataset.cases
        order = [(case, n) for n in range(self.plan.repeats) for case in cases]
        made = await asyncio.gather(*(self._tried(case, n, ctx) for case, n in order))
        trials: dict[str, list[ScoredTrial]] = {case.name: [] for case in cases}
        for (case, _), each in zip(order, made, strict=True):
            if each is not None:
                trials[case.name].append(each)
        report = Report(
            dataset=self.dataset.name,
            target=self.target.name,
            trials={name: tuple(several) for name, several in trials.items()},
            left_out=self.dataset.left_out,
            skipped=self._skipped,
            inputs={case.name: case.inputs for case in cases},
        )
        return {"report": report.plain()}

    async def _tried(self, case: Case, number: int, ctx: Context) -> ScoredTrial | None:
        part = ctx.part(f"{case.name}:{number}")
        async with self._room:
            if self.plan.budget is not None and self._spent >= self.plan.budget:
                self._skipped += 1
                return None

            async def call() -> dict[str, Any]:
                return (await self.target.run(case)).plain()

            request = {"case": case.plain(), "target": self.target.digest}
            trial = Trial.of(await part.step("trial", call, request=request))
            self._spent += trial.cost
            scores = {
                name: await _scored(scorer, name, case, trial, part.part(name))
                for name, scorer in self._of(case)
            }
        return ScoredTrial(trial=trial, scores=scores)

    async def close(self) -> None:
        """Close the scorers that were made here."""
        for _, scorer in self._made.values():
            if callable(close := getattr(scorer, "close", None)):
                closing = close()
                if inspect.isawaitable(closing):
                    await closing


async def _scored(scorer: Scorer, name: str, case: Case, trial: Trial, ctx: Context) -> Score:
    if trial.status != "done":
        return Score(value=0.0, passed=False, reason=f"{trial.status}: {trial.error}"[:200])
    try:
        given = scorer.score(case, trial, ctx)
        found: Scored = await given if inspect.isawaitable(given) else given
        return Score.of(found)
    except AxilError:
        raise
    except Exception as error:
        message = f'scorer "{name}" failed for case "{case.name}": {type(error).__name__}: {error}'
        raise EvalError("AX975", f"{message}.") from error
