"""Errors of bodies in worker processes.

AxilError
└── ProcessError         a sentence with an id                                  (RuntimeError)
    ├── WorkerDied           the process ended under the body
    └── BodyRaised           the body raised; of a built-in kind, also an error of that kind
"""

from __future__ import annotations

import builtins
import signal
from collections.abc import Mapping
from typing import Any

from axil.plugin import ProblemError


class ProcessError(ProblemError, RuntimeError):
    """One sentence with an id; ``hint`` says what to do next."""


class WorkerDied(ProcessError):
    """The process that ran a body ended before the body did."""

    def __init__(self, code: int | None, why: str = "") -> None:
        self.code = code
        """An exit code, or minus the number of a signal; None: it was on another machine."""
        how = f": {why}" if why or code is None else f" {ended(code)}"
        super().__init__(
            "AX550",
            f"the process that ran the body ended{how}.",
            "The run continues, and so does the next firing.",
        )


class BodyRaised(Exception):
    """A body raised in its process; ``traceback`` is the text from there."""

    kind: str
    """``module.Class``"""
    traceback: str
    transient = False
    """True if the error itself says that another try may help."""


def ended(code: int) -> str:
    """Return how a process ended, in words.

    >>> ended(3), ended(-11)
    ('with exit code 3', 'by signal SIGSEGV')
    """
    if code >= 0:
        return f"with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    hint = " (as the system does where memory runs out)" if name == "SIGKILL" else ""
    return f"by signal {name}{hint}"


_KINDS: dict[str, type[BodyRaised]] = {}


def raised(report: Mapping[str, Any]) -> BodyRaised:
    """Return the error that a process reported; no class but built-in ones is looked up for it."""
    kind, message = str(report["kind"]), str(report["message"])
    made = _KINDS.get(kind) or _KINDS.setdefault(kind, _kind_of(kind))
    error = made(f"{kind}: {message}" if made is BodyRaised else message)
    error.kind, error.traceback = kind, str(report["traceback"])
    error.transient = bool(report.get("transient"))
    error.add_note(f"in a process of its own:\n{error.traceback}")
    return error


def _kind_of(kind: str) -> type[BodyRaised]:
    module, _, name = kind.rpartition(".")
    own: Any = getattr(builtins, name, None) if module == "builtins" else None
    if not (isinstance(own, type) and issubclass(own, Exception)):
        return BodyRaised
    if own in (Exception, ExceptionGroup):
        return BodyRaised
    made = type(name, (BodyRaised, own), {"__module__": __name__})
    try:
        made("")
    except TypeError:  # it cannot be made of a text, as UnicodeDecodeError
        return BodyRaised
    return made
