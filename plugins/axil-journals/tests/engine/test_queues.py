"""Queues as an engine uses them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from axil import ConfigError, RootGraph
from axil_journals import LocalEngine, MemoryJournal, Place, Queue, QueueState, chosen, read_queues
from axil_testing import VirtualClock


def noting(seen: list[Any]) -> RootGraph:
    async def note(inputs: dict[str, Any]) -> dict[str, Any]:
        seen.append(inputs["n"])
        await asyncio.sleep(0)
        return {"n": 1}

    graph = RootGraph("noting")
    noted = graph.create_node(note, name="note")
    graph.edge_from_entry(noted, {"n": ""})
    graph.edge_to_exit(noted, {"n": ""})
    return graph.build()


def test_runs_of_a_queue_begin_by_its_rules_their_delays_and_their_deadlines() -> None:
    """One at a time, the keys in turn; one not before its time, one not after it."""
    clock, journal, seen = VirtualClock(), MemoryJournal(), list[Any]()
    graph = noting(seen)

    async def go() -> None:
        async with LocalEngine(journal, loaded=0, clock=clock) as client:
            now = clock.wall()
            for name in ("a1", "a2", "a3", "b1"):
                place = Place(queue="q", key=name[0])
                await client.start(graph, {"n": name}, run_id=name, place=place)
            late = Place(start_at=now + 60, deadline=now + 70)
            await client.start(graph, {"n": "late"}, run_id="late", place=late)
            gone = Place(queue="q", key="c", deadline=now - 1)
            await client.start(graph, {"n": "gone"}, run_id="gone", place=gone)
        rules = [Queue(name="q", concurrency=1)]
        async with LocalEngine(journal, [graph], clock=clock, queues=rules) as engine:
            results = [await engine.result(name) for name in ("a1", "a2", "a3", "b1")]
            assert {result.status for result in results} == {"done"}
            assert (await engine.result("gone")).status == "cancelled"
            assert engine.get("gone").error.startswith("AX546")
            assert seen.index("b1") < 2
            assert (await engine.result("late")).status == "done"
            assert clock.wall() >= now + 60
            assert sorted(seen) == ["a1", "a2", "a3", "b1", "late"]

    asyncio.run(go())


class Rows:
    """So many due runs of each key."""

    def __init__(self, runs: Mapping[str, int], held: Mapping[str, int]) -> None:
        self.runs, self._held = runs, held

    def held(self) -> Mapping[str, int]:
        return self._held

    def due(self, after: str | None, keys: int, most: int) -> Sequence[tuple[str, Sequence[str]]]:
        names = [key for key in sorted(self.runs) if after is None or key > after][:keys]
        return [(key, [f"{key}{n}" for n in range(self.runs[key])][:most]) for key in names]


def test_keys_that_have_their_share_do_not_hide_the_keys_behind_them() -> None:
    """However many there are."""
    many = {f"k{n:03}-": 2 for n in range(500)}
    held = dict.fromkeys(list(many)[:499], 1)
    state = QueueState(queue=Queue(name="q", key_concurrency=1))
    assert chosen(state, Rows(many, held), 10, 1.0) == ["k499-0"]
    state = QueueState(queue=Queue(name="q"), last_key="k498-")
    found = chosen(state, Rows(many, {}), 3, 1.0)
    assert (found, state.last_key) == (["k499-0", "k000-0", "k001-0"], "k001-")


def test_a_file_of_queues_is_read_and_what_is_wrong_with_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "queues.toml"
    path.write_text("[mail]\nconcurrency = 4\n[reports]\npriority = -1\n")
    queues = [Queue(name="mail", concurrency=4), Queue(name="reports", priority=-1)]
    assert read_queues(path) == queues
    path.write_text("[mail]\nconcurrency = 0\nspeed = 4\n")
    with pytest.raises(ConfigError) as caught:
        read_queues(path)
    assert all(word in str(caught.value) for word in ("concurrency", "speed"))
    path.write_text("mail = 4\n")
    with pytest.raises(ConfigError, match="expected a table"):
        read_queues(path)
    with pytest.raises(ConfigError, match="AX740"):
        read_queues(tmp_path / "none.toml")
