"""The status of a run, as its journal has it: questions, timers, recoveries without progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from axil_journals.engine.protocol import RunStatus
from axil_journals.journal import ENDED, Entry, RunInfo, first_due
from axil_journals.replay import ReplayIndex
from axil_journals.values import decode_question, decode_value

PARKED = "parked"
"""The status of a run that ended its process again and again: it waits until it is resumed."""
OVER = ENDED | {PARKED}
"""The statuses of runs that have ended, and of those that only a person resumes."""
NO_PROGRESS = frozenset(["resumed", "clock", "began"])
"""The kinds of entries that a run repeats each time that it is resumed."""
_TIMER = "timer"
"""The kind of question that only a clock answers."""


def status_of(info: RunInfo, replay: ReplayIndex) -> RunStatus:
    """Return the status of a run; ``info``: as of its journal and its engine."""
    info = with_recorded_end(info, replay)
    ended: Mapping[str, Any] = {} if replay.ended is None else replay.ended.data
    asked = _unanswered(replay)
    return RunStatus(
        info=info,
        questions=tuple(decode_question(each) for each in asked if each.get("kind") != _TIMER),
        due=first_due(asked),
        error=str(ended.get("error", "")),
        output=decode_value(ended["output"]) if "output" in ended else None,
    )


def with_recorded_end(info: RunInfo, replay: ReplayIndex) -> RunInfo:
    """Return the facts about a run with the end that its record has, if any.

    The record has the end of a run first: its row and the engine that unloads it follow.
    """
    if replay.ended is None:
        return info
    status = str(replay.ended.data["status"])
    is_answered = len(_unanswered(replay)) < len(replay.ended.data.get("questions", ()))
    if status == "paused" and (info.status != "running" or is_answered):
        return info  # it is about to be loaded, or was
    return replace(info, status=status)


def _unanswered(replay: ReplayIndex) -> Sequence[Mapping[str, Any]]:
    """Return the questions and timers of a paused run that are not answered."""
    ended: Mapping[str, Any] = {} if replay.ended is None else replay.ended.data
    return [each for each in ended.get("questions", ()) if each["id"] not in replay.answers]


def recoveries_without_progress(entries: Sequence[Entry], *, alone: bool = False) -> int:
    """Count how often a run was resumed since the last entry that records any progress.

    Args:
        alone: only how often it was resumed with no other run in its engine; an orderly end of the
            process begins the count anew.
    """
    times = 0
    for entry in reversed(entries):
        if entry.kind == "resumed":
            if alone and not entry.data.get("alone"):
                break
            times += 1
        elif entry.kind not in NO_PROGRESS:
            break
    return times
