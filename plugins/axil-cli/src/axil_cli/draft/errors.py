"""Errors of drafts."""

from __future__ import annotations

from axil.plugin import ProblemError


class DraftError(ProblemError, ValueError):
    """A draft that cannot be begun, continued or written."""


__all__ = ["DraftError"]
