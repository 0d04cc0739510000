"""Events and commands: what can happen to a run, and what has to be done for it.

Both lists are closed. An event is a call of a method of ``Scheduler``; a command is what
``Scheduler.next`` and the events return. Nothing else passes: a driver (an event loop, a process,
somebody's distributed engine) turns commands into deeds and deeds into events, and changes nothing
inside.

========================= ======================================== =================================
event                     happens when                             may follow from
========================= ======================================== =================================
``begin(inputs)``         the run begins                           first of all
``finish(task, out)``     a body gave an outcome                   ``Start``
``fail(task, error)``     a body raised                            ``Start``
``wait(task, questions)`` a body ended with unanswered questions   ``Start``
``try_again(task)``       a body raised, and is started again      ``Start``
``put_back(task)``        the last firing could not be started     ``Start``
``recorded()``            a fact is recorded                       ``RecordFiring``, ``RecordRound``
``refuse(error)``         a fact cannot be recorded                ``RecordFiring``, ``RecordRound``
``decide(exits)``         a cycle's limit ends it, or the run      ``DecideLimit``
``enter(task, sub)``      a body at work asks for a sub-run        ``Start``
``drop(runs)``            a body waits no more for its sub-runs    ``enter``
``stop(error)``           the run is cancelled, or at a limit      at any time
========================= ======================================== =================================

========================= ======================================== =================================
command                   what has to be done                      answered by
========================= ======================================== =================================
``Start``: a ``Task``     run the body of ``task.node`` with it    finish, fail, wait, put_back
``RecordFiring``          record an outcome before it takes effect recorded, refuse
``RecordRound``           record how a round of a cycle ended      recorded, refuse
``DecideLimit``           say what becomes of a cycle's limit      decide
``Return``                give a sub-run's result to its body      nothing
``DropBodies``            cancel bodies for which nothing waits    nothing
``End``                   nothing: the run has ended     nothing
========================= ======================================== =================================

``Report``s say what happened, for observers; they ask for nothing, and are made only where the
driver wants them. A run is a fold over its events: the same events, given to a fresh scheduler,
lead to the same commands and the same end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from axil.errors import AxilError, LimitReached
from axil.kernel.machine import FrameResult, Machine, Transition
from axil.kernel.plan import Plan
from axil.kernel.scopes import CycleBody, CycleRun, Round
from axil.kernel.state import State
from axil.kernel.tokens import Activation, Task

Start: TypeAlias = Task
"""A firing of a body that has to start."""
Status = Literal["done", "paused", "failed", "limited", "cancelled"]


class RecordFiring(NamedTuple):
    """The outcome of a firing, which takes effect when recorded."""

    machine: Machine
    task: Task
    step: Transition


class RecordRound(NamedTuple):
    """The end of a cycle's round; the next one begins when it is recorded."""

    visit: CycleRun
    round: Round


class DecideLimit(NamedTuple):
    """The limit of a cycle, which ends the run unless the driver decides that it ends the cycle."""

    limit: LimitReached


class Return(NamedTuple):
    """The result of a sub-run."""

    run: object
    """The value that ``enter`` gave."""
    ended: FrameResult | None
    error: BaseException | None
    """The reason why there is no result."""
    questions: tuple[Any, ...] = ()
    """The questions of the bodies inside, if nothing else in it can continue."""


class DropBodies(NamedTuple):
    """Bodies for which ``Scheduler.is_dropped`` holds are to be given up."""


class End(NamedTuple):
    """Nothing is left to do."""


Command: TypeAlias = Task | RecordFiring | RecordRound | DecideLimit | Return | DropBodies | End
"""Something that the driver has to do for a run."""


ReportKind = Literal["started", "finished", "sent", "failed", "skipped"]
Report: TypeAlias = tuple[ReportKind, Activation, str, Any]
"""Something that happened, for observers: its kind, the firing, the type of its node (``node``,
``graph`` or ``cycle``), and data: of ``started`` the task, of ``failed`` the error, of ``finished``
what its first edge carries, of ``sent`` the graph and tuples of an edge's position, its payload,
and more; of ``skipped`` None.
"""


class SubRun(NamedTuple):
    """A plan that a body runs in a frame of its own."""

    plan: Plan
    inputs: object
    """The output that the plan's ``@entry`` edges carry."""
    name: tuple[str | int, ...]
    """Tells the frames of one activation apart."""
    state: State | None
    """The state at its beginning; None: the activation's state."""
    contained: bool
    """True if a failure inside is raised in the body that waits."""


class Known(Protocol):
    """The recorded facts of a run, which are applied and not done again."""

    @property
    def done(self) -> Mapping[Activation, object]:
        """The recorded outcomes of firings."""
        ...

    def step(self, machine: Machine, task: Task, fact: Any, /) -> Transition:
        """Return a recorded outcome as the step that it was."""
        ...

    def took(self, activation: Activation, /) -> frozenset[str] | None:
        """Return the names of the edges whose tokens a recorded firing took, if its node has an
        early join.
        """
        ...

    def rounds(self, cycle: CycleBody, task: Task, activation: Activation, /) -> Sequence[Round]:
        """Return the recorded rounds of one entry of a cycle."""
        ...


@dataclass(slots=True)
class CycleTally:
    """The counts of how the entries of one cycle ended."""

    entries: int = 0
    rounds: int = 0
    ends: dict[str, int] = field(default_factory=dict[str, int])
    """``exit``, ``natural`` and ``limit``, with how often."""

    def count(self, reason: str, rounds: int) -> None:
        """Count one entry that has ended."""
        self.entries += 1
        self.rounds += rounds
        self.ends[reason] = self.ends.get(reason, 0) + 1


class Ending(NamedTuple):
    """The end of a run and its status."""

    status: Status
    error: AxilError | None = None
    questions: tuple[Any, ...] = ()
