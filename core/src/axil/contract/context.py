"""The context of a body: the verbs ``emit``, ``now``, ``sleep``, ``ask``, ``run``, and a few
nouns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, cast

from axil.contract.meters import Meter, MeterReservation
from axil.contract.views import InstanceView, StateView
from axil.kernel.events import SubRun
from axil.kernel.plan import Body, Plan
from axil.kernel.state import State
from axil.kernel.tokens import Activation, Changes, Effects, Out, Task, new_tuple
from axil.kernel.values import isolate
from axil.spec.graph import kept_field, local_field

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to a person, as plain data: it can be stored, shown anywhere, and answered days
    later.
    """

    text: str
    kind: str = "text"
    """``text``, ``choice``, ``approval``, or a name that a channel understands."""
    options: tuple[str, ...] = ()
    default: Any = None
    """The answer of an empty line, and of a person who is too late."""
    within_seconds: float | None = None
    """The seconds to answer, from when it is first asked in a run; None: no limit. Then ``default``
    is the answer; without one the body gets ``Overdue``.
    """
    data: Mapping[str, Any] = field(default_factory=dict[str, object])
    """Anything a channel may show beside the text."""
    id: str = ""
    """Set by the run: the activation that asks, and which of its questions this is."""
    node: str = ""
    """Set by the run: the path of the node that asks."""
    due: float | None = None
    """Set by the run and kept with it: when it is too late, in seconds since 1970."""


StepKind = Literal["", "model", "tool"]
"""The type of a step's call, for observers and records."""


class StepCall(NamedTuple):
    """One step of a body."""

    name: str
    call: Callable[[], Awaitable[object]]
    request: object = None
    """Plain data that says what is asked for; a recorded result is used for the same request
    only, and of a model also where it was offered other tools.
    """
    effects: Effects = "idempotent"
    kind: StepKind = ""


def _question_of(given: object) -> Question:
    if isinstance(given, Question):
        return given
    if isinstance(given, str):
        return Question(text=given)
    raise TypeError(f"ctx.ask: expected a text or Question(text=…, data=…), found {given!r:.80}.")


class SubRunResult(NamedTuple):
    """The result of a sub-run."""

    output: Any
    """None where nothing left it."""
    changes: Changes
    """Its writes, one change per field, to be given as a delta."""
    fired: bool


Call = int | str
"""The number of a question, a clock read or a sleep in its body: ``2``; ``fetch.1`` inside the step
``fetch``; ``try:2/1`` in a part.
"""


class Clock(Protocol):
    """The time of a run; tests give one that jumps."""

    def now(self) -> float:
        """Return seconds from some fixed point; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Channel(Protocol):
    """A way to ask a person while the run waits. ``axil.channels``."""

    async def ask(self, question: Question) -> object:
        """Return the answer, or ``MISSING``: none now, so the run pauses."""
        ...


class Executor(Protocol):
    """An object that runs one body at a time. ``axil.executors``.

    It may have a method ``check(plan)``, called before a run begins, which raises SpecError where a
    body cannot be executed.
    """

    async def execute(self, body: Body, task: Task, ctx: Context) -> Any:
        """Return the result of ``body(task, ctx)``, awaited if necessary."""
        ...

    async def close(self) -> None:
        """Release what was acquired."""
        ...


class Host(Protocol):
    """The services that a run offers to the contexts of its activations."""

    @property
    def run_id(self) -> str: ...
    @property
    def thread(self) -> str: ...
    @property
    def workspace(self) -> Path | None: ...
    @property
    def deps(self) -> object: ...
    @property
    def clock(self) -> Clock: ...
    def emit(self, activation: Activation, chunk: object) -> None: ...
    def now(self, activation: Activation, call: Call) -> float: ...
    async def sleep(self, activation: Activation, call: Call, seconds: float) -> None: ...
    async def ask(self, activation: Activation, call: Call, question: Question) -> object: ...
    async def step(self, activation: Activation, step: StepCall) -> object: ...
    def key(self, activation: Activation, step: str = "") -> str: ...
    def enter(self, task: Task, sub: SubRun) -> Awaitable[SubRunResult]: ...
    async def execute(self, body: Body, task: Task, ctx: Context) -> Any: ...
    @property
    def meter(self) -> Meter: ...
    def spend(self, activation: Activation, amounts: Mapping[str, float]) -> None: ...
    def allows(self, what: str) -> bool: ...


class Context:
    """One activation's view of its run. Not to be kept after the body has returned."""

    __slots__ = (
        "_abandoned", "_calls", "_contained", "_host", "_kept", "_local", "_part", "_task",
        "_uses", "_whole",
        "activation", "has_asked", "has_emitted", "shown",
    )  # fmt: skip

    def __init__(self, host: Host, task: Task, activation: Activation) -> None:
        self._host, self._task = host, task
        self._whole: Context | None = None
        self._part: tuple[str, ...] = ()
        self._contained = self._abandoned = False
        self.has_emitted = self.has_asked = False
        """True if the body, or a part of it, asked a person; and true if it emitted anything."""
        self.shown = 0
        """Chunks that were shown and not taken back, as a chunk ``reset`` counts them."""
        self.activation = activation
        """The name of this firing; with the run's id a stable idempotency key."""
        self._calls = [0]
        self._uses: dict[tuple[str | int, ...], int] = {}
        self._local: dict[str, object] | None = None
        self._kept: dict[str, object] | None = None

    @property
    def local(self) -> dict[str, Any]:
        """The node's private values, kept between its activations in a run: a dict of plain data,
        committed with the outcome and journaled.
        """
        if self._local is None:
            self._local = dict(
                isolate(self._task.state.get(local_field(self.activation.node), None) or {})
            )
        return self._local

    @property
    def kept(self) -> dict[str, Any]:
        """Like ``local``, but the next run of the same thread begins with it."""
        if self._kept is None:
            self._kept = dict(
                isolate(self._task.state.get(kept_field(self.activation.node), None) or {})
            )
        return self._kept

    @property
    def touched(self) -> Mapping[str, Any] | None:
        """The fields for ``local`` and ``kept``, as far as the body asked for them."""
        if self._local is None and self._kept is None:
            return None
        fields = {
            local_field(self.activation.node): self._local,
            kept_field(self.activation.node): self._kept,
        }
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def state(self) -> Any:
        """The state this activation began with, as its schema's kind; read-only."""
        state = self._task.state
        view = state.schema.view(state) if state.schema.view else StateView(state)
        if isinstance(view, StateView) or issubclass(type(view), InstanceView):
            view.__axil_read_only__()
        return view

    @property
    def run_id(self) -> str:
        """The run's id; a resumed run keeps it."""
        return self._host.run_id

    @property
    def thread(self) -> str:
        """The conversation that the run continues; empty: none."""
        return self._host.thread

    @property
    def deps(self) -> Any:
        """The clients and the like that the caller provides for bodies; never journaled."""
        return self._host.deps

    @property
    def workspace(self) -> Path | None:
        """The run's own directory, if it has one."""
        return self._host.workspace

    @property
    def clock(self) -> Clock:
        """The run's clock, for use inside a ``step``: what is read from it is not recorded."""
        return self._host.clock

    def allows(self, what: str, /) -> bool:
        """Return whether the caller of the run allowed ``what``: ``code`` is code from files."""
        return self._host.allows(what)

    def part(self, name: str = "", /) -> Context:
        """Return the context for a part of this body that may fail and be done again, or not be
        needed; for wrappers.

        What the part keeps in ``local`` and ``kept``, reads, sleeps, asks and does as steps is its
        own; a part of another name begins anew. A failure in a graph that it runs is raised to it
        (``NodeFailed``), and does not end the run.
        """
        part = Context(self._host, self._task, self.activation)
        part._whole, part._contained = self, True
        part._part = (*self._part, name) if name else self._part
        part._local = None if self._local is None else isolate(self._local)
        part._kept = None if self._kept is None else isolate(self._kept)
        if not name:
            part._uses, part._calls = self._uses, self._calls
        return part

    def abandon(self) -> None:
        """Stop showing the output of this part."""
        self._abandoned = True

    @property
    def is_abandoned(self) -> bool:
        """True if the result of the body is no longer awaited; a function in a thread may look here
        and return.
        """
        ctx: Context | None = self
        while ctx is not None and not ctx._abandoned:
            ctx = ctx._whole
        return ctx is not None

    async def execute(self, body: Body, /, task: Task | None = None) -> Out:
        """Run ``body`` as the run itself would: awaited, or in a thread; for a scope see
        ``run``.
        """
        return await self._host.execute(body, self._task if task is None else task, self)

    def _call(self) -> Call:
        inside = self._inside()
        if inside is not None:
            inside.calls += 1
            return f"{inside.name}.{inside.calls}"
        self._calls[0] += 1
        return self._called(str(self._calls[0])) if self._part else self._calls[0]

    def _called(self, name: str) -> str:
        return "/".join((*self._part, name))

    def _inside(self) -> _Step | None:
        """Return the step of this firing that the caller is in."""
        step = _step.get()
        return step if step is not None and step.owner is self else None

    def emit(self, chunk: object, /) -> None:
        """Show ``chunk`` to the run's observers; never waits, never changes a result."""
        self._show(chunk, of_body=True)

    def note(self, chunk: object, /) -> None:
        """Show ``chunk`` as a wrapper does: about the body, not from it."""
        self._show(chunk, of_body=False)

    def _show(self, chunk: object, *, of_body: bool) -> None:
        if self.is_abandoned:
            return
        whole = chunk
        kind: object = (
            cast("Mapping[str, Any]", chunk).get("kind") if isinstance(chunk, Mapping) else None
        )
        showing: Context | None = self
        while showing is not None:
            if kind == "reset":
                showing.shown = max(
                    0, showing.shown - int(cast("Mapping[str, Any]", chunk).get("chunks") or 0)
                )
            elif kind != "retry":
                showing.shown += 1
                showing.has_emitted = showing.has_emitted or of_body
            showing = showing._whole
        self._host.emit(self.activation, whole)

    def now(self) -> float:
        """Return seconds since the run began, over all its parts. Recorded: a repeated body reads
        the same.
        """
        return self._host.now(self.activation, self._call())

    async def sleep(self, seconds: float, /) -> None:
        """Wait. Recorded: a resumed run waits only for the rest."""
        await self._host.sleep(self.activation, self._call(), seconds)

    async def ask(self, question: Question | str, /, *, name: str = "") -> Any:
        """Return the answer of a person.

        An answer at hand is returned; a channel is waited for; else the run ends *paused*, with the
        question in its result, and this body runs again from its top when the answer is there.

        ``name``: what the question's id is made of; empty: it is counted. Raises: Overdue (AX520):
        no answer came within ``within_seconds``, and there is no default.
        """
        asked = _question_of(question)
        asking: Context | None = self
        while asking is not None:
            asking.has_asked, asking = True, asking._whole
        return await self._host.ask(
            self.activation, self._called(name) if name else self._call(), asked
        )

    async def step(
        self,
        name: str,
        call: Callable[[], Awaitable[object]],
        /,
        *,
        request: object = None,
        effects: Effects = "idempotent",
        kind: StepKind = "",
    ) -> Any:
        """``await call()``, recorded under ``name``: a resumed body gets the recorded result, which
        is plain data.

        Args:
            request: plain data that says what is asked for, or a function that gives it, called
                only if it is recorded. Where it differs from the recorded one (of a model, in more
                than ``tools``), the call is made, and later records of this activation are unused.
            kind: what is called, for observers and for what a journal keeps of prompts.
            effects: ``external``: it must not be done twice unasked. That it begins is journaled;
                if the run breaks off before the result is recorded, a person is asked whether to do
                it again.

        What is asked, read from the clock or slept inside is counted for the step alone. Raises:
        Uncertain: it may have been done, and was given up.
        """
        inside = self._inside()
        part = self._called(name) if inside is None else f"{inside.name}/{name}"
        step = _Step(self, self._once(("step", part), part))

        async def within() -> object:
            token = _step.set(step)
            try:
                return await call()
            finally:
                _step.reset(token)

        made = StepCall(step.name, within, request, effects, kind)
        return await self._host.step(self.activation, made)

    def key(self, name: str = "", /) -> str:
        """Return an idempotency key for this activation (and, within it, ``name``): the same
        however often the body runs again in this run. 32 hexadecimal digits.
        """
        return self._host.key(self.activation, name)

    async def run(
        self,
        plan: Plan,
        inputs: object = None,
        /,
        *,
        name: str | int | Sequence[str | int],
        state: State | None = None,
    ) -> SubRunResult:
        """Run ``plan`` in a frame of its own and return its result.

        Args:
            inputs: what the plan's ``@entry`` edges carry.
            name: tells the frames of one activation apart: a map's index, a subgraph's name.
            state: what it begins with; None: this activation's state.
        """
        part = (name,) if isinstance(name, (str, int)) else tuple(name)
        again = self._once(("run", *part), "")
        whole = (*(f"#{name}" for name in self._part), *part, *((again,) if again else ()))
        sub = new_tuple(SubRun, (plan, inputs, whole, state, self._contained))
        return await self._host.enter(self._task, sub)

    def _once(self, use: tuple[str | int, ...], name: str) -> str:
        """Return ``name`` at its first use, then ``name#1`` and so on."""
        times = self._uses[use] = self._uses.get(use, -1) + 1
        return f"{name}#{times}" if times else name

    def spend(self, **amounts: float) -> None:
        """Report what was used, by the meter's names; see axil-models for tokens and money."""
        self._host.spend(self.activation, amounts)

    async def reserve(self, **wanted: object) -> MeterReservation:
        """Reserve what is about to be used, in the limits of the run and of every node around this
        one.

            with await ctx.reserve(…) as reservation:
                …
                reservation.settle(…)

        Arguments and errors are the meter's: see axil-models for tokens and money. Where a limit of
        the run is reached, the run ends.
        """
        return await self._host.meter.reserve(self.activation, wanted)

    @property
    def ledger(self) -> Any:
        """The meter's ledger, for wrappers that know it."""
        return self._host.meter.ledger


class _Step:
    __slots__ = ("calls", "name", "owner")

    def __init__(self, owner: Context, name: str) -> None:
        self.owner, self.name, self.calls = owner, name, 0


_step: ContextVar[_Step | None] = ContextVar("axil_step", default=None)
STEPS_ELSEWHERE: ContextVar[Callable[[str, StepKind], None] | None] = ContextVar(
    "axil_steps_elsewhere", default=None
)
"""A check of each step that a body takes in another process, by the path of its node and the kind
of the step; what it raises fails the node.
"""
