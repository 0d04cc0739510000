"""Measurements: samples by workload, size and column, kept as JSON; medians, spreads, and the
exponent of a law.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .workloads import BY_NAME, Workload

Sample = dict[str, float]
"""The figures of one process: ``seconds`` on the wall, of the ``processor``, and others that the
workload is about.
"""


Key = tuple[str, int, str]
"""A workload, a size and a column."""
DISTURBED = 1.25
"""The most that a fixed piece of work may take beside a sample that counts, of its least time."""


def is_undisturbed(sample: Sample) -> bool:
    """Return whether the machine was as quick as at best when the sample was taken."""
    return sample.get("slowdown", 1.0) <= DISTURBED


@dataclass(kw_only=True)
class Cell:
    """One column at one workload and size."""

    samples: list[Sample] = field(default_factory=list)
    failure: str = ""
    """The reason why there is no figure."""
    run: str = ""
    """The beginning of the run that measured it; only within one run are cells compared."""

    @property
    def counted(self) -> list[Sample]:
        """The samples that nothing disturbed; all, if there is none of those."""
        return [sample for sample in self.samples if is_undisturbed(sample)] or self.samples

    @property
    def is_disturbed(self) -> bool:
        """True if every sample was."""
        return bool(self.samples) and not is_undisturbed(self.counted[0])

    def values(self, what: str) -> list[float]:
        return [sample[what] for sample in self.counted if what in sample]

    def median(self, what: str) -> float | None:
        values = self.values(what)
        return statistics.median(values) if values else None

    def spread(self, what: str) -> float | None:
        """Half of the interquartile range, as a part of the median; None with fewer than three
        samples.
        """
        values = self.values(what)
        middle = self.median(what)
        if len(values) < 3 or not middle:
            return None
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
        return (high - low) / 2 / middle


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the slope of the line through the logarithms, by least squares: 1 is linear, 2 is
    quadratic.

    None: fewer than two points.

    >>> (
    ...     round(exponent([(10, 5.0), (100, 50.0), (1000, 500.0)]), 3),
    ...     round(exponent([(10, 1.0), (100, 100.0)]), 3),
    ... )
    (1.0, 2.0)
    """
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    return statistics.linear_regression([x for x, _ in logs], [y for _, y in logs]).slope


class Figures:
    """All cells of a table."""

    def __init__(self, machine: str = "", run: str = "") -> None:
        self.machine, self.run = machine, run
        self.cells: dict[Key, Cell] = {}
        self.versions: dict[str, str] = {}
        """By column."""
        self.absent: dict[str, str] = {}
        """Columns that could not take part, and why."""
        self.asked: set[Key] = set()
        """The cells that were asked for since it was emptied."""

    def cell(self, workload: str, size: int, column: str) -> Cell:
        return self.cells.setdefault((workload, size, column), Cell(run=self.run))

    def of(self, workload: str, size: int, column: str, what: str = "") -> float | None:
        """Return the median of a run, on the workload's own clock, or of something else that was
        measured.
        """
        self.asked.add((workload, size, column))
        cell = self.cells.get((workload, size, column))
        return None if cell is None else cell.median(what or clock(BY_NAME[workload]))

    def sizes(self, workload: str) -> list[int]:
        return sorted({size for name, size, _ in self.cells if name == workload})

    def points(
        self, workload: str, column: str, what: str = "", least: int = 0
    ) -> list[tuple[float, float]]:
        """Sizes and seconds, as far as there are any."""
        found = (
            (float(size), self.of(workload, size, column, what))
            for size in self.sizes(workload)
            if size >= least
        )
        return [(size, value) for size, value in found if value is not None]

    # -- kept

    def as_json(self) -> str:
        def rounded(sample: Sample) -> dict[str, Any]:
            return {name: float(f"{value:.4g}") for name, value in sample.items()}

        cells = [
            {
                "workload": workload,
                "size": size,
                "column": column,
                "failure": cell.failure,
                "run": cell.run,
                "samples": [rounded(s) for s in cell.samples],
            }
            for (workload, size, column), cell in sorted(self.cells.items())
            if cell.samples or cell.failure
        ]
        head = json.dumps(
            {"machine": self.machine, "versions": self.versions, "absent": self.absent},
            ensure_ascii=False,
            sort_keys=True,
        )
        lines = ",\n".join(json.dumps(cell, ensure_ascii=False) for cell in cells)
        return f'{{"about": {head},\n"cells": [\n{lines}\n]}}\n'

    @classmethod
    def parsed(cls, text: str) -> Figures:
        """Return what was kept."""
        figures, data = cls(), json.loads(text)
        figures.machine, figures.versions, figures.absent = (
            data["about"][name] for name in ("machine", "versions", "absent")
        )
        for each in data["cells"]:
            if each["workload"] in BY_NAME:
                figures.cells[each["workload"], each["size"], each["column"]] = Cell(
                    samples=each["samples"], failure=each["failure"], run=each.get("run", "")
                )
        return figures

    @classmethod
    def read(cls, file: Path) -> Figures:
        """Return what was kept in a file; nothing if there is none."""
        return cls.parsed(file.read_text("utf-8")) if file.exists() else cls()

    def update(self, other: Figures) -> None:
        """Take over every cell that was measured anew."""
        self.machine = other.machine
        self.cells.update(
            {key: cell for key, cell in other.cells.items() if cell.samples or cell.failure}
        )
        self.versions.update(other.versions)
        for name in {column for _, _, column in other.cells}:
            self.absent.pop(name, None)
        self.absent.update(other.absent)

    def keep(self, abilities: Iterable[tuple[str, str]]) -> None:
        """Forget all other workloads of columns, and sizes that are not measured any more."""
        known = set(abilities)
        self.cells = {
            (workload, size, column): cell
            for (workload, size, column), cell in self.cells.items()
            if (workload, column) in known
            and size in BY_NAME[workload].sizes + BY_NAME[workload].far
        }


def clock(workload: Workload) -> str:
    """Return which of a sample's times counts."""
    return "seconds" if workload.measure == "waiting" or workload.clock == "wall" else "processor"
