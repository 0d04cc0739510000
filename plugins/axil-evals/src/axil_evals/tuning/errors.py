"""Errors of tuning.

AxilError
└── TuneError            a sentence with an id                                  (ValueError)
"""

from __future__ import annotations

from axil.plugin import ProblemError


class TuneError(ProblemError, ValueError):
    """One sentence with an id; ``hint`` says what to do next."""
