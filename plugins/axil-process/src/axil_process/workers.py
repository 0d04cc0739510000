"""The parent's side: processes that are kept and used again, and one conversation with one of them
for each firing.

A worker belongs to the event loop it was started on. One that is in the middle of something cannot
be asked to stop, since its body may be deaf: it is killed with all that it started, and the next
firing gets another.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import sys
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from axil import Context, Out, Question, Schema
from axil.driver import Pause, decode_value, encode_value
from axil.plugin import LoopLocal, Task
from axil_process.config import ProcessConfig
from axil_process.errors import ProcessError, WorkerDied, ended, raised
from axil_process.jobs import Job, decode_outcome, encode_task
from axil_process.wire import LENGTH, packed
from axil_subprocess import KILL, Child

_BOOT = Path(__file__).with_name("boot.py")
_GRACE = 5.0  # seconds that an idle worker has to close what it opened


class Workers:
    """A number of processes with one body at a time each; others wait in order."""

    def __init__(self, config: ProcessConfig) -> None:
        self.config = config
        self._places = LoopLocal(lambda: _Place(config.workers))
        self.started = 0
        """Processes so far: for tests and measurements."""

    async def run(self, job: Job, task: Task, ctx: Context, schema: Schema) -> Out:
        """Return one firing of a body.

        Raises: WorkerDied, BodyRaised, ProcessError; JournalError: a value cannot be sent; Pause.
        """
        given = {"job": job, "task": encode_task(task, schema), "ctx": _context_data(ctx)}
        place = self._places.get()
        async with place.room:
            worker = await place.rested()
            if worker is None:
                self.started += 1
                worker = await _Worker.started(self.config)
            place.busy.add(worker)
            try:
                answer = await _Firing(worker, ctx).run(given)
                worker.firings += 1
            except BaseException:
                await worker.kill()
                raise
            finally:
                place.busy.discard(worker)
            most = self.config.firings_per_worker
            if most is not None and worker.firings >= most:
                await worker.close()
            else:
                place.idle.append(worker)
        if "failed" in answer:
            raise raised(answer["failed"])
        return decode_outcome(answer["end"], schema)

    async def close(self) -> None:
        """End the processes of this event loop; the next use starts others.

        What is at work is killed.
        """
        place = self._places.pop()
        if place is not None:
            await asyncio.gather(
                *(worker.kill() for worker in place.busy),
                *(worker.close() for worker in place.idle),
            )


class _Place:
    """The workers of one event loop."""

    def __init__(self, most: int) -> None:
        self.room = asyncio.Semaphore(most)
        self.idle: list[_Worker] = []
        self.busy: set[_Worker] = set()

    async def rested(self) -> _Worker | None:
        """Return one that has nothing to do.

        Those that died meanwhile are removed, with all that they started.
        """
        while self.idle:
            worker = self.idle.pop()
            if worker.is_alive:
                return worker
            await worker.kill()
        return None


def _context_data(ctx: Context) -> dict[str, Any]:
    return {
        "run_id": ctx.run_id,
        "thread": ctx.thread,
        "workspace": None if ctx.workspace is None else str(ctx.workspace),
    }


class _Worker:
    """One process and its pipes."""

    def __init__(self, child: Child) -> None:
        self.child, self.process, self.firings = child, child.process, 0

    @classmethod
    async def started(cls, config: ProcessConfig) -> _Worker:
        """Return a process that is ready. Raises: ProcessError (AX553)."""
        names = os.environ if config.environment is None else config.environment
        child = await Child.start(
            [sys.executable, str(_BOOT)],
            env={name: os.environ[name] for name in names if name in os.environ},
            stderr=None,
        )
        worker = cls(child)
        memory = config.memory_megabytes
        try:
            limit = None if memory is None else memory * 2**20
            worker.tell({"path": sys.path, "memory_bytes": limit, "grace_seconds": _GRACE})
            await worker.hear()
        except BaseException as error:
            await worker.kill()
            if isinstance(error, WorkerDied):
                message = (
                    f"a process for bodies could not be started: it ended {ended(error.code)}."
                )
                raise ProcessError(
                    "AX553", message, "Its messages are on standard error. Is there enough memory?"
                ) from None
            raise
        return worker

    @property
    def is_alive(self) -> bool:
        return self.child.is_alive

    def tell(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        if not self.process.stdin.is_closing():
            self.process.stdin.write(packed(message))

    async def hear(self) -> dict[str, Any]:
        """Return the next message of the worker. Raises: WorkerDied."""
        assert self.process.stdout is not None
        try:
            (length,) = LENGTH.unpack(await self.process.stdout.readexactly(LENGTH.size))
            return json.loads(await self.process.stdout.readexactly(length))
        except asyncio.IncompleteReadError:
            self.child.signal(KILL)  # it closed the pipe; whatever is left of it goes, too
            raise WorkerDied(await self.process.wait()) from None

    async def kill(self) -> None:
        """End it at once, with all that it started."""
        await self.child.kill()

    async def close(self) -> None:
        """Let it end: it has nothing to do."""
        assert self.process.stdin is not None
        # said, since a process that was forked from this one holds the pipe open, too
        self.tell({"close": True})
        self.process.stdin.close()
        try:
            await self.child.exited(_GRACE)
        finally:
            await self.kill()


class _Firing:
    """The conversation with a worker over one firing.

    What the body asks inside a step is asked of the run inside that step.
    """

    def __init__(self, worker: _Worker, ctx: Context) -> None:
        self.worker, self.ctx = worker, ctx
        self._inside: dict[int, contextvars.Context] = {0: contextvars.copy_context()}
        self._steps: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._paused: list[Pause] = []

    async def run(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the end of the body: ``end`` or ``failed``. Raises: Pause, WorkerDied."""
        self.worker.tell(given)
        try:
            while True:
                message = await self.worker.hear()
                if "stepped" not in message:
                    if "end" in message or "failed" in message:
                        return message
                    if "paused" in message:
                        # what was asked before has begun then, so the run knows of it
                        await asyncio.sleep(0)
                        raise Pause(
                            *(question for pause in self._paused for question in pause.questions)
                        )
                self._inside[message.get("in", 0)].run(self._take, message)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _take(self, message: Mapping[str, Any]) -> None:
        ctx = self.ctx
        if "emit" in message:
            ctx.emit(decode_value(message["emit"]))
        elif "note" in message:
            ctx.note(decode_value(message["note"]))
        elif "spend" in message:
            ctx.spend(**message["spend"])
        elif "stepped" in message:
            self._stepped(message)
        else:
            self._answer(message["ask"], message["n"], decode_value(message["given"]))

    def _answer(self, what: str, number: int, given: list[Any]) -> None:
        ctx = self.ctx
        if what == "now":
            self.worker.tell({"re": number, "value": ctx.now()})
        elif what == "key":
            self.worker.tell({"re": number, "value": ctx.key(*given)})
        elif what == "allows":
            self.worker.tell({"re": number, "value": ctx.allows(*given)})
        elif what == "sleep":
            self._later(number, ctx.sleep(*given))
        elif what == "ask":
            stated: dict[str, Any] = given[0]
            options = tuple(stated.pop("options"))
            self._later(number, ctx.ask(Question(**stated, options=options), name=given[1]))
        else:
            name, request, effects = given
            self._later(
                number, ctx.step(name, lambda: self._step(number), request=request, effects=effects)
            )

    def _later(self, number: int, doing: Coroutine[Any, Any, Any]) -> None:
        async def answering() -> None:
            try:
                answer = {"value": encode_value(await doing)}
            except Pause as pause:
                self._paused.append(pause)
                answer = {"paused": True}
            except Exception as error:  # noqa: BLE001  # raised in the body, as it would be here
                answer = {"error": str(error)}
            self.worker.tell({"re": number, **answer})

        task = asyncio.create_task(answering())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # it was never begun where the firing ended first
        task.add_done_callback(lambda _: doing.close())

    async def _step(self, number: int) -> Any:
        """Have the worker take a step."""
        self._inside[number] = contextvars.copy_context()
        self._steps[number] = asyncio.get_running_loop().create_future()
        self.worker.tell({"begin": number})
        return await self._steps[number]

    def _stepped(self, message: Mapping[str, Any]) -> None:
        step = self._steps[message["stepped"]]
        if "value" in message:
            step.set_result(decode_value(message["value"]))
        elif "failed" in message:
            step.set_exception(raised(message["failed"]))
        else:
            step.set_exception(self._paused[-1])
