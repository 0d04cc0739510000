"""Answers to a recorded run, and the questions that it waits for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from axil import Question
from axil.driver import Clock, wall_time
from axil.plugin import JournalError, format_names, without_secrets
from axil_journals.journal import Entry
from axil_journals.replay import ReplayIndex
from axil_journals.values import decode_question, encode_value

LATE = "deadline"
"""The mark (``by``) of an answer that a deadline gave."""


def accept_answers(replay: ReplayIndex, given: Mapping[str, object], clock: Clock) -> list[str]:
    """Return the questions whose answers, given when a run begins or continues, are new.

    Raises: JournalError: AX521 another answer was given before; AX522 the question was due before
    now; AX519 the run, which is known, did not ask it.
    """
    _check_asked(replay, given)
    fresh: list[str] = []
    for question, answer in given.items():
        if question in replay.answers:
            known, now = encode_value(replay.answers[question]), encode_value(answer)
            if without_secrets(known) != without_secrets(now):
                raise JournalError(
                    f'the question "{question}" has been answered.',
                    id="AX521",
                    hint="An answer is given once; a fork can take another.",
                )
            continue
        if (due := replay.due.get(question)) is not None and due <= wall_time(clock):
            message = f'the question "{question}" was due at {format_time(due)}.'
            raise JournalError(
                message,
                id="AX522",
                hint="Resume the run: it continues without an answer, as the question defines.",
            )
        fresh.append(question)
    return fresh


def _check_asked(replay: ReplayIndex, given: Mapping[str, Any]) -> None:
    """Check that a paused run asked what is answered; any other may ask it yet.

    Raises: JournalError (AX519).
    """
    if replay.ended is None or replay.ended.data.get("status") != "paused":
        return
    ended = replay.ended.data.get("questions", ())
    left = [name for name in replay.asked if name not in replay.answers]
    waiting = dict.fromkeys([*(str(message["id"]) for message in ended), *left])
    known = waiting.keys() | replay.asked.keys() | replay.answers.keys()
    if strange := [name for name in given if name not in known]:
        message = f"the run asked no question {format_names([repr(name) for name in strange])}."
        are = f"Open: {', '.join(waiting)}." if waiting else "No question of it is open."
        raise JournalError(message, id="AX519", hint=are)


def format_time(due: float) -> str:
    """Return a time in UTC.

    >>> format_time(0)
    '1970-01-01 00:00:00 UTC'
    """
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(due))


def open_questions(entries: Sequence[Entry]) -> list[Question]:
    """Return the questions that a run ended with, or that are open while it is at work."""
    replay = ReplayIndex(entries)
    asked: Iterable[Mapping[str, Any]]
    if replay.ended is not None:
        asked = replay.ended.data.get("questions", ())
    else:
        asked = [entry.data for name, entry in replay.asked.items() if name not in replay.answers]
    found: list[Question] = []
    for data in asked:
        entry = replay.asked.get(data["id"])
        node = data.get("node") or (entry.activation.path if entry is not None else "")
        found.append(replace(decode_question(data), node=node, due=data.get("due")))
    return found
