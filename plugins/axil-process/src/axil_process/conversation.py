"""The run's side of a conversation with a body that is executed elsewhere, over any transport.

``docs/reference/conversations.md`` lists the messages; ``axil_process.host`` is the other side.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
from collections.abc import Coroutine, Mapping
from typing import Any, Final, Protocol, cast

from axil import ConfigError, Context, Out, Question, Schema
from axil.driver import STEPS_ELSEWHERE, Pause
from axil.plugin import Task
from axil_journals import decode_value, encode_value
from axil_process.errors import ProcessError, raised
from axil_process.jobs import Job, decode_outcome, encode_task

MALFORMED: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Errors that unexpected data raises where it is read."""


def malformed() -> ProcessError:
    return ProcessError(
        "AX555",
        "the process that ran the body sent something that is no message of a body.",
        "The body wrote to the pipe of its process, or means harm.",
    )


def mapping(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise malformed()
    return cast("dict[str, Any]", given)


def firing_of(job: Job, task: Task, ctx: Context, schema: Schema) -> dict[str, Any]:
    """Return the first message of a firing, with the fields of the state that its node sees.

    Raises: JournalError (AX501): a payload or a value of the state is not plain data.
    """
    context = {
        "run_id": ctx.run_id,
        "thread": ctx.thread,
        "workspace": None if ctx.workspace is None else str(ctx.workspace),
    }
    return {
        "job": job["digest"],
        "task": encode_task(task, schema, job.get("fields")),
        "ctx": context,
    }


def outcome_of(answer: Mapping[str, object], schema: Schema) -> Out:
    """Return the outcome in the last message of a firing.

    Raises: BodyRaised: the body raised; ProcessError (AX555): the message is malformed.
    """
    if "failed" in answer:
        raise raised(mapping(answer["failed"]))
    try:
        return decode_outcome(mapping(answer["end"]), schema)
    except MALFORMED as error:
        raise malformed() from error


class Link(Protocol):
    """The way to a body elsewhere, and back, while one firing lasts."""

    def send(self, message: Mapping[str, Any], /) -> None:
        """Send a message."""
        ...

    async def receive(self) -> Mapping[str, Any]:
        """Return the next message of the body."""
        ...


class Conversation:
    """The conversation with a body elsewhere over one firing.

    What the body asks inside a step is asked of the run inside that step.
    """

    def __init__(self, link: Link, ctx: Context, *, is_trusted: bool = True) -> None:
        """``is_trusted``: a malformed message is an error of ours, and not of the body."""
        self.link, self.ctx, self.is_trusted = link, ctx, is_trusted
        self._inside: dict[int, contextvars.Context] = {0: contextvars.copy_context()}
        self._steps: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._paused: list[Pause] = []

    async def run(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the end of the body: ``end`` or ``failed``.

        Raises: Pause; ProcessError (AX555); what the link raises.
        """
        self.link.send(given)
        try:
            while True:
                message = await self.link.receive()
                if "stepped" not in message:
                    if "end" in message or "failed" in message:
                        return message
                    if "paused" in message:
                        # what was asked before has begun then, so the run knows of it
                        await asyncio.sleep(0)
                        raise Pause(*(each for pause in self._paused for each in pause.questions))
                self._inside[message.get("in", 0)].run(self._take, message)
        except MALFORMED as error:
            if self.is_trusted or isinstance(error, ConfigError):
                raise
            raise malformed() from error
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
            spent = mapping(message["spend"])
            if not self.is_trusted and not all(map(_is_amount, spent.values())):
                raise malformed()
            ctx.spend(**spent)
        elif "stepped" in message:
            self._stepped(message)
        else:
            self._answer(message["ask"], message["n"], decode_value(message["given"]))

    def _answer(self, what: str, number: int, given: list[Any]) -> None:
        ctx = self.ctx
        if what == "now":
            self.link.send({"re": number, "value": ctx.now()})
        elif what == "key":
            self.link.send({"re": number, "value": ctx.key(*given)})
        elif what == "allows":
            self.link.send({"re": number, "value": ctx.allows(*given)})
        elif what == "sleep":
            self._later(number, ctx.sleep(*given))
        elif what == "ask":
            self._later(number, ctx.ask(Question(**given[0]), name=given[1]))
        else:
            name, request, effects, kind = given
            if (check := STEPS_ELSEWHERE.get()) is not None:
                check(ctx.activation.path, kind)
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
            self.link.send({"re": number, **answer})

        task = asyncio.create_task(answering())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # it was never begun where the firing ended first
        task.add_done_callback(lambda _: doing.close())

    async def _step(self, number: int) -> Any:
        """Have the worker take a step."""
        self._inside[number] = contextvars.copy_context()
        self._steps[number] = asyncio.get_running_loop().create_future()
        self.link.send({"begin": number})
        return await self._steps[number]

    def _stepped(self, message: Mapping[str, Any]) -> None:
        step = self._steps.pop(message["stepped"])
        if "value" in message:
            step.set_result(decode_value(message["value"]))
        elif "failed" in message:
            step.set_exception(raised(message["failed"]))
        else:
            step.set_exception(self._paused[-1])


def _is_amount(given: Any) -> bool:
    return type(given) in (int, float) and math.isfinite(given) and given >= 0
