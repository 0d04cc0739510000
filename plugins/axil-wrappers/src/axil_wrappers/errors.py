"""Errors of wrappers.

    AxilError
    └── WrapperError         a sentence with an id                                  (ValueError)
        ├── TimeoutReached       a node took longer than it may                     (TimeoutError)
        └── LimiterConflict      one limiter was declared in two ways

What does not fit a node is the kernel's ``SpecError``, a budget that is used up its ``OverBudget``
or ``LimitReached``.
"""

from __future__ import annotations

from axil.plugin import ProblemError


class WrapperError(ProblemError, ValueError):
    """One sentence with an id; ``hint`` says what to do next."""


class TimeoutReached(WrapperError, TimeoutError):
    """A node took longer than ``seconds``. A repetition may help."""

    transient = True

    def __init__(self, seconds: float, message: str, hint: str = "", where: str = "") -> None:
        self.seconds = seconds
        super().__init__("AX831", message, hint, where)


class LimiterConflict(WrapperError):
    """Two nodes give one limiter different limits."""
