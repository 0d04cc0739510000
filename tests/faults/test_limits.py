"""Limits of runs that are killed: a process that gives none keeps to those that were given."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
ENOUGH = 10_000
BOUNDED = """
import asyncio, os, signal, sys
from axil import Limits, RootGraph
from axil_agent import Agent
from axil_models import Estimator, Price, Pricing, Reply, Usage
from axil_sqlite import SqliteJournal

folder, life, left = sys.argv[1], sys.argv[2], int(sys.argv[3])


class Model:
    name, asked = "small", 0

    async def reply(self, request, emit):
        self.asked += 1
        if self.asked > left:
            os.kill(os.getpid(), signal.SIGKILL)
        return Reply(text="fine", usage=Usage(input_tokens=7, output_tokens=3), model=self.name)


graph, model, before = RootGraph("g"), Model(), ""
for name in "abcdef":
    agent = Agent(model, prompt_template="{message}", model_settings={"max_tokens": 9})
    graph.create_node(agent, name=name)
    if before:
        graph.create_edge(before, name, {"message": ""})
    else:
        graph.edge_from_entry(name, {"message": ""})
    before = name
graph.edge_to_exit(before, {"message": ""})
graph.build()
journal, pricing = SqliteJournal(folder), Pricing(models={"small": Price(input=1e5, output=1e5)})
estimate = Estimator(characters_per_token=1e9)
LIMITS = {
    "tokens": Limits(tokens=35, estimate=estimate),
    "cost": Limits(cost=3.5, pricing=pricing, estimate=estimate),
}
if life in LIMITS:
    begun = graph.start({"message": "x"}, journal=journal, run_id="r", limits=LIMITS[life])
    result = asyncio.run(begun.result())
else:
    result = asyncio.run(graph.resume("r", journal=journal))
print(result.status, result.error.id, sum(result.usage.tokens.values()), model.asked)
"""


@pytest.mark.parametrize(("limit", "error"), [("tokens", "AX413"), ("cost", "AX414")])
def test_a_killed_run_keeps_its_limits_and_what_it_spent_in_a_process_that_gives_none(
    tmp_path, limit, error
):
    def live(life: str, left: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", BOUNDED, str(tmp_path / "j"), life, str(left)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    killed = live(limit, 2)
    assert (killed.returncode, killed.stdout) == (-9, ""), killed.stderr
    again = live("resume", ENOUGH)
    assert again.returncode == 0, again.stderr
    # two calls were paid before the kill, and one more fits
    assert again.stdout.split() == ["limited", error, "30", "1"]
