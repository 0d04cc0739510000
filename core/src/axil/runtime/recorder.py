"""The protocol of recorders: what a run sends to its recorder.

Each fact is recorded before the run continues from it: outcomes in the order in which they take
effect, and what a body read, did or asked under the name of its activation. A body whose effects
could be noticed outside begins only when all before it is kept.

A recorder is made with a run and knows what was recorded of it earlier: ``known`` has outcomes,
``recall`` the rest. ``follow`` comes first, then ``begin``, facts with ``record``, then ``end`` and
``close``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from axil.contract.context import Call, Clock, Question
from axil.contract.meters import Meter
from axil.kernel.events import CycleTally, Known, RecordFiring, RecordRound
from axil.kernel.plan import Plan
from axil.kernel.state import State
from axil.kernel.tokens import Activation
from axil.runtime.result import Options, Result
from axil.spec.graph import Limits


@dataclass(slots=True, eq=False, repr=False)
class Progress:
    """The progress of a run, kept with each fact, so that a resumed run counts on from there."""

    clock: Clock
    meter: Meter
    cycles: Mapping[str, CycleTally]
    before: float = 0.0
    """Seconds of earlier parts of the run."""
    started: float | None = None
    """The time at which this part began; None: it has not."""

    @property
    def elapsed(self) -> float:
        """Seconds the run has taken, over all its parts."""
        if self.started is None:
            return self.before
        return self.before + self.clock.now() - self.started


class RunJournal(Protocol):
    """A journal as runs need it."""

    def recorder(
        self,
        run_id: str,
        plan: Plan,
        inputs: object,
        values: Mapping[str, object],
        options: Options,
    ) -> Recorder:
        """Return the recorder of a run that begins or is resumed; nothing is written yet.

        Args:
            values: those of the state that are given with the inputs, checked.

        Raises: JournalError: the run cannot be begun or resumed.
        """
        ...

    def check_known(self, run_id: str) -> None:
        """Raises: JournalError (AX503): there is no such run."""
        ...


class ClockRead(NamedTuple):
    """The time that a body read."""

    activation: Activation
    call: Call
    seconds: float
    """Since the run began, without the time between its parts."""


class SleepBegun(NamedTuple):
    """A sleep of a body."""

    activation: Activation
    call: Call
    until: float
    """In seconds of the run."""
    wall: float | None
    """The same in seconds since 1970; None: the clock has no date."""


class EffectBegun(NamedTuple):
    """A body, or a step of one, with effects outside is about to run."""

    activation: Activation
    step: str = ""
    """Empty: the body itself."""
    times: int = 1
    """The number of times that it was about to run so far."""
    request: str | None = None
    """A digest of what was asked for; None: unknown."""


class StepDone(NamedTuple):
    """The result of a step of a body."""

    activation: Activation
    name: str
    value: Any
    request: str | None
    """A digest of what was asked for; None: unknown."""
    prompt: object = None
    """The prompt of a model call, where ``Options.prompts`` has it kept."""


class Asked(NamedTuple):
    """A question without an answer."""

    activation: Activation
    question: Question
    is_shown: bool = False
    """True if a channel has shown it and may still answer."""


class Answered(NamedTuple):
    """The answer to a question."""

    question: str
    """Its id."""
    value: Any
    is_late: bool = False
    """True if there was no answer before the deadline."""


Fact: TypeAlias = (
    RecordFiring | RecordRound | ClockRead | SleepBegun | EffectBegun | StepDone | Asked | Answered
)
"""The facts that a recorder receives."""
F = TypeVar("F", ClockRead, SleepBegun, EffectBegun, StepDone)


class Recorder(Protocol):
    """The record of one run."""

    @property
    def inputs(self) -> object:
        """The inputs of the run: on resumption, those that it began with."""
        ...

    @property
    def state(self) -> Mapping[str, object]:
        """Values over the graph's own first ones: those of a thread, and those given with the
        inputs.
        """
        ...

    @property
    def thread(self) -> str:
        """The thread of the run; empty: none."""
        ...

    @property
    def known(self) -> Known | None:
        """The outcomes recorded before; None: the run is new."""
        ...

    @property
    def used(self) -> Mapping[str, Any]:
        """The usage before this part of the run, as ``Meter.as_data`` gives it."""
        ...

    @property
    def limits(self) -> Limits | None:
        """The limits that the run was given before; None: none."""
        ...

    @property
    def cycles(self) -> Mapping[str, CycleTally]:
        """The ends of earlier cycles, by path."""
        ...

    @property
    def elapsed(self) -> float:
        """Seconds that earlier parts of the run took."""
        ...

    @property
    def due(self) -> Mapping[str, float]:
        """The times at which questions are due, by question id, in seconds since 1970."""
        ...

    @property
    def has_ended(self) -> bool:
        """True if the run has ended or paused, and nothing happened since."""
        ...

    def recall(self, kind: type[F], activation: Activation, key: object, /) -> F | None:
        """Return what was recorded of one call or step of a body; None: nothing, or an
        ``EffectBegun`` whose result is known.
        """
        ...

    def begun(self, activation: Activation, /) -> Sequence[EffectBegun]:
        """Return the steps of a body with effects outside that began in earlier parts of the run,
        but for those that stopped at a question by themselves.
        """
        ...

    def follow(self, progress: Progress, /) -> None:
        """Take note of the progress, which is read with each fact."""
        ...

    def begin(self, answers: Mapping[str, object], /) -> Mapping[str, object]:
        """Record that the run begins or continues; return all answers, by question id.

        Args:
            answers: those given now; recorded if they are new.

        Raises: JournalError: nothing was recorded.
        """
        ...

    def record(self, fact: Fact, /) -> None:
        """Record a fact, behind all before it; it is safe when ``kept`` says so.

        Raises: AxilError: it cannot be recorded; the run may continue without it.
        """
        ...

    def take(self, answers: Sequence[Any], /) -> Mapping[str, object]:
        """Record answers that an engine brings while the run is at work, in its own form; return
        them by question id.

        Raises: JournalError: the record is closed.
        """
        ...

    def kept(self) -> Awaitable[None] | None:
        """Return None if all that was recorded is safe, else an awaitable: when it is done, it is.

        Raises: JournalError.
        """
        ...

    def end(self, result: Result, state: State, /) -> None:
        """Record how the run ended, and the state it leaves."""
        ...

    def close(self) -> None:
        """Release the run when what was recorded is safe, in the same transaction if possible. May
        be called again after a failure.
        """
        ...
