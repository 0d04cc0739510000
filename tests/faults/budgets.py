"""A process in which a run with budgets lives again and again, each life until it is killed:
``python -m tests.faults.budgets FOLDER SEED LIMIT BUDGET``. The lives are forks of this process.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

from axil import Limits, RootGraph
from axil_agent import Agent
from axil_control import Loop, Map
from axil_journals import ReplayIndex
from axil_models import Estimator, Reply, Usage
from axil_sqlite import SqliteJournal
from axil_wrappers import Budget, FallbackModel, Retry

ITEMS, ROUNDS, TOGETHER = 6, 4, 3
CALL = 10
"""The tokens that each call takes."""
LIVES = 40


class Metered:
    """A model that notes each call that it is paid for, and fails now and then before that."""

    def __init__(self, name: str, world: World, every: int = 0) -> None:
        self.name, self.world, self.every, self.asked = name, world, every, 0

    async def reply(self, request: Any, emit: Any) -> Reply:
        self.asked += 1
        await asyncio.sleep(0)
        if self.every and self.asked % self.every == 0:
            raise ConnectionError
        self.world.paid()
        await asyncio.sleep(0)
        return Reply(text="fine", usage=Usage(input_tokens=7, output_tokens=3), model=self.name)


class World:
    """The calls that were really paid for: a byte for each."""

    def __init__(self, path: Path, left: int = 1 << 30) -> None:
        self.path, self.left = path, left

    def paid(self) -> None:
        with self.path.open("ab") as file:
            file.write(b".")
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)

    @property
    def calls(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0


def graph(world: World, budget: int) -> RootGraph:
    """Return a map of agents side by side, each tried again and with a model that stands in, and a
    loop with one, within a budget of its own.
    """

    def model() -> Any:
        first, second = Metered("first", world, every=2), Metered("second", world, every=5)
        return FallbackModel([first, second], on=["ConnectionError"])

    asked: dict[str, Any] = {"formatters": "twins", "model_settings": {"max_tokens": CALL}}
    again = Retry(tries=9, seed=1, wait_seconds=0)
    made = RootGraph("g")
    each = made.create_node(
        Agent,
        name="each",
        model=model(),
        wrappers=[
            Map(over="texts", item="message", max_parallel=TOGETHER),
            again,
        ],
        **asked,
    )
    loop = made.create_node(
        Loop, name="loop", max_iterations=ROUNDS, wrappers=[Budget(tokens=budget)]
    )
    turn = loop.create_node(Agent, name="turn", model=model(), wrappers=[again], **asked)
    loop.edge_from_controller(turn, {"message": ""})
    loop.edge_to_controller(turn, {"message": ""})
    made.edge_from_entry(each, {"texts": ""})
    made.create_edge(each, loop, {"message": ""})
    made.edge_to_exit(loop, {"message": ""})
    return made.build()


def live(folder: Path, left: int, limit: int, budget: int) -> dict[str, Any]:
    """Run on, and return the status, the tokens and the error."""
    journal = SqliteJournal(folder / "journal")
    limits = Limits(tokens=limit, estimate=Estimator(characters_per_token=1e9))
    made = graph(World(folder / "paid", left), budget)
    given = {"texts": [f"t{n}" for n in range(ITEMS)]}
    result = asyncio.run(made.start(given, journal=journal, run_id="r", limits=limits).result())
    journal.close()
    return {
        "status": result.status,
        "tokens": sum(result.usage.tokens.values()),
        "error": str(result.error),
    }


def counted(folder: Path) -> dict[str, int]:
    """Return the tokens that are recorded as used: by the run, and by the loop."""
    journal = SqliteJournal(folder / "journal")
    entries = list(journal.entries("r"))
    journal.close()
    used = ReplayIndex(entries).used
    [loop] = used.get("nodes", {"": [{}, 0.0]}).values()
    steps = sum(entry.kind == "step" for entry in entries)
    run = sum(used.get("tokens", {}).values())
    return {"run": run, "loop": sum(loop[0].values()), "steps": steps}


def main(folder: Path, seed: int, limit: int, budget: int) -> None:
    chance = random.Random(seed)
    for _ in range(LIVES):
        left = chance.randint(1, 6)
        pid = os.fork()
        if not pid:
            (folder / "result").write_text(json.dumps(live(folder, left, limit, budget)))
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        found = {**counted(folder), "paid": World(folder / "paid").calls * CALL, "code": code}
        sys.stdout.write(json.dumps(found) + "\n")
        if not code:
            break


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
