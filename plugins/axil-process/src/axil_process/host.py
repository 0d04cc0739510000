"""The body's side of a conversation: takes jobs and firings, runs bodies one at a time, and asks
the run for what only the run knows.

``docs/reference/conversations.md`` lists the messages. The transport is not here: a ``BodyHost``
is given each message that arrives, in any thread, and a function that sends one.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn, cast

from axil import AxilError, Context, Out, Question
from axil.plugin import BodyError, Effects, Plan, StepKind, Task
from axil_journals import decode_value, encode_value
from axil_process.errors import ProcessError
from axil_process.jobs import decode_task, encode_outcome, plan_of_job

_inside: ContextVar[int] = ContextVar("axil_process_step", default=0)
# the fields of a question that a body gives; the run sets the rest
_QUESTION = ("text", "kind", "options", "default", "within_seconds", "data")


class Paused(BaseException):
    """The run waits for a person, or for a time: the body ends here, and runs again later."""


class Request:
    """A request of a body to its run."""

    __slots__ = ("answer", "begins", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.begins: Future[None] = Future()
        """Of a step: done when it is to be taken."""
        self.answer: Future[Any] = Future()


class BodyHost:
    """Executes the firings of one conversation after the other, for any transport."""

    def __init__(self, write: Callable[[Mapping[str, Any]], None]) -> None:
        """``write``: sends a message to the run; it is called by one thread at a time."""
        self._write = write
        self._waiting: dict[int, Request] = {}
        self._count = self._firing = 0
        self._lock = threading.Lock()
        self._plans: dict[str, Plan] = {}

    def execute(self, given: Mapping[str, object], runner: asyncio.Runner) -> dict[str, Any]:
        """Return the last message of a firing: ``end``, ``failed`` or ``paused``."""
        answer = self._done(given, runner)
        with self._lock:
            # what its body left running is ignored from here on
            self._firing += 1
            abandoned, self._waiting = self._waiting, {}
        for request in abandoned.values():
            request.answer.cancel()
        return answer

    def receive(self, message: Mapping[str, Any]) -> None:
        """Take a message of the run to the body that is at work: ``begin`` or ``re``."""
        if "begin" in message:
            if (step := self._waiting.get(message["begin"])) is not None:
                step.begins.set_result(None)
        elif (asked := self._waiting.pop(message["re"], None)) is not None:
            self._answered(asked.answer, message)

    def close(self, runner: asyncio.Runner) -> None:
        """Close the components of all jobs."""
        for plan in self._plans.values():
            for component in reversed(plan.graph.components):
                if hasattr(component, "close"):
                    runner.run(component.close())

    def forked(self) -> None:
        """Note that this process was forked: a lock may be held by a thread that is not here."""
        self._lock = threading.Lock()

    def _answered(self, answer: Future[Any], message: Mapping[str, Any]) -> None:
        if not answer.set_running_or_notify_cancel():  # it is no longer awaited
            return
        if "value" in message:
            answer.set_result(decode_value(message["value"]))
        else:
            error = ProcessError("AX551", str(message.get("error")))
            answer.set_exception(Paused() if message.get("paused") else error)

    def send(self, message: Mapping[str, object], firing: int | None = None) -> None:
        """Send a message to the run; drop one of a firing that is over."""
        with self._lock:
            if firing is None or firing == self._firing:
                self._write(message)

    def ask(self, firing: int, what: str, *given: object) -> Request:
        """Ask the run something. Raises: ProcessError (AX552): the firing is over."""
        plain = encode_value(list(given))
        with self._lock:
            if firing != self._firing:
                raise ProcessError(
                    "AX552",
                    f"ctx.{what} is not available any more: the body has ended.",
                    "Await everything that the body starts.",
                )
            self._count += 1
            asked = self._waiting[self._count] = Request(self._count)
            self._write({"ask": what, "n": asked.number, "in": _inside.get(), "given": plain})
        return asked

    # ------------------------------------------------------------------ one firing

    def _done(self, given: Mapping[str, Any], runner: asyncio.Runner) -> dict[str, Any]:
        try:
            plan = self._plan(given, runner)
            task = decode_task(given["task"], plan)
            ctx = RemoteContext(Firing(self, self._firing), given["ctx"], task)
            out = plan.graph.vertices[0].body(task, ctx)
            if inspect.isawaitable(out):
                out = runner.run(_awaited(out))
            if type(out) is not Out:
                raise BodyError(f"the body gave {type(out).__name__}; a body gives an Out.")
            return {"end": encode_outcome(out, plan.graph.schema)}
        except Paused:
            return {"paused": True}
        except BaseException as error:  # noqa: BLE001
            # also SystemExit: this process continues
            paused = [each for each in _all(error) if isinstance(each, Paused)]
            if paused and len(paused) == len(_all(error)):
                return {"paused": True}
            return {"failed": error_data(error)}

    def _plan(self, given: Mapping[str, Any], runner: asyncio.Runner) -> Plan:
        """Return the plan of a firing's job, which is sent with its first firing only."""
        digest: str = given["job"]
        if digest not in self._plans:
            plan = plan_of_job(given["define"])
            for component in plan.graph.components:
                if hasattr(component, "provision"):
                    runner.run(component.provision())
            self._plans[digest] = plan
        return self._plans[digest]


def _all(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [
            each
            for part in cast("BaseExceptionGroup[BaseException]", error).exceptions
            for each in _all(part)
        ]
    return [error]


async def _awaited(doing: Awaitable[Any]) -> Any:
    return await doing


def error_data(error: BaseException) -> dict[str, Any]:
    """Return an error as plain data; of one without readable text, its kind."""
    kind = f"{type(error).__module__}.{type(error).__qualname__}"
    try:
        message = str(error)
    except Exception:  # noqa: BLE001  # an error whose text raises is still an error
        message = ""
    lines = traceback.format_exception(error) if message else [f"{kind}\n"]
    transient = bool(getattr(error, "transient", False))
    return {"kind": kind, "message": message, "traceback": "".join(lines), "transient": transient}


class Firing:
    """The messages of one body to the run, until the body has ended."""

    __slots__ = ("host", "number")

    def __init__(self, host: BodyHost, number: int) -> None:
        self.host, self.number = host, number

    def send(self, message: Mapping[str, Any]) -> None:
        """See ``BodyHost.send``."""
        self.host.send(message, self.number)

    def ask(self, what: str, *given: Any) -> Request:
        """See ``BodyHost.ask``."""
        return self.host.ask(self.number, what, *given)


class RemoteContext(Context):
    """The context of a body whose run is in another process."""

    __slots__ = ("_firing", "_given")

    def __init__(self, firing: Firing, given: Mapping[str, Any], task: Task) -> None:
        super().__init__(cast("Any", None), task, task.activation)
        self._firing, self._given = firing, given

    @property
    def run_id(self) -> str:
        return str(self._given["run_id"])

    @property
    def thread(self) -> str:
        return str(self._given["thread"])

    @property
    def workspace(self) -> Path | None:
        path = self._given["workspace"]
        return None if path is None else Path(path)

    def allows(self, what: str, /) -> bool:
        return bool(self._firing.ask("allows", what).answer.result())

    def emit(self, chunk: Any, /) -> None:
        self._shown("emit", chunk)

    def note(self, chunk: Any, /) -> None:
        self._shown("note", chunk)

    def _shown(self, how: str, chunk: Any) -> None:
        try:
            plain = encode_value(chunk)
        except AxilError:
            plain = repr(chunk)
        self._firing.send({how: plain, "in": _inside.get()})

    def now(self) -> float:
        return float(self._firing.ask("now").answer.result())

    def key(self, name: str = "", /) -> str:
        return str(self._firing.ask("key", name).answer.result())

    def spend(self, **amounts: float) -> None:
        self._firing.send({"spend": amounts, "in": _inside.get()})

    async def sleep(self, seconds: float, /) -> None:
        await asyncio.wrap_future(self._firing.ask("sleep", seconds).answer)

    async def ask(self, question: Question | str, /, *, name: str = "") -> Any:
        asked = Question(text=question) if isinstance(question, str) else question
        fields = {field: getattr(asked, field) for field in _QUESTION}
        return await asyncio.wrap_future(self._firing.ask("ask", fields, name).answer)

    async def step(
        self,
        name: str,
        call: Callable[[], Awaitable[Any]],
        /,
        *,
        request: Any = None,
        effects: Effects = "idempotent",
        kind: StepKind = "",
    ) -> Any:
        plain = request() if callable(request) else request
        asked = self._firing.ask("step", name, plain, effects, kind)
        begins, ends = asyncio.wrap_future(asked.begins), asyncio.wrap_future(asked.answer)
        await asyncio.wait({begins, ends}, return_when=asyncio.FIRST_COMPLETED)
        if not begins.done():  # it is on record, or may not be done
            return await ends
        token = _inside.set(asked.number)
        try:
            value = await call()
            plain = encode_value(value)
        except BaseException as error:
            how = {"paused": True} if isinstance(error, Paused) else {"failed": error_data(error)}
            self._firing.send({"stepped": asked.number, **how})
            ends.cancel()
            raise
        finally:
            _inside.reset(token)
        self._firing.send({"stepped": asked.number, "value": plain})
        await ends  # it is recorded
        return value

    # ------------------------------------------------------------------ not available here

    def _refuse(self, what: str) -> NoReturn:
        hint = "Run the node in the run's own process, or do not use it."
        raise ProcessError("AX552", f"ctx.{what} is not available in a process of its own.", hint)

    @property
    def deps(self) -> Any:
        self._refuse("deps")

    @property
    def clock(self) -> Any:
        self._refuse("clock")

    @property
    def ledger(self) -> Any:
        self._refuse("ledger")

    def part(self, name: str = "", /) -> Context:
        self._refuse("part")

    async def execute(self, body: Any, /, task: Task | None = None) -> Out:
        self._refuse("execute")

    async def run(
        self,
        plan: Any,
        inputs: Any = None,
        /,
        *,
        name: str | int | Sequence[str | int],
        state: Any = None,
    ) -> Any:
        self._refuse("run")

    async def reserve(self, **_: Any) -> Any:
        self._refuse("reserve")
