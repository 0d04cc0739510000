"""The one workflow that Temporal knows: the coordinator of a run, whatever its graph is.

Temporal replays it from its history, so a change of its commands needs ``workflow.patched``:
``tests/history.json`` holds it to that. Temporal never replays the graph of a run nor gets its
values: arguments and results are the id of the run, the digest of its graph, a status and a time.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import is_cancelled_exception

NAME: Final = "axil-run"
EXECUTE: Final = "axil-execute"
"""The activity that executes a run until it ends or waits: ``[status, due]``."""
BEGIN: Final = "axil-begin"
"""The activity that stores the run of a schedule that is due."""
CANCEL: Final = "axil-cancel"
"""The activity that ends a run whose coordinator was cancelled in Temporal."""
HEARTBEAT_SECONDS: Final = 6.0
"""The seconds without a sign of life after which an activity is given to another worker."""
_LONGEST: Final = timedelta(days=3650)
_RETRY: Final = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10)
)
_LIVE: Final = ("open", "running", "paused")


def queue_of(queue: str, digest: str) -> str:
    """Return the task queue of the workers that have a version of a graph.

    >>> queue_of("axil", "3f9a07c2d1e8b6540f1e2d3c4b5a6978")
    'axil-3f9a07c2d1e8b654'
    """
    return f"{queue}-{digest[:16]}"


@workflow.defn(name=NAME)
class Coordinator:
    """The coordinator of one run: has it executed until it ends or waits, waits, and repeats."""

    def __init__(self) -> None:
        self._has_news = self._is_asked = False

    @workflow.signal
    def look(self, is_asked: bool) -> None:
        """Note that the run may be due; ``is_asked``: somebody wants it resumed."""
        self._has_news = True
        self._is_asked = self._is_asked or is_asked

    @workflow.run
    async def run(self, run_id: str, digest: str, template: str) -> str:
        """Return the status with which the run ended.

        Args:
            run_id: empty for a scheduled run: Temporal names that, by its schedule and its time.
            template: of a scheduled run: the recorded run that has its input; else empty.
        """
        info = workflow.info()
        run_id = run_id or info.workflow_id.removeprefix(f"{info.task_queue}/")
        try:
            if template:
                await self._do(BEGIN, digest, template, run_id)
            while True:
                self._has_news, is_asked, self._is_asked = False, self._is_asked, False
                status, due = await self._do(EXECUTE, digest, run_id, is_asked)
                if status not in _LIVE and not self._has_news:
                    return str(status)
                await self._wait(due)
                if workflow.info().is_continue_as_new_suggested():
                    workflow.continue_as_new(args=[run_id, digest, ""])
        except BaseException as error:
            if is_cancelled_exception(error):
                await self._do(CANCEL, digest, run_id)
            raise

    async def _wait(self, due: float | None) -> None:
        """Wait for a signal, or for the time at which the run is due."""
        left = None if due is None else max(due - workflow.now().timestamp(), 0.0)
        if left != 0.0:
            with suppress(asyncio.TimeoutError):
                await workflow.wait_condition(lambda: self._has_news, timeout=left)

    async def _do(self, activity: str, digest: str, *given: Any) -> Any:
        return await workflow.execute_activity(
            activity,
            args=given,
            task_queue=queue_of(workflow.info().task_queue, digest),
            start_to_close_timeout=_LONGEST,
            heartbeat_timeout=timedelta(seconds=HEARTBEAT_SECONDS),
            retry_policy=_RETRY,
        )
