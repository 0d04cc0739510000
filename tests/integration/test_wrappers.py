"""Agents from a file, with wrappers around them and a model of several: what spans the kernel,
agents and wrappers.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from axil_files import load
from axil_journals import MemoryJournal
from axil_testing import VirtualClock
from axil_wrappers import Cache

BUSY = {"status": 503, "retry_after": 20}


def script(*replies):
    return {"type": "scripted", "config": {"rules": [{"replies": list(replies)}]}}


def agent(model, *wrappers, **more):
    return {
        "id": "A",
        "type": "agent",
        "config": {"model": model},
        "wrappers": list(wrappers),
        **more,
    }


@pytest.fixture
def flow(tmp_path):
    def flow(node, **graph):
        file = tmp_path / "flow.json"
        file.write_text(
            json.dumps(
                {
                    "graph": {
                        "id": "g",
                        "nodes": [node],
                        "edges": [],
                        "start": ["A"],
                        "end": ["A"],
                        **graph,
                    }
                }
            )
        )
        return load(file)

    Cache.memory.clear()
    return flow


class Watch:
    def __init__(self):
        self.chunks = []

    def chunk(self, activation, chunk):
        self.chunks.append(chunk["kind"])


def run(workflow, watch=None, **options):
    async def main():
        async with workflow:
            return await workflow.start(
                "why?", observers=[watch] if watch else [], **options
            ).result()

    return asyncio.run(main())


def test_an_agent_is_tried_again_when_its_model_says(flow):
    clock, watch = VirtualClock(), Watch()
    result = run(
        flow(
            agent(
                script(BUSY, BUSY, "because"), {"type": "retry", "config": {"max_wait_seconds": 1}}
            )
        ),
        watch,
        clock=clock,
    )
    assert (result.status, result.output, clock.now()) == ("done", "because", 40)
    assert watch.chunks == ["retry", "retry", "text"]


def test_a_refusal_is_not_tried_again(flow):
    clock = VirtualClock()
    assert (
        run(flow(agent(script({"status": 401}, "because"), "retry")), clock=clock).status
        == "failed"
    )


def test_the_next_model_is_asked_where_one_fails(flow):
    models = {"type": "fallback", "models": [script({"status": 500}), script("because")]}
    watch = Watch()
    result = run(flow(agent(models)), watch)
    assert (result.output, watch.chunks) == ("because", ["fallback", "text"])


def test_usual_wrappers_stand_around_all_agents_of_a_file(flow):
    usual = {
        "agent": [{"type": "retry", "config": {"tries": 2, "wait_seconds": 0}}],
        "*": [{"type": "fallback", "config": {"value": "no idea"}}],
    }
    result = run(flow(agent(script({"status": 500})), node_wrappers=usual), clock=VirtualClock())
    assert result.output == "no idea"


def test_an_agent_is_asked_once_for_equal_questions(flow):
    workflow = flow(agent(script("one", "two"), "cache"))
    assert [run(workflow).output for _ in range(3)] == ["one"] * 3


def test_an_agent_with_a_memory_is_not_cached_by_default(flow):
    memory = {"memories": [{"type": "history"}]}
    node = agent(script("one", "two"), "cache")
    node["config"] |= memory
    workflow = flow(node)
    assert [run(workflow).output for _ in range(2)] == ["one", "two"]


def test_limits_of_a_file_are_reserved_before_a_model_is_asked(flow):
    limits = {
        "cost": 0.001,
        "pricing": {"models": {}, "unknown": {"input": 1, "output": 1}},
        "estimate": {"output_tokens": 2000},
    }
    result = run(flow(agent(script("because")), limits=limits))
    assert (result.status, result.error.id, result.usage.tokens) == ("limited", "AX414", {})


def test_a_resumed_run_asks_no_model_again_and_counts_on(flow):
    journal = MemoryJournal()
    workflow = flow(
        agent(script("one", "two"), "retry", {"type": "budget", "config": {"tokens": 5000}})
    )
    first = run(workflow, journal=journal, run_id="r")
    again = run(workflow, journal=journal, run_id="r")
    assert (first.output, again.output) == ("one", "one")
    assert first.usage.tokens == again.usage.tokens != {}
