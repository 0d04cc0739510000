"""Steps that do not come from a body: told to a journal, retold from one, or handed up by a cycle."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from axil.composite import Left
from axil.context import KEPT
from axil.errors import JournalError
from axil.journal import Entry, Replay, decode, decode_delta, encode, encode_delta
from axil.machine import Machine
from axil.migrations import left, marked, said, versions
from axil.outcome import Send, Step
from axil.plan import Plan
from axil.result import Options, Result
from axil.state import State
from axil.tokens import Changes, Task

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Beginning(NamedTuple):
    """What a run begins with."""

    inputs: Any
    values: Mapping[str, Any]
    """Given with the inputs, checked."""
    thread: str = ""
    after: str = ""
    """The thread's last run so far; empty: none, or no thread."""
    before: Mapping[str, Any] = _NOTHING
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
            entries = options.journal.entries(run_id)
            return Beginning(inputs, values, options.thread, runs[-1], left(ended.data["state"], said(entries), plan))
    return Beginning(inputs, values, options.thread, runs[-1] if runs else "")


def opening(header_known: Entry | None, plan: Plan, begun: Beginning, options: Options) -> Entry:
    """What a journal is told first: how the run begins, or that it goes on."""
    return header(plan, begun, options) if header_known is None else resumed(header_known, plan, options)


def header(plan: Plan, begun: Beginning, options: Options) -> Entry:
    """What a journal keeps of a run before anything runs. Raises: JournalError: an input cannot be kept."""
    schema, spec = plan.graph.schema, plan.graph.spec
    data: dict[str, Any] = {"graph": spec.id, "inputs": encode(begun.inputs), "values": encode_delta(begun.values, schema)}
    if begun.thread:
        data |= {"thread": begun.thread, "after": begun.after, "before": encode_delta(begun.before, schema)}
    return Entry("run", data={**data, **graph_told(plan, options)})


def graph_told(plan: Plan, options: Options) -> dict[str, Any]:
    """What a journal keeps of the graph that a run runs, so that whoever goes on with it knows whether it is another."""
    graph = plan.graph
    data: dict[str, Any] = {"digest": graph.digest, "states": versions(graph), "marked": marked(graph)}
    data["pins"] = {name: dict(pin) for name, pin in options.pins.items()}
    if options.origin:
        data["origin"] = encode(dict(options.origin))
    return {name: value for name, value in data.items() if value}


def resumed(told: Entry, plan: Plan, options: Options) -> Entry:
    """What a journal keeps of a run being gone on with: where it is with another graph, or other plugins, what is said of those."""
    if not options.migrate:
        return Entry("resumed")
    now = graph_told(plan, options)
    if all(now.get(name) == told.data.get(name) for name in now):
        return Entry("resumed")
    return Entry("resumed", data={"now": {"states": {}, "marked": {}, **now}})


def drift(before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What became of the distributions that a run is pinned to, in words.

    >>> drift({"acme": {"version": "1.0"}}, {"acme": {"version": "1.1"}})
    ['acme was 1.0, and is 1.1']
    """
    found: list[str] = []
    for name, pin in before.items():
        there = now.get(name)
        if there is None:
            found.append(f"{name} {pin['version']} is not used any more, or not installed")
        elif there["version"] != pin["version"]:
            found.append(f"{name} was {pin['version']}, and is {there['version']}")
        elif there.get("record") and pin.get("record") and there["record"] != pin["record"]:
            found.append(f"{name} {pin['version']} has other contents under the same version")
    return found


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


_WAYS = "Finish it on {old}; or go on with what is there now, in the same run (migrate) or in a fork."


def reopened(told: Entry, plan: Plan, given: tuple[Any, Mapping[str, Any]], options: Options) -> Beginning:
    """What a run that a journal knows began with; ``given``: input and values, as they are said now.

    Raises: JournalError: AX504 another graph's; AX505 begun with another input; AX524 with other versions of its plugins.
    """
    schema, data, (inputs, values) = plan.graph.schema, told.data, given
    if not options.migrate:
        if data["digest"] != plan.graph.digest:
            raise JournalError("the run was begun with another version of this graph.", id="AX504", hint=_WAYS.format(old="that version"))
        if options.pins and (changed := drift(data.get("pins", {}), options.pins)):
            told_of = f"the run was begun with other plugins: {'; '.join(changed)}."
            raise JournalError(told_of, id="AX524", hint=_WAYS.format(old="those"))
    nothing_given = inputs is None and not values
    if not (options.resuming or nothing_given) and (data["inputs"], data["values"]) != (encode(inputs), encode_delta(values, schema)):
        raise JournalError("a run of this id was begun with another input.", id="AX505", hint="Resume it, or choose another run_id.")
    began = decode(data["inputs"]), decode_delta(data["values"], schema)
    return Beginning(*began, data.get("thread", ""), data.get("after", ""), decode_delta(data.get("before", {}), schema))


def told(machine: Machine, task: Task, step: Step) -> Entry:
    """The fact that ``task`` came to ``step``. Raises: JournalError: a value cannot be kept."""
    schema, edges = machine.root.schema, machine.plan.graph.edges
    sends = [[edges[s.arc.id].name, encode(s.payload), None if s.values is None else encode_delta(s.values, schema)] for s in step.sends]
    data: dict[str, Any] = {"delta": encode_delta(step.delta, schema), "sends": sends}
    if machine.head is not None:
        data["head"] = task.head
    machine.said = data if machine.said is None else {}
    return Entry("done", task.frame, machine.plan.nodes[task.node].name, task.ordinal, data)


def retold(machine: Machine, task: Task, entry: Entry) -> Step:
    """The step that a journal recorded; edges that the plan no longer has are left out."""
    schema, edges = machine.root.schema, machine.plan.graph.edges
    machine.said = entry.data if machine.said is None else {}
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
