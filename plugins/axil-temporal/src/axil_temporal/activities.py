"""The activities of Temporal by which a worker executes the runs of one version of a workflow."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

from temporalio import activity
from temporalio.exceptions import ApplicationError

from axil import Activation, AxilError, Workflow
from axil.plugin import JournalError
from axil_journals import PASSING_ERRORS, SharedJournal, fork
from axil_temporal.coordinator import BEGIN, CANCEL, EXECUTE, HEARTBEAT_SECONDS

_MOST_NAMED: Final = 50


class Execution(Protocol):
    """The part of the engine that activities use."""

    @property
    def journal(self) -> SharedJournal: ...

    async def execute(
        self, workflow: Workflow, run_id: str, is_asked: bool, nodes: NodesAtWork
    ) -> list[Any]: ...

    def refuse(self, run_id: str, error: AxilError) -> None: ...
    async def end(self, run_id: str) -> None: ...


class Version:
    """The activities of one version of a workflow."""

    def __init__(self, engine: Execution, workflow: Workflow) -> None:
        self._engine, self._workflow = engine, workflow
        self.at_work: set[asyncio.Task[Any]] = set()

    @activity.defn(name=EXECUTE)
    async def execute(self, run_id: str, is_asked: bool) -> list[Any]:
        task = asyncio.current_task()
        assert task is not None
        self.at_work.add(task)
        nodes = NodesAtWork()
        beating = asyncio.create_task(_beat(nodes))
        try:
            return await self._engine.execute(self._workflow, run_id, is_asked, nodes)
        except AxilError as error:
            if error.id in PASSING_ERRORS:
                raise
            self._engine.refuse(run_id, error)
            raise ApplicationError(str(error), type=error.id, non_retryable=True) from error
        finally:
            beating.cancel()
            self.at_work.discard(task)

    @activity.defn(name=BEGIN)
    async def begin(self, template: str, run_id: str) -> None:
        try:
            await fork(self._engine.journal, template, run_id, at=1)
        except JournalError as error:
            if error.id != "AX506":
                raise ApplicationError(str(error), type=error.id, non_retryable=True) from error

    @activity.defn(name=CANCEL)
    async def cancel(self, run_id: str) -> None:
        beating = asyncio.create_task(_beat())
        try:
            await self._engine.end(run_id)
        finally:
            beating.cancel()


class NodesAtWork:
    """An observer that knows the nodes at work in a run, for the heartbeats of its activity."""

    def __init__(self) -> None:
        self._at_work: dict[Activation, str] = {}
        self.firings = 0
        """The firings that have ended since the run was loaded."""

    def firing_started(self, activation: Activation, kind: str) -> None:
        self._at_work[activation] = kind

    def firing_finished(self, activation: Activation) -> None:
        self._at_work.pop(activation, None)
        self.firings += 1

    def firing_failed(self, activation: Activation) -> None:
        self._at_work.pop(activation, None)

    def details(self) -> dict[str, Any]:
        """Return names and counts, no values: Temporal's page shows them at the activity."""
        named = [f"{activation.path} ({kind})" for activation, kind in self._at_work.items()]
        return {"at_work": sorted(named)[:_MOST_NAMED], "firings": self.firings}


async def _beat(nodes: NodesAtWork | None = None) -> None:
    """Show Temporal that the activity is alive, and learn whether it is cancelled."""
    while True:
        activity.heartbeat(*(() if nodes is None else (nodes.details(),)))
        await asyncio.sleep(HEARTBEAT_SECONDS / 3)
