"""Laws of bodies that do not end as bodies do: a run ends all the same, and nothing else does."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import threading
import time

import pytest

from axil import Limits, NodeFailed, RootGraph


def graph(*bodies) -> RootGraph:
    made = RootGraph("g")
    for number, body in enumerate(bodies):
        made.create_node(body, name=f"n{number}")
        made.edge_from_entry(f"n{number}", {})
        made.edge_to_exit(f"n{number}", {})
    return made.build()


async def waits(inputs):
    await asyncio.sleep(0)
    raise inputs["error"]


def plain(inputs):
    raise inputs["error"]


class Called:
    """A body that the run calls at once, in its own thread."""

    async def __call__(self, inputs):
        raise inputs["error"]


@pytest.mark.parametrize("body", [waits, plain, Called()], ids=["async", "thread", "callable"])
@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (GeneratorExit(), "the body raised GeneratorExit"),
        (SystemExit(3), "the body raised SystemExit: 3"),
    ],
)
def test_what_would_end_a_process_ends_its_node(body, error, reported):
    made = RootGraph("g")
    made.create_node(body, name="n")
    made.edge_from_entry("n", {"error": ""})
    made.edge_to_exit("n", {})
    with pytest.raises(NodeFailed, match=reported):
        asyncio.run(made.build().run({"error": error}))


async def deaf(inputs):
    """Ignore cancellation."""
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


def test_a_body_that_catches_its_cancellation_does_not_hold_up_the_end(monkeypatch, caplog):
    monkeypatch.setattr("axil.runtime.pool.GRACE", 0.05)

    async def main():
        running = graph(deaf).start({})
        asyncio.get_running_loop().call_later(0.05, running.cancel)
        return await running.result()

    assert asyncio.run(main()).status == "cancelled"
    assert 'node "n0" has not ended' in caplog.text


def test_a_limit_of_time_holds_whatever_a_body_does(monkeypatch):
    monkeypatch.setattr("axil.runtime.pool.GRACE", 0.05)

    async def main():
        return await graph(deaf, deaf).run({}, limits=Limits(seconds=0.05))

    result = asyncio.run(main())
    assert result.status == "limited"
    assert result.error.id == "AX415"


def test_a_limit_of_time_is_looked_at_after_each_body_that_holds_up_the_loop():
    done = []

    async def holds(inputs):
        ends = time.monotonic() + 0.02
        while time.monotonic() < ends:
            pass
        done.append(1)
        return {}

    async def main():
        chain = RootGraph("g")
        nodes = [chain.create_node(holds, name=f"n{number}") for number in range(40)]
        chain.edge_from_entry(nodes[0], {})
        for one, other in itertools.pairwise(nodes):
            chain.create_edge(one, other, {})
        chain.edge_to_exit(nodes[-1], {})
        return await chain.build().run({}, limits=Limits(seconds=0.03))

    result = asyncio.run(main())
    assert result.error.id == "AX415"
    assert len(done) <= 5


def test_what_a_body_gives_after_it_was_left_behind_is_thrown_away(monkeypatch):
    monkeypatch.setattr("axil.runtime.pool.GRACE", 0.05)

    async def main():
        late, given = asyncio.Event(), asyncio.Event()

        async def body(inputs):
            while not late.is_set():
                try:
                    await late.wait()
                except asyncio.CancelledError:
                    continue
            given.set()
            return {}

        result = await graph(body).run({}, limits=Limits(seconds=0.05))
        late.set()
        await given.wait()
        return result

    assert asyncio.run(main()).status == "limited"


def test_a_body_that_needs_time_to_end_gets_it():
    ended = []

    async def body(inputs):
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.05)
            ended.append(1)

    async def main():
        return await graph(body).run({}, limits=Limits(seconds=0.05))

    assert asyncio.run(main()).status == "limited"
    assert ended == [1]


def test_a_sync_door_does_not_wait_for_threads_that_go_on():
    over = threading.Event()

    async def body(inputs):
        await asyncio.to_thread(over.wait, 300)

    try:
        with pytest.raises(Exception, match="AX415"):
            graph(body).invoke({}, limits=Limits(seconds=0.05))
        assert not over.is_set()
    finally:
        over.set()


ABANDONED = """
import asyncio, gc
from axil import RootGraph
graph = RootGraph("g")
async def body(inputs):
    await asyncio.Event().wait()
graph.create_node(body, name="n")
graph.edge_from_entry("n", {})
graph.edge_to_exit("n", {})
graph.build()
loop = asyncio.new_event_loop()
async def main():
    running = asyncio.ensure_future(graph.run({}))
    await asyncio.sleep(0.01)
loop.run_until_complete(main())
loop.close()
del loop
gc.collect()
print("ended")
"""


def test_a_loop_that_is_closed_in_the_middle_of_a_run_ends_its_bodies():
    done = subprocess.run(
        [sys.executable, "-c", ABANDONED], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "ended\n"
