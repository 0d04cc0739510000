"""Spans and metrics of runs. Names are those of the GenAI conventions, which are in development:
https://github.com/open-telemetry/semantic-conventions-genai.

One span for a run, one in it for each firing, one in that for each step of its body: a call of a
model, of a tool, or another one. What a run has open is in ``_Run``; whatever is still open when
the run ends was paused or cancelled. Work that a resumed run reads from its record has no spans.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from contextvars import Token
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from opentelemetry import context as contexts, metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from axil import Activation, NodeFailed
from axil.plugin import Plan
from axil_otel.content import Content, message_parts
from axil_otel.structure import Ended, opener, structure_of

_SCOPE = "axil_otel"
_TOOL_STEP = re.compile(r"(?:^|/)tool:\d+:(\d+):(.+?)(?:#\d+)?$")
_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "seed": "seed",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
}
"""Numbers among the settings of a model call, and their names in ``gen_ai.request``."""
_FINISH = {"tools": "tool_call", "filter": "content_filter", "refusal": "content_filter"}
_REPLY_CHUNKS = ("text", "reasoning", "refusal", "tool_call_delta")
_MOST_NAMES = 200
"""So many nodes and edges are listed on the span of a run."""
_SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
_TOKENS = [4**power for power in range(14)]


_NONE: Mapping[str, Any] = {}


@dataclass(slots=True)
class _Timed:
    """A span that is open, and when it began."""

    span: Span
    context: Context
    labels: Mapping[str, Any] = field(default_factory=lambda: _NONE)
    """The attributes by which its metrics are divided."""
    began: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began


@dataclass(slots=True)
class _Step(_Timed):
    """A step that is being taken."""

    kind: str = ""
    """``chat``, ``execute_tool``, or empty: another one."""
    has_chunk: bool = False
    task: Any = None
    """The task whose current span it is, and what it was before."""
    token: Token[Context] | None = None


@dataclass(slots=True)
class _Firing(_Timed):
    """A firing that has begun."""

    is_agent: bool = False
    # made by functions: to call dict[str, int] costs several times as much
    steps: dict[str, _Step] = field(default_factory=lambda: {})
    calls: Sequence[str] = ()
    """The ids of the tool calls in the last reply."""
    used: dict[str, int] = field(default_factory=lambda: {})


@dataclass(slots=True)
class _Run(_Timed):
    """A run that has begun."""

    ended: Ended[SpanContext] = field(default_factory=lambda: Ended[SpanContext]({}))
    models: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])
    firings: dict[Activation, _Firing] = field(default_factory=dict[Activation, _Firing])
    used: dict[str, int] = field(default_factory=dict[str, int])
    is_traced: bool = True
    """True if there is a trace, recorded or not, that requests carry; without an SDK, none is."""
    is_recording: bool = True
    """True if its span is kept: without an SDK, and where it is not sampled, none is."""

    def around(self, frame: tuple[str | int, ...]) -> Context:
        """Return the context of the innermost firing that a frame belongs to."""
        while frame:
            made_by = opener(frame)
            found = None if made_by is None else self.firings.get(made_by)
            if found is not None:
                return found.context
            frame = frame[:-1]
        return self.context


class TraceStore:
    """The traces of runs that have not ended well, which a resumed run may continue; in a folder,
    other processes find them, and those of runs whose process was killed.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder, self._known = folder, dict[str, SpanContext]()

    def get(self, run_id: str) -> SpanContext | None:
        """Return the span of a run's earlier part."""
        if (file := self._file(run_id)) is None or not file.is_file():
            return self._known.get(run_id)
        carrier = {"traceparent": file.read_text("ascii").strip()}
        read = TraceContextTextMapPropagator().extract(carrier, Context())
        found = trace.get_current_span(read).get_span_context()
        return found if found.is_valid else None

    def put(self, run_id: str, span: SpanContext) -> None:
        """Keep the span of a run."""
        if not span.is_valid:
            return
        if (file := self._file(run_id)) is None:
            self._known[run_id] = span
            while len(self._known) > 10_000:
                del self._known[next(iter(self._known))]
            return
        carrier: dict[str, str] = {}
        context = trace.set_span_in_context(trace.NonRecordingSpan(span), Context())
        TraceContextTextMapPropagator().inject(carrier, context)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(carrier["traceparent"], "ascii")

    def drop(self, run_id: str) -> None:
        """Forget a run, which has ended well."""
        self._known.pop(run_id, None)
        if (file := self._file(run_id)) is not None:
            file.unlink(missing_ok=True)

    def _file(self, run_id: str) -> Path | None:
        name = hashlib.sha256(run_id.encode()).hexdigest()[:32]
        return None if self._folder is None else self._folder / f"{name}.traceparent"


class Tracing:
    """The spans of the runs of a process."""

    def __init__(
        self,
        content: Content | None,
        store: TraceStore,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        """``content``: the rules for contents; None: there are none. Providers: None: the global
        ones.
        """
        self._content, self._store = content, store
        self._runs: dict[str, _Run] = {}
        self._tracer = trace.get_tracer(_SCOPE, tracer_provider=tracer_provider)
        meter = metrics.get_meter(_SCOPE, meter_provider=meter_provider)

        def histogram(name: str, unit: str, text: str, bounds: list[Any]) -> metrics.Histogram:
            return meter.create_histogram(
                name, unit, text, explicit_bucket_boundaries_advisory=bounds
            )

        self._trips = meter.create_counter("axil.guard.trips", "{trip}", "Guards that tripped")
        self._operations = histogram(
            "gen_ai.client.operation.duration", "s", "Duration of GenAI operations", _SECONDS
        )
        self._first = histogram(
            "gen_ai.client.operation.time_to_first_chunk",
            "s",
            "Time until the first chunk of a reply",
            _SECONDS,
        )
        self._tokens = histogram(
            "gen_ai.client.token.usage", "{token}", "Input and output tokens used", _TOKENS
        )
        self._workflows = histogram(
            "gen_ai.workflow.duration", "s", "Duration of runs of workflows", _SECONDS
        )

    # ------------------------------------------------------------------ runs

    def run_started(self, run_id: str, plan: Plan) -> None:
        """Start the span of a run, in the span that is current; of a resumed one with a link to
        its earlier part.
        """
        graph = plan.graph
        name = str(graph.spec.id)
        labels = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": name}
        names = [vertex.name for vertex in graph.vertices[:_MOST_NAMES]]
        attributes: dict[str, Any] = {
            **labels,
            "axil.run.id": run_id,
            "axil.workflow.nodes": names,
            "axil.workflow.edges": [edge.name for edge in graph.edges[:_MOST_NAMES]],
        }
        earlier = self._store.get(run_id)
        links = [] if earlier is None else [Link(earlier, {"axil.link": "resumed"})]
        if links:
            attributes["axil.run.resumed"] = True
        span = self._tracer.start_span(
            f"invoke_workflow {name}", links=links, attributes=attributes
        )
        context = trace.set_span_in_context(span)
        structure = structure_of(plan)
        self._runs[run_id] = _Run(
            span,
            context,
            labels,
            ended=Ended[SpanContext](structure.sources),
            models=structure.models,
            is_traced=span.get_span_context().is_valid,
            is_recording=span.is_recording(),
        )
        self._store.put(run_id, span.get_span_context())

    def run_finished(self, run_id: str, result: Any) -> None:
        """End the span of a run and all that are open in it."""
        run = self._runs.pop(run_id, None)
        if run is None:
            return
        status = str(result.status)
        for activation in reversed(list(run.firings)):
            self._end_firing(run, activation, "paused" if status == "paused" else "cancelled")
        span = run.span
        span.set_attribute("axil.run.status", status)
        span.set_attributes({f"gen_ai.usage.{name}": n for name, n in run.used.items()})
        if status == "done":
            self._store.drop(run_id)
        elif status != "paused":
            self._fail(run, _cause(result.error) if result.error is not None else status)
        labels = {**run.labels, "axil.run.status": status}
        self._workflows.record(run.seconds, labels, context=run.context)
        span.end()

    def enter(self, run_id: str, activation: Activation) -> Token[Context] | None:
        """Make the span of a firing the current one; give what comes back to ``leave``."""
        run = self._runs.get(run_id)
        if run is None or not run.is_traced:
            return None
        firing = run.firings.get(activation)
        return None if firing is None else contexts.attach(firing.context)

    @staticmethod
    def leave(token: Token[Context] | None) -> None:
        """Make the span current again that was before."""
        if token is not None:
            contexts.detach(token)

    # ------------------------------------------------------------------ firings

    def firing_started(self, run_id: str, activation: Activation, kind: str) -> None:
        """Start the span of a firing, with links to those of the nodes that it waited for."""
        run = self._runs.get(run_id)
        if run is None:
            return
        if not run.is_recording:  # nor are its firings: they only hold what is counted
            run.firings[activation] = _Firing(run.span, run.context)
            return
        frame, node, ordinal = activation
        path, sources = activation.path if frame else node, run.ended.before(activation)
        operation = "invoke_workflow" if kind == "graph" else "node"
        attributes: dict[str, Any] = {
            "axil.run.id": run_id,
            "axil.activation": str(activation) if frame or ordinal else node,
            "axil.node.kind": kind,
            "graph.node.id": path,
        }
        if frame and (rounds := [part for part in frame if isinstance(part, int)]):
            attributes["axil.rounds"] = rounds
        links: list[Link] | None = None
        if sources:
            if len(sources) > 1:  # a list costs several times as much as a text
                attributes["axil.node.sources"] = [*sources]
            attributes["graph.node.parent_id"] = path[: -len(node)] + next(iter(sources))
            links = [Link(span, {"axil.link": name}) for name, span in sources.items()]
        labels = _NONE
        if kind == "graph":
            labels = {"gen_ai.operation.name": operation, "gen_ai.workflow.name": path}
            attributes |= labels
        context = run.around(frame) if frame else run.context
        span = self._tracer.start_span(
            f"{operation} {path}", context, links=links, attributes=attributes
        )
        run.firings[activation] = _Firing(span, trace.set_span_in_context(span, context), labels)

    def firing_ended(
        self, run_id: str, activation: Activation, error: BaseException | None
    ) -> None:
        """End the span of a firing; one that was read from a record has none."""
        run = self._runs.get(run_id)
        if run is not None and activation in run.firings:
            self._end_firing(run, activation, "done" if error is None else "failed", error)

    def _end_firing(
        self, run: _Run, activation: Activation, outcome: str, error: BaseException | None = None
    ) -> None:
        firing = run.firings.pop(activation)
        for name in [*firing.steps]:
            self._end_step(firing, name, outcome)
        if error is not None:
            self._fail(firing, _cause(error))
        if firing.is_agent:
            self._operations.record(firing.seconds, firing.labels, context=firing.context)
        if firing.used:
            for name, amount in firing.used.items():
                run.used[name] = run.used.get(name, 0) + amount
        if not run.is_recording:
            return
        span = firing.span
        span.set_attribute("axil.outcome", outcome)
        if firing.used:
            span.set_attributes({f"gen_ai.usage.{name}": n for name, n in firing.used.items()})
        if outcome == "done":
            run.ended.add(activation, span.get_span_context())
        span.end()

    # ------------------------------------------------------------------ steps

    def step_started(
        self, run_id: str, activation: Activation, step: str, request: Any, calls: str
    ) -> None:
        """Start the span of a step, and make it the current one in the task that takes it."""
        run = self._runs.get(run_id)
        firing = None if run is None else run.firings.get(activation)
        if run is None or firing is None:
            return
        given = cast("Mapping[str, Any]", request if isinstance(request, Mapping) else {})
        attributes: dict[str, Any]
        if calls == "model":
            kind, labels, attributes = "chat", *self._asked(run, firing, activation, given)
            name = " ".join(("chat", *filter(None, [labels.get("gen_ai.request.model")])))
        elif calls == "tool":
            kind, called = "execute_tool", str(given.get("name"))
            labels = {"gen_ai.operation.name": kind, "gen_ai.tool.name": called}
            attributes = {"gen_ai.tool.type": "function"}
            at = int(tool[1]) if (tool := _TOOL_STEP.search(step)) else len(firing.calls)
            if at < len(firing.calls):
                attributes["gen_ai.tool.call.id"] = firing.calls[at]
            if self._content is not None:
                text = self._content.data(given["arguments"])
                attributes["gen_ai.tool.call.arguments"] = text
            name = f"{kind} {called}"
        else:
            kind, labels, attributes, name = "", {}, {}, f"step {step}"
        span = self._tracer.start_span(
            name,
            firing.context,
            kind=SpanKind.CLIENT if kind == "chat" else SpanKind.INTERNAL,
            attributes={"axil.run.id": run_id, "axil.step": step, **labels, **attributes},
        )
        made = _Step(span, trace.set_span_in_context(span, firing.context), labels, kind=kind)
        firing.steps[step] = made
        made.task = _task()
        if made.task is not None:
            made.token = contexts.attach(made.context)

    def _asked(
        self, run: _Run, firing: _Firing, activation: Activation, request: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the labels and further attributes of a model call; its node is an agent."""
        provider, model = run.models.get(activation.path, ("", ""))
        labels: dict[str, Any] = {"gen_ai.operation.name": "chat"}
        if provider:
            labels["gen_ai.provider.name"] = provider
        if model:
            labels["gen_ai.request.model"] = model
        if not firing.is_agent:
            firing.is_agent = True
            firing.labels = {
                **labels,
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": activation.node,
            }
            firing.span.update_name(f"invoke_agent {activation.node}")
            firing.span.set_attributes(firing.labels)
        settings: Mapping[str, Any] = request["settings"]
        attributes: dict[str, Any] = {
            f"gen_ai.request.{name}": settings[given]
            for given, name in _SETTINGS.items()
            if isinstance(settings.get(given), (int, float))
        }
        if self._content is not None:
            messages = [message_parts(each) for each in request["messages"]]
            attributes["gen_ai.input.messages"] = self._content.data(messages)
            if request.get("tools"):
                tools = [{"type": "function", **tool} for tool in request["tools"]]
                attributes["gen_ai.tool.definitions"] = self._content.data(tools)
        return labels, attributes

    def chunk(self, run_id: str, activation: Activation, chunk: Any) -> None:
        """Note how long the first chunk of a reply took."""
        run = self._runs.get(run_id)
        firing = None if run is None else run.firings.get(activation)
        if firing is None or not isinstance(chunk, Mapping):
            return
        if cast("Mapping[str, Any]", chunk).get("kind") == "guard":
            self._guarded(firing, cast("Mapping[str, Any]", chunk))
            return
        if cast("Mapping[str, Any]", chunk).get("kind") not in _REPLY_CHUNKS:
            return
        for step in firing.steps.values():
            if step.kind == "chat" and not step.has_chunk:
                step.has_chunk, seconds = True, step.seconds
                step.span.set_attribute("gen_ai.response.time_to_first_chunk", seconds)
                self._first.record(seconds, step.labels, context=step.context)

    def _guarded(self, firing: _Firing, chunk: Mapping[str, Any]) -> None:
        """Note that a guard has tripped, and count it."""
        names = ("guard", "place", "action")
        labels = {f"axil.guard.{name}": str(chunk.get(name)) for name in names}
        firing.span.add_event("axil.guard", labels)
        self._trips.add(1, labels, context=firing.context)

    def step_finished(self, run_id: str, activation: Activation, step: str, result: Any) -> None:
        """End the span of a step."""
        run = self._runs.get(run_id)
        firing = None if run is None else run.firings.get(activation)
        made = None if firing is None else firing.steps.get(step)
        if firing is None or made is None:
            return
        given = cast("Mapping[str, Any]", result if isinstance(result, Mapping) else {})
        if made.kind == "chat":
            self._answered(firing, made, given)
        elif made.kind == "execute_tool":
            if given.get("failed"):  # its error went to the model
                self._fail(made, "tool_error")
            if self._content is not None:
                text = self._content.data(given.get("content"))
                made.span.set_attribute("gen_ai.tool.call.result", text)
        self._end_step(firing, step, "done")

    def step_failed(
        self, run_id: str, activation: Activation, step: str, error: BaseException
    ) -> None:
        """End the span of a step that raised, was cancelled, or pauses its run."""
        run = self._runs.get(run_id)
        firing = None if run is None else run.firings.get(activation)
        made = None if firing is None else firing.steps.get(step)
        if firing is None or made is None:
            return
        if isinstance(error, Exception):
            self._fail(made, error)
            self._end_step(firing, step, "failed")
        else:
            is_cancelled = isinstance(error, asyncio.CancelledError)
            self._end_step(firing, step, "cancelled" if is_cancelled else "paused")

    def _end_step(self, firing: _Firing, name: str, outcome: str) -> None:
        step = firing.steps.pop(name)
        step.span.set_attribute("axil.outcome", outcome)
        if step.kind:
            self._operations.record(step.seconds, step.labels, context=step.context)
        if step.token is not None and _task() is step.task:
            contexts.detach(step.token)
        step.span.end()

    def _answered(self, firing: _Firing, step: _Step, reply: Mapping[str, Any]) -> None:
        """Add the reply of a model to the span of its call, and count its tokens."""
        span, used = step.span, cast("Mapping[str, Any]", reply.get("usage") or {})
        if reply.get("model"):
            step.labels = {**step.labels, "gen_ai.response.model": str(reply["model"])}
            span.set_attribute("gen_ai.response.model", str(reply["model"]))
            if "gen_ai.request.model" not in step.labels:
                span.update_name(f"chat {reply['model']}")
        finish = str(reply.get("finish") or "")
        if finish:
            span.set_attribute("gen_ai.response.finish_reasons", [_FINISH.get(finish, finish)])
        for kind in ("input", "output"):
            amount = int(used.get(f"{kind}_tokens") or 0)
            span.set_attribute(f"gen_ai.usage.{kind}_tokens", amount)
            labels = {**step.labels, "gen_ai.token.type": kind}
            self._tokens.record(amount, labels, context=step.context)
            firing.used[f"{kind}_tokens"] = firing.used.get(f"{kind}_tokens", 0) + amount
        details = {"cached_tokens": "cache_read.input", "reasoning_tokens": "reasoning.output"}
        for given, name in details.items():
            if used.get(given):
                span.set_attribute(f"gen_ai.usage.{name}_tokens", int(used[given]))
        calls = cast("list[Mapping[str, Any]]", reply.get("tool_calls") or [])
        firing.calls = [str(call.get("id")) for call in calls]
        if self._content is not None:
            answer = {"role": "assistant", "content": reply.get("text"), "tool_calls": calls}
            message = {**message_parts(answer), "finish_reason": _FINISH.get(finish, finish)}
            span.set_attribute("gen_ai.output.messages", self._content.data([message]))

    def _fail(self, timed: _Timed, error: BaseException | str) -> None:
        """Mark a span as failed. Texts of errors are contents."""
        kind = error if isinstance(error, str) else _name(type(error))
        timed.labels = {**timed.labels, "error.type": kind}
        timed.span.set_attribute("error.type", kind)
        text = None
        if self._content is not None and not isinstance(error, str):
            text = self._content.text(error)
        timed.span.set_status(Status(StatusCode.ERROR, text))


def _cause(error: BaseException) -> BaseException:
    """Return what a node that failed has raised."""
    while isinstance(error, NodeFailed) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _name(kind: type[BaseException]) -> str:
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def _task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        return None
