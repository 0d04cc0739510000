"""Errors of importers, and of the nodes that imported workflows are made of."""

from __future__ import annotations

from axil.plugin import ProblemError


class ImportProblem(ProblemError, ValueError):
    """A file cannot be imported; ``hint`` says what to do next."""


class ScriptError(ProblemError, ValueError):
    """The program of a ``script`` failed, or printed no JSON object."""
