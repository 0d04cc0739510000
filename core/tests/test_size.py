"""Laws of sizes: what a firing gives, and what a field of the state holds, is bounded."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import pytest

from axil import Reducer, RootGraph
from axil.kernel.state import Field, Schema
from axil.kernel.values import MAX_CHARACTERS, MAX_SIZE, bounded_text, check_size

HALF = "x" * (MAX_CHARACTERS // 2 + 1)


def ended(body: Any) -> Any:
    """Return the result of a run of one node; of one that fails too."""
    graph = RootGraph("g")
    node = graph.create_node(body, name="n")
    graph.edge_from_entry(node, {})
    graph.edge_to_exit(node, {})
    graph.build()

    async def run() -> Any:
        return await graph.start({}).result()

    return asyncio.run(run())


def nested(depth: int) -> list[Any]:
    """Return lists that share their items: small in memory, 2 ** depth texts when written out."""
    value: list[Any] = ["text"]
    for _ in range(depth):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    "output", [{"a": HALF * 2}, {"a": [{"b": HALF * 2}]}, {"a": nested(21)}], ids=[0, 1, 2]
)
def test_what_a_firing_gives_is_bounded(output: Any):
    result = ended(lambda inputs: output)
    assert result.status == "failed"
    assert "AX639" in str(result.error)


def test_large_values_within_the_bound_are_carried():
    result = ended(lambda inputs: {"a": [HALF] * 5, "numbers": list(range(100_000))})
    assert result.status == "done"


@pytest.mark.parametrize("shared", [[0] * 500_000, dict.fromkeys(range(500_000))], ids=[0, 1])
def test_counting_a_value_takes_no_more_memory_than_what_is_within_the_bound(shared: Any):
    value = [shared] * 100  # small in memory, 50 million values when written out
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="AX639"):
            check_size(value)
        assert tracemalloc.get_traced_memory()[1] < 2 * MAX_SIZE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("part", [HALF, [0] * (MAX_SIZE // 32 + 1)], ids=["text", "list"])
def test_what_a_field_comes_to_is_bounded(part: Any):
    field = Field("f", Reducer("add", lambda old, new: (old or part) + new, pure=True))
    schema = Schema("s", {"f": field}, closed=True)
    check_size(part)
    with pytest.raises(ValueError, match="AX639"):
        schema.reduced(field, part, [part, part])


def test_a_text_is_not_made_beyond_its_bound():
    def pieces() -> Any:
        yield HALF
        yield HALF
        raise AssertionError("nothing is asked for beyond the bound")

    with pytest.raises(ValueError, match="AX639"):
        bounded_text(pieces())


@pytest.mark.parametrize("nodes", [2, 4])
def test_what_waits_on_edges_is_bounded_together(nodes: int):
    """Each of several nodes gives less than the bound, and all of them more."""
    graph = RootGraph("g")
    last = graph.create_node(lambda inputs: {"size": len(inputs)}, name="last")
    for number in range(nodes):
        made = {f"a{number}": [[number, each] for each in range(90_000)]}
        one = graph.create_node(lambda inputs, made=made: made, name=f"n{number}")
        graph.edge_from_entry(one, {})
        graph.create_edge(one, last, {f"a{number}": ""})
    graph.edge_to_exit(last, {"size": ""})
    graph.build()
    result = asyncio.run(_result(graph))
    assert result.status == ("done" if nodes == 2 else "failed")
    assert ("AX639" in str(result.error)) is (nodes == 4)


async def _result(graph: RootGraph) -> Any:
    return await graph.start({}).result()
