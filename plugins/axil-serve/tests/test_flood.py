"""Laws of streams under more events than a reader takes, and of a journal that stores late."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from axil import Context, RootGraph, Workflow
from axil_journals import MemoryJournal
from axil_serve import Caller, RunService
from axil_serve.feed import MOST

CHUNKS = MOST * 2 + 10
STEPS = 30


def flood() -> Workflow:
    """Return a graph that shows more chunks than wait for a reader, between recorded steps."""
    graph = RootGraph("flood")

    def show(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        for _ in range(CHUNKS // STEPS):
            ctx.emit({"kind": "text", "text": "x"})
        return inputs

    names = [f"show{number}" for number in range(STEPS)]
    for name in names:
        graph.create_node(show, name=name)
    graph.edge_from_entry(names[0], {"name": ""})
    for source, target in pairwise(names):
        graph.create_edge(source, target, {"name": ""})
    graph.edge_to_exit(names[-1], {"name": ""})
    return graph.build()


def test_a_reader_that_is_slow_keeps_a_bounded_number_of_events_and_every_step():
    async def followed() -> list[Any]:
        service = RunService(MemoryJournal(), {"flood": flood()}, loaded=0, poll_seconds=0.01)
        ada, steps, chunks, most = Caller(name="ada"), list[Any](), 0, 0
        async with asyncio.timeout(60), service.running():
            run_id = await service.start(ada, "flood", {"name": "x"})
            async for event in service.stream(ada, run_id):
                if event.kind == "step":
                    steps.append(event)
                if event.kind == "step" and event.data["kind"] == "run":
                    service.engine.max_loaded = 1
                    await service.resume(ada, run_id)
                    await service.engine.result(run_id)  # it reads nothing meanwhile
                    [follower] = service.feed._followers[run_id]
                    most = len(follower.waiting)
                    assert follower.is_behind
                chunks += event.kind == "chunk"
            assert most <= MOST
            assert chunks <= MOST
            recorded = service.steps(ada, run_id)
        assert [event.id for event in steps] == [step["id"] for step in recorded]
        return steps

    steps = asyncio.run(followed())
    assert [step.data["kind"] for step in steps].count("done") == STEPS


class Late(MemoryJournal):
    """A journal whose readers do not have the last entries yet."""

    lacks = 0

    def entries(self, run_id: str) -> Any:
        known = super().entries(run_id)
        return known[: len(known) - self.lacks]


def test_a_stream_has_the_steps_in_their_order_that_are_not_stored_yet():
    async def followed() -> list[tuple[str, int]]:
        done = MemoryJournal()
        await flood().run({"name": "x"}, journal=done, run_id="r")
        first, *more = done.entries("r")
        journal, ada = Late(), Caller(name="ada", sees_all=True)
        service, found = RunService(journal, poll_seconds=0.01), list[tuple[str, int]]()
        writer = service.journal.open("r")
        for entry in (first, *more[:6]):
            writer.append(entry)
        journal.lacks = 4
        async for event in service.stream(ada, "r", live=False):
            if event.kind == "step":
                found.append((event.data["node"], event.data["number"]))
            if len(found) == 5 and journal.lacks == 4:  # of those that the journal lacked two
                journal.lacks = 0
                for entry in more[6:]:
                    writer.append(entry)
        return found

    found = asyncio.run(asyncio.wait_for(followed(), 60))
    expected = ["", *(f"show{number}" for number in range(STEPS)), ""]
    assert found == [(name, number) for number, name in enumerate(expected, 1)]
