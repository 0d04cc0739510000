"""The parent's side: processes that are kept and used again, and one conversation with one of them
for each firing.

A worker belongs to the event loop it was started on. One that is in the middle of something cannot
be asked to stop, since its body may be deaf: it is killed with all that it started, and the next
firing gets another.

A worker in a sandbox is not trusted. It sees the workspace of one run, and serves no other; what it
sends is bounded, and refused where it is no message; what it prints is kept aside.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import math
import os
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from axil import Context, Out, Question, Schema
from axil.driver import Pause, decode_value, encode_value
from axil.plugin import LoopLocal, Task
from axil_process.config import ProcessConfig
from axil_process.errors import ProcessError, WorkerDied, ended, raised
from axil_process.jobs import Job, decode_outcome, encode_task
from axil_process.wire import LENGTH, packed
from axil_subprocess import KILL, Child, Launch, Place, sandboxed

_BOOT = Path(__file__).with_name("boot.py")
_BASE: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": "/tmp"}
"""Variables of the environment that a body in a sandbox sees without further settings."""
_REPORT: Final = "axil-sandbox: stopped: "
"""The beginning of the line in which a sandbox says why it ended a process."""
_PRINTED: Final = 4096
"""The number of the last bytes that are kept of the output of a process in a sandbox."""
_log = logging.getLogger("axil.sandbox")
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
        folder = ctx.workspace and Path(ctx.workspace) if self.config.sandbox != "off" else None
        seconds = self.config.timeout_seconds
        async with place.room:
            time = asyncio.timeout(seconds)
            try:
                async with time:
                    worker = await place.rested(folder)
                    if worker is None:
                        self.started += 1
                        worker = await _Worker.started(self.config, folder)
                    answer = await self._answer(place, worker, ctx, given)
            except TimeoutError:
                if not time.expired():
                    raise
                message = f"the body took longer than {seconds:g} seconds; its process was killed."
                raise ProcessError("AX554", message, "Set timeout_seconds higher.") from None
            most = self.config.firings_per_worker
            if most is not None and worker.firings >= most:
                await worker.close()
            else:
                place.idle.append(worker)
        if "failed" in answer:
            raise raised(_mapping(answer["failed"]))
        try:
            return decode_outcome(_mapping(answer["end"]), schema)
        except _MALFORMED as error:
            raise _no_message() from error

    async def _answer(
        self, place: _Place, worker: _Worker, ctx: Context, given: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return what a worker answers to a firing; one that is interrupted is killed."""
        place.busy.add(worker)
        try:
            answer = await _Firing(worker, ctx, self.config.output_bytes).run(given)
            worker.firings += 1
            return answer
        except BaseException:
            await worker.kill()
            raise
        finally:
            place.busy.discard(worker)

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

    async def rested(self, folder: Path | None) -> _Worker | None:
        """Return one that has nothing to do, and is for ``folder``.

        Those that died meanwhile, or are for another folder, are removed, with all that they
        started.
        """
        while self.idle:
            worker = self.idle.pop()
            if worker.is_alive and worker.folder == folder:
                return worker
            await worker.kill()
        return None


_MALFORMED: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Errors that are raised where the data read is not the expected data."""


def _no_message() -> ProcessError:
    return ProcessError(
        "AX555",
        "the process that ran the body sent something that is no message of a body.",
        "The body wrote to the pipe of its process, or means harm.",
    )


def _mapping(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise _no_message()
    return cast("dict[str, Any]", given)


def _context_data(ctx: Context) -> dict[str, Any]:
    return {
        "run_id": ctx.run_id,
        "thread": ctx.thread,
        "workspace": None if ctx.workspace is None else str(ctx.workspace),
    }


class _Worker:
    """One process and its pipes."""

    def __init__(self, child: Child, folder: Path | None, output_bytes: int | None) -> None:
        self.child, self.process, self.firings = child, child.process, 0
        self.folder = folder
        """The workspace that it sees, in a sandbox."""
        self.is_sandboxed = child.process.stderr is not None
        self.output_bytes = output_bytes
        """The bytes that it may still send in this firing; None: no limit."""
        self._printed = _Printed(child.process.stderr)

    @classmethod
    async def started(cls, config: ProcessConfig, folder: Path | None) -> _Worker:
        """Return a process that is ready.

        Raises: ProcessError (AX553); ComponentBlocked (AX621): there is no sandbox.
        """
        names = os.environ if config.environment is None else config.environment
        variables = {name: os.environ[name] for name in names if name in os.environ}
        memory = config.memory_megabytes
        limit = None if memory is None else memory * 2**20
        command = [sys.executable, str(_BOOT)]
        path = sys.path
        launch = Launch(command=command, variables=variables)
        if config.sandbox != "off":
            path = await asyncio.to_thread(_shown)
            place = await asyncio.to_thread(_place, config, folder, path, variables, limit)
            launch = await sandboxed(command, place, config.sandbox)
        is_sandboxed = launch.command != command
        child = await Child.start(
            launch.command,
            env=launch.variables,
            stderr=asyncio.subprocess.PIPE if is_sandboxed else None,
            ends=launch.ends,
        )
        worker = cls(child, folder, None)
        try:
            worker.tell({"path": path, "memory_bytes": limit, "grace_seconds": _GRACE})
            await worker.hear()
        except BaseException as error:
            await worker.kill()
            if isinstance(error, WorkerDied):
                raise worker._unstarted(error) from None
            raise
        return worker

    def _unstarted(self, error: WorkerDied) -> ProcessError:
        message = f"a process for bodies could not be started: it ended {ended(error.code)}."
        hint = "Its messages are on standard error. Is there enough memory?"
        if self.is_sandboxed:
            last = self._printed.lines()[-1:]
            hint = f"It printed {last[0]!r:.300}." if last else "Is there enough memory?"
        return ProcessError("AX553", message, hint)

    @property
    def is_alive(self) -> bool:
        return self.child.is_alive

    def tell(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        if not self.process.stdin.is_closing():
            self.process.stdin.write(packed(message))

    async def hear(self) -> dict[str, Any]:
        """Return the next message of the worker.

        Raises: WorkerDied; ProcessError: AX555 it is no message, AX556 it is too long.
        """
        assert self.process.stdout is not None
        try:
            (length,) = LENGTH.unpack(await self.process.stdout.readexactly(LENGTH.size))
            if self.output_bytes is not None:
                self.output_bytes -= length
                if self.output_bytes < 0:
                    message = "the body sent more to its run than output_bytes allows."
                    raise ProcessError("AX556", message, "Set output_bytes higher, or send less.")
            return _mapping(json.loads(await self.process.stdout.readexactly(length)))
        except asyncio.IncompleteReadError:
            self.child.signal(KILL)  # it closed the pipe; whatever is left of it goes, too
            code = await self.process.wait()
            await self._printed.reading
            if self.is_sandboxed and 128 < code <= 192:
                code = 128 - code  # as a sandbox says which signal ended a program
            raise WorkerDied(code, self._printed.reported()) from None
        except (ValueError, RecursionError) as error:
            raise _no_message() from error

    async def kill(self) -> None:
        """End it at once, with all that it started."""
        try:
            await self.child.kill()
        finally:
            self._printed.log()

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


class _Printed:
    """The last of what a process in a sandbox printed; nothing where there is no pipe."""

    def __init__(self, stream: asyncio.StreamReader | None) -> None:
        self._kept = b""
        self.reading = asyncio.ensure_future(self._read(stream))

    async def _read(self, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (chunk := await stream.read(1 << 16)):
            self._kept = (self._kept + chunk)[-_PRINTED:]

    def lines(self) -> list[str]:
        """Return the lines, without what a terminal would obey."""
        text = self._kept.decode("utf-8", "replace")
        return ["".join(filter(str.isprintable, line)) for line in text.splitlines()]

    def reported(self) -> str:
        """Return why the sandbox ended the process, if it did."""
        last = self.lines()[-1:]
        is_report = bool(last) and last[0].startswith(_REPORT)
        return last[0].removeprefix(_REPORT).rstrip(".") if is_report else ""

    def log(self) -> None:
        """Write what was printed to the log ``axil.sandbox``, once."""
        self.reading.cancel()
        for line in self.lines():
            _log.info("a body printed: %s", line)
        self._kept = b""


def _is_amount(given: Any) -> bool:
    return type(given) in (int, float) and math.isfinite(given) and given >= 0


def _shown() -> list[str]:
    """Return the import path that a process in a sandbox has: never the user's home as a whole."""
    home = os.path.realpath(Path.home())
    path = [os.path.realpath(each or os.getcwd()) for each in sys.path]
    return [each for each in dict.fromkeys(path) if os.path.commonpath([home, each]) != each]


def _place(
    config: ProcessConfig,
    folder: Path | None,
    path: Sequence[str],
    variables: Mapping[str, str],
    memory_bytes: int | None,
) -> Place:
    """Return what a process for bodies in a sandbox may use."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    home = {"HOME": _BASE["TMPDIR"] if folder is None else str(folder)}
    return Place(
        folder=folder,
        reads=[*map(Path, path), _BOOT.parent, *map(Path, config.reads)],
        variables={**_BASE, **home, **variables},
        memory_bytes=memory_bytes,
    )


class _Firing:
    """The conversation with a worker over one firing.

    What the body asks inside a step is asked of the run inside that step.
    """

    def __init__(self, worker: _Worker, ctx: Context, output_bytes: int | None) -> None:
        self.worker, self.ctx, self.output_bytes = worker, ctx, output_bytes
        self._inside: dict[int, contextvars.Context] = {0: contextvars.copy_context()}
        self._steps: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._paused: list[Pause] = []

    async def run(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the end of the body: ``end`` or ``failed``. Raises: Pause, WorkerDied."""
        self.worker.tell(given)
        self.worker.output_bytes = self.output_bytes
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
        except _MALFORMED as error:
            if not self.worker.is_sandboxed:
                raise
            raise _no_message() from error
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
            spent = _mapping(message["spend"])
            if self.worker.is_sandboxed and not all(map(_is_amount, spent.values())):
                raise _no_message()
            ctx.spend(**spent)
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
            name, request, effects, kind = given
            step = ctx.step(
                name, lambda: self._step(number), request=request, effects=effects, kind=kind
            )
            self._later(number, step)

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
