"""A golden trace is written once, holds for every schedule, and says where a run deviates."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from axil import Graph, RootGraph
from axil_testing import Golden
from axil_testing.golden import Deviation, differences


def built(last: int = 3, shuffled: random.Random | None = None) -> RootGraph:
    async def work(inputs, ctx):
        for _ in range(shuffled.randrange(5) if shuffled else 0):
            await asyncio.sleep(0)
        return {"n": int(inputs.get("n") if isinstance(inputs.get("n"), int) else 1) + 1}

    g = RootGraph("g", cycles="allow", attributes={"when": random.random()})
    a, b, c = (g.create_node(work, name=name) for name in "abc")
    sub = g.create_node(Graph, name="sub")
    w = sub.create_node(work, name="w")
    sub.edge_from_entry(w, ["n"])
    sub.edge_to_exit(w, ["n"])
    g.edge_from_entry(a, ["n"])
    g.create_edge(a, b, ["n"])
    g.create_edge(a, sub, ["n"])
    g.create_edge(b, c, ["n"])
    g.create_edge(sub, c, {})
    g.create_edge(c, a, ["n"], when=lambda payload: payload["n"] < last)
    g.edge_to_exit(c, ["n"], when=lambda payload: payload["n"] >= last)
    return g.build()


def golden(tmp_path, workflow=None) -> Golden:
    return Golden(
        tmp_path / "trace.json", workflow or built(), {"n": 0}, hidden=frozenset({"when"})
    )


def test_it_is_written_when_it_is_not_there(tmp_path):
    trace = golden(tmp_path).check()
    data = json.loads((tmp_path / "trace.json").read_text("utf-8"))
    assert data == trace.as_data()
    assert data["counts"] == {"a": 1, "b": 1, "c": 1, "sub/w": 1}
    assert data["steps"] == [
        ["cycle(a,b,+2)/0/a"],
        ["cycle(a,b,+2)/0/b"],
        ["cycle(a,b,+2)/0/sub/w"],
        ["cycle(a,b,+2)/0/c"],
    ]
    assert data["inputs"]["cycle(a,b,+2)/0/c"] == [{"n": 2}, {}]
    assert data["output"] == {"n": 3}
    assert "when" not in data["attributes"]


def test_it_holds_whatever_takes_how_long(tmp_path):
    golden(tmp_path, built(9)).check()
    for seed in range(20):
        golden(tmp_path, built(9, random.Random(seed))).check()


def test_a_deviation_names_what_differs(tmp_path):
    golden(tmp_path).check()
    with pytest.raises(Deviation) as deviation:
        golden(tmp_path, built(4)).check()
    text = str(deviation.value)
    for part in ("output.n: expected 3, found 6", "counts.a: expected 1, found 2", "steps[4]"):
        assert part in text


def test_it_is_updated_on_demand(tmp_path, monkeypatch):
    golden(tmp_path).check()
    monkeypatch.setenv("AXIL_GOLDEN", "update")
    golden(tmp_path, built(4)).check()
    monkeypatch.delenv("AXIL_GOLDEN")
    golden(tmp_path, built(4)).check()


def test_only_what_is_written_is_compared(tmp_path):
    (tmp_path / "trace.json").write_text(
        json.dumps({"counts": {"a": 1, "b": 1, "c": 1, "sub/w": 1}}), "utf-8"
    )
    golden(tmp_path).check()


def test_an_order_is_groups_of_nodes_all_of_one_before_any_of_the_next(tmp_path):
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"order": [["a"], ["sub/w", "b"], ["c"]]}), "utf-8")
    golden(tmp_path).check()
    file.write_text(json.dumps({"order": [["c"], ["a"]]}), "utf-8")
    with pytest.raises(Deviation, match="order: a fired before c had ended"):
        golden(tmp_path).check()


def test_a_field_that_no_trace_has_is_named(tmp_path):
    trace = golden(tmp_path).run()
    assert differences({"ouput": 1}, trace)[0].startswith("ouput: a trace has no such field")
