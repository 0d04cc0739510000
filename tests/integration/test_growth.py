"""What long conversations cost: bytes that grow with the turns, not with their square."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from axil import Loop, RootGraph
from axil_agent import Agent, HistoryMemory
from axil_models import Reply
from axil_sqlite import SqliteJournal


class Talkative:
    """A model whose replies have 1 kB each."""

    def __init__(self) -> None:
        self.random = random.Random(7)

    async def reply(self, request: Any, emit: Any) -> Reply:
        text = "".join(self.random.choices("abcdefgh ,.", k=1000))
        return Reply(text=json.dumps({"message": text}))


def agent(graph: Any) -> Any:
    return graph.create_node(Agent, name="a", model=Talkative(), memories=[HistoryMemory()])


def rounds(journal: SqliteJournal, turns: int) -> None:
    """One run whose loop has ``turns`` rounds."""
    graph = RootGraph("rounds")
    loop = graph.create_node(Loop, name="loop", max_iterations=turns)
    node = agent(loop)
    loop.edge_from_controller(node, keys={"message": ""})
    loop.edge_to_controller(node, keys={"message": ""})
    graph.edge_from_entry(loop, keys={"message": ""})
    graph.edge_to_exit(loop, keys={"message": ""})
    graph.build()
    assert asyncio.run(graph.run({"message": "hi"}, journal=journal)).status == "done"


def thread(journal: SqliteJournal, turns: int) -> None:
    """``turns`` runs of one thread."""
    graph = RootGraph("thread")
    node = agent(graph)
    graph.edge_from_entry(node, keys={"message": ""})
    graph.edge_to_exit(node, keys={"message": ""})
    graph.build()

    async def talk() -> None:
        for turn in range(turns):
            run = graph.start({"message": f"say {turn}"}, journal=journal, thread="t")
            assert (await run.result()).status == "done"

    asyncio.run(talk())


@pytest.mark.parametrize("talk", [rounds, thread])
def test_a_conversation_of_twice_as_many_turns_takes_twice_as_much_of_the_disk(
    talk: Any, tmp_path: Path
) -> None:
    def taken(turns: int) -> int:
        folder = tmp_path / str(turns)
        journal = SqliteJournal(folder, sync="normal")
        talk(journal, turns)
        assert list(journal.examine()) == []
        journal.close()
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

    few, many = taken(25), taken(50)
    assert many / few < 2.5, (few, many)
