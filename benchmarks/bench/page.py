"""The results of ``make bench``: a table, targets and plots in docs/explanation/performance, and
what it prints.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Sequence
from pathlib import Path

from .column import Column, cache, columns
from .figures import Figures, clock
from .plot import Line, plot
from .rounds import Pace, machine, measure
from .table import number, passed_over, table
from .targets import KB, US, cells_of_targets, each, table_of_targets
from .workloads import BY_NAME, WORKLOADS, Workload

FOLDER = Path(__file__).resolve().parents[2] / "docs/explanation/performance"
INDEX, COSTS, KEPT = FOLDER / "index.md", FOLDER / "costs.md", FOLDER / "figures.json"
PLOTTED = ("chain", "fan", "fan-50ms", "dag", "loop", "map", "growing")


def put(page: str, name: str, text: str) -> str:
    """Return the page with other text between the markers of that name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found, rest = page.partition(begin)
    assert found, f"the page has no {begin}"
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}"


def drawn(figures: Figures, contenders: Sequence[Column]) -> dict[str, str]:
    """File names and plots: of runs, and of the making of graphs."""
    plots: dict[str, str] = {}
    wanted: list[tuple[Workload, str, str]] = [(BY_NAME[name], "", name) for name in PLOTTED]
    wanted += [
        (workload, "made", f"{workload.name}-made") for workload in WORKLOADS if workload.makes
    ]
    for workload, what, name in wanted:
        lines = [
            Line(title=column.title, points=tuple(points), kind=column.kind)
            for column in contenders
            if len(points := figures.points(workload.name, column.name, what)) > 1
        ]
        if lines:
            title = workload.title.replace("{}", "n")
            reported = (
                "making of a " + title
                if what
                else (
                    f"{title}: {'processor time' if clock(workload) == 'processor' else 'time'} "
                    "of a run"
                )
            )
            plots[f"{name}.svg"] = plot(reported, lines)
    return plots


def where(figures: Figures) -> str:
    """Return where the figures come from, and of how many samples each is made."""
    measured = [cell for cell in figures.cells.values() if cell.samples]
    counts = [len(cell.counted) for cell in measured]
    disturbed = sum(cell.is_disturbed for cell in measured)
    return (
        f"{figures.machine}; {min(counts)} to {max(counts)} processes for a figure; "
        f"{disturbed} of {len(measured)} figures are disturbed (~)."
        if counts
        else "Nothing is measured yet."
    )


def constants(figures: Figures) -> str:
    """Return what a run costs, in parts, as a table."""
    run, agent = figures.of("small", 1, "axil"), figures.of("agent-at-once", 1, "axil")
    call = (agent - run) / 2 * US if agent and run else None  # it answers its tool's call, too
    rows = {
        "a run, µs": each("small", 1, "axil"),
        "a firing, µs": each("chain", 1000, "axil"),
        "a model call of an agent, µs": lambda _: call,
        "a durable step, full sync, µs": each("durable", 1000, "axil_full"),
        "a durable step, relaxed, µs": each("durable", 1000, "axil_relaxed"),
        "a durable step, bytes on the disk": each("durable", 1000, "axil_full", 1, what="disk"),
        "a run that waits, KB": each("waiting", 1000, "axil", KB),
    }
    found = ((name, measured(figures)) for name, measured in rows.items())
    lines = [f"| {name} | {number(value)} |" for name, value in found if value is not None]
    return "\n".join(["| each | costs |", "|---|---:|", *lines])


def pages(figures: Figures, contenders: Sequence[Column], page: str) -> dict[str, str]:
    """File names and texts: the pages with what the figures say, the plots, and the figures
    themselves.
    """
    plots = drawn(figures, contenders)
    page = put(page, "targets", table_of_targets(figures))
    parts = (table(figures, contenders), where(figures), passed_over(figures, contenders))
    page = put(page, "figures", "\n\n".join(parts).rstrip())
    page = put(
        page, "plots", "\n".join(f"![{name.removesuffix('.svg')}]({name})" for name in plots)
    )
    costs = put(COSTS.read_text("utf-8"), "constants", constants(figures))
    return {INDEX.name: page, COSTS.name: costs, KEPT.name: figures.as_json(), **plots}


def write(figures: Figures, contenders: Sequence[Column]) -> None:
    """Write all of them, in place of those that are there."""
    kept = Figures.parsed(figures.as_json())  # as rounded as it will be read again
    texts = pages(kept, contenders, INDEX.read_text("utf-8"))
    for old in FOLDER.glob("*.svg"):
        old.unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text, "utf-8")


def chosen(names: Sequence[str]) -> list[Workload]:
    """Return the workloads of those names; all, if none is named."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise SystemExit(f"no such workload: {', '.join(unknown)}; there are {', '.join(BY_NAME)}.")
    return [workload for workload in WORKLOADS if not names or workload.name in names]


def noted(line: str, figures: Figures, file: Path) -> None:
    """Tell the person, and keep what there is so far."""
    print(line, file=sys.stderr, flush=True)
    file.write_text(figures.as_json(), "utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="make bench", description="Measure axil beside others.")
    parser.add_argument("--bench", default="", help="workloads, separated by spaces; all if empty")
    parser.add_argument(
        "--peers", default="", help='peers, separated by spaces; all if empty, none if "-"'
    )
    parser.add_argument("--rounds", type=int, default=3, help="of the targets, before the rest")
    parser.add_argument(
        "--minutes",
        type=float,
        default=13.5,
        help="after so many, nothing more is measured",
    )
    parser.add_argument(
        "--box",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="the most that one process may take",
    )
    parser.add_argument("--quick", action="store_true", help="two sizes, one round, short")
    parser.add_argument(
        "--write",
        choices=("auto", "yes", "no"),
        default="auto",
        help="put it on the page; auto: only if all was measured",
    )
    parser.add_argument(
        "--last",
        action="store_true",
        help="measure nothing; take what the last run measured, even if it was broken off",
    )
    parser.add_argument(
        "--render",
        action="store_true",
        help="measure nothing; write the page again from what is kept",
    )
    options = parser.parse_args(arguments)
    everybody = columns()
    kept = Figures.read(KEPT)
    if not options.render:
        contenders = (
            [c for c in everybody if c.kind != "peer"]
            if options.peers == "-"
            else columns(options.peers.split())
        )
        pace = Pace(rounds=options.rounds, box_seconds=options.box, minutes=options.minutes)
        if options.quick:
            pace = Pace(rounds=1, box_seconds=15, enough_seconds=0.1, quick=True)
        now, last = datetime.datetime.now(datetime.UTC), cache() / "last.json"
        figures = Figures(f"{machine()}; {now.date()}", f"{now:%Y-%m-%d %H:%M:%S}")
        if options.last:
            figures = Figures.read(last)
        else:
            last.parent.mkdir(parents=True, exist_ok=True)
            measure(
                figures,
                chosen(options.bench.split()),
                contenders,
                pace,
                lambda line: noted(line, figures, last),
                cells_of_targets(contenders),
            )
        print(table(figures, contenders))
        print(passed_over(figures, contenders))
        is_all = not (options.bench or options.peers or options.quick)
        if options.write == "no" or (options.write == "auto" and not is_all):
            return
        if is_all:
            kept = figures
        else:
            kept.update(figures)
    kept.keep(
        (workload.name, column.name)
        for column in everybody
        for workload in WORKLOADS
        if column.can(workload)
    )
    write(kept, everybody)
    print(table_of_targets(kept))
