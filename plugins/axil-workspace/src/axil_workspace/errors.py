"""Errors about the files, programs and pages of a run.

AxilError
└── WorkspaceError       a sentence with an id
    ├── PathRefused          a path leads out of the workspace, or could      (ValueError)
    ├── FileFault            something is in the way, or not what was expected (OSError)
    │   └── NothingThere         nothing is there                              (FileNotFoundError)
    ├── LimitExceeded        too large, too many, too long
    ├── NotAllowed           the run does not allow it                        (PermissionError)
    ├── AddressRefused       an address that must not be reached              (ValueError)
    ├── FetchFault           a page could not be had                          (RuntimeError)
    ├── ProgramFault         a program could not be started                   (RuntimeError)
    └── TextFault            a text, a pattern or an edit does not fit        (ValueError)

Raised inside a tool they are shown to the model, which may do better; so each says what to do.
"""

from __future__ import annotations

from axil.plugin import ProblemError


class WorkspaceError(ProblemError):
    """One sentence with an id; ``hint`` says what to do next."""


class PathRefused(WorkspaceError, ValueError):
    """A path leads out of the workspace, or could."""


class FileFault(WorkspaceError, OSError):
    """Something is there already, is not what was expected, or cannot be used."""


class NothingThere(FileFault, FileNotFoundError):
    """Nothing is there."""


class LimitExceeded(WorkspaceError):
    """Too large, too many, or too long."""


class NotAllowed(WorkspaceError, PermissionError):
    """The caller of the run did not allow it."""


class AddressRefused(WorkspaceError, ValueError):
    """An address that must not be reached from here."""


class FetchFault(WorkspaceError, RuntimeError):
    """A page could not be had."""


class ProgramFault(WorkspaceError, RuntimeError):
    """A program could not be started."""


class TextFault(WorkspaceError, ValueError):
    """A text, a pattern or an edit does not fit."""
