"""Long lives: a run that turns and turns holds as much memory in the end as in the beginning, and
so does its database.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from axil import CycleLimit, EdgeSpec, Out, Schema
from axil.plugin import SUM, Field
from axil_sqlite import SqliteJournal

from .tools import flow, node

LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
DETAIL = 500


@dataclass
class Life:
    """One run that turns, and what was there after each thousand of its rounds."""

    folder: Path
    blocks: list[int] = field(default_factory=list[int])
    """Allocated by Python."""
    bytes: list[int] = field(default_factory=list[int])
    """On the disk, the database's log included."""

    def turn(self, task: Any) -> Out:
        n = task.state["n"] + 1
        if not n % 1000:
            gc.collect()
            self.blocks.append(sys.getallocatedblocks())
            self.bytes.append(
                sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
            )
        return Out({"n": n}, {"n": n, "total": 1, "@node/a": {"n": n}})

    def lived(
        self, rounds: int, *, mode: str = "inline", sync: Literal["full", "normal"] = "full"
    ) -> Life:
        """Return one node that leads back to itself, counts, and keeps something for itself."""

        async def later(task: Any, ctx: Any) -> Out:
            return self.turn(task)

        def at_once(task: Any, ctx: Any) -> Out:
            return self.turn(task)

        schema = Schema(
            "s",
            {"n": Field("n", default=int), "total": Field("total", SUM, default=int)},
            closed=True,
        )
        again = EdgeSpec(source="a", target="a", condition=lambda payload: payload["n"] < rounds)
        leave = EdgeSpec(
            source="a", target="@exit", condition=lambda payload: payload["n"] >= rounds
        )
        nodes = [node("a", at_once if mode == "inline" else later, mode)]
        workflow = flow(
            nodes, "in>a", again, leave, schema=schema, cycle_limits={"": CycleLimit(rounds=None)}
        )
        journal = SqliteJournal(self.folder, sync=sync, detail=DETAIL)
        result = asyncio.run(workflow.start({}, journal=journal, run_id="r").result())
        assert (result.status, result.output, result.attributes["total"]) == (
            "done",
            {"n": rounds},
            rounds,
        )
        assert len(journal.entries("r")) < 2 * DETAIL + 200  # a row may be a firing and its round
        journal.close()
        return self


@pytest.mark.parametrize(
    ("mode", "sync", "rounds"),
    [
        ("inline", "normal", 12_000),
        ("async", "normal", 4_000),
        pytest.param(
            "inline",
            "full",
            1_000_000,
            marks=pytest.mark.skipif(not LONG, reason="takes minutes: make thorough"),
        ),
    ],
)
def test_memory_and_database_are_bounded_however_long_a_kept_run_turns(
    tmp_path, mode, sync, rounds
):
    life = Life(tmp_path).lived(rounds, mode=mode, sync=sync)
    # what is there after the first quarter, and what in the last half
    first, last = len(life.blocks) // 4, len(life.blocks) // 2
    # of some 500,000; a round that left one block would make 6,000, or 2,000 of fewer rounds
    assert max(life.blocks[last:]) < life.blocks[first] + rounds // 4
    assert max(life.bytes[last:]) < 1.5 * life.bytes[first] + 100_000


def test_a_long_loop_that_broke_off_goes_on_at_once(tmp_path):
    """A resumed run reads what is left of the record, not its whole history."""
    rounds = 3_000

    class Gone(KeyboardInterrupt):
        pass

    def body(task: Any, ctx: Any) -> Out:
        n = task.state["n"] + 1
        ran.append(n)
        if n == rounds - 5 and len(ran) == n:
            raise Gone
        return Out({"n": n}, {"n": n})

    ran: list[int] = []
    again = EdgeSpec(source="a", target="a", condition=lambda payload: payload["n"] < rounds)
    leave = EdgeSpec(source="a", target="@exit", condition=lambda payload: payload["n"] >= rounds)
    workflow = flow(
        [node("a", body)],
        "in>a",
        again,
        leave,
        attributes={"n": 0},
        cycle_limits={"": CycleLimit(rounds=None)},
    )
    journal = SqliteJournal(tmp_path, sync="normal", detail=0)
    with pytest.raises(Gone):
        asyncio.run(workflow.start({}, journal=journal, run_id="r").result())
    journal.close()
    journal = SqliteJournal(tmp_path, sync="normal", detail=0)
    known = len(journal.entries("r"))
    assert known < 300
    result = asyncio.run(workflow.resume("r", journal=journal))
    assert result.output == {"n": rounds}
    assert len(ran) < rounds + 300
    journal.close()
