"""Budgets over lives that are killed: what is recorded as used is what was paid for, but for the
calls that were under way at a kill, and no budget is passed by what is recorded.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from axil import Limits
from axil_journals import ReplayIndex, fork
from axil_models import Estimator
from axil_sqlite import SqliteJournal

from .budgets import CALL, ITEMS, ROUNDS, TOGETHER, World, graph

pytestmark = [
    pytest.mark.third,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]
ENOUGH = 10_000


def lives(folder: Path, *words: int) -> tuple[list[dict[str, int]], dict[str, Any]]:
    command = [sys.executable, "-m", "tests.faults.budgets", str(folder), *map(str, words)]
    root = Path(__file__).parents[2]
    said = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in said.splitlines()], json.loads(
        (folder / "result").read_text()
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("limit", "budget", "error"),
    [(ENOUGH, ENOUGH, ""), (50, ENOUGH, "AX413"), (ENOUGH, 20, "AX416")],
)
def test_what_was_used_is_counted_once_over_all_lives(tmp_path, seed, limit, budget, error):
    found, result = lives(tmp_path, seed, limit, budget)
    before = 0
    for kills, each in enumerate(found, 1):
        assert before <= each["run"] <= each["paid"]
        assert each["run"] >= each["steps"] * CALL
        assert each["paid"] - each["run"] <= kills * TOGETHER * CALL
        assert (each["run"] <= limit, each["loop"] <= budget) == (True, True)
        before = each["run"]
    assert len(found) > 1
    assert result["tokens"] == found[-1]["run"]
    assert result["status"] == ("limited" if error else "done")
    assert error in result["error"]
    if not error:
        assert found[-1]["steps"] == ITEMS + ROUNDS


def test_a_fork_counts_on_from_what_was_used_where_it_begins(tmp_path):
    limits = Limits(tokens=ENOUGH, estimate=Estimator(characters_per_token=1e9))

    async def whole() -> None:
        journal, world = SqliteJournal(tmp_path / "j"), World(tmp_path / "paid")
        made = graph(world, ENOUGH)
        given = {"texts": [f"t{n}" for n in range(ITEMS)]}
        await made.start(given, journal=journal, run_id="r", limits=limits).result()
        for at, entry in enumerate(list(journal.entries("r")), 1):
            if entry.kind != "step":
                continue
            await fork(journal, "r", f"f{at}", at=at)
            before = world.calls
            used = sum(ReplayIndex(journal.entries(f"f{at}")).used["tokens"].values())
            result = await made.resume(f"f{at}", journal=journal, limits=limits)
            assert result.status == "done"
            fresh = (world.calls - before) * CALL
            assert sum(result.usage.tokens.values()) == used + fresh
        journal.close()

    asyncio.run(whole())
