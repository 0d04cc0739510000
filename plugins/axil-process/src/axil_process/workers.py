"""Processes that are kept and used again, and one conversation with one of them for each firing.

A worker belongs to the event loop it was started on. A busy one is not asked to stop, since its
body need not obey: it is killed with all that it started, and the next firing gets another.

A worker in a sandbox is not trusted. It serves one workspace only; what it sends is bounded, and
refused where it is no message; what it prints is kept aside.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from axil import Context, Out, Schema
from axil.plugin import LoopLocal, Task
from axil_process.config import ProcessConfig
from axil_process.conversation import Conversation, firing_of, malformed, mapping, outcome_of
from axil_process.errors import ProcessError, WorkerDied, ended
from axil_process.jobs import Job
from axil_process.programs.child import KILL, Child
from axil_process.programs.sandbox import Launch, Place, sandboxed, withheld
from axil_process.wire import LENGTH, packed

_BOOT = Path(__file__).with_name("boot.py")
_BASE: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": "/tmp"}
"""Variables of the environment that a body in a sandbox sees without further settings."""
_REPORT: Final = "axil-process: stopped: "
"""The beginning of the line in which a sandbox reports why it ended a process."""
_PRINTED: Final = 4096
"""The number of the last bytes that are kept of the output of a process in a sandbox."""
_log = logging.getLogger("axil.sandbox")
_GRACE = 5.0  # seconds that an idle worker has to close what it opened


class Workers:
    """A number of processes with one body at a time each; others wait in order."""

    def __init__(self, config: ProcessConfig) -> None:
        self.config = config
        self._without = withheld()
        self._places = LoopLocal(lambda: _Pool(config.workers))
        self.started = 0
        """Processes so far: for tests and measurements."""

    async def run(self, job: Job, task: Task, ctx: Context, schema: Schema) -> Out:
        """Return one firing of a body.

        Raises: WorkerDied, BodyRaised, ProcessError; JournalError: a value cannot be sent; Pause.
        """
        given = firing_of(job, task, ctx, schema)
        place = self._places.get()
        folder = ctx.workspace and Path(ctx.workspace) if self.config.sandbox != "off" else None
        seconds = self.config.timeout_seconds
        async with place.room:
            time = asyncio.timeout(seconds)
            try:
                async with time:
                    worker = await place.take_idle(folder)
                    if worker is None:
                        self.started += 1
                        names = self._without
                        without = [name for name in names if not ctx.allows(f"program:{name}")]
                        worker = await _Worker.started(self.config, folder, without)
                    answer = await self._answer(place, worker, ctx, job, given)
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
        return outcome_of(answer, schema)

    async def _answer(
        self, place: _Pool, worker: _Worker, ctx: Context, job: Job, given: dict[str, Any]
    ) -> Mapping[str, Any]:
        """Return a worker's answer to a firing; kill it where it is interrupted."""
        if given["job"] not in worker.jobs:
            worker.jobs.add(given["job"])
            given["define"] = job
        place.busy.add(worker)
        worker.output_bytes = self.config.output_bytes
        try:
            conversation = Conversation(worker, ctx, is_trusted=not worker.is_sandboxed)
            answer = await conversation.run(given)
            worker.firings += 1
            return answer
        except BaseException:
            await worker.kill()
            raise
        finally:
            place.busy.discard(worker)

    async def close(self) -> None:
        """End the processes of this event loop, busy ones at once; the next use starts others."""
        place = self._places.pop()
        if place is not None:
            await asyncio.gather(
                *(worker.kill() for worker in place.busy),
                *(worker.close() for worker in place.idle),
            )


class _Pool:
    """The workers of one event loop."""

    def __init__(self, most: int) -> None:
        self.room = asyncio.Semaphore(most)
        self.idle: list[_Worker] = []
        self.busy: set[_Worker] = set()

    async def take_idle(self, folder: Path | None) -> _Worker | None:
        """Return an idle one for ``folder``; kill those that died or are for another folder."""
        while self.idle:
            worker = self.idle.pop()
            if worker.is_alive and worker.folder == folder:
                return worker
            await worker.kill()
        return None


class _Worker:
    """One process and its pipes."""

    def __init__(self, child: Child, folder: Path | None, output_bytes: int | None) -> None:
        self.child, self.process, self.firings = child, child.process, 0
        self.folder = folder
        """The workspace that it sees, in a sandbox."""
        self.jobs: set[str] = set()
        """Digests of the jobs that it was sent."""
        self.is_sandboxed = child.process.stderr is not None
        self.output_bytes = output_bytes
        """The bytes that it may still send in this firing; None: no limit."""
        self._printed = _Printed(child.process.stderr)

    @classmethod
    async def started(
        cls, config: ProcessConfig, folder: Path | None, without: Sequence[str] = ()
    ) -> _Worker:
        """Return a process that is ready. ``without``: sandboxes that it is not started in.

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
            launch = await sandboxed(command, place, config.sandbox, without=without)
        is_sandboxed = launch.command != command
        child = await Child.start(
            launch.command,
            env=launch.variables,
            stderr=asyncio.subprocess.PIPE if is_sandboxed else None,
            ends=launch.ends,
        )
        worker = cls(child, folder, None)
        try:
            worker.send({"path": path, "memory_bytes": limit, "grace_seconds": _GRACE})
            await worker.receive()
        except BaseException as error:
            await worker.kill()
            if isinstance(error, WorkerDied):
                raise worker._start_error(error) from None
            raise
        return worker

    def _start_error(self, error: WorkerDied) -> ProcessError:
        message = f"a process for bodies could not be started: it ended {ended(error.code or 0)}."
        hint = "Its messages are on standard error. Is there enough memory?"
        if self.is_sandboxed:
            last = self._printed.lines()[-1:]
            hint = f"It printed {last[0]!r:.300}." if last else "Is there enough memory?"
        return ProcessError("AX553", message, hint)

    @property
    def is_alive(self) -> bool:
        return self.child.is_alive

    def send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        if not self.process.stdin.is_closing():
            self.process.stdin.write(packed(message))

    async def receive(self) -> dict[str, Any]:
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
            return mapping(json.loads(await self.process.stdout.readexactly(length)))
        except asyncio.IncompleteReadError:
            self.child.signal(KILL)  # it closed the pipe; end what is left
            code = await self.process.wait()
            await self._printed.reading
            if self.is_sandboxed and 128 < code <= 192:
                code = 128 - code  # as a sandbox reports a signal
            raise WorkerDied(code, self._printed.reported()) from None
        except (ValueError, RecursionError) as error:
            raise malformed() from error

    async def kill(self) -> None:
        """End it at once, with all that it started."""
        try:
            await self.child.kill()
        finally:
            self._printed.log()

    async def close(self) -> None:
        """Let it end: it is idle."""
        assert self.process.stdin is not None
        # not only the end of the pipe: a fork of the worker may hold it open
        self.send({"close": True})
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
