"""The status of a run, as its journal has it: questions, timers, recoveries without progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from axil import Question
from axil.driver import Entry, ReplayIndex, RunInfo, decode_value, question_due
from axil_engine.protocol import RunStatus

TIMER = "timer"
"""The kind of question that only a clock answers; ``data["due"]``: when, in seconds since 1970."""


def status_of(info: RunInfo, replay: ReplayIndex) -> RunStatus:
    """Return the status of a run; ``info`` is taken as it is."""
    ended: Mapping[str, Any] = {} if replay.ended is None else replay.ended.data
    asked = unanswered(replay)
    return RunStatus(
        info=info,
        questions=tuple(_question_of(each) for each in asked if each.get("kind") != TIMER),
        due=due_of(replay),
        error=str(ended.get("error", "")),
        output=decode_value(ended["output"]) if "output" in ended else None,
    )


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


def recoveries_without_progress(entries: Sequence[Entry]) -> int:
    """Count how often a run was resumed since the last entry that records any progress."""
    times = 0
    for entry in reversed(entries):
        if entry.kind == "resumed":
            times += 1
        elif entry.kind not in ("clock", "began"):
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
    "TIMER",
    "due_of",
    "recoveries_without_progress",
    "status_of",
    "unanswered",
]
