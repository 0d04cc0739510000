"""What is wrong with a file of another system."""

from __future__ import annotations


class CompatibilityImportError(ValueError):
    """A file that cannot be imported."""
