"""One run: how it begins, afresh or where it broke off, how it is driven to its end, and what comes of it.

A run that failed, was cancelled or met a limit stops starting bodies, cancels those at work, innermost first, and gives a result
that says so.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from axil.context import Clock
from axil.desk import Pause, RealClock
from axil.errors import KernelBug, LimitReached, RunCancelled
from axil.journal import NOTHING_KNOWN, Book, Entry, Replay, encode
from axil.machine import Machine
from axil.plan import Plan
from axil.record import beginning, ending, opening, reopened
from axil.result import Meter, Options, Result
from axil.shell import Shell
from axil.sync import run_sync
from axil.values import unshared


class Run:
    """One run of a plan. ``await run`` (or ``run.result()``) drives it to its end; ``cancel`` ends it early."""

    __slots__ = ("__weakref__", "_begun", "_book", "_first", "_replay", "_result", "_shell", "id", "options", "plan")

    def __init__(self, plan: Plan, inputs: Any = None, options: Options | None = None, values: Mapping[str, Any] | None = None) -> None:
        """``values``: over the graph's own first values of the state, checked here.

        Raises: StateError: ``values`` do not fit the schema.
        """
        self.plan, self.options = plan, options or Options()
        self.id = self.options.identified()
        self._book = self.options.journal.open(self.id) if self.options.journal is not None else None
        self._replay = NOTHING_KNOWN if self._book is None else _replayed(self._book, plan, migrate=self.options.migrate)
        checked = plan.graph.schema.check(values or {}, whole=True)
        if self._replay.header is not None:
            self._first = reopened(self._replay.header, plan, (inputs, checked), self.options)
        else:
            self._first = beginning(plan, inputs, checked, self.options)
        root = plan.graph.schema.start(unshared({**plan.graph.start, **self._first.state}))
        self._shell = Shell(self.id, self.options, self._book, self._replay, Machine(plan, (), root))
        self._result: Result | None = None
        self._begun = False

    def __await__(self) -> Any:
        return self.result().__await__()

    @property
    def meter(self) -> Meter:
        """What is used, and its limits."""
        return self._shell.meter

    def cancel(self, reason: str = "cancelled") -> None:
        """End the run: bodies at work are cancelled, innermost first; what was journaled stays."""
        self._shell.halt(RunCancelled(reason))

    async def result(self) -> Result:
        """Run to the end and give the result, whatever its status. Raises: CancelledError, if the awaiting task was cancelled."""
        if self._result is not None or self._begun:
            if self._result is None:
                raise KernelBug("a run was awaited twice at once.")
            return self._result
        self._begun = True
        shell, desk, observers = self._shell, self._shell.desk, self._shell.observers
        desk.started, desk.loop, desk.home = desk.clock.now(), asyncio.get_running_loop(), threading.get_ident()
        watch = asyncio.create_task(self._deadline(shell.limits.seconds)) if shell.limits.seconds is not None else None
        try:
            if observers.run_started is not None:
                observers.run_started(self.id, self.plan)
            self._begin()
            await shell.drive()
            if shell.crew:
                await shell.stop()
            self._result, state = shell.conclude()
            if self._book is not None:
                await desk.keep(ending(self._result, state, self._first.thread))
        except asyncio.CancelledError:
            shell.halt(RunCancelled("the task that ran it was cancelled"))
            raise
        except BaseException as error:  # the journal failed, or we did: nobody's outcome, so it goes to the caller as it is
            shell.halt(RunCancelled(f"the run broke: {type(error).__name__}: {error}"))
            raise
        finally:
            if watch is not None:
                watch.cancel()
            try:
                if shell.crew:
                    await shell.stop()
            finally:  # it may be cancelled again meanwhile
                if self._result is None:
                    self._result, _ = shell.conclude()
                try:
                    await shell.close()
                finally:
                    if observers.run_finished is not None:
                        observers.run_finished(self.id, self._result)
        return self._result

    def _begin(self) -> None:
        desk, shell = self._shell.desk, self._shell
        desk.answers.update(self._replay.answers)
        fresh = _accepted(self._replay, self.options.answers, desk.clock) if self.options.answers else ()
        if self._book is not None:
            desk.note(opening(self._replay.header, self.plan, self._first, self.options))
        for question in fresh:
            answer = desk.answers[question] = self.options.answers[question]
            if self._book is not None:
                desk.note(Entry("answer", data={"id": question, "value": encode(answer)}))
        shell.start(self._first.inputs)

    async def _deadline(self, seconds: float) -> None:
        await self._shell.desk.clock.sleep(max(0.0, seconds - self._replay.elapsed))
        self._shell.halt(LimitReached(f"the run took more than {seconds} seconds, which is its limit.", id="AX415"))


def _replayed(book: Book, plan: Plan, *, migrate: bool) -> Replay:
    from axil.migrations import as_of_now

    return Replay(as_of_now(book.entries, plan, migrate=migrate))


def _accepted(replay: Replay, answers: Mapping[str, Any], clock: Clock) -> Sequence[str]:
    from axil.due import accepted

    return accepted(replay, answers, clock)


__all__ = ["Pause", "RealClock", "Run", "run_sync"]
