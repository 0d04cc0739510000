"""A soak of runs of all kinds: `python benchmarks/soak.py [--runs 2000 --kills 100 …]`.

Runs of two versions of a workflow ask a person, wait for a time, map over items, have a graph
inside them and call a tool, in four workers of which one after another is killed, or stopped, woken
and killed, and replaced; the database is restarted meanwhile. The crew and its log are those of
`cluster.py`. A step may be in the log twice if it was not recorded yet; none may begin that was. A
worker that was stopped within a step and woken does this step when another one has recorded it, and
is refused when it records: such a *late* step had begun before, and is counted apart.

Runs are submitted evenly between the kills, so that some twenty are at work, and a worker is killed
when the one before was replaced. A takeover is measured from the death of a worker, or its stop,
in three parts: until its run has no holder, until it has another one, and until that one has
written that it continues the run, behind which the bodies begin.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
if str(HERE.parents[1]) not in sys.path:  # a worker loads this file by its path
    sys.path.insert(0, str(HERE.parents[1]))

from benchmarks.cluster import (  # noqa: E402
    Crew,
    Step,
    database,
    doctor,
    held_by,
    note,
    timed_steps_in,
)

from axil import Graph, RootGraph  # noqa: E402
from axil_agent import Agent  # noqa: E402
from axil_control import Map  # noqa: E402
from axil_journals import LocalEngine, ReplayIndex, current_run_id  # noqa: E402
from axil_models import Reply, Request, ToolCall  # noqa: E402
from axil_postgres import PostgresJournal  # noqa: E402

ITEMS = 4
VERSIONS = ("first_version", "second_version")
WORKERS = (VERSIONS[:1], VERSIONS[1:], VERSIONS, VERSIONS)
"""The versions that workers have: whichever dies, others have its versions."""
ASKED_SECONDS = 10.0
"""The longest takeover that is asked for, of 99 %."""
BETWEEN_SECONDS = 3.0
"""The mean time between two kills or restarts, and for a worker to start."""
ITEM_WORDS = tuple(f"item{number}" for number in range(ITEMS))
WORDS: Mapping[tuple[str | int, ...], tuple[str, ...]] = {
    ("first",): ("effect", "first"),
    ("item",): ITEM_WORDS,
    **{("item", number, "item"): (word,) for number, word in enumerate(ITEM_WORDS)},
    ("sub", "inner"): ("inner",),
    ("sub",): ("inner",),
    ("ask",): ("ask",),
    ("agent",): ("tool",),
}
"""By frame and node, the words in the log that are not written again once it is recorded as done.
"""
PAUSES = "SOAK_PAUSES"
"""The name of the variable of the environment that says by how much all pauses are multiplied."""


class Model:
    """A model that calls the tool once in each conversation."""

    async def reply(self, request: Request, emit: object, /) -> Reply:
        """Call the tool, or end."""
        await asyncio.sleep(0.5 * _longer())
        if any(message.get("role") == "tool" for message in request.messages):
            return Reply(text="Done.")
        return Reply(tool_calls=(ToolCall(id="c1", name="add", arguments={"word": "noted"}),))


def first_version() -> RootGraph:
    """Return the workflow as it was."""
    return _workflow(1)


def second_version() -> RootGraph:
    """Return the workflow as it is."""
    return _workflow(2)


def _workflow(version: int) -> RootGraph:
    graph, longer = RootGraph("soak", attributes={"release": version}), _longer()

    async def first(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        run, begun = inputs["run"], time.time()

        async def effect() -> int:
            begun = time.time()
            await asyncio.sleep(0.5 * longer)
            note(run, "effect", begun)
            return version

        begun_by = await ctx.step("effect", effect)
        # every fifth one is unloaded meanwhile
        await ctx.sleep((1.0 if _number(run) % 5 else 8.0) * longer)
        note(run, "first", begun)
        return {"run": run, "version": begun_by, "items": list(range(ITEMS))}

    async def item(inputs: dict[str, Any]) -> dict[str, Any]:
        begun = time.time()
        await asyncio.sleep(0.5 * (1 + inputs["item"]) * longer)
        note(inputs["run"], ITEM_WORDS[inputs["item"]], begun)
        return {"part": inputs["item"] * 2, "run": inputs["run"], "version": inputs["version"]}

    async def inner(inputs: dict[str, Any]) -> dict[str, Any]:
        run, begun = _one(inputs["run"]), time.time()
        await asyncio.sleep(0.5 * longer)
        note(run, "inner", begun)
        return {"run": run, "version": _one(inputs["version"]), "sum": sum(inputs["part"])}

    async def ask(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        begun = time.time()
        said = await ctx.ask("go on?", name="q") if _asks(inputs["run"]) else "nothing"
        note(inputs["run"], "ask", begun)
        return {**inputs, "said": said, "message": inputs["run"]}

    def add(word: str) -> str:
        """Note a word."""
        note(current_run_id(), "tool")
        return word

    start = graph.create_node(first, name="first")
    each = graph.create_node(item, name="item", wrappers=[Map(over="items", item="item")])
    sub = graph.create_node(Graph, name="sub")
    body = sub.create_node(inner, name="inner")
    sub.edge_from_entry(body, {"run": "", "version": "", "part": ""})
    sub.edge_to_exit(body, {"run": "", "version": "", "sum": ""})
    asking = graph.create_node(ask, name="ask")
    agent = graph.create_node(Agent(Model(), tools=[add]), name="agent")
    graph.edge_from_entry(start, {"run": ""})
    graph.create_edge(start, each, {"run": "", "version": "", "items": ""})
    graph.create_edge(each, sub, {"run": "", "version": "", "part": ""})
    graph.create_edge(sub, asking, {"run": "", "version": "", "sum": ""})
    graph.create_edge(asking, agent, {"message": ""})
    graph.edge_to_exit(asking, {"run": "", "version": "", "sum": "", "said": ""})
    graph.edge_to_exit(agent, {"text": ""})
    return graph.build()


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value


def _longer() -> float:
    return float(os.environ.get(PAUSES, "1"))


def _number(run: str) -> int:
    return int(run[1:])


def _asks(run: str) -> bool:
    return _number(run) % 4 == 0


def _version(run: str) -> int:
    return 1 + _number(run) % 2


@dataclass(slots=True)
class Outcome:
    """The findings of a soak."""

    runs: int
    kills: int = 0
    stops: int = 0
    restarts: int = 0
    seconds: float = 0.0
    lost: list[str] = field(default_factory=list)
    """Runs that did not end, or not well."""
    wrong: list[str] = field(default_factory=list)
    recorded: int = 0
    """Steps that were recorded when the worker of their run died."""
    doubled: list[str] = field(default_factory=list)
    """Steps of these that began again afterwards."""
    late: list[str] = field(default_factory=list)
    """Steps of these that had begun before in a worker that was stopped within them."""
    strange: list[str] = field(default_factory=list)
    """Steps that were done twice although no worker that did them had died."""
    again: int = 0
    """Other steps that were done again: they were under way."""
    takeovers: list[Takeover] = field(default_factory=list)
    harms: list[tuple[float, str]] = field(default_factory=list)
    """Times of kills, stops and restarts."""
    load: list[float] = field(default_factory=list)
    """The processes that wanted a processor, in the mean of a minute, at each kill."""
    doctor: str = ""
    is_sound: bool = False

    def __str__(self) -> str:
        took = [each.seconds for each in self.takeovers]
        parts = ", ".join(
            f"{_spread(seconds)} {part}"
            for part, seconds in zip(PARTS, zip(*took, strict=True), strict=True)
        )
        alone = sum(each.is_alone for each in self.takeovers)
        load = sorted(self.load) or [0.0]
        return (
            f"{self.runs} runs, {self.kills} kills, {self.stops} of them of workers that were "
            f"stopped and woken, {self.restarts} restarts of the database, {self.seconds:.0f} s: "
            f"{len(self.lost)} lost or stuck, {len(self.wrong)} wrong; of {self.recorded} steps "
            f"that were recorded when their worker died {len(self.doubled)} began again, "
            f"{len(self.late)} were ended late by a worker that had been stopped in them; "
            f"{self.again} were done again in all, {len(self.strange)} of them for no reason; "
            f"{len(took)} takeovers, {alone} of them of runs that went on alone, after "
            f"{_spread(map(sum, took))}: {parts} (median, 99 %, longest); at a load of "
            f"{load[len(load) // 2]:.0f} to {load[-1]:.0f} on {os.cpu_count()} processors; "
            f"doctor: {self.doctor.strip()}"
        )

    @property
    def is_whole(self) -> bool:
        """True if nothing was lost, wrong, damaged or done again without need."""
        faults = [self.lost, self.wrong, self.doubled, self.strange]
        return self.is_sound and not any(faults)

    def slow(self) -> Iterator[str]:
        """Yield the takeovers that took longer than is asked, with what was done meanwhile."""
        for each in self.takeovers:
            begun, *_, ended = each.times
            if ended - begun > ASKED_SECONDS:
                parts = " + ".join(f"{part:.1f}" for part in each.seconds)
                beside = [
                    f"{kind} at {at - begun:.1f}"
                    for at, kind in self.harms
                    if begun - BETWEEN_SECONDS < at < ended
                ]
                yield f"{each.run}: {parts} s{', alone' * each.is_alone}; {', '.join(beside)}"

    def judge(
        self,
        words: Iterable[Step],
        recorded: Mapping[tuple[str, str], float],
        killed: Mapping[int, float],
    ) -> None:
        """Say which steps were done again.

        Args:
            recorded: by run and word, a time at which it was recorded as done.
            killed: the processes that were killed.
        """
        self.recorded = len(recorded)
        by_word: dict[tuple[str, str], list[int]] = {}
        for run, word, pid, at, begun in words:
            by_word.setdefault((run, word), []).append(pid)
            known = recorded.get((run, word), float("inf"))
            if begun > known:
                self.doubled.append(f"{word} of {run} in {pid}")
            elif at > known:
                self.late.append(f"{word} of {run} in {pid}")
        for (run, word), pids in by_word.items():
            self.again += len(pids) - 1
            if len([pid for pid in pids if pid not in killed]) > 1:
                self.strange.append(f"{word} of {run} in {pids}")


def recorded_in(index: ReplayIndex) -> Iterator[str]:
    """Yield the words that a run does not write to the log again."""
    for done in index.done:
        yield from WORDS[(*done.frame, done.node)]
    for _, name in index.steps:
        if name == "effect":
            yield name
        elif name.startswith("tool:"):
            yield "tool"


PARTS = ("until it was free", "until it was taken", "until it went on")


@dataclass(slots=True)
class Takeover:
    """A run whose worker has died or was stopped, until another one continues it."""

    run: str
    holder: int
    next: int
    """The number of its next entry, as the dead worker left it."""
    times: list[float]
    """The times at which the worker died, the run was free, was taken, went on: as far as it is."""
    is_alone: bool = False
    """True: the worker that continues it executes no other run."""

    @property
    def seconds(self) -> tuple[float, ...]:
        """The parts."""
        return tuple(end - begin for begin, end in itertools.pairwise(self.times))

    def look(self, holder: int, next: int, now: float) -> None:
        """Note how far it is."""
        if holder == self.holder:  # the last that its dead worker wrote may come yet
            self.next = next
            return
        went_on = next != self.next
        is_taken = went_on or holder != 0
        if len(self.times) == 3 and not is_taken:  # the worker that took it has released it
            self.times.pop()
        self.times += [now] * (2 + is_taken + went_on - len(self.times))


class Takeovers:
    """The runs whose worker has died, until other workers continue them."""

    def __init__(self, journal: PostgresJournal) -> None:
        self._journal = journal
        self._waiting: dict[str, Takeover] = {}
        self.ended: list[Takeover] = []

    def died(self, runs: Iterable[str], at: float) -> None:
        """Note that the worker of runs has died or was stopped."""
        for run, holder, next, _ in self._rows(runs):
            self._waiting[run] = Takeover(run, holder, next, [at])

    def look(self) -> None:
        """Note what has become of the runs."""
        for run, holder, next, status in self._rows(self._waiting):
            each = self._waiting[run]
            if holder == 0 and next == each.next and status == "paused":
                del self._waiting[run]  # it waits for an answer: nobody takes it
                continue
            each.look(holder, next, time.time())
            if len(each.times) > len(PARTS):
                each.is_alone = any(
                    number >= each.next and entry.kind == "resumed" and "alone" in entry.data
                    for number, entry in self._journal.read(run)
                )
                self.ended.append(self._waiting.pop(run))

    def _rows(self, runs: Iterable[str]) -> list[Any]:
        sql = "select run, holder, next, status from runs where run = any(%s::text[])"
        return self._journal.writer.database.rows(sql, (list(runs),))


def _spread(seconds: Iterable[float]) -> str:
    times = sorted(seconds) or [0.0]
    return f"{times[len(times) // 2]:.1f} · {times[len(times) * 99 // 100]:.1f} · {times[-1]:.1f} s"


async def soak(
    server: Any, folder: Path, *, runs: int, kills: int, stops: int, restarts: int
) -> Outcome:
    """Submit runs, kill and restart while they work, and return what became of them."""
    chance, made = random.Random(1), Outcome(runs)
    flows = {1: first_version(), 2: second_version()}
    targets = [[f"{HERE}:{name}" for name in names] for names in WORKERS]
    crew = Crew(server.url, folder, seconds=0.0, targets=targets)
    journal, watched = PostgresJournal(server.url), PostgresJournal(server.url)
    takeovers = Takeovers(watched)
    recorded: dict[tuple[str, str], float] = {}
    names, harms, done = [f"r{number}" for number in range(runs)], kills + restarts, 0
    begun = time.monotonic()

    def look(pid: int, at: float) -> None:
        """Note what of the runs of a worker that is dead or stopped is recorded now."""
        held = held_by(watched, pid)
        takeovers.died(held, at)
        for run in held:
            for word in recorded_in(ReplayIndex(watched.entries(run))):
                recorded.setdefault((run, word), time.time())

    async def watch() -> None:
        while True:
            await asyncio.sleep(0.1)
            await asyncio.to_thread(takeovers.look)

    async def submit(engine: LocalEngine) -> None:
        for number, name in enumerate(names):
            await asyncio.sleep(BETWEEN_SECONDS * harms / runs)
            while number * harms > (done + 1) * runs:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            await engine.start(flows[_version(name)], {"run": name}, run_id=name)

    async def answer(engine: LocalEngine) -> None:
        while True:
            for info in await asyncio.to_thread(journal.runs, status=["paused"]):
                with suppress(Exception):  # the database is restarted meanwhile
                    asked = (await asyncio.to_thread(engine.get, info.run_id)).questions
                    if question := next((each for each in asked if each.kind != "timer"), None):
                        await engine.answer(info.run_id, {question.id: "yes"})
            await asyncio.sleep(0.5)

    async def harm() -> None:
        nonlocal done
        kinds = ["kill"] * (kills - stops) + ["stop"] * stops + ["restart"] * restarts
        chance.shuffle(kinds)
        async with asyncio.TaskGroup() as stopped:
            for kind in kinds:
                await asyncio.sleep(chance.uniform(0.0, 2 * BETWEEN_SECONDS))
                while not crew.is_ready:  # noqa: ASYNC110  # processes say so
                    await asyncio.sleep(0.2)
                done += 1
                made.load.append(os.getloadavg()[0])
                made.harms.append((time.time(), kind))
                if kind == "restart":
                    await asyncio.to_thread(server.end)
                    await asyncio.to_thread(server.begin)
                    made.restarts += 1
                    continue
                victim = crew.take(set(), chance)
                gone = time.time()
                if kind == "stop":  # for longer than the lease
                    victim.send_signal(signal.SIGSTOP)
                    stopped.create_task(crew.stop(victim, 10.0, chance.uniform(0.0, 1.0)))
                else:
                    crew.kill(victim)
                await asyncio.to_thread(look, victim.pid, gone)

    try:
        for _ in WORKERS:
            crew.add()
        async with LocalEngine(journal, loaded=0) as engine:
            beside = [asyncio.create_task(each) for each in (watch(), answer(engine))]
            await asyncio.gather(submit(engine), harm())
            ended = asyncio.gather(*map(engine.result, names), return_exceptions=True)
            results: list[Any] = await ended
            for name, result in zip(names, results, strict=True):
                _compare(made, name, result)
            for each in beside:
                assert not each.done(), each
                each.cancel()
    finally:
        crew.close()
        made.seconds = time.monotonic() - begun
        journal.close()
        watched.close()
    made.kills, made.stops = len(crew.killed), len(crew.woken)
    made.takeovers = takeovers.ended
    made.doctor, made.is_sound = await doctor(server.url)
    made.judge(timed_steps_in(crew.log), recorded, crew.killed)
    return made


def _compare(made: Outcome, name: str, result: Any) -> None:
    if getattr(result, "status", "") != "done":
        made.lost.append(f"{name}: {result!r}")
        return
    said = "yes" if _asks(name) else "nothing"
    wanted = {"run": name, "version": _version(name), "sum": ITEMS * (ITEMS - 1), "said": said}
    if {key: result.output.get(key) for key in wanted} != wanted:
        made.wrong.append(f"{name}: {result}")


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, given in (("runs", 2000), ("kills", 100), ("stops", 5), ("restarts", 4)):
        parser.add_argument(f"--{name}", type=int, default=given)
    options = parser.parse_args()
    with database() as server, tempfile.TemporaryDirectory(prefix="axil-soak-") as folder:
        if server is None:
            print("No PostgreSQL can be started here.")
            return 1
        made = asyncio.run(soak(server, Path(folder), **vars(options)))
    faults = [*made.lost[:9], *made.wrong[:9], *made.doubled[:9], *made.strange[:9]]
    print("\n".join([f"{made}", *faults, *made.slow()]))
    return 0 if made.is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
