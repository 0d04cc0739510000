"""The engine: runs are stored in a journal, and Temporal decides when and where they continue.

Theory of operation
-------------------
The journal has the runs, with all their values; a ``LocalEngine`` that loads none stores, answers
and cancels them there, and waits for their results. For each run Temporal has one ``Coordinator``,
named after the run. It has an activity executed, ``resume_run`` of the run, on a task queue of the
workers with this version of its graph; then it waits for the time at which the run is due, or for a
signal.

The journal decides whether a run is executed: it refuses a second holder, and knows when a run is
due. So a signal or an activity too many does no harm, and a missing one is made up for: whenever
the journal changes, a worker looks for due runs (``_watch``) and signals their coordinators. So
begins, too, a run that was stored by ``axil submit``, and continues one that was answered by a
process without Temporal.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from axil import Result, Workflow
from axil.driver import RunInput
from axil.plugin import EngineError
from axil_journals import (
    AroundRun,
    Engine,
    Entry,
    FindWorkflow,
    LocalEngine,
    MemoryJournal,
    ReplayIndex,
    RunInfo,
    RunLeave,
    RunStatus,
    SharedJournal,
    check_run_options,
    decode_value,
    lasting_executor,
    resume_run,
    unknown_error,
)
from axil_temporal.activities import NodesAtWork, Version
from axil_temporal.coordinator import NAME, Coordinator, queue_of

log = logging.getLogger("axil_temporal")

_AT_A_TIME: Final = 100  # runs that one look for due runs finds at most


class TemporalEngine:
    """An ``Engine`` on a Temporal server, for the runs of one journal.

        async with TemporalEngine(PostgresJournal("postgresql://db/axil"), [letters]) as engine:
            run_id = await engine.start(letters, {"to": "Ada"})
            result = await engine.result(run_id)

    The server, and the key and the certificates for it, are those of Temporal's variables
    (``TEMPORAL_ADDRESS``, ``TEMPORAL_NAMESPACE`` …) and of its configuration file.
    """

    def __init__(
        self,
        journal: SharedJournal | None = None,
        workflows: Iterable[Workflow] = (),
        *,
        find: FindWorkflow | None = None,
        around: AroundRun | None = None,
        leave: RunLeave | None = None,
        folder_of: Callable[[str], Path | None] | None = None,
        loaded: int = 100,
        queue: str = "axil",
        client: Client | None = None,
        patience_seconds: float = 5.0,
        recheck_seconds: float = 5.0,
        **options: Any,
    ) -> None:
        """Store the settings; nothing is read or connected before ``async with``.

        Args:
            journal: shared with all other engines; None: one in memory, for tests.
            workflows: those whose runs this process executes, in these versions.
            find: returns the workflow of other runs. A run for which it raises is left to other
                workers.
            around: returns the context manager that a run is executed within.
            leave: returns the grants of a run, of its origin and of what all runs are allowed.
            folder_of: returns the workspace of a run by its id; None: as of the options.
            loaded: how many runs of each version may be at work in this process; 0: it only
                submits.
            queue: the first part of the names of task queues, workflows and schedules.
            client: None: connected as of Temporal's environment.
            patience_seconds: how long all bodies of a run have to sleep before it is unloaded.
            recheck_seconds: between two looks at a journal that reports no change.
            options: for all runs, as of ``axil.Options``.
        Raises: ConfigError (AX130), TypeError: there is no such option, or it has a wrong value.
        """
        check_run_options(options, TemporalEngine)
        self.queue, self.max_loaded = queue, loaded
        self.patience_seconds, self.recheck_seconds = patience_seconds, recheck_seconds
        self._options, self._find, self._given = options, find, client
        self._around, self._leave, self._folder_of = around, leave, folder_of
        self._executor = lasting_executor(options)
        self._runs = LocalEngine(
            journal, workflows, find=self._found, loaded=0, recheck_seconds=recheck_seconds
        )
        self.journal: SharedJournal = self._runs.journal
        self.tally = self._runs.tally
        self._workflows = {each.plan.graph.digest: each for each in workflows}
        self._versions: dict[str, Version] = {}
        self._client: Client | None = None
        self._refused: set[str] = set()  # runs that this process cannot execute
        self._signalled: dict[str, float] = {}  # runs, and when their coordinators were signalled
        self._watching: asyncio.Task[None] | None = None
        self._workers: list[tuple[Worker, asyncio.Task[None]]] = []
        self._opening, self._taking = asyncio.Lock(), asyncio.Lock()
        self._entered = AsyncExitStack()

    async def __aenter__(self) -> TemporalEngine:
        self._client = self._given or await _connected()
        await self._runs.__aenter__()
        self._listen(self.queue, workflows=[Coordinator])
        if self.max_loaded:
            for workflow in list(self._workflows.values()):
                await self._serve(workflow)
            self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -------------------------------------------------------------------------- the protocol

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
        given: dict[str, Any] = {"run_id": run_id, "thread": thread, "origin": origin}
        run_id = await self._runs.start(workflow, input, attributes, **given)
        if self.max_loaded:
            await self._serve(workflow)
        await self._signal_soon(run_id, workflow.plan.graph.digest)
        return run_id

    def list(self, *, after: str = "", limit: int = 0) -> Sequence[RunInfo]:
        return self._runs.list(after=after, limit=limit)

    def get(self, run_id: str) -> RunStatus:
        return self._runs.get(run_id)

    async def answer(self, run_id: str, answers: Mapping[str, Any]) -> None:
        await self._runs.answer(run_id, answers)
        self._refused.discard(run_id)
        await self._signal_soon(run_id)

    async def cancel(self, run_id: str, reason: str = "cancelled") -> None:
        await self._runs.cancel(run_id, reason)
        with suppress(RPCError):  # it may have ended already, or may never have begun
            await self._handle(run_id).signal(Coordinator.look, False)

    async def resume(self, run_id: str) -> None:
        await self._runs.resume(run_id)
        self._refused.discard(run_id)
        await self._signal(run_id, is_asked=True)

    async def result(self, run_id: str) -> Result:
        return await self._runs.result(run_id)

    async def close(self, *, grace_seconds: float = 0.0) -> None:
        """Stop the runs at work here, after ``grace_seconds``; other workers continue them."""
        at_work = [each for version in self._versions.values() for each in version.at_work]
        if at_work and grace_seconds:
            await asyncio.wait(at_work, timeout=grace_seconds)
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        workers, self._workers = self._workers, []
        await asyncio.gather(*(worker.shutdown() for worker, _ in workers))
        await asyncio.gather(*(running for _, running in workers))
        await self._runs.close()
        self._versions.clear()
        await self._entered.aclose()
        if self._executor is not None:
            await self._executor.end()

    async def idle(self) -> None:
        """Wait until no run is at work here, and none that this process knows is due."""
        since = 0
        while self.loaded or await self._has_due():
            since = await self.journal.changed(since, 0.2)

    @property
    def loaded(self) -> int:
        """The number of runs at work in this process."""
        return sum(len(version.at_work) for version in self._versions.values())

    # ------------------------------------------------------------------ schedules

    async def schedule(
        self,
        name: str,
        workflow: Workflow,
        input: RunInput = None,
        attributes: Mapping[str, Any] | None = None,
        *,
        cron: Sequence[str] = (),
        every_seconds: float | None = None,
        time_zone: str = "",
        may_overlap: bool = False,
        origin: Mapping[str, Any] | None = None,
    ) -> None:
        """Have Temporal start runs at times; the same name again changes the schedule.

        The input is kept in the journal, as a run that waits and never begins; each run has a copy
        of it, is named after the schedule and the time, and begins once.

        Args:
            cron: expressions as ``0 9 * * MON-FRI``; Temporal adds them to ``every_seconds``.
            time_zone: of the expressions, as ``Europe/Rome``; empty: UTC.
            may_overlap: start a run also while the one before is not over.
            origin: as of ``start``.
        Raises: EngineError (AX548): there is no time at which it would start a run.
        """
        if not cron and not every_seconds:
            message = f'the schedule "{name}" has no time at which it starts a run.'
            raise EngineError(message, id="AX548", hint="Pass cron, or every_seconds.")
        template = f"{name}-{secrets.token_hex(4)}"
        await self._keep_template(template, workflow, input, attributes, origin)
        digest = workflow.plan.graph.digest
        policy = ScheduleOverlapPolicy.ALLOW_ALL if may_overlap else ScheduleOverlapPolicy.SKIP
        every = [] if every_seconds is None else [timedelta(seconds=every_seconds)]
        id = self._id(name)
        schedule = Schedule(
            ScheduleActionStartWorkflow(
                NAME, args=["", digest, template], id=id, task_queue=self.queue
            ),
            spec=ScheduleSpec(
                cron_expressions=list(cron),
                intervals=[ScheduleIntervalSpec(each) for each in every],
                time_zone_name=time_zone or None,
            ),
            policy=SchedulePolicy(overlap=policy),
        )

        former = list[str]()

        def changed(known: ScheduleUpdateInput) -> ScheduleUpdate:
            action: Any = known.description.schedule.action
            former[:] = [str(decode_payload(action.args[2]))]
            return ScheduleUpdate(schedule)

        try:
            await self._connected.create_schedule(id, schedule)
        except ScheduleAlreadyRunningError:
            await self._connected.get_schedule_handle(id).update(changed)
        for each in former:
            await self._runs.cancel(each, "the schedule was changed")

    async def unschedule(self, name: str) -> None:
        """Delete a schedule; runs that it started are not changed."""
        handle = self._connected.get_schedule_handle(self._id(name))
        action: Any = (await handle.describe()).schedule.action
        await handle.delete()
        await self._runs.cancel(str(decode_payload(action.args[2])), "the schedule was deleted")

    async def trigger(self, name: str) -> None:
        """Start a run of a schedule now."""
        await self._connected.get_schedule_handle(self._id(name)).trigger()

    def _id(self, name: str) -> str:
        """Return the id of a schedule or of a run's coordinator."""
        return f"{self.queue}/{name}"

    async def _keep_template(
        self,
        template: str,
        workflow: Workflow,
        input: RunInput,
        attributes: Mapping[str, Any] | None,
        origin: Mapping[str, Any] | None,
    ) -> None:
        """Keep the input of a schedule, as a run that is paused and asks nothing."""
        async with LocalEngine(MemoryJournal(), loaded=0) as draft:
            await draft.start(workflow, input, attributes, run_id=template, origin=origin)
            (header,) = draft.journal.entries(template)
        writer = await asyncio.to_thread(self.journal.open, template)
        try:
            writer.append(header)
            writer.append(Entry("ended", data={"status": "paused", "questions": []}))
            if (stored := writer.kept()) is not None:
                await stored
        finally:
            writer.close()

    # ------------------------------------------------------------------ Temporal

    @property
    def _connected(self) -> Client:
        if self._client is None:
            message = "the engine is not connected."
            raise EngineError(message, id="AX540", hint="Enter it with `async with`.")
        return self._client

    def _handle(self, run_id: str) -> Any:
        return self._connected.get_workflow_handle(self._id(run_id))

    async def _signal_soon(self, run_id: str, digest: str = "") -> None:
        """Signal the coordinator of a due run; without a server, workers find the run later."""
        try:
            await self._signal(run_id, digest)
        except RPCError as error:
            self._signalled.pop(run_id, None)
            log.warning("the run %s is stored, and waits for Temporal: %s", run_id, error)

    async def _signal(self, run_id: str, digest: str = "", *, is_asked: bool = False) -> None:
        """Signal the coordinator of a run; begin one if it has none."""
        self._signalled[run_id] = time.monotonic()
        if not digest:
            try:
                await self._handle(run_id).signal(Coordinator.look, is_asked)
                return
            except RPCError as error:
                if error.status != RPCStatusCode.NOT_FOUND:
                    raise
            digest = (await self._header(run_id))["digest"]
        workflow = self._workflows.get(digest)
        name = "" if workflow is None else workflow.plan.graph.spec.id
        await self._connected.start_workflow(
            NAME,
            args=[run_id, digest, ""],
            id=self._id(run_id),
            task_queue=self.queue,
            start_signal="look",
            start_signal_args=[is_asked],
            memo={"run": run_id, "graph": name, "digest": digest},
            static_summary=name or None,
        )

    async def _header(self, run_id: str) -> Mapping[str, Any]:
        replay = ReplayIndex(await asyncio.to_thread(self.journal.entries, run_id))
        if replay.header is None:
            raise unknown_error(run_id)
        return replay.header.data

    def _listen(self, queue: str, **what: Any) -> None:
        """Listen to a task queue until the engine is closed."""
        runner = UnsandboxedWorkflowRunner()  # the coordinator is the only workflow
        worker = Worker(self._connected, task_queue=queue, workflow_runner=runner, **what)
        self._workers.append((worker, asyncio.create_task(_run(worker, queue))))

    async def _serve(self, workflow: Workflow) -> None:
        digest = workflow.plan.graph.digest
        async with self._opening:
            if digest in self._versions:
                return
            await self._entered.enter_async_context(workflow)
            version = self._versions[digest] = Version(self, workflow)
            self._workflows[digest] = workflow
            self._listen(
                queue_of(self.queue, digest),
                activities=[version.execute, version.begin, version.cancel],
                max_concurrent_activities=self.max_loaded,
            )

    def _found(self, header: Mapping[str, Any]) -> Workflow:
        found = self._workflows.get(header["digest"])
        if found is None and self._find is not None:
            # what it is allowed, the journal does not say
            allow = frozenset[str](self._options.get("allow", ()))
            found = self._find({**header, "allow": allow})
        if found is None:
            message = f'the engine has no workflow "{header.get("graph", "")}" in this version.'
            raise EngineError(message, id="AX542", hint="Pass it to the engine, or pass `find`.")
        return found

    async def _watch(self) -> None:
        since = 0
        while True:
            try:
                since = await self.journal.changed(since, self.recheck_seconds, is_work=True)
                await self._look()
            except Exception:  # what fails now may work the next time
                log.exception("looking for runs that are due failed")
                await asyncio.sleep(min(self.recheck_seconds, 1.0))

    async def _look(self) -> None:
        """Signal the coordinators of due runs that were not signalled lately."""
        now = time.monotonic()
        self._signalled = {
            run_id: when
            for run_id, when in self._signalled.items()
            if now - when < self.recheck_seconds
        }
        async with self._taken(_AT_A_TIME, {*self._refused, *self._signalled}) as due:
            pass  # given back: the activity takes them
        for run_id in due:
            header = await self._header(run_id)
            try:
                read = {**header, "origin": decode_value(header.get("origin", {}))}
                await self._serve(self._found(read))
            except Exception as error:  # noqa: BLE001  # ``find`` may raise anything
                log.info("run %s is left to other workers: %s", run_id, error)
                self._refused.add(run_id)
                continue
            await self._signal(run_id, header["digest"])

    async def _has_due(self) -> bool:
        async with self._taken(1, self._refused) as due:
            return bool(due)

    @asynccontextmanager
    async def _taken(self, most: int, without: Iterable[str]) -> AsyncGenerator[Sequence[str]]:
        """Hold due runs for a moment: no other process has them then."""
        journal, digests = self.journal, None if self._find else list(self._workflows)
        call, now = asyncio.to_thread, time.time()
        async with self._taking:  # what one look holds, another would not find
            take = partial(journal.take, digests=digests, without=list(without))
            lost = await call(take, most, now, lost=True)
            others = await call(take, most - len(lost), now) if len(lost) < most else ()
            due = [*lost, *others]
            try:
                yield due
            finally:
                for run_id in due:
                    await call(journal.release, run_id)

    def refuse(self, run_id: str, error: Exception) -> None:
        """Leave a run that cannot be executed here, until it is answered or resumed."""
        log.error("run %s was interrupted: %s", run_id, error)
        self._refused.add(run_id)

    async def execute(
        self, workflow: Workflow, run_id: str, is_asked: bool, nodes: NodesAtWork
    ) -> list[Any]:
        """Execute a run that is due: ``[status, due]``."""
        found = await asyncio.to_thread(self.journal.infos, [run_id])
        if not found:
            raise unknown_error(run_id)
        info = found[0]
        if info.due is None or info.due > time.time():
            return [info.status, info.due]
        more: dict[str, Any] = {"max_recoveries": None} if is_asked else {}
        within: AbstractContextManager[Any] = nullcontext()
        if self._around is not None or self._leave is not None:
            entries = [*await asyncio.to_thread(self.journal.entries, run_id)]
            origin = ReplayIndex(entries).origin
            if self._around is not None:
                within = self._around(origin, entries)
            if self._leave is not None:
                given = frozenset[str](self._options.get("allow", ()))
                more["allow"] = self._leave(origin, given)
        if self._folder_of is not None:
            more["workspace"] = self._folder_of(run_id)
        more["observers"] = [*self._options.get("observers", ()), nodes]
        with within:
            resumed = await resume_run(
                self.journal,
                workflow,
                run_id,
                recheck_seconds=self.recheck_seconds,
                patience_seconds=self.patience_seconds,
                **{**self._options, **more},
            )
        (info,) = await asyncio.to_thread(self.journal.infos, [run_id])
        return [resumed.status, info.due]  # it may have been answered when it paused

    async def end(self, run_id: str) -> None:
        """End a run whose coordinator was cancelled in Temporal."""
        await self._runs.cancel(run_id, "cancelled in Temporal")


async def _run(worker: Worker, queue: str) -> None:
    try:
        await worker.run()
    except Exception:  # the other queues, and the engine, work without it
        log.exception("listening to the task queue %s failed", queue)


async def _connected() -> Client:
    """Return a client as of Temporal's environment. Raises: EngineError (AX549)."""
    config = cast("dict[str, Any]", {**ClientConfig.load_client_connect_config()})
    address = config.setdefault("target_host", "localhost:7233")
    try:
        return await Client.connect(**config)
    except RuntimeError as error:
        message = f"there is no Temporal server at {address}: {error}."
        hint = "Set TEMPORAL_ADDRESS, or start one: temporal server start-dev."
        raise EngineError(message, id="AX549", hint=hint) from None


def decode_payload(given: Any) -> Any:
    """Return the value of an argument in a description by Temporal."""
    from temporalio.converter import DataConverter

    if not hasattr(given, "metadata"):
        return given
    return DataConverter.default.payload_converter.from_payload(given)


_: type[Engine] = TemporalEngine  # the type checker compares them
