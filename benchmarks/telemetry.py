"""Costs of spans: processor time for each firing of a chain, beyond that without axil-otel; and
what the SDK's own start and end cost by hand, with the same attributes.

    python benchmarks/telemetry.py [NODES]

With an exporter that drops everything, without a sampled trace, and without an SDK.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from axil import RootGraph
from axil.plugin import hook_manager
from axil_otel import OpenTelemetry


class Dropping(SpanExporter):
    """An exporter that drops every span."""

    def export(self, spans: object) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def provider(**settings: object) -> TracerProvider:
    """Return a provider of spans that are dropped."""
    made = TracerProvider(shutdown_on_exit=False, **settings)
    made.add_span_processor(SimpleSpanProcessor(Dropping()))
    return made


def chain(nodes: int, *hooks: OpenTelemetry) -> RootGraph:
    """Return nodes in a row, with async bodies."""

    async def body(inputs):
        return {"x": inputs["x"] + 1}

    graph = RootGraph("chain", hooks=hook_manager(hooks) if hooks else None)
    before = None
    for at in range(nodes):
        node = graph.create_node(body, name=f"n{at}")
        if before is None:
            graph.edge_from_entry(node, ["x"])
        else:
            graph.create_edge(before, node, ["x"])
        before = node
    graph.edge_to_exit(before, ["x"])
    return graph.build()


def by_hand(nodes: int, *, is_bare: bool) -> None:
    """Start and end as many spans as a chain has nodes."""
    tracer = BY_HAND.get_tracer("hand")
    run = tracer.start_span("invoke_workflow chain")
    context, last = trace.set_span_in_context(run), run.get_span_context()
    for at in range(nodes):
        name = f"n{at}"
        attributes = {
            "axil.run.id": "0123456789abcdef",
            "axil.activation": name,
            "axil.node.kind": "node",
            "graph.node.id": name,
            "graph.node.parent_id": name,
        }
        links = [trace.Link(last, {"axil.link": name})]
        span = (
            tracer.start_span(name, context)
            if is_bare
            else tracer.start_span(name, context, attributes=attributes, links=links)
        )
        if not is_bare:
            span.set_attribute("axil.outcome", "done")
        last = span.get_span_context()
        span.end()
    run.end()


BY_HAND = provider()


def main() -> int:
    """Measure in turn, print microseconds for each node, and return the exit code."""
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    metrics = MeterProvider(shutdown_on_exit=False)
    plain = chain(nodes)
    flows = {
        "exported": OpenTelemetry(tracer_provider=provider(), meter_provider=metrics),
        "not sampled": OpenTelemetry(
            tracer_provider=provider(sampler=ALWAYS_OFF), meter_provider=metrics
        ),
        "without an SDK": OpenTelemetry(),
    }
    acts: dict[str, Callable[[], object]] = {"without axil-otel": lambda: plain.invoke({"x": 0})}
    for name, hook in flows.items():
        acts[name] = partial(chain(nodes, hook).invoke, {"x": 0})
    acts["SDK by hand"] = lambda: by_hand(nodes, is_bare=False)
    acts["SDK by hand, bare"] = lambda: by_hand(nodes, is_bare=True)
    least = dict.fromkeys(acts, float("inf"))
    for _ in range(15):  # in turn, so that a busy machine is busy for all
        for name, act in acts.items():
            began = time.process_time()
            act()
            least[name] = min(least[name], (time.process_time() - began) / nodes * 1e6)
    for name, each in least.items():
        more = each - least["without axil-otel"] if name in flows else each
        print(f"{name:20} {more:7.2f} µs{' more' if name in flows else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
