"""One sample of each size: a fresh process of a column's own interpreter does one workload at these
sizes, and prints what each took as a line of JSON.

    PYTHON -m bench.worker COLUMN WORKLOAD SIZES SECONDS

Standard library alone. SECONDS: about how long a run is repeated; the median counts. The column
does the workload once at its smallest size before, so that imports cost no run. An answer that
is not right is a failure, not a figure.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .case import Case
from .workloads import BY_NAME, Workload

MOST_TIMES = 200
GRAPHS = 20
"""Of each of which only the first run counts, where that is what is measured."""
DENSE_RATE = 1000
"""Replies of models in a second, where many agents wait."""
FEWEST, MAKING_SECONDS = 3, 2.0
"""So many of them in any case, and no further one after so long."""
EARLY, LATE = slice(5, 105), slice(-100, None)
"""Numbers of steps for the tenth and for the last: means over so many, as what costs more may do
so only now and then.
"""


class WrongAnswer(Exception):
    """The work was not done, or not rightly."""


def resident() -> int:
    """Bytes of this process in memory, now; where the system does not tell, the most there ever
    were.
    """
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return peak()


def peak() -> int:
    """Return the most bytes of this process that were in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def on_disk(folder: Path) -> int:
    """Bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class Timed:
    """A subject of measurement, called again and again; the answer is checked every time."""

    def __init__(self, workload: Workload, case: Case, act: Callable[[], Any]) -> None:
        self.workload, self.case, self.act = workload, case, act
        self.seconds: list[float] = []
        self.processor: list[float] = []

    async def once(self) -> None:
        """Run it once."""
        self.case.marks.clear()
        begin, work = time.perf_counter(), time.process_time()
        answer = self.act()
        if inspect.isawaitable(answer):
            answer = await answer
        self.seconds.append(time.perf_counter() - begin)
        self.processor.append(time.process_time() - work)
        right(self.workload, self.case, answer)
        await closed(self.case.closing)

    async def repeatedly(self, enough: float) -> None:
        """At least once, at least three times if that is not too long, and about so many seconds in
        all.
        """
        await self.once()
        while sum(self.seconds) < enough and len(self.seconds) < MOST_TIMES:
            await self.once()
        await closed(self.case.ending)


async def closed(those: Iterable[Callable[[], Any]]) -> None:
    """Close objects."""
    for close in those:
        given = close()
        if inspect.isawaitable(given):
            await given


def right(workload: Workload, case: Case, answer: Any) -> None:
    """Raises: WrongAnswer."""
    expected = workload.answer(case)
    if answer != expected:
        raise WrongAnswer(f"expected {expected!r:.60}, found {answer!r:.60}")


def act_of(column: Any, workload: Workload, case: Case) -> Callable[[], Any]:
    return getattr(column, workload.ability)(case)


def ran(column: Any, workload: Workload, size: int, enough: float, folder: Path) -> dict[str, Any]:
    """Seconds of a run, its processor time, that of its making, and by how much the process
    grew.
    """
    with asyncio.Runner() as runner:
        small = workload.case(
            workload.sizes[0] if workload.warm is None else workload.warm, folder / "small"
        )
        small.folder.mkdir()
        runner.run(Timed(workload, small, act_of(column, workload, small)).repeatedly(0))
        gc.collect()
        before, highest = resident(), peak()
        case = workload.case(size, folder / "here")
        case.folder.mkdir()
        begin = time.process_time()
        act = act_of(column, workload, case)
        made = time.process_time() - begin
        gc.collect()  # what making left to the collector is not the run's to pay
        timed = Timed(workload, case, act)
        after, there = peak(), resident()
        runner.run(timed.repeatedly(0 if workload.measure == "once" else enough))
        reported = {
            "seconds": statistics.median(timed.seconds),
            "processor": statistics.median(timed.processor),
            "made": made,
            "times": len(timed.seconds),
            "grown": max(0, peak() - max(highest, after), resident() - max(before, there)),
        }
    if workload.measure == "steps":
        steps = [b - a for a, b in zip(case.marks, case.marks[1:], strict=False)]
        reported |= {"early": statistics.fmean(steps[EARLY]), "late": statistics.fmean(steps[LATE])}
    if workload.measure == "once":
        reported["disk"] = on_disk(case.folder)
    return reported


def cold(column: Any, workload: Workload, size: int, folder: Path) -> dict[str, Any]:
    """Seconds of the first run of a graph, its processor time, and that of making the graph."""
    firsts: list[Timed] = []
    made: list[float] = []
    with asyncio.Runner() as runner:
        began = time.monotonic()
        for number in range(GRAPHS + 1):
            if number > FEWEST and time.monotonic() - began > MAKING_SECONDS:
                break
            case = workload.case(size, folder / str(number))
            case.folder.mkdir()
            begin = time.process_time()
            act = act_of(column, workload, case)
            made.append(time.process_time() - begin)
            timed = Timed(workload, case, act)
            runner.run(timed.repeatedly(0))
            firsts.append(timed)
    return {
        "seconds": statistics.median(timed.seconds[0] for timed in firsts[1:]),
        "processor": statistics.median(timed.processor[0] for timed in firsts[1:]),
        "made": statistics.median(made[1:]),
        "times": len(firsts) - 1,
    }


def waited(column: Any, workload: Workload, size: int) -> dict[str, Any]:
    """Bytes of a run while all of them wait; ``seconds`` holds them, so that they are ordered and
    shown as other figures are.
    """

    async def go() -> dict[str, Any]:
        warm = workload.case(10)
        right(workload, warm, await act_of(column, workload, warm)())
        case = workload.case(size)
        case.gate, case.full = asyncio.Event(), asyncio.Event()
        act = act_of(column, workload, case)
        gc.collect()
        before = resident()
        job = asyncio.ensure_future(act())
        everybody = asyncio.ensure_future(case.full.wait())
        await asyncio.wait([job, everybody], return_when=asyncio.FIRST_COMPLETED)
        everybody.cancel()
        gc.collect()
        bytes = resident() - before
        case.gate.set()
        right(workload, case, await job)
        return {"seconds": float(bytes), "times": 1}

    return asyncio.run(go())


def dense(column: Any, workload: Workload, size: int) -> dict[str, Any]:
    """Processor time of an agent's turn (two calls of its model, one of its tool), bytes of one
    that waits for its model, and the time that 99 of 100 lose at most between the first reply and
    the end, beside the second reply's second. All wait at once; then ``DENSE_RATE`` are answered
    in each second.
    """

    async def go() -> dict[str, Any]:
        case = workload.case(1)
        act, answered, ended = act_of(column, workload, case), list[float](), list[float]()
        right(workload, case, await act())
        begun, everybody, answering = 0, asyncio.Event(), asyncio.Event()

        async def pause() -> None:
            nonlocal begun
            begun += 1
            if begun > size:
                return await asyncio.sleep(1)
            mine = begun
            if begun == size:
                everybody.set()
            await answering.wait()
            await asyncio.sleep(mine / DENSE_RATE)
            answered.append(time.perf_counter())

        async def turn() -> None:
            right(workload, case, await act())
            ended.append(time.perf_counter())

        case.pause = pause
        gc.collect()
        before, work = resident(), time.process_time()
        turns = [asyncio.ensure_future(turn()) for _ in range(size)]
        await asyncio.wait(
            [asyncio.ensure_future(everybody.wait()), *turns], return_when="FIRST_COMPLETED"
        )
        spent = time.process_time() - work
        gc.collect()
        held, work = resident() - before, time.process_time()
        answering.set()
        await asyncio.gather(*turns)
        spent += time.process_time() - work
        lost = sorted(b - a - 1 for a, b in zip(sorted(answered), sorted(ended), strict=True))
        late = lost[int(0.99 * size)]
        return {"seconds": spent, "processor": spent, "held": held, "lost": late, "times": 1}

    return asyncio.run(go())


def release(module: Any) -> str:
    """Return the version of what the column is about."""
    try:
        return version(module.PACKAGE) if getattr(module, "PACKAGE", "") else ""
    except PackageNotFoundError:
        return ""


def sampled(
    column: Any, workload: Workload, size: int, enough: float, folder: Path
) -> dict[str, Any]:
    """Return the figures of one size."""
    if workload.measure == "waiting":
        return waited(column, workload, size)
    if workload.measure == "dense":
        return dense(column, workload, size)
    if workload.measure == "cold":
        return cold(column, workload, size, folder)
    return ran(column, workload, size, enough, folder)


def main() -> None:
    name, wanted, sizes, enough = sys.argv[1:]
    module, workload = importlib.import_module(f"{__package__}.columns.{name}"), BY_NAME[wanted]
    column = getattr(module, "COLUMN", module)
    for size in map(int, sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            reported = sampled(column, workload, size, float(enough), Path(folder))
        line = json.dumps({"size": size, "version": release(module), **reported})
        print("\n" + line, flush=True)


if __name__ == "__main__":
    main()
