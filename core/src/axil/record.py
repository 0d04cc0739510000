"""Steps that do not come from a body: told to a journal, retold from one, or handed up by a cycle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axil.composite import Left
from axil.errors import JournalError
from axil.journal import Entry, decode, decode_delta, encode, encode_delta
from axil.machine import Machine, Send, Step
from axil.plan import Plan
from axil.tokens import Changes, Task


def header(plan: Plan, inputs: Any, values: Mapping[str, Any]) -> Entry:
    """What a journal keeps of a run before anything runs. Raises: JournalError: an input cannot be kept."""
    schema = plan.graph.schema
    return Entry("run", data={"inputs": encode(inputs), "values": encode_delta(values, schema), "digest": plan.graph.spec.digest()})


def reopened(told: Entry, plan: Plan, inputs: Any, values: Mapping[str, Any], *, resuming: bool) -> tuple[Any, dict[str, Any]]:
    """Inputs and first values of a run that a journal knows.

    ``resuming``: whatever is given now. Raises: JournalError: AX504 another graph's; AX505 begun with another input.
    """
    schema, data = plan.graph.schema, told.data
    if data["digest"] != plan.graph.spec.digest():
        raise JournalError("the run was begun with another version of this graph.", id="AX504", hint="Finish it with that version.")
    nothing_given = inputs is None and not values
    if not (resuming or nothing_given) and (data["inputs"], data["values"]) != (encode(inputs), encode_delta(values, schema)):
        raise JournalError("a run of this id was begun with another input.", id="AX505", hint="Resume it, or choose another run_id.")
    return decode(data["inputs"]), decode_delta(data["values"], schema)


def told(machine: Machine, task: Task, step: Step) -> Entry:
    """The fact that ``task`` came to ``step``. Raises: JournalError: a value cannot be kept."""
    schema, edges = machine.root.schema, machine.plan.graph.edges
    sends = [[edges[s.arc.id].name, encode(s.payload), None if s.values is None else encode_delta(s.values, schema)] for s in step.sends]
    data: dict[str, Any] = {"delta": encode_delta(step.delta, schema), "sends": sends}
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
