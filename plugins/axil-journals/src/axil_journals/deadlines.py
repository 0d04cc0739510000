"""Deadlines of questions: until when a person may answer, and what is the answer then.

A question with ``within_seconds`` is due at a time by the clock on the wall, which the journal
keeps with it. So it is due when it was, whatever process continues the run. While a run waits
for the answer it waits by its own clock, which never jumps: a clock on the wall that is put back
makes no question wait longer than was meant, and one that is put forward is noticed only by a
process that resumes.

What comes first counts, once: an answer, or the deadline. Both are facts in the journal.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from axil import MISSING, Question
from axil.driver import Clock
from axil.plugin import Channel, JournalError, Overdue, format_names, without_secrets
from axil_journals.journal import Entry
from axil_journals.replay import ReplayIndex
from axil_journals.values import encode_question, encode_value

LATE = "deadline"
"""The mark (``by``) of an answer that a deadline gave."""


def wall_time(clock: Clock) -> float:
    """Return seconds since 1970: by ``clock.wall`` if the clock has it, else by this machine."""
    given: Any = getattr(clock, "wall", None)
    return time.time() if given is None else float(given())


@dataclass(frozen=True, slots=True)
class Deadline:
    """A question's, as one process sees it."""

    question: Question
    """With ``due``."""
    left: float
    """Seconds of the run's clock; not above zero: it has passed."""
    is_new: bool
    """True if the journal does not know it yet."""


def deadline(question: Question, known: Mapping[str, float], clock: Clock) -> Deadline | None:
    """Until when ``question`` can be answered; None: for ever.

    ``known``: when questions are due, as a journal says.
    """
    if question.within_seconds is None:
        return None
    now, due = wall_time(clock), known.get(question.id)
    if due is None:
        return Deadline(
            replace(question, due=now + question.within_seconds), question.within_seconds, True
        )
    return Deadline(replace(question, due=due), min(due - now, question.within_seconds), False)


async def in_time(channel: Channel, given: Deadline, clock: Clock) -> Any:
    """Return the answer of ``channel``; ``Overdue``, the class, where the deadline came first."""
    import asyncio

    asking: asyncio.Task[Any] = asyncio.ensure_future(_asked(channel, given.question))
    waiting = asyncio.ensure_future(clock.sleep(given.left))
    try:
        await asyncio.wait({asking, waiting}, return_when=asyncio.FIRST_COMPLETED)
        return asking.result() if asking.done() else Overdue
    finally:
        for each in (asking, waiting):
            each.cancel()
        await asyncio.gather(asking, waiting, return_exceptions=True)


async def _asked(channel: Channel, question: Question) -> Any:
    return await channel.ask(question)


def asked(question: Question) -> dict[str, Any]:
    """Return the journal entry of an open question, with its deadline."""
    return {**encode_question(question), "shown": True}


def late(question: Question) -> Any:
    """Return the default that is recorded after the deadline; ``MISSING``: there is none."""
    return MISSING if question.default is None else question.default


def answered(question: Question, answer: Any) -> Any:
    """Return the value that a body gets for a recorded answer.

    Raises: Overdue (AX520): there was no answer in time, and there is no default.
    """
    if answer is MISSING:
        asked = (question.text.strip().splitlines() or [question.id])[0]
        message = f'there was no answer to "{asked}" in time.'
        raise Overdue(
            message, hint="Give the question a default, or let the node say where to go on."
        )
    return answer


# --------------------------------------------------------------------------------------------------


def accept_answers(replay: ReplayIndex, given: Mapping[str, Any], clock: Clock) -> list[str]:
    """Of the answers that are handed in when a run begins or goes on, those that are new, by
    question.

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
    """Check that a paused run asked what is answered.

    Another one that is resumed, or a fork, may ask it yet. Raises: JournalError (AX519).
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
    """Return a time by the clock on the wall, in UTC.

    >>> format_time(0)
    '1970-01-01 00:00:00 UTC'
    """
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(due))


def open_questions(entries: Sequence[Entry]) -> list[Question]:
    """Return the questions that a run waits for, as its journal has them: those it ended with, or
    those that are open while it is at work.
    """
    replay = ReplayIndex(entries)
    lines: Iterable[Mapping[str, Any]]
    if replay.ended is not None:
        lines = replay.ended.data.get("questions", ())
    else:
        lines = [entry.data for name, entry in replay.asked.items() if name not in replay.answers]
    return [_question(data, replay) for data in lines]


def _question(data: Mapping[str, Any], replay: ReplayIndex) -> Question:
    entry = replay.asked.get(data["id"])
    node = data.get("node") or (entry.activation.path if entry is not None else "")
    return Question(
        text=str(data.get("text", "")),
        kind=str(data.get("kind", "text")),
        options=tuple(data.get("options", ())),
        default=data.get("default"),
        data=data.get("data", {}),
        id=str(data["id"]),
        node=str(node),
        due=data.get("due"),
    )
