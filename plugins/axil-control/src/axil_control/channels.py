"""Channels: ``replies`` has its answers ready; ``terminal`` reads them from a keyboard."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TextIO

from pydantic import BaseModel, Field

from axil import MISSING, Question
from axil.plugin import legible
from axil_files import format_duration

if TYPE_CHECKING:
    from concurrent.futures import Future

    _Turn = Future["_Turn | None"]


class Replies:
    """``replies``: gives its answers in order, then none: the run pauses.

    >>> Replies(["yes", "no"])
    Replies(2 left)
    """

    class Config(BaseModel, extra="forbid", frozen=True):
        """The answers."""

        answers: tuple[Any, ...] = Field(
            default=(), description="Answers, in the order of the questions."
        )

    def __init__(self, answers: Iterable[object] | Config = ()) -> None:
        self._left = deque(answers.answers if isinstance(answers, Replies.Config) else answers)
        self.asked: list[Question] = []
        """Every question, answered or not."""

    async def ask(self, question: Question) -> object:
        self.asked.append(question)
        return self._left.popleft() if self._left else MISSING

    def __repr__(self) -> str:
        return f"Replies({len(self._left)} left)"


class Terminal:
    """``terminal``: asks on the terminal; where there is none, the run pauses.

    One question at a time, whichever event loops ask. An empty line takes the question's default,
    if it has one; the end of the input is no answer.
    """

    class Config(BaseModel, extra="forbid", frozen=True):
        """``terminal`` has no settings."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
    ) -> None:
        self.config = config or self.Config()
        self._streams = (stdin, stdout)
        self._lock = threading.Lock()
        self._last: _Turn | None = None
        """Done when the last waiter has had its turn, with what it waited for if it gave up."""
        self._reading: Future[str] | None = None

    async def ask(self, question: Question) -> object:
        import asyncio

        stdin, stdout = self._streams[0] or sys.stdin, self._streams[1] or sys.stdout
        if stdin is None or stdout is None or not stdin.isatty():
            return MISSING
        async with self._turn():
            stdout.write(asked(question))
            try:
                while True:
                    stdout.write("> ")
                    stdout.flush()
                    line = await self._line(stdin)
                    if not line:
                        return MISSING
                    answer = read(question, line.rstrip("\r\n"))
                    if answer is not MISSING:
                        return answer
                    stdout.write("Please give one of the answers above.\n")
            except asyncio.CancelledError:  # too late, or the run is over
                stdout.write("(not answered)\n")
                stdout.flush()
                raise

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None]:
        """Wait for the questions that were asked before."""
        import asyncio

        mine = _promised()
        with self._lock:
            before, self._last = self._last, mine
        try:
            while before is not None:
                before = await asyncio.wrap_future(before)
            yield
        finally:
            mine.set_result(before)  # who gives up while waiting has no turn to end

    async def _line(self, stdin: TextIO) -> str:
        """Return the next line.

        What is still being typed when a question is taken back is the answer to the one after it.
        """
        import asyncio

        if self._reading is None:
            self._reading = _line(stdin)
        line = await asyncio.wrap_future(self._reading)
        self._reading = None
        return line


def _promised() -> Future[Any]:
    """Something that any event loop can wait for, and that stays where one of them gives up."""
    from concurrent.futures import Future

    promised = Future[Any]()
    promised.set_running_or_notify_cancel()
    return promised


def _line(stdin: TextIO) -> Future[str]:
    """Return one line, from a thread that blocks no exit: a reading that is not needed any
    more ends with the process.
    """
    answer = _promised()

    def wait_for_it() -> None:
        try:
            line = stdin.readline()
        except (OSError, ValueError):  # the terminal is gone, which is the end of the input
            line = ""
        answer.set_result(line)

    threading.Thread(target=wait_for_it, name="axil-terminal", daemon=True).start()
    return answer


def asked(question: Question) -> str:
    """Return a question as lines for a terminal."""
    where = f" {question.node}" if question.node else ""
    parts = [f"──{where} asks", str(question.data.get("description") or ""), question.text]
    parts += [f"{number}. {option}" for number, option in enumerate(question.options, 1)]
    if question.kind == "approval":
        parts.append("yes or no")
    if question.within_seconds is not None:
        parts.append(f"(within {format_duration(question.within_seconds)})")
    if question.default is not None:
        parts.append(f"(empty: {question.default})")
    # models and servers write questions, and do not steer the terminal
    return legible("\n" + "\n".join(dict.fromkeys(part for part in parts if part)) + "\n")


_APPROVAL = {"y": True, "yes": True, "n": False, "no": False}


def read(question: Question, line: str) -> object:
    """Return the answer in a line; ``MISSING``: it answers no question."""
    if not line and question.default is not None:
        return question.default
    if question.kind == "approval":
        return _APPROVAL.get(line.strip().lower(), MISSING)
    if not question.options:
        return line
    chosen = line.strip()
    if chosen in question.options:
        return chosen
    if chosen.isdecimal() and 1 <= int(chosen) <= len(question.options):
        return question.options[int(chosen) - 1]
    return MISSING
