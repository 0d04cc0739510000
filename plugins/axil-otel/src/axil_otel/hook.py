"""``otel``: the hook. It imports OpenTelemetry when the first run begins."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axil import Activation, hookimpl
from axil.plugin import Body, Mode, Plan, Task
from axil_otel.content import Content

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from axil_otel.tracing import Tracing

CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable that says whether spans hold what is sent and answered."""
TRACES_VARIABLE = "AXIL_OTEL_TRACES"
"""The environment variable of the folder ``traces``."""


class OpenTelemetry:
    """``otel``: makes OpenTelemetry spans and metrics of runs, by the GenAI conventions.

    One object serves all runs of a process, in all threads.
    """

    def __init__(
        self,
        *,
        content: bool | None = None,
        longest: int = 4000,
        redact: Callable[[str], str] | None = None,
        traces: str | Path | None = None,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        """Without settings it does what the environment says.

        Args:
            content: whether spans hold prompts, replies, arguments and results of tools, and the
                messages of errors; None: what ``CONTENT_VARIABLE`` says, else no.
            longest: characters of each text in a span; the rest is cut.
            redact: is called with each text before it is cut; None: known forms of secrets and
                addresses are replaced.
            traces: a folder in which other processes find the trace that a resumed run continues;
                None: what ``TRACES_VARIABLE`` says, else this process alone knows them.
            tracer_provider: None: the global one.
            meter_provider: None: the global one.
        Raises: ValueError: ``longest`` is not positive.
        """
        if longest < 1:
            raise ValueError(f"longest is {longest!r}; a text has at least 1 character.")
        if content is None:
            given = os.environ.get(CONTENT_VARIABLE, "").strip().lower()
            content = given in ("1", "true", "span_only", "span_and_event")
        self._content = Content(longest, redact) if content else None
        folder = traces or os.environ.get(TRACES_VARIABLE)
        self._folder = Path(folder) if folder else None
        self._providers = (tracer_provider, meter_provider)

    @cached_property
    def tracing(self) -> Tracing:
        """The spans of the runs; OpenTelemetry is imported here."""
        from axil_otel.tracing import TraceStore, Tracing

        return Tracing(self._content, TraceStore(self._folder), *self._providers)

    @hookimpl
    def wrap_body(self, body: Body) -> Body | None:
        """Make the span of a firing the current one in its body."""
        if body.mode == "scope":
            return None
        return _AsyncBody(self, body) if body.mode == "async" else _TracedBody(self, body)

    @hookimpl
    def run_started(self, run_id: str, plan: Plan) -> None:
        """Start the span of a run."""
        self.tracing.run_started(run_id, plan)

    @hookimpl
    def firing_started(self, activation: Activation, kind: str, run_id: str) -> None:
        """Start the span of a firing."""
        self.tracing.firing_started(run_id, activation, kind)

    @hookimpl
    def chunk(self, activation: Activation, chunk: object, run_id: str) -> None:
        """Note the first chunk of a reply."""
        self.tracing.chunk(run_id, activation, chunk)

    @hookimpl
    def step_started(
        self, activation: Activation, step: str, request: object, kind: str, run_id: str
    ) -> None:
        """Start the span of a call of a model or a tool, or of another step."""
        self.tracing.step_started(run_id, activation, step, request, kind)

    @hookimpl
    def step_finished(self, activation: Activation, step: str, result: object, run_id: str) -> None:
        """End the span of a step."""
        self.tracing.step_finished(run_id, activation, step, result)

    @hookimpl
    def step_failed(
        self, activation: Activation, step: str, error: BaseException, run_id: str
    ) -> None:
        """End the span of a step with its error."""
        self.tracing.step_failed(run_id, activation, step, error)

    @hookimpl
    def firing_finished(self, activation: Activation, run_id: str) -> None:
        """End the span of a firing."""
        self.tracing.firing_ended(run_id, activation, None)

    @hookimpl
    def firing_failed(self, activation: Activation, error: BaseException, run_id: str) -> None:
        """End the span of a firing with its error."""
        self.tracing.firing_ended(run_id, activation, error)

    @hookimpl
    def run_finished(self, run_id: str, result: object) -> None:
        """End the span of a run, and those of firings that are paused or cancelled."""
        self.tracing.run_finished(run_id, result)


class _TracedBody:
    """A body that is called with its firing's span as the current one."""

    wants_ctx = True

    def __init__(self, hook: OpenTelemetry, body: Body) -> None:
        self.hook, self.body = hook, body
        self.mode: Mode = body.mode

    def __call__(self, task: Task, ctx: Any, /) -> Any:
        tracing = self.hook.tracing
        token = tracing.enter(ctx.run_id, ctx.activation)
        try:
            return self.body(task, ctx)
        finally:
            tracing.leave(token)


class _AsyncBody(_TracedBody):
    async def __call__(self, task: Task, ctx: Any, /) -> Any:
        tracing = self.hook.tracing
        token = tracing.enter(ctx.run_id, ctx.activation)
        try:
            return await self.body(task, ctx)
        finally:
            tracing.leave(token)
