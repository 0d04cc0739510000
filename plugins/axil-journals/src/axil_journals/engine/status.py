"""The status of a run, as its journal has it: questions, timers, recoveries without progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from axil import Question
from axil_journals.engine.protocol import RunStatus
from axil_journals.journal import Entry, RunInfo, question_due
from axil_journals.replay import ReplayIndex
from axil_journals.values import decode_value

PARKED = "parked"
"""The status of a run that ended its process again and again: it waits until it is resumed."""
OVER = frozenset(["done", "failed", "cancelled", "limited", PARKED])
"""The statuses of runs that have ended, and of those that only a person resumes."""
NO_PROGRESS = frozenset(["resumed", "clock", "began"])
"""The kinds of entries that a run repeats each time that it is resumed."""
TIMER = "timer"
"""The kind of question that only a clock answers; ``data["due"]``: when, in seconds since 1970."""


def status_of(info: RunInfo, replay: ReplayIndex) -> RunStatus:
    """Return the status of a run; ``info``: what its journal and its engine say."""
    info = with_recorded_end(info, replay)
    ended: Mapping[str, Any] = {} if replay.ended is None else replay.ended.data
    asked = unanswered(replay)
    return RunStatus(
        info=info,
        questions=tuple(_question_of(each) for each in asked if each.get("kind") != TIMER),
        due=due_of(replay),
        error=str(ended.get("error", "")),
        output=decode_value(ended["output"]) if "output" in ended else None,
    )


def with_recorded_end(info: RunInfo, replay: ReplayIndex) -> RunInfo:
    """Return what is known of a run with the end that its record has; without one, ``info``.

    The record says first that a run has ended: its row and the engine that unloads it follow. So
    everybody that reads the end of a run reads it here.
    """
    if replay.ended is None:
        return info
    status = str(replay.ended.data["status"])
    if status == "paused" and (info.status != "running" or _is_answered(replay)):
        return info  # it is about to be loaded, or was
    return replace(info, status=status)


def _is_answered(replay: ReplayIndex) -> bool:
    """Return whether a paused run has got an answer since."""
    assert replay.ended is not None
    return len(unanswered(replay)) < len(replay.ended.data.get("questions", ()))


def unanswered(replay: ReplayIndex) -> Sequence[Mapping[str, Any]]:
    """Return the questions, timers included, that a paused run has and that are not answered."""
    ended: Mapping[str, Any] = {} if replay.ended is None else replay.ended.data
    return [each for each in ended.get("questions", ()) if each["id"] not in replay.answers]


def due_of(replay: ReplayIndex) -> float | None:
    """Return when a paused run goes on by itself, in seconds since 1970; None: never.

    That is the first of its timers and of the deadlines of its questions.
    """
    times = (question_due(each) for each in unanswered(replay))
    return min((due for due in times if due is not None), default=None)


def recoveries_without_progress(entries: Sequence[Entry], *, alone: bool = False) -> int:
    """Count how often a run was resumed since the last entry that records any progress.

    Args:
        alone: only how often the engine resumed it, lost, with no other run beside it: what ended
            the process then was this run. An orderly end of the process begins the count anew.
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


def _question_of(recorded: Mapping[str, Any]) -> Question:
    return Question(
        text=recorded["text"],
        kind=recorded.get("kind", "text"),
        options=tuple(recorded.get("options", ())),
        default=recorded.get("default"),
        data=recorded.get("data", {}),
        id=recorded["id"],
        node=recorded.get("node", ""),
    )


__all__ = [
    "NO_PROGRESS",
    "OVER",
    "PARKED",
    "TIMER",
    "due_of",
    "recoveries_without_progress",
    "status_of",
    "unanswered",
    "with_recorded_end",
]
