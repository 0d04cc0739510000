"""Errors of regular expressions and of schemas."""

from __future__ import annotations

from axil.errors import ProblemError


class PatternError(ProblemError):
    """The root of errors of patterns and schemas."""


class PatternFault(PatternError, ValueError):
    """A pattern or a schema that cannot be read, or is too large."""


class PatternLimit(PatternError, RuntimeError):
    """A search or a validation that passed its limit."""
