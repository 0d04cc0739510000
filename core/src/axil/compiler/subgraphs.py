"""Graphs inside nodes: what they take from the state around them, and what they write to it."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from axil.kernel.machine import FrameResult
from axil.kernel.plan import ResolvedGraph
from axil.kernel.state import State
from axil.kernel.values import unshared
from axil.spec.graph import SubgraphSpec, local_field


class Projection(NamedTuple):
    """The pull and push rules of a node that holds a graph."""

    node: str
    rules: SubgraphSpec
    graph: ResolvedGraph

    def pull(self, outer: State) -> State:
        """Return the state of a new visit: the graph's first values, what is pulled, and with
        ``keep`` what its nodes kept.
        """
        rules, schema = self.rules, self.graph.schema
        values = unshared(self.graph.start)
        names = (
            [n for n in outer if not n.startswith("@")]
            if rules.pull is None
            else [n for n in rules.pull if n in outer]
        )
        values.update(
            (n, outer[n])
            for n in names
            if n not in rules.hidden and (not schema.closed or n in schema.fields)
        )
        if rules.keep:
            # another graph's node may have the same name: its own fields are not those of our nodes
            kept = cast("dict[str, Any]", outer.get(local_field(self.node)) or {})
            values.update((n, v) for n, v in kept.items() if n.startswith("@"))
        return schema.start(values)

    def push(self, ended: FrameResult, outer: State) -> dict[str, Any]:
        """Return the changes of a visit that are written to the state around it."""
        rules = self.rules
        mine = {
            n: v
            for n, v in ended.changes.items()
            if not n.startswith("@") and n not in rules.hidden
        }
        if rules.offered and outer.schema.closed:
            mine = {
                n: v for n, v in mine.items() if n not in rules.offered or n in outer.schema.fields
            }
        named = rules.pull if rules.push is None else rules.push
        if named is not None:
            taken = {n: mine[n] for n in named if n in mine}
        else:
            known = outer.schema.fields if outer.schema.closed else outer
            taken = {n: v for n, v in mine.items() if n in known}
        taken.update((n, mine[n]) for n in rules.offered if n in mine)
        if rules.keep:
            taken[local_field(self.node)] = {
                n: v for n, v in ended.state.items() if n.startswith("@")
            }
        return taken
