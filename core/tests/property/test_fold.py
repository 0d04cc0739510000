"""A run is a fold over its events: a fresh scheduler that is given them returns the same commands
and comes to the same end.
"""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

from hypothesis import given, strategies as st

from axil.compiler.planner import compile_spec
from axil.kernel.events import Command, End, RecordFiring, RecordRound
from axil.kernel.machine import Machine
from axil.kernel.scheduler import Scheduler
from axil.kernel.scopes import machine_type
from axil.kernel.tokens import Activation, Task
from axil.runtime import run as driver
from axil_testing.graphs import RandomGraph, graphs
from axil_testing.specs import Tape

from .strategies import law, seeds
from .test_schedules import run

EVENTS = ("begin", "finish", "fail", "wait", "put_back", "recorded", "refuse", "stop", "next")


def name_of(task: Task) -> str:
    return str(Activation(task.frame, task.node.name, task.ordinal))


def described(command: Command | None) -> Any:
    """Return what a command says, without the objects of one run."""
    if isinstance(command, Task):
        tokens = [(t.edge, repr(t.payload), t.ordinal) for t in command.tokens]
        return (
            "start",
            name_of(command),
            tokens,
            sorted(command.state.items(), key=lambda item: item[0]),
        )
    if isinstance(command, RecordFiring):
        _, task, (delta, _, sends) = command
        return (
            "record",
            name_of(task),
            repr(dict(delta)),
            [(s.arc.id, repr(s.payload), repr(s.values)) for s in sends],
        )
    if isinstance(command, RecordRound):
        visit, ended = command
        exits = [(e.edge, repr(e.payload), e.ordinal) for e in (*ended.exits, *ended.returns)]
        return "round", visit.frame, ended.number, ended.end, repr(dict(ended.changes)), exits
    assert command is None or isinstance(command, End), command
    return command


def observed(log: list[tuple[str, tuple[Any, ...], Any]], made: dict[str, Any]) -> type[Scheduler]:
    """Return a kind of scheduler that writes to ``log`` what passes its doors, and keeps how it was
    made.
    """

    class Watched(Scheduler):
        def __init__(self, root: Machine, **options: Any) -> None:
            made.update(options, root=root.root)
            super().__init__(root, **options)

    def watched(name: str) -> Any:
        inner = getattr(Scheduler, name)

        def call(self: Scheduler, *given: Any) -> Any:
            noted = tuple(name_of(each) if isinstance(each, Task) else each for each in given)
            at = len(log)
            log.append((name, noted, None))
            command = inner(self, *given)
            log[at] = (name, noted, described(command))
            return command

        return call

    for name in EVENTS:
        setattr(Watched, name, watched(name))
    return Watched


@law(60, times=850)
@given(
    case=graphs(cyclic=True),
    choose=seeds,
    is_recorded=st.booleans(),
    concurrency=st.sampled_from([None, 1, 3]),
)
def test_a_fresh_scheduler_reaches_the_same_result_with_the_events_of_a_run(
    case: RandomGraph, choose: random.Random, is_recorded: bool, concurrency: int | None
):
    log: list[tuple[str, tuple[Any, ...], Any]] = []
    made: dict[str, Any] = {}
    with patch.object(driver, "Scheduler", observed(log, made)):
        _, result, _ = run(
            case,
            choose,
            concurrency=concurrency,
            journal=Tape() if is_recorded else None,
            watched=False,
        )
    assert len(log) >= 2
    plan = compile_spec(case.spec())
    root = plan.graph.schema.start(plan.graph.start)
    fresh = Scheduler(machine_type(plan, (), root), records=made["records"])
    tasks: dict[str, Task] = {}
    for event, given_, returned in log:
        event_args = tuple(
            tasks[each] if isinstance(each, str) and each in tasks else each for each in given_
        )
        command = getattr(fresh, event)(*event_args)
        if isinstance(command, Task):
            tasks[name_of(command)] = command
        assert described(command) == returned, event
    ending, ended = fresh.ending(), fresh.ended()
    assert ending.status == result.status
    assert str(ending.error) == str(result.error)
    if result.status == "done":
        assert {path: (t.entries, t.rounds, t.ends) for path, t in fresh.cycles.items()} == {
            path: (t.entries, t.rounds, t.ends) for path, t in result.cycles.items()
        }
        assert dict(ended.state.plain()).keys() == result.attributes.keys()
