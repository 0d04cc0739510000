"""Costs of an activation of a DevAll workflow, in Python calls: few, and the same in a small graph
and in a large one.
"""

from __future__ import annotations

from typing import Any

import pytest

from axil import run_sync
from axil_agent import models_through
from axil_models import Reply

from .counting import Calls
from .devall import company, workflow

pytestmark = pytest.mark.usefixtures("undisturbed")


class Said:
    """A model that answers at once."""

    async def reply(self, request: Any, emit: Any) -> Reply:
        return Reply(text="OK", finish="stop")


def counted(phases: int) -> tuple[int, int]:
    """Python calls of a run, and its firings."""
    model = Said()
    with models_through(lambda meant, written: model):
        flow = workflow(company(phases))

        async def go() -> tuple[int, int]:
            async with flow:
                with Calls() as calls:
                    result = await flow.start("TASK").result()
                assert result.status == "done", result.error
                return calls.count, result.usage.firings

        return run_sync(go())


def test_an_activation_costs_few_calls_and_the_same_in_a_graph_ten_times_as_large():
    counted(1)  # imports and caches
    (small, few), (middle, more), (large, many) = counted(4), counted(8), counted(40)
    assert (few, more, many) == (4 * 10 + 1, 8 * 10 + 1, 40 * 10 + 1)
    here, there = (middle - small) / (more - few), (large - middle) / (many - more)
    assert there <= 1.02 * here
    assert there <= 260
