"""Nothing is lost and nothing comes from nowhere: in a round every edge of an acyclic graph is
decided once.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from hypothesis import assume, given

from axil.compiler.planner import compile_spec
from axil.errors import StateError
from axil.kernel.machine import Machine, entry_tokens
from axil.kernel.tokens import Task
from axil_testing.graphs import RandomGraph, graphs

from .strategies import law, seeds


class Ledger:
    """One machine driven by hand, with every token that was sent and every token that arrived."""

    def __init__(self, case: RandomGraph, choose: random.Random) -> None:
        self.plan = plan = compile_spec(case.spec())
        root = plan.graph.schema.start(plan.graph.start)
        machine = Machine(plan, (), root)
        tokens = entry_tokens(plan, {}, root)
        self.sent: Counter[tuple[int, Any]] = Counter((t.edge, t.ordinal) for t in tokens)
        self.tasks: list[Task] = []
        machine.start(tokens)
        at_work: list[Task] = []
        while machine.due or at_work:
            if machine.due and (not at_work or choose.random() < 0.5):
                task = machine.take()
                assert task is not None
                self.tasks.append(task)
                at_work.append(task)
                continue
            task = at_work.pop(choose.randrange(len(at_work)))
            step = machine.prepare(task, task.node.vertex.body(task, None))
            self.sent.update((send.arc.id, task.ordinal) for send in step.sends)
            machine.commit(task, step)
        self.skipped = list(machine.skips)
        self.ended = machine.end()

    @classmethod
    def of(cls, case: RandomGraph, choose: random.Random) -> Ledger:
        try:
            return cls(case, choose)
        except StateError:
            assume(False)
            raise

    def firings(self) -> Counter[int]:
        return Counter(task.node.index for task in self.tasks)


@law(40)
@given(case=graphs(depth=0), choose=seeds)
def test_every_node_fires_or_is_skipped_and_none_does_both(
    case: RandomGraph, choose: random.Random
):
    ledger = Ledger.of(case, choose)
    fired = set(ledger.firings())
    assert len(ledger.skipped) == len(set(ledger.skipped))
    assert fired.isdisjoint(ledger.skipped)
    assert fired | set(ledger.skipped) == set(range(len(ledger.plan.nodes)))


@law(40)
@given(case=graphs(depth=0), choose=seeds)
def test_every_token_sent_arrives_once_or_its_target_did_not_fire(
    case: RandomGraph, choose: random.Random
):
    ledger = Ledger.of(case, choose)
    edges = ledger.plan.graph.edges
    arrived = Counter(
        (t.edge, t.ordinal) for task in ledger.tasks for t in task.tokens if edges[t.edge].trigger
    )
    arrived.update((e.edge, e.ordinal) for e in ledger.ended.exits)
    assert set(arrived.values()) <= {1}
    assert set(ledger.sent.values()) <= {1}
    fired = {(task.node.name, edges[task.tokens[0].edge].group) for task in ledger.tasks}
    for token in set(ledger.sent) - set(arrived):
        edge = edges[token[0]]
        if edge.trigger:
            assert (edge.target_name, edge.group) not in fired
    assert set(arrived) <= set(ledger.sent)


@law(40)
@given(case=graphs(depth=0, joins=("gate", "all")), choose=seeds)
def test_an_edge_carries_one_token_at_most_for_each_group_of_its_source(
    case: RandomGraph, choose: random.Random
):
    ledger = Ledger.of(case, choose)
    groups: dict[str, set[str]] = {}
    for edge in ledger.plan.graph.edges:
        groups.setdefault(edge.target_name, set()).add(edge.group)
    for node, count in ledger.firings().items():
        assert count <= len(groups[ledger.plan.nodes[node].name])
    live = Counter(edge for edge, _ in ledger.sent)
    for edge, count in live.items():
        source = ledger.plan.graph.edges[edge].source
        assert count <= (1 if source < 0 else len(groups[ledger.plan.graph.vertices[source].name]))
