"""The measuring: fresh processes, one at a time, in rounds, so that all columns meet the same
weather.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .column import Column, NotInstalled, interpreter
from .figures import Cell, Figures, Sample
from .workloads import Workload

HERE = Path(__file__).resolve().parents[1]
QUIET = {
    "DO_NOT_TRACK": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "OTEL_SDK_DISABLED": "true",
}
"""Reports are not measured."""
UNLIKE = {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONHASHSEED", "PYTHONASYNCIODEBUG"}
"""Variables that are removed from the environment of measured processes."""
FIND = f"import sys; sys.path.append({str(HERE)!r}); "


class Failed(Exception):
    """A cell has no figure; says why."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """The extent of a measurement."""

    rounds: int = 5
    box_seconds: float = 40.0
    """The most that one process may take; and a cell that took so long in all is not measured
    again.
    """
    enough_seconds: float = 0.3
    """About how long a process repeats a run."""
    far: float = 3.0
    """Factor on the time of a process at a size that only axil and the baselines are asked
    for.
    """
    minutes: float = 23.0
    """No round but the first goes on after so long."""
    quick: bool = False

    def within(self, workload: Workload, size: int) -> Pace:
        """Return the same, for a workload at a size."""
        return (
            replace(self, box_seconds=self.box_seconds * self.far) if size in workload.far else self
        )


def measure(
    figures: Figures,
    workloads: Sequence[Workload],
    contenders: Sequence[Column],
    pace: Pace,
    tell: Callable[[str], None] = lambda line: None,
) -> None:
    """Put the samples of all cells into ``figures``, and tell of each."""
    pythons: dict[str, Path] = {}
    for column in contenders:
        try:
            tell(f"environment of {column.title}")
            pythons[column.name] = interpreter(column)
        except NotInstalled as error:
            figures.absent[column.name] = str(error)
    present = [column for column in contenders if column.name in pythons]
    begin = time.monotonic()
    for number in range(pace.rounds):
        for workload, size, column in turns(workloads, present, number, pace):
            if number and time.monotonic() - begin > pace.minutes * 60:
                return
            cell = figures.cell(workload.name, size, column.name)
            within = pace.within(workload, size)
            if cell.failure or cell.spent > within.box_seconds:
                continue
            if hopeless(figures, workload, size, column, within):
                cell.failure = f"over {within.box_seconds:.0f} s"
                continue
            took = time.monotonic()
            try:
                cell.samples.append(sample(pythons[column.name], column, workload, size, within))
                version = str(cell.samples[-1].pop("version", ""))
                figures.versions[column.name] = version or figures.versions.get(column.name, "")
            except Failed as error:
                cell.failure = "" if cell.samples else str(error)
            cell.spent += time.monotonic() - took
            tell(
                f"{time.monotonic() - begin:6.0f} s · round {number + 1} · "
                f"{workload.labelled(size)} · {column.title}{said(cell)}"
            )


def said(cell: Cell) -> str:
    return f": {cell.failure}" if cell.failure else f": {cell.samples[-1]['seconds']:.4g}"


def turns(
    workloads: Sequence[Workload], present: Sequence[Column], number: int, pace: Pace
) -> Iterator[tuple[Workload, int, Column]]:
    """Yield the next turns: size by size, in every round another column first."""
    for workload in workloads:
        able = [column for column in present if column.can(workload)]
        if not able:
            continue
        start = number % len(able)
        for size in sorted({size for column in able for size in column.sizes(workload)}):
            if pace.quick and size not in workload.sizes[:2]:
                continue
            for column in able[start:] + able[:start]:
                if size in column.sizes(workload):
                    yield workload, size, column


def hopeless(figures: Figures, workload: Workload, size: int, column: Column, pace: Pace) -> bool:
    """Return whether a smaller size took so long that this one would not fit into its time, even if
    it cost no more for each node.
    """
    smaller = [
        (s, figures.cells.get((workload.name, s, column.name)))
        for s in column.sizes(workload)
        if 0 < s < size
    ]
    for before, cell in smaller:
        if cell is not None and (
            cell.failure or (cell.median("seconds") or 0) * size / before > pace.box_seconds
        ):
            return workload.measure not in ("waiting", "process") and workload.name != "payload"
    return False


def sample(python: Path, column: Column, workload: Workload, size: int, pace: Pace) -> Sample:
    """Return one sample. Raises: Failed."""
    with tempfile.TemporaryDirectory() as folder:
        if workload.measure == "process":
            return process(python, column, workload, Path(folder), pace)
        work = [column.name, workload.name, str(size), str(pace.enough_seconds)]
        code = FIND + f"from {__package__.rpartition('.')[2]}.worker import main; main()"
        written, _, _ = finished([str(python), "-c", code, *work], folder, pace)
        try:
            return json.loads(written.strip().splitlines()[-1])
        except (ValueError, IndexError):
            raise Failed("wrote no figure") from None


def process(python: Path, column: Column, workload: Workload, folder: Path, pace: Pace) -> Sample:
    """Measure a whole process, less one of the same interpreter that does nothing."""
    places = {
        name: getattr(column.module, name)
        for name in ("IMPORT", "COMMAND")
        if hasattr(column.module, name)
    }
    package = __package__.rpartition(".")[2]
    if workload.ability == "IMPORT":
        command = [str(python), "-c", f"import {places['IMPORT']}"]
    elif workload.ability == "COMMAND":
        command = places["COMMAND"](folder)
    else:
        load = (
            f"import {package}.columns.{column.name} as column; getattr(column, 'COLUMN', "
            "column).first()"
        )
        command = [str(python), "-c", FIND + load]
    finished(command, str(folder), pace)  # so that nobody compiles
    _, seconds, processor = finished(command, str(folder), pace)
    _, bare, bare_processor = finished([str(python), "-c", "pass"], str(folder), pace)
    return {"seconds": max(0.0, seconds - bare), "processor": max(0.0, processor - bare_processor)}


def finished(command: list[str], folder: str, pace: Pace) -> tuple[str, float, float]:
    """Return what a process wrote, its time on the wall, and of the processor. Raises: Failed."""
    environment = {name: value for name, value in os.environ.items() if name not in UNLIKE} | QUIET
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=pace.box_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"over {pace.box_seconds:.0f} s") from None
    seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or [
            f"exit {done.returncode}"
        ]
        kind = lines[-1].partition(":")[0].rpartition(".")[2].strip()
        if kind == "WrongAnswer":
            raise Failed("wrong: " + lines[-1].partition(": ")[2][:100])
        raise Failed(f"fails: {kind[:40]}")
    return done.stdout, seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def machine() -> str:
    """Return where the figures come from, in words."""
    import platform

    named = (
        f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} "
        f"{platform.machine()}"
    )
    return (
        f"{named}, {os.cpu_count()} processors with a load of {os.getloadavg()[0]:.1f} when it "
        "began"
    )


if sys.platform == "win32":  # pragma: no cover
    raise SystemExit("make bench needs a system that tells what its processes used.")
