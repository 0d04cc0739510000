"""Deadlines of questions.

A question with ``within_seconds`` is due at a time by the clock on the wall, which a journal keeps:
it does not depend on the process that continues the run. While a run waits it waits by its own
clock, which never jumps: a clock on the wall that is put back makes no question wait longer, and
one that is put forward is noticed only by a process that resumes. The first of answer and deadline
counts; both are facts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from axil.contract.context import Channel, Clock, Question
from axil.errors import Overdue
from axil.kernel.values import MISSING

if TYPE_CHECKING:
    import asyncio


def wall_time(clock: Clock) -> float:
    """Return seconds since 1970, by ``clock.wall`` if there is one."""
    given: Any = getattr(clock, "wall", None)
    return time.time() if given is None else float(given())


@dataclass(frozen=True, slots=True)
class Deadline:
    """The deadline of a question, as one process sees it."""

    question: Question
    """With ``due``."""
    left: float
    """Seconds of the run's clock; not above zero: it has passed."""
    is_new: bool
    """True if no journal knows it yet."""

    async def wait(self, channel: Channel, clock: Clock) -> object:
        """Return the answer of ``channel``; the class ``Overdue``: too late."""
        import asyncio

        asking: asyncio.Task[object] = asyncio.ensure_future(_asked(channel, self.question))
        waiting = asyncio.ensure_future(clock.sleep(self.left))
        try:
            await asyncio.wait({asking, waiting}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else Overdue
        finally:
            for each in (asking, waiting):
                each.cancel()
            await asyncio.gather(asking, waiting, return_exceptions=True)


async def _asked(channel: Channel, question: Question) -> object:
    return await channel.ask(question)


def deadline_of(
    question: Question, within_seconds: float, known: Mapping[str, float], clock: Clock
) -> Deadline:
    """Return the deadline of a question.

    Args:
        known: when questions are due, by id, from a journal.
    """
    now, due = wall_time(clock), known.get(question.id)
    if due is None:
        return Deadline(replace(question, due=now + within_seconds), within_seconds, True)
    return Deadline(replace(question, due=due), min(due - now, within_seconds), False)


def late_answer(question: Question) -> object:
    """Return the answer after the deadline; ``MISSING``: there is none."""
    return MISSING if question.default is None else question.default


def answer_in_time(question: Question, answer: object) -> object:
    """Return what a body gets for a recorded answer.

    Raises: Overdue (AX520): no answer in time, and no default.
    """
    if answer is not MISSING:
        return answer
    asked = (question.text.strip().splitlines() or [question.id])[0]
    message = f'there was no answer to "{asked}" in time.'
    raise Overdue(message, hint="Give the question a default, or let the node say where to go on.")
