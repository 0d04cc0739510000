"""Errors of batches."""

from __future__ import annotations

from axil.plugin import ProblemError


class BatchError(ProblemError, ValueError):
    """A table that cannot be read or written, or that does not fit the workflow."""


__all__ = ["BatchError"]
