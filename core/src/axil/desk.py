"""What bodies ask of a run, answered: clock, sleep, questions, steps, chunks. Everything read here is recorded."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from axil.context import Call, Channel, Clock, Context, Executor, Question, Returned, StepCall, SubRun
from axil.errors import Overdue, Uncertain
from axil.journal import Book, Entry, Replay, decode, encode
from axil.ledger import Ledger
from axil.observers import Observers
from axil.plan import Body
from axil.result import CycleTally, Meter, Options
from axil.tokens import Activation, Out, Task
from axil.values import MISSING

if TYPE_CHECKING:
    from pathlib import Path

    from axil import due

_LOOK = 1.0  # seconds between looks of a thread that waits for the run's loop whether the run has ended


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

    def wall(self) -> float:
        """Seconds since 1970; may be set."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


REAL_CLOCK = RealClock()


class Subs(Protocol):
    """Runs plans inside firings."""

    async def enter(self, task: Task, sub: SubRun) -> Returned: ...


@dataclass(slots=True)
class Desk:
    """One run's answers to its bodies; the ``Host`` of their contexts."""

    run_id: str
    options: Options
    observers: Observers
    replay: Replay
    clock: Clock
    meter: Meter
    executor: Executor
    subs: Subs
    cycles: Mapping[str, CycleTally]
    """How its cycles ended so far, by path."""
    started: float = 0.0
    loop: asyncio.AbstractEventLoop | None = None
    home: int = 0
    """The thread of the loop: what a body in another thread says is brought there, so observers are called in one thread."""
    open: dict[Activation, list[Question]] = field(default_factory=dict[Activation, list[Question]])
    """Questions without an answer, by who asked."""
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    """All that were given, by question."""
    is_closed: bool = False
    """The run has ended: what is still said by threads that could not be stopped is heard by nobody."""
    book: Book | None = None
    """What is journaled; None: nothing."""
    told: dict[str, Any] = field(default_factory=dict[str, Any])
    """What was said to be used, as last journaled."""
    diverged: frozenset[Activation] = frozenset()
    """Those that asked for something else than is recorded: what they recorded after that is not theirs any more."""

    @property
    def thread(self) -> str:
        begun = self.replay.header  # a run that is resumed belongs to the thread it was begun in, whatever is said now
        return self.options.thread if begun is None else str(begun.data.get("thread", ""))

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

    def note(self, entry: Entry) -> None:
        """Journal ``entry``, if there is a journal; it is safe when ``kept`` says so."""
        if self.book is not None:
            self.book.append(self.dated(entry))

    async def kept(self) -> None:
        """Wait until everything journaled is safe."""
        if self.book is not None and (waiting := self.book.kept()) is not None:
            await waiting

    async def keep(self, entry: Entry) -> None:
        """Journal ``entry``, if there is a journal, and wait until it and all before it are safe."""
        self.note(entry)
        await self.kept()

    def dated(self, entry: Entry) -> Entry:
        """``entry``, whose data are its own, with what a resumed run has to count on from: the time that has passed, and what was used.

        What supersedes others says all of it; the rest say what is new.
        """
        meter = self.meter
        used: dict[str, Any] = {"firings": meter.usage.firings}
        if not self.told or self.cycles or meter.has_spent:
            everything = meter.told()
            del everything["firings"]
            everything["cycles"] = {path: [tally.entries, tally.rounds, dict(tally.ends)] for path, tally in self.cycles.items()}
            whole = entry.kind in ("done", "round")
            for name, value in everything.items():
                if (whole and value) or self.told.get(name) != value:
                    used[name] = self.told[name] = value
        data = cast("dict[str, Any]", entry.data)
        data["at"], data["used"] = round(self.elapsed, 6), used
        return entry

    def allows(self, what: str) -> bool:
        return what in self.options.allow

    def emit(self, activation: Activation, chunk: Any) -> None:
        if self.observers.chunk is not None and not self.is_closed:
            self.at_home(self.observers.chunk, activation, chunk)

    def at_home(self, call: Callable[..., None], *values: Any) -> None:
        """Call ``call`` in the thread of the run's loop. The loop is closed: the run has ended, and nobody hears."""
        if self.loop is None or threading.get_ident() == self.home:
            call(*values)
        else:
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(call, *values)

    def now(self, activation: Activation, call: Call) -> float:
        known = self.replay.clock.get((activation, call))
        if known is not None:
            return known
        now = self.elapsed
        if self.book is not None and not self.is_closed:
            entry = Entry("clock", activation.frame, activation.node, activation.ordinal, {"call": call, "value": now})
            if self.loop is not None and threading.get_ident() != self.home:
                self._keep_from_afar(entry, self.loop)
            else:
                self.note(entry)
        return now

    def _keep_from_afar(self, entry: Entry, loop: asyncio.AbstractEventLoop) -> None:
        """As ``keep``, in another thread. The run ends meanwhile, and its loop with it: nobody will ask what was kept."""
        from concurrent.futures import wait

        kept = asyncio.run_coroutine_threadsafe(self.keep(entry), loop)
        while not self.is_closed and not wait([kept], _LOOK).done:
            pass
        if kept.done():
            kept.result()

    async def sleep(self, activation: Activation, call: Call, seconds: float) -> None:
        until = self.replay.slept.get((activation, call))
        wall: Callable[[], float] | None = getattr(self.clock, "wall", None)  # a clock that knows the date: time passes while nothing runs
        rest: Any = getattr(self.clock, "rest", None)  # one that lets go of a run while it sleeps; see ``axil.engine``
        if until is None:
            until = self.elapsed + seconds
            data = {"call": call, "until": until, "wall": None if wall is None else wall() + seconds}
            await self.keep(Entry("slept", activation.frame, activation.node, activation.ordinal, data))
        timer = f"{activation}~{call}"
        ends = self.replay.timers.get(timer, self.replay.woken.get((activation, call)))
        left = max(0.0, until - self.elapsed if ends is None or wall is None else min(until - self.elapsed, ends - wall()))
        if wall is None or rest is None:
            await self.clock.sleep(left)
        else:
            due = {"due": wall() + left}
            await rest(left, Question(text="a time", kind="timer", data=due, id=timer, node=activation.path))

    async def ask(self, activation: Activation, call: Call, question: Question) -> Any:
        from axil import due

        asked = replace(question, id=f"{activation}?{call}", node=activation.path)
        if asked.id in self.answers:
            return due.answered(asked, self.answers[asked.id])
        deadline = due.deadline(asked, self.replay.due, self.clock)
        asked = asked if deadline is None else deadline.question
        answer = await self._told(activation, asked, deadline)
        if answer is Overdue:
            answer = self.answers[asked.id] = due.late(asked)
            await self.keep(Entry("answer", data={"id": asked.id, "value": encode(answer), "by": due.LATE}))
            return due.answered(asked, answer)
        if answer is MISSING:
            data = {"id": asked.id, **asked.plain()}
            self.note(Entry("asked", activation.frame, activation.node, activation.ordinal, data))
            self.open.setdefault(activation, []).append(asked)  # before it is safe: another question of the body may end it meanwhile
            await self.kept()
            raise Pause(asked)
        if self.book is not None:
            await self.keep(Entry("answer", data={"id": asked.id, "value": encode(answer)}))
        return answer

    async def _told(self, activation: Activation, asked: Question, deadline: due.Deadline | None) -> Any:
        """What a channel answers; ``MISSING``: nobody can now; the class ``Overdue``: it is too late."""
        from axil import due

        channel: Channel | None = self.options.channel
        if deadline is None:
            return MISSING if channel is None else await channel.ask(asked)
        if deadline.left <= 0:
            return Overdue
        if channel is None:
            return MISSING
        if deadline.is_new:
            await self.keep(Entry("asked", activation.frame, activation.node, activation.ordinal, due.asked(asked)))
        return await due.in_time(channel, deadline, self.clock)

    def all_asked(self, activation: Activation, pause: Pause) -> Pause:
        """``pause``, and what else the same body asked without an answer, side by side."""
        asked = {question.id: question for question in (*self.open.pop(activation, ()), *pause.questions)}
        return Pause(*asked.values())

    async def step(self, activation: Activation, step: StepCall) -> Any:
        if self.book is None:
            return await step.call()
        request = step.request() if callable(step.request) else step.request
        asked = None if request is None else _digest(request)[:16]
        known = None if activation in self.diverged else self.replay.steps.get((activation, step.name))
        if known is not None:
            if known.get("request") == asked:
                return decode(known["value"])
            self.diverged |= {activation}
        told = await self.begin(activation, step.name) if step.effects == "external" else None
        value = await step.call() if told is None else told["output"]
        data = {"name": step.name, "value": encode(value), **({} if asked is None else {"request": asked})}
        await self.keep(Entry("step", activation.frame, activation.node, activation.ordinal, data))
        return value

    async def begin(self, activation: Activation, step: str = "") -> Any:
        """Before something with effects outside: journal that it is about to happen.

        If it was about to happen when the run broke off, nobody knows whether it did, so a person is asked.
        Returns: None: do it; a mapping with ``output``: it happened, and came to that. Raises: Uncertain: give it up; Pause.
        """
        what = f"{activation.path}: {step}" if step else activation.path
        times = self.replay.began.get((activation, step), 0)
        if times > self.replay.paused.get((activation, step), 0):
            text = f"{what} was about to run when the run broke off; whether it did is not known. Run it again?"
            asked = Question(text=text, kind="uncertain", options=("retry", "fail"), data={"key": self.key(activation, step)})
            answer = await self.ask(activation, f"{step}!{times}", asked)
            if isinstance(answer, Mapping) and "output" in answer:
                return cast("Mapping[str, Any]", answer)
            if answer != "retry":
                raise Uncertain(f"{what} was given up: it was about to run when the run broke off.")
        data = {"step": step} if step else {}
        await self.keep(Entry("began", activation.frame, activation.node, activation.ordinal, data))
        return None

    def key(self, activation: Activation, step: str = "") -> str:
        return _digest([self.run_id, *activation, step])[:32]

    async def enter(self, task: Task, sub: SubRun) -> Returned:
        return await self.subs.enter(task, sub)

    async def execute(self, body: Body, task: Task, ctx: Context) -> Any:
        return await self.executor.execute(body, task, ctx)

    async def execute_once(self, body: Body, task: Task, ctx: Context) -> Any:
        """Execute a body whose effects must not happen twice unasked: with a word before, which is safe when it begins."""
        happened = await self.begin(ctx.activation)
        if happened is not None:
            return Out(happened["output"])
        return await self.executor.execute(body, task, ctx)

    def spend(self, activation: Activation, tokens: Mapping[str, int], cost: float) -> None:
        self.at_home(self.ledger.charge, activation, tokens, cost)

    @property
    def ledger(self) -> Ledger:
        return self.meter.ledger


def _digest(data: Any) -> str:
    import hashlib

    return hashlib.sha256(json.dumps(data, sort_keys=True, default=repr).encode()).hexdigest()
