"""Errors of served workflows.

AxilError
└── ServeFault       a sentence with an id
    ├── Unserved     the server cannot be opened as its settings say     (ValueError)
    ├── NotAllowed   the caller does not have the right                  (PermissionError)
    ├── NotSignedIn  there is no caller: a sign-in failed, or is over    (PermissionError)
    ├── NotFound     there is no such run, or the token does not see it  (LookupError)
    ├── TooLarge     a file is larger than the server takes              (ValueError)
    ├── Busy         too many streams are open                           (RuntimeError)
    ├── BadRequest   the request is not what the route takes             (ValueError)
    └── Conflict     a file is not what the request says that it is      (ValueError)
"""

from __future__ import annotations

from typing import Any

from axil.plugin import ProblemError
from axil_serve.data import plain


def error_data(
    id: str, message: str, where: str = "", *, type: str = "invalid_request_error"
) -> dict[str, Any]:
    """Return the body of an answer with an error, as OpenAI's clients read it too.

    ``message``: shown without the id that it begins with. ``where``: the parameter that is wrong.
    """
    said = message.removeprefix(f"{id} ")
    shown = {"id": id, "message": said, "type": type, "code": id, "param": where or None}
    return {"error": plain(shown)}


class ServeFault(ProblemError):
    """One sentence with an id; ``hint`` says what to do next."""


class Unserved(ServeFault, ValueError):
    """The server cannot be opened as its settings say."""


class NotAllowed(ServeFault, PermissionError):
    """The caller does not have the right that the route needs."""


class NotSignedIn(ServeFault, PermissionError):
    """The request has no caller: no token, or a sign-in that failed or is over."""


class NotFound(ServeFault, LookupError):
    """There is no such run or workflow, or the token does not see it."""


class TooLarge(ServeFault, ValueError):
    """A file is larger than the server takes."""


class Busy(ServeFault, RuntimeError):
    """Too many streams are open."""


def lapsed() -> NotSignedIn:
    """Return the error for a token or a session that is over by now."""
    return NotSignedIn("AX961", "the token or the session is over.", "Sign in again.")


class BadRequest(ServeFault, ValueError):
    """The request is not what the route takes."""


class Conflict(ServeFault, ValueError):
    """A file is not what the request says that it is."""


__all__ = [
    "BadRequest",
    "Busy",
    "Conflict",
    "NotAllowed",
    "NotFound",
    "NotSignedIn",
    "ServeFault",
    "TooLarge",
    "Unserved",
    "error_data",
    "lapsed",
]
