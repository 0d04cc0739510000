"""Errors in a control node's wiring, input or expression.

    AxilError
    └── ControlError         a sentence with an id                      (ValueError)
        ├── BindingError         a switch and its out-edges do not fit
        ├── ExpressionError      a condition's text cannot be read
        └── InputError           what reached a node is not what it works on

Policy is the kernel's ``ComponentBlocked``, a wrong target its ``RouteError``.
"""

from __future__ import annotations

from axil.plugin import ProblemError


class ControlError(ProblemError, ValueError):
    """One sentence with an id; ``hint`` says what to do next."""


class BindingError(ControlError):
    """A switch's conditions and its out-edges do not fit."""


class ExpressionError(ControlError):
    """An expression cannot be read; the message shows where."""


class InputError(ControlError):
    """The input of a node is not of the kind that it works on."""
