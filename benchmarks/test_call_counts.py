"""Python calls and memory of the kernel for each thing that it does.

Counted, so it holds on any machine.

Seconds are in ``make bench``. A change that costs calls is seen here; raise a number in the commit
that needs it, with a sentence that says what is bought, and lower it when it can be lowered. A
number is what was measured and about three in a hundred more. The kernel gives way to others by the
clock, so on a busy machine a run makes more calls; here it does not.
"""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import sys
import tracemalloc
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.internals import internal

from axil import Out, RootGraph, Workflow, run_sync
from axil.plugin import default_registry
from axil_files import load
from axil_journals import MemoryJournal, check_workflow
from axil_sqlite import SqliteJournal

from . import agent_cpu, live, subjects
from .bench.case import Case
from .bench.columns import axil as agents
from .counting import Calls
from .large import document

pytestmark = pytest.mark.usefixtures("undisturbed")

MOST = {
    # Python calls for one more of each; two of each firing are the doors of the kernel: the event,
    # and the command that follows; one for each edge and each write is the price of one rule for
    # both, on long and short ways
    "a firing of an inline node on a chain": 6.2,
    "a firing that writes a field of a small state": 9.3,
    "a firing that writes a field of a large state": 9.8,
    "a firing of an asynchronous body": 13.4,
    "a firing of a body that waits, beside others": 30.5,
    "an item of a map": 111,
    "a plain function called by name": 10.4,
    "a branch of a fan, out and in": 13.4,
    "an edge between nodes that there are": 0.5,
    "a node that is skipped": 0.1,
    "a round of a loop": 37.1,
    "a round of a loop of two nodes": 55.7,
    # and beyond what it costs without
    "an entry of the journal": 43.3,
    "a round in the journal": 76,
    # of SQLite's journal, that relaxed syncing lets the loop itself commit
    "a durable step": 210,
    "a durable step, 100 runs together": 181,
    # a row of an entry, one of its index, one of the run; now and then a new one
    "pages that a durable step writes": 3.5,
    "an observer, a firing": 6.2,
    "an observer of what edges carry, a firing": 22,
    # of an agent that works on fields, and of each further call of its tool with the reply after it
    "an agent's turn with one call of a tool": 617,
    # nine look whether an approval has a pin, and for hidden secrets; two, which run asks, and
    # whether calls are made in batches
    "a call of a tool more": 148,
    # two calls of a model and one of a tool; the SDK's are 16,500 beside
    "an agent's run with OpenAI's SDK, of its own": 900,
    # through an agent, a run, a server and a protocol, and the turns of the event loop between two
    "a token from a model to the client of a server": 207,
    # how many times as much
    "2,000 rounds with a list that grows, of ten times 200": 1.1,
    # memory blocks that are kept until the run is over
    "blocks kept for a firing on a chain": 0.1,
    "blocks kept for a firing that writes a field": 0.1,
    "blocks kept for a branch of a fan": 3.2,  # tuples that Python keeps to be used again
    "blocks kept for a round of a loop": 0.1,
    # that the collector looks at, its task, future and timer among them
    "objects kept for a run that waits": 60,
    # of making a graph of plain functions, for each node and its edge
    "calls to make a node": 81,  # its function is called by position or by name, its keys checked
    # of checking a file, from its text to the plan, for each node and its edge
    "calls to check a node": 160,
    # and of comparing conditions that speak of the same text, each with those before it
    "calls to check a node behind a condition": 520,
    # since Python 3.14 the collector looks at dicts of plain values, too
    "objects kept for a node that was made": 21.5 if sys.version_info < (3, 14) else 28,
    # bytes that are asked for between two firings, at most
    "bytes between two firings on a chain": 700,
    "bytes between two rounds of a loop": 2500,
}


def calls(flow: Workflow, input: Any = None, **options: Any) -> int:
    """Python calls of one run, from its first step to its result."""

    async def go() -> int:
        run = flow.start(input, **options)
        with Calls() as calls:
            result = await run
        assert result.status == "done", result.error
        return calls.count

    return run_sync(go())


def for_each(make: Callable[[int], Workflow], **options: Any) -> float:
    """Calls for one more of whatever ``make`` makes so many of."""
    few, many = 100, 300
    calls(make(3), **options)  # imports and caches
    return (calls(make(many), **options) - calls(make(few), **options)) / (many - few)


MADE = {
    "a firing of an inline node on a chain": subjects.chain,
    "a firing that writes a field of a small state": lambda n: subjects.chain(n, 10),
    "a firing that writes a field of a large state": lambda n: subjects.chain(n, 1000),
    "a firing of an asynchronous body": subjects.asynchronous,
    "a branch of a fan, out and in": subjects.fan,
    "an edge between nodes that there are": lambda more: subjects.dag(200, 300 + more),
    "a node that is skipped": subjects.skipped_chain,
    "a round of a loop": subjects.loop,
    "a round of a loop of two nodes": subjects.pair,
}


@pytest.mark.parametrize("what", MADE)
def test_the_kernel_makes_few_calls_for(what):
    assert for_each(MADE[what]) <= MOST[what]


def test_a_plain_function_called_by_name_costs_few_calls_more():
    assert (
        for_each(subjects.functions, input={"message": "x"})
        <= MOST["a plain function called by name"]
    )


def test_an_agents_turn_makes_few_calls():
    """The interface of its tool is read once, and what is asked for is put together once."""

    def turn(size: int) -> int:
        flow = agents.asking(Case(size))
        calls(flow, {"number": size})
        return calls(flow, {"number": size})

    one, more = turn(1), turn(11)
    assert one <= MOST["an agent's turn with one call of a tool"]
    assert (more - one) / 10 <= MOST["a call of a tool more"]


def test_an_agents_run_with_a_client_makes_few_calls_of_its_own():
    async def least(url: str, key: str) -> int:
        run, close = agent_cpu.by_axil(url, key)
        await run()
        found: list[int] = []
        for _ in range(15):  # a reply comes in one piece or in several
            with Calls("axil") as calls:
                assert await run() == "Three."
            found.append(calls.count)
        await close()
        return min(found)

    with agent_cpu.service() as server:
        count = run_sync(least(server.url, server.key))
    assert count <= MOST["an agent's run with OpenAI's SDK, of its own"]


class Unhurried(live.Speaker):
    """A model between whose tokens their readers have waited again; numbers are its tokens."""

    async def said(self) -> AsyncGenerator[str]:
        for number in range(self.tokens):
            for _ in range(4):  # turns of the event loop
                await asyncio.sleep(0)
            yield f"<{number}>"


@pytest.mark.parametrize("way", ["chat", "ag-ui"])
def test_a_token_makes_few_calls_on_its_way_from_a_model_through_a_server(way):
    async def counted(tokens: int) -> int:
        service, app = live.served(Unhurried(tokens))
        body, sent = [{"type": "http.request", "body": live.request(way)}], list[bytes]()
        headers = {
            "host": "127.0.0.1",
            "authorization": f"Bearer {live.TOKEN}",
            "content-type": "application/json",
        }
        scope = {
            "type": "http",
            "method": "POST",
            "path": live.PATHS[way],
            "query_string": b"",
            "client": ("127.0.0.1", 1),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }

        async def receive() -> Any:
            return body.pop() if body else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))

        async with service.running():
            with Calls() as calls:
                await app(scope, receive, send)
        assert len(set(live.SPOKEN.findall(b"".join(sent)))) == tokens
        return calls.count

    run_sync(counted(3))
    few, many = run_sync(counted(100)), run_sync(counted(300))
    assert (many - few) / 200 <= MOST["a token from a model to the client of a server"]


def test_an_entry_of_the_journal_costs_few_calls():
    def journaled(n: int) -> float:
        flow = subjects.chain(n, 10)
        calls(flow, journal=MemoryJournal())  # what a journal knows a graph by is worked out once
        return calls(flow, journal=MemoryJournal())

    journaled(3)
    kept = (journaled(300) - journaled(100)) / 200
    assert kept - for_each(lambda n: subjects.chain(n, 10)) <= MOST["an entry of the journal"]


def test_a_round_in_the_journal_costs_few_calls():
    def journaled(n: int) -> float:
        return calls(subjects.loop(n), journal=MemoryJournal())

    journaled(3)
    kept = (journaled(300) - journaled(100)) / 200
    assert kept - for_each(subjects.loop) <= MOST["a round in the journal"]


def durable(folder: Path, steps: int, runs: int = 1) -> tuple[int, float]:
    """Return the calls of so many runs at once, and the pages that they wrote."""

    async def step(state: Any) -> Any:
        return {"n": state["n"] + 1, "log": ["m"]}

    async def go() -> int:
        flow = agents.log_loop(Case(steps), step)
        begun = [flow.start(journal=journal, run_id=f"{steps}-{each}") for each in range(runs)]
        with Calls() as calls:
            await asyncio.gather(*begun)
        return calls.count

    journal = SqliteJournal(folder, sync="normal")
    log, before = folder / "runs.db-wal", journal.runs()
    journal.shrink()  # the log begins anew
    count = run_sync(go())
    pages = log.stat().st_size / (4096 + 24)
    assert len(journal.runs()) == len(before) + runs
    journal.close()
    return count, pages


@pytest.mark.parametrize(("runs", "what"), [(1, ""), (100, ", 100 runs together")])
def test_a_durable_step_makes_few_calls(tmp_path, runs, what):
    durable(tmp_path, 3, runs)
    (few, _), (many, _) = durable(tmp_path, 10, runs), durable(tmp_path, 30, runs)
    assert (many - few) / 20 / runs <= MOST[f"a durable step{what}"]


def test_a_durable_step_writes_few_pages(tmp_path):
    (_, few), (_, many) = durable(tmp_path, 20), durable(tmp_path, 120)
    assert (many - few) / 100 <= MOST["pages that a durable step writes"]


def test_a_body_that_waited_while_others_had_a_turn_makes_no_turn_of_the_loop_more(monkeypatch):
    monkeypatch.setattr(internal("pool"), "SLICE", -1.0)  # as if it had waited for longer

    async def wait(state: Any) -> Any:
        await asyncio.sleep(0)
        return {}

    async def beside(size: int) -> int:
        flow = agents.row(size, wait)
        await flow.run()  # imports and caches
        begun = [flow.start() for _ in range(10)]
        with Calls() as calls:
            await asyncio.gather(*begun)
        return calls.count

    few, many = run_sync(beside(10)), run_sync(beside(30))
    assert (many - few) / 200 <= MOST["a firing of a body that waits, beside others"]


def test_an_item_of_a_map_costs_few_calls():
    def mapped(size: int) -> int:
        with Calls() as calls:
            assert run_sync(agents.mapped(Case(size))()) == size * (size + 1) // 2
        return calls.count

    mapped(3)
    few, many = mapped(100), mapped(300)
    assert (many - few) / 200 <= MOST["an item of a map"]


def test_an_observer_costs_few_calls_and_no_observer_none():
    class Observer:
        def firing_finished(self, activation: Any) -> None:
            """Listens."""

    class Reader:
        def firing_received(self, payloads: Any) -> None:
            """Listens."""

        def firing_sent(self, payloads: Any) -> None:
            """Listens."""

    plain, watched = for_each(subjects.chain), for_each(subjects.chain, observers=[Observer()])
    assert watched - plain <= MOST["an observer, a firing"]
    read = for_each(subjects.chain, observers=[Reader()])
    assert read - plain <= MOST["an observer of what edges carry, a firing"]


@pytest.mark.parametrize(
    "make",
    [subjects.chain, subjects.fan, subjects.skipped_chain, subjects.loop, subjects.asynchronous],
)
def test_cost_grows_in_step_with_size(make):
    small, large = calls(make(200)), calls(make(2000))
    assert large < 10.5 * small


# ------------------------------------------------------------------------------------------------ m


def blocks(flow: Workflow) -> int:
    """Memory blocks by which a run has grown when it is over, and its result is still held."""

    async def go() -> int:
        gc.collect()
        gc.disable()
        try:
            before = sys.getallocatedblocks()
            run = flow.start()
            result = await run
            return sys.getallocatedblocks() - before if result.status == "done" else sys.maxsize
        finally:
            gc.enable()

    return run_sync(go())


def kept_for_each(make: Callable[[int], Workflow]) -> float:
    """Blocks for one more of whatever ``make`` makes so many of.

    The plan is made before, so it is not counted.
    """
    blocks(make(3))
    few, many = (min(blocks(flow) for _ in range(3)) for flow in (make(200), make(1000)))
    return (many - few) / 800


KEPT = {
    "blocks kept for a firing on a chain": subjects.chain,
    "blocks kept for a firing that writes a field": lambda n: subjects.chain(n, 10),
    "blocks kept for a branch of a fan": subjects.fan,
    "blocks kept for a round of a loop": subjects.loop,
}


@pytest.mark.parametrize("what", KEPT)
def test_a_run_keeps_little_memory(what):
    assert kept_for_each(KEPT[what]) <= MOST[what]


def test_a_run_that_waits_keeps_few_objects_for_the_collector_to_look_at():
    async def wait(state: Any) -> Any:
        await asyncio.sleep(3600)

    async def objects(runs: int) -> int:
        gc.collect()
        before = len(gc.get_objects())
        begun = [asyncio.create_task(flow.run()) for _ in range(runs)]
        for _ in range(5):  # turns of the event loop, until all bodies wait
            await asyncio.sleep(0)
        gc.collect()
        kept = len(gc.get_objects()) - before
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)
        return kept

    flow = agents.row(10, wait)
    _, few, many = [run_sync(objects(runs)) for runs in (3, 100, 300)]
    assert (many - few) / 200 <= MOST["objects kept for a run that waits"]


class Weighing(subjects.Nothing):
    """A body that notes how many bytes were asked for, at most, since one like it was here."""

    def __init__(self, found: list[int], out: Callable[[Any], Out]) -> None:
        self.found, self.out = found, out

    def __call__(self, task: Any, ctx: Any, /) -> Out:
        out = self.out(task)
        now, most = tracemalloc.get_traced_memory()
        self.found.append(most - now)
        tracemalloc.reset_peak()
        return out


def bytes_between(make: Callable[[list[int]], Workflow]) -> tuple[float, float]:
    """Return what is asked for between two firings, after a quarter of a run and at its end: the
    middle one of ten each, as others ask, too.
    """

    async def go() -> None:
        result = await flow.start()
        assert result.status == "done", result.error

    run_sync(make([]).start())  # imports and caches
    found: list[int] = []
    flow = make(found)
    tracemalloc.start()
    try:
        run_sync(go())
    finally:
        tracemalloc.stop()
    early = len(found) // 4  # small numbers cost nothing
    return statistics.median(found[early : early + 10]), statistics.median(found[-10:])


def written(fields: int, n: int = 60) -> Callable[[list[int]], Workflow]:
    """Return a chain in a state of so many fields, of which each node writes one."""

    def make(found: list[int]) -> Workflow:
        bodies = [Weighing(found, lambda task, i=i: Out({}, {f"f{i % 10}": i})) for i in range(n)]
        nodes = [subjects.node(f"n{i}", body) for i, body in enumerate(bodies)]
        edges = [
            subjects.edge("@entry", "n0"),
            *(subjects.edge(f"n{i}", f"n{i + 1}") for i in range(n - 1)),
        ]
        return subjects.planned(nodes, edges, attributes={f"f{i}": 0 for i in range(fields)})

    return make


def grown(rounds: int) -> Callable[[list[int]], Workflow]:
    """Return a list that grows by one a round."""

    def step(task: Any) -> Out:
        n = task.state["n"] + 1
        return Out(n, {"n": n, "log": ["m"]})

    return lambda found: subjects.logging(rounds, Weighing(found, step))


def test_what_a_firing_asks_for_does_not_grow_with_the_state():
    (_, small), (_, large) = bytes_between(written(10)), bytes_between(written(3000))
    assert small <= MOST["bytes between two firings on a chain"]
    assert large <= 1.1 * small + 200


def test_what_a_firing_asks_for_does_not_grow_with_the_graph():
    (_, small), (_, large) = bytes_between(written(10, 60)), bytes_between(written(10, 1000))
    assert large <= 1.1 * small + 200


def test_what_a_round_asks_for_does_not_grow_with_what_went_before():
    early, late = bytes_between(grown(2000))
    assert late <= MOST["bytes between two rounds of a loop"]
    assert late <= 1.1 * early + 200


def test_what_a_round_costs_does_not_grow_with_what_went_before():
    calls(grown(3)([]))
    few, many = calls(grown(200)([])), calls(grown(2000)([]))
    assert many / few / 10 <= MOST["2,000 rounds with a list that grows, of ten times 200"]


# ------------------------------------------------------------------------------------------------ m


def made(n: int) -> RootGraph:
    """Return a chain of plain functions, through the builder."""
    graph = RootGraph("row", attributes={"n": 0})
    for i in range(n):
        graph.create_node(
            lambda state: {"n": state["n"] + 1}, name=f"n{i}", push_keys={"n": ""}, inline=True
        )
    graph.edge_from_entry("n0", {})
    for i in range(1, n):
        graph.create_edge(f"n{i - 1}", f"n{i}", {})
    graph.edge_to_exit(f"n{n - 1}", {})
    return graph.build()


def test_making_a_node_costs_few_calls():
    def calls_to_make(n: int) -> int:
        with Calls() as calls:
            made(n)
        return calls.count

    made(3)
    assert (calls_to_make(300) - calls_to_make(100)) / 200 <= MOST["calls to make a node"]


def test_checking_a_node_of_a_file_costs_few_calls(tmp_path):
    def calls_to_check(nodes: int) -> int:
        path = tmp_path / f"{nodes}.json"
        path.write_text(json.dumps(document(nodes)))
        with Calls() as calls:
            load(path).plan  # noqa: B018  # compiled when it is first asked for
        return calls.count

    calls_to_check(3)
    assert (calls_to_check(300) - calls_to_check(100)) / 200 <= MOST["calls to check a node"]


def test_checking_conditions_behind_each_other_costs_few_calls(tmp_path):
    def calls_to_check(nodes: int) -> int:
        data = document(nodes)
        for number, edge in enumerate(data["graph"]["edges"]):
            words = {"any": [f"a{number % 7}", f"b{number % 5}"], "none": [f"c{number % 3}"]}
            edge["condition"] = {"type": "keyword", "config": words}
        path = tmp_path / f"{nodes}.json"
        path.write_text(json.dumps(data))
        with Calls() as calls:
            assert check_workflow(lambda: load(path), default_registry()).problems == ()
        return calls.count

    calls_to_check(3)
    each = (calls_to_check(300) - calls_to_check(100)) / 200
    assert each <= MOST["calls to check a node behind a condition"]


def test_a_node_that_was_made_keeps_few_objects_for_the_collector_to_look_at():
    def objects(n: int) -> int:
        gc.collect()
        before = len(gc.get_objects())
        graph = made(n)
        gc.collect()
        return len(gc.get_objects()) - before if graph.name else 0

    objects(3)
    assert (objects(300) - objects(100)) / 200 <= MOST["objects kept for a node that was made"]
