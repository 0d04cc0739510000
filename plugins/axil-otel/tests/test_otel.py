"""Runs become traces: their spans, links, contents and metrics, as an SDK receives them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler

import axil
import axil_control
import axil_files
import axil_journals
from axil.plugin import hook_manager
from axil_agent import Agent, Scripted
from axil_otel import OpenTelemetry
from axil_testing.kit import HookKit


class Telemetry:
    """An SDK that keeps what it receives."""

    def __init__(self, sampler: Sampler = ALWAYS_ON, **settings: Any) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider(sampler, shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.hook = OpenTelemetry(tracer_provider=tracers, meter_provider=meters, **settings)
        self.hooks = hook_manager([self.hook])
        self.tracer = tracers.get_tracer("tests")

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        """Return spans by name, in the order in which they began."""
        found = [span for span in self.spans if span.name == name]
        return sorted(found, key=lambda span: span.start_time or 0)

    def one(self, name: str) -> ReadableSpan:
        names = [span.name for span in self.spans]
        assert names.count(name) == 1, names
        return self.named(name)[0]

    def tree(self) -> dict[str, str | None]:
        """Return the names of spans with those of their parents."""
        by_id = {span.context.span_id: span.name for span in self.spans}
        return {
            span.name: by_id[span.parent.span_id] if span.parent else None for span in self.spans
        }

    def links(self, span: ReadableSpan) -> list[str]:
        by_id = {each.context.span_id: each.name for each in self.spans}
        return sorted(by_id[link.context.span_id] for link in span.links)

    def points(self, metric: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for each in scope.metrics
            if each.name == metric
            for point in each.data.data_points
        ]


class TestOpenTelemetry(HookKit):
    def make(self) -> Any:
        return Telemetry(content=True).hook


def fan(telemetry: Telemetry, **bodies: Any) -> axil.Workflow:
    """Return a workflow: ``a``, then ``b`` and ``c`` side by side, then ``d``."""
    graph = axil.RootGraph("fan", hooks=telemetry.hooks)

    def usual(name: str) -> Any:
        async def run(inputs: dict[str, Any]) -> dict[str, Any]:
            return {name: 1}

        return run

    a, b, c, d = (graph.create_node(bodies.get(n) or usual(n), name=n) for n in "abcd")
    graph.edge_from_entry(a, {})
    for name, middle in (("b", b), ("c", c)):
        graph.create_edge(a, middle, ["a"])
        graph.create_edge(middle, d, [name])
    graph.edge_to_exit(d, ["d"])
    return graph.build()


def test_a_join_links_to_all_its_sources():
    telemetry = Telemetry()
    with telemetry.tracer.start_as_current_span("request"):
        fan(telemetry).invoke({}, run_id="r")
    assert telemetry.tree() == {
        "request": None,
        "invoke_workflow fan": "request",
        **{f"node {name}": "invoke_workflow fan" for name in "abcd"},
    }
    assert telemetry.links(telemetry.one("node d")) == ["node b", "node c"]
    assert telemetry.links(telemetry.one("node b")) == ["node a"]
    run, join = telemetry.one("invoke_workflow fan"), telemetry.one("node d")
    assert run.attributes
    assert join.attributes
    assert run.attributes["gen_ai.operation.name"] == "invoke_workflow"
    assert run.attributes["axil.workflow.nodes"] == ("a", "b", "c", "d")
    assert "b->d" in run.attributes["axil.workflow.edges"]
    assert run.attributes["axil.run.status"] == "done"
    assert join.attributes["axil.run.id"] == "r"
    assert join.attributes["axil.node.sources"] == ("b", "c")
    [duration] = telemetry.points("gen_ai.workflow.duration")
    assert duration.count == 1
    assert duration.attributes["gen_ai.workflow.name"] == "fan"
    assert duration.attributes["axil.run.status"] == "done"


def test_a_node_that_fails_ends_its_span_and_that_of_the_run_with_the_error():
    def fails(inputs: dict[str, Any]) -> None:
        raise ValueError("the password of ann@example.org")

    secret = Telemetry()
    with pytest.raises(axil.NodeFailed):
        fan(secret, b=fails).invoke({})
    for name in ("node b", "invoke_workflow fan"):
        span = secret.one(name)
        assert span.status.status_code is trace.StatusCode.ERROR
        assert span.attributes
        assert span.attributes["error.type"] == "ValueError"
    assert "password" not in "".join(span.to_json() for span in secret.spans)
    shown = Telemetry(content=True)
    with pytest.raises(axil.NodeFailed):
        fan(shown, b=fails).invoke({})
    assert shown.one("node b").status.description == "the password of [redacted]"


@pytest.mark.parametrize("in_folder", [False, True])
def test_a_resumed_run_links_to_the_trace_that_it_continues(tmp_path: Path, in_folder: bool):
    first = Telemetry(traces=tmp_path / "traces" if in_folder else None)
    journal = axil_journals.MemoryJournal()

    async def asks(inputs: dict[str, Any], ctx: axil.Context) -> dict[str, Any]:
        async def reads() -> str:
            return "read"

        await ctx.step("read", reads)
        return {"b": await ctx.ask("Which?", name="which")}

    flow = fan(first, b=asks)
    options = {"journal": journal, "run_id": "r"}
    paused = asyncio.run(flow.start({}, **options, hooks=first.hooks).result())
    assert paused.status == "paused"
    outcome = first.one("node b").attributes
    assert outcome
    assert outcome["axil.outcome"] == "paused"
    assert first.one("invoke_workflow fan").status.status_code is trace.StatusCode.UNSET
    earlier = first.one("invoke_workflow fan").context
    # another process finds the trace in the folder; without one it is this hook that knows it
    second = Telemetry(traces=tmp_path / "traces") if in_folder else first
    first.exporter.clear()
    answers = {paused.questions[0].id: "this"}
    result = asyncio.run(
        flow.start({}, **options, answers=answers, resuming=True, hooks=second.hooks).result()
    )
    assert result.status == "done"
    run = second.one("invoke_workflow fan")
    assert [link.context.trace_id for link in run.links] == [earlier.trace_id]
    assert [link.context.span_id for link in run.links] == [earlier.span_id]
    assert run.context.trace_id != earlier.trace_id
    assert run.attributes
    assert run.attributes["axil.run.resumed"] is True
    # what was recorded was not done again, and is not shown as if it were
    spans = {span.name for span in second.spans}
    assert {"node b", "node d"} <= spans
    assert spans.isdisjoint({"node a", "node c", "step read"})
    assert not list(tmp_path.glob("traces/*"))


def test_each_round_of_a_loop_links_to_the_one_before():
    telemetry = Telemetry()
    graph = axil.RootGraph("turns", hooks=telemetry.hooks)
    first = graph.create_node(lambda inputs: {"n": 1}, name="first")
    loop = graph.create_node(axil_control.Loop, name="loop", max_iterations=3)
    turn = loop.create_node(lambda inputs: {"n": inputs["n"] + 1}, name="turn")
    loop.edge_from_controller(turn, {"n": ""})
    loop.edge_to_controller(turn, {"n": ""})
    graph.edge_from_entry(first, {})
    graph.create_edge(first, loop, ["n"])
    graph.edge_to_exit(loop, ["n"])
    assert graph.build().invoke({})[0] == {"n": 4}
    [cycle] = [span for span in telemetry.spans if span.name.startswith("node loop/cycle(")]
    tree = telemetry.tree()
    assert tree["node loop/turn"] == cycle.name
    assert tree[cycle.name] == "invoke_workflow loop"
    assert tree["invoke_workflow loop"] == "invoke_workflow turns"
    assert telemetry.links(telemetry.one("invoke_workflow loop")) == ["node first"]
    turns = telemetry.named("node loop/turn")
    controls = telemetry.named("node loop/controller")
    assert [dict(span.attributes or {})["axil.rounds"] for span in turns] == [(0,), (1,), (2,)]
    for number, span in enumerate(turns):
        assert [link.context for link in span.links] == [controls[number].context]
    for number, span in enumerate(controls[1:]):
        assert [link.context for link in span.links] == [turns[number].context]


def weather(city: str, api_key: str = "") -> str:
    """Tell the weather.

    Args:
        city: where
        api_key: whose
    """
    with_span.append(trace.get_current_span())
    return "rain " * 20


with_span: list[trace.Span] = []


def agent(telemetry: Telemetry, *tools: Any) -> axil.Workflow:
    call = {"name": "weather", "arguments": {"city": "Oslo", "api_key": "hush-hush"}}
    model = Scripted(
        [
            {"tool_calls": [call], "usage": {"input_tokens": 7, "output_tokens": 3}},
            {"text": '{"answer": "rain"}', "usage": {"input_tokens": 11, "output_tokens": 2}},
        ]
    )
    graph = axil.RootGraph("forecast", hooks=telemetry.hooks)
    node = graph.create_node(
        Agent,
        name="forecaster",
        model=model,
        tools=list(tools),
        instructions="Use sk-abcdefghijklmnop.",
        model_settings={"temperature": 0.5, "max_tokens": 90},
    )
    graph.edge_from_entry(node, ["question"])
    graph.edge_to_exit(node, ["answer"])
    return graph.build()


def stream(flow: axil.Workflow) -> list[str]:
    async def run() -> list[str]:
        return [event.kind async for event in flow.stream({"question": "Umbrella?"})]

    return asyncio.run(run())


def test_an_agent_that_streams_has_spans_of_its_models_and_tools():
    telemetry = Telemetry()
    with_span.clear()
    assert "chunk" in stream(agent(telemetry, weather))
    chats = [span for span in telemetry.spans if span.name.startswith("chat")]
    acting, tool = telemetry.one("invoke_agent forecaster"), telemetry.one("execute_tool weather")
    for span in (*chats, tool):
        assert span.parent
        assert span.parent.span_id == acting.context.span_id
    assert [span.kind for span in chats] == [trace.SpanKind.CLIENT] * 2
    first, last = (dict(span.attributes or {}) for span in chats)
    assert first["gen_ai.request.temperature"] == 0.5
    assert first["gen_ai.request.max_tokens"] == 90
    assert (first["gen_ai.usage.input_tokens"], first["gen_ai.usage.output_tokens"]) == (7, 3)
    assert first["gen_ai.response.finish_reasons"] == ("tool_call",)
    assert last["gen_ai.response.time_to_first_chunk"] >= 0
    whole = dict(acting.attributes or {})
    assert (whole["gen_ai.usage.input_tokens"], whole["gen_ai.usage.output_tokens"]) == (18, 5)
    assert dict(tool.attributes or {})["gen_ai.tool.call.id"]
    # the tool runs in its span: what it asks over HTTP is inside, with its traceparent
    assert [span.get_span_context() for span in with_span] == [tool.context]
    assert not [name for name in first if "messages" in name]
    assert "Umbrella" not in "".join(span.to_json() for span in telemetry.spans)

    tokens = telemetry.points("gen_ai.client.token.usage")
    sums = {point.attributes["gen_ai.token.type"]: point.sum for point in tokens}
    assert sums == {"input": 18, "output": 5}
    durations = telemetry.points("gen_ai.client.operation.duration")
    counts = {point.attributes["gen_ai.operation.name"]: point.count for point in durations}
    assert counts == {"chat": 2, "execute_tool": 1, "invoke_agent": 1}
    [point] = telemetry.points("gen_ai.client.operation.time_to_first_chunk")
    assert point.count == 1


def test_a_run_that_is_not_sampled_has_no_spans_and_is_counted():
    telemetry = Telemetry(ALWAYS_OFF)
    with_span.clear()
    assert agent(telemetry, weather).invoke({"question": "?"})[0] == {"answer": "rain"}
    assert telemetry.spans == []
    assert [span.get_span_context().trace_flags.sampled for span in with_span] == [False]
    tokens = telemetry.points("gen_ai.client.token.usage")
    assert sum(point.sum for point in tokens) == 23
    assert [point.count for point in telemetry.points("gen_ai.workflow.duration")] == [1]


def test_contents_are_redacted_and_cut(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    telemetry = Telemetry(longest=40)
    agent(telemetry, weather).invoke({"question": "Umbrella?"})
    last = [dict(s.attributes or {}) for s in telemetry.spans if s.name.startswith("chat")][-1]
    messages: list[Mapping[str, Any]] = json.loads(str(last["gen_ai.input.messages"]))
    assert [each["role"] for each in messages] == ["system", "user", "assistant", "tool"]
    assert messages[0]["parts"][0]["content"].startswith("Use [redacted].")
    assert "Umbrella?" in messages[1]["parts"][0]["content"]
    assert messages[2]["parts"][0]["arguments"] == {"city": "Oslo", "api_key": "[redacted]"}
    assert messages[3]["parts"][0]["response"][0]["content"].endswith(" more characters]")
    tool = dict(telemetry.one("execute_tool weather").attributes or {})
    assert json.loads(str(tool["gen_ai.tool.call.arguments"]))["city"] == "Oslo"
    assert str(tool["gen_ai.tool.call.result"]).startswith('"rain rain')
    assert "hush" not in "".join(span.to_json() for span in telemetry.spans)


def test_a_tool_that_fails_is_an_error_of_its_span_alone():
    def weather(city: str, api_key: str) -> str:
        """Tell the weather."""
        raise ConnectionError("no line")

    telemetry = Telemetry()
    assert agent(telemetry, weather).invoke({"question": "?"})[0] == {"answer": "rain"}
    failed = [s.name for s in telemetry.spans if s.status.status_code is trace.StatusCode.ERROR]
    assert failed == ["execute_tool weather"]


def test_a_file_names_the_provider_and_the_model(tmp_path: Path):
    node = {
        "id": "writer",
        "type": "agent",
        "config": {"model": {"type": "openai", "name": "small-1", "api_key": "k"}},
    }
    file = tmp_path / "flow.json"
    edges = [{"from": "@entry", "to": "writer"}, {"from": "writer", "to": "@exit"}]
    graph = {"id": "f", "nodes": [node], "edges": edges}
    file.write_text(json.dumps({"version": 1, "graph": graph}))
    telemetry = Telemetry()
    with Scripted(["words"]).everywhere():
        axil_files.load(file, hooks=telemetry.hooks).invoke("write")
    chat = dict(telemetry.one("chat small-1").attributes or {})
    assert chat["gen_ai.provider.name"] == "openai"
    assert chat["gen_ai.request.model"] == "small-1"


def test_runs_at_once_are_traces_of_their_own():
    telemetry = Telemetry()
    flow = fan(telemetry)

    async def several() -> None:
        await asyncio.gather(*(flow.start({}).result() for _ in range(5)))

    asyncio.run(several())
    traces: dict[int, list[str]] = {}
    for span in telemetry.spans:
        traces.setdefault(span.context.trace_id, []).append(span.name)
    assert len(traces) == 5
    names = ["invoke_workflow fan", "node a", "node b", "node c", "node d"]
    assert all(sorted(each) == names for each in traces.values())


def test_nothing_of_opentelemetry_is_imported_before_a_run():
    code = (
        "import sys; from axil_otel import OpenTelemetry; OpenTelemetry(); "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_a_guard_that_trips_is_an_event_and_counted():
    def body(inputs: Any, ctx: Any) -> dict[str, Any]:
        ctx.note({"kind": "guard", "guard": "pii", "place": "input", "action": "mask"})
        return {"text": ""}

    telemetry = Telemetry()
    graph = axil.RootGraph("guarded", hooks=telemetry.hooks)
    node = graph.create_node(body, name="n")
    graph.edge_from_entry(node, {})
    graph.edge_to_exit(node, ["text"])
    graph.build().invoke({})
    [event] = telemetry.one("node n").events
    assert event.name == "axil.guard"
    assert dict(event.attributes or {})["axil.guard.action"] == "mask"
    [point] = telemetry.points("axil.guard.trips")
    assert point.value == 1
