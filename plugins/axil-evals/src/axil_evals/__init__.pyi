"""Names of ``axil_evals`` for type checkers; written by ``make manifests``."""

from axil_evals.comparison import Change as Change, Comparison as Comparison, compare as compare
from axil_evals.datasets import (
    Dataset as Dataset,
    add_case as add_case,
    read_dataset as read_dataset,
)
from axil_evals.errors import EvalError as EvalError
from axil_evals.evaluation import (
    Plan as Plan,
    Report as Report,
    ScoredTrial as ScoredTrial,
    evaluate as evaluate,
)
from axil_evals.statistics import (
    LEVEL as LEVEL,
    Interval as Interval,
    Pairs as Pairs,
    chance as chance,
    difference as difference,
    holm as holm,
    interval as interval,
)
from axil_evals.targets import (
    KeptTarget as KeptTarget,
    Target as Target,
    WorkflowTarget as WorkflowTarget,
    case_of_run as case_of_run,
)
from axil_evals.testing import CaseTest as CaseTest, cases as cases
from axil_evals.trials import Case as Case, Score as Score, Scorer as Scorer, Trial as Trial
from axil_evals.tuning.errors import TuneError as TuneError
from axil_evals.tuning.evidence import Evidence as Evidence, Outcome as Outcome, weigh as weigh
from axil_evals.tuning.parameters import (
    Candidate as Candidate,
    Parameter as Parameter,
    Variant as Variant,
    parameters as parameters,
)
from axil_evals.tuning.search import Search as Search, Tuned as Tuned, tune as tune
