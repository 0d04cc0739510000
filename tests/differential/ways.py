"""The ways of running one random workflow, all of which have to lead to the same."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from traceback import format_exc
from typing import Any, NamedTuple
from unittest.mock import patch

import yaml

from axil import Limits, NodeFailed, Question, Result, SpecError, Workflow, hookimpl
from axil.driver import inner_frame
from axil.plugin import CompileOptions, hook_manager
from axil_files import dump_spec, load
from axil_journals import Entry, LocalEngine, MemoryJournal, Recording, fork
from axil_process import ProcessExecutor
from axil_sqlite import SqliteJournal
from axil_testing import VirtualClock
from tests.internals import internal

from . import graphs
from .graphs import Graph, Node, Observed
from .model import expected
from .product import FIRINGS, World, observed, spec_of
from .shrink import smallest

LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
CUTS = 4 if LONG else 2
"""At how many entries of its journal a run is cut off, or forked."""
PATIENCE_SECONDS = 60
"""A run that takes longer hangs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One workflow, what it comes to, and chance."""

    graph: Graph
    chance: random.Random
    plain: Observed


Run = Callable[[Case], Iterator[Observed]]
Applies = Callable[[Graph], bool]


def asks(graph: Graph) -> bool:
    """Return whether a node asks a person."""
    return any(node.asks for node in graph.all_nodes())


def has_exits(graph: Graph) -> bool:
    """Return whether each graph has an edge to its exit, as files want it."""
    return all(any(e.target == graphs.EXIT for e in each.edges) for each in graph.all_graphs())


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way of running a workflow."""

    name: str
    run: Run
    weight: float
    """Its weight, compared with others: some cost much, some are seldom possible."""
    applies: Applies
    """A function that says if a workflow can be run so."""
    ends_well: bool
    """Only workflows that come to ``done`` are run so."""


WAYS: dict[str, Way] = {}


def way(
    weight: float = 1,
    applies: Applies = lambda graph: True,
    ends_well: bool = False,
) -> Callable[[Run], Run]:
    """Make a function a way, named like the function."""

    def named(run: Run) -> Run:
        name = run.__name__.replace("_", " ")
        WAYS[name] = Way(name=name, run=run, weight=weight, applies=applies, ends_well=ends_well)
        return run

    return named


# ------------------------------------------------------------------------------------ comparing


class Difference(NamedTuple):
    """A difference between two runs of one workflow."""

    way: str
    """In which way it was run; empty: plainly, which is not what the model says."""
    what: str
    """The part that differs: ``activation``, ``output``, ``state`` …"""
    reported: str
    """Both, in words."""


def compared(graph: Graph, seed: int, most: int = 0, only: str = "") -> Iterator[Difference]:
    """Yield how a workflow that is run in several ways differs from what it has to come to.

    Args:
        most: in so many ways, by the seed.
        only: in this one.
    Raises: SpecError: it is no workflow.
    """
    try:
        plain = finished(graph)
        found = plain.difference(expected(graph))
    except SpecError:
        raise
    except Exception:  # noqa: BLE001  # whatever breaks in either is a difference
        yield Difference("", "broken", f"plainly, or the reference model: {format_exc()}")
        return
    if found:
        yield Difference("", found.split()[0], f"plainly, and the reference model: {found}")
        return
    for each in [WAYS[only]] if only else choice(graph, seed, most):
        case = Case(graph=graph, chance=random.Random(f"{each.name} {seed}"), plain=plain)
        if each.applies(graph) and (plain.status == "done" or not each.ends_well):
            yield from _difference(case, each)


def _difference(case: Case, way: Way) -> Iterator[Difference]:
    try:
        for seen in way.run(case):
            if found := case.plain.difference(seen):
                reported = f"plainly, and {way.name}{seen.way and f', {seen.way}'}: {found}"
                yield Difference(way.name, found.split()[0], reported)
                return
    except Exception:  # noqa: BLE001  # whatever breaks is a difference
        yield Difference(way.name, "broken", f"{way.name}: {format_exc()}")


def choice(graph: Graph, seed: int, most: int) -> list[Way]:
    """Return the ways in which the workflow of a seed is run: others for each seed."""
    chance = random.Random(f"ways {seed}")
    keys = {name: chance.random() ** (1 / way.weight) for name, way in WAYS.items()}
    fit = [way for way in WAYS.values() if way.applies(graph)]
    return sorted(fit, key=lambda way: -keys[way.name])[:most]


def smallest_of(graph: Graph, seed: int, found: Difference) -> Graph:
    """Return the smallest workflow that differs in the same way and thing as ``found`` does."""

    def differs(simpler: Graph) -> bool:
        with suppress(SpecError):  # one step too far: it is no workflow any more
            every = compared(simpler, seed, only=found.way)
            return any(each[:2] == found[:2] for each in every)
        return False

    return smallest(graph, differs)


def report(graph: Graph, seed: int, found: Difference) -> str:
    """Return a difference, and the smallest workflow that shows it, as text that can be pasted."""
    small = smallest_of(graph, seed, found)
    again = next(compared(small, seed, only=found.way), found)
    lines = [
        f"seed {seed}: {found.reported}",
        f"The smallest workflow with such a difference: {again.reported}",
        str(small),
    ]
    if text := as_yaml(small):
        lines += ["The same as a file:", text]
    return "\n\n".join(lines)


def as_yaml(graph: Graph) -> str:
    """Return a workflow as a file; empty, if no file can express it."""
    if filed(graph) != graph or not has_exits(graph):
        return ""
    return yaml.safe_dump(dump_spec(spec_of(graph, World(is_file=True))), sort_keys=False)


# -------------------------------------------------------------------------------------- running


class Person:
    """A person at a terminal, who answers at once."""

    async def ask(self, question: Question) -> Any:
        return graphs.answer(question.text)


def workflow_of(graph: Graph, world: World, **setting: Any) -> Workflow:
    """Return a workflow, compiled."""
    workflow = Workflow(spec_of(graph, world), CompileOptions(**setting) if setting else None)
    assert workflow.plan
    return workflow


async def _finished(workflow: Workflow, world: World, **options: Any) -> Result:
    given = {"clock": VirtualClock(), "channel": Person(), **options}
    async with workflow, asyncio.timeout(PATIENCE_SECONDS):
        return await workflow.start({}, **given).result()


def finished(graph: Graph, world: World | None = None, **options: Any) -> Observed:
    """Run a workflow to its end; return what is seen."""
    world = world or World()
    return observed(asyncio.run(_finished(workflow_of(graph, world), world, **options)), world)


def some_world(case: Case, **more: Any) -> World:
    """Return a world in which bodies take different times."""
    delays = case.chance.choice(("none", "turns", "clock"))
    given = {"mode": "mixed", "delays": delays, **more}
    return World(chance=random.Random(case.chance.random()), **given)


# --------------------------------------------------------------------------- orders and bodies


@way()
def in_another_order_of_turns(case: Case) -> Iterator[Observed]:
    yield finished(case.graph, some_world(case, delays="turns"))
    yield finished(case.graph, some_world(case, mode="async", delays="turns"))


@way()
def in_another_order_of_times(case: Case) -> Iterator[Observed]:
    yield finished(case.graph, some_world(case, delays="clock"))
    yield finished(case.graph, some_world(case, mode="async", delays="clock"))


@way()
def with_few_bodies_at_once(case: Case) -> Iterator[Observed]:
    for most in (1, 2):
        limits = Limits(firings=FIRINGS, concurrency=most)
        yield finished(case.graph, some_world(case, mode="async"), limits=limits)


@way(weight=0.7)
def with_async_bodies(case: Case) -> Iterator[Observed]:
    yield finished(case.graph, World(mode="async"))


@way(weight=0.6)
def with_bodies_in_threads(case: Case) -> Iterator[Observed]:
    yield finished(case.graph, World(mode="thread"))


@way(weight=0.7)
def with_bodies_in_processes(case: Case) -> Iterator[Observed]:
    world = World(names=lambda node: not (node.items or node.inside or node.fails))
    with importable():
        workflow = workflow_of(case.graph, world, allow_code=True)
        options = {"executor": PROCESSES, "observers": [world]}
        result = PROCESSES.loop.run(_finished(workflow, world, **options))
    yield observed(result, world)


class Processes:
    """An executor whose workers outlast a run, and the event loop to which they belong."""

    def __init__(self) -> None:
        self._loop: asyncio.Runner | None = None
        self._executor = ProcessExecutor(workers=2, lanes=["named"])

    @property
    def loop(self) -> asyncio.Runner:
        """The event loop, made when it is first needed."""
        self._loop = self._loop or asyncio.Runner()
        return self._loop

    async def execute(self, body: Any, task: Any, ctx: Any) -> Any:
        """See ``axil.driver.Executor``."""
        return await self._executor.execute(body, task, ctx)

    async def close(self) -> None:
        """Keep the workers: another run comes."""

    def end(self) -> None:
        """End the workers and the event loop."""
        if self._loop is not None:
            self._loop.run(self._executor.close())
            self._loop.close()
            self._loop = None


PROCESSES = Processes()


@contextmanager
def importable() -> Iterator[None]:
    """Let other processes import what is in this folder."""
    root = str(Path(__file__).resolve().parents[__name__.count(".")])
    before = list(sys.path)
    sys.path.append(root)
    try:
        yield
    finally:
        sys.path[:] = before


# ------------------------------------------------------------------------------------- journals


class Broken(Exception):
    """The exception of a journal that is made to break."""


@dataclass
class Tape(Recording):
    """A journal around another one: remembers all entries, and breaks at one of them."""

    journal: Any
    breaks_at: int = -1
    lines: list[Entry] = field(default_factory=list[Entry])

    def open(self, run_id: str) -> _TapeBook:
        return _TapeBook(self, self.journal.open(run_id))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)


class _TapeBook:
    def __init__(self, tape: Tape, writer: Any) -> None:
        self.tape, self.writer = tape, writer

    def append(self, entry: Entry) -> None:
        if len(self.tape.lines) == self.tape.breaks_at:
            raise Broken("the journal breaks here.")
        self.tape.lines.append(entry)
        self.writer.append(entry)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.writer, name)


def known(case: Case, entries: Iterable[Entry]) -> set[str]:
    """Return the activations that need not run again where a journal has these entries.

    Those inside a scope that is done, and inside a round that is over, need not either.
    """
    names: set[str] = set()
    scopes: list[str] = []
    for entry in entries:
        if entry.kind not in ("done", "round"):
            continue
        inside = "/".join(map(str, inner_frame(entry.frame, entry.node, entry.ordinal)))
        if entry.kind == "done":
            names.add(str(entry.activation))
            scopes.append(f"{inside}/")
        else:
            scopes += [f"{inside}/{round}/" for round in range(entry.data["round"] + 1)]

    def is_inside(name: str) -> bool:
        """Return whether a scope holds it; ``a/#1/b`` is in another firing of ``a`` than ``a/``."""
        return any(name.startswith(at) and not name[len(at) :].startswith("#") for at in scopes)

    return {name for name in case.plain.activations if name in names or is_inside(name)}


def resumed(case: Case, world: World, entries: Iterable[Entry], result: Result) -> Observed:
    """Return what is seen of a run that began with ``entries``, in a world of its own.

    What was done before counts as seen; it must not run again.
    """
    seen, before = observed(result, world), known(case, entries)
    again = before & world.ran.keys()
    if again:
        return replace(seen, status="inconsistent", error=f"ran again: {sorted(again)}")
    activations = {name: case.plain.activations[name] for name in before}
    return replace(seen, activations={**activations, **seen.activations})


def cut(case: Case, journals: Callable[[], Any]) -> Iterator[Observed]:
    """Run with a journal; cut the run off at some entries, each time anew, and resume it.

    Args:
        journals: gives one and the same journal, opened anew.
    """
    journal = journals()
    tape, world = Tape(journal), some_world(case)
    workflow = workflow_of(case.graph, world)
    result = asyncio.run(_finished(workflow, world, journal=tape, run_id="whole"))
    journal.close()
    yield observed(result, world)
    for at in some(case, range(1, len(tape.lines))):
        yield from _cut_at(case, journals, at)


def some(case: Case, places: Sequence[int]) -> Sequence[int]:
    """Return some of the places, by chance."""
    return sorted(case.chance.sample(places, min(len(places), CUTS)))


def _cut_at(case: Case, journals: Callable[[], Any], at: int) -> Iterator[Observed]:
    world, name = some_world(case), f"cut {at}"
    journal = journals()
    tape = Tape(journal, at)
    try:
        workflow = workflow_of(case.graph, world)
        asyncio.run(_finished(workflow, world, journal=tape, run_id=name))
    except Broken:
        pass
    journal.close()
    journal, world = journals(), some_world(case, failed=world.failed)
    workflow = workflow_of(case.graph, world)
    options = {"journal": journal, "run_id": name, "resuming": True}
    result = asyncio.run(_finished(workflow, world, **options))
    journal.close()
    yield replace(resumed(case, world, tape.lines, result), way=f"cut at entry {at}")


class Memory(MemoryJournal):
    """A journal in memory that can be opened anew."""

    def close(self) -> None:
        pass


@way(ends_well=True)
def cut_off_with_a_journal_in_memory(case: Case) -> Iterator[Observed]:
    journal = Memory()
    yield from cut(case, lambda: journal)


@way(weight=0.4, ends_well=True)
def cut_off_with_sqlite_full(case: Case) -> Iterator[Observed]:
    with tempfile.TemporaryDirectory() as folder:
        yield from cut(case, lambda: SqliteJournal(folder, sync="full"))


@way(weight=0.4, ends_well=True)
def cut_off_with_sqlite_normal(case: Case) -> Iterator[Observed]:
    with tempfile.TemporaryDirectory() as folder:
        yield from cut(case, lambda: SqliteJournal(folder, sync="normal"))


class Kept(MemoryJournal):
    """A journal in memory with a run that has all its entries, superseded ones too."""

    def __init__(self, lines: Sequence[Entry]) -> None:
        super().__init__()
        self.lines = lines

    def entries(self, run_id: str) -> Sequence[Entry]:
        return self.lines if run_id == "whole" else super().entries(run_id)


@way(weight=0.8, ends_well=True)
def forked(case: Case) -> Iterator[Observed]:
    journal, whole = MemoryJournal(), some_world(case)
    workflow = workflow_of(case.graph, whole)
    tape = Tape(journal)
    result = asyncio.run(_finished(workflow, whole, journal=tape, run_id="whole"))
    yield observed(result, whole)
    is_whole = case.chance.random() < 0.5
    entries = tape.lines if is_whole else list(journal.entries("whole"))
    for at in some(case, range(1, len(entries) + 1)):
        before, name = Kept(entries), f"fork {at}"
        world = some_world(case, failed=whole.failed)
        workflow = workflow_of(case.graph, world)
        to = workflow if case.chance.random() < 0.5 else None
        asyncio.run(fork(before, "whole", name, at=at, workflow=to))
        options = {"journal": before, "run_id": name, "resuming": True}
        result = asyncio.run(_finished(workflow, world, **options))
        seen = resumed(case, world, entries[:at], result)
        if not is_whole:  # what was dropped is done anew, and counts twice
            seen = replace(seen, cycles=case.plain.cycles)
        yield replace(seen, way=f"forked at step {at}")


# --------------------------------------------------------------------------- people and engines


@way(weight=4, applies=asks, ends_well=True)
def paused_and_answered(case: Case) -> Iterator[Observed]:
    journal, world = MemoryJournal(), some_world(case)
    workflow = workflow_of(case.graph, world)
    options: dict[str, Any] = {"journal": journal, "run_id": "r", "channel": None}
    result = asyncio.run(_finished(workflow, world, **options))
    for _ in range(FIRINGS):
        if result.status != "paused":
            break
        asked = list(result.questions)
        few = case.chance.sample(asked, case.chance.randint(1, len(asked)))
        answers = {question.id: graphs.answer(question.text) for question in few}
        options |= {"resuming": True, "answers": answers}
        result = asyncio.run(_finished(workflow, world, **options))
    yield observed(result, world)


@way(weight=0.8, ends_well=True)
def put_away_and_brought_back(case: Case) -> Iterator[Observed]:
    world = some_world(case, mode="async", delays="clock")
    workflow = workflow_of(case.graph, world)
    yield observed(asyncio.run(_owned(case, workflow, MemoryJournal())), world)


@way(weight=0.3, ends_well=True)
def put_away_in_a_database(case: Case) -> Iterator[Observed]:
    if len(case.plain.activations) > FIRINGS // 4:
        return  # each time that it is brought back, its whole journal is read
    world = some_world(case, mode="async", delays="clock")
    workflow = workflow_of(case.graph, world)
    with tempfile.TemporaryDirectory() as folder:
        journal = SqliteJournal(folder, sync=case.chance.choice(("full", "normal")))
        result = asyncio.run(_owned(case, workflow, journal))
        journal.close()
    yield observed(result, world)


async def _owned(case: Case, workflow: Workflow, journal: Any) -> Result:
    """Run under engines that put the run away as soon as all its bodies sleep or ask.

    The first of them closes after a while, and the second takes the run up.
    """
    clock = VirtualClock()
    async with LocalEngine(journal, [workflow], clock=clock, patience_seconds=0.15) as engine:
        await engine.start(workflow, {}, run_id="r")
        first = await _looked_after(case, engine, clock, range(case.chance.randint(0, 4)))
    if first is not None:
        return first
    async with LocalEngine(journal, [workflow], clock=clock, patience_seconds=0.15) as engine:
        async with asyncio.timeout(PATIENCE_SECONDS):  # the clock runs on while the disk is slow
            second = await _looked_after(case, engine, clock, count())
    assert second is not None
    return second


async def _looked_after(
    case: Case, engine: LocalEngine, clock: VirtualClock, looks: Iterable[int]
) -> Result | None:
    """Answer the questions of a run; return its result, if it ended within these looks."""
    ended = asyncio.ensure_future(engine.result("r"))
    for _ in looks:
        await clock.sleep(0.5)
        if ended.done():
            return await ended
        for question in engine.get("r").questions[:1] if asks(case.graph) else ():
            await engine.answer("r", {question.id: graphs.answer(question.text)})
    ended.cancel()
    return None


# ------------------------------------------------------------------------------------- watched


class Listening:
    """An observer, and a hook plugin, that hears everything."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.finished: list[str] = []

    @hookimpl
    def firing_started(self, activation: Any, kind: str) -> None:
        if kind == "node":
            self.started.append(str(activation))

    @hookimpl
    def firing_finished(self, activation: Any, kind: str, output: Any) -> None:
        if kind == "node":
            self.finished.append(str(activation))
            if isinstance(output, dict):
                output.clear()  # what an observer does to it is not seen

    @hookimpl
    def firing_skipped(self, activation: Any, kind: str) -> None:
        pass


class Wrapping:
    """A hook plugin with a body around each body."""

    @hookimpl
    def wrap_body(self, body: Any) -> Any:
        return None if body.mode == "scope" else _Wrapped(body)


class _Wrapped:
    wants_ctx = True

    def __init__(self, body: Any) -> None:
        self.body, self.mode = body, body.mode

    def __call__(self, task: Any, ctx: Any, /) -> Any:
        return self.body(task, ctx)


def heard(case: Case, listening: Listening, seen: Observed) -> Observed:
    """Return ``seen``, or what an observer heard if that is not each activation once."""
    wanted = sorted(case.plain.activations)
    if seen.status == case.plain.status == "done":
        for reported in (listening.started, listening.finished):
            if sorted(reported) != wanted:
                return replace(seen, status="inconsistent", error=f"heard {sorted(reported)}")
    return seen


@way(weight=0.7)
def watched(case: Case) -> Iterator[Observed]:
    listening, world = Listening(), some_world(case, emits=True)
    yield heard(case, listening, finished(case.graph, world, observers=[listening]))


@way(weight=0.7)
def with_hooks(case: Case) -> Iterator[Observed]:
    listening, world = Listening(), some_world(case, emits=True)
    workflow = workflow_of(case.graph, world, hooks=hook_manager([listening, Wrapping()]))
    yield heard(case, listening, observed(asyncio.run(_finished(workflow, world)), world))


@way(weight=0.7)
def streamed(case: Case) -> Iterator[Observed]:
    world = some_world(case, emits=True)
    workflow = workflow_of(case.graph, world)
    yield observed(asyncio.run(_streamed(workflow)), world)


async def _streamed(workflow: Workflow) -> Result:
    last: Any = None
    with suppress(NodeFailed):  # raised after the last event
        async for event in workflow.stream({}, clock=VirtualClock(), channel=Person()):
            last = event
    assert last is not None
    return last.data


# --------------------------------------------------------------------------------- short ways


@contextmanager
def long_ways(chance: random.Random) -> Iterator[None]:
    """Switch off all short ways of the machine and the scheduler, or some of them by chance."""
    is_all = chance.random() < 0.5

    def off(name: str) -> bool:
        return is_all or chance.random() < 0.5

    plain = {"quick": off("quick"), "chain": off("chain"), "spreads": off("spreads")}

    def node(**given: Any) -> Any:
        given["quick"] = given["quick"] and not plain["quick"]
        given["chain"] = None if plain["chain"] else given["chain"]
        given["spreads"] = given["spreads"] and not plain["spreads"]
        return PLAN_NODE(**given)

    with ExitStack() as stack:
        stack.enter_context(patch.object(FOLDING, "PlanNode", node))
        if off("turn"):
            stack.enter_context(patch.object(CYCLE_RUNS, "takes_short", _no_turn))
        if off("follow"):
            stack.enter_context(patch.object(QUICK, "follow", QUICK.prepare))
        yield


FOLDING = internal("folding")
CYCLE_RUNS = internal("CycleRun")
QUICK = internal("machine_type")
PLAN_NODE = FOLDING.PlanNode


def _no_turn(visit: Any, step: Any) -> bool:
    return False


@way()
def without_short_ways(case: Case) -> Iterator[Observed]:
    with long_ways(case.chance):
        yield finished(case.graph, World())
        yield finished(case.graph, some_world(case), journal=MemoryJournal())


# --------------------------------------------------------------------------------------- files


def filed(graph: Graph) -> Graph:
    """Return a workflow like ``graph`` that a file can express."""
    fields = ("log", "total") if graph.typed else graphs.OPEN
    nodes = tuple(_filed(node, fields) for node in graph.nodes)
    edges = tuple(replace(edge, filter="", routed=False) for edge in graph.edges)
    pulls, pushes = (
        None if names is None else tuple(name for name in names if name in fields)
        for names in (graph.pulls, graph.pushes)
    )
    return replace(graph, nodes=nodes, edges=edges, pulls=pulls, pushes=pushes)


def _filed(node: Node, fields: Sequence[str]) -> Node:
    inside = None if node.inside is None or node.items else filed(node.inside)
    writes = () if inside else tuple(name for name in node.writes if name in fields)
    plain = replace(node, inside=inside, items=0, writes=writes)
    return replace(plain, routes=(), merges=False, fails=0)


@way(weight=0.7, applies=has_exits)
def written_and_read_back(case: Case) -> Iterator[Observed]:
    graph = filed(case.graph)
    world = World(is_file=True)
    reported = dump_spec(spec_of(graph, world))
    expects = expected(graph)
    for suffix, text in ((".json", json.dumps(reported)), (".yaml", yaml.safe_dump(reported))):
        world = World(is_file=True)
        with tempfile.TemporaryDirectory() as folder, importable():
            path = Path(folder, f"flow{suffix}")
            path.write_text(text, "utf-8")
            workflow = load(path, allow_code=True)
            result = asyncio.run(_finished(workflow, world, observers=[world]))
        seen = observed(result, world)
        found = seen.difference(expects)
        if found:
            message = f"as {suffix[1:]}, and the reference model: {found}\n{graph}"
            yield replace(seen, status="inconsistent", error=message)
