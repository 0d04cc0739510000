"""Errors of guards.

AxilError
└── GuardTripped         a guard does not let a value pass                      (ValueError)
"""

from __future__ import annotations

from axil.plugin import ProblemError


class GuardTripped(ProblemError, ValueError):
    """A value that a guard does not let pass; ``guard`` is its name, ``of`` what it was about."""

    def __init__(self, guard: str, of: str, reason: str, where: str = "") -> None:
        self.guard, self.of, self.reason = guard, of, reason
        hint = "Change the value, or the guard's settings; a fallback wrapper gives another output."
        super().__init__("AX980", f'the guard "{guard}" blocks the {of}: {reason}.', hint, where)
