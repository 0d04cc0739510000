"""Evaluations: datasets, targets, scorers, reports, comparisons. See ``evaluate``."""

from __future__ import annotations

from axil_evals.comparison import Change, Comparison, compare
from axil_evals.datasets import Dataset, add_case, read_dataset
from axil_evals.errors import EvalError
from axil_evals.evaluation import Plan, Report, ScoredTrial, evaluate
from axil_evals.statistics import LEVEL, Interval, Pairs, chance, difference, holm, interval
from axil_evals.targets import KeptTarget, Target, WorkflowTarget, case_of_run
from axil_evals.testing import CaseTest, cases
from axil_evals.trials import Case, Score, Scorer, Trial

__all__ = [
    "LEVEL",
    "Case",
    "CaseTest",
    "Change",
    "Comparison",
    "Dataset",
    "EvalError",
    "Interval",
    "KeptTarget",
    "Pairs",
    "Plan",
    "Report",
    "Score",
    "ScoredTrial",
    "Scorer",
    "Target",
    "Trial",
    "WorkflowTarget",
    "add_case",
    "case_of_run",
    "cases",
    "chance",
    "compare",
    "difference",
    "evaluate",
    "holm",
    "interval",
    "read_dataset",
]
