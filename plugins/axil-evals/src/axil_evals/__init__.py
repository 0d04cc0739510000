"""Evaluations of workflows: datasets, scorers, reports, comparisons; and tuning by them."""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Evaluations": {
        "comparison": "Change Comparison compare",
        "datasets": "Dataset add_case read_dataset",
        "errors": "EvalError",
        "evaluation": "Plan Report ScoredTrial evaluate",
        "statistics": "Interval LEVEL Pairs chance difference holm interval",
        "targets": "KeptTarget Target WorkflowTarget case_of_run",
        "testing": "CaseTest cases",
        "trials": "Case Score Scorer Trial",
    },
    "Tuning": {
        "tuning.errors": "TuneError",
        "tuning.evidence": "Evidence Outcome weigh",
        "tuning.parameters": "Candidate Parameter Variant parameters",
        "tuning.search": "Search Tuned tune",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)
