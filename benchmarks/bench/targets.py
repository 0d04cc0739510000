"""Targets of axil, reached or not: every verdict is computed from the figures of one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .column import Column
from .figures import Cell, Figures, Key, exponent
from .table import number
from .workloads import BY_NAME, NODES_OF_A_RUN, ROUNDS_INSIDE, WORKLOADS

MS, US, KB, MB = 1e3, 1e6, 1e-3, 1e-6
FIGURES = ("seconds", "processor", "made", "grown", "early", "late", "disk", "held", "lost")
"""The names of the figures that a sample may have."""
Measured = Callable[[Figures], float | None]


@dataclass(frozen=True, kw_only=True)
class Target:
    """One thing that is asked."""

    what: str
    measured: Measured
    most: float | None = None
    least: float | None = None
    unit: str = ""
    by_hand: Measured = lambda figures: None
    """The same of what is written by hand, where that shows how low one can get."""

    @property
    def asked(self) -> str:
        return (
            f"≤ {number(self.most)}{self.unit}"
            if self.most is not None
            else f"≥ {number(self.least or 0)}{self.unit}"
        )

    def cells(self, figures: Figures) -> list[Cell]:
        """Return what it is computed from, of what is measured."""
        figures.asked.clear()
        self.measured(figures)
        found = (figures.cells.get(key) for key in figures.asked)
        return [cell for cell in found if cell is not None and cell.samples]

    def verdict(self, figures: Figures) -> str:
        """``holds``, ``fails``, ``not measured``, or that its figures are of several runs."""
        value = self.measured(figures)
        if value is None:
            return "not measured"
        if len({cell.run for cell in self.cells(figures)}) > 1:
            return "not within one run"
        return (
            "holds"
            if (value <= self.most if self.most is not None else value >= (self.least or 0))
            else "🔴 **fails**"
        )

    def line(self, figures: Figures) -> str:
        value, floor = self.measured(figures), self.by_hand(figures)
        cells = self.cells(figures)
        spread = max((cell.spread("processor") or 0 for cell in cells), default=0)
        mark = "~" if any(cell.is_disturbed for cell in cells) else ""
        shown = "" if value is None else mark + number(value) + self.unit
        shown += f" ±{spread:.0%}" if spread else ""
        return (
            f"| {self.what} | {self.asked} | {shown} | {self.verdict(figures)} | "
            f"{'' if floor is None else number(floor) + self.unit} |"
        )


def each(
    workload: str,
    size: int,
    column: str,
    scale: float = US,
    units: float | None = None,
    what: str = "",
) -> Measured:
    """Return a median, for each unit of work."""

    def measured(figures: Figures) -> float | None:
        value = figures.of(workload, size, column, what)
        return None if value is None else value * scale / (size if units is None else units)

    return measured


def ratio(
    above: tuple[str, int, str], below: tuple[str, int, str], what: str = "", other: str = ""
) -> Measured:
    """Return one median by another; ``what``: of the samples, the workload's own time if empty."""

    def measured(figures: Figures) -> float | None:
        a, b = figures.of(*above, what), figures.of(*below, other or what)
        return None if a is None or not b else a / b

    return measured


def slope(workload: str, what: str = "", column: str = "axil") -> Measured:
    """Return the exponent of cost against size, from 100 on."""
    return lambda figures: exponent(figures.points(workload, column, what, least=100))


def efficiency(size: int, column: str) -> Measured:
    """Return the ideal time of many runs at once, as a part of theirs: as if nothing but the bodies
    took any.
    """

    def measured(figures: Figures) -> float | None:
        value = figures.of("crowd", size, column)
        return None if not value else 100 * NODES_OF_A_RUN * 0.01 / value

    return measured


PEERS = {
    "langgraph": "LangGraph",
    "pydantic_graph": "pydantic-graph's builder",
    "burr": "burr",
    "pydantic_graph_class": "pydantic-graph's class API",
}
AGENTS = {
    "langgraph": "LangGraph",
    "pydantic_ai": "Pydantic AI",
    "openai_agents": "OpenAI Agents SDK",
    "agent_framework": "Agent Framework",
}


def chain_of(
    column: str, name: str, workload: str, most: float, asked: dict[str, float]
) -> list[Target]:
    """Return the targets for a chain of 1,000 trivial nodes; ``asked``: of peers, how many times
    as long they take.
    """
    mine = (workload, 1000, column)
    title = "chain" if workload == "chain" else "chain, plain bodies"
    targets = [
        Target(
            what=f"{title}, a firing, {name}",
            measured=each(*mine),
            most=most,
            unit=" µs",
            by_hand=each(workload, 1000, "by_hand" if workload == "chain" else "calls"),
        )
    ]
    targets += [
        Target(
            what=f"{title}, {PEERS[peer]} against {name}",
            measured=ratio((workload, 1000, peer), mine),
            least=least,
            unit="×",
        )
        for peer, least in asked.items()
    ]
    return targets


def small_and_agents() -> list[Target]:
    """Return the targets for what a user feels: the fixed cost of a run, and an agent's turn, which
    is a run with two calls of its model and one of its tool.
    """
    targets = [
        Target(
            what="a run of one node, warm",
            measured=each("small", 1, "axil", US, 1),
            most=60,
            unit=" µs",
            by_hand=each("small", 1, "by_hand", US, 1),
        )
    ]
    for workload, column, name, most in (
        ("agent", "axil", "", 0.5),
        ("agent-kept", "axil_relaxed", ", in a journal, relaxed", 1.0),
        ("agent-kept", "axil_full", ", in a journal, full sync", 1.0),
    ):
        targets.append(
            Target(
                what=f"an agent's turn{name}",
                measured=each(f"{workload}-at-once", 1, column, MS, 1),
                most=most,
                unit=" ms",
                by_hand=each("agent-at-once", 1, "by_hand", MS, 1),
            )
        )
    targets += [
        Target(
            what=f"an agent's turn, {title} against axil",
            measured=ratio(("agent-at-once", 1, peer), ("agent-at-once", 1, "axil")),
            least=1,
            unit="×",
        )
        for peer, title in AGENTS.items()
    ]
    return targets


def many_agents() -> list[Target]:
    """Return the targets for 10,000 agents at once in one process."""
    many, few = ("dense", 10_000), ("dense", 1000)
    targets = [
        Target(
            what=f"10,000 agents at once, {name}",
            measured=each(*many, "axil", scale, units, what),
            most=most,
            unit=unit,
            by_hand=each(*many, "by_hand", scale, units, what),
        )
        for name, what, scale, units, most, unit in (
            ("memory of one that waits, with its 2 KB", "held", KB, 10_000, 25, " KB"),
            ("p99 of the time lost between replies", "lost", MS, 1, 20, " ms"),
        )
    ]
    targets += [
        Target(
            what=f"1,000 agents at once, processor time of a turn, {title} against axil",
            measured=ratio((*few, peer), (*few, "axil")),
            least=1,
            unit="×",
        )
        for peer, title in AGENTS.items()
    ]
    return targets


def all_targets() -> list[Target]:
    """In the order in which they were asked."""
    axil, hand = "axil", "by_hand"
    asynchronous = {"langgraph": 60, "pydantic_graph": 20, "burr": 8, "pydantic_graph_class": 4}
    targets: list[Target] = []
    for column, name in ((axil, "functions"), ("axil_nodes", "node classes")):
        targets += chain_of(column, name, "chain", 4, asynchronous)
    for column, name in ((axil, "functions"), ("axil_nodes", "node classes")):
        targets += chain_of(column, name, "plain", 3, {"langgraph": 50, "burr": 8})
    targets += small_and_agents()
    targets += many_agents()
    for name, title, most in (("watched", "one observer", 1.3), ("streamed", "streaming", 1.5)):
        targets.append(
            Target(
                what=f"chain with {title}, of the bare run",
                measured=ratio((name, 1000, axil), ("chain", 1000, axil)),
                most=most,
                unit="×",
            )
        )
    for name, title in (("fan", "fan of 1,000"), ("dag", "random acyclic graph of 1,000")):
        for baseline, doing in (
            ("by_hand_same", "tasks by hand that do the same"),
            (hand, "tasks by hand without states"),
        ):
            targets.append(
                Target(
                    what=f"{title}, async bodies, against {doing}",
                    measured=ratio((name, 1000, axil), (name, 1000, baseline)),
                    most=1.5,
                    unit="×",
                )
            )
    waits = ("fan-50ms", 1000)
    targets += [
        Target(
            what="1,000 bodies of 50 ms, against by hand",
            measured=ratio((*waits, axil), (*waits, hand)),
            most=1.1,
            unit="×",
        ),
        *(
            Target(
                what=f"loop of two nodes, {title}{name}, a round",
                measured=each(workload, 10_000, column),
                most=most,
                unit=" µs",
                by_hand=each(workload, 10_000, floor),
            )
            for workload, title, floor, most in (
                ("loop", "", hand, 8),
                ("plain-loop", "plain bodies, ", "calls", 8),
            )
            for column, name in ((axil, "functions"), ("axil_nodes", "node classes"))
        ),
        Target(
            what="1,000,000 rounds, growth of memory",
            measured=each("loop", 1_000_000, axil, MB, 1, "grown"),
            most=2,
            unit=" MB",
        ),
    ]
    targets += [
        Target(
            what="nested loop, an inner round",
            measured=each("nested", 100, axil, US, 100 * ROUNDS_INSIDE),
            most=8,
            unit=" µs",
            by_hand=each("nested", 100, hand, US, 100 * ROUNDS_INSIDE),
        ),
        Target(
            what="map, an item",
            measured=each("map", 1000, axil),
            most=15,
            unit=" µs",
            by_hand=each("map", 1000, hand),
        ),
    ]
    for name, title, most in (
        ("chain", "chain", 20),
        ("fan", "fan", 30),
        ("dag", "random acyclic graph", 40),
    ):
        targets.append(
            Target(
                what=f"making a {title} of 1,000, a node",
                measured=each(name, 1000, axil, what="made"),
                most=most,
                unit=" µs",
            )
        )
        targets.append(
            Target(
                what=f"{title}, exponent of the run",
                measured=slope(name),
                most=1.05,
                by_hand=slope(name, column=hand),
            )
        )
        targets.append(
            Target(what=f"{title}, exponent of making it", measured=slope(name, "made"), most=1.05)
        )
    grown = ("growing", 10_000, axil)
    targets += [
        Target(
            what="first run of a random acyclic graph of 1,000, of a warm one",
            measured=ratio(("dag-cold", 1000, axil), ("dag", 1000, axil)),
            most=2,
            unit="×",
        ),
        Target(
            what="growing list, step 10,000 against step 10",
            measured=ratio(grown, grown, "late", "early"),
            most=1.2,
            unit="×",
        ),
        Target(
            what="10 MB untouched in the state, against none",
            measured=ratio(("payload", 10_000_000, axil), ("payload", 0, axil)),
            most=1.05,
            unit="×",
        ),
    ]
    listed, saver = ("durable-list", 1000), "langgraph_sqlite"
    for workload, size, column, title, most in (
        ("durable", 1000, "full", "full sync", 300),
        ("durable", 1000, "relaxed", "relaxed", 120),
        ("durable-together", 50, "full", "full sync, 100 runs together", 60),
    ):
        units = BY_NAME[workload].units(size)
        targets.append(
            Target(
                what=f"durable step, {title}",
                measured=each(workload, size, f"axil_{column}", units=units),
                most=most,
                unit=" µs",
                by_hand=each(workload, size, f"by_hand_{column}", units=units),
            )
        )
    targets += [
        Target(
            what="durable steps, full sync: LangGraph's SqliteSaver against it",
            measured=ratio((*listed, saver), (*listed, "axil_full")),
            least=3,
            unit="×",
        ),
        Target(
            what="durable steps, relaxed",
            measured=ratio((*listed, saver), (*listed, "axil_relaxed")),
            least=15,
            unit="×",
        ),
        Target(
            what="durable steps, 100 runs together, full sync",
            measured=ratio(("durable-together", 50, saver), ("durable-together", 50, "axil_full")),
            least=20,
            unit="×",
        ),
        Target(
            what="durable steps, disk",
            measured=ratio((*listed, saver), (*listed, "axil_full"), "disk"),
            least=100,
            unit="×",
        ),
    ]
    for size, most in ((200, 20), (5000, 25)):
        nodes = size * NODES_OF_A_RUN
        for column, name in (("axil_nodes", "node classes"), (axil, "functions")):
            targets.append(
                Target(
                    what=f"{size:,} runs of ten bodies of 10 ms, {name}, of the ideal",
                    measured=efficiency(size, column),
                    least=75,
                    unit=" %",
                    by_hand=efficiency(size, hand),
                )
            )
            targets.append(
                Target(
                    what=f"{size:,} such runs, {name}, processor time of a node",
                    measured=each("crowd", size, column, US, nodes, "processor"),
                    most=most,
                    unit=" µs",
                    by_hand=each("crowd", size, hand, US, nodes, "processor"),
                )
            )
    targets += [
        Target(
            what="memory of a run that waits",
            measured=each("waiting", 1000, axil, KB),
            most=10,
            unit=" KB",
            by_hand=each("waiting", 1000, hand, KB),
        ),
        Target(what="import axil", measured=each("import", 1, axil, MS), most=50, unit=" ms"),
        Target(
            what="first result of two nodes, from Python",
            measured=each("first", 1, axil, MS),
            most=90,
            unit=" ms",
            by_hand=each("first", 1, hand, MS),
        ),
        Target(
            what="a small file run by the command",
            measured=each("command", 1, axil, MS),
            most=180,
            unit=" ms",
        ),
        Target(
            what="agents that research, write and review, run by the command",
            measured=each("newsroom", 1, axil, MS),
            most=250,
            unit=" ms",
        ),
        Target(
            what="check of a file of 5,000 nodes, a node",
            measured=each("check", 5000, axil),
            most=60,
            unit=" µs",
        ),
        Target(
            what="discovery, 400 distributions, none imported",
            measured=each("discovery", 400, axil, MS, 1),
            most=20,
            unit=" ms",
        ),
    ]
    return targets


def table_of_targets(figures: Figures) -> str:
    """Markdown: target, reached, verdict."""
    lines = ["| what | asked | reached | verdict | by hand |", "|---|---:|---:|---|---:|"]
    return "\n".join([*lines, *(target.line(figures) for target in all_targets())])


def cells_of_targets(columns: Sequence[Column]) -> set[Key]:
    """Return the cells that targets are computed from."""
    figures = Figures()
    for column in columns:
        for workload in WORKLOADS:
            for size in column.sizes(workload) if column.can(workload) else ():
                sample = dict.fromkeys(FIGURES, 1.0)
                figures.cell(workload.name, size, column.name).samples = [sample]
    for target in all_targets():
        target.measured(figures)
        target.by_hand(figures)
    return figures.asked & figures.cells.keys()
