"""Tuning of workflow files by evaluations. See ``tune``."""

from __future__ import annotations

from axil_tune.errors import TuneError
from axil_tune.evidence import Evidence, Outcome, weigh
from axil_tune.parameters import Candidate, Parameter, Variant, parameters
from axil_tune.search import Search, Tuned, tune

__all__ = [
    "Candidate",
    "Evidence",
    "Outcome",
    "Parameter",
    "Search",
    "TuneError",
    "Tuned",
    "Variant",
    "parameters",
    "tune",
    "weigh",
]
