"""A run that somebody owns: it can be accepted, answered while at work, and put away while it sleeps. What engines have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from axil.context import Clock, Question
from axil.desk import Pause
from axil.due import wall
from axil.errors import JournalError
from axil.journal import Entry, Replay, decode
from axil.record import header
from axil.run import Run

TIMER = "timer"
"""The kind of question that a run asks of the clock alone: ``data["due"]`` is when, in seconds since 1970."""

IN_VAIN = 5
"""Times that a run is brought back without getting any further before it is left for a person to look at."""


class OwnedRun(Run):
    """A run as an engine has it. It needs a journal."""

    async def submit(self) -> bool:
        """Journal that the run is to be, safely, and let go of it. False: it is known already, and has ended or paused.

        Raises: JournalError.
        """
        assert self._book is not None
        try:
            if self._replay.header is None:
                self._shell.desk.started = self._shell.desk.clock.now()
                await self._shell.desk.keep(header(self.plan, self._first, self.options))
        finally:
            self._book.close()
        return self._replay.ended is None

    async def take(self, answers: Sequence[Entry]) -> bool:
        """Take answers while at work: safe when this returns. False: the run has ended."""
        if self._shell.desk.is_closed:
            return False
        try:
            for entry in answers:
                self._shell.desk.note(entry)
        except JournalError:
            return False
        self._shell.desk.answers.update((entry.data["id"], decode(entry.data["value"])) for entry in answers)
        await self._shell.desk.kept()
        return True

    @property
    def has_begun(self) -> bool:
        """Whether it is at work, or was."""
        return self._begun

    def is_answered(self, questions: Sequence[Question]) -> bool:
        """Whether any of these was answered meanwhile."""
        return any(question.id in self._shell.desk.answers for question in questions)

    @property
    def at_work(self) -> int:
        """How many bodies are at work or wait for room, those apart that wait for graphs of their own."""
        return self._shell.crew.at_work


class Resting:
    """A run's clock that has the run put away where all its bodies sleep, and none will wake soon."""

    def __init__(self, clock: Clock, patience: float) -> None:
        self.clock, self.patience = clock, patience
        self.run: OwnedRun | None = None
        self._asleep: dict[str, float] = {}  # by the id of the timer: whose it is, and which
        self._is_leaving = False

    def now(self) -> float:
        return self.clock.now()

    def wall(self) -> float:
        return wall(self.clock)

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    async def rest(self, seconds: float, timer: Question) -> None:
        """As ``sleep``, in a body, of a sleep that is in the journal. Raises: Pause: the run is put away until then."""
        ends = self.now() + seconds
        self._asleep[timer.id] = ends
        try:
            while (left := ends - self.now()) > 0:
                await self.clock.sleep(min(left, self.patience))
                if self._is_leaving or self._has_nothing_else_to_do():
                    self._is_leaving = True
                    raise Pause(timer)
        finally:
            del self._asleep[timer.id]

    def _has_nothing_else_to_do(self) -> bool:
        soonest = min(self._asleep.values())
        sleepers = {id.rpartition("~")[0] for id in self._asleep}
        return self.run is not None and self.run.at_work == len(sleepers) and soonest - self.now() > self.patience


def due_of(replay: Replay) -> float | None:
    """When a run that is at rest goes on by itself: its first timer, or the first question whose time is over; None: never."""
    return min((due for each in open_questions(replay) if (due := due_in(each)) is not None), default=None)


def due_in(question: Mapping[str, Any]) -> float | None:
    data: Mapping[str, Any] = question.get("data") or {}
    due: Any = question.get("due", data.get("due"))
    return float(due) if isinstance(due, (int, float)) else None


def open_questions(replay: Replay) -> Sequence[Mapping[str, Any]]:
    told: Mapping[str, Any] = {} if replay.ended is None else replay.ended.data
    return [each for each in told.get("questions", ()) if each["id"] not in replay.answers]


def question_of(told: Mapping[str, Any]) -> Question:
    return Question(
        text=told["text"],
        kind=told.get("kind", "text"),
        options=tuple(told.get("options", ())),
        default=told.get("default"),
        data=told.get("data", {}),
        id=told["id"],
        node=told.get("node", ""),
    )


def in_vain(entries: Sequence[Entry]) -> int:
    """How often a run was gone on with, at the end of its record, without anything having come of it."""
    times = 0
    for entry in reversed(entries):
        if entry.kind == "resumed":
            times += 1
        elif entry.kind not in ("clock", "began"):
            break
    return times
