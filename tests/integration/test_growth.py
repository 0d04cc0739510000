"""The cost of long conversations: it grows with the turns, not with their square."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axil import NodeFailed, RootGraph
from axil_agent import Agent, HistoryMemory
from axil_control import Loop
from axil_journals import Entry, Journal, MemoryJournal
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


def conversation(turns: int, node_of: Callable[[Any], Any] = agent) -> RootGraph:
    """Return a graph whose loop has ``turns`` rounds."""
    graph = RootGraph("rounds")
    loop = graph.create_node(Loop, name="loop", max_iterations=turns)
    node = node_of(loop)
    loop.edge_from_controller(node, keys={"message": ""})
    loop.edge_to_controller(node, keys={"message": ""})
    graph.edge_from_entry(loop, keys={"message": ""})
    graph.edge_to_exit(loop, keys={"message": ""})
    graph.build()
    return graph


def rounds(journal: Journal, turns: int) -> None:
    """Run one run whose loop has ``turns`` rounds."""
    graph = conversation(turns)
    assert asyncio.run(graph.run({"message": "hi"}, journal=journal)).status == "done"


def thread(journal: SqliteJournal, turns: int) -> None:
    """Run ``turns`` runs of one thread."""
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


def calls(work: Callable[[], Any]) -> int:
    """Return how many functions are called by ``work``, those written in C included."""
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def lengths(entries: Any) -> int:
    return sum(len(json.dumps(entry.data)) for entry in entries)


@pytest.mark.parametrize("kind", [MemoryJournal, SqliteJournal])
def test_twice_as_many_rounds_take_twice_the_work_to_run_and_to_open(
    kind: Any, tmp_path: Path
) -> None:
    def work(turns: int) -> tuple[int, int, int]:
        made = kind() if kind is MemoryJournal else kind(tmp_path / str(turns), sync="normal")
        run = calls(lambda: rounds(made, turns))
        (info,) = made.runs()
        opened = calls(lambda: made.open(info.run_id))
        text = lengths(made.entries(info.run_id))
        if kind is SqliteJournal:
            made.close()
        return run, opened, text

    work(2)  # what is done once
    few, many = work(20), work(40)
    run, opened, text = (more / less for less, more in zip(few, many, strict=True))
    assert run < 2.2
    assert opened < 2.3
    assert text < 2.8  # now and then the rounds so far are written as one


class Remembering:
    """A scripted model that keeps the texts it is sent, and fails when its replies are used up."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.seen: list[list[str]] = []

    async def reply(self, request: Any, emit: Any) -> Reply:
        if not self.replies:
            raise ConnectionError("no more replies")
        self.seen.append([str(m["content"]) for m in request.messages if m["role"] != "system"])
        return Reply(text=self.replies.pop(0))


def talker(model: Any, size: int = 1000) -> Callable[[Any], Any]:
    """Return what creates an agent that says all it remembers, up to ``size`` messages."""
    memory = HistoryMemory(top_k=0, memory_size=size)
    return lambda graph: graph.create_node(
        Agent, name="a", model=model, formatters="twins", memories=[memory]
    )


@pytest.mark.parametrize("size", [1000, 3])
def test_a_run_that_broke_off_remembers_what_it_would_have_remembered(
    size: int, tmp_path: Path
) -> None:
    """Also where old messages have been dropped meanwhile."""
    replies = [f"reply {n}" for n in range(9)]
    whole = Remembering(*replies)
    asyncio.run(conversation(9, talker(whole, size)).run({"message": "hi"}))
    for stop in (1, 4, 8):
        journal = SqliteJournal(tmp_path / str(stop))
        once = Remembering(*replies[:stop])
        first = conversation(9, talker(once, size))
        with pytest.raises(NodeFailed):
            asyncio.run(first.run({"message": "hi"}, journal=journal, run_id="r"))
        again = Remembering(*replies[stop:])
        rest = conversation(9, talker(again, size)).resume("r", journal=journal)
        assert asyncio.run(rest).status == "done"
        assert [*once.seen, *again.seen] == whole.seen
        journal.close()


def recorded_before(journal: Journal) -> None:
    """Append runs that were recorded when a conversation was still written whole at each turn."""
    path = Path(__file__).parent / "golden" / "conversation.json"
    for run_id, entries in json.loads(path.read_text("utf-8")).items():
        writer = journal.open(run_id)
        for kind, frame, node, ordinal, data in entries:
            writer.append(Entry(kind, tuple(frame), node, tuple(ordinal), data))
        writer.close()


def test_a_conversation_that_was_recorded_whole_goes_on() -> None:
    journal = MemoryJournal()
    recorded_before(journal)
    model = Remembering("third", "fourth", "fifth")
    rest = conversation(5, talker(model)).resume("rounds", journal=journal, migrate=True)
    result = asyncio.run(rest)
    assert (result.status, result.output) == ("done", {"message": "fifth"})
    assert [len(seen) for seen in model.seen] == [5, 7, 9]
    assert model.seen[0][1::2] == ["reply 0", "reply 1"]


def test_a_thread_that_was_recorded_whole_goes_on() -> None:
    journal = MemoryJournal()
    recorded_before(journal)
    model = Remembering("second", "third")
    graph = RootGraph("thread")
    node = talker(model)(graph)
    graph.edge_from_entry(node, keys={"message": ""})
    graph.edge_to_exit(node, keys={"message": ""})
    graph.build()
    for run_id in ("two", "three"):
        run = graph.run({"message": "again"}, journal=journal, run_id=run_id, thread="t")
        assert asyncio.run(run).status == "done"
    assert [seen[1::2] for seen in model.seen] == [["first"], ["first", "second"]]
