"""Tests of the recorder."""

from __future__ import annotations

import pytest

from axil import Graph, NodeFailed, RootGraph
from axil.plugin import hook_manager
from axil_testing import Recorder


def built(**options) -> RootGraph:
    g = RootGraph("g", cycles="allow", **options)
    sub = g.create_node(Graph, name="sub")
    w = sub.create_node(lambda inputs: {"n": inputs["n"] + 1}, name="w", inline=True)
    sub.edge_from_entry(w, ["n"])
    sub.edge_to_exit(w, ["n"])
    never = g.create_node(lambda inputs: inputs, name="never", inline=True)
    g.edge_from_entry(sub, ["n"])
    g.create_edge(sub, never, ["n"], when=lambda payload: payload["n"] > 99)
    g.create_edge(sub, sub, ["n"], when=lambda payload: payload["n"] < 3)
    g.edge_to_exit(sub, ["n"], when=lambda payload: payload["n"] >= 3)
    return g.build()


def test_each_activation_is_one_record():
    recorder = Recorder()
    built().invoke({"n": 1}, observers=[recorder])
    assert recorder.order() == ["sub/w", "sub/w"]
    assert recorder.count("sub/w") == 2
    assert recorder.names() == [
        "cycle(sub)/0/sub/w",
        "cycle(sub)/0/sub",
        "cycle(sub)/1/sub/w",
        "cycle(sub)/1/sub",
        "cycle(sub)",
    ]
    assert recorder.names(kind="graph") == ["cycle(sub)/0/sub", "cycle(sub)/1/sub"]
    assert recorder.names("skipped") == ["never"]
    record = recorder["cycle(sub)/1/sub/w"]
    assert (record.node, record.path, record.kind, record.frame) == (
        "w",
        "sub/w",
        "node",
        ("cycle(sub)", 1, "sub"),
    )
    assert (record.ordinal, record.status, record.payload, record.inputs) == (
        (),
        "done",
        {"n": 3},
        None,
    )
    assert recorder.result.output == {"n": 3}
    with pytest.raises(KeyError, match="there are"):
        recorder["nobody"]


def test_as_a_hook_plugin_it_sees_what_bodies_are_given():
    recorder = Recorder()
    built(hooks=hook_manager([recorder])).invoke({"n": 2})
    assert recorder["cycle(sub)/0/sub/w"].inputs == ({"n": 2},)


def test_a_failure_and_the_chunks_before_it_are_kept():
    async def body(ctx):
        ctx.emit("almost")
        raise ValueError("no")

    g = RootGraph("g")
    g.edge_from_entry(g.create_node(body, name="a"), {})
    g.edge_to_exit("a", {})
    recorder = Recorder()
    with pytest.raises(NodeFailed, match="ValueError: no"):
        g.build().invoke({}, observers=[recorder])
    (record,) = recorder
    assert (record.status, record.chunks) == ("failed", ("almost",))
    assert isinstance(record.payload, ValueError)


def test_it_begins_again_with_every_run():
    recorder, g = Recorder(), built()
    for _ in range(2):
        g.invoke({"n": 2}, observers=[recorder])
    assert recorder.count("sub/w") == 1
