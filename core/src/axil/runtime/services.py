"""The services for bodies: clock, sleep, questions, steps, chunks. All that is read is recorded."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from axil.contract.context import (
    Call,
    Channel,
    Clock,
    Context,
    Executor,
    Question,
    StepCall,
    SubRunResult,
)
from axil.contract.meters import Meter
from axil.contract.observers import Observers
from axil.errors import Overdue, Uncertain
from axil.kernel.events import SubRun
from axil.kernel.plan import Body
from axil.kernel.tokens import Activation, Out, Task
from axil.kernel.values import MISSING, isolate
from axil.runtime.deadlines import Deadline, answer_in_time, deadline_of, late_answer
from axil.runtime.recorder import (
    Answered,
    Asked,
    ClockRead,
    EffectBegun,
    Fact,
    Progress,
    Recorder,
    SleepBegun,
    StepDone,
)
from axil.runtime.result import Options

if TYPE_CHECKING:
    from pathlib import Path

# seconds between looks of a thread that waits for the run's loop whether the run has ended
_CHECK_SECONDS = 1.0


class Pause(BaseException):
    """Raised inside a body that asked and got no answer; no ``Exception``, so that bodies do not
    swallow it.
    """

    def __init__(self, *questions: Question) -> None:
        super().__init__(*questions)
        self.questions = questions


def paused_by(error: BaseException) -> Pause | None:
    """Return the pause that an error, or a group of errors, is; None: something else is wrong."""
    if isinstance(error, Pause):
        return error
    if isinstance(error, BaseExceptionGroup):
        parts = [
            paused_by(part) for part in cast("BaseExceptionGroup[BaseException]", error).exceptions
        ]
        if all(part is not None for part in parts):
            return Pause(
                *(question for part in parts if part is not None for question in part.questions)
            )
    return None


class RealClock:
    """The machine's clock: ``now`` in seconds that never go back, ``wall`` in those since 1970."""

    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


REAL_CLOCK = RealClock()


class Subs(Protocol):
    """Runs plans inside firings."""

    async def enter(self, task: Task, sub: SubRun) -> SubRunResult: ...


@dataclass(slots=True, eq=False, repr=False)
class RunServices:
    """One run's answers to its bodies; the ``Host`` of their contexts."""

    run_id: str
    options: Options
    observers: Observers
    clock: Clock
    meter: Meter
    executor: Executor
    subs: Subs
    progress: Progress
    recorder: Recorder | None = None
    """None: nothing is recorded."""
    loop: asyncio.AbstractEventLoop | None = None
    loop_thread: int = 0
    """The thread of the loop, in which observers are called."""
    calls_of_threads: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Calls that other threads left for the loop, oldest first. Since Python 3.14 a future may have
    its result before the loop runs earlier calls, so the loop's own queue does not keep a body's
    chunks before its outcome.
    """
    open: dict[Activation, list[Question]] = field(default_factory=lambda: {})
    """Questions without an answer, by who asked."""
    answers: dict[str, object] = field(default_factory=lambda: {})
    is_closed: bool = False
    """The run has ended: output of threads that could not be stopped is dropped."""
    diverged: frozenset[Activation] = frozenset()
    """Activations that asked for something else than is recorded: their later records no longer
    count.
    """

    @property
    def thread(self) -> str:
        # a run that is resumed belongs to the thread it was begun in, whatever is said now
        return "" if self.recorder is None else self.recorder.thread

    @property
    def workspace(self) -> Path | None:
        return self.options.workspace

    @property
    def deps(self) -> object:
        return self.options.deps

    @property
    def elapsed(self) -> float:
        """Seconds the run has taken, over all its parts."""
        return self.progress.elapsed

    def note(self, fact: Fact) -> None:
        if self.recorder is not None:
            self.recorder.record(fact)

    async def kept(self) -> None:
        """Wait until everything recorded is safe."""
        if self.recorder is not None and (waiting := self.recorder.kept()) is not None:
            await waiting

    async def keep(self, fact: Fact) -> None:
        """Record a fact, and wait until it and all before it are safe."""
        self.note(fact)
        await self.kept()

    def allows(self, what: str) -> bool:
        if not self.options.allow:
            return False
        from axil.settings.wants import is_granted

        return is_granted(self.options.allow, what)

    def emit(self, activation: Activation, chunk: object) -> None:
        if self.observers.chunk is not None and not self.is_closed:
            self.call_in_loop(self.observers.chunk, activation, chunk)

    def call_in_loop(self, call: Callable[..., None], *values: object) -> None:
        """Call ``call`` in the thread of the run's loop, after what was handed over before it. A
        closed loop has no receivers.
        """
        if self.loop is None or threading.get_ident() == self.loop_thread:
            if self.calls_of_threads:
                self.make_calls_of_threads()
            call(*values)
        else:
            self.calls_of_threads.append(partial(call, *values))
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self.make_calls_of_threads)

    def make_calls_of_threads(self) -> None:
        """Make the calls that other threads left for the loop."""
        while self.calls_of_threads:
            self.calls_of_threads.pop(0)()

    def now(self, activation: Activation, call: Call) -> float:
        recorder = self.recorder
        if recorder is None:
            return self.elapsed
        if (known := recorder.recall(ClockRead, activation, call)) is not None:
            return known.seconds
        now = self.elapsed
        if not self.is_closed:
            read = ClockRead(activation, call, now)
            if self.loop is not None and threading.get_ident() != self.loop_thread:
                self._keep_from_thread(read, self.loop)
            else:
                self.note(read)
        return now

    def _keep_from_thread(self, fact: Fact, loop: asyncio.AbstractEventLoop) -> None:
        """Do as ``keep``, in another thread; if the run ends meanwhile, the fact is not needed."""
        from concurrent.futures import wait

        kept = asyncio.run_coroutine_threadsafe(self.keep(fact), loop)
        while not self.is_closed and not wait([kept], _CHECK_SECONDS).done:
            pass
        if kept.done():
            kept.result()

    async def sleep(self, activation: Activation, call: Call, seconds: float) -> None:
        recorder = self.recorder
        known = None if recorder is None else recorder.recall(SleepBegun, activation, call)
        # a clock that knows the date: time passes while nothing runs
        wall: Callable[[], float] | None = getattr(self.clock, "wall", None)
        # one that unloads a run while it sleeps; see ``ManagedRun``
        rest: Any = getattr(self.clock, "rest", None)
        if known is None:
            until, ends = self.elapsed + seconds, None
            date = None if wall is None else wall() + seconds
            await self.keep(SleepBegun(activation, call, until, date))
        else:
            until, ends = known.until, known.wall
        left = max(
            0.0,
            until - self.elapsed
            if ends is None or wall is None
            else min(until - self.elapsed, ends - wall()),
        )
        if wall is None or rest is None:
            await self.clock.sleep(left)
        else:
            due, timer = {"due": wall() + left}, f"{activation}~{call}"
            await rest(
                left,
                Question(text="a time", kind="timer", data=due, id=timer, node=activation.path),
            )

    async def ask(self, activation: Activation, call: Call, question: Question) -> object:
        asked = replace(question, id=f"{activation}?{call}", node=activation.path)
        if asked.id in self.answers:
            return answer_in_time(asked, self.answers[asked.id])
        deadline: Deadline | None = None
        if asked.within_seconds is not None:
            due: Mapping[str, float] = {} if self.recorder is None else self.recorder.due
            deadline = deadline_of(asked, asked.within_seconds, due, self.clock)
            asked = deadline.question
        answer = await self._channel_answer(activation, asked, deadline)
        if answer is Overdue:
            answer = self.answers[asked.id] = late_answer(asked)
            await self.keep(Answered(asked.id, answer, is_late=True))
            return answer_in_time(asked, answer)
        if answer is MISSING:
            self.note(Asked(activation, asked))
            # before it is safe: another question of the body may end it meanwhile
            self.open.setdefault(activation, []).append(asked)
            await self.kept()
            raise Pause(asked)
        await self.keep(Answered(asked.id, answer))
        return answer

    async def _channel_answer(
        self, activation: Activation, asked: Question, deadline: Deadline | None
    ) -> object:
        """Return the answer of a channel; ``MISSING``: none yet; ``Overdue``, the class: too
        late.
        """
        channel: Channel | None = self.options.channel
        if deadline is None:
            return MISSING if channel is None else await channel.ask(asked)
        if deadline.left <= 0:
            return Overdue
        if channel is None:
            return MISSING
        if deadline.is_new:
            await self.keep(Asked(activation, asked, is_shown=True))
        return await deadline.wait(channel, self.clock)

    def all_asked(self, activation: Activation, pause: Pause) -> Pause:
        """Return ``pause`` with what else the same body asked side by side."""
        asked = {
            question.id: question for question in (*self.open.pop(activation, ()), *pause.questions)
        }
        return Pause(*asked.values())

    async def step(self, activation: Activation, step: StepCall) -> object:
        if (recorder := self.recorder) is None:
            return await self._take(activation, step)
        request = step.request() if callable(step.request) else step.request
        asked = None if request is None else _digest(_asked_for(request, step.kind))[:16]
        is_same = activation not in self.diverged
        known = recorder.recall(StepDone, activation, step.name) if is_same else None
        if known is not None:
            if known.request in (asked, request and _digest(request)[:16]):  # once with its tools
                return known.value
            await self._confirm(activation)
            self.diverged |= {activation}
        begun = step.effects == "external" or recorder.recall(EffectBegun, activation, step.name)
        report = await self.begin(activation, step.name, asked) if begun else None
        value = await self._take(activation, step) if report is None else report["output"]
        # a call of a tool is kept with the model's reply that asked for it
        prompt = request if step.kind == "model" and self.options.prompts != "off" else None
        await self.keep(StepDone(activation, step.name, value, asked, prompt))
        return value

    async def _take(self, activation: Activation, step: StepCall) -> Any:
        seen, name = self.observers, step.name
        started, finished, failed = seen.step_started, seen.step_finished, seen.step_failed
        if started is None and finished is None and failed is None:
            return await step.call()
        if started is not None:
            request = step.request() if callable(step.request) else step.request
            self.call_in_loop(started, activation, name, isolate(request), step.kind)
        try:
            value = await step.call()
        except BaseException as error:
            if failed is not None:
                self.call_in_loop(failed, activation, name, error, step.kind)
            raise
        if finished is not None:
            self.call_in_loop(finished, activation, name, isolate(value), step.kind)
        return value

    async def begin(
        self, activation: Activation, step: str = "", request: str | None = None
    ) -> Any:
        """Record that something with effects outside is about to happen.

        If it was about to happen when the run broke off, a person is asked. Returns: None: do it; a
        mapping with ``output``: it happened, with this output. Raises: Uncertain: give it up;
        Pause.
        """
        recorder = self.recorder
        known = None if recorder is None else recorder.recall(EffectBegun, activation, step)
        # another call than the one of which a person was asked when the body diverged
        is_other = activation in self.diverged and known and known.request not in (None, request)
        if known is not None and not is_other:
            answer = await self._allowed(known, "Run it again?")
            if answer is not None:
                return answer
        await self.keep(EffectBegun(activation, step, request=request))
        return None

    async def _allowed(self, begun: EffectBegun, asks: str) -> Mapping[str, Any] | None:
        """Ask a person about what was about to happen when the run broke off.

        Returns and raises: as ``begin``.
        """
        activation, step = begun.activation, begun.step
        what = f"{activation.path}: {step}" if step else activation.path
        text = f"{what} was about to run when the run broke off; whether it did is not known."
        assert self.recorder is not None
        if self.recorder.recall(StepDone, activation, step) is not None:
            text = f"{what} has run."
        asked = Question(
            text=f"{text} {asks}",
            kind="uncertain",
            options=("retry", "fail"),
            data={"key": self.key(activation, step)},
        )
        answer = await self.ask(activation, f"{step}!{begun.times}", asked)
        if isinstance(answer, Mapping) and "output" in answer:
            return cast("Mapping[str, Any]", answer)
        if answer != "retry":
            raise Uncertain(f"{what} was given up: it had begun when the run broke off.")
        return None

    async def _confirm(self, activation: Activation) -> None:
        """Ask a person about everything with effects outside that a body did before it was asked
        for something else: it goes on from there anew, and may do it again, or leave it.

        Raises: Uncertain: give it up; Pause.
        """
        assert self.recorder is not None
        pauses: list[Pause] = []
        for begun in self.recorder.begun(activation):
            try:
                asks = "What the node is asked has changed: it may do that again, or not. Go on?"
                await self._allowed(begun, asks)
            except Pause as pause:
                pauses.append(pause)
        if pauses:
            raise Pause(*(question for pause in pauses for question in pause.questions))

    def key(self, activation: Activation, step: str = "") -> str:
        return _digest([self.run_id, *activation, step])[:32]

    def enter(self, task: Task, sub: SubRun) -> Awaitable[SubRunResult]:
        return self.subs.enter(task, sub)

    async def execute(self, body: Body, task: Task, ctx: Context) -> object:
        return await self.executor.execute(body, task, ctx)

    async def execute_once(self, body: Body, task: Task, ctx: Context) -> Any:
        """Execute a body whose effects must not happen twice unasked."""
        happened = await self.begin(ctx.activation)
        if happened is not None:
            return Out(happened["output"])
        return await self.executor.execute(body, task, ctx)

    def spend(self, activation: Activation, amounts: Mapping[str, float]) -> None:
        self.call_in_loop(self.meter.spend, activation, amounts)


def _asked_for(request: Any, kind: str) -> Any:
    """Return a request without the tools that a model is offered: a server may change them."""
    return {**request, "tools": None} if kind == "model" and "tools" in request else request


def _digest(data: object) -> str:
    import hashlib

    from axil.secrecy import text_without_secrets

    # what a journal has is without them, and a step of a run that goes on is asked for by that
    text = text_without_secrets(json.dumps(data, sort_keys=True, default=repr))
    return hashlib.sha256(text.encode()).hexdigest()
