"""How many Python calls the kernel makes for each thing it does. Counted, so it holds on any machine; seconds are in ``run.py``.

A pin is what was measured and a tenth more. A change that costs calls is seen here; raise a pin in the commit that needs it, with a
sentence that says what is bought.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from axil import MemoryJournal, Workflow, run_sync

from . import subjects


def calls(flow: Workflow, input: Any = None, **options: Any) -> int:
    """Python calls of one run, from its first step to its result."""

    async def go() -> int:
        run = flow.start(input, **options)
        count = 0

        def tally(frame: Any, event: str, arg: Any) -> None:
            nonlocal count
            count += event == "call"

        before = sys.getprofile()
        sys.setprofile(tally)
        try:
            result = await run
        finally:
            sys.setprofile(before)
        assert result.status == "done", result.error
        return count

    return run_sync(go())


def for_each(make: Callable[[int], Workflow], **options: Any) -> float:
    """Calls for one more of whatever ``make`` makes so many of."""
    few, many = 100, 300
    calls(make(3), **options)  # imports and caches
    return (calls(make(many), **options) - calls(make(few), **options)) / (many - few)


PINS = {
    "a firing of an inline node on a chain": (subjects.chain, 21),
    "a firing that writes a field of a small state": (lambda n: subjects.chain(n, 10), 27),
    "a firing that writes a field of a large state": (lambda n: subjects.chain(n, 1000), 27),
    "a branch of a fan, out and in": (subjects.fan, 38),
    "a node that is skipped": (subjects.skipped_chain, 5),
    "a round of a loop": (subjects.loop, 97),
}


@pytest.mark.parametrize(("make", "most"), PINS.values(), ids=[name.replace(" ", "-") for name in PINS])
def test_the_kernel_makes_few_calls_for(make, most):
    assert for_each(make) <= most


def test_a_plain_function_called_by_name_costs_few_calls_more():
    assert for_each(subjects.functions, input={"message": "x"}) <= 40


def test_a_firing_that_is_journaled_costs_few_calls_more():
    def journaled(n: int) -> float:
        return calls(subjects.chain(n, 10), journal=MemoryJournal())

    assert (journaled(300) - journaled(100)) / 200 <= 135


def test_an_observer_costs_few_calls_and_nobody_listening_none():
    class Observer:
        def firing_finished(self, activation: Any) -> None:
            """Listens."""

    plain, watched = for_each(subjects.chain), for_each(subjects.chain, observers=[Observer()])
    assert watched - plain <= 9


@pytest.mark.parametrize("make", [subjects.chain, subjects.fan, subjects.skipped_chain, subjects.loop])
def test_cost_grows_in_step_with_size(make):
    small, large = calls(make(200)), calls(make(2000))
    assert large < 10.5 * small
