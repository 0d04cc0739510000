"""What durability costs: a thousand steps one after the other, a hundred runs together, and what is left on the disk.

    python tests/benchmarks/durable.py [--write] [--quick] [--beside PYTHON]

``--beside``: an interpreter in whose environment langgraph and langgraph-checkpoint-sqlite are installed. The same work is then done
there too, in turns with ours, so that both meet the same machine. ``--write`` puts the table into docs/explanation/performance.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from axil import CycleLimit, EdgeSpec, GraphSpec, NodeSpec, Out, Workflow
from axil.fields import APPEND, Field
from axil.state import Schema
from axil_sqlite import SqliteJournal

HERE = Path(__file__).resolve()
PAGE = HERE.parents[2] / "docs/explanation/performance.md"
BEGIN, END = "<!-- durable: begin -->", "<!-- durable: end -->"


@dataclass(frozen=True, kw_only=True)
class Work:
    """``runs`` at once, each of ``steps``; a step counts, and adds a message of so many bytes to a list that is state."""

    name: str
    steps: int
    runs: int = 1
    bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What it took."""

    seconds: float
    bytes: int
    """On the disk, in all files."""


class Step:
    """One round: an asynchronous body, which starts when all before it is safe."""

    mode, wants_ctx = "async", False

    def __init__(self, bytes: int) -> None:
        self.bytes = bytes

    def adapted(self, rules: Any) -> Any:
        return self

    async def __call__(self, task: Any, ctx: Any, /) -> Out:
        n = task.state["n"] + 1
        return Out(n, {"n": n, "log": [f"{n:>{self.bytes}}"]} if self.bytes else {"n": n})


def flow(work: Work) -> Workflow:
    """One node that leads back to itself."""
    edges = (
        EdgeSpec(source="@entry", target="step"),
        EdgeSpec(source="step", target="step", condition=lambda payload: payload < work.steps),
        EdgeSpec(source="step", target="@exit", condition=lambda payload: payload >= work.steps),
    )
    schema = Schema("work", {"n": Field("n", default=int), "log": Field("log", APPEND, default=list)}, closed=True)
    limits = {"": CycleLimit(rounds=None)}
    made = Workflow(
        GraphSpec(id="bench", nodes=(NodeSpec(id="step", body=Step(work.bytes)),), edges=edges, schema=schema, cycle_limits=limits)
    )
    made.plan  # noqa: B018  # compiled when it is first asked for
    return made


def on_disk(folder: str) -> int:
    """Bytes of all files."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def here(work: Work, sync: Literal["full", "normal", ""], detail: int = 10_000) -> Taken:
    """By axil; ``sync`` empty: without a journal."""
    made = flow(work)

    async def go(journal: Any) -> None:
        results = await asyncio.gather(*(made.start({}, journal=journal, run_id=f"r{i}").result() for i in range(work.runs)))
        assert all(len(result.attributes["log"]) == (work.steps if work.bytes else 0) for result in results)
        assert {result.attributes["n"] for result in results} == {work.steps}

    with tempfile.TemporaryDirectory() as folder:
        journal = SqliteJournal(folder, sync=sync, detail=detail) if sync else None
        if journal is not None:
            journal.runs()
        begin = time.perf_counter()
        asyncio.run(go(journal))
        seconds = time.perf_counter() - begin
        if journal is not None:
            journal.close()
        return Taken(seconds=seconds, bytes=on_disk(folder) if journal is not None else 0)


def beside(python: str, work: Work) -> Taken:
    """By LangGraph, in an interpreter that has it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, str(HERE.with_name("durable_beside.py")), folder, json.dumps(asdict(work))]
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
        return Taken(seconds=float(told.stdout), bytes=on_disk(folder))


def table(*, quick: bool, python: str) -> str:
    """The figures, as Markdown."""
    steps, times = (100, 3) if quick else (1000, 5)
    works = (
        Work(name=f"{steps:,} steps", steps=steps),
        Work(name=f"100 runs at once, of {steps // 50} steps", steps=steps // 50, runs=100),
        Work(name=f"{steps:,} steps, each adding 1 KB to a list", steps=steps, bytes=1024),
    )
    rows = ["| work | by | ms a step | of LangGraph's time | MB on the disk |", "|---|---|---:|---:|---:|"]
    for work in works:
        ways: dict[str, Callable[[], Taken]] = {
            "no journal": lambda work=work: here(work, ""),
            "`normal`": lambda work=work: here(work, "normal"),
            "`full`": lambda work=work: here(work, "full"),
            "`full`, `detail` 0": lambda work=work: here(work, "full", 0),
        }
        if python:
            ways["LangGraph"] = lambda work=work: beside(python, work)
        taken: dict[str, list[Taken]] = {name: [] for name in ways}
        for _ in range(times):
            for name, way in ways.items():
                taken[name].append(way())
        medians = {name: statistics.median(each.seconds for each in several) for name, several in taken.items()}
        for name, seconds in medians.items():
            ratio = f"{seconds / medians['LangGraph']:.2f}" if python else ""
            size = statistics.median(each.bytes for each in taken[name]) / 1e6
            rows.append(f"| {work.name} | {name} | {seconds / work.steps / work.runs * 1e3:.3f} | {ratio} | {size:.1f} |")
    return "\n".join([*rows, "", f"2 cores, shared with others; medians of {times}, in turns."])


def main() -> None:
    parser = argparse.ArgumentParser(description="What durability costs.")
    parser.add_argument("--write", action="store_true", help="put the table into docs/explanation/performance.md")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--beside", default="", metavar="PYTHON", help="an interpreter that has langgraph and langgraph-checkpoint-sqlite")
    options = parser.parse_args()
    figures = table(quick=options.quick, python=options.beside)
    print(figures)
    if options.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{figures}\n\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()
