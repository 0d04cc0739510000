"""A search in what runs recorded: inputs, outputs, prompts, questions, errors."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Final

from axil_serve.access import Caller
from axil_serve.service import RunService

_MOST: Final = 100
"""Places that are returned."""
_SECONDS: Final = 5.0
_AROUND: Final = 60
_NOT_SEARCHED: Final = ("id", "number", "frame", "ordinal", "at", "used")


def search(
    service: RunService,
    caller: Caller,
    text: str,
    *,
    now: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Return the steps of the caller's runs in which a text occurs, the last changed run first.

    ``complete`` is false if there are more places, or if the time for a search ran out.
    """
    wanted, until = text.lower(), now() + _SECONDS
    found: list[dict[str, Any]] = []
    for run in service.list(caller):
        for step in service.steps(caller, run["run_id"]):
            if len(found) >= _MOST or now() > until:
                return {"found": found, "complete": False}
            searched = {name: step[name] for name in step if name not in _NOT_SEARCHED}
            whole = json.dumps(searched, ensure_ascii=False)
            at = whole.lower().find(wanted)
            if at >= 0:
                place = {"run_id": run["run_id"], "workflow": run["workflow"]}
                place |= {name: step[name] for name in ("number", "kind", "activation")}
                excerpt = whole[max(0, at - _AROUND) : at + len(text) + _AROUND]
                found.append({**place, "text": excerpt})
    return {"found": found, "complete": True}


__all__ = ["search"]
