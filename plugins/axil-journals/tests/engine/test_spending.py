"""The limits of a provider, kept in arrears by the engines of a journal."""

from __future__ import annotations

import asyncio
from typing import Any

from axil import RootGraph
from axil_journals import LocalEngine, MemoryJournal, Place, Queue
from axil_testing import VirtualClock


class RefusedError(RuntimeError):
    retry_after_seconds = 30.0


def calling(seen: list[tuple[float, str]], clock: VirtualClock) -> RootGraph:
    """Return a graph whose node calls a model, which may refuse."""

    async def call(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        async def model() -> str:
            if inputs["n"] == "refused":
                raise RefusedError("too many")
            ctx.spend(input_tokens=900, output_tokens=100)
            return "said"

        seen.append((round(clock.wall() - began, 1), inputs["n"]))
        try:
            await ctx.step("ask", model, kind="model")
        except RefusedError:
            ctx.emit({"kind": "noted"})
        return {"n": 1}

    began = clock.wall()
    graph = RootGraph("calling")
    node = graph.create_node(call, name="call")
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {"n": ""})
    return graph.build()


def begun(rules: Queue, names: list[str]) -> list[tuple[float, str]]:
    """Return when each run began, in seconds."""
    clock, journal, seen = VirtualClock(), MemoryJournal(), list[tuple[float, str]]()
    graph = calling(seen, clock)

    async def go() -> None:
        async with LocalEngine(journal, [graph], clock=clock, queues=[rules]) as engine:
            for name in names:
                place = Place(queue="q", key=name)
                await engine.start(graph, {"n": name}, run_id=name, place=place)
                await engine.idle()
            for name in names:
                await engine.result(name)

    asyncio.run(go())
    return seen


def test_no_run_is_taken_while_the_tokens_of_a_minute_are_used() -> None:
    seen = begun(Queue(name="q", concurrency=1, tokens_per_minute=600), ["a", "b", "c"])
    # 400 tokens are owed, and ten come in a second
    assert [name for _, name in seen] == ["a", "b", "c"]
    assert [at for at, _ in seen] == [0.0, 40.1, 140.1]


def test_no_run_is_taken_before_a_provider_that_asked_to_wait_may_be_asked_again() -> None:
    seen = begun(Queue(name="q", requests_per_minute=1000), ["refused", "b"])
    assert seen == [(0.0, "refused"), (30.0, "b")]


def test_a_queue_without_such_limits_is_not_asked_again_and_again() -> None:
    assert [at for at, _ in begun(Queue(name="q"), ["a", "b"])] == [0.0, 0.0]
