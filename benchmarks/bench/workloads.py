"""Workloads: a workload is an ability that a column may have, the sizes at which it is asked for
it, and the right answer.

Standard library alone: the worker reads it in the interpreters of others, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .case import Case

Measure = Literal["run", "cold", "steps", "once", "waiting", "dense", "process"]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One kind of work."""

    name: str
    title: str
    """For the table; ``{}`` stands for the size."""
    ability: str
    """The function of a column that makes what is measured."""
    sizes: tuple[int, ...]
    far: tuple[int, ...] = ()
    """Sizes for the columns that say ``FAR``."""
    unit: str = "µs a node"
    scale: float = 1e6
    """From seconds to the unit; for ``waiting``, from bytes."""
    units: Callable[[int], float] = float
    """Of how many such units a run of a size consists."""
    answer: Callable[[Case], Any] = lambda case: case.size
    settings: Mapping[str, Any] = field(default_factory=dict)
    clock: Literal["processor", "wall"] = "processor"
    """The clock that counts: processor time, which other work on the machine disturbs least; or
    time on the wall, where something is waited for.
    """
    makes: bool = False
    """True if the making of the graph is a row of its own."""
    warm: int | None = None
    """The size at which the work is done once before; None: the smallest."""
    measure: Measure = "run"
    """``run``: again and again, in one process; ``cold``: the first run of each of several graphs,
    in a process that has run another one; ``steps``: early steps beside late ones; ``once``:
    the first time counts, with what it leaves on the disk; ``waiting``: memory; ``dense``: so many
    turns of agents at once; ``process``: a whole process, over a bare interpreter."""

    def case(self, size: int, folder: Path = Path()) -> Case:
        """Return what a column is given."""
        return Case(size, folder=folder, **self.settings)

    def labelled(self, size: int) -> str:
        """Return the workload at a size, in words."""
        return self.title.format(f"{size:,}")


ROUNDS_INSIDE = 10
"""Of a nested loop, for each round outside."""
NODES_OF_A_RUN = 10
"""Of each of many runs."""
NODES_WITH_PAYLOAD = 50
DISTRIBUTIONS = 400

EDGES = {"edges": 3}
"""For each node of a random graph."""
LIST = {"bytes": 1024}
MODEL = {"seconds": 0.02}
"""The seconds that the model of an agent takes for a reply."""

WORKLOADS = (
    Workload(
        name="chain",
        title="chain of {}",
        ability="chain",
        sizes=(10, 100, 1000),
        far=(10_000, 100_000),
        makes=True,
    ),
    Workload(
        name="small",
        title="run of {} nodes",
        ability="chain",
        sizes=(1, 5, 10, 20),
        unit="µs a run",
        units=lambda size: 1,
    ),
    Workload(
        name="small-cold",
        title="first run of a graph of {} nodes",
        ability="chain",
        sizes=(1, 5, 10, 20),
        unit="µs a run",
        units=lambda size: 1,
        measure="cold",
    ),
    Workload(
        name="plain",
        title="chain of {}, plain bodies",
        ability="plain",
        sizes=(100, 1000),
        far=(10_000,),
    ),
    Workload(
        name="idle",
        title="chain of {}, bodies that do nothing",
        ability="idle",
        sizes=(10, 100, 1000),
        far=(10_000, 100_000),
    ),
    Workload(
        name="typed", title="chain of {}, each write validated", ability="typed", sizes=(100, 1000)
    ),
    Workload(
        name="fields",
        title="chain of 1,000, fields of the state: {}",
        ability="fields",
        sizes=(1, 100, 1000),
        units=lambda size: 1000,
        answer=lambda case: 1000,
    ),
    Workload(
        name="watched", title="chain of {}, one observer", ability="watched", sizes=(100, 1000)
    ),
    Workload(name="streamed", title="chain of {}, streamed", ability="streamed", sizes=(100, 1000)),
    Workload(
        name="fan",
        title="fan of {}, out and in",
        ability="fan",
        sizes=(10, 100, 1000),
        far=(10_000,),
        unit="µs a branch",
        makes=True,
    ),
    Workload(
        name="fan-50ms",
        title="fan of {} bodies of 50 ms",
        ability="fan",
        sizes=(10, 100, 1000),
        far=(10_000,),
        unit="ms",
        scale=1e3,
        units=lambda size: 1,
        settings={"seconds": 0.05},
        clock="wall",
    ),
    Workload(
        name="dag",
        title="random acyclic graph, {} nodes, three times the edges",
        ability="dag",
        sizes=(100, 1000),
        far=(10_000, 100_000),
        makes=True,
        settings=EDGES,
    ),
    Workload(
        name="dag-cold",
        title="first run of a random acyclic graph of {} nodes",
        ability="dag",
        sizes=(100, 1000),
        settings=EDGES,
        measure="cold",
    ),
    Workload(
        name="loop",
        title="loop of two nodes, {} rounds",
        ability="loop",
        sizes=(100, 1000, 10_000),
        far=(100_000, 1_000_000),
        unit="µs a round",
    ),
    Workload(
        name="plain-loop",
        title="loop of two nodes, plain bodies, {} rounds",
        ability="plain_loop",
        sizes=(100, 1000),
        far=(10_000,),
        unit="µs a round",
    ),
    Workload(
        name="agent",
        title="agent that calls its tool {} times, model of 20 ms",
        ability="agent",
        sizes=(1, 10),
        unit="µs a model call",
        units=lambda size: size + 1,
        settings=MODEL,
    ),
    Workload(
        name="agent-at-once",
        title="agent that calls its tool {} times, model that answers at once",
        ability="agent",
        sizes=(1, 10),
        unit="µs a model call",
        units=lambda size: size + 1,
    ),
    Workload(
        name="agent-kept",
        title="agent that calls its tool {} times, model of 20 ms, kept on disk",
        ability="kept_agent",
        sizes=(1, 10),
        unit="µs a model call",
        units=lambda size: size + 1,
        settings=MODEL,
    ),
    Workload(
        name="agent-kept-at-once",
        title="agent that calls its tool {} times, model that answers at once, kept on disk",
        ability="kept_agent",
        sizes=(1, 10),
        unit="µs a model call",
        units=lambda size: size + 1,
    ),
    Workload(
        name="dense",
        title="{} agents at once, conversations of 2 KB, model of 1 s",
        ability="agent",
        sizes=(1000,),
        far=(10_000,),
        unit="µs a turn",
        settings={"bytes": 2048},
        measure="dense",
    ),
    Workload(
        name="nested",
        title=f"{{}} rounds of {ROUNDS_INSIDE} rounds",
        ability="nested",
        sizes=(100,),
        far=(1000,),
        unit="µs an inner round",
        units=lambda size: size * ROUNDS_INSIDE,
        answer=lambda case: case.size * ROUNDS_INSIDE,
    ),
    Workload(
        name="map",
        title="map over {} items",
        ability="mapped",
        sizes=(100, 1000),
        far=(10_000,),
        unit="µs an item",
        answer=lambda case: case.size * (case.size + 1) // 2,
    ),
    Workload(
        name="growing",
        title="list that grows to {}",
        ability="growing",
        sizes=(100, 1000),
        far=(10_000,),
        unit="µs a step",
        measure="steps",
    ),
    Workload(
        name="payload",
        title=f"chain of {NODES_WITH_PAYLOAD}, {{}} bytes untouched in the state",
        ability="payload",
        sizes=(0, 1_000_000, 10_000_000),
        units=lambda size: NODES_WITH_PAYLOAD,
        answer=lambda case: (NODES_WITH_PAYLOAD, case.size // 1000),
    ),
    Workload(
        name="crowd",
        title=f"{{}} runs of {NODES_OF_A_RUN} bodies of 10 ms",
        ability="crowd",
        sizes=(200,),
        far=(5000,),
        unit="ms",
        scale=1e3,
        units=lambda size: 1,
        answer=lambda case: [NODES_OF_A_RUN] * case.size,
        settings={"seconds": 0.01},
        clock="wall",
    ),
    Workload(
        name="waiting",
        title="{} runs that wait",
        ability="crowd",
        sizes=(1000,),
        unit="KB a run",
        scale=1e-3,
        answer=lambda case: [NODES_OF_A_RUN] * case.size,
        measure="waiting",
    ),
    Workload(
        name="durable",
        title="{} durable steps",
        ability="durable",
        sizes=(1000,),
        warm=5,
        unit="µs a step",
        measure="once",
        clock="wall",
    ),
    Workload(
        name="durable-list",
        title="{} durable steps, each adding 1 KB to a list",
        ability="durable",
        sizes=(1000,),
        warm=5,
        unit="µs a step",
        settings=LIST,
        measure="once",
        clock="wall",
    ),
    Workload(
        name="durable-together",
        title="100 runs at once of {} durable steps, each adding 1 KB to a list",
        ability="durable",
        sizes=(50,),
        warm=2,
        unit="µs a step",
        units=lambda size: size * 100,
        settings={**LIST, "runs": 100},
        measure="once",
        clock="wall",
    ),
    Workload(
        name="import",
        title="import",
        ability="IMPORT",
        sizes=(1,),
        unit="ms over a bare interpreter",
        scale=1e3,
        measure="process",
    ),
    Workload(
        name="first",
        title="first result of two nodes, from Python",
        ability="first",
        sizes=(1,),
        unit="ms over a bare interpreter",
        scale=1e3,
        measure="process",
    ),
    Workload(
        name="command",
        title="a small file run by the command",
        ability="COMMAND",
        sizes=(1,),
        unit="ms over a bare interpreter",
        scale=1e3,
        measure="process",
    ),
    Workload(
        name="newsroom",
        title="agents that research, write and review, run by the command, with a script",
        ability="NEWSROOM",
        sizes=(1,),
        unit="ms over a bare interpreter",
        scale=1e3,
        measure="process",
    ),
    Workload(
        name="check",
        title="check of a file of {} nodes",
        ability="check",
        sizes=(50, 5000),
        unit="µs a node",
    ),
    Workload(
        name="discovery",
        title="discovery among {} distributions, after the import of the metadata library",
        ability="discovery",
        sizes=(DISTRIBUTIONS,),
        warm=3,
        unit="ms",
        scale=1e3,
        units=lambda size: 1,
        answer=lambda case: (case.size, []),
        measure="once",
    ),
)

BY_NAME = {workload.name: workload for workload in WORKLOADS}
