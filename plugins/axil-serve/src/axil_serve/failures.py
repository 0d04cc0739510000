"""Errors as clients learn of them: their status and their message."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from axil import AxilError, ConfigError, SpecError, StateError
from axil.plugin import EngineError, JournalError
from axil_serve.errors import (
    BadRequest,
    Busy,
    Conflict,
    NotAllowed,
    NotFound,
    NotSignedIn,
    TooLarge,
    error_data,
)


def status_of(error: AxilError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, NotFound) or error.id == "AX503":
        return 404
    if isinstance(error, NotSignedIn):
        return 401
    if isinstance(error, NotAllowed):
        return 403
    if isinstance(error, Busy):
        return 503
    if isinstance(error, TooLarge):
        return 413
    if isinstance(error, BadRequest):
        return 400
    if isinstance(error, Conflict):
        return 409
    if isinstance(error, EngineError) and error.id == "AX540":
        return 503
    if isinstance(error, (JournalError, EngineError)):
        return 422 if error.id in ("AX501", "AX502") else 409
    return 422 if isinstance(error, (SpecError, StateError, ConfigError)) else 500


def public_message(error: AxilError) -> str:
    """Return what a client learns of an error; what went wrong inside is for the log alone."""
    if status_of(error) < 500 or isinstance(error, Busy):
        return str(error)
    return "the server failed to handle the request."


def refused(error: AxilError) -> Response:
    """Return an error as the answer to a request."""
    data = error_data(error.id, public_message(error), getattr(error, "where", ""))
    return JSONResponse(data, status_of(error))
