"""One run: how it begins, afresh or where it broke off, how it is driven to its end, and what comes
of it.

A run that failed, was cancelled or met a limit stops starting bodies, cancels those at work,
innermost first, and gives a result that says so.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

from axil._door import provided
from axil.contract.meters import Meter
from axil.errors import JournalError, KernelBug, LimitReached, RunCancelled
from axil.kernel.plan import Plan
from axil.kernel.scopes import machine_type
from axil.kernel.values import unshared
from axil.runtime.loop import RunLoop
from axil.runtime.recorder import Recorder
from axil.runtime.result import Options, Result
from axil.runtime.services import Pause, RealClock
from axil.runtime.sync import run_sync


class Run:
    """One run of a plan.

    ``await run`` (or ``run.result()``) drives it to its end; ``cancel`` ends it early.
    """

    __slots__ = (
        "__weakref__",
        "_begun",
        "_inputs",
        "_recorder",
        "_result",
        "_shell",
        "id",
        "options",
        "plan",
    )

    def __init__(
        self,
        plan: Plan,
        inputs: Any = None,
        options: Options | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """``values``: over the graph's own first values of the state, checked here.

        Raises: StateError: ``values`` do not fit the schema.
        """
        self.plan, self.options = plan, options or Options()
        self.id = self.options.identified()
        checked = plan.graph.schema.check(values or {}, whole=True)
        self._recorder = recorder = _recorder(self.id, plan, inputs, checked, self.options)
        self._inputs, state = (
            (inputs, checked) if recorder is None else (recorder.inputs, recorder.state)
        )
        root = plan.graph.schema.start(unshared({**plan.graph.start, **state}))
        self._shell = RunLoop(self.id, self.options, recorder, machine_type(plan, (), root))
        self._result: Result | None = None
        self._begun = False

    def __await__(self) -> Any:
        return self.result().__await__()

    @property
    def meter(self) -> Meter:
        """The meter, which counts what is used and holds it to limits."""
        return self._shell.meter

    def cancel(self, reason: str = "cancelled") -> None:
        """End the run: bodies at work are cancelled, innermost first; what was recorded stays."""
        self._shell.halt(RunCancelled(reason))

    async def result(self) -> Result:
        """Run to the end and give the result, whatever its status.

        Raises: CancelledError, if the awaiting task was cancelled.
        """
        if self._result is not None or self._begun:
            if self._result is None:
                raise KernelBug("a run was awaited twice at once.")
            return self._result
        self._begun = True
        loop, services, observers = self._shell, self._shell.services, self._shell.observers
        services.progress.started = services.clock.now()
        services.loop, services.home = asyncio.get_running_loop(), threading.get_ident()
        watch = (
            asyncio.create_task(self._deadline(loop.limits.seconds))
            if loop.limits.seconds is not None
            else None
        )
        try:
            if observers.run_started is not None:
                observers.run_started(self.id, self.plan)
            self._begin()
            await loop.drive()
            if loop.pool:
                await loop.stop()
            self._result, state = loop.conclude()
            if self._recorder is not None:
                self._recorder.end(self._result, state)
                await services.kept()
        except asyncio.CancelledError:
            loop.halt(RunCancelled("the task that ran it was cancelled"))
            raise
        except BaseException as error:
            # the recorder failed, or we did: nobody's outcome, so it goes to the caller as it is
            loop.halt(RunCancelled(f"the run broke: {type(error).__name__}: {error}"))
            raise
        finally:
            if watch is not None:
                watch.cancel()
            try:
                if loop.pool:
                    await loop.stop()
            finally:  # it may be cancelled again meanwhile
                if self._result is None:
                    self._result, _ = loop.conclude()
                try:
                    await loop.close()
                finally:
                    if observers.run_finished is not None:
                        observers.run_finished(self.id, self._result)
        return self._result

    def _begin(self) -> None:
        services, loop, given = self._shell.services, self._shell, self.options.answers
        recorder = self._recorder
        services.answers.update(given if recorder is None else recorder.begin(given))
        loop.start(self._inputs)

    async def _deadline(self, seconds: float) -> None:
        services = self._shell.services
        await services.clock.sleep(max(0.0, seconds - services.progress.before))
        self._shell.halt(
            LimitReached(
                f"the run took more than {seconds} seconds, which is its limit.", id="AX415"
            )
        )


def _recorder(
    run_id: str, plan: Plan, inputs: Any, values: Mapping[str, Any], options: Options
) -> Recorder | None:
    """Return what records a run; None: it has no journal.

    Raises: NotInstalled (AX306); JournalError: AX507 a thread without a journal; and others.
    """
    if options.journal is not None:
        made = provided("axil_journals.recorder", "JournalRecorder", wanted="a run with a journal")
        return made(run_id, plan, inputs, values, options)
    if options.thread:
        raise JournalError(
            "a thread was named, and no journal.",
            id="AX507",
            hint="Give a journal: it keeps what the thread's runs leave.",
        )
    return None


__all__ = ["Pause", "RealClock", "Run", "run_sync"]
