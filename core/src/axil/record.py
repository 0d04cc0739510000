"""Steps that do not come from a body: told to a journal, retold from one, or handed up by a cycle."""

from __future__ import annotations

from axil.composite import Left
from axil.journal import Entry, decode, decode_delta, encode, encode_delta
from axil.machine import Machine, Send, Step
from axil.tokens import Changes, Task


def told(machine: Machine, task: Task, step: Step, at: float) -> Entry:
    """The fact that ``task`` came to ``step``, ``at`` seconds into the run. Raises: JournalError: a value cannot be kept."""
    schema, edges = machine.root.schema, machine.plan.graph.edges
    sends = [[edges[s.arc.id].name, encode(s.payload), None if s.values is None else encode_delta(s.values, schema)] for s in step.sends]
    data = {"delta": encode_delta(step.delta, schema), "sends": sends, "at": at}
    if machine.head is not None:
        data["head"] = task.head
    return Entry("done", task.frame, machine.plan.nodes[task.node].name, task.ordinal, data)


def retold(machine: Machine, task: Task, entry: Entry) -> Step:
    """The step that a journal recorded; edges that the plan no longer has are left out."""
    schema, edges = machine.root.schema, machine.plan.graph.edges
    arcs = {edges[arc.id].name: arc for arc in machine.plan.nodes[task.node].out}
    delta = Changes(decode_delta(entry.data["delta"], schema))
    sends = [
        Send(arcs[name], decode(payload), None if values is None else decode_delta(values, schema))
        for name, payload, values in entry.data["sends"]
        if name in arcs
    ]
    return Step(delta, machine.advance(task, delta), sends)


def leaving(machine: Machine, task: Task, left: Left) -> Step:
    """What a cycle's end does in the scope around it: its changes, and its tokens, edge by edge in the order they left."""
    arcs = {arc.id: arc for arc in machine.plan.nodes[task.node].out}
    exits = sorted(left.exits, key=lambda exit: exit.edge)
    sends = [Send(arcs[exit.edge], exit.payload, exit.values) for exit in exits]
    return Step(left.changes, machine.advance(task, left.changes), sends)
