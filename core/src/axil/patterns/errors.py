"""Errors of regular expressions and of schemas.

AxilError
└── PatternError         a sentence with an id
    ├── PatternFault         a pattern or a schema cannot be read, or is too large    (ValueError)
    └── PatternLimit         a search or a validation passed its limit                (RuntimeError)
"""

from __future__ import annotations

from axil.errors import AxilError, Problem


class PatternError(AxilError):
    """A sentence with an id; ``hint`` says what to do next."""

    def __init__(self, id: str, message: str, hint: str = "") -> None:
        self.id = id
        self.message, self.hint = message, hint
        self.problem = Problem(id, "", message, hint)
        super().__init__(str(self.problem))

    def __str__(self) -> str:
        return str(self.problem)


class PatternFault(PatternError, ValueError):
    """A pattern or a schema that cannot be read, or is too large."""


class PatternLimit(PatternError, RuntimeError):
    """A search or a validation that passed its limit."""
