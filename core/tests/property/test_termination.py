"""Every run ends, and says why."""

from __future__ import annotations

import random

from hypothesis import given

from axil.errors import ConcurrentReset, CycleError, LimitReached
from axil_testing.graphs import RandomGraph, graphs

from .strategies import law, seeds
from .test_schedules import run


@law(40)
@given(case=graphs(cyclic=True), choose=seeds)
def test_a_graph_with_cycles_ends_and_each_entry_of_a_cycle_says_how(
    case: RandomGraph, choose: random.Random
):
    _, result, _ = run(case, choose)
    if result.status == "limited":
        assert isinstance(result.error, LimitReached)
    elif result.status == "failed":
        assert isinstance(result.error.__cause__, (CycleError, ConcurrentReset)), result.error
    else:
        assert result.status == "done"
    for tally in result.cycles.values():
        assert set(tally.ends) <= {"exit", "natural", "limit"}
        assert sum(tally.ends.values()) == tally.entries
        # the limit of a cycle that an `each` node begins; 4 for others
        assert tally.entries <= tally.rounds <= 60 * tally.entries


@law(40)
@given(case=graphs(), choose=seeds)
def test_a_graph_without_cycles_is_done_unless_it_failed(case: RandomGraph, choose: random.Random):
    _, result, _ = run(case, choose)
    assert result.cycles == {}
    assert result.status == "done" or isinstance(result.error.__cause__, ConcurrentReset), (
        result.error
    )
