"""Errors of evaluations.

AxilError
└── EvalError            a sentence with an id                                  (ValueError)
    └── OutOfBudget      a trial was cut off by what was left of a budget
"""

from __future__ import annotations

from axil.plugin import ProblemError


class EvalError(ProblemError, ValueError):
    """One sentence with an id; ``hint`` says what to do next."""


class OutOfBudget(EvalError):
    """A trial was cut off, because the money that it was given was used up."""

    def __init__(self, message: str, cost: float) -> None:
        super().__init__("AX977", message, "Give a larger budget; with a run id it goes on.")
        self.cost = cost
        """The money that it spent until then."""
