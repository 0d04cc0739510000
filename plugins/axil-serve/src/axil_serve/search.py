"""A search in what runs recorded: inputs, outputs, prompts, questions, errors."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from axil.plugin import JournalError
from axil_serve.access import Caller
from axil_serve.errors import NotFound
from axil_serve.service import RunService

_MOST: Final = 50
"""Runs that are returned."""
_SECONDS: Final = 5.0
_AROUND: Final = 60
_NOT_SEARCHED: Final = ("id", "number", "kind", "frame", "ordinal", "at", "used")


def search(
    service: RunService,
    caller: Caller,
    text: str,
    *,
    now: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Return the caller's runs in which a text occurs, the last changed run first.

    Of each run the first step that has the text, the text with what is around it, and how many
    steps have it. ``complete`` is false if there are more runs, or if the time ran out.
    """
    wanted, until = text.lower(), now() + _SECONDS
    found: list[dict[str, Any]] = []
    for run in service.list(caller):
        hit: dict[str, Any] | None = None
        try:
            steps = service.steps(caller, run["run_id"])
        except (JournalError, NotFound):  # it is damaged, or was removed meanwhile
            continue
        for step in steps:
            if len(found) >= _MOST or now() > until:
                return {"found": [*found, hit] if hit else found, "complete": False}
            searched = {name: step[name] for name in step if name not in _NOT_SEARCHED}
            place = next((each for each in _texts(searched) if wanted in each.lower()), None)
            if place is None:
                continue
            if hit is None:
                hit = {name: run[name] for name in ("run_id", "workflow", "status")}
                hit |= {name: step[name] for name in ("number", "kind", "activation")}
                hit |= {"text": _excerpt(place, wanted), "steps": 0}
            hit["steps"] += 1
        if hit is not None:
            found.append(hit)
    return {"found": found, "complete": True}


def _texts(value: Any) -> Iterator[str]:
    """Yield what stands in a value of JSON: its texts, its numbers, and the names of its fields."""
    if isinstance(value, dict):
        for name, each in cast("dict[str, Any]", value).items():
            yield from _texts(each)
            yield name
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _texts(each)
    elif value is not None:
        yield value if isinstance(value, str) else json.dumps(value)


def _excerpt(text: str, wanted: str) -> str:
    """Return a text around what was looked for, in one line."""
    at = max(0, text.lower().find(wanted))
    begin, end = max(0, at - _AROUND), at + len(wanted) + _AROUND
    inside = " ".join(text[begin:end].split())
    return f"{'…' if begin else ''}{inside}{'…' if end < len(text) else ''}"


__all__ = ["search"]
