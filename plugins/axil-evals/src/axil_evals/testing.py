"""Cases of a dataset as tests of pytest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from axil import run_sync
from axil_evals.datasets import Dataset, read_dataset
from axil_evals.evaluation import Plan, evaluate
from axil_evals.targets import Target, WorkflowTarget
from axil_evals.trials import Case
from axil_models import ModelLike


def cases(dataset: str | Path | Dataset) -> Any:
    """Return a mark of pytest that runs a test for each case, as its argument ``case``."""
    import pytest

    found = dataset if isinstance(dataset, Dataset) else read_dataset(dataset)
    given = [CaseTest(found, case) for case in found.cases]
    return pytest.mark.parametrize("case", given, ids=[case.name for case in found.cases])


class CaseTest:
    """One case of a dataset, as a test receives it."""

    def __init__(self, dataset: Dataset, case: Case) -> None:
        self.case, self._dataset = case, dataset

    def check(
        self, target: Any, *, repeats: int = 1, scorers: Any = (), model: ModelLike | None = None
    ) -> None:
        """Try the case on a target: a workflow, a graph, a file, or a ``Target``.

        Raises: AssertionError: a trial did not pass; it says which scorers, and why.
        """
        made: Target = target if hasattr(target, "digest") else WorkflowTarget(target)
        alone = replace(self._dataset, cases=(self.case,))
        plan = Plan(repeats=repeats, model=model)
        report = run_sync(evaluate(alone, made, plan, scorers=scorers))
        if not report.passes(self.case.name):
            from axil_evals.rendering import as_text

            raise AssertionError(as_text(report))

    def __repr__(self) -> str:
        return f"CaseTest({self.case.name!r})"
