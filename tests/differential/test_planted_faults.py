"""Faults that are planted in axil, one for each rule, are found by the comparison.

A fault changes the product while a test runs, never the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from tests.internals import internal

from . import ways
from .generation import random_graph

barriers, folding, joins, journal, machine, planner, scopes, state, subgraphs = map(
    internal,
    (
        "barriers",
        "folding",
        "joins",
        "journal",
        "machine",
        "planner",
        "scopes",
        "state",
        "subgraphs",
    ),
)
GRAPHS = 2_000
Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault, and the way of running that shows it."""

    plant: Plant
    way: str = ""
    """Empty: the plain run shows it."""
    first: int = 0
    """The workflow to begin with: many before it are known to show nothing."""


FAULTS: dict[str, Fault] = {}
IN_TIME = "in another order of times"
CUT_OFF = "cut off with a journal in memory"


def fault(way: str = "", first: int = 0) -> Callable[[Plant], Plant]:
    """Make a function a fault, named like the function."""

    def named(plant: Plant) -> Plant:
        FAULTS[plant.__name__.replace("_", " ")] = Fault(plant=plant, way=way, first=first)
        return plant

    return named


def graphs_until_found(fault: Fault) -> int:
    """Return after how many workflows a planted fault shows; 0: after none of them.

    A fault that is planted wrongly breaks every run with a TypeError, and shows nothing.
    """
    for number in range(GRAPHS):
        seed = fault.first + number
        for found in ways.compared(random_graph(seed), seed, only=fault.way):
            assert "TypeError:" not in found.reported, found.reported
            return number + 1
    return 0


# -------------------------------------------------------------------------------------- joins


def _ports_that_join(patch: Patch, others: Mapping[str, str]) -> None:
    port, known = folding.Port, joins.JOINS

    def made(node: int, group: str, join: Any, *more: Any) -> Any:
        name = others.get(join.name)
        return port(node, group, join if name is None else known[name], *more)

    patch.setattr(folding, "Port", made)


@fault()
def a_gate_needs_all_its_edges(patch: Patch) -> None:
    _ports_that_join(patch, {"gate": "all"})


@fault()
def all_fires_with_one_live_edge(patch: Patch) -> None:
    _ports_that_join(patch, {"all": "gate"})


@fault(IN_TIME)
def a_gate_fires_with_the_first_edge_that_is_decided(patch: Patch) -> None:
    begin = machine.Machine.__init__

    def begins(self: Any, plan: Any, *given: Any, **more: Any) -> None:
        begin(self, plan, *given, **more)
        self._waits = [min(1, waits) for waits in self._waits]

    patch.setattr(machine.Machine, "__init__", begins)


@fault()
def groups_do_not_join_independently(patch: Patch) -> None:
    edge = planner.Edge
    patch.setattr(planner, "Edge", lambda **given: edge(**{**given, "group": ""}))


@fault(first=1200)
def a_skipped_node_sends_no_dead_tokens(patch: Patch) -> None:
    def settle(self: Any) -> None:
        while self._todo:
            unit = self._todo.pop()
            if any(self.fired[index] for index in self.plan.units[unit]):
                self._todo.append(unit)
                return settled(self)
            self._closed(unit)

    settled = machine.Machine._settle
    patch.setattr(machine.Machine, "_settle", settle)


@fault(IN_TIME)
def tokens_are_taken_in_the_order_of_their_arrival(patch: Patch) -> None:
    patch.setattr(machine, "_BY_EDGE", lambda token: 0)
    patch.setattr(machine.Machine, "_place", lambda self, token: 0)


@fault()
def ordinals_count_arrivals(patch: Patch) -> None:
    arrivals = count()
    patch.setattr(machine, "next_ordinal", lambda position, source: (next(arrivals),))


# ------------------------------------------------------------------------------------- cycles


@fault()
def what_waits_on_a_data_edge_is_lost_between_rounds(patch: Patch) -> None:
    patch.setattr(scopes.CycleRun, "_kept", lambda self, stays, state: {})


@fault()
def what_came_back_to_a_cycle_that_was_left_is_lost(patch: Patch) -> None:
    kept = scopes.CycleRun._kept

    def loses(self: Any, stays: Any, state: Any) -> Any:
        edges = self.cycle.graph.edges
        return kept(self, [each for each in stays if not edges[each.edge].trigger], state)

    patch.setattr(scopes.CycleRun, "_kept", loses)


@fault()
def coming_back_beats_leaving(patch: Patch) -> None:
    go_on = scopes.CycleRun.next

    def goes_on(self: Any, ended: Any) -> None:
        is_back = any(each.trigger for each in ended.returns)
        go_on(self, ended._replace(exits=()) if is_back else ended)

    patch.setattr(scopes.CycleRun, "next", goes_on)


@fault()
def a_cycle_turns_once_more_than_its_limit(patch: Patch) -> None:
    begin = scopes.CycleRun.__init__

    def begins(self: Any, *given: Any, **more: Any) -> None:
        begin(self, *given, **more)
        if self.limit.rounds is not None:
            self.limit = replace(self.limit, rounds=self.limit.rounds + 1)

    patch.setattr(scopes.CycleRun, "__init__", begins)


@fault()
def nodes_above_one_that_may_leave_do_not_wait(patch: Patch) -> None:
    patch.setattr(barriers.Barrier, "holds", lambda self, level: False)


@fault()
def what_nodes_keep_is_lost_between_rounds(patch: Patch) -> None:
    begin = scopes.CycleRun._round

    def begins(self: Any) -> Any:
        values = {name: value for name, value in self.state.items() if name[0] != "@"}
        self.state = self.state.schema.start(values)
        return begin(self)

    patch.setattr(scopes.CycleRun, "_round", begins)
    patch.setattr(scopes.CycleRun, "takes_short", lambda self, step: False)


@fault()
def a_cycle_hands_on_what_its_last_round_wrote(patch: Patch) -> None:
    take = scopes.CycleRun._take

    def takes(self: Any, *given: Any) -> None:
        self.total = state.History(self.total.schema, keeps=True)
        take(self, *given)

    patch.setattr(scopes.CycleRun, "_take", takes)
    patch.setattr(scopes.CycleRun, "takes_short", lambda self, step: False)


@fault(IN_TIME, first=260)
def a_wave_is_cut_off_in_the_order_of_arrival(patch: Patch) -> None:
    def wave(self: Any, unit: int) -> Any:
        parts: tuple[list[Any], list[Any]] = [], []
        for due in self._held.pop(unit):
            parts[0 if self._count(due[0]) else 1].append(due)
        return parts

    patch.setattr(barriers.FlatFirings, "wave", wave)


@fault(IN_TIME, first=260)
def a_wave_begins_while_others_are_at_work(patch: Patch) -> None:
    patch.setattr(
        barriers.FlatFirings, "is_quiet", lambda self, unit, opens: bool(self._held.get(unit))
    )


# ------------------------------------------------------------------------------------- states


@fault(first=1400)
def a_join_skips_a_state_whose_last_writer_is_known(patch: Patch) -> None:
    add = state._Join.add

    def adds(self: Any, other: Any) -> None:
        writers, known = self.history.writers, self.known
        new = {n: w for n, w in other.writes.items() if not known & writers[n] & 1 << w.id}
        add(self, SimpleNamespace(writes=new, known=other.known, get=other.get))

    patch.setattr(state._Join, "add", adds)


@fault()
def a_join_applies_shared_writes_twice(patch: Patch) -> None:
    unknown = state._Join._unknown

    def joins(self: Any, name: str, write: Any, here: int, there: int) -> None:
        unknown(self, name, write, 0, there)

    patch.setattr(state._Join, "_unknown", joins)


@fault()
def of_concurrent_overwrites_the_earlier_wins(patch: Patch) -> None:
    take = state._Join._take

    def takes(self: Any, name: str, write: Any, other: Any) -> None:
        here = self.known & self.history.writers[name]
        if other.known & here == here:  # it knows all: not concurrent
            take(self, name, write, other)

    patch.setattr(state._Join, "_take", takes)


@fault()
def a_merge_keeps_the_history_of_the_first_state(patch: Patch) -> None:
    whole = state.State.replace
    patch.setattr(
        state.State,
        "replace",
        lambda self, values, history=None, anew=(): whole(self, values, history),
    )


@fault(IN_TIME)
def paths_are_joined_in_the_order_in_which_they_ended(patch: Patch) -> None:
    class Unsorted(list[Any]):
        def sort(self, **given: Any) -> None:
            """Leave the order as it is."""

    begin = machine.Machine.__init__

    def begins(self: Any, plan: Any, *given: Any, **more: Any) -> None:
        begin(self, plan, *given, **more)
        self._ended = Unsorted()

    patch.setattr(machine.Machine, "__init__", begins)


@fault()
def a_graph_pushes_what_its_rules_do_not_name(patch: Patch) -> None:
    push = subgraphs.Projection.push

    def pushes(self: Any, ended: Any, outer: Any) -> Any:
        wrote = {name: each for name, each in ended.changes.items() if name[0] != "@"}
        return {**wrote, **push(self, ended, outer)}

    patch.setattr(subgraphs.Projection, "push", pushes)


# ------------------------------------------------------------------------------------ journals


@fault(CUT_OFF)
def a_resumed_run_repeats_what_was_done_last(patch: Patch) -> None:
    read = journal.ReplayIndex.__init__

    def reads(self: Any, entries: Any = ()) -> None:
        read(self, entries)
        if self.done:
            self.done.popitem()

    patch.setattr(journal.ReplayIndex, "__init__", reads)


@fault(CUT_OFF)
def a_resumed_run_begins_the_last_round_again(patch: Patch) -> None:
    read = journal.ReplayIndex.__init__

    def reads(self: Any, entries: Any = ()) -> None:
        read(self, entries)
        for rounds in self.rounds.values():
            rounds.pop()

    patch.setattr(journal.ReplayIndex, "__init__", reads)


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch):
    FAULTS[name].plant(monkeypatch)
    assert graphs_until_found(FAULTS[name]), f"not within {GRAPHS} graphs: {name}"


def test_a_difference_is_reported_with_the_smallest_workflow(monkeypatch: pytest.MonkeyPatch):
    FAULTS["a cycle turns once more than its limit"].plant(monkeypatch)
    for seed in range(GRAPHS):
        graph = random_graph(seed)
        if found := next(ways.compared(graph, seed), None):
            break
    reported = ways.report(graph, seed, found)
    assert reported.startswith(f"seed {seed}: plainly, and the reference model: ")
    assert "Graph(nodes=(\n" in reported
    assert len(ways.smallest_of(graph, seed, found).nodes) == 1


def test_without_a_fault_these_ways_show_none():
    for way in {fault.way for fault in FAULTS.values()}:
        for seed in range(20):
            assert list(ways.compared(random_graph(seed), seed, only=way)) == []
