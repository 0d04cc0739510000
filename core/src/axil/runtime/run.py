"""One run: how it begins, afresh or where it broke off, how it is driven to its end, and what comes
of it; and the functions that drive one from code that is not async.

A run that failed, was cancelled or met a limit stops starting bodies, cancels those at work,
innermost first, and gives a result that says so.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import Any

from axil.contract.meters import Meter
from axil.errors import JournalError, KernelBug, LimitReached, RunCancelled
from axil.kernel.plan import Plan
from axil.kernel.scopes import machine_type
from axil.kernel.values import isolate, unshared
from axil.runtime.loop import RunLoop
from axil.runtime.recorder import Recorder
from axil.runtime.result import Options, Result
from axil.runtime.services import RunServices


class Run:
    """One run of a plan.

    ``await run`` (or ``run.result()``) drives it to its end; ``cancel`` ends it early.
    """

    __slots__ = (
        "__weakref__",
        "_inputs",
        "_loop",
        "_result",
        "has_begun",
        "id",
        "options",
        "plan",
        "recorder",
        "services",
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
        self.id = self.options.run_id or os.urandom(8).hex()
        checked = plan.graph.schema.check(values, whole=True) if values else {}
        self.recorder = recorder = _recorder(self.id, plan, inputs, checked, self.options)
        """The recorder of the run; None: it has no journal. For engines."""
        self._inputs, state = (
            (inputs, checked) if recorder is None else (recorder.inputs, recorder.state)
        )
        first = {**plan.graph.start, **state}
        root = plan.graph.schema.start(first and unshared(first))
        self._loop = RunLoop(self.id, self.options, recorder, machine_type(plan, (), root))
        self.services: RunServices = self._loop.services
        """The services for its bodies. For engines."""
        self._result: Result | None = None
        self.has_begun = False
        """True if ``result`` was called."""

    def __await__(self) -> Any:
        return self.result().__await__()

    @property
    def meter(self) -> Meter:
        """The meter, which counts what is used and holds it to limits."""
        return self._loop.meter

    @property
    def at_work(self) -> int:
        """The number of bodies that run or wait for room, without those that wait for sub-runs."""
        return self._loop.pool.at_work

    def cancel(self, reason: str = "cancelled") -> None:
        """End the run: bodies at work are cancelled, innermost first; what was recorded stays."""
        self._loop.halt(RunCancelled(reason))

    async def result(self) -> Result:
        """Run to the end and give the result, whatever its status.

        Raises: CancelledError, if the awaiting task was cancelled.
        """
        if self._result is not None or self.has_begun:
            if self._result is None:
                raise KernelBug("a run was awaited twice at once.")
            return self._result
        self.has_begun = True
        loop, services, observers = self._loop, self.services, self._loop.observers
        services.progress.started = services.clock.now()
        services.loop, services.home = asyncio.get_running_loop(), threading.get_ident()
        watch = (
            asyncio.create_task(self._deadline(loop.limits.seconds))
            if loop.limits.seconds is not None
            else None
        )
        try:
            if observers.run_started is not None:
                observers.run_started(self.id, self.plan, isolate(self._inputs))
            given, recorder = self.options.answers, self.recorder
            services.answers.update(given if recorder is None else recorder.begin(given))
            loop.scheduler.begin(self._inputs)
            await loop.drive()
            if loop.pool.working:
                await loop.stop()
            self._result, state = loop.conclude()
            if recorder is not None:
                recorder.end(self._result, state)
                stored = recorder.kept()
                recorder.close()  # one transaction stores the end and releases the run
                if stored is not None:
                    await stored
        except asyncio.CancelledError:
            loop.halt(RunCancelled("the task that ran it was cancelled"))
            raise
        except BaseException as error:
            # the recorder failed, or the run itself: no node's outcome, so it goes to the caller as
            # it is
            loop.halt(RunCancelled(f"the run broke: {type(error).__name__}: {error}"))
            raise
        finally:
            if watch is not None:
                watch.cancel()
            try:
                if loop.pool.working:
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

    async def _deadline(self, seconds: float) -> None:
        services = self.services
        await services.clock.sleep(max(0.0, seconds - services.progress.before))
        self._loop.halt(
            LimitReached(
                f"the run took more than {seconds} seconds, which is its limit.", id="AX415"
            )
        )


def _recorder(
    run_id: str, plan: Plan, inputs: Any, values: Mapping[str, Any], options: Options
) -> Recorder | None:
    """Return what records a run; None: it has no journal.

    Raises: JournalError: AX507 a thread without a journal; and others.
    """
    if options.journal is not None:
        return options.journal.recorder(run_id, plan, inputs, values, options)
    if options.thread:
        raise JournalError(
            "a thread is named, but there is no journal.",
            id="AX507",
            hint="Pass a journal: it stores the runs of the thread.",
        )
    return None


def run_sync(doing: Awaitable[Any]) -> Any:
    """Drive ``doing`` to its end on an event loop of its own and give what it gives.

    Raises: RuntimeError: called from a running event loop; await there instead.
    """
    if _is_running():
        if inspect.iscoroutine(doing):
            doing.close()
        raise RuntimeError(
            "a blocking method was called on a running event loop; "
            "await the async form (run, stream) instead."
        )
    driven = _Driven(doing)
    asyncio.run(driven.result())
    return driven.value


def run_blocking(doing: Coroutine[Any, Any, Any]) -> Any:
    """Drive ``doing`` to its end and return what it returns.

    Where an event loop is running in this thread, as in a notebook, another thread drives it, in a
    copy of the context, and this one waits. An interrupt of the waiting thread cancels it.
    """
    if not _is_running():
        return run_sync(doing)
    driven = _Driven(doing)
    thread = Thread(target=copy_context().run, args=(driven.drive,), name="axil-invoke")
    thread.start()
    try:
        thread.join()
    except BaseException:
        driven.cancel()
        thread.join()
        raise
    if driven.error is not None:
        raise driven.error
    return driven.value


def _is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _Threads(ThreadPoolExecutor):
    """The threads of ``asyncio.to_thread``: those that still run when the loop ends finish unseen,
    as those of bodies do.
    """

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=True)


class _Driven:
    """An awaitable on an event loop of its own, and its result."""

    def __init__(self, doing: Awaitable[Any]) -> None:
        self._doing = doing
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self.value: Any = None
        self.error: BaseException | None = None

    async def result(self) -> None:
        """Await it. The value is not returned: ``asyncio.run`` would make a text of it."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._loop.set_default_executor(_Threads(thread_name_prefix="asyncio"))
        self.value = await self._doing

    def drive(self) -> None:
        """Run its loop, in a thread that another one waits for."""
        try:
            asyncio.run(self.result())
        except BaseException as error:  # noqa: BLE001  # the waiting thread raises it
            self.error = error

    def cancel(self) -> None:
        """Cancel it, from another thread."""
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # it is over, and its loop closed
                self._loop.call_soon_threadsafe(self._task.cancel)
