"""What bodies ask of a run, answered: clock, sleep, questions, steps, chunks. Everything read here is recorded."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

from axil.context import Channel, Clock, Question, Returned
from axil.hooks import Observers
from axil.journal import Entry, Replay, encode
from axil.plan import Plan
from axil.result import CycleTally, Meter, Options
from axil.state import State
from axil.tokens import Activation, Task
from axil.values import MISSING


class Pause(BaseException):
    """Raised inside a body that asked and got no answer; not an ``Exception``, so that bodies do not swallow it."""

    def __init__(self, *questions: Question) -> None:
        super().__init__(*questions)
        self.questions = questions


def paused_by(error: BaseException) -> Pause | None:
    """The pause that an error is, or that a group of errors comes to; None: something else is wrong."""
    if isinstance(error, Pause):
        return error
    if isinstance(error, BaseExceptionGroup):
        parts = [paused_by(part) for part in cast("BaseExceptionGroup[BaseException]", error).exceptions]
        if all(part is not None for part in parts):
            return Pause(*(question for part in parts if part is not None for question in part.questions))
    return None


class RealClock:
    """The machine's clock."""

    def now(self) -> float:
        """Seconds, never going back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class Owner(Protocol):
    """The part of a run that a desk needs."""

    @property
    def meter(self) -> Meter: ...
    @property
    def cycles(self) -> Mapping[str, CycleTally]: ...
    async def enter(self, task: Task, plan: Plan, inputs: Any, name: tuple[str | int, ...], state: State | None) -> Returned: ...
    def spend(self, tokens: Mapping[str, int], cost: float) -> None: ...


@dataclass(slots=True)
class Desk:
    """One run's answers to its bodies; the ``Host`` of their contexts."""

    run_id: str
    options: Options
    observers: Observers
    replay: Replay
    clock: Clock
    owner: Owner
    started: float = 0.0
    loop: asyncio.AbstractEventLoop | None = None
    home: int = 0
    """The thread of the loop: what a body in another thread says is brought there, so observers are called in one thread."""
    open: dict[Activation, list[Question]] = field(default_factory=dict[Activation, list[Question]])
    """Questions without an answer, by who asked."""
    is_closed: bool = False
    """The run has ended: what is still said by threads that could not be stopped is heard by nobody."""
    unkept: list[Awaitable[None]] = field(default_factory=list[Awaitable[None]])
    """Clock reads on their way into the journal."""

    @property
    def workspace(self) -> Path | None:
        return self.options.workspace

    @property
    def deps(self) -> Any:
        return self.options.deps

    @property
    def elapsed(self) -> float:
        """Seconds the run has taken, over all its parts."""
        return self.replay.elapsed + self.clock.now() - self.started

    async def keep(self, entry: Entry) -> None:
        """Journal ``entry``, if there is a journal, and wait until it and all before it are kept."""
        if self.options.journal is not None:
            while self.unkept:
                await self.unkept.pop()
            entry = self.dated(entry)
            waiting = self.options.journal.append(self.run_id, entry)
            if waiting is not None:
                await waiting

    def dated(self, entry: Entry) -> Entry:
        """``entry`` with what a resumed run has to count on from: the time that has passed, and what was used."""
        usage = self.owner.meter.usage
        cycles = {path: [tally.entries, tally.rounds, dict(tally.ends)] for path, tally in self.owner.cycles.items()}
        used = {"firings": usage.firings, "tokens": dict(usage.tokens), "cost": usage.cost, "cycles": cycles}
        return replace(entry, data={**entry.data, "at": self.elapsed, "used": used})

    def allows(self, what: str) -> bool:
        return what in self.options.allow

    def emit(self, activation: Activation, chunk: Any) -> None:
        if self.observers.chunk is not None and not self.is_closed:
            self._at_home(self.observers.chunk, activation, chunk)

    def _at_home(self, call: Callable[..., None], *values: Any) -> None:
        if self.loop is None or threading.get_ident() == self.home:
            call(*values)
        else:
            self.loop.call_soon_threadsafe(call, *values)

    def now(self, activation: Activation, call: int) -> float:
        known = self.replay.clock.get((activation, call))
        if known is not None:
            return known
        now = self.elapsed
        if self.options.journal is not None and not self.is_closed:
            data = {"call": call, "value": now}
            entry = self.dated(Entry("clock", activation.frame, activation.node, activation.ordinal, data))
            if self.loop is not None and threading.get_ident() != self.home:
                asyncio.run_coroutine_threadsafe(self.keep(entry), self.loop).result()
                return now
            waiting = self.options.journal.append(self.run_id, entry)
            if waiting is not None:  # ``now`` cannot wait; whatever is journaled next is behind it
                self.unkept.append(asyncio.ensure_future(waiting))
        return now

    async def sleep(self, activation: Activation, call: int, seconds: float) -> None:
        until = self.replay.slept.get((activation, call))
        if until is None:
            until = self.elapsed + seconds
            data = {"call": call, "until": until, "wall": time.time() + seconds if isinstance(self.clock, RealClock) else None}
            await self.keep(Entry("slept", activation.frame, activation.node, activation.ordinal, data))
        wall = self.replay.woken.get((activation, call))
        left = until - self.elapsed
        await self.clock.sleep(max(0.0, left if wall is None else min(left, wall - time.time())))

    async def ask(self, activation: Activation, call: int, question: Question) -> Any:
        asked = replace(question, id=f"{activation}?{call}", node=activation.path)
        if asked.id in self.replay.answers:
            return self.replay.answers[asked.id]
        channel: Channel | None = self.options.channel
        answer = MISSING if channel is None else await channel.ask(asked)
        if answer is MISSING:
            if asked.id not in self.replay.asked:
                data = {"id": asked.id, "text": asked.text}
                await self.keep(Entry("asked", activation.frame, activation.node, activation.ordinal, data))
            self.open.setdefault(activation, []).append(asked)
            raise Pause(asked)
        if self.options.journal is not None:
            await self.keep(Entry("answer", data={"id": asked.id, "value": encode(answer)}))
        return answer

    def all_asked(self, activation: Activation, pause: Pause) -> Pause:
        """``pause``, and what else the same body asked without an answer, side by side."""
        asked = {question.id: question for question in (*self.open.pop(activation, ()), *pause.questions)}
        return Pause(*asked.values())

    async def step(self, activation: Activation, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        if (activation, name) in self.replay.steps:
            return self.replay.steps[activation, name]
        value = await call()
        if self.options.journal is not None:
            data = {"name": name, "value": encode(value)}
            await self.keep(Entry("step", activation.frame, activation.node, activation.ordinal, data))
        return value

    async def enter(self, task: Task, plan: Plan, inputs: Any, name: tuple[str | int, ...], state: State | None) -> Returned:
        return await self.owner.enter(task, plan, inputs, name, state)

    def spend(self, tokens: Mapping[str, int], cost: float) -> None:
        self._at_home(self.owner.spend, tokens, cost)
