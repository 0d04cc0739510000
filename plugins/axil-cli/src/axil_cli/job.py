"""One run of the command: a signal may end it, and other processes may cancel or answer it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from axil import Result, Run as KernelRun, Workflow, run_sync
from axil.plugin import JournalError
from axil_cli.command import Session

_LOOK: Final = 1
"""Seconds between two looks for what other processes ask."""


class Job:
    """One run that a signal may end."""

    def __init__(
        self, workflow: Workflow, input: Any, options: dict[str, Any], observers: list[Any]
    ) -> None:
        """``options``: fields of ``axil.Options``, without the observers."""
        self.workflow, self.input, self.options = workflow, input, options
        self.observers = observers
        self._run: KernelRun | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_interrupted = False

    def run(self, session: Session) -> Result:
        """Run to the end, whatever it is; an interrupt cancels."""
        with session.interruptible(self._interrupt):
            return run_sync(self._result())

    def _interrupt(self) -> None:
        self._is_interrupted = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self.stop)

    def stop(self) -> None:
        """Cancel the run, which has a result all the same."""
        if self._run is not None:
            self._run.cancel("interrupted")

    async def _result(self) -> Result:
        journal: Any = self.options.get("journal")
        result = await self._once(journal, self.options)
        if not hasattr(journal, "mail"):
            return result
        while result.status == "paused":
            numbers, answers = await asyncio.to_thread(_answers, journal, result)
            if not answers:
                return result
            given = {"run_id": result.run_id, "resuming": True, "answers": answers}
            try:
                result = await self._once(journal, {**self.options, **given})
            except JournalError as error:
                if error.id == "AX506":  # a worker was faster, and goes on with it
                    return result
                raise
            await asyncio.to_thread(journal.discard, numbers)
        return result

    async def _once(self, journal: Any, options: Mapping[str, Any]) -> Result:
        self._run = run = self.workflow.start(self.input, observers=self.observers, **options)
        self._loop = asyncio.get_running_loop()
        if self._is_interrupted:
            self.stop()
        reads = hasattr(journal, "mail")
        reading = asyncio.ensure_future(_obey(run, journal)) if reads else None
        try:
            async with self.workflow:  # a signal meanwhile ends the run before it begins
                return await run.result()
        finally:
            if reading is not None:
                reading.cancel()


def _answers(journal: Any, paused: Result) -> tuple[list[int], dict[str, Any]]:
    """Return the answers to the questions of a paused run that ``axil runs answer`` posted while it
    was at work, and the numbers of their letters.
    """
    from axil_journals import decode_value

    asked = {question.id for question in paused.questions}
    letters = [
        each
        for each in journal.mail([paused.run_id])
        if each.entry.kind == "answer" and each.entry.data["id"] in asked
    ]
    answers = {each.entry.data["id"]: decode_value(each.entry.data["value"]) for each in letters}
    return [each.number for each in letters], answers


async def _obey(run: KernelRun, journal: Any) -> None:
    """Cancel a run when another process asks for it, as ``axil runs cancel`` does."""
    while True:
        await asyncio.sleep(_LOOK)
        with suppress(JournalError):  # a database that is away for a while; the next look is soon
            for letter in await asyncio.to_thread(journal.mail, [run.id]):
                if letter.entry.kind == "ended":
                    await asyncio.to_thread(journal.discard, [letter.number])
                    run.cancel(str(letter.entry.data.get("error", "cancelled")))


__all__ = ["Job"]
