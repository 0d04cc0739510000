"""Errors in files of other systems."""

from __future__ import annotations


class CompatibilityImportError(ValueError):
    """A file that cannot be imported."""
