"""The collector of garbage while a plan is made: put off, and afterwards as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from axil.compiler.collector import put_off
from axil.errors import SpecError
from axil.spec.graph import NodeSpec
from axil_testing.specs import Raw, says, workflow


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


class Asks(Raw):
    """A body that says whether the collector is on while its node is planned."""

    def adapted(self, rules: Any) -> Any:
        self.seen = gc.isenabled()
        return super().adapted(rules)


def test_the_collector_does_not_come_by_while_a_plan_is_made_and_does_afterwards() -> None:
    gc.enable()
    body = Asks(says({}))
    _ = workflow([NodeSpec(id="a", body=body)], ["in a"]).plan
    assert body.seen is False
    assert gc.isenabled()


def test_a_graph_that_cannot_be_planned_leaves_the_collector_on() -> None:
    gc.enable()
    with pytest.raises(SpecError):
        _ = workflow(["a"], ["in a", "a nowhere"]).plan
    assert gc.isenabled()


def test_whoever_has_switched_it_off_finds_it_off() -> None:
    gc.disable()
    with put_off():
        pass
    assert not gc.isenabled()
