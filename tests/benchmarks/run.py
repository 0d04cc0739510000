"""First figures: what the kernel costs beside a hand-written loop that does the same, measured in the same run.

    python tests/benchmarks/run.py [--write] [--quick]

Prints one table of medians. ``--write`` puts it into docs/explanation/performance.md, between the two markers, and makes the page if
there is none. Absolute times belong to one machine; the ratio to the baseline travels better, and call counts (``test_call_counts``) best.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axil import Workflow

if __package__:
    from . import retrieval, subjects
else:
    import retrieval
    import subjects

PAGE = Path(__file__).resolve().parents[2] / "docs/explanation/performance.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
FRESH = f"""# Performance

The kernel must vanish beside the work it schedules. These are first figures; `make bench` prints them for your machine,
`python tests/benchmarks/run.py --write` puts them here. The baseline is the same work written by hand, without an engine: no joins, no
dead paths, no journal, no limits.

{BEGIN}
{END}
"""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One line of the table."""

    name: str
    units: int
    """Firings, or rounds, of one run."""
    make: Callable[[], Workflow]
    baseline: Callable[[], Callable[[], Any]]


# ------------------------------------------------------------------------------------------------ the same by hand


def body(state: dict[str, Any]) -> dict[str, Any]:
    return state


def straight(n: int, fields: int = 0) -> Callable[[], Callable[[], Any]]:
    """A loop over functions that hand a dict on; with ``fields``, each writes one."""

    def prepare() -> Callable[[], Any]:
        bodies = [body] * n
        names = [f"f{i % fields}" for i in range(n)] if fields else []
        first = {f"f{i}": 0 for i in range(fields)}

        def go() -> Any:
            state = dict(first)
            if not fields:
                for call in bodies:
                    state = call(state)
                return state
            for call, name in zip(bodies, names, strict=True):
                call(state)[name] = 1
            return state

        return go

    return prepare


def spread(n: int) -> Callable[[], Callable[[], Any]]:
    """One, then ``n``, whose results are gathered for one."""

    def prepare() -> Callable[[], Any]:
        bodies = [body] * n

        def go() -> Any:
            state = body({})
            results = [call(state) for call in bodies]
            return body({"all": len(results)})

        return go

    return prepare


def sorted_graph(n: int, m: int) -> Callable[[], Callable[[], Any]]:
    """Counters of open predecessors and a queue: what anybody would write for an acyclic graph."""

    def prepare() -> Callable[[], Any]:
        edges = [(e.source, e.target) for e in subjects.dag(n, m).spec.edges if e.source != "@entry"]
        index = {f"n{i}": i for i in range(n)}
        successors: list[list[int]] = [[] for _ in range(n)]
        waits = [0] * n
        for source, target in edges:
            successors[index[source]].append(index[target])
            waits[index[target]] += 1

        def go() -> Any:
            open_edges, ready, inputs = list(waits), [0], [[] for _ in range(n)]
            for v in ready:
                out = body({"in": inputs[v]})
                for w in successors[v]:
                    inputs[w].append(out)
                    open_edges[w] -= 1
                    if not open_edges[w]:
                        ready.append(w)
            return len(ready)

        return go

    return prepare


def counted(rounds: int) -> Callable[[], Callable[[], Any]]:
    def prepare() -> Callable[[], Any]:
        def go() -> Any:
            state = {"n": 0}
            while True:
                state = {**body(state), "n": state["n"] + 1}
                if state["n"] >= rounds:
                    return state

        return go

    return prepare


def all_subjects(quick: bool) -> list[Subject]:
    """The lines of the table."""
    sizes = (10, 100, 1000) if quick else (10, 100, 1000, 10_000)
    lines = [Subject(name=f"chain of {n:,} inline nodes", units=n, make=lambda n=n: subjects.chain(n), baseline=straight(n)) for n in sizes]
    lines += [Subject(name=f"fan of {n:,}, out and in", units=n + 2, make=lambda n=n: subjects.fan(n), baseline=spread(n)) for n in sizes]
    lines.append(
        Subject(
            name="random acyclic graph, 1,000 nodes, 3,000 edges",
            units=1000,
            make=lambda: subjects.dag(1000, 3000),
            baseline=sorted_graph(1000, 3000),
        )
    )
    rounds = 1000 if quick else 10_000
    lines.append(Subject(name=f"loop of {rounds:,} rounds", units=rounds, make=lambda: subjects.loop(rounds), baseline=counted(rounds)))
    lines += [
        Subject(
            name=f"chain of 1,000 that writes a state of {fields:,} field{'s' if fields > 1 else ''}",
            units=1000,
            make=lambda fields=fields: subjects.chain(1000, fields),
            baseline=straight(1000, fields),
        )
        for fields in (1, 10, 100, 1000)
    ]
    lines.append(
        Subject(
            name="chain of 1,000 plain functions of the builder", units=1000, make=lambda: subjects.functions(1000), baseline=straight(1000)
        )
    )
    return lines


# ------------------------------------------------------------------------------------------------ measuring


def seconds(call: Callable[[], Any], enough: float) -> float:
    """The median time of one call, over at least five and about ``enough`` seconds in all."""
    call()
    times: list[float] = []
    while len(times) < 5 or (sum(times) < enough and len(times) < 200):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def measured(subject: Subject, enough: float) -> tuple[float, float, float]:
    """Microseconds for one unit (the run alone), the same by hand, and milliseconds to compile."""
    begin = time.perf_counter()
    flow = subject.make()
    compiled = time.perf_counter() - begin

    async def once() -> None:
        result = await flow.start({"message": "x"})
        assert result.status == "done", result.error

    with asyncio.Runner() as runner:
        mine = seconds(lambda: runner.run(once()), enough)
    return mine / subject.units * 1e6, seconds(subject.baseline(), enough / 4) / subject.units * 1e6, compiled * 1e3


def table(quick: bool) -> str:
    """The figures, as Markdown."""
    enough = 0.1 if quick else 0.6
    rows = [
        "| subject | µs per firing or round | by hand | ratio | compiled in, ms |",
        "|---|---:|---:|---:|---:|",
    ]
    for subject in all_subjects(quick):
        mine, by_hand, compiled = measured(subject, enough)
        rows.append(f"| {subject.name} | {mine:.2f} | {by_hand:.3f} | {mine / by_hand:.0f} | {compiled:.0f} |")
    where = f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}, {os.cpu_count()} processors"
    return "\n".join([*rows, "", f"Medians; {where}."])


def written(page: str, figures: str) -> str:
    """The page with new figures between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description="What the kernel costs beside a hand-written loop.")
    parser.add_argument("--write", action="store_true", help="put the table into docs/explanation/performance.md")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer repetitions")
    options = parser.parse_args()
    figures = table(options.quick)
    print(figures)
    print(f"\n{retrieval.table()}")
    if options.write:
        PAGE.write_text(written(PAGE.read_text("utf-8") if PAGE.exists() else FRESH, figures), "utf-8")


if __name__ == "__main__":
    main()
