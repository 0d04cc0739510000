"""An evaluation: every case of a dataset is tried on a target, and every trial is scored.

An evaluation is a run of axil with one node. A trial is a step of it, and so is what a scorer asks
a model: in a journal an evaluation goes on where it broke off, and is not paid for twice.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from axil import MISSING, AxilError, ComponentRef, Context, Limits, RootGraph, Workflow
from axil.plugin import Grants, default_registry, granted, make_component
from axil_evals.datasets import Dataset
from axil_evals.errors import EvalError, OutOfBudget
from axil_evals.statistics import Interval, interval
from axil_evals.targets import KeptTarget, Target
from axil_evals.trials import Case, Score, Scored, Scorer, Trial
from axil_journals import Journal
from axil_models import ModelLike

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
    spent: float = 0.0
    """Money that trials and scorers spent, those that were cut off included."""

    @property
    def scorers(self) -> list[str]:
        """The names of scorers, in the order in which they were first applied."""
        every = (each for trials in self.trials.values() for each in trials)
        return list(dict.fromkeys(name for each in every for name in each.scores))

    def values(self, scorer: str) -> dict[str, list[float]]:
        """Return the values of a scorer for each case that has it."""
        found = {
            name: [each.scores[scorer].value for each in trials if scorer in each.scores]
            for name, trials in self.trials.items()
        }
        return {name: values for name, values in found.items() if values}

    def measured(self, measure: str) -> dict[str, list[float]]:
        """Return one of ``MEASURES`` for the trials of each case."""
        return {
            name: [_measured(each.trial, measure) for each in trials]
            for name, trials in self.trials.items()
            if trials
        }

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
            "spent": self.spent,
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
    def of(cls, data: Mapping[str, Any], where: str = "") -> Report:
        """Return the report of which ``plain`` made data. Raises: EvalError (AX971): it is none."""
        if data.get("axil_evals") != 1:
            hint = "axil eval run --out writes one."
            raise EvalError("AX971", "this is no report of an evaluation.", hint, where)
        try:
            return TypeAdapter(cls).validate_python(data)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            message = f"the report is damaged: {place}: {first['msg']}."
            raise EvalError("AX971", message, "Evaluate again, with --out.", where) from None


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
    """Money that trials and scorers together may spend. A trial is given its share of what is left,
    and is cut off where it needs more."""
    model: ModelLike | None = None
    """The model of judges that name none: a name, or {type: …, …}."""


async def evaluate(
    dataset: Dataset,
    target: Target,
    plan: Plan | None = None,
    *,
    scorers: Sequence[object] = (),
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
    given = {"dataset": dataset.plain(), "plan": {"repeats": made.plan.repeats}}
    options: dict[str, Any] = {"run_id": run_id} if run_id else {}
    spent = 0.0
    try:
        async with workflow:
            run = workflow.start(given, journal=journal, limits=made.limits, **options)
            made.spent = lambda: run.meter.usage.cost
            result = await run.result()
        if result.status == "failed" and not isinstance(_cause(result.error), OutOfBudget):
            raise cast("AxilError", result.error)
        spent = result.usage.cost
    except AxilError as error:
        raise _cause(error) from None
    finally:
        await made.close()
    # one that is limited or lacks trials has no output: it goes on with a larger budget
    found = Report.of(result.output["report"]) if result.status == "done" else made.report()
    return replace(found, spent=spent)


def _cause(error: BaseException | None) -> Any:
    """Return the error of axil that a node has failed with."""
    inner = None if error is None else error.__cause__
    return inner if isinstance(inner, AxilError) else error


class _Evaluation:
    """One evaluation while it runs."""

    def __init__(
        self, dataset: Dataset, target: Target, plan: Plan, scorers: Sequence[Any]
    ) -> None:
        if plan.repeats < 1 or plan.concurrency < 1:
            raise EvalError("AX971", "repeats and concurrency are 1 or more.")
        if plan.budget is not None and math.isnan(plan.budget):
            raise EvalError("AX971", "the budget is no number.", "Give an amount of money.")
        self.dataset, self.target, self.plan = dataset, target, plan
        self.spent: Callable[[], float] = lambda: 0.0
        self._workflow: Any = getattr(target, "workflow", None)
        setting = getattr(self._workflow, "setting", None)
        self._setting = setting if getattr(setting, "registry", None) is not None else None
        self._room = asyncio.Semaphore(plan.concurrency)
        self._held: dict[str, float] = {}
        """Money that trials at work were given, by case and number."""
        self._waiting = plan.repeats * len(dataset.cases)
        """The number of trials that have not ended."""
        self._trials: dict[tuple[str, int], ScoredTrial] = {}
        self._made: dict[str, tuple[str, Scorer]] = {}
        general = [self._scorer(each, dataset.grants) for each in dataset.scorers]
        general += [self._scorer(each) for each in scorers]
        if not general and not any(case.scorers for case in dataset.cases):
            if any(case.expected is MISSING for case in dataset.cases):
                hint = "Give --scorer, or `scorers` in the dataset."
                raise EvalError("AX971", "there is no scorer.", hint)
            general = [self._scorer("exact")]
        self._general = general
        self._own = {
            case.name: [self._scorer(each, dataset.grants) for each in case.scorers]
            for case in dataset.cases
        }
        for case in dataset.cases:
            names = [name for name, _ in self._of(case)]
            if taken := [name for name in names if name in MEASURES]:
                message = f'a scorer is called "{taken[0]}", as is what is measured of every trial.'
                raise EvalError("AX971", message, 'Give it another "name".')
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                message = f'case "{case.name}" has two scorers called "{twice}".'
                raise EvalError("AX971", message, 'Give one of them a "name".')

    def _scorer(self, given: Any, grants: Grants | None = None) -> tuple[str, Scorer]:
        """Return a scorer with its name; ``grants``: those of the file that names it."""
        if not isinstance(given, (str, Mapping)):
            return str(getattr(given, "name", type(given).__name__)), given
        key = json.dumps([given, grants is None], sort_keys=True, default=repr)
        if key not in self._made:
            data = {"type": given} if isinstance(given, str) else dict(cast("Any", given))
            name = data.pop("name", None)
            use = ComponentRef.of(data)
            if use.type == "judge" and "model" not in use.config and self.plan.model is not None:
                use = ComponentRef(type="judge", config={**use.config, "model": self.plan.model})
                grants = None  # the model is not the file's, and nothing else of a judge needs any
            where = f"scorer {use.type}"
            registry = default_registry() if self._setting is None else self._setting.registry
            with granted(grants):
                component = registry.resolve("scorers", use.type, where)
                made = make_component(component, use.config, where)
                if callable(bind := getattr(made, "bind", None)):
                    bind(self._setting)
            self._made[key] = str(name or use.type), made
        return self._made[key]

    def _of(self, case: Case) -> list[tuple[str, Scorer]]:
        return [*self._general, *self._own[case.name]]

    @property
    def limits(self) -> Limits | None:
        """The limits of the run: the budget, with the prices of the target, and no others."""
        if self.plan.budget is None:
            return None
        if self._workflow is None:
            return Limits(cost=self.plan.budget)
        own: Limits = self._workflow.plan.graph.spec.limits
        return Limits(cost=self.plan.budget, pricing=own.pricing, estimate=own.estimate)

    async def body(self, inputs: Any, ctx: Context) -> dict[str, Any]:
        """Make all trials and score them. Raises: OutOfBudget: not all were made."""
        cases = self.dataset.cases
        order = [(case, n) for n in range(self.plan.repeats) for case in cases]
        trials = [asyncio.ensure_future(self._tried(case, n, ctx)) for case, n in order]
        try:
            await asyncio.gather(*trials)
        finally:  # where one of them raised, the others would go on, and spend
            for each in trials:
                each.cancel()
            await asyncio.gather(*trials, return_exceptions=True)
        report = self.report()
        if report.skipped:
            raise OutOfBudget(f"{report.skipped} trials were not made.", self.spent())
        return {"report": report.plain()}

    def report(self) -> Report:
        """Return the trials that were made and scored so far."""
        repeats = range(self.plan.repeats)
        trials = {
            case.name: tuple(
                self._trials[case.name, n] for n in repeats if (case.name, n) in self._trials
            )
            for case in self.dataset.cases
        }
        return Report(
            dataset=self.dataset.name,
            target=self.target.name,
            trials=trials,
            left_out=self.dataset.left_out,
            skipped=self.plan.repeats * len(trials) - len(self._trials),
            inputs={case.name: case.inputs for case in self.dataset.cases},
        )

    def _share(self) -> float | None:
        """Return the money that the next trial is given: what is left, in equal parts for the
        trials that may be at work with it; None: there is no budget.
        """
        if self.plan.budget is None:
            return None
        left = self.plan.budget - self.spent() - sum(self._held.values())
        return left / (min(self._waiting, self.plan.concurrency) - len(self._held))

    async def _tried(self, case: Case, number: int, ctx: Context) -> None:
        name = f"{case.name}:{number}"
        part = ctx.part(name)
        async with self._room:
            request = {"case": case.plain(), "target": self.target.digest}

            async def call() -> dict[str, Any]:
                share, target = self._share(), self.target
                if share is not None:
                    if share <= 0:
                        raise OutOfBudget("nothing is left.", 0.0)
                    self._held[name] = share
                    if callable(limited := getattr(target, "limited", None)):
                        target = cast("Target", limited(share))
                try:
                    trial = await target.run(case)
                    cost = 0.0 if isinstance(target, KeptTarget) else trial.cost
                except OutOfBudget as cut:
                    part.spend(cost=cut.cost)
                    raise
                finally:
                    self._held.pop(name, None)
                if cost:
                    part.spend(cost=cost)
                return trial.plain()

            try:
                trial = Trial.of(await part.step("trial", call, request=request))
            except OutOfBudget:
                return
            finally:
                self._waiting -= 1
            scores = {
                name: await _scored(scorer, name, case, trial, part.part(name))
                for name, scorer in self._of(case)
            }
        self._trials[case.name, number] = ScoredTrial(trial=trial, scores=scores)

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
