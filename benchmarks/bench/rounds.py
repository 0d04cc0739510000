"""The measuring: fresh processes, one at a time, in rounds, so that what else the machine does
disturbs all columns alike.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .column import Column, NotInstalled, interpreter
from .figures import Figures, Key, Sample, is_undisturbed
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
    """A process did not end well; says why, and what it wrote before."""

    def __init__(self, reason: str, written: str = "") -> None:
        super().__init__(reason)
        self.written = written


@dataclass(frozen=True, kw_only=True)
class Pace:
    """The extent of a measurement."""

    rounds: int = 3
    """The rounds of the targets, before anything else is measured."""
    box_seconds: float = 10.0
    """The most that one process may take."""
    enough_seconds: float = 0.2
    """About how long a process repeats a run."""
    far: float = 4.0
    """Factor on the time of a process at a size that only axil and the baselines are asked
    for.
    """
    minutes: float = 13.5
    """No process begins after so long."""
    quick: bool = False


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One process of a column: a workload at some sizes, the smallest first."""

    workload: Workload
    column: Column
    sizes: tuple[int, ...]

    @property
    def cells(self) -> list[Key]:
        """The cells that it measures."""
        return [(self.workload.name, size, self.column.name) for size in self.sizes]


def measure(
    figures: Figures,
    workloads: Sequence[Workload],
    contenders: Sequence[Column],
    pace: Pace,
    tell: Callable[[str], None] = lambda line: None,
    first: Collection[Key] = (),
) -> None:
    """Put the samples of all cells into ``figures``, and tell of each.

    The cells named by ``first`` take turns for as many rounds as there are; then the others are
    measured once. What was disturbed is measured again, and while there is time, everything.
    """
    pythons: dict[str, Path] = {}
    for column in contenders:
        try:
            tell(f"environment of {column.title}")
            pythons[column.name] = interpreter(column)
        except NotInstalled as error:
            figures.absent[column.name] = str(error)
    present = [column for column in contenders if column.name in pythons]
    begin, best = time.monotonic(), min(beat() for _ in range(50))
    everything = {key for turn in turns(workloads, present, 0, pace) for key in turn.cells}

    def needed(key: Key, most: int) -> bool:
        cell = figures.cell(*key)
        return sum(map(is_undisturbed, cell.samples)) < most

    def plan() -> Iterator[Collection[Key]]:
        yield from [everything & set(first)] * pace.rounds
        yield everything - set(first)
        for _ in range(0 if pace.quick else pace.rounds):  # what is always disturbed is left so
            yield [key for key in everything if needed(key, pace.rounds if key in first else 1)]
        for most in range(2, 2 if pace.quick else 2 * pace.rounds):
            yield [key for key in everything if needed(key, most)]

    for number, wanted in enumerate(plan()):
        keys = {key for key in wanted if not figures.cell(*key).failure}
        for turn in turns(workloads, present, number, pace, keys):
            if time.monotonic() - begin > pace.minutes * 60:
                return
            taken(figures, turn, pythons[turn.column.name], pace, best)
            said = [figures.cell(*key) for key in turn.cells]
            shown = (c.failure or f"{c.samples[-1]['seconds']:.4g}" for c in said)
            tell(
                f"{time.monotonic() - begin:6.0f} s · round {number + 1} · {turn.workload.name} "
                f"{turn.sizes} · {turn.column.title}: {', '.join(shown)}"
            )


def taken(figures: Figures, turn: Turn, python: Path, pace: Pace, best: float) -> None:
    """Add a sample to each cell of a turn, or say why there is none."""
    before = beat()
    found, failure = samples(python, turn, pace)
    slowdown = round(max(before, beat()) / best, 3)
    for key, size in zip(turn.cells, turn.sizes, strict=True):
        cell = figures.cell(*key)
        if size in found:
            version = str(found[size].pop("version", ""))
            name = turn.column.name
            figures.versions[name] = version or figures.versions.get(name, "")
            cell.samples.append({**found[size], "slowdown": slowdown})
        elif not cell.samples:
            cell.failure = failure


def beat() -> float:
    """Return the seconds that a fixed piece of work takes now."""
    begin = time.perf_counter()
    for _ in range(200_000):
        pass
    return time.perf_counter() - begin


def turns(
    workloads: Sequence[Workload],
    present: Sequence[Column],
    number: int,
    pace: Pace,
    keys: Collection[Key] | None = None,
) -> Iterator[Turn]:
    """Yield the turns of a round, in every round with another column first; ``keys``: of these
    cells only.

    A size for axil and the baselines alone has a process of its own.
    """
    for workload in workloads:
        able = [column for column in present if column.can(workload)]
        start = number % len(able) if able else 0
        near = workload.sizes[:2] if pace.quick else workload.sizes
        for sizes in (near, *((size,) for size in workload.far if not pace.quick)):
            for column in able[start:] + able[:start]:
                mine = tuple(
                    size
                    for size in sizes
                    if size in column.sizes(workload)
                    and (keys is None or (workload.name, size, column.name) in keys)
                )
                if mine:
                    yield Turn(workload=workload, column=column, sizes=mine)


def samples(python: Path, turn: Turn, pace: Pace) -> tuple[dict[int, Sample], str]:
    """Return a sample of each size that was reached, and why others were not."""
    workload, column = turn.workload, turn.column
    far = turn.sizes[0] in workload.far
    box = pace.box_seconds * (pace.far if far else 1)
    with tempfile.TemporaryDirectory() as folder:
        try:
            if workload.measure == "process":
                return {turn.sizes[0]: process(python, column, workload, Path(folder), box)}, ""
            sizes = ",".join(map(str, turn.sizes))
            work = [column.name, workload.name, sizes, str(pace.enough_seconds)]
            code = FIND + f"from {__package__.rpartition('.')[2]}.worker import main; main()"
            written, failure = finished([str(python), "-c", code, *work], folder, box)[0], ""
        except Failed as error:
            written, failure = error.written, str(error)
    found: dict[int, Sample] = {}
    for line in written.splitlines():
        if line.startswith('{"size": ') and line.endswith("}"):
            reported = json.loads(line)
            found[reported.pop("size")] = reported
    return found, failure or "wrote no figure"


def process(python: Path, column: Column, workload: Workload, folder: Path, box: float) -> Sample:
    """Measure a whole process, less one of the same interpreter that does nothing."""
    place = getattr(column.module, workload.ability, None)
    package = __package__.rpartition(".")[2]
    if workload.ability == "IMPORT":
        command = [str(python), "-c", f"import {place}"]
    elif workload.ability.isupper():
        command = place(folder)
    else:
        load = (
            f"import {package}.columns.{column.name} as column; getattr(column, 'COLUMN', "
            "column).first()"
        )
        command = [str(python), "-c", FIND + load]
    finished(command, str(folder), box)  # so that nobody compiles
    _, seconds, processor = finished(command, str(folder), box)
    _, bare, bare_processor = finished([str(python), "-c", "pass"], str(folder), box)
    return {"seconds": max(0.0, seconds - bare), "processor": max(0.0, processor - bare_processor)}


def finished(command: list[str], folder: str, box: float) -> tuple[str, float, float]:
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
            timeout=box,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        written = error.stdout or b""  # as bytes, whatever was asked for
        text = written.decode() if isinstance(written, bytes) else written
        raise Failed(f"over {box:.0f} s", text) from None
    seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or [
            f"exit {done.returncode}"
        ]
        kind = lines[-1].partition(":")[0].rpartition(".")[2].strip()
        if kind == "WrongAnswer":
            raise Failed("wrong: " + lines[-1].partition(": ")[2][:100], done.stdout)
        raise Failed(f"fails: {kind[:40]}", done.stdout)
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
