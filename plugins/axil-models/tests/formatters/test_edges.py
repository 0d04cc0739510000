"""Formatters on edges of graphs in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from axil import NodeFailed, RootGraph


class Lines:
    """Fields as lines ``name: value``."""

    def dump(self, fields: Mapping[str, Any]) -> str:
        return "\n".join(f"{name}: {value}" for name, value in fields.items())

    def parse(self, text: str, fields: Sequence[str] = ()) -> dict[str, Any]:
        return dict(line.split(": ", 1) for line in text.splitlines())


@pytest.mark.parametrize("formatter", [Lines, Lines()], ids=["class", "instance"])
def test_an_edge_writes_fields_as_a_message_and_reads_them_again(formatter: Any):
    g = RootGraph("g")
    for name in ("a", "b"):
        g.create_node(lambda inputs: inputs, name=name)
    g.edge_from_entry("a", ["x", "y"])
    g.create_edge("a", "b", ["x", "y"], formatter=formatter)
    g.create_edge("b", "exit", ["y"], parser=formatter)
    assert g.build().invoke({"x": "1", "y": "2"})[0] == {"y": "2"}


def test_a_parser_that_finds_too_little_fails_with_its_edge():
    g = RootGraph("g")
    g.create_node(lambda inputs: inputs, name="a")
    g.edge_from_entry("a")
    g.create_edge("a", "exit", ["z"], parser=Lines)
    with pytest.raises(NodeFailed, match="the parser found no"):
        g.build().invoke("x: 1")


def test_digests_are_those_of_graphs_that_were_recorded_when_core_had_formatters():
    g = RootGraph("g")
    for name in ("a", "b"):
        g.create_node(len, name=name)
    g.create_edge("a", "b", ["x"], formatter=Lines)
    g.create_edge("b", "exit", ["y"], parser=Lines)
    assert g.to_spec().digest() == (
        "a415cd4e62ecca108c2f8babd3c093b3feec01570f0898962d62330f7de8fb73"
    )
