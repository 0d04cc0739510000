"""The figures as one Markdown table: a row for each workload and size, a column for each
contender.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .column import Column
from .figures import Cell, Figures, clock
from .workloads import WORKLOADS, Workload

NONE = "–"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One workload at one size; or the making of its graph."""

    workload: Workload
    size: int
    what: str
    """The figure of a sample that is shown."""

    @property
    def label(self) -> str:
        made = "making: " if self.what == "made" else ""
        unit = "µs a node" if self.what == "made" else self.workload.unit
        return f"{made}{self.workload.labelled(self.size)}; {unit}"

    def shown(self, seconds: float) -> float:
        """In the row's unit."""
        return seconds * self.workload.scale / self.workload.units(self.size)


def rows(figures: Figures) -> list[Row]:
    """Return all rows for which anything was measured."""
    found: list[Row] = []
    for workload in WORKLOADS:
        sizes = figures.sizes(workload.name)
        found += [Row(workload=workload, size=size, what=clock(workload)) for size in sizes]
        found += [
            Row(workload=workload, size=size, what="made") for size in sizes if workload.makes
        ]
    return found


def number(value: float) -> str:
    """Three digits that count.

    >>> number(0.01234), number(4.4321), number(161.49), number(14545.2), number(0)
    ('0.0123', '4.43', '161', '14,545', '0')
    """
    if not value:
        return "0"
    if value >= 100:
        return f"{value:,.0f}"
    digits = 2 if value >= 1 else 4 if value >= 0.01 else 6
    return f"{value:.{digits - (value >= 10)}f}"


def cell(figures: Figures, row: Row, column: Column, ours: Cell | None) -> str:
    """Median, spread, and the ratio to ours; or why there is none."""
    found = figures.cells.get((row.workload.name, row.size, column.name))
    median = found.median(row.what) if found is not None else None
    makes_nothing = row.what == "made" and column.kind == "baseline"
    if found is None or median is None or makes_nothing:
        return found.failure if found is not None and found.failure and not makes_nothing else NONE
    text = ("~" if found.is_disturbed else "") + number(row.shown(median))
    spread = found.spread(row.what)
    text += "" if spread is None else f" ±{spread:.0%}"
    least = None if ours is None or ours.run != found.run else ours.median(row.what)
    if least and column.kind != "ours":
        text += f" ({number(median / least)}×)"
    return text


def table(figures: Figures, columns: Sequence[Column]) -> str:
    """Markdown."""
    present = [
        column for column in columns if any(name == column.name for _, _, name in figures.cells)
    ]
    heads = [
        f"{column.title} {figures.versions.get(column.name, '')}".strip() for column in present
    ]
    lines = ["| work; unit | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(present)]
    for row in rows(figures):
        mine = (
            figures.cells.get((row.workload.name, row.size, column.name))
            for column in present
            if column.kind == "ours"
        )
        ours = next((each for each in mine if each is not None and each.samples), None)
        cells = [cell(figures, row, column, ours) for column in present]
        if any(each != NONE for each in cells):
            lines.append(f"| {row.label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def passed_over(figures: Figures, columns: Sequence[Column]) -> str:
    """Return a line for each column that could not take part."""
    by_name = {column.name: column for column in columns}
    lines: list[str] = []
    for name, why in sorted(figures.absent.items()):
        if name in by_name:
            quoted = f" Published: {by_name[name].published}" if by_name[name].published else ""
            lines.append(
                f"- {by_name[name].title} could not be installed from PyPI: {why}.{quoted}"
            )
    return "\n".join(lines)
