"""Costs of a DevAll workflow beside the models it asks: the run's time against that of its bodies,
in one run.

    python benchmarks/devall.py [FILE …] [--write]

The model takes 5 to 20 ms a reply, by turns, and says "OK". Bodies are what nodes run: an agent's
with the model that it asks. Those that run side by side are counted once: the time in which any of
them is at work. How much of it is the models' is said, too. Without a FILE it is a company of ten
phases, made here; ``--write`` puts the table into docs/explanation/performance/index.md.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from axil import Workflow, hookimpl, run_sync
from axil.plugin import CompileOptions, Registry, hook_manager
from axil_agent import models_through
from axil_files import Document, LoadOptions, load_spec, spec_from_document
from axil_models import Reply, Tool

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.internals import internal

TOOLS = internal("devall_functions").TOOLS

PAGE = Path(__file__).resolve().parents[1] / "docs/explanation/performance/index.md"
BEGIN, END = "<!-- devall: begin -->", "<!-- devall: end -->"
ENVIRONMENT = {"API_KEY": "none", "BASE_URL": "http://localhost"}


def company(phases: int) -> dict[str, Any]:
    """Return a file of DevAll: phases of a writer and a reviewer who turn three times each, with a
    counter that lets them go.
    """
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    lacks, has = ({"type": "keyword", "config": {which: ["DONE"]}} for which in ("none", "any"))
    for i in range(phases):
        prompt, writer, reviewer, count = (
            f"{name} {i}" for name in ("Prompt", "Writer", "Reviewer", "Count")
        )
        config = {
            "provider": "openai",
            "name": "small",
            "api_key": "${API_KEY}",
            "base_url": "${BASE_URL}",
            "tooling": [],
            "retry": None,
        }
        nodes += [
            {"id": prompt, "type": "literal", "config": {"content": f"Phase {i}."}},
            {
                "id": writer,
                "type": "agent",
                "context_window": -1,
                "config": {**config, "role": f"You write in phase {i}."},
            },
            {
                "id": reviewer,
                "type": "agent",
                "config": {**config, "role": f"You review in phase {i}."},
            },
            {"id": count, "type": "loop_counter", "config": {"max_iterations": 3, "message": ""}},
        ]
        edges += [
            {"from": prompt, "to": writer, "keep_message": True},
            {"from": writer, "to": reviewer},
            {"from": reviewer, "to": writer, "condition": lacks},
            {"from": reviewer, "to": count, "condition": lacks},
            {"from": count, "to": writer},
        ]
        after = f"Prompt {i + 1}" if i + 1 < phases else "End"
        edges += [
            {"from": count, "to": after, "carry_data": False},
            {"from": reviewer, "to": after, "condition": has, "carry_data": False},
        ]
    nodes.append({"id": "End", "type": "passthrough", "config": {}})
    return {
        "graph": {
            "id": "company",
            "start": ["Prompt 0"],
            "end": ["End"],
            "nodes": nodes,
            "edges": edges,
        }
    }


def registry() -> Registry:
    """Return all that is installed; functions that files name do nothing."""
    made = Registry(
        entry_points=[
            e
            for distribution in metadata.distributions()
            for e in distribution.entry_points
            if (e.group, e.name) not in {("axil.tools", n) for n in TOOLS}
        ]
    )
    for name in TOOLS:
        made.register(
            "tools",
            name,
            Tool(
                name=name,
                description="",
                parameters={"type": "object", "properties": {}},
                call=lambda: "",
            ),
        )
    return made


def workflow(data: dict[str, Any] | Path, watching: Watching | None = None) -> Workflow:
    """Return a file, or its content, as a workflow; ``watching``: its bodies are timed."""
    known = registry()
    if isinstance(data, Path):
        spec = load_spec(data, registry=known, environment=ENVIRONMENT)
    else:
        spec = spec_from_document(
            Document(data=data, name="company.json"),
            LoadOptions(registry=known, environment=ENVIRONMENT),
        )
    return Workflow(
        spec,
        CompileOptions(
            registry=known,
            environment=ENVIRONMENT,
            hooks=None if watching is None else hook_manager([watching]),
        ),
    )


@dataclass
class Busy:
    """A model that takes its time, and notes when."""

    waits: Iterable[float] = field(default_factory=lambda: itertools.cycle((0.005, 0.01, 0.02)))
    spans: list[tuple[float, float]] = field(default_factory=list)

    async def reply(self, request: Any, emit: Any) -> Reply:
        begin = time.perf_counter()
        await asyncio.sleep(next(iter(self.waits)))
        self.spans.append((begin, time.perf_counter()))
        return Reply(text="OK", finish="stop")


class Timed:
    """A body, and when it was at work."""

    def __init__(self, body: Any, spans: list[tuple[float, float]]) -> None:
        self.body, self.spans, self.mode = body, spans, body.mode
        self.wants_ctx = getattr(body, "wants_ctx", True)

    def __call__(self, task: Any, ctx: Any, /) -> Any:
        begin = time.perf_counter()
        out = self.body(task, ctx)
        if self.mode == "async":
            return self.awaited(out)
        self.spans.append((begin, time.perf_counter()))
        return out

    async def awaited(self, out: Any) -> Any:
        begin = time.perf_counter()
        try:
            return await out
        finally:
            self.spans.append((begin, time.perf_counter()))


@dataclass
class Watching:
    """A hook that times all bodies but those of graphs and cycles, whose own nodes are timed."""

    spans: list[tuple[float, float]] = field(default_factory=list)

    @hookimpl
    def wrap_body(self, spec: Any, body: Any) -> Any:
        return (
            None
            if body.mode == "scope" or getattr(body, "_single", None) is not None
            else Timed(body, self.spans)
        )


def united(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds in which at least one was at work."""
    total, until = 0.0, 0.0
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


@dataclass(frozen=True)
class Measured:
    """Run it once."""

    firings: int
    calls: int
    seconds: float
    busy: float
    """Seconds in which a body was at work."""
    replying: float
    """Seconds in which a reply was being made."""
    worked: float
    """Seconds of processor time: what the run costs where no other process is in its way."""

    @property
    def overhead(self) -> float:
        """The time of the run beyond its bodies, as a part of their time."""
        return self.seconds / self.busy - 1


def measured(data: dict[str, Any] | Path) -> Measured:
    """Return a run with such a model; the plan is made before."""
    model, watching = Busy(), Watching()
    with models_through(lambda meant, written: model), tempfile.TemporaryDirectory() as folder:
        flow = workflow(data, watching)

        async def go() -> tuple[Any, float, float]:
            async with flow:
                begin, work = time.perf_counter(), time.process_time()
                result = await flow.start("TASK", workspace=Path(folder)).result()
                return result, time.perf_counter() - begin, time.process_time() - work

        result, seconds, worked = run_sync(go())
    assert result.status == "done", result.error
    return Measured(
        result.usage.firings,
        len(model.spans),
        seconds,
        united(watching.spans),
        united(model.spans),
        worked,
    )


def table(subjects: dict[str, Any]) -> str:
    """Return the figures, as Markdown: the median of five runs."""
    rows = [
        "| workflow | firings | model calls | bodies, s | of it models | run beyond bodies | "
        "beyond models | processor time a firing, ms |"
    ]
    rows.append("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, data in subjects.items():
        runs = [measured(data) for _ in range(5)]
        each = runs[0]
        reported = [
            (r.busy, r.replying, r.overhead, r.seconds / r.replying - 1, r.worked / r.firings * 1e3)
            for r in runs
        ]
        busy, replying, beyond, asked, firing = (
            statistics.median(values) for values in zip(*reported, strict=True)
        )
        rows.append(
            f"| {name} | {each.firings} | {each.calls} | {busy:.2f} | {replying:.2f} | "
            f"{beyond:.1%} | {asked:.1%} | {firing:.2f} |"
        )
    return "\n".join(
        [*rows, "", f"{os.cpu_count()} processors, shared with others; medians of five runs."]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description="What a workflow of DevAll costs beside the models it asks."
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument(
        "--write",
        action="store_true",
        help="put the table into docs/explanation/performance/index.md",
    )
    options = parser.parse_args()
    made = {f"a company of {n} phases": company(n) for n in (10, 40)}
    figures = table({**{file.name: file for file in options.files}, **made})
    print(figures)
    if options.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
