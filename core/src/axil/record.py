"""Steps that do not come from a body: told to a journal, retold from one, or handed up by a cycle."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from axil.composite import Left
from axil.context import KEPT
from axil.errors import JournalError
from axil.journal import Entry, Replay, decode, decode_delta, encode, encode_delta
from axil.machine import Machine, Send, Step
from axil.plan import Plan
from axil.result import Options, Result
from axil.state import State
from axil.tokens import Changes, Task


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a run begins with."""

    inputs: Any
    values: Mapping[str, Any]
    """Given with the inputs, checked."""
    thread: str = ""
    after: str = ""
    """The thread's last run so far; empty: none, or no thread."""
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The state that the thread's last finished run left."""

    @property
    def state(self) -> dict[str, Any]:
        """All that goes over the graph's own first values."""
        return {**self.before, **self.values}


def beginning(plan: Plan, inputs: Any, values: Mapping[str, Any], options: Options) -> Beginning:
    """What a fresh run begins with. Raises: JournalError (AX507): a thread without a journal; AX509: the thread's last run is open."""
    if not options.thread:
        return Beginning(inputs, values)
    if options.journal is None:
        raise JournalError("a thread was named, and no journal.", id="AX507", hint="Give a journal: it keeps what the thread's runs leave.")
    runs = options.journal.thread(options.thread)
    for number, run_id in enumerate(reversed(runs)):
        ended = Replay(options.journal.entries(run_id)).ended
        status = "open" if ended is None else ended.data["status"]
        if not number and status in ("open", "paused"):
            told = f'the last run of the thread "{options.thread}", "{run_id}", is {status}.'
            raise JournalError(told, id="AX509", hint="Resume it, answer it or cancel it first: runs of a thread go one after the other.")
        if ended is not None and status == "done":
            return Beginning(inputs, values, options.thread, runs[-1], decode_delta(ended.data["state"], plan.graph.schema))
    return Beginning(inputs, values, options.thread, runs[-1] if runs else "")


def header(plan: Plan, begun: Beginning, origin: Mapping[str, Any]) -> Entry:
    """What a journal keeps of a run before anything runs. Raises: JournalError: an input cannot be kept."""
    schema, spec = plan.graph.schema, plan.graph.spec
    data: dict[str, Any] = {
        "graph": spec.id,
        "digest": plan.graph.digest,
        "inputs": encode(begun.inputs),
        "values": encode_delta(begun.values, schema),
    }
    if begun.thread:
        data |= {"thread": begun.thread, "after": begun.after, "before": encode_delta(begun.before, schema)}
    if origin:
        data["origin"] = encode(dict(origin))
    return Entry("run", data=data)


def ending(result: Result, state: State, thread: str) -> Entry:
    """What a journal keeps of how a run ended; of an output that it cannot hold, nothing."""
    data: dict[str, Any] = {"status": result.status}
    if result.error is not None:
        data["error"] = str(result.error)
    if result.questions:
        data["questions"] = [{"id": question.id, "node": question.node, **question.plain()} for question in result.questions]
    if thread and result.status == "done":
        left = {name: value for name, value in state.items() if not name.startswith("@") or name.startswith(KEPT)}
        data["state"] = encode_delta(left, state.schema)
    elif result.status == "done" and state.schema.view is None:
        with suppress(JournalError):
            data["output"] = encode(result.output)
    return Entry("ended", data=data)


def reopened(told: Entry, plan: Plan, inputs: Any, values: Mapping[str, Any], *, resuming: bool) -> Beginning:
    """What a run that a journal knows began with.

    ``resuming``: whatever is given now. Raises: JournalError: AX504 another graph's; AX505 begun with another input.
    """
    schema, data = plan.graph.schema, told.data
    if data["digest"] != plan.graph.digest:
        raise JournalError("the run was begun with another version of this graph.", id="AX504", hint="Finish it with that version.")
    nothing_given = inputs is None and not values
    if not (resuming or nothing_given) and (data["inputs"], data["values"]) != (encode(inputs), encode_delta(values, schema)):
        raise JournalError("a run of this id was begun with another input.", id="AX505", hint="Resume it, or choose another run_id.")
    given = decode(data["inputs"]), decode_delta(data["values"], schema)
    return Beginning(*given, data.get("thread", ""), data.get("after", ""), decode_delta(data.get("before", {}), schema))


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
