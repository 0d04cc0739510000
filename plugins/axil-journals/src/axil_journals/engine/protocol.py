"""The protocol of engines, which start and recover runs of workflows, and the status of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from axil import Question, Result, Workflow
from axil.driver import RunInput
from axil_journals.journal import Entry, RunInfo

PASSING_ERRORS: Final = ("AX506", "AX510", "AX512")
"""The errors of a journal after which a run is tried again."""
FindWorkflow = Callable[[Mapping[str, Any]], Workflow]
"""A function from the header of a run (``graph``, ``digest``, ``origin``) to its workflow."""
AroundRun = Callable[[Mapping[str, Any], Sequence[Entry]], AbstractContextManager[Any]]
"""A function from what is kept with a run, its origin, and its record to what it runs within."""
RunLeave = Callable[[Mapping[str, Any], frozenset[str]], frozenset[str]]
"""A function from what is kept with a run, and what all runs are allowed, to what it is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """The status of a run, of its journal and its engine."""

    info: RunInfo
    """``info.status`` is ``queued`` while the run waits for the engine to load it."""
    questions: tuple[Question, ...] = ()
    """The questions that people have to answer."""
    due: float | None = None
    """The time at which the run continues by itself, in seconds since 1970; None: only after an
    answer, or it does not wait.
    """
    error: str = ""
    output: Any = None
    """The output of a run that is done, as far as the journal keeps it."""


class Engine(Protocol):
    """An engine: it starts, resumes and recovers runs.

    When one of its methods returns, what it did is stored: a run that was started, answered or
    cancelled stays so after a crash. ``axil_testing.kit.EngineKit`` tests an implementation.
    """

    async def start(
        self,
        workflow: Workflow,
        input: RunInput = None,
        attributes: Mapping[str, Any] | None = None,
        *,
        run_id: str = "",
        thread: str = "",
        origin: Mapping[str, Any] | None = None,
    ) -> str:
        """Store a new run, which begins when there is room for it, and return its id.

        The same id with the same input is the same run, begun once. Raises: JournalError (AX505):
        the id belongs to a run with another input.
        """
        ...

    def list(self, *, after: str = "", limit: int = 0) -> Sequence[RunInfo]:
        """Return the runs of the journal, the last one that changed first.

        Args:
            after: only those behind this run, which was the last of the page before.
            limit: at most so many; 0: all.
        """
        ...

    def get(self, run_id: str) -> RunStatus:
        """Return the status of a run. Raises: JournalError (AX503): there is no such run."""
        ...

    async def answer(self, run_id: str, answers: Mapping[str, Any]) -> None:
        """Store answers, by question id, and resume the run.

        Raises: EngineError (AX541): the run does not ask that, it was answered before, or the run
            was cancelled.
        """
        ...

    async def cancel(self, run_id: str, reason: str = "cancelled") -> None:
        """End a run, whatever its status; a run that has ended is not changed."""
        ...

    async def resume(self, run_id: str) -> None:
        """Resume a run that was interrupted, failed, reached a limit or was cancelled."""
        ...

    async def result(self, run_id: str) -> Result:
        """Wait until a run has ended, through all its pauses, and return its result."""
        ...

    async def close(self) -> None:
        """Stop all runs; another engine can resume them. May be called again."""
        ...
