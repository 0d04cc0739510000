"""A graph that can be run: ``run``, ``stream``, ``resume``, and the sync ``invoke``.

A workflow is immutable once compiled; any number of its runs may be under way.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import replace
from threading import Lock
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from axil.compiler.planner import CompileOptions, compile_spec, is_conversation
from axil.contract.loops import LoopLocal
from axil.contract.observers import Trusted
from axil.errors import Problem, SpecError, UnknownComponent, did_you_mean
from axil.kernel.tokens import new_tuple
from axil.kernel.values import isolate
from axil.runtime.result import Event, Options, Result
from axil.settings.grants import granted

RunInput = Mapping[str, Any] | Sequence[Any] | str | None
"""The inputs of a run: fields, or a text; of a typed graph: values of its state, an instance of its
model, or messages.
"""

if TYPE_CHECKING:
    import asyncio

    from typing_extensions import TypeVar, Unpack

    from axil.builder.options import ResumeOptions, RunOptions
    from axil.kernel.plan import Plan
    from axil.runtime.recorder import RunJournal
    from axil.runtime.run import Run
    from axil.settings.grants import Grants
    from axil.spec.graph import GraphSpec

    In = TypeVar("In", default=Any)
    Out = TypeVar("Out", default=Any)
    S = TypeVar("S", default=Any)
else:
    In, Out, S = TypeVar("In"), TypeVar("Out"), TypeVar("S")

R = TypeVar("R", bound="Run")

_PLANNED = Lock()


class Workflow(Generic[In, Out, S]):
    """A spec, compiled on first use; ``In``, ``Out`` and ``S`` are the types of its inputs, outputs
    and final states.
    """

    if not TYPE_CHECKING:

        @classmethod
        def __class_getitem__(cls, types: object) -> object:
            """Return the class with the types, which may be left out from the end."""
            return GenericAlias(cls, types)

    def __init__(
        self, spec: GraphSpec | None = None, setting: CompileOptions | None = None
    ) -> None:
        self._spec = spec
        self._grants: Grants | None = spec.extras.get("grants") if spec is not None else None
        """The grants of the file that it was read from; None: Python code made it."""
        self.setting: CompileOptions = setting or CompileOptions()
        self._plan: Plan | None = None
        self._pins: dict[str, dict[str, str]] | None = None
        self._defaults: Options | None = None
        self._services = LoopLocal(_Services)

    def __repr__(self) -> str:
        spec = self.spec
        counts = f"{len(spec.nodes)} nodes, {len(spec.edges)} edges"
        return f'<{type(self).__name__} "{spec.id}": {counts}>'

    @property
    def spec(self) -> GraphSpec:
        """Return the graph as data."""
        assert self._spec is not None
        return self._spec

    @property
    def plan(self) -> Plan:
        """The compiled graph. Raises: SpecError: all that is wrong with it."""
        if self._plan is None:
            plan = compile_spec(self.spec, self.setting)
            with _PLANNED:  # another thread may have been quicker, and its components be in use
                self._plan = self._plan or plan
        return self._plan

    @property
    def pins(self) -> dict[str, dict[str, str]]:
        """The distributions that its components come from, with their versions."""
        if self._pins is None:
            from axil.dependencies.versions import pins

            self._pins = pins(self.spec, self.setting)
        return self._pins

    # -- running

    def start(
        self,
        input: In | None = None,
        attributes: Mapping[str, object] | None = None,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Return a run, not yet begun: ``await`` it, or ``cancel`` it. ``options``: see
        ``Options``.
        """
        from axil.runtime.run import Run

        return self.begun(Run, input, attributes, options)

    def begun(
        self,
        kind: type[R],
        input: object,
        attributes: Mapping[str, object] | None,
        options: Mapping[str, object],
    ) -> R:
        """Return a run of a class of its own, not yet begun; for engines."""
        plan, chosen = self.plan, self._options(options)
        check: Callable[[Plan], object] | None = getattr(chosen.executor, "check", None)
        if check is not None:
            check(plan)
        inputs, values = self.given(input, attributes)
        if "IPython" in sys.modules:
            with suppress(UnknownComponent):
                if (watch := self._notebook.watch(self)) is not None:
                    chosen = replace(chosen, observers=(*chosen.observers, watch))
        return kind(plan, inputs, chosen, values)

    def given(
        self, input: Any, attributes: Mapping[str, Any] | None = None
    ) -> tuple[Any, Mapping[str, Any]]:
        """Return the input as the entry edges carry it, and the values for the state.

        Raises: SpecError (AX120): it does not fit the graph.
        """
        graph = self.plan.graph
        payload = graph.spec.payload
        if payload == "state":
            if isinstance(input, Mapping):
                given = cast("Mapping[str, Any]", input)
            elif isinstance(input, (str, list, tuple)) and is_conversation(graph.schema):
                given = {"messages": cast("Any", input)}
            else:
                given = _fields_of_model(input)
            return {}, {**given, **(attributes or {})}
        if payload == "messages":
            from axil.contract.messages import as_messages

            return as_messages({} if input is None else input), attributes or {}
        if input is not None and not isinstance(input, (str, Mapping)):
            raise _misfit(input, "fields or a text", 'Give {"name": value, …}.')
        fields = (
            {"message": input}
            if isinstance(input, str)
            else dict(cast("Mapping[str, Any]", input or {}))
        )
        try:
            return isolate(fields), attributes or {}
        except RecursionError:
            message = "the input contains itself, or is nested too deeply."
            raise SpecError(Problem("AX120", "input", message, "Reduce the nesting.")) from None

    def _options(self, given: Mapping[str, object]) -> Options:
        if self._defaults is None or self._defaults.hooks is not self.setting.hooks:
            self._defaults = Options(hooks=self.setting.hooks)
        if not given:
            return self._defaults
        unknown = [name for name in given if name not in Options.__dataclass_fields__]
        if unknown:
            meant = did_you_mean(unknown[0], Options.__dataclass_fields__)
            raise TypeError(
                f"unknown option(s) {', '.join(unknown)}. "
                + (meant or f"There are {', '.join(Options.__dataclass_fields__)}.")
            )
        options = replace(self._defaults, **given)
        return (
            options if options.journal is None or options.pins else replace(options, pins=self.pins)
        )

    async def run(
        self,
        input: In | None = None,
        attributes: Mapping[str, object] | None = None,
        **options: Unpack[RunOptions],
    ) -> Result[Out, S]:
        """Run to the end.

        Args:
            input: what ``@entry`` edges carry: fields, or a text; of a typed graph: values of its
                state, or messages of its conversation (a text is a user's).
            attributes: over the graph's own.

        Returns: the result; ``status`` tells ``done`` from ``paused``, ``limited`` and
        ``cancelled``. Raises: NodeFailed: a node failed; ``error.result`` holds the partial result.
        """
        async with self:
            result = await self.start(input, attributes, **options).result()
        if result.status == "failed" and result.error is not None:
            raise result.error
        return result

    def invoke(
        self,
        input: In | None = None,
        attributes: Mapping[str, object] | None = None,
        **options: Unpack[RunOptions],
    ) -> Result[Out, S]:
        """Run to the end and return the result, which unpacks as ``output, attributes``.

        Where an event loop is running already, as in a notebook, another thread runs it, and this
        one waits.

        Raises: NodeFailed, LimitReached, RunPaused, RunCancelled: the run did not end well;
        ``error.result`` holds the partial result, with its questions.
        """
        from axil.runtime.run import run_blocking

        result: Result[Out, S] = run_blocking(self.run(input, attributes, **options))
        if result.error is not None:
            raise result.error
        return result

    def draw(self, format: Literal["text", "mermaid", "svg"] = "text") -> str:
        """Return a picture of the graph: text, a mermaid flowchart, or an SVG image.

        Raises: UnknownComponent: what draws it is not installed; SpecError: it has no plan.
        """
        return self.setting.resolve("pictures", format, "")(self.plan)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return the picture of the graph by media type, for notebooks."""
        try:
            return self._notebook.bundle(self)
        except UnknownComponent as error:
            return {"text/plain": f"{self!r}\n{error}"}

    def _ipython_display_(self) -> None:
        """Show the graph in a notebook, live.

        Raises: NotImplementedError: the notebook shows what ``_repr_mimebundle_`` returns.
        """
        try:
            self._notebook.show(self)
        except UnknownComponent:
            raise NotImplementedError from None

    @property
    def _notebook(self) -> Any:
        return self.setting.resolve("pictures", "notebook", "")

    async def resume(
        self,
        run_id: str,
        *,
        journal: RunJournal,
        answers: Mapping[str, object] | None = None,
        **options: Unpack[ResumeOptions],
    ) -> Result[Out, S]:
        """Continue a run that a journal knows: finished nodes do not run again.

        Args:
            answers: to its open questions, by question id.
        Raises: JournalError: the journal does not know the run, or it was another graph's.
        """
        journal.check_known(run_id)
        return await self.run(
            run_id=run_id, journal=journal, answers=answers or {}, resuming=True, **options
        )

    async def stream(
        self,
        input: In | None = None,
        attributes: Mapping[str, object] | None = None,
        *,
        buffer: int = 1000,
        **options: Unpack[RunOptions],
    ) -> AsyncIterator[Event]:
        """Yield the events of a run in order; the last one is ``run_finished`` with the result.

        Leaving the iteration early cancels the run. A slow reader loses the oldest chunks beyond
        ``buffer``; the event after the gap counts them. Raises: NodeFailed, after the last event.
        """
        import asyncio

        watch = _Watch(asyncio.Event(), buffer)
        async with self:
            run = self.start(
                input,
                attributes,
                **{**options, "observers": [*options.get("observers", ()), watch]},
            )
            job = asyncio.ensure_future(run.result())
            job.add_done_callback(lambda _: watch.more.set())
            try:
                events = watch.events
                while True:
                    while events:
                        yield events.popleft()
                    if job.done():
                        break
                    await watch.more.wait()
                    watch.more.clear()
                result = job.result()
            finally:
                run.cancel("there are no observers any more")
                await asyncio.gather(job, return_exceptions=True)
        if result.status == "failed" and result.error is not None:
            raise result.error

    # -- lifecycle of components

    async def __aenter__(self) -> Workflow:
        """Provision components, once per event loop, until the last ``async with`` is left."""
        components = self.plan.graph.components
        if components:
            services = self._services.get()
            services.entering += 1
            try:
                async with services.lock:  # no other run enters during provisioning or closing
                    if not services.is_ready:
                        with granted(self._grants) if self._grants else nullcontext():
                            await _provision(components)
                        services.is_ready = True
                    services.inside += 1
            finally:
                services.entering -= 1
        return self

    async def __aexit__(self, *_: object) -> None:
        components = self.plan.graph.components
        services = self._services.peek() if components else None
        if services is not None:
            services.inside -= 1  # before the lock: a run that is cancelled here has left, too
            async with services.lock:
                if services.is_ready and not services.inside:
                    services.is_ready = False
                    with granted(self._grants) if self._grants else nullcontext():
                        await _close(components)
            if not services.inside and not services.entering:
                self._services.pop()


class _Services:
    """The components of a workflow on one event loop."""

    __slots__ = ("entering", "inside", "is_ready", "lock")

    def __init__(self) -> None:
        import asyncio  # a workflow that is only compiled does not load it

        self.lock = asyncio.Lock()
        self.is_ready = False
        """True while the components are provisioned."""
        self.inside = self.entering = 0
        """The number of runs that use them, and of those that wait for the lock to do so."""


async def _provision(components: Sequence[Any]) -> None:
    """Provision one after the other; if one fails, close what was begun."""
    begun: list[object] = []
    try:
        for component in components:
            begun.append(component)
            if hasattr(component, "provision"):
                await component.provision()
    except BaseException:
        await _close(begun)
        raise


async def _close(components: Iterable[object]) -> None:
    """Close all in reverse order, whatever the others raise."""
    async with AsyncExitStack() as closing:
        for component in components:
            if hasattr(component, "close"):
                closing.push_async_callback(_close_one, component)


async def _close_one(component: Any) -> None:
    """Close one component; log what it raises, so that the run's result is not lost."""
    try:
        await component.close()
    except Exception:
        import logging

        logging.getLogger("axil.workflow").exception(
            "closing a %s failed", type(component).__name__
        )


def _misfit(given: object, expected: str, hint: str) -> SpecError:
    message = f"expected {expected}, found {type(given).__name__}."
    return SpecError(Problem("AX120", "input", message, hint))


def _fields_of_model(given: Any) -> Mapping[str, object]:
    if given is None:
        return {}
    kind = cast("type[Any]", type(given))
    names = getattr(kind, "model_fields", None)
    if names is None:
        raise _misfit(given, "the fields of the state", "Give a mapping.")
    return {name: getattr(given, name) for name in names}


class _Watch(Trusted):
    """An observer that turns reports into events, in a bounded buffer."""

    __slots__ = ("buffer", "events", "more")

    def __init__(self, more: asyncio.Event, buffer: int) -> None:
        self.more, self.buffer = more, buffer
        self.events: deque[Event] = deque()

    def _add(
        self, kind: str, activation: object = None, data: object = None, lost: int = 0
    ) -> None:
        if not self.events:
            self.more.set()
        self.events.append(new_tuple(Event, (kind, activation, data, lost)))

    def run_started(self, run_id: str, plan: object, inputs: object) -> None:
        self._add("run_started", None, run_id)

    def firing_started(self, activation: object, kind: str) -> None:
        self._add("firing_started", activation, kind)

    def chunk(self, activation: object, chunk: object) -> None:
        lost, chunks = 0, list[int]()
        if len(self.events) >= self.buffer:
            chunks = [i for i, event in enumerate(self.events) if event.kind == "chunk"]
        if len(chunks) >= self.buffer:
            oldest = chunks[0]
            lost = self.events[oldest].lost + 1
            del self.events[oldest]
            if oldest < len(self.events):  # the event behind the gap tells of it
                behind = self.events[oldest]
                self.events[oldest] = behind._replace(lost=behind.lost + lost)
                lost = 0
        self._add("chunk", activation, chunk, lost)

    def firing_finished(self, activation: object, kind: str, output: object) -> None:
        self._add("firing_finished", activation, output)

    def firing_failed(self, activation: object, kind: str, error: BaseException) -> None:
        self._add("firing_failed", activation, error)

    def firing_skipped(self, activation: object, kind: str) -> None:
        self._add("firing_skipped", activation, kind)

    def run_finished(self, run_id: str, result: object) -> None:
        self._add("run_finished", None, result)
