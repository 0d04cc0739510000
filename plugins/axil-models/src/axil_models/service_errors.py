"""Errors in the answers of services, and replies that end or read otherwise than they should."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import cast

from axil import AxilError
from axil_models.retries import retry_after_seconds

_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")


class BrokenOff(Exception):
    """The reply ended before its end."""


class Malformed(Exception):
    """The reply has another form than its API."""


@contextmanager
def reading_reply() -> Generator[None]:
    """Raise ``Malformed`` where reading fails, since a reply has another form than its API."""
    try:
        yield
    except (AxilError, json.JSONDecodeError, UnicodeError):
        raise
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Malformed(f"{type(error).__name__}: {error}") from error


def error_in(body: object) -> object:
    """Return the error in the body of an answer, however the service wraps it.

    >>> error_in([{"error": {"message": "slow down"}}])
    {'message': 'slow down'}
    """
    listed = cast("list[object]", body) if isinstance(body, list) else [body]
    error = listed[0] if len(listed) == 1 else listed  # Google's
    return entry_in(error, "error") or error


def said_in(error: object) -> object:
    """Return the message in an error, under ``message``, ``detail`` or ``error``, also nested."""
    for name in ("message", "detail", "error"):
        if inner := entry_in(error, name):
            return said_in(inner)
    return error


def ended(text: str) -> str:
    """Return a text with an end, so that a hint may follow it.

    >>> ended("slow down"), ended("Why? ")
    ('slow down.', 'Why?')
    """
    text = text.rstrip()
    return text if text.endswith((".", "!", "?", "…", "。")) else f"{text}."


def wait_in(error: object) -> float | None:
    """Return how long an error asks to wait in its body: ``retryDelay`` of Google, the headers that
    OpenRouter has there; None: it does not say.
    """
    details = entry_in(error, "details")
    for hint in cast("list[object]", details) if isinstance(details, list) else ():
        if found := _SECONDS.fullmatch(str(entry_in(hint, "retryDelay"))):
            return float(found[1])
    headers = entry_in(entry_in(error, "metadata"), "headers")
    if not isinstance(headers, Mapping):
        return None
    given = cast("Mapping[object, object]", headers).items()
    return retry_after_seconds({str(name).lower(): str(value) for name, value in given})


def entry_in(data: object, name: str) -> object:
    return cast("Mapping[str, object]", data).get(name) if isinstance(data, Mapping) else None


def is_page(headers: Mapping[str, str]) -> bool:
    return is_of_kind(headers, "text/html", "application/xhtml+xml")


def is_of_kind(headers: Mapping[str, str], *kinds: str) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() in kinds
